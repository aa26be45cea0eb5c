// What people read on a platform of documents is structured by code, whatever a model wrote: a headline, what was done, what was
// checked, links. Checks are what really ran, as the ledger has it.
import type { PullDraft } from "../protocol/offer.ts";
import type { Trigger } from "../protocol/trigger.ts";
import { excerpt } from "./context.ts";
import { openFence } from "./manners.ts";

export type PullText = {
  summary: string;
  changes: readonly string[];
  /** What ran, with how it ended. */
  checks: readonly string[];
  links: readonly string[];
};

const maxLineChars = 600;
/** Signs that turn a line around or hide in it: what is shown must be what is read. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

const unseenSigns = /[^\P{Cc}\n\t]|[\u00ad\u061c\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
/** Variants, joiners and marks of direction are part of words and pictures: one of each, and no hidden text in a row of them. */
const rowOfMarks = /(\p{VS}?[\u200c-\u200f]?)(?:\p{VS}|[\u200c-\u200f])*/gu;

/** [O12] Lines without what cannot be seen: whoever reads them reads all that they say. */
export const visible = (text: string): string => text.replace(unseenSigns, "").replace(rowOfMarks, "$1");

/** [O12] A text that is only shown, with what cannot be seen in it named where it stands. */
export const revealed = (text: string): string =>
  text.replace(unseenSigns, named).replace(rowOfMarks, (marks, kept: string) => kept + marks.slice(kept.length).replace(/./gu, named));
const named = (sign: string): string => `‹U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`;

/** One line without what cannot be seen. */
export const plainLine = (text: string, maxChars: number): string =>
  excerpt(text.replace(unseen, " ").replace(/\s+/g, " ").trim(), maxChars);

const list = (lines: readonly string[]): string =>
  lines.map((line) => `- ${plainLine(line.replace(/^\s*[-*•]\s+/, ""), maxLineChars)}`).join("\n");

const section = (title: string, body: string): string[] => (body === "" ? [] : [`### ${title}\n\n${body}`]);

const checksOf = (checks: readonly string[]): string[] =>
  section("Checks", list(checks.map((check) => `\`${check.replaceAll("`", "'")}\``)));

/** The text of a pull request. */
export const pullText = ({ summary, changes, checks, links }: PullText): string =>
  [
    plainLine(summary, maxLineChars),
    ...section("What was done", list(changes)),
    ...(checks.length === 0 ? section("Checks", "Nothing was run.") : checksOf(checks)),
    ...section("Links", list(links)),
  ].join("\n\n");

/** Whoever left a code block or a comment open would hide what code adds. */
function closed(text: string): string {
  const fence = openFence(text);
  if (fence !== null) return `${text}\n${fence}`;
  const outsideCode = text.replace(/^ {0,3}(`{3,}|~{3,})[^\n]*\n(?:[\s\S]*?\n)?? {0,3}\1[`~]*[ \t]*$/gm, "");
  return outsideCode.lastIndexOf("<!--") > outsideCode.lastIndexOf("-->") ? `${text}\n-->` : text;
}

/** What was written, then the sections of code; put on once, whoever does it again. */
function withSections(text: string, sections: readonly string[]): string {
  const tail = sections.join("\n\n");
  const words = text.trimEnd();
  return tail === "" || words.endsWith(`\n\n${tail}`) ? words : `${closed(words)}\n\n${tail}`;
}

/** [O9] A report as it is said on a platform of documents: the worker's words, then what really ran and where to look. */
export const reportText = (text: string, { checks, links }: Pick<PullText, "checks" | "links">): string =>
  withSections(text, [...checksOf(checks), ...section("Links", list(links))]);

export type ReplyParts = {
  /** What was done about it. */
  done: readonly string[];
  /** What its reader may do. */
  asked: readonly string[];
  /** The report that the words are about: what it says that ran, and where to look, stays. */
  about?: string;
  links: readonly string[];
};

/** [RD13] The router's words on a platform of documents: the answer first. */
export function replyText(text: string, { done, asked, about = "", links }: ReplyParts): string {
  const proof = proofOf(about);
  return withSections(text, [
    ...section("What was done", list(done)),
    ...section("What is asked of you", list(asked)),
    ...section("Checks", proof.Checks.join("\n")),
    ...section("Links", [...proof.Links, ...(links.length === 0 ? [] : [list(links)])].join("\n")),
  ]);
}

/** The lines that code put at the end of a report. */
function proofOf(report: string): Record<"Checks" | "Links", string[]> {
  const [, checks = "", links = ""] =
    /(?:\n\n### Checks\n\n(- [^\n]+(?:\n- [^\n]+)*))?(?:\n\n### Links\n\n(- [^\n]+(?:\n- [^\n]+)*))?$/.exec(report) ?? [];
  const lines = (part: string): string[] => part.split("\n").filter(Boolean);
  return { Checks: lines(checks), Links: lines(links) };
}

/** The comment that heads the review thread of a trigger, where it is of one. */
export const reviewCommentOf = ({ kind, facts, externalId }: Trigger): string | undefined =>
  kind.startsWith("pull_request_review_comment.") ? (facts?.in_reply_to ?? externalId) : undefined;

/** [SP8] For people, before they release a draft: what it is, where it goes, and the one commit that is pushed. */
export const titleOfDraft = ({ deed, sha }: Pick<PullDraft, "deed" | "sha">): string =>
  `Draft of a pull request: ${deed.title} (into ${deed.base}, commit ${sha.slice(0, 10)})`;
