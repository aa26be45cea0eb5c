// The manner of a channel: instant messages are short, by code and not by asking a model to be brief.
import { limits } from "../protocol/limits.ts";

export type Manner = "instant" | "structured";

/** Sources where people talk. */
const conversations: readonly string[] = ["web", "chat"];

/** [O13] Chat is instant; everything else is read as a document. */
export const mannerOf = (source: string): Manner => (conversations.includes(source) ? "instant" : "structured");

/** Says that there is more; part of the word limit. A page shows the full text beside it, and a bridge is given it. */
export const moreNote = "(Shortened.)";

/** A hundred words are rarely longer; without it, one endless "word" would pass. Room for a few paths and links. */
const maxInstantChars = 2_000;

// Scripts without spaces between words: there a dictionary has to count.
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** A piece of text between white space, with where it ends. */
type Piece = { end: number; words: number };

function pieces(text: string): Piece[] {
  return Array.from(text.matchAll(/\S+/gu), (match): Piece[] => {
    if (!unspaced.test(match[0])) return [{ end: match.index + match[0].length, words: 1 }];
    const segments = Array.from(new Intl.Segmenter("und", { granularity: "word" }).segment(match[0]));
    return segments.map((segment) => ({
      end: match.index + segment.index + segment.segment.length,
      words: segment.isWordLike ? 1 : 0,
    }));
  }).flat();
}

/**
 * How many words a text has: pieces between white space (`src/core/thread.ts` is one, a lone dash too), and in scripts that
 * write no spaces the words that Unicode's segmentation finds.
 */
export const countWords = (text: string): number => pieces(text).reduce((sum, piece) => sum + piece.words, 0);

/**
 * The text as the channel may send it. `structured` is left whole. `instant` has at most `limits.maxInstantWords` words: cut
 * after a sentence or a line where one is near, never inside a character, with code fences closed, and with a note that
 * there is more. A text that fits is unchanged, so that fitting twice is fitting once.
 */
export function fitManner(text: string, manner: Manner): string {
  if (manner === "structured") return text;
  if (countWords(text) <= limits.maxInstantWords && text.length <= maxInstantChars) return text;
  // A word and a few characters are kept for a closing fence.
  const maxWords = limits.maxInstantWords - countWords(moreNote) - 1;
  const maxChars = maxInstantChars - moreNote.length - 20;
  const head = closeCode(cutAtSentence(longestHead(text, maxWords, maxChars)));
  return head === "" ? moreNote : `${head}\n\n${moreNote}`;
}

/** The text as the channel sends it, and the whole of it where something was cut. */
export function fitted(text: string, manner: Manner): { text: string; fullText?: string } {
  const fit = fitManner(text, manner);
  return fit === text ? { text } : { text: fit, fullText: text };
}

function longestHead(text: string, maxWords: number, maxChars: number): string {
  let words = 0;
  let end = 0;
  for (const piece of pieces(text)) {
    words += piece.words;
    if (words > maxWords) return text.slice(0, end);
    if (piece.end > maxChars) {
      // One piece of a thousand characters: better cut inside it than lose it, but between two characters as people see them.
      const room = piece.end - end > maxInstantChars / 2 ? maxChars - end : 0;
      return text.slice(0, end) + wholeGraphemes(text.slice(end, piece.end), room);
    }
    end = piece.end;
  }
  return text.slice(0, end);
}

function wholeGraphemes(text: string, maxChars: number): string {
  let end = 0;
  for (const { index, segment } of new Intl.Segmenter("und", { granularity: "grapheme" }).segment(text)) {
    if (index + segment.length > maxChars) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}

/** Back to the last end of a sentence or line, if that keeps at least half; else an ellipsis says that it breaks off. */
function cutAtSentence(head: string): string {
  const inFence = openFence(head) !== null;
  const ends = Array.from(head.matchAll(inFence ? /\n/g : /[.!?…]["'”’)\]*_]*(?=\s|$)|[。！？]["'”’」』）]*|\n/gu), (match) =>
    match[0] === "\n" ? match.index : match.index + match[0].length,
  );
  const last = ends.filter((end) => end >= head.length / 2).at(-1);
  if (last !== undefined) return head.slice(0, last).trimEnd();
  return inFence ? head.trimEnd() : `${head.trimEnd()}…`;
}

/** The fence that is open at the end of a text, as its closing line; null outside of code. */
export function openFence(text: string): string | null {
  let open: string | null = null;
  for (const line of text.split("\n")) {
    const fence = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    const marks = fence?.[1];
    if (!marks) continue;
    if (open === null) open = marks;
    else if (marks[0] === open[0] && marks.length >= open.length && fence[2]?.trim() === "") open = null;
  }
  return open;
}

function closeCode(text: string): string {
  const fence = openFence(text);
  if (fence !== null) {
    const start = text.lastIndexOf(fence);
    const hasContent = text.slice(start).includes("\n");
    return hasContent ? `${text}\n${fence.slice(0, 12)}` : text.slice(0, start).trimEnd();
  }
  const lastLine = text.slice(text.lastIndexOf("\n") + 1);
  return (lastLine.match(/`/g)?.length ?? 0) % 2 === 1 ? `${text.replace(/…$/, "")}\`…` : text;
}
