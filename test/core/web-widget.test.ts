import fc from "fast-check";
import { expect, test } from "vitest";
import type { TaskCard } from "../../src/protocol/task.ts";
import type { DraftFrame, WidgetRow, WidgetServerFrame } from "../../src/protocol/widget-frames.ts";
import {
  announcement,
  applyFrame,
  type Conversation,
  emptyConversation,
  foldWords,
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
const relay = (text: string): WidgetRow => ({ kind: "reply", replyKind: "relay", text, state: "sent", atMs: 1 });
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

test("[Q2] rows stand in their order and each once, however often and in whatever order they come", () => {
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

test("[Q2] a new connection asks for what is missing in each thread", () => {
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

test("each result since a person last spoke stays in sight, and the line that folds says how many it hides", () => {
  const state = (...more: WidgetServerFrame[]) =>
    itemsOf(
      after([
        welcome,
        row(root, 2, topic),
        row("thr_topic", 1, said("run the tests")),
        row("thr_topic", 2, reply("On it.")),
        row("thr_topic", 3, said("then build")),
        row("thr_topic", 4, said("then lint")),
        ...[5, 6, 7].map((seq) => row("thr_topic", seq, relay(`result ${seq}`))),
        ...more,
      ]),
      emptyOutbox,
    ).flatMap((item) => (item.kind === "topic" ? [item.topic] : []))[0];
  const seqs = (view: ReturnType<typeof state>) => view?.latest.map((shown) => shown.seq);
  expect(seqs(state())).toEqual([5, 6, 7]);
  expect(foldWords(state()?.earlier ?? [])).toBe("4 earlier messages");
  const asked = state(row("thr_topic", 8, said("which?")));
  expect(seqs(asked)).toEqual([7, 8]);
  expect(foldWords(asked?.earlier ?? [])).toBe("6 earlier messages (2 results)");
  const answered = state(row("thr_topic", 8, said("which?")), row("thr_topic", 9, relay("the login")));
  expect(seqs(answered)).toEqual([9]);
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

test("a proposal whose word is on its way counts as pressed until the cloud has it", () => {
  const state = after([welcome, row(root, 1, topic), card(1, "waiting")]);
  const decide = {
    t: "decide",
    clientMsgId: "press-2x",
    threadId: "thr_topic",
    taskId: "tsk_a",
    offer: "out_a-b",
    verdict: "release",
  } as const;
  const outbox = enqueue(emptyOutbox, decide, 1);
  const pressed = (box: typeof outbox) => itemsOf(state, box).flatMap((item) => (item.kind === "topic" ? item.topic.pressed : []));
  expect(pressed(outbox)).toEqual(["out_a-b"]);
  expect(pressed(acknowledge(outbox, "press-2x"))).toEqual([]);
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
  expect(announcement(live, row(root, 2, reply("**2** fail in `a_b`:\n\n- *one*\n- [two](https://a.example)")))).toBe(
    "Switchyard: 2 fail in a_b:\none\ntwo",
  );
  expect(announcement(live, row(root, 2, reply("> find *.md: 0 9 * * 1 by renovate[bot]")))).toBe(
    "Switchyard: find *.md: 0 9 * * 1 by renovate[bot]",
  );
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

const draft = (rev: number, text: string, over: Partial<DraftFrame> = {}): DraftFrame => ({
  t: "draft",
  threadId: root,
  draftId: "out_a",
  rev,
  text,
  state: "writing",
  ...over,
});
const answer = (text: string, id = "out_a"): WidgetRow => ({ kind: "reply", id, replyKind: "reply", text, state: "sent", atMs: 1 });
const texts = (state: Conversation): string[] =>
  itemsOf(state, emptyOutbox).flatMap((item) => (item.kind === "draft" ? [item.draft.text] : item.kind === "row" ? [item.row.text] : []));

test("[H6] a reply under way that is offered twice is one text, never empty, and its row takes its place", () => {
  const chunks = Array.from({ length: 10 }, (_, i) => `c${i + 1} `);
  const upTo = (n: number): string => chunks.slice(0, n).join("");
  const frames: WidgetServerFrame[] = [
    welcome,
    row(root, 1, said("hello")),
    draft(4, upTo(4)),
    draft(4, upTo(4)),
    { t: "caught_up" },
    ...[5, 6, 7, 8, 9, 10].flatMap((n) => [draft(n, upTo(n)), draft(n, upTo(n)), draft(n - 1, upTo(n - 1))]),
  ];
  let state = emptyConversation;
  const seen: string[][] = [];
  for (const frame of frames) {
    state = applyFrame(state, frame);
    seen.push(texts(state).slice(1));
  }
  const shown = seen.slice(2);
  expect(shown.every((parts) => parts.length === 1 && parts[0] !== "")).toBe(true);
  for (const [before, next] of shown.slice(1).map((parts, i) => [shown[i]?.[0] ?? "", parts[0] ?? ""] as const))
    expect(next.startsWith(before)).toBe(true);
  expect(shown.at(-1)).toEqual([upTo(10)]);
  const key = itemsOf(state, emptyOutbox).at(-1)?.key;
  state = applyFrame(state, row(root, 2, answer(upTo(10))));
  expect(texts(state)).toEqual(["hello", upTo(10)]);
  expect(itemsOf(state, emptyOutbox).at(-1)?.key).toBe(key);
  // A frame that was overtaken by the row changes nothing.
  expect(applyFrame(state, draft(11, "late"))).toBe(state);
  expect(applyFrame(state, draft(99, "", { state: "interrupted" }))).toBe(state);
});

test("a repeated or older draft changes nothing at all, and none is read out", () => {
  const state = after([welcome, { t: "caught_up" }, draft(5, "five")]);
  expect(applyFrame(state, draft(5, "five"))).toBe(state);
  expect(applyFrame(state, draft(4, "four"))).toBe(state);
  expect(announcement(state, draft(6, "six"))).toBeNull();
  expect(announcement(state, row(root, 2, answer("six")))).toBe("Switchyard: six");
});

test("[Q2] a draft that broke off keeps its words and says so, goes on when its writer does, and leaves with the next answer", () => {
  const broken = after([welcome, { t: "caught_up" }, draft(5, "half an ans"), draft(6, "", { state: "interrupted" })]);
  expect(broken.drafts[root]).toMatchObject({ text: "half an ans", state: "interrupted" });
  expect(applyFrame(broken, draft(7, "half an answer")).drafts[root]).toMatchObject({ text: "half an answer", state: "writing" });
  expect(applyFrame(broken, row(root, 2, answer("another", "out_b"))).drafts).toEqual({});
  // Somebody else's draft that broke off, of which this page saw nothing, is no news.
  expect(after([draft(6, "", { state: "interrupted" })]).drafts).toEqual({});
});

test("[Q2] on a new connection a draft of which nobody speaks any more is interrupted; one that is offered again stays as it was", () => {
  const before = after([welcome, { t: "caught_up" }, draft(5, "half"), draft(9, "other", { threadId: "thr_topic", draftId: "out_b" })]);
  const again = after([welcome, draft(5, "half"), { t: "caught_up" }], before);
  expect(again.drafts[root]).toMatchObject({ text: "half", state: "writing" });
  expect(again.drafts.thr_topic).toMatchObject({ text: "other", state: "interrupted" });
});

test("a draft that will not be said is taken back; a draft in a task's thread stands in its card", () => {
  const state = after([welcome, draft(5, "half")]);
  expect(texts(applyFrame(state, draft(6, "half", { state: "dropped" })))).toEqual([]);
  expect(applyFrame(state, draft(6, "", { draftId: "out_other", state: "dropped" }))).toBe(state);
  const [task] = itemsOf(after([welcome, row(root, 1, topic), draft(5, "half", { threadId: "thr_topic" })]), emptyOutbox);
  expect(task?.kind === "topic" && task.topic.draft?.text).toBe("half");
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
