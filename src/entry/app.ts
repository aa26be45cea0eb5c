// Every door of the Worker, by path. Each door is a file of its own.
import { Hono } from "hono";
import type { Env } from "../env.ts";
import { Fault, httpStatusOf } from "../protocol/fault.ts";
import { migrated } from "../storage/migrations.ts";
import { daemonDoor } from "./daemon.ts";
import { healthDoor } from "./health.ts";
import { hooksDoor } from "./hooks.ts";
import { widgetDoor } from "./widget.ts";

export type AppEnv = { Bindings: Env };

export const app = new Hono<AppEnv>();

app.onError((error, c) => {
  if (error instanceof Fault) {
    const headers: Record<string, string> =
      error.retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(error.retryAfterMs / 1000)) };
    return c.json({ error: error.kind, message: error.message, retry: error.retry }, httpStatusOf[error.kind] as 400, headers);
  }
  console.error(JSON.stringify({ at: "app", path: c.req.path, error: String(error), stack: error.stack }));
  return c.json(
    { error: "internal", message: "Something went wrong on our side. What was accepted is kept; try again in a minute.", retry: "later" },
    500,
  );
});

app.notFound((c) => c.json({ error: "not_found", message: `There is nothing at ${c.req.method} ${c.req.path}.` }, 404));

app.use("/api/*", async (c, next) => {
  await migrated(c.env.DB);
  await next();
});

app.route("/", healthDoor);
app.route("/", hooksDoor);
app.route("/", daemonDoor);
app.route("/", widgetDoor);
