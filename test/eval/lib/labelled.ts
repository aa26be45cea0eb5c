// The labelled messages: one JSON object a line, read and checked whole. A file that is wrong names the line.
import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod/mini";

/** What a message asks for: `act` starts, changes or stops work; `answer` says something; `silent` does neither. */
export const labels = ["act", "answer", "silent"] as const;
export type Label = (typeof labels)[number];

const handle = z
  .string()
  .check(
    z.regex(
      /^(?:dev|guest|stranger)\d+$|^[a-z-]+\[bot\]$|^switchyard$/,
      "is devN, guestN, strangerN, name[bot], or switchyard for our own account",
    ),
  );
/** GitHub's own name of each kind of event. */
export const gitHubEvents = {
  issue_opened: "issues.opened",
  issue_edited: "issues.edited",
  issue_closed: "issues.closed",
  issue_labeled: "issues.labeled",
  issue_assigned: "issues.assigned",
  issue_pinned: "issues.pinned",
  issue_comment: "issue_comment.created",
  comment_edited: "issue_comment.edited",
  comment_deleted: "issue_comment.deleted",
  pull_request_opened: "pull_request.opened",
  pull_request_pushed: "pull_request.synchronize",
  pull_request_merged: "pull_request.closed",
  review_requested: "pull_request.review_requested",
  review_submitted: "pull_request_review.submitted",
  review_empty: "pull_request_review.submitted",
  review_dismissed: "pull_request_review.dismissed",
  review_comment: "pull_request_review_comment.created",
  check_failed: "check_run.completed",
  check_timed_out: "check_run.completed",
  check_startup_failure: "workflow_run.completed",
  check_cancelled: "check_run.completed",
  check_passed: "check_run.completed",
  suite_failed: "check_suite.completed",
  suite_passed: "check_suite.completed",
  workflow_passed: "workflow_run.completed",
  push: "push",
} as const;
export type GitHubKind = keyof typeof gitHubEvents;
const otherKinds = { web: ["message"], generic: ["message", "mail", "alert", "form"] } as const;
const kindsOf = (source: "web" | "github" | "generic"): readonly string[] =>
  source === "github" ? Object.keys(gitHubEvents) : otherKinds[source];
export type Kind = GitHubKind | (typeof otherKinds)[keyof typeof otherKinds][number];

const line = z
  .strictObject({
    id: z.string().check(z.regex(/^[ufgk]\d{3}$/, "is u, f, g or k and three digits")),
    source: z.enum(["web", "github", "generic"]),
    kind: z.string(),
    who: z.strictObject({ handle, role: z.enum(["owner", "member", "guest", "public", "bot"]) }),
    /** Said to the agent; on GitHub the mention in the text decides, whatever stands here. */
    addressed: z.boolean(),
    repository: z.nullable(z.string().check(z.regex(/^acme\/[a-z]+$/, "is acme/name"))),
    /** Earlier lines of the same conversation, oldest first: `dev1: …`; ours are `switchyard: …`. */
    before: z.array(z.string().check(z.regex(/^(?:switchyard|(?:dev|guest|stranger)\d+|[a-z-]+\[bot\]): \S/, "is `who: words`"))),
    text: z.string().check(z.minLength(1)),
    expected: z.enum(labels),
    /** To act or answer here is right although nobody asked. */
    proactive: z.boolean(),
    why: z.string().check(z.minLength(1)),
  })
  .check(
    z.refine((one) => kindsOf(one.source).includes(one.kind), "has a kind that its source does not know"),
    z.refine((one) => (one.repository !== null) === (one.source === "github"), "names a repository if, and only if, it is of GitHub"),
    z.refine((one) => !one.proactive || (one.expected !== "silent" && !one.addressed), "is proactive only where nobody asked"),
    z.refine(
      (one) => (one.who.role === "bot") === /\[bot\]$|^switchyard$/.test(one.who.handle),
      "is of a program if, and only if, its name says so",
    ),
  );
export type Labelled = Omit<z.infer<typeof line>, "kind"> & { kind: Kind };

/** Written without sight of the rules: these are evidence, and pass or fail. */
export const heldOut = ["unseen", "fresh"] as const;
export const setNames = [...heldOut, "known"] as const;
export type SetName = (typeof setNames)[number];

/** The lines of a set. Throws a sentence with the file and the line that is wrong. */
export function readSet(name: SetName): Labelled[] {
  const file = path.join(import.meta.dirname, `../${name}.jsonl`);
  const texts = readFileSync(file, "utf8").trimEnd().split("\n");
  const read = texts.map((text, at) => {
    const parsed = line.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data as Labelled;
    const issue = parsed.error.issues[0];
    throw new Error(`${name}.jsonl, line ${at + 1}: ${issue?.path.join(".") || "it"} ${issue?.message ?? "is wrong"}.`);
  });
  const twice = read.find(
    (one, at) => read.findIndex((other) => other.id === one.id || other.text === one.text) !== at && one.text.length > 20,
  );
  if (twice) throw new Error(`${name}.jsonl: ${twice.id} stands twice.`);
  return read;
}
