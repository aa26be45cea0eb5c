// An operator has a trigger decided once more.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { routerName } from "../../src/env.ts";
import type { WhyAnswer } from "../../src/protocol/console.ts";
import type { Logged, RouterEvent } from "../../src/protocol/events.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { guest, member, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, ok, request } from "./console-support.ts";
import { bodies, holdsAtRest, objects, saidIn, script, unique } from "./router-lab.ts";

const router = () => objects.ROUTER.getByName(routerName);
const eventsOf = async (id: string) =>
  ((await router().events({ afterSeq: 0, limit: 1000, about: id })) as Logged<RouterEvent>[]).map(({ event }) => event);
const decisionsOn = async (id: string) =>
  (await eventsOf(id)).flatMap((event) => (event.kind === "router.decision" && event.settles.includes(id) ? [event] : []));
const reprocess = (trigger: Trigger, id: string) => asOperator("POST", `triggers/${trigger.id}/reprocess`, { id });
const append = (trigger: Trigger, outcome: "record" | "request") =>
  objects.THREAD.getByName(trigger.threadId).append({ trigger, verdict: { outcome, rule: "test", reason: "said so" } });

test("[RT8] [R3] what the gate kept without a decision is decided when an operator asks, and once more at the next asking, over evictions", async () => {
  const token = unique();
  const trigger = triggerOf({ name: token, by: { ...member, id: `prs_${token}` }, text: `is the gate oiled? ${token}` });
  const answer = (text: string) => ({ calls: [{ tool: "reply", input: { settles: [trigger.id], text } }] });
  await script(trigger.id, [answer("It is."), answer("It still is.")]);
  await append(trigger, "record");
  expect((await request(`/api/console/triggers/${trigger.id}/reprocess`, { method: "POST", body: "{}" })).status).toBe(401);
  expect((await reprocess(trigger, "short")).status).toBe(400);
  expect(await decisionsOn(trigger.id)).toEqual([]);

  await ok(reprocess(trigger, `first-${token}`));
  await until("the answer", async () => (await saidIn(trigger.threadId)).length === 1);
  const [shown] = await bodies(token);
  expect(shown?.includes("An operator asks for a decision about this") && shown.includes('\\"verdict\\":\\"request\\"')).toBe(true);
  await evictDurableObject(router() as never);
  // The same asking again, as after a lost answer, is none.
  await ok(reprocess(trigger, `first-${token}`));
  await ok(reprocess(trigger, `second-${token}`));
  await until("the second answer", async () => (await saidIn(trigger.threadId)).length === 2);
  await evictDurableObject(router() as never);
  expect((await saidIn(trigger.threadId)).map(({ text }) => text)).toEqual(["It is.", "It still is."]);
  expect((await bodies(token)).length).toBe(2);
  const why = await ok<WhyAnswer>(asOperator("GET", `triggers/${trigger.id}/why`));
  expect(why.decisions.map(({ tool, authority }) => [tool, authority])).toEqual([
    ["reply", "member"],
    ["reply", "member"],
  ]);
  expect((await eventsOf(trigger.id)).flatMap((event) => (event.kind === "router.inbox" ? [event.again] : []))).toEqual([
    `first-${token}`,
    `second-${token}`,
  ]);
  await holdsAtRest([trigger.threadId]);
});

test("[RT8] what waits is not asked for twice, and nobody gets more authority by it", async () => {
  const token = unique();
  const trigger = triggerOf({ name: token, by: { ...guest, id: token }, text: `please run everything ${token}` });
  const work = { tool: "dispatch", input: { settles: [trigger.id], title: "Run", goal: "Run everything." } };
  await script(trigger.id, [{ calls: [work], delayMs: 400 } as never, { calls: [work] }]);
  await append(trigger, "request");
  await until("the request of the model", async () => (await bodies(token)).length === 1);
  await ok(reprocess(trigger, `early-${token}`));
  await until("the refusal", async () => (await decisionsOn(trigger.id)).length === 1);
  expect((await eventsOf(trigger.id)).filter((event) => event.kind === "router.inbox")).toHaveLength(1);
  await ok(reprocess(trigger, `later-${token}`));
  await until("the second refusal", async () => (await decisionsOn(trigger.id)).length === 2);
  const decided = await decisionsOn(trigger.id);
  for (const decision of decided) expect(decision).toMatchObject({ by: "code", authority: "guest", lane: "public" });
  expect(decided.every(({ taskId }) => taskId === undefined)).toBe(true);
  expect((await asOperator("POST", "triggers/trg_nobody-nothing/reprocess", { id: "asking-1" })).status).toBe(404);
});
