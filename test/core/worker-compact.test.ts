import { expect, test } from "vitest";
import { estimateTokens, parseMessage, renderMessage } from "../../src/core/context.ts";
import { compact } from "../../src/core/worker-compact.ts";
import type { Change, TaskState } from "../../src/core/worker-state.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { ModelMessage } from "../../src/protocol/model.ts";
import { between, calling, command, threadId } from "../support/worker-fixtures.ts";

/** A transcript of this many steps, each about `chars` long: a message, a reply with two calls, their results. */
function transcript(steps: number, chars: number): { row: number; message: ModelMessage }[] {
  const messages = Array.from({ length: steps }, (_, i): ModelMessage[] => [
    {
      role: "user",
      text: renderMessage({ step: i + 1, of: 60 }, [
        {
          item: "row",
          thread: threadId,
          seq: i + 1,
          kind: "message",
          from: { role: "member", name: "member" },
          text: `word ${i + 1} ${"x".repeat(chars)}`,
        },
      ]),
    },
    { role: "assistant", text: "", calls: [0, 1].map((n) => ({ callId: `c${i}-${n}`, tool: "recall", input: {} })) },
    { role: "tool", callId: `c${i}-0`, tool: "recall", output: "a" },
    { role: "tool", callId: `c${i}-1`, tool: "recall", output: "b" },
  ]).flat();
  return messages.map((message, i) => ({ row: i + 1, message }));
}

const headIn = (change: Change | null): string => {
  const event = change?.events.findLast(({ kind }) => kind === "task.compacted");
  return (event?.kind === "task.compacted" ? event.head : undefined) ?? "";
};
const keptIn = (change: Change | null) => {
  const item = parseMessage(headIn(change))?.items.find((each) => each.item === "kept");
  if (item?.item !== "kept") throw new Error("nothing was kept");
  return item;
};
const rest = (task: TaskState, rows: { row: number; message: ModelMessage }[]) =>
  rows.filter(({ row }) => row > (task.aside?.segments.at(-1)?.toRow ?? 0));

const commands = Array.from({ length: 40 }, (_, i) =>
  command(i + 1, "run_command", { step: i + 1, what: `try way ${i + 1}`, open: false, ended: `try way ${i + 1} · exit ${i % 3}` }),
);
const notes = [
  { step: 3, kind: "fact" as const, text: "The build needs the old compiler." },
  { step: 4, kind: "question" as const, text: "Which branch is released?" },
  { step: 5, kind: "approach" as const, text: "Patching the parser", outcome: "breaks the printer" },
];

test("[WX1] [WX2] goal, facts, questions, people's words and every approach with its outcome stand for the part that is put aside", () => {
  const rows = transcript(40, 10_000);
  const change = compact(between({ steps: 40 }), { rows, commands, notes, head: null });
  if (!change) throw new Error("a compaction");
  const kept = keptIn(change);
  expect(parseMessage(headIn(change))?.items[0]).toMatchObject({ item: "goal", goal: "Fix it." });
  expect(kept.facts).toEqual(["The build needs the old compiler."]);
  expect(kept.questions).toEqual(["Which branch is released?"]);
  expect(kept.approaches).toHaveLength(41);
  expect(kept.approaches).toContainEqual({ step: 5, what: "Patching the parser", outcome: "breaks the printer" });
  expect(kept.approaches).toContainEqual({ step: 7, what: "try way 7", outcome: "try way 7 · exit 0" });
  expect(kept.said[0]?.text).toContain("word 1 ");
  const texts = [headIn(change), ...rest(change.task, rows).map(({ message }) => JSON.stringify(message))];
  expect(texts.reduce((sum, text) => sum + estimateTokens(text), 0)).toBeLessThan(limits.compactWorkerTokens / 2);
});

test("[R19] [WX1] what stays begins with a message, so that every call is with its results", () => {
  const rows = transcript(40, 10_000);
  const change = compact(between(), { rows, commands, notes, head: null });
  const stays = change ? rest(change.task, rows).map(({ message }) => message) : [];
  expect(stays[0]?.role).toBe("user");
  const calls = stays.flatMap((message) => (message.role === "assistant" ? message.calls.map(({ callId }) => callId) : []));
  expect(stays.flatMap((message) => (message.role === "tool" ? [message.callId] : []))).toEqual(calls);
});

test("[WX1] a second compaction puts aside what came since, keeps what the first one kept, and both parts can be named", () => {
  const rows = transcript(80, 10_000);
  const first = compact(between(), { rows: rows.slice(0, 160), commands, notes, head: null });
  const second = first && compact(first.task, { rows, commands, notes, head: headIn(first) });
  if (!first || !second) throw new Error("two compactions");
  const [a, b] = second.task.aside?.segments ?? [];
  expect(b?.fromRow).toBe((a?.toRow ?? 0) + 1);
  expect(a?.id).not.toBe(b?.id);
  expect(keptIn(second).approaches).toEqual(keptIn(first).approaches);
  expect(keptIn(second).said.length).toBeGreaterThan(keptIn(first).said.length);
});

test("[WX1] nothing is put aside while a step is open, or where one message is all there is", () => {
  expect(compact(calling(), { rows: transcript(40, 10_000), commands, notes, head: null })).toBeNull();
  expect(compact(between(), { rows: transcript(1, 100), commands, notes, head: null })).toBeNull();
});

test("[W28] what people left out is put aside with all that came, and no compaction brings its words back", () => {
  const rows = transcript(6, 100).slice(0, 21);
  const task = between({ steps: 6, refused: { step: 6, leaveOut: "all", left: [6] } });
  const change = compact(task, { rows, commands: [], notes: [], head: null });
  if (!change) throw new Error("a compaction");
  expect(rest(change.task, rows)).toEqual([]);
  expect(change.task.refused).toEqual({ step: 6, leaveOut: null, left: [6] });
  expect(change.task.notices.at(-1)).toContain(`row 6 of ${threadId}`);
  expect(JSON.stringify([headIn(change), change.task.notices])).toContain("word 5");
  expect(JSON.stringify([headIn(change), change.task.notices])).not.toContain("word 6");
  const later = transcript(40, 10_000);
  const second = compact({ ...change.task, steps: 40 }, { rows: later, commands: [], notes: [], head: null });
  expect(keptIn(second).said.map(({ seq }) => seq)).not.toContain(6);
});

test("[WX1] what the task was told stays: facts from the router, what was known at a hand-off, what a child found", () => {
  const rows = transcript(40, 10_000);
  const [first] = rows;
  if (first?.message.role !== "user") throw new Error("a message");
  const known = parseMessage(first.message.text);
  first.message.text = renderMessage(known?.head ?? { step: 1, of: 60 }, [
    ...(known?.items ?? []),
    { item: "notice", text: "From the router: the release is on Friday." },
    { item: "notice", text: `You are coder from here on. What is known: ${"the parser is slow ".repeat(2_000)}` },
    { item: "child", task: "tsk_b", title: "Read the docs", kind: "done", text: "They say nothing of it." },
  ]);
  const change = compact(between({ steps: 40 }), { rows, commands, notes, head: null });
  if (!change) throw new Error("a compaction");
  const { told, segment } = keptIn(change);
  expect(told).toEqual([
    "From the router: the release is on Friday.",
    expect.stringContaining("the parser is slow"),
    "tsk_b (Read the docs), done: They say nothing of it.",
  ]);
  expect(told[1]).toContain(`recall ${segment} has all of it`);
  // A second one tells the same.
  const second = compact(change.task, { rows: [...rows, ...transcript(80, 10_000).slice(160)], commands, notes, head: headIn(change) });
  expect(keptIn(second).told.slice(0, 1)).toEqual(told.slice(0, 1));
});
