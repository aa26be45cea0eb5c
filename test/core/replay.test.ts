import { expect, test } from "vitest";
import { renderMessage } from "../../src/core/context.ts";
import { isComplete, routerMessagesAt, type TurnRow, workerMessagesAt } from "../../src/core/replay.ts";
import type { ModelMessage } from "../../src/protocol/model.ts";

const user = (text: string): ModelMessage => ({ role: "user", text });
const answer = (text: string): ModelMessage => ({ role: "assistant", text, calls: [] });
const read = (callId: string, output: string): ModelMessage => ({ role: "tool", callId, tool: "recall", output });

const begin = (step: number) => user(renderMessage({ step, of: 15 }, []));
const rowsOf = (messages: ModelMessage[]) => messages.map((message, i) => ({ row: i + 1, message }));

test("[L2] a worker's step saw everything up to the message that began it, and a step that was not taken saw nothing", () => {
  const transcript = [begin(1), answer("a"), begin(2), answer("b"), user("not a head"), begin(3)];
  const at = (step: number) => workerMessagesAt(rowsOf(transcript), [], step);
  expect(at(2)).toEqual({ messages: transcript.slice(0, 3), complete: true });
  expect(at(3)).toEqual({ messages: transcript, complete: true });
  expect(at(4)).toBeNull();
});

test("[L2] a step after a compaction saw what stands for the older part, a step before it saw the older part itself", () => {
  const transcript = [begin(1), answer("a"), begin(2), answer("b"), begin(3)];
  const head = renderMessage({ step: 2, of: 15 }, []);
  const at = (step: number, compactions: { toRow: number; head?: string }[] = [{ toRow: 2, head }]) =>
    workerMessagesAt(rowsOf(transcript), compactions, step);
  expect(at(3)).toEqual({ messages: [user(head), ...transcript.slice(2)], complete: true });
  expect(at(2)).toEqual({ messages: transcript.slice(0, 3), complete: true });
  const first = renderMessage({ step: 1, of: 15 }, []);
  const twice = [
    { toRow: 2, head: first },
    { toRow: 4, head },
  ];
  expect(at(2, twice)).toEqual({ messages: [user(first), ...transcript.slice(2, 3)], complete: true });
  expect(at(3, twice)).toEqual({ messages: [user(head), ...transcript.slice(4)], complete: true });
  // An older version did not keep what stood for the rows.
  expect(at(3, [{ toRow: 2 }])).toMatchObject({ complete: false });
});

test("[L2] a router's step saw the turns before and what this turn had said until then", () => {
  const rows: TurnRow[] = [
    { turn: 1, message: user("one") },
    { turn: 1, message: answer("x") },
    { turn: 3, message: user("three") },
    { turn: 3, message: answer("y") },
    { turn: 3, message: read("c", "text") },
    { turn: 3, message: answer("z") },
    { turn: 4, message: user("four") },
  ];
  const messages = rows.map(({ message }) => message);
  expect(routerMessagesAt(rows, 1, 1)).toEqual(messages.slice(0, 1));
  expect(routerMessagesAt(rows, 3, 1)).toEqual(messages.slice(0, 3));
  expect(routerMessagesAt(rows, 3, 2)).toEqual(messages.slice(0, 5));
  expect(routerMessagesAt(rows, 3, 3)).toBeNull();
  expect(routerMessagesAt(rows, 2, 1)).toBeNull();
});

test("[L2] a step that read public text in the team's lane is not complete", () => {
  expect(isComplete([user("a"), read("call_1_0", "text")])).toBe(true);
  expect(isComplete([read("call_1_0", "(public text, read as trg_a-b; not kept)")])).toBe(false);
  expect(isComplete([read("kept_3_1_0", '{"done":"record"}')])).toBe(false);
});
