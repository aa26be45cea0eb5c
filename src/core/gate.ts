// The gate: deterministic rules that judge a trigger before any model runs. The first rule that matches wins.
import type { GateRule, GateRules } from "../protocol/gate.ts";
import type { Role } from "../protocol/principal.ts";
import type { Outcome, Trigger, Verdict } from "../protocol/trigger.ts";
import { isNamed } from "./named-accounts.ts";
import { literal } from "./regexp.ts";

/** [G1] Every trigger gets a verdict, also when no rule knows its source: it is kept, and nobody is asked. */
const noRule: Verdict = { outcome: "record", rule: "default", reason: "No rule speaks of this; it is kept, and nobody is asked." };

/** All that a rule can speak of. */
export type Judged = Pick<Trigger, "source" | "place" | "kind" | "principal" | "addressed" | "text" | "facts" | "threadId"> & {
  threadKey?: string | undefined;
};

/** [G2] The verdict of the first rule whose conditions all hold. */
export function judge(rules: GateRules, trigger: Judged): Verdict {
  let composed: string | undefined;
  const text = (): string => (composed ??= trigger.text.normalize("NFC"));
  const rule = rules.rules.find((candidate) => matches(candidate, trigger, text));
  return rule ? { outcome: rule.outcome, rule: rule.id, reason: rule.reason } : noRule;
}

function matches(rule: GateRule, trigger: Judged, text: () => string): boolean {
  return (
    (rule.source === undefined || rule.source === trigger.source) &&
    (rule.place === undefined || matchesPattern(rule.place.toLowerCase(), trigger.place.toLowerCase())) &&
    (rule.thread === undefined || isThread(rule.thread, trigger)) &&
    (rule.kind === undefined || matchesPattern(rule.kind, trigger.kind)) &&
    (rule.roles === undefined || rule.roles.includes(trigger.principal.role)) &&
    (rule.principalId === undefined || isNamed(rule, { source: trigger.source, id: trigger.principal.id })) &&
    (rule.addressed === undefined || rule.addressed === trigger.addressed) &&
    (rule.facts === undefined || Object.entries(rule.facts).every(([name, value]) => trigger.facts?.[name] === value)) &&
    (rule.anyWord === undefined || anyOf(rule.anyWord)?.test(text()) === true)
  );
}

function isThread(named: string, { threadId, threadKey = "" }: Judged): boolean {
  if (named === threadId || named === threadKey) return true;
  // At GitHub issues and pull requests share their numbers.
  return named.startsWith("#") && /^(?:issue|pull):/.test(threadKey) && threadKey.endsWith(`:${named.slice(1)}`);
}

const matchesPattern = (pattern: string, value: string): boolean =>
  pattern.endsWith("*") ? value.startsWith(pattern.slice(0, -1)) : value === pattern;

// Scripts that write words without spaces between them, or join particles to them: there a word has no visible border.
const borderless =
  "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}";
const wordChar = `[[\\p{L}\\p{M}\\p{N}_]--[${borderless}]]`;

const edge = new RegExp(wordChar, "v");

/** By the list as its rule has it: it is asked for each event, and an expression costs more to make than to use. */
const expressions = new WeakMap<readonly string[], RegExp | null>();

/** Finds any of the words as a word: `test` is not in `latest`, but 部署 is in 请部署一下. Null where there is none. */
function anyOf(words: readonly string[]): RegExp | null {
  const known = expressions.get(words);
  if (known !== undefined) return known;
  // Words with the same borders are one choice: a long list is looked for at once, and not word by word.
  const choices = new Map<string, { before: string; after: string; plain: string[] }>();
  for (const plain of words.map((word) => word.normalize("NFC").trim()).filter((word) => word !== "")) {
    const before = edge.test([...plain][0] ?? "") ? `(?<!${wordChar})` : "";
    const after = edge.test([...plain].at(-1) ?? "") ? `(?!${wordChar})` : "";
    const choice = choices.get(before + after) ?? { before, after, plain: [] };
    choices.set(before + after, choice);
    choice.plain.push(literal(plain));
  }
  const sources = [...choices.values()].map(({ before, after, plain }) => `${before}(?:${plain.join("|")})${after}`);
  const made = sources.length === 0 ? null : new RegExp(sources.join("|"), "iv");
  expressions.set(words, made);
  return made;
}

const talk = "Small talk, not said to us: it asks for nothing.";

const people: Role[] = ["owner", "member", "guest", "public"];

const rulesFor = (
  id: string,
  outcome: Outcome,
  kinds: readonly string[],
  reason: string,
  more: Partial<Pick<GateRule, "roles" | "facts">> = {},
): GateRule[] => kinds.map((kind) => ({ id: `${id}:${kind}`, outcome, source: "github", kind, reason, ...more }));

/** Whoever signs says who spoke, and whether to us: at the door of a chat as at the generic one. */
const signedRules = (source: "generic" | "chat"): GateRule[] => [
  {
    id: `${source}.bot`,
    outcome: "record",
    source,
    roles: ["bot"],
    reason: "A program told us: kept as context; a rule of the team may make more of it.",
  },
  { id: `${source}.addressed`, outcome: "request", source, roles: people, addressed: true, reason: "A person asked us." },
  { id: `${source}.talk`, outcome: "record", source, kind: "message*", roles: people, facts: { words: "talk" }, reason: talk },
  {
    id: `${source}.said`,
    outcome: "candidate",
    source,
    kind: "message*",
    roles: people,
    reason: "A person said something; the router judges whether it concerns us.",
  },
  { id: `${source}.other`, outcome: "record", source, reason: "Nobody said this to us: kept as context." },
];

const ciKinds = ["check_run.completed", "check_suite.completed", "workflow_run.completed"] as const;

/** [WI7] A message that is taken back, or handed over earlier, asks for nothing by itself, whatever the rules make of messages; a mute holds. */
export const judgeMessage = (rules: GateRules, trigger: Trigger): Verdict => {
  const verdict = judge(rules, trigger);
  return trigger.amends === undefined || trigger.amends.change === "edit" || verdict.outcome === "mute"
    ? verdict
    : { outcome: "record", rule: "amended", reason: "It only changes an earlier message." };
};

/** Version 0: in force until an owner saves rules of the team's own. */
export const defaultRules: GateRules = {
  version: 0,
  rules: [
    { id: "own", outcome: "ignore", roles: ["agent"], reason: "Our own output never asks us for anything." },
    { id: "web.message", outcome: "request", source: "web", roles: people, reason: "A message in the widget is addressed to us." },

    // Machines before people: a bot that mentions us is still a bot.
    ...["failure", "timed_out", "startup_failure"].flatMap((conclusion) =>
      rulesFor(
        `github.ci.${conclusion}`,
        "record",
        ciKinds,
        "A check failed: kept for whoever asks; work starts only when a person asks for it.",
        { facts: { conclusion } },
      ),
    ),
    ...rulesFor("github.ci", "ignore", ["check_run.*", "check_suite.*", "workflow_run.*"], "A check that did not fail, or has not ended."),
    ...rulesFor("github.push", "record", ["push"], "New commits: kept as context."),
    {
      id: "github.self",
      outcome: "record",
      source: "github",
      facts: { self: "unmarked" },
      reason: "Written from our account without our mark: kept as context, it asks us for nothing.",
    },
    {
      id: "github.bot",
      outcome: "ignore",
      source: "github",
      roles: ["bot"],
      reason: "Other bots are heard only where a rule of the team allows it.",
    },

    {
      id: "github.addressed",
      outcome: "request",
      source: "github",
      roles: people,
      addressed: true,
      reason: "A person asked us: by a mention, an assignment, or a review request.",
    },
    ...rulesFor("github.talk", "record", ["issue_comment.created"], talk, { facts: { words: "talk" } }),
    ...rulesFor("github.wordless", "record", ["pull_request_review.submitted"], "A review without words asks nothing.", {
      facts: { words: "none" },
    }),
    ...rulesFor(
      "github.said",
      "candidate",
      [
        "issues.opened",
        "issue_comment.created",
        "pull_request.opened",
        "pull_request_review.submitted",
        "pull_request_review_comment.created",
      ],
      "A person said something new; the router judges whether it concerns us.",
      { roles: people },
    ),
    ...rulesFor(
      "github.changed",
      "record",
      [
        "issues.edited",
        "issues.closed",
        "issues.reopened",
        "issues.labeled",
        "issues.unlabeled",
        "issues.assigned",
        "issues.unassigned",
        "issues.deleted",
        "issues.transferred",
        "issue_comment.edited",
        "issue_comment.deleted",
        "pull_request.edited",
        "pull_request.closed",
        "pull_request.reopened",
        "pull_request.synchronize",
        "pull_request.labeled",
        "pull_request.unlabeled",
        "pull_request.assigned",
        "pull_request.unassigned",
        "pull_request.ready_for_review",
        "pull_request.converted_to_draft",
        "pull_request.review_requested",
        "pull_request.review_request_removed",
        "pull_request_review.edited",
        "pull_request_review.dismissed",
        "pull_request_review_comment.edited",
        "pull_request_review_comment.deleted",
      ],
      "A change of state or wording: kept as context, nobody is asked.",
    ),
    ...signedRules("generic"),
    ...signedRules("chat"),

    {
      id: "github.other",
      outcome: "ignore",
      source: "github",
      reason: "No rule asks for this kind of event; only a task that follows the thread sees it.",
    },
  ],
};
