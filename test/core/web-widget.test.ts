import fc from "fast-check";
import { expect, test } from "vitest";
import type { TaskCard } from "../../src/protocol/task.ts";
import type { WidgetRow, WidgetServerFrame } from "../../src/protocol/widget-frames.ts";
import {
  announcement,
  applyFrame,
  type Conversation,
  emptyConversation,
  insertRow,
  itemsOf,
  resumeMap,
  settleDelivered,
  waitingCount,
} from "../../src/web/widget/model.ts";
import { acknowledge, emptyOutbox, enqueue } from "../../src/web/widget/outbox.ts";

const root = "thr_root";
const welcome: WidgetServerFrame = {
  t: "welcome",
  you: { role: "member", name: "member" },
  rootThreadId: root,
  agentName: "Switchyard",
  model: { ready: true },
};
const said = (text: string, clientMsgId?: string): WidgetRow => ({
  kind: "message",
  from: { role: "member", name: "member", you: true },
  text,
  atMs: 1,
  ...(clientMsgId === undefined ? {} : { clientMsgId }),
});
const reply = (text: string): WidgetRow => ({ kind: "reply", replyKind: "reply", text, state: "sent", atMs: 1 });
const topic: WidgetRow = { kind: "topic", topicThreadId: "thr_topic", taskId: "tsk_a", title: "Run the tests", atMs: 1 };
const row = (threadId: string, seq: number, content: WidgetRow): WidgetServerFrame => ({ t: "row", threadId, seq, row: content });
const card = (revision: number, status: TaskCard["status"], over: Partial<TaskCard> = {}): WidgetServerFrame => ({
  t: "card",
  threadId: "thr_topic",
  card: {
    taskId: "tsk_a",
    threadId: "thr_topic",
    title: "Run the tests",
    status,
    line: "",
    modelCalls: 0,
    startedMs: 1,
    updatedMs: 1,
    revision,
    ...over,
  },
});
const after = (frames: WidgetServerFrame[], state: Conversation = emptyConversation): Conversation => frames.reduce(applyFrame, state);

test("rows stand in their order and each once, however often and in whatever order they come", () => {
  const seqs = fc.uniqueArray(fc.integer({ min: 1, max: 50 }), { minLength: 1 });
  fc.assert(
    fc.property(seqs, fc.infiniteStream(fc.nat()), (unique, noise) => {
      const order = [...unique, ...unique].sort(() => (noise.next().value % 3) - 1);
      const rows = order.reduce((list, seq) => insertRow(list, seq, said(`${seq}`)), [] as ReturnType<typeof insertRow>);
      expect(rows.map((shown) => shown.seq)).toEqual([...unique].sort((a, b) => a - b));
    }),
  );
});

test("a repeated row or an older card changes nothing at all", () => {
  const state = after([welcome, row(root, 1, said("a")), card(3, "running")]);
  expect(applyFrame(state, row(root, 1, said("a")))).toBe(state);
  expect(applyFrame(state, card(3, "done"))).toBe(state);
  expect(applyFrame(state, card(2, "queued"))).toBe(state);
});

test("a new connection asks for what is missing in each thread", () => {
  const state = after([welcome, row(root, 4, said("a")), row(root, 2, said("b")), row("thr_topic", 7, reply("c"))]);
  expect(resumeMap(state)).toEqual({ [root]: 4, thr_topic: 7 });
  expect(resumeMap(emptyConversation)).toEqual({});
});

test("a task shows its last answer and what came after it; what came before unfolds", () => {
  const state = after([
    welcome,
    row(root, 1, said("run the tests")),
    row(root, 2, topic),
    row("thr_topic", 1, said("run the tests")),
    row("thr_topic", 2, reply("On it.")),
    row("thr_topic", 3, reply("One fails.")),
    row("thr_topic", 4, said("which?")),
  ]);
  const [, task] = itemsOf(state, emptyOutbox);
  expect(task?.kind === "topic" && task.topic.earlier.map((shown) => shown.seq)).toEqual([1, 2]);
  expect(task?.kind === "topic" && task.topic.latest.map((shown) => shown.seq)).toEqual([3, 4]);
});

test("a pressed button and a pending reply belong to their card alone", () => {
  const state = after([welcome, row(root, 1, topic), card(1, "running")]);
  let outbox = enqueue(emptyOutbox, { t: "act", clientMsgId: "press-1x", threadId: "thr_topic", taskId: "tsk_a", action: "stop" }, 1);
  outbox = enqueue(outbox, { t: "send", clientMsgId: "send-1xx", threadId: "thr_topic", text: "and the docs" }, 2);
  const items = itemsOf(state, outbox);
  expect(items).toHaveLength(1);
  const [task] = items;
  expect(task?.kind === "topic" && task.topic.pressed).toEqual(["stop"]);
  expect(task?.kind === "topic" && task.topic.pending).toHaveLength(1);
});

test("a sent message is in sight at every moment and never twice", () => {
  const id = "message-1";
  const counts = (state: Conversation, outbox: typeof emptyOutbox) =>
    itemsOf(state, outbox).filter((item) => item.key === `row:${id}`).length;
  const sent = enqueue(emptyOutbox, { t: "send", clientMsgId: id, threadId: root, text: "a" }, 1);
  const empty = after([welcome]);
  const withRow = after([row(root, 5, said("a", id))], empty);
  expect(counts(empty, sent)).toBe(1);
  expect(counts(empty, acknowledge(sent, id))).toBe(1);
  expect(counts(withRow, sent)).toBe(1);
  expect(counts(withRow, acknowledge(sent, id))).toBe(1);
  expect(settleDelivered(acknowledge(sent, id), withRow).entries).toEqual([]);
  expect(settleDelivered(acknowledge(sent, id), empty).entries).toHaveLength(1);
});

test("only what is new after the history is announced: answers, and states that changed", () => {
  const before = after([welcome, row(root, 1, topic), card(1, "running")]);
  expect(announcement(before, row(root, 2, reply("old")))).toBeNull();
  const live = applyFrame(before, { t: "caught_up" });
  expect(announcement(live, row(root, 2, reply("Hello")))).toBe("Switchyard: Hello");
  expect(announcement(applyFrame(live, row(root, 2, reply("Hello"))), row(root, 2, reply("Hello")))).toBeNull();
  expect(announcement(live, row(root, 3, said("mine")))).toBeNull();
  expect(announcement(live, card(2, "running", { line: "npm test" }))).toBeNull();
  expect(announcement(live, card(2, "done"))).toBe("Task “Run the tests”: done.");
});

test("a question and a used-up allowance wait for the person; a machine does not", () => {
  expect(waitingCount(after([card(1, "waiting", { waitingFor: "you" })]))).toBe(1);
  expect(waitingCount(after([card(1, "paused")]))).toBe(1);
  expect(waitingCount(after([card(1, "waiting", { waitingFor: "studio-laptop" })]))).toBe(0);
});

test("queued messages stand by themselves, with their latest words, and are in the conversation once the task has read them", () => {
  const amend = (of: string, change: "edit" | "withdraw" | "now", text = ""): WidgetRow => ({ kind: "amend", of, change, text, atMs: 2 });
  const frames = [
    welcome,
    row(root, 1, topic),
    row("thr_topic", 1, said("run the tests", "message-0")),
    row("thr_topic", 2, said("then lint", "message-1")),
    row("thr_topic", 3, said("then docs", "message-2")),
    row("thr_topic", 4, amend("message-1", "edit", "then lint, with fixes")),
    card(2, "running", { backlog: ["message-1", "message-2"] }),
  ];
  const view = (state: Conversation) => {
    const item = itemsOf(state, emptyOutbox).find((each) => each.kind === "topic");
    if (item?.kind !== "topic") throw new Error("a topic");
    const shown = [...item.topic.earlier, ...item.topic.latest].map((each) => ("text" in each.row ? each.row.text : ""));
    return { queued: item.topic.queued.map(({ text }) => text), shown };
  };
  const held = after(frames);
  expect(view(held)).toEqual({ queued: ["then lint, with fixes", "then docs"], shown: ["run the tests"] });
  const later = after([row("thr_topic", 5, amend("message-2", "withdraw")), card(3, "running")], held);
  expect(view(later)).toEqual({ queued: [], shown: ["run the tests", "then lint, with fixes"] });
});
