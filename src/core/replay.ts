// [L2] What a mind saw at a step, from the rows that it keeps: nothing is recorded twice for it.
import type { ModelMessage } from "../protocol/model.ts";
import { parseMessage } from "./context.ts";
import type { TaskState } from "./worker-state.ts";

type NumberedMessage = { row: number; message: ModelMessage };

const stepOf = (message: ModelMessage): number | null => {
  const head = message.role === "user" ? parseMessage(message.text)?.head : null;
  return head !== null && head !== undefined && "step" in head ? head.step : null;
};

/**
 * A worker's messages at step `step`: all up to the one that began it, with the older part put aside when it was by then. Null when
 * there was no such step. Of several compactions only the last head is kept: a step from before it is not complete.
 */
export function workerMessagesAt(
  rows: readonly NumberedMessage[],
  aside: TaskState["aside"],
  step: number,
): { messages: ModelMessage[]; complete: boolean } | null {
  const began = rows.findIndex(({ message }) => stepOf(message) === step);
  if (began < 0) return null;
  const upTo = rows.slice(0, began + 1);
  const head: ModelMessage | null = aside ? { role: "user", text: aside.head } : null;
  if (aside && head && step > (stepOf(head) ?? 0)) {
    const lastAside = aside.segments.at(-1)?.toRow ?? 0;
    return { messages: [head, ...upTo.filter(({ row }) => row > lastAside).map(({ message }) => message)], complete: true };
  }
  return { messages: upTo.map(({ message }) => message), complete: (aside?.segments.length ?? 0) < 2 };
}

/** [A9] A message as later turns have it: what was read for one conversation stays in the turn that read it. */
export const asLater = (message: ModelMessage): ModelMessage => {
  if (message.role !== "tool" || message.later === undefined) return message;
  const { later, ...read } = message;
  return { ...read, output: later };
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
