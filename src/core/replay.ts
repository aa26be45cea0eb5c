// [L2] What a mind saw at a step, from the rows that it keeps: nothing is recorded twice for it.
import type { ModelMessage } from "../protocol/model.ts";
import type { Profile } from "../protocol/profile.ts";
import { parseMessage } from "./context.ts";
import type { TaskState } from "./worker-state.ts";

type NumberedMessage = { row: number; message: ModelMessage };

const stepOf = (message: ModelMessage): number | null => {
  const head = message.role === "user" ? parseMessage(message.text)?.head : null;
  return head !== null && head !== undefined && "step" in head ? head.step : null;
};

/** What stood for all rows up to `toRow` in the requests after it. Without `head` it was made by a version that did not keep it. */
export type Compaction = { toRow: number; head?: string | undefined };

/**
 * A worker's messages at step `step`: all up to the one that began it, with the part put aside that was by then. Null when there was
 * no such step.
 */
export function workerMessagesAt(
  rows: readonly NumberedMessage[],
  compactions: readonly Compaction[],
  step: number,
): { messages: ModelMessage[]; complete: boolean } | null {
  const began = rows.findIndex(({ message }) => stepOf(message) === step);
  const row = rows[began]?.row;
  if (row === undefined) return null;
  const upTo = rows.slice(0, began + 1);
  // Put aside before the step began: what is older than its own message, and was then.
  const aside = compactions.findLast(({ toRow, head }) => toRow < row && (head === undefined || step > headStep(head)));
  if (aside === undefined) return { messages: upTo.map(({ message }) => message), complete: true };
  const { toRow, head } = aside;
  const kept = upTo.filter((each) => each.row > toRow).map(({ message }) => message);
  return head === undefined ? { messages: kept, complete: false } : { messages: [{ role: "user", text: head }, ...kept], complete: true };
}

const headStep = (head: string): number => stepOf({ role: "user", text: head }) ?? 0;

/** The profile under which a step was made: a hand-off changes it for those that follow. */
export const profileAt = (task: Pick<TaskState, "profile" | "before">, step: number): Profile =>
  task.before?.find(({ throughStep }) => step <= throughStep)?.profile ?? task.profile;

/** [A9] A message as later turns have it: what was read for one conversation stays in the turn that read it. */
export const asLater = (message: ModelMessage): ModelMessage => {
  if (message.later === undefined) return message;
  const { later, ...said } = message;
  return said.role === "tool" ? { ...said, output: later } : { ...said, text: later };
};

export type TurnRow = { turn: number; message: ModelMessage };

/** The router's messages at a step of a turn, from the rows of its lane and segment: what came before its own answer to it. */
export function routerMessagesAt(rows: readonly TurnRow[], turn: number, step: number): ModelMessage[] | null {
  let answers = 0;
  const seen: ModelMessage[] = [];
  for (const row of rows) {
    if (row.turn > turn) break;
    if (row.turn === turn && row.message.role === "assistant" && ++answers === step) return seen;
    seen.push(row.turn < turn ? asLater(row.message) : row.message);
  }
  return null;
}

/** Whether these messages are all that was sent: of public text that the team's lane read, only that it was read is kept. */
export const isComplete = (rows: readonly ModelMessage[]): boolean =>
  !rows.some(
    (message) => message.role === "tool" && (message.callId.startsWith("kept_") || message.output.startsWith("(public text, read as ")),
  );
