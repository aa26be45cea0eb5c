// What a worker notes: kept for itself, and readable for the other workers of its thread. Only added, never changed, each in its own name.
import { limits } from "../protocol/limits.ts";
import type { ThreadNote } from "../protocol/task.ts";
import type { WorkerCall } from "../protocol/worker-tools.ts";
import { mayFlow, taskAudience } from "./audience.ts";
import type { Spoken } from "./worker-family.ts";
import type { Change } from "./worker-state.ts";

type NoteInput = Extract<WorkerCall, { tool: "note" }>["input"];

/** [W15] Adds a note: a row of the task, and of one thread that it follows. */
export function takeNote(change: Change, input: NoteInput, step: number): Spoken {
  const { task } = change;
  const { start } = task;
  if (task.notes >= limits.maxNotes) return { refused: `${limits.maxNotes} notes are all that a task may keep.` };
  const threadId = input.thread ?? start.threadId;
  if (threadId !== start.threadId && !task.threads.includes(threadId))
    return { refused: "This task does not follow that thread. Notes go to a thread that it follows; without `thread`, to its own." };
  task.notes += 1;
  const { kind, text, outcome } = input;
  const note = { step, kind, text, ...(outcome === undefined ? {} : { outcome }) };
  change.notes.push(note);
  const by = { taskId: start.taskId, n: task.notes, audience: taskAudience(start), tainted: task.tainted };
  change.effects.push({ effect: "note", threadId, note: { ...by, ...note } });
  return { output: { noted: task.notes, thread: threadId, read: notesIdOf(threadId) } };
}

/** The id under which all notes of a thread are read. */
export const notesIdOf = (threadId: string): string => `nts_${threadId.slice("thr_".length)}`;
export const threadOfNotes = (id: string): string => `thr_${id.slice("nts_".length)}`;

/** [W16] The notes that may be said to every one of these readers: a list has one audience, and words of no other in it. */
export const readableNotes = (notes: readonly ThreadNote[], readers: readonly string[] | undefined): ThreadNote[] =>
  notes.filter((note) => readers?.every((reader) => mayFlow(note.audience, reader)) !== false);
