// What a reader of test output finds, and what all readers share.

export type Failure = { name: string; detail?: string };
export type Reading = { runner: string; failed: Failure[]; failedCount: number; passed?: number; skipped?: number };

export type Reader = { runner: string; read(lines: readonly string[]): Omit<Reading, "runner"> | null };

export const number = (text: string | undefined): number => Number(text ?? 0);

/** The count before or after a word in a summary: `3 failed`, `Failures: 3`. */
export const countOf = (line: string, word: RegExp): number => {
  const match = new RegExp(`(\\d+) (?:${word.source})|(?:${word.source}):? (\\d+)`, "i").exec(line);
  return number(match?.[1] ?? match?.[2]);
};

export const failure = (name: string, detail: string | undefined): Failure => {
  const text = detail?.trim();
  return text ? { name: name.trim(), detail: text } : { name: name.trim() };
};

/** The first line after `from` that says something, before `until` ends the block. */
export function firstLine(lines: readonly string[], from: number, until: RegExp, skip: RegExp = /^\s*$/): string | undefined {
  for (let i = from; i < Math.min(lines.length, from + 40); i++) {
    const line = lines[i] ?? "";
    if (until.test(line)) return undefined;
    if (!skip.test(line)) return line.trim();
  }
  return undefined;
}

/** What was said about a failure; a line that ends in a colon says it in the next one. */
export function saidLine(lines: readonly string[], from: number, until: RegExp): string | undefined {
  const head = firstLine(lines, from, until);
  if (head === undefined || !head.endsWith(":")) return head;
  const at = lines.findIndex((line, i) => i >= from && line.trim() === head);
  const next = firstLine(lines, at + 1, until);
  return next === undefined || !/\w/.test(next) || next.startsWith("at ") ? head.slice(0, -1) : `${head} ${next}`;
}

export function unique(failures: readonly Failure[]): Failure[] {
  const seen = new Map<string, Failure>();
  for (const each of failures) if (!seen.get(each.name)?.detail) seen.set(each.name, each);
  return [...seen.values()];
}

export const last = (lines: readonly string[], pattern: RegExp): string | undefined => lines.findLast((line) => pattern.test(line));
export const indentOf = (line: string): number => line.length - line.trimStart().length;
