// Who may hear what a turn decides: one decision is of one audience, and what was read for one conversation is not said in another.
import type { RouterTool } from "../protocol/router-tools.ts";
import { overheardBy } from "./audience.ts";
import { audienceOfItem, type InboxItem, type KnownTask } from "./router.ts";

type View = {
  tasks: ReadonlyMap<string, KnownTask>;
  /** Audiences of what earlier steps of this turn read. */
  heard?: readonly string[];
};

export const readerOf = (view: View, item: InboxItem): string => audienceOfItem(item, (taskId) => view.tasks.get(taskId)?.audience);

export const isOverheard = (view: View, items: readonly InboxItem[]): boolean =>
  items.some((item) => overheardBy(view.heard ?? [], readerOf(view, item)));

/** What says no words of the model's to people: a report's own text, or a reason that is not kept then. */
const wordless: readonly RouterTool[] = ["record", "ignore", "relay"];

/** [A9] A turn that read what belongs to one conversation says nothing more in another that may not hear it: the next turn does. */
export function refuseOverheard(view: View, tool: RouterTool, settled: readonly InboxItem[]): { refused: string } | null {
  if (wordless.includes(tool) || !isOverheard(view, settled)) return null;
  return {
    refused:
      "This turn read what belongs to another conversation, and these words could repeat it. Leave it to the next turn, or record it.",
  };
}

/** [A8] One task, or one question, is of one audience: what it is told would reach the others. */
export function refuseMixed(view: View, settled: readonly InboxItem[]): { refused: string } | null {
  const audiences = new Set(settled.map((item) => readerOf(view, item)));
  return audiences.size <= 1 ? null : { refused: "These are of different conversations: each needs a call of its own." };
}
