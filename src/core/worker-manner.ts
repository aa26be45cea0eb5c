// What a worker says in a chat is short: a report that is too long comes back once, to be said again by the same model.
import { limits } from "../protocol/limits.ts";
import { countWords, fitManner, mannerOf } from "./manners.ts";
import type { TaskState } from "./worker-state.ts";

/**
 * [W14] Why a report is not sent yet; null when it is: it fits, it was asked for once already, or no call is left for another.
 * Changes the task: what is asked for once is not asked for again, whatever happens between.
 */
export function tooLongToSay(task: TaskState, text: string, step: number): string | null {
  // A child's words are read by its parent.
  const fits = task.start.parent !== undefined || fitManner(text, mannerOf(task.start.source)) === text;
  const askedBefore = task.shorter !== undefined && task.shorter !== step;
  if (fits || askedBefore || task.steps >= task.allowance) {
    task.shorter = undefined;
    return null;
  }
  task.shorter = step;
  return `too long: ${countWords(text)} words, and people read at most ${limits.maxInstantWords} here. Report it again, the most important first. What is still too long is cut, with the full text one click away.`;
}
