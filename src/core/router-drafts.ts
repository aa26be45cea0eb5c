// [D1] A reply as it is while the model writes it: where it would be said and under which id, by the rules of the decision itself.
import type { DraftFrame } from "../protocol/widget-frames.ts";
import { readPartialObject } from "./partial-json.ts";
import type { InboxItem } from "./router.ts";
import { decisionIdOf, type ItemProgress } from "./router-decide.ts";
import { expandIds, type ItemNames } from "./router-names.ts";
import { outboundIdOf, stripMarkers } from "./router-plan.ts";
import { tellNothing } from "./router-words.ts";

/** A call that is being written. */
export type WrittenCall = { tool: string; json: string };

export type DraftView = {
  turn: number;
  step: number;
  names: ItemNames;
  items: ReadonlyMap<string, InboxItem>;
  progress: ReadonlyMap<string, ItemProgress>;
};

/**
 * Beside these a reply is sure to be said where it was asked. Beside a dispatch it may go to the task's topic; beside whatever else does
 * something code may speak instead, and where that was refused the reply is not said.
 */
const harmless: readonly string[] = [...tellNothing, "recall", "find"];

/** Whether a reply that is written in the same answer is not certain to be said in its own thread. */
export const mayMove = (tool: string): boolean => !harmless.includes(tool);

/**
 * The reply of the last call, or null: not a reply, not known yet whom it answers, or its place is not certain. Only the settled
 * items' own thread ever gets it, as with the reply itself.
 */
export function draftOf(view: DraftView, calls: readonly WrittenCall[]): Pick<DraftFrame, "threadId" | "draftId" | "text"> | null {
  const index = calls.length - 1;
  const call = calls[index];
  if (call?.tool !== "reply") return null;
  const fields = readPartialObject(call.json);
  const settles = fields.get("settles");
  const words = fields.get("text")?.value;
  if (settles?.whole !== true || !Array.isArray(settles.value) || typeof words !== "string") return null;
  const named = settles.value.map((each) => expandIds(each, view.names));
  const asked = [...new Set(named.filter((id) => typeof id === "string"))];
  const free = asked.filter((id) => view.items.has(id) && view.progress.get(id)?.spoken !== true);
  const items = free.flatMap((id) => view.items.get(id) ?? []);
  const threads = new Set(items.map((item) => item.threadId));
  const [threadId] = threads;
  if (threadId === undefined || threads.size > 1) return null;
  if (calls.some(({ tool }) => mayMove(tool))) return null;
  if (free.some((id) => view.progress.get(id)?.target)) return null;
  // A report's thread is shown by what is relayed from it; only an answer to somebody is seen while it is written, and only on a page.
  if (!items.every((item) => item.kind === "trigger" && item.trigger.source === "web")) return null;
  const text = stripMarkers(words);
  if (text === "") return null;
  return { threadId, draftId: outboundIdOf(threadId, decisionIdOf(view, index, free)), text };
}
