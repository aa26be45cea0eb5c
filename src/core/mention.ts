// Whether a text speaks to somebody by name: `@login`, as a person's own words, not inside a quote, code, or a hidden comment.
import { markData } from "./context.ts";

/** No comment is longer; what is beyond is no mention, only work. */
const readChars = 100_000;

/** [G3] A mention counts outside quoted lines, fences, code spans and HTML comments. GitHub Apps are named without their `[bot]`. */
export function mentions(text: string, login: string): boolean {
  if (!text.includes("@")) return false;
  const name = login.replace(/\[bot\]$/i, "");
  if (!/^[a-z0-9][a-z0-9-]*$/i.test(name)) return false;
  const own = withoutCodeSpans(withoutComments(markData(text.slice(0, readChars)).text));
  return new RegExp(`(?<![\\w@/-])@${name}(?![\\w-]|/|\\.\\w)`, "i").test(own);
}

function withoutComments(text: string): string {
  let kept = "";
  let at = 0;
  for (;;) {
    const open = text.indexOf("<!--", at);
    if (open < 0) return kept + text.slice(at);
    kept += text.slice(at, open);
    const close = text.indexOf("-->", open + 4);
    if (close < 0) return kept;
    at = close + 3;
  }
}

/** A code span ends at a run of as many backticks as it began with, within its paragraph. */
const withoutCodeSpans = (text: string): string =>
  text
    .split(/\n[ \t]*\n/)
    .map(withoutSpans)
    .join("\n\n");

function withoutSpans(paragraph: string): string {
  const runs = [...paragraph.matchAll(/`+/g)].map((run) => ({ at: run.index, length: run[0].length }));
  let kept = "";
  let at = 0;
  for (let i = 0; i < runs.length; i++) {
    const open = runs[i];
    if (!open) break;
    let close = i + 1;
    while (close < runs.length && runs[close]?.length !== open.length) close++;
    const end = runs[close];
    if (!end) continue;
    kept += `${paragraph.slice(at, open.at)} `;
    at = end.at + end.length;
    i = close;
  }
  return kept + paragraph.slice(at);
}
