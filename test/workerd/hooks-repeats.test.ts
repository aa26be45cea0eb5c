import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { Thread } from "../../durable-objects/thread.ts";
import { placeLimits } from "../../src/core/rate-limit.ts";
import type { Env } from "../../src/env.ts";
import { until } from "../support/until.ts";
import { deliverGeneric } from "./generic-deliveries.ts";
import { commentOn, deliver } from "./github-deliveries.ts";

const bindings = env as unknown as Env;
const stubOf = (triggerId: string) => bindings.THREAD.getByName(`thr_${triggerId.slice(4, triggerId.indexOf("-"))}`);
const repeatsOf = async (triggerId: string): Promise<unknown[]> =>
  (await stubOf(triggerId).events({ afterSeq: 0, limit: 100 })).flatMap(({ event }) =>
    event.kind === "thread.duplicate" ? [{ deliveryId: event.deliveryId, by: event.by }] : [],
  );

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("[G7] [Q4] what this isolate took in is answered again without its thread, whose log says so of all repeats in one call", async () => {
  const payload = commentOn("repeat/app", { body: "once more" });
  const first = (await deliver("issue_comment", payload)).answer.triggers?.[0];
  const append = vi.spyOn(Thread.prototype, "append");
  const repeated = vi.spyOn(Thread.prototype, "repeated");
  for (let n = 0; n < 3; n++)
    expect(await deliver("issue_comment", payload)).toMatchObject({
      status: 202,
      answer: { triggers: [{ id: first?.id, outcome: "duplicate", verdict: first?.verdict, reason: first?.reason }] },
    });
  expect(append).not.toHaveBeenCalled();
  await until("the log", async () => ((await repeatsOf(first?.id ?? "")).length === 3 ? true : undefined));
  expect(repeated).toHaveBeenCalledTimes(1);
  await evictDurableObject(stubOf(first?.id ?? "") as unknown as DurableObjectStub);
  expect(await repeatsOf(first?.id ?? "")).toHaveLength(3);
  expect((await stubOf(first?.id ?? "").read({ afterSeq: 0, limit: 100 })).rows.filter(({ kind }) => kind === "trigger")).toHaveLength(1);
});

test("[G7] a second event of a message that was taken in is known by the message's key", async () => {
  const said = { kind: "message", text: "one message", thread: "repeat-key", messageKey: "C7:1", principal: { id: "U7", role: "member" } };
  const first = (await deliverGeneric(said, { id: "repeat-Ev1" })).answer.triggers?.[0];
  const append = vi.spyOn(Thread.prototype, "append");
  const again = await deliverGeneric({ ...said, kind: "app_mention" }, { id: "repeat-Ev2" });
  expect(again.answer.triggers).toMatchObject([{ id: first?.id, outcome: "duplicate" }]);
  expect(append).not.toHaveBeenCalled();
  await until("the log", async () => ((await repeatsOf(first?.id ?? "")).length === 1 ? true : undefined));
  expect(await repeatsOf(first?.id ?? "")).toEqual([{ deliveryId: "repeat-Ev2", by: "message key" }]);
});

test("[R3] after a while, and where it was not taken in as a whole, the thread is asked", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
  const payload = commentOn("repeat/late", { body: "much later" });
  const append = vi.spyOn(Thread.prototype, "append");
  append.mockRejectedValueOnce(new Error("overloaded"));
  expect((await deliver("issue_comment", payload)).status).toBe(503);
  expect((await deliver("issue_comment", payload)).answer.triggers).toMatchObject([{ outcome: "accepted" }]);
  expect(append).toHaveBeenCalledTimes(2);
  vi.setSystemTime(Date.now() + 11 * 60_000);
  await abortAllDurableObjects();
  expect((await deliver("issue_comment", payload)).answer.triggers).toMatchObject([{ outcome: "duplicate" }]);
  expect(append).toHaveBeenCalledTimes(3);

  const noise = commentOn("repeat/noise", { login: "renovate[bot]", body: "Update" });
  for (let n = 0; n < 2; n++) expect((await deliver("issue_comment", noise)).answer.triggers).toMatchObject([{ outcome: "ignored" }]);
  expect(append).toHaveBeenCalledTimes(5);
});

test("[G6] a repeat takes from its place's bucket as any event does", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
  const payload = commentOn("repeat/flood", { body: "again and again" });
  const statuses: number[] = [];
  for (let n = 0; n <= placeLimits.people.burst; n++) statuses.push((await deliver("issue_comment", payload)).status);
  expect(statuses.slice(0, -1).every((status) => status === 202)).toBe(true);
  expect(statuses.at(-1)).toBe(429);
});
