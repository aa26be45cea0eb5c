// The console's door to the last month in numbers: what the router did by itself, how often that was wrong, what people accepted.
import { Hono } from "hono";
import { routerName } from "../env.ts";
import type { MetricsAnswer } from "../protocol/console.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { peoplesWords } from "../storage/policies.ts";
import { actsDays } from "../storage/router-acts.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { remote } from "./console-objects.ts";

/** Mounted behind the console's sign-in. */
export const metricsDoor = new Hono<ConsoleEnv>();

metricsDoor.get("/", async (c) => {
  const sinceMs = Date.now() - actsDays * 24 * 60 * 60_000;
  const [{ acts, context }, said] = await Promise.all([
    remote(c.env.ROUTER.getByName(routerName).overview()),
    fromD1(c.env.DB, (db) => peoplesWords(db, sinceMs)),
  ]);
  return c.json({ days: actsDays, ...acts, ...said, context } satisfies MetricsAnswer);
});
