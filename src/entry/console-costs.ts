// The console's door to what models cost and what the day brought. Both are read from rows that are there anyway, when somebody looks.
import { Hono } from "hono";
import * as z from "zod/mini";
import { dayOf, startOfDay } from "../core/costs.ts";
import { readConfig, routerName } from "../env.ts";
import type { CostRoles, CostsAnswer, TodayAnswer } from "../protocol/costs.ts";
import { Fault } from "../protocol/fault.ts";
import { tasksByDay } from "../storage/console-reads.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { peoplesWords } from "../storage/policies.ts";
import type { ConsoleContext, ConsoleEnv } from "./console-access.ts";
import { remote } from "./console-objects.ts";

const costDays = 30;
/** Days of the little chart of tasks. */
const chartDays = 7;
/** Rows of the router's log that one look reads: a busy month of a team, and a fraction of a second of its object. */
const maxRows = 50_000;

/** Mounted behind the console's sign-in. */
export const costsDoor = new Hono<ConsoleEnv>();

costsDoor.get("/", async (c) => {
  const { offsetMs, today } = todayWhere(c);
  const sinceMs = startOfDay(today - costDays + 1, offsetMs);
  const { fromMs, cut, router, tasks } = await remote(routerOf(c).days({ sinceMs, offsetMs, maxRows }));
  return c.json({ days: costDays, today, fromMs, cut, router, tasks, roles: rolesOf(c) } satisfies CostsAnswer);
});

costsDoor.get("/today", async (c) => {
  const { offsetMs, today } = todayWhere(c);
  const sinceMs = startOfDay(today, offsetMs);
  const chart = { sinceMs: startOfDay(today - chartDays + 1, offsetMs), offsetMs };
  const [{ asked, unasked, ...spent }, [tasks, said]] = await Promise.all([
    remote(routerOf(c).days({ sinceMs, offsetMs, maxRows })),
    fromD1(c.env.DB, (db) => Promise.all([tasksByDay(db, chart), peoplesWords(db, sinceMs)])),
  ]);
  const days = Array.from({ length: chartDays }, (_, at) => {
    const of = tasks.find(({ day }) => day === today - chartDays + 1 + at);
    return { tasks: of?.tasks ?? 0, failed: of?.failed ?? 0 };
  });
  return c.json({ days, asked, unasked, wrong: said.wrongUnasked, spent, roles: rolesOf(c) } satisfies TodayAnswer);
});

const routerOf = (c: ConsoleContext) => c.env.ROUTER.getByName(routerName);

/** The day where the one who asks is. */
function todayWhere(c: ConsoleContext): { offsetMs: number; today: number } {
  const offset = z.coerce
    .number()
    .check(z.int(), z.minimum(-14 * 60), z.maximum(14 * 60))
    .safeParse(c.req.query("offset") ?? 0);
  if (!offset.success) throw new Fault("bad_input", "offset: must be the minutes by which clocks are ahead of UTC, such as 120");
  const offsetMs = offset.data * 60_000;
  return { offsetMs, today: dayOf(Date.now(), offsetMs) };
}

function rolesOf(c: ConsoleContext): CostRoles {
  const { router, worker } = readConfig(c.env).model;
  return {
    router: { model: router.modelName, price: router.price },
    worker: { model: worker.modelName, price: worker.price },
  };
}
