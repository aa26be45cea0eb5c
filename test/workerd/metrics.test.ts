// What the router does by itself, what people say of it, and what the console makes of both.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { routerName } from "../../src/env.ts";
import type { MetricsAnswer, TaskAnswer } from "../../src/protocol/console.ts";
import { member } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, ok, request } from "./console-support.ts";
import { append, decided, objects, say, script } from "./router-lab.ts";
import { begin, done, newTask, untilStatus, script as workerScript } from "./worker-helpers.ts";

const metrics = () => ok<MetricsAnswer>(asOperator("GET", "metrics"));
const token = `met${Date.now().toString(36)}`;
const lab = {
  token,
  get router() {
    return objects.ROUTER.getByName(routerName);
  },
};

/** Somebody says something to others on an issue, or to us; the router answers. */
async function answered(name: string, addressed: boolean): Promise<string> {
  const text = `${name} ${token}`;
  await script(text, [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: "If I may: yes." } }] }]);
  if (addressed) return (await decided(lab, (await say(lab, { name: `${token}${name}`, by: member, text })).id)).decisionId;
  const { row } = await append({ name: `${token}${name}`, by: member, thread: token, text, outcome: "candidate" });
  if (row.kind !== "trigger") throw new Error("no trigger");
  const overheard = { ...row, trigger: { ...row.trigger, addressed: false } };
  await lab.router.deliver({ threadId: row.trigger.threadId, rows: [{ row: overheard, alsoWith: [] }], before: [], tasks: [] });
  return (await decided(lab, row.trigger.id)).decisionId;
}

test("[RD14] the console shows how often the router acted unasked, and how often people called that wrong", async () => {
  expect((await request("/api/console/metrics")).status).toBe(401);
  const before = await metrics();
  const asked = await answered("please", true);
  const unasked = await answered("aside", false);
  await answered("aside-again", false);
  await evictDurableObject(lab.router as never);
  expect(await metrics()).toMatchObject({
    days: 30,
    asked: before.asked + 1,
    unasked: before.unasked + 2,
    wrongUnasked: before.wrongUnasked,
  });
  for (const id of [asked, unasked]) await ok(asOperator("POST", `decisions/${id}/mark`, { wrong: true }));
  // Wrong as it may have been, the first one was asked for.
  expect((await metrics()).wrongUnasked).toBe(before.wrongUnasked + 1);
  await ok(asOperator("POST", `decisions/${unasked}/mark`, { wrong: false }));
  expect((await metrics()).wrongUnasked).toBe(before.wrongUnasked);
});

test("an outcome is accepted or rejected in the console, the last word counts, and the numbers show it", async () => {
  const before = await metrics();
  const task = newTask();
  expect((await asOperator("POST", `tasks/${task.taskId}/verdict`, { accepted: true })).status).toBe(404);
  await workerScript(task, [done("all is well")]);
  await begin(task);
  await untilStatus(task, "done");
  await ok(asOperator("POST", `tasks/${task.taskId}/verdict`, { accepted: false }));
  await until("the rejected one is counted", async () => (await metrics()).rejected === before.rejected + 1);
  await evictDurableObject(task.stub as never);
  await ok(asOperator("POST", `tasks/${task.taskId}/verdict`, { accepted: true }));
  await until("the accepted one is counted", async () => (await metrics()).accepted === before.accepted + 1);
  expect((await metrics()).rejected).toBe(before.rejected);
  expect((await ok<TaskAnswer>(asOperator("GET", `tasks/${task.taskId}`))).card.accepted).toBe(true);
  expect((await asOperator("POST", `tasks/${task.taskId}/verdict`, {})).status).toBe(400);
});
