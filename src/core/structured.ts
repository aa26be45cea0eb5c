// What people read on a platform of documents is structured by code, whatever a model wrote: a headline, what was done, what was
// checked, links. Checks are what really ran, as the ledger has it.
import type { Trigger } from "../protocol/trigger.ts";
import { excerpt } from "./context.ts";

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

/** [O9] A report as it is said on a platform of documents: the worker's words, then what really ran and where to look. */
export const reportText = (text: string, { checks, links }: Pick<PullText, "checks" | "links">): string =>
  [text.trimEnd(), ...checksOf(checks), ...section("Links", list(links))].join("\n\n");

/** The comment that heads the review thread of a trigger, where it is of one. */
export const reviewCommentOf = ({ kind, facts, externalId }: Trigger): string | undefined =>
  kind.startsWith("pull_request_review_comment.") ? (facts?.in_reply_to ?? externalId) : undefined;
