// One answer of an evil model may not become hundreds of messages, reads or effects.
import { expect, test } from "vitest";
import { decideReply, type ReplyFacts } from "../../src/core/worker-reply.ts";
import { newTask } from "../../src/core/worker-state.ts";
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
