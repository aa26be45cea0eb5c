// What a followed thread pays for what it hears: cursors that are written once for a burst, one word to the router until it looks.
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import { Router } from "../../durable-objects/router.ts";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { makeId } from "../../src/core/ids.ts";
import { until } from "../support/until.ts";
import { at, issue, stubOf, threadOf, triggerIn, uniqueName, verdict } from "./thread-fixtures.ts";
import { bindings } from "./widget-page.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const cursorOf = (threadId: string): Promise<number> =>
  runInDurableObject(stubOf(threadId), (_instance, state) =>
    Number(state.storage.sql.exec<{ cursor: number }>("SELECT cursor FROM subscription").one().cursor),
  );
const afterwards = (threadId: string): Promise<unknown> => at(Date.now() + 5_000, () => runDurableObjectAlarm(stubOf(threadId)));

/** A thread that a task follows, which has not started: its inbox takes rows all the same. */
async function followed() {
  const where = issue();
  const taskId = makeId("tsk", uniqueName());
  const say = (name: string) => threadOf(where.threadId).append({ trigger: triggerIn(where, name), verdict: verdict("record") });
  await say("d0");
  await threadOf(where.threadId).subscribe({ taskId, decisionId: makeId("dec", taskId), triggerId: triggerIn(where, "d0").id });
  const inbox = async (): Promise<string[]> =>
    (await bindings.WORKER_SESSION.getByName(taskId).events({ afterSeq: 0, limit: 100 })).flatMap(({ event }) =>
      event.kind === "task.inbox" ? [event.itemId] : [],
    );
  await until("the first row", async () => (await inbox()).length === 1);
  await afterwards(where.threadId);
  return { where, say, inbox, ids: (...names: string[]) => names.map((name) => triggerIn(where, name).id) };
}

test("[T12] [R3] [R7] a burst moves its cursor once; a crash before that hands its rows over again, and each enters once", async () => {
  const { where, say, inbox, ids } = await followed();
  const before = await cursorOf(where.threadId);
  for (const name of ["d1", "d2", "d3"]) await say(name);
  await until("the burst", async () => (await inbox()).length === 4);
  expect(await cursorOf(where.threadId)).toBe(before);
  await abortAllDurableObjects();
  const deliver = vi.spyOn(WorkerSession.prototype, "deliver");
  await afterwards(where.threadId);
  await until("the rows once more", async () => deliver.mock.calls.some(([{ threadId }]) => threadId === where.threadId));
  await until("the cursor", async () => (await cursorOf(where.threadId)) > before);
  expect(await inbox()).toEqual(ids("d0", "d1", "d2", "d3"));
  await evictDurableObject(stubOf(where.threadId));
  deliver.mockClear();
  await afterwards(where.threadId);
  await say("d4");
  await until("the next row", async () => (await inbox()).length === 5);
  expect(deliver.mock.calls.flatMap(([{ rows }]) => rows.map(({ row }) => (row.kind === "trigger" ? row.trigger.id : "")))).toEqual(
    ids("d4"),
  );
});

test("[RI4] a thread that moved says so once, over bursts and an eviction, until the router has looked", async () => {
  const moved = vi.spyOn(Router.prototype, "moved");
  const { where, say } = await followed();
  const told = () => moved.mock.calls.filter(([{ threadId }]) => threadId === where.threadId).length;
  await until("the first word", async () => told() === 1);
  await say("d1");
  await afterwards(where.threadId);
  await evictDurableObject(stubOf(where.threadId));
  await say("d2");
  await afterwards(where.threadId);
  expect(told()).toBe(1);
  // Whoever else reads changes nothing.
  await threadOf(where.threadId).read({ afterSeq: 0, limit: 50 });
  await say("d3");
  await afterwards(where.threadId);
  expect(told()).toBe(1);
  await threadOf(where.threadId).read({ afterSeq: 0, limit: 50, by: "router" });
  await evictDurableObject(stubOf(where.threadId));
  await afterwards(where.threadId);
  expect(told()).toBe(1);
  await say("d4");
  await afterwards(where.threadId);
  expect(told()).toBe(2);
});
