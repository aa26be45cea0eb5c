// The rules page without a page: a rule as a sentence, and as the fields of a form.
import { namedAccounts } from "../../core/named-accounts.ts";
import { type GateRule, gateRule } from "../../protocol/gate.ts";
import { firstIssue } from "../../protocol/issue.ts";
import { type Role, roles } from "../../protocol/principal.ts";
import type { Outcome } from "../../protocol/trigger.ts";
import { holdsWords } from "./model.ts";

export const outcomeWords: Record<Outcome, string> = {
  mute: "mute",
  ignore: "ignore",
  record: "keep",
  candidate: "router judges",
  request: "asked of us",
};

/** What a rule asks of a trigger, in one line. */
export function conditionsOf(rule: GateRule): string {
  const parts = [
    rule.source,
    rule.place,
    rule.thread === undefined ? undefined : `thread ${rule.thread}`,
    rule.kind,
    rule.roles?.join(" or "),
    rule.principalId === undefined ? undefined : `by ${namedAccounts(rule).join(" or ")}`,
    rule.addressed === undefined ? undefined : rule.addressed ? "addressed to us" : "not addressed to us",
    rule.anyWord?.map((word) => `“${word}”`).join(" or "),
    ...Object.entries(rule.facts ?? {}).map(([name, value]) => `${name} = ${value}`),
  ].filter((part): part is string => part !== undefined && part !== "");
  return parts.length === 0 ? "everything" : parts.join(" · ");
}

/** A rule with its place in the whole list. */
export type PlacedRule = { rule: GateRule; at: number };

/** Rules that hold every word of a query, and of one outcome where it is named. */
export const findRules = (rules: readonly GateRule[], query: string, outcome: Outcome | null = null): PlacedRule[] =>
  rules
    .map((rule, at) => ({ rule, at }))
    .filter(
      ({ rule }) =>
        (outcome === null || rule.outcome === outcome) &&
        holdsWords(`${rule.id} ${outcomeWords[rule.outcome]} ${rule.outcome} ${conditionsOf(rule)} ${rule.reason}`, query),
    );

export type RuleSection = { source: string | null; rules: PlacedRule[] };

/**
 * The list source by source. A rule of one source never meets an event of another, so that between rules which speak of every
 * source the order within each source is all that counts.
 */
export function sectionsOf(rules: readonly PlacedRule[]): RuleSection[] {
  const sections: RuleSection[] = [];
  let since = new Map<string | null, RuleSection>();
  for (const placed of rules) {
    const source = placed.rule.source ?? null;
    const known = since.get(source);
    if (known) known.rules.push(placed);
    else {
      const section = { source, rules: [placed] };
      sections.push(section);
      since = source === null ? new Map([[source, section]]) : new Map([...since, [source, section]]);
      if (source !== null) since.delete(null);
    }
  }
  return sections;
}

const sourceWords: Record<string, string> = { web: "Widget", github: "GitHub", generic: "Signed webhook", chat: "Chat" };
export const sourceName = (source: string | null): string => (source === null ? "Every source" : (sourceWords[source] ?? source));

const allButKind = ({ id: _id, kind: _kind, ...rest }: GateRule): string => JSON.stringify(rest);

/** Neighbours that differ in their kind of event only, together. */
export function familiesOf(rules: readonly PlacedRule[]): PlacedRule[][] {
  const families: PlacedRule[][] = [];
  for (const placed of rules) {
    const last = families.at(-1);
    const first = last?.[0];
    if (
      last &&
      first &&
      first.rule.kind !== undefined &&
      placed.rule.kind !== undefined &&
      allButKind(first.rule) === allButKind(placed.rule)
    )
      last.push(placed);
    else families.push([placed]);
  }
  return families;
}

/** The fields as a person types them; empty means "any". */
export type RuleForm = {
  id: string;
  outcome: Outcome;
  source: string;
  place: string;
  thread: string;
  kind: string;
  roles: Role[];
  principalId: string;
  addressed: "any" | "yes" | "no";
  /** Separated by commas. */
  words: string;
  /** `name = value`, separated by commas. */
  facts: string;
  reason: string;
};

export const toForm = (rule: GateRule): RuleForm => ({
  id: rule.id,
  outcome: rule.outcome,
  source: rule.source ?? "",
  place: rule.place ?? "",
  thread: rule.thread ?? "",
  kind: rule.kind ?? "",
  roles: rule.roles ?? [],
  principalId: rule.principalId ?? "",
  addressed: rule.addressed === undefined ? "any" : rule.addressed ? "yes" : "no",
  words: rule.anyWord?.join(", ") ?? "",
  facts: Object.entries(rule.facts ?? {})
    .map(([name, value]) => `${name} = ${value}`)
    .join(", "),
  reason: rule.reason,
});

const listed = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

/** The rule that a form says, or a sentence on what is wrong with it. `others`: ids that are taken. */
export function fromForm(form: RuleForm, others: readonly string[]): GateRule | string {
  const id = form.id.trim();
  if (id === "") return "Give the rule a short name: decisions and counts speak of it.";
  if (others.includes(id)) return `There is a rule ${id} already.`;
  if (form.reason.trim() === "") return "Say why: whoever asks why nothing happened will read it.";
  const text = (name: "source" | "place" | "thread" | "kind" | "principalId") =>
    form[name].trim() === "" ? {} : { [name]: form[name].trim() };
  const pairs = listed(form.facts).map((pair) => pair.split(/\s*=\s*(.*)/s).map((part) => part.trim()));
  if (pairs.some(([name, value]) => !name || !value)) return "Write facts as name = value, separated by commas.";
  const words = listed(form.words);
  const rule = {
    id,
    outcome: form.outcome,
    ...text("source"),
    ...text("place"),
    ...text("thread"),
    ...text("kind"),
    ...(form.roles.length === 0 ? {} : { roles: roles.filter((role) => form.roles.includes(role)) }),
    ...text("principalId"),
    ...(form.addressed === "any" ? {} : { addressed: form.addressed === "yes" }),
    ...(words.length === 0 ? {} : { anyWord: words }),
    ...(pairs.length === 0 ? {} : { facts: Object.fromEntries(pairs.map(([name = "", value = ""]) => [name, value])) }),
    reason: form.reason.trim(),
  };
  const parsed = gateRule.safeParse(rule);
  return parsed.success ? parsed.data : firstIssue(parsed.error, "rule");
}

/** The list with one rule before (-1) or after (1) the next one there that an event could meet too. */
export function moved(rules: readonly GateRule[], at: number, by: 1 | -1): GateRule[] {
  const rule = rules[at];
  const meets = (other: GateRule): boolean => rule?.source === undefined || other.source === undefined || other.source === rule.source;
  let to = at + by;
  for (let other = rules[to]; other !== undefined && !meets(other); other = rules[to]) to += by;
  return rule === undefined || rules[to] === undefined ? [...rules] : rules.toSpliced(at, 1).toSpliced(to, 0, rule);
}
