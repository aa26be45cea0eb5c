// One answer of an evil model may not become hundreds of messages, reads or effects; and what it says is short where people chat.
import { expect, test } from "vitest";
import { decideReply, type ReplyFacts } from "../../src/core/worker-reply.ts";
import { shareOf, spilledAnswer } from "../../src/core/worker-spill.ts";
import { newTask, type TaskState } from "../../src/core/worker-state.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { TaskStart } from "../../src/protocol/task.ts";

const start: TaskStart = {
  taskId: "tsk_a",
  decisionId: "dec_a",
  title: "t",
  goal: "g",
  quote: { triggerId: "trg_a-b", from: { role: "member", id: "m", name: "m" }, text: "x" },
  authority: "member",
  tainted: true,
  profile: "general",
  endpoint: null,
  threadId: "thr_a",
  source: "github",
  place: "acme/app",
  maxModelCalls: 15,
  atMs: 0,
};
const task = {
  ...newTask(start, [], 0),
  steps: 1,
  open: { kind: "calling" as const, step: 1, attempts: 1, retryAtMs: null },
  lease: { epoch: 1, untilMs: 0 },
};
const facts: ReplyFacts = {
  model: "m",
  ms: 1,
  nowMs: 1,
  estimatedTokens: 1,
  pending: [],
  backlog: [],
  profiles: [],
  open: [],
  commandOf: () => null,
  ownsArtifact: () => true,
  allCommands: () => [],
  itemOf: () => null,
  commandFor: () => ({ ok: false, reason: "" }),
};
const answer = (tool: string, input: (i: number) => unknown) =>
  decideReply(
    task,
    { text: "", calls: Array.from({ length: 600 }, (_, i) => ({ callId: `c${i}`, tool, input: input(i) })), usage: null, finish: "tools" },
    facts,
  );

test("[W13] a question waits for its answer: a second one in the same answer is refused", () => {
  expect(answer("report", (i) => ({ kind: "question", text: `spam ${i}` })).reports).toHaveLength(1);
});

test("[W13] the calls of one answer are bounded, and the model is told which were taken", () => {
  const change = answer("recall", (i) => ({ id: `art_a${i}` }));
  expect(change.effects.filter(({ effect }) => effect === "read")).toHaveLength(limits.maxCallsPerReply);
  expect(change.task.notices.join()).toContain(`first ${limits.maxCallsPerReply} calls`);
});

const long = Array.from({ length: 140 }, (_, i) => `word${i}`).join(" ");
const inChat: TaskState = { ...task, start: { ...start, source: "web", place: "widget" } };
const report = (from: TaskState, kind: string, text: string, step = from.steps) =>
  decideReply(
    { ...from, steps: step, open: { kind: "calling", step, attempts: 1, retryAtMs: null } },
    { text: "", calls: [{ callId: `r${step}`, tool: "report", input: { kind, text } }], usage: null, finish: "tools" },
    facts,
  );
const resultOf = (change: ReturnType<typeof report>): string =>
  change.messages.flatMap((each) => (each.role === "tool" ? [each.output] : []))[0] ?? "";

test("[W14] a report that is too long for chat comes back once, of every kind that people hear, and is then taken as it is", () => {
  for (const kind of ["done", "failed", "question", "blocked", "answer"]) {
    const first = report(inChat, kind, long);
    expect([kind, first.reports]).toEqual([kind, []]);
    expect(resultOf(first)).toContain("too long: 140 words, and people read at most 100 here");
    expect([first.task.mode.mode, first.task.again]).toEqual(["working", true]);
    const second = report(first.task, kind, long, 2);
    expect(second.reports.map(({ text }) => text)).toEqual([long]);
    // The one after it may come back again: it is another report.
    expect(second.task.shorter).toBeUndefined();
  }
  const rewritten = report(report(inChat, "question", long).task, "question", "Short?", 2);
  expect(rewritten.reports.map(({ text }) => text)).toEqual(["Short?"]);
  expect(report(rewritten.task, "done", long, 3).reports).toEqual([]);
});

test("[W14] nothing comes back on an issue, of a child, of progress, or when no call is left for another", () => {
  expect(report(task, "done", long).reports).toHaveLength(1);
  expect(report({ ...inChat, start: { ...inChat.start, parent: { taskId: "tsk_p", depth: 1 } } }, "done", long).reports).toHaveLength(1);
  expect(report(inChat, "progress", long).reports).toHaveLength(1);
  expect(report({ ...inChat, allowance: 1 }, "done", long).reports).toHaveLength(1);
});

test("[W17] a long answer is its head, its tail, its size and its id, never longer than its share, whatever is in it", () => {
  expect([1, 3, 4, 32].map(shareOf)).toEqual([8000, 8000, 6000, 750]);
  for (const piece of ["plain words ", '\n"quoted"\t', "日本語", "👩‍👩‍👧", "\u0000"])
    for (const chars of [8000, 750]) {
      const text = piece.repeat(6000);
      const answer = spilledAnswer(text, "art_a", chars);
      expect(answer.length).toBeLessThanOrEqual(chars);
      const read = JSON.parse(answer) as { chars: number; artifact: string; head: string; tail: string };
      expect([read.chars, read.artifact]).toEqual([text.length, "art_a"]);
      expect(read.head.length + read.tail.length).toBeGreaterThan(60);
      expect(read.head.isWellFormed() && read.tail.isWellFormed()).toBe(true);
    }
});
