// [L2] What a mind saw at a step, from the rows that it keeps: nothing is recorded twice for it.
import type { ModelMessage } from "../protocol/model.ts";
import { parseMessage } from "./context.ts";

/** A worker's messages at step `step`: all up to the one that began it. Null when there was no such step. */
export function workerMessagesAt(transcript: readonly ModelMessage[], step: number): ModelMessage[] | null {
  const began = transcript.findIndex((message) => {
    const head = message.role === "user" ? parseMessage(message.text)?.head : null;
    return head !== null && head !== undefined && "step" in head && head.step === step;
  });
  return began < 0 ? null : transcript.slice(0, began + 1);
}

export type TurnRow = { turn: number; message: ModelMessage };

/** The router's messages at a step of a turn, from the rows of its lane and segment: what came before its own answer to it. */
export function routerMessagesAt(rows: readonly TurnRow[], turn: number, step: number): ModelMessage[] | null {
  let answers = 0;
  const seen: ModelMessage[] = [];
  for (const row of rows) {
    if (row.turn > turn) break;
    if (row.turn === turn && row.message.role === "assistant" && ++answers === step) return seen;
    seen.push(row.message);
  }
  return null;
}

/** Whether these messages are all that was sent: of public text that the team's lane read, only that it was read is kept. */
export const isComplete = (rows: readonly ModelMessage[]): boolean =>
  !rows.some(
    (message) => message.role === "tool" && (message.callId.startsWith("kept_") || message.output.startsWith("(public text, read as ")),
  );
