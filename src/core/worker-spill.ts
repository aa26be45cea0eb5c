// A read whose answer is too long for a step: its head, its tail, its size and the id under which all of it stays.
import { limits } from "../protocol/limits.ts";

/** [W17] Characters that one answer may have in a step of so many calls: within the cap of one result, and together within that of the step. */
export const shareOf = (calls: number): number =>
  Math.min(limits.inlineResultChars, Math.floor(limits.inlineStepChars / Math.max(1, calls)));

/** What the model gets in place of a text that was put into an artifact: at most `chars` as JSON, whatever is in it. */
export function spilledAnswer(text: string, artifact: string, chars: number): string {
  const answer = (head: number, tail: number): string =>
    JSON.stringify({
      spilled: true,
      chars: text.length,
      artifact,
      head: text.slice(0, head).toWellFormed(),
      tail: tail === 0 ? "" : text.slice(-tail).toWellFormed(),
      rest: `recall ${artifact} reads all of it, a page at a time`,
    });
  // Escapes make JSON longer than its text: the room is halved until it fits.
  for (let room = Math.min(chars, text.length); room > 0; room = Math.floor(room / 2)) {
    const cut = answer(Math.ceil(room * 0.6), Math.floor(room * 0.4));
    if (cut.length <= chars) return cut;
  }
  return answer(0, 0);
}
