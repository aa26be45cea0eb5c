// Every door of the Worker, by path. Each door is a file of its own.
import { Hono } from "hono";
import type { AppEnv } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { asFault, httpStatusOf } from "../protocol/fault.ts";
import { consoleDoor } from "./console.ts";
import { daemonDoor } from "./daemon.ts";
import { healthDoor } from "./health.ts";
import { hooksDoor } from "./hooks.ts";
import { genericDoor } from "./hooks-generic.ts";
import { ownHosts } from "./own-hosts.ts";
import { pagesDoor } from "./pages.ts";
import { widgetDoor } from "./widget.ts";

export const app = new Hono<AppEnv>();

app.onError((error, c) => {
  const fault = asFault(error);
  if (fault) {
    const headers: Record<string, string> =
      fault.retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(fault.retryAfterMs / 1000)) };
    return c.json({ error: fault.kind, message: fault.message, retry: fault.retry }, httpStatusOf[fault.kind] as 400, headers);
  }
  logFault("app", error, { path: c.req.path });
  return c.json(
    { error: "internal", message: "Something went wrong on our side. What was accepted is kept; try again in a minute.", retry: "later" },
    500,
  );
});

app.notFound((c) => c.json({ error: "not_found", message: `There is nothing at ${c.req.method} ${c.req.path}.` }, 404));

app.use("/api/widget/*", ownHosts);
app.use("/api/console/*", ownHosts);

app.route("/", healthDoor);
app.route("/", hooksDoor);
app.route("/", genericDoor);
app.route("/", daemonDoor);
app.route("/", widgetDoor);
app.route("/", consoleDoor);
app.route("/", pagesDoor);
