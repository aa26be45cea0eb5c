import { evictDurableObject } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { makeId } from "../../src/core/ids.ts";
import { topicThreadIdOf } from "../../src/core/thread.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { DeliveredRow } from "../../src/protocol/thread.ts";
import { cardOf, eventsOf, stubOf, threadOf, uniqueName, verdict } from "./thread-fixtures.ts";
import { eventually, Page, session } from "./widget-page.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A page with a task's topic on it, and the rows that its worker was handed. */
async function withTopic(): Promise<{ page: Page; taskId: string; topicId: string; handed: DeliveredRow[] }> {
  const handed: DeliveredRow[] = [];
  vi.spyOn(WorkerSession.prototype, "deliver").mockImplementation(async ({ rows }) => {
    // After an eviction a row may be handed over again; its receiver knows it by its number.
    handed.push(...rows.filter(({ row }) => !handed.some((known) => known.row.seq === row.seq)));
    return { throughSeq: Math.max(...rows.map(({ row }) => row.seq)) };
  });
  const page = await Page.ready(await session());
  page.message("message-0", "run the tests");
  await page.acked("message-0");
  const [asked] = await eventsOf(page.rootThreadId, "thread.accepted");
  if (!asked) throw new Error("no row");
  const taskId = makeId("tsk", uniqueName());
  const topicId = topicThreadIdOf(taskId);
  const common = { taskId, title: "Run the tests" };
  await threadOf(topicId).openTopic({
    ...common,
    rootThreadId: page.rootThreadId,
    decisionId: `dec_${taskId}`,
    trigger: asked.event.trigger,
    verdict: verdict("request"),
  });
  await threadOf(page.rootThreadId).attachTopic({ ...common, topicThreadId: topicId, triggerId: asked.event.trigger.id });
  return { page, taskId, topicId, handed };
}

/** Each once: a row may be handed over again, and its worker knows it by its id. */
const triggersOf = (handed: readonly DeliveredRow[]) => [
  ...new Map(handed.flatMap(({ row }) => (row.kind === "trigger" ? [[row.trigger.id, row.trigger] as const] : []))).values(),
];

test("[WI7] how a message meets a busy task, and what is changed of it later, reach the worker as rows, in order and once", async () => {
  const { page, topicId, handed } = await withTopic();
  page.say({ t: "send", clientMsgId: "message-1", threadId: topicId, text: "then lint", mode: "queue" });
  await page.acked("message-1");
  await evictDurableObject(stubOf(topicId));
  for (let i = 0; i < 2; i++)
    page.say({ t: "amend", clientMsgId: "amend-001", threadId: topicId, of: "message-1", change: "edit", text: "then lint it all" });
  page.say({ t: "send", clientMsgId: "message-2", threadId: topicId, text: "stop, do this", mode: "interrupt" });
  page.say({ t: "amend", clientMsgId: "amend-002", threadId: topicId, of: "message-1", change: "move", before: "message-2", revision: 4 });
  page.say({ t: "amend", clientMsgId: "amend-003", threadId: topicId, of: "message-1", change: "withdraw" });
  await page.acked("amend-003");
  await eventually("all rows were handed over", () => triggersOf(handed).length >= 6);
  const [, queued, edit, interrupt, move, withdraw] = triggersOf(handed);
  expect(move).toMatchObject({ amends: { triggerId: queued?.id, change: "move", before: interrupt?.id, revision: 4 }, text: "" });
  expect(queued).toMatchObject({ mode: "queue", text: "then lint", externalId: "message-1" });
  expect(edit).toMatchObject({ amends: { triggerId: queued?.id, change: "edit" }, text: "then lint it all" });
  expect(withdraw).toMatchObject({ amends: { triggerId: queued?.id, change: "withdraw" } });
  expect(interrupt).toMatchObject({ mode: "interrupt" });
  const verdicts = (await eventsOf(topicId, "thread.accepted")).map(({ event }) => event.verdict.outcome);
  expect(verdicts).toEqual(["request", "request", "request", "request", "record", "record"]);
  await page.until("the page sees the changes", () => page.rows(topicId).filter(({ row }) => row.kind === "amend").length === 3);
});

test("[WI2] a full backlog refuses at the door, with the reason, and nothing is kept of it", async () => {
  const { page, taskId, topicId } = await withTopic();
  await threadOf(topicId).card({
    ...cardOf(taskId, topicId, 1),
    backlog: Array.from({ length: limits.maxBacklog }, (_, i) => `queued-${i}`),
  });
  page.say({ t: "send", clientMsgId: "message-1", threadId: topicId, text: "one more", mode: "queue" });
  await page.until("it is refused", () => page.frames.some((frame) => frame.t === "refused"));
  expect(page.frames.find((frame) => frame.t === "refused")).toMatchObject({
    clientMsgId: "message-1",
    message: expect.stringContaining("20 messages are queued"),
  });
  expect(await eventsOf(topicId, "thread.accepted")).toHaveLength(1);
  // One of them, whose ack was lost, is no new one.
  page.say({ t: "send", clientMsgId: "queued-19", threadId: topicId, text: "the last of them", mode: "queue" });
  await page.acked("queued-19");
  page.say({ t: "send", clientMsgId: "message-2", threadId: topicId, text: "steer" });
  await page.acked("message-2");
});

test("in the root nothing can be queued or changed: there is no worker yet", async () => {
  const page = await Page.ready(await session());
  page.say({ t: "send", clientMsgId: "message-1", threadId: page.rootThreadId, text: "hello", mode: "queue" });
  await page.acked("message-1");
  const [first] = await eventsOf(page.rootThreadId, "thread.accepted");
  expect(first?.event.trigger.mode).toBeUndefined();
  page.say({ t: "amend", clientMsgId: "amend-001", threadId: page.rootThreadId, of: "message-1", change: "withdraw" });
  await page.until("it is refused", () => page.frames.some((frame) => frame.t === "refused"));
});
