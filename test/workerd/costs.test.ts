// What models cost, read from the router's log when somebody looks.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { childId, makeId } from "../../src/core/ids.ts";
import { routerName } from "../../src/env.ts";
import type { TaskAnswer } from "../../src/protocol/console.ts";
import type { CostsAnswer, TodayAnswer } from "../../src/protocol/costs.ts";
import type { RouterEvent } from "../../src/protocol/events.ts";
import { EventLog } from "../../src/storage/event-log.ts";
import { member, reportOf, taskOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, ok, request } from "./console-support.ts";
import { decided, objects, say, script, unique } from "./router-lab.ts";
import { begin, done, newTask, untilStatus, script as workerScript } from "./worker-helpers.ts";

const dayMs = 24 * 3_600_000;
const firstMs = 20_000 * dayMs;

type ModelEvent = Extract<RouterEvent, { kind: "router.model" }>;
const model = (usage: { inputTokens: number; outputTokens: number } | null, parts: Partial<ModelEvent> = {}): RouterEvent => ({
  kind: "router.model",
  lane: "team",
  phase: "settle",
  ...{ turn: 1, step: 1, model: "large", items: [], ms: 1 },
  usage: usage === null ? null : { ...usage, cachedTokens: 0 },
  ...parts,
});
const report = (name: string, at: string, calls: number, inputTokens: number): [RouterEvent, string] => {
  const task = taskOf(name);
  const id = childId("rep", task.id, at);
  return [{ kind: "router.report", report: reportOf({ task, id, spent: { calls, inputTokens, outputTokens: 10 * calls } }) }, id];
};

/** A router of its own whose log has these events. */
async function logged(events: [RouterEvent, number, string?][]) {
  const router = objects.ROUTER.getByName(`router-costs-${unique()}`);
  await runInDurableObject(router as never, (_instance: unknown, state: DurableObjectState) => {
    const log = new EventLog<RouterEvent>(state.storage.sql);
    state.storage.transactionSync(() => {
      for (const [event, atMs, key] of events) log.append(event, atMs, key ?? null);
    });
  });
  await evictDurableObject(router as never);
  return router;
}

test("calls are counted by day and model, and of a task only what its reports say more, also of a task that began before", async () => {
  const [early, earlyId] = report("a", "one", 4, 4000);
  const [again, againId] = report("a", "two", 6, 7000);
  const [fresh, freshId] = report("b", "one", 2, 500);
  const probe: RouterEvent = {
    kind: "router.probe",
    lane: "team",
    model: "large",
    past: 0,
    ms: 1,
    usage: { inputTokens: 5, cachedTokens: 0, outputTokens: 1 },
  };
  const decision = (id: string, parts: Partial<Extract<RouterEvent, { kind: "router.decision" }>>): RouterEvent => ({
    kind: "router.decision",
    lane: "team",
    authority: "member",
    by: "model",
    ...{ decisionId: id, turn: 1, tool: "dispatch", settles: ["trg_a-b"], reason: "r", effects: [] },
    ...parts,
  });
  const began = {
    kind: "router.speculation",
    taskId: "tsk_s",
    policyId: "p",
    phase: "reserve",
    calls: 8,
    outcome: "running",
    why: "",
  } as const;
  const router = await logged([
    [decision("dec_old", {}), firstMs],
    [model({ inputTokens: 900, outputTokens: 90 }), firstMs],
    [early, firstMs + 1, earlyId],
    [model({ inputTokens: 100, outputTokens: 10 }), firstMs + dayMs],
    [model(null), firstMs + dayMs + 1],
    [model(null, { phase: "failed" }), firstMs + dayMs + 2],
    [model(null, { phase: "reserve" }), firstMs + dayMs + 2],
    // What it began by itself is no act; that somebody asked for the same later is one.
    [decision("dec_s", { taskId: "tsk_s", unasked: true }), firstMs + dayMs + 2],
    [began, firstMs + dayMs + 2],
    [decision("dec_t", { taskId: "tsk_s" }), firstMs + dayMs + 3],
    [decision("dec_u", { tool: "reply", unasked: true }), firstMs + dayMs + 3],
    [decision("dec_v", { tool: "record" }), firstMs + dayMs + 3],
    [decision("dec_w", { by: "code" }), firstMs + dayMs + 3],
    [probe, firstMs + dayMs + 3],
    [again, firstMs + dayMs + 4, againId],
    [model({ inputTokens: 7, outputTokens: 1 }, { model: "small" }), firstMs + 2 * dayMs - 1],
    [fresh, firstMs + 2 * dayMs - 1, freshId],
  ]);
  const sinceMs = firstMs + dayMs;
  const days = await router.days({ sinceMs, offsetMs: 0, maxRows: 1000 });
  expect(days).toMatchObject({ fromMs: sinceMs, cut: false, asked: 1, unasked: 1 });
  expect(days.router).toEqual([
    { day: 20_001, model: "large", calls: 3, untold: 1, inputTokens: 105, outputTokens: 11 },
    { day: 20_001, model: "small", calls: 1, untold: 0, inputTokens: 7, outputTokens: 1 },
  ]);
  expect(days.tasks.map(({ taskId, day, calls, inputTokens }) => [taskId, day, calls, inputTokens])).toEqual([
    [makeId("tsk", "a"), 20_001, 2, 3000],
    [makeId("tsk", "b"), 20_001, 2, 500],
  ]);
  // An hour to the east the last ones are of the next day.
  const east = await router.days({ sinceMs, offsetMs: 3_600_000, maxRows: 1000 });
  expect(east.router.map(({ day, model: of }) => [day, of])).toEqual([
    [20_001, "large"],
    [20_002, "small"],
  ]);
  expect(east.tasks.map(({ day }) => day)).toEqual([20_001, 20_002]);
});

test("a log that is too long is read from its end, and it is said since when", async () => {
  const events = Array.from({ length: 40 }, (_, at): [RouterEvent, number] => [model({ inputTokens: 1, outputTokens: 0 }), firstMs + at]);
  const router = await logged(events);
  const days = await router.days({ sinceMs: firstMs + 3, offsetMs: 0, maxRows: 10 });
  expect(days).toMatchObject({ fromMs: firstMs + 30, cut: true, router: [{ calls: 10 }] });
  expect(await router.days({ sinceMs: firstMs + 33, offsetMs: 0, maxRows: 10 })).toMatchObject({ cut: false, router: [{ calls: 7 }] });
  expect(await router.days({ sinceMs: firstMs + 99, offsetMs: 0, maxRows: 10 })).toMatchObject({ cut: false, router: [], tasks: [] });
});

test("[RD14] the day counts what the router did when asked and unasked, what it cost, and the tasks that began", async () => {
  expect((await request("/api/console/costs")).status).toBe(401);
  const today = () => ok<TodayAnswer>(asOperator("GET", "costs/today?offset=60"));
  const before = await today();
  const token = unique();
  const lab = {
    token,
    get router() {
      return objects.ROUTER.getByName(routerName);
    },
  };
  await script(token, [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Yes." } }] }]);
  await decided(lab, (await say(lab, { name: token, by: member, text: `may I ${token}` })).id);
  const after = await today();
  expect(after).toMatchObject({ asked: before.asked + 1, unasked: before.unasked, wrong: before.wrong });
  const tokens = ({ spent }: TodayAnswer) => spent.router.reduce((sum, { inputTokens }) => sum + inputTokens, 0);
  expect(tokens(after)).toBeGreaterThan(tokens(before));
  const task = newTask();
  await workerScript(task, [done("all is well")]);
  await begin(task);
  await untilStatus(task, "done");
  await until("its line in the day", async () => (await today()).days.at(-1)?.tasks === (before.days.at(-1)?.tasks ?? 0) + 1);
  expect(await ok<TaskAnswer>(asOperator("GET", `tasks/${task.taskId}`))).toMatchObject({
    spent: { calls: 1, inputTokens: 100, outputTokens: 20 },
    dollars: null,
  });
  expect((await today()).days).toHaveLength(7);
});

test("the costs of the month have the same days wherever they are asked for, and a strange offset is refused with a sentence", async () => {
  const costs = await ok<CostsAnswer>(asOperator("GET", "costs?offset=-300"));
  expect(costs).toMatchObject({ days: 30, today: Math.floor((Date.now() - 300 * 60_000) / dayMs), cut: false });
  for (const offset of ["x", "1.5", "100000"]) {
    const refused = await asOperator("GET", `costs?offset=${offset}`);
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("minutes by which clocks are ahead of UTC")]);
  }
});
