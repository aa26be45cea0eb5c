// How both minds get their context: one JSON object a line, and quoted text set apart as data.
import type { ContextItem, MarkedText, RouterHead, WorkerHead } from "../protocol/context-items.ts";
import { isRecord } from "./json.ts";

export type MessageHead = RouterHead | WorkerHead;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** The first `chars` UTF-16 units of a text at most, cut between graphemes and marked with `…`; the mark counts. */
export function excerpt(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const room = Math.max(0, chars - 1);
  // A grapheme has no upper length: the segmenter sees a little more than the cut, never the whole text.
  const window = text.slice(0, room + 64);
  let end = 0;
  for (const { segment } of graphemes.segment(window)) {
    if (end + segment.length > room) break;
    end += segment.length;
  }
  // One grapheme alone is longer than the room: cut it at a code point rather than say nothing.
  if (end === 0) end = room > 0 && isHighSurrogate(text, room - 1) ? room - 1 : room;
  return `${text.slice(0, end)}…`;
}

/** Tokens of a text, about: four letters of an alphabet are one, signs of other scripts one each. Too many is the safe side. */
export function estimateTokens(text: string): number {
  let ascii = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 128) ascii++;
  return Math.ceil(ascii / 4) + (text.length - ascii);
}

const isHighSurrogate = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at);
  return unit >= 0xd800 && unit <= 0xdbff;
};

type DataBlock = NonNullable<MarkedText["data"]>[number];

const quoteLine = /^ {0,3}> ?/;
const fenceLine = /^[ \t]*(`{3,}|~{3,})([^\n]*)$/;

/**
 * Lifts quoted (`> `) and fenced blocks out of a text: they are data, not words of the speaker.
 * Where they stood is `[data 1]`; a speaker who types such a placeholder gets round brackets, so that it points at nothing.
 */
export function markData(text: string): MarkedText {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const kept: string[] = [];
  const data: DataBlock[] = [];
  const lift = (block: DataBlock): void => {
    data.push(block);
    kept.push(`[data ${data.length}]`);
  };
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (quoteLine.test(line)) {
      const from = at;
      while (at < lines.length && quoteLine.test(lines[at] ?? "")) at++;
      lift({
        kind: "quote",
        text: lines
          .slice(from, at)
          .map((quoted) => quoted.replace(quoteLine, ""))
          .join("\n"),
      });
      continue;
    }
    const fence = openingFence(line);
    if (fence) {
      const from = ++at;
      while (at < lines.length && !closesFence(lines[at] ?? "", fence.mark)) at++;
      lift({ kind: "fence", ...(fence.info ? { info: fence.info } : {}), text: lines.slice(from, at).join("\n") });
      at++;
      continue;
    }
    kept.push(line.replace(/\[(data \d+)\]/gi, "($1)"));
    at++;
  }
  const marked = kept.join("\n").trim();
  return data.length === 0 ? { text: marked } : { text: marked, data };
}

function openingFence(line: string): { mark: string; info: string } | null {
  const match = fenceLine.exec(line);
  const mark = match?.[1];
  const info = match?.[2]?.trim() ?? "";
  // "```ls``` works" is inline code.
  return mark === undefined || (mark.startsWith("`") && info.includes("`")) ? null : { mark, info };
}

function closesFence(line: string, mark: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= mark.length && trimmed === mark.charAt(0).repeat(trimmed.length);
}

/** What an item is comes first, its words last; everything between is sorted, so that the same item is always the same bytes. */
const firstKeys: readonly string[] = ["item", "name", "id", "turn", "step"];
const lastKeys: readonly string[] = ["text", "data"];

const keyRank = (key: string): number => {
  const first = firstKeys.indexOf(key);
  if (first >= 0) return first;
  const last = lastKeys.indexOf(key);
  return firstKeys.length + 1 + (last >= 0 ? last : -1);
};

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => keyRank(a) - keyRank(b) || (a < b ? -1 : 1))
      .map(([key, inner]) => [key, ordered(inner)]),
  );
}

/** One value as one line: JSON leaves the line separators of Unicode raw, we do not. */
const toLine = (value: unknown): string =>
  JSON.stringify(ordered(value)).replace(
    /[\u0085\u2028\u2029]/g,
    (separator) => `\\u${separator.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** A user message: a head line and one JSON line per item. The same input is always the same bytes. */
export const renderMessage = (head: MessageHead, items: readonly ContextItem[]): string => [head, ...items].map(toLine).join("\n");

/** The inverse of `renderMessage`; null for a text that is none of ours. */
export function parseMessage(text: string): { head: MessageHead; items: ContextItem[] } | null {
  const parsed: unknown[] = [];
  for (const line of text.split("\n")) {
    try {
      parsed.push(JSON.parse(line));
    } catch {
      return null;
    }
  }
  const [head, ...items] = parsed;
  if (!isRecord(head) || !("turn" in head || "step" in head)) return null;
  if (!items.every((item) => isRecord(item) && typeof item.item === "string")) return null;
  return { head: head as MessageHead, items: items as ContextItem[] };
}
