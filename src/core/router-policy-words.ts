// What people are told about rules and policies: a rule in one sentence, what it would have done, and the list of what holds.
import type { RulesTrial } from "../protocol/console.ts";
import type { GateRule } from "../protocol/gate.ts";
import type { PolicyChange, PolicyInput, SavedPolicy } from "../protocol/policy.ts";
import type { Outcome } from "../protocol/trigger.ts";
import { excerpt } from "./context.ts";
import { namedAccounts } from "./named-accounts.ts";

const outcomeWords: Record<Outcome, string> = {
  mute: "is muted: no task that follows a thread hears it either",
  ignore: "is ignored",
  record: "is kept, and nobody is asked",
  candidate: "is judged by me",
  request: "counts as a request to me",
};
const shortWords: Record<Outcome, string> = {
  mute: "muted",
  ignore: "ignored",
  record: "kept",
  candidate: "judged",
  request: "a request",
};

/** Kinds of events that a trial names; the others are counted. */
const namedKinds = 3;
const listed = 12;

/** A rule in one sentence. */
export function ruleWords(rule: GateRule): string {
  const what = [
    rule.kind === undefined ? "Everything" : `“${rule.kind}”`,
    rule.principalId === undefined ? "" : `by ${namedAccounts(rule).join(" or ")}`,
    rule.source === undefined ? "" : `from ${rule.source}`,
    rule.place === undefined ? "" : `in ${rule.place}`,
    rule.thread === undefined ? "" : `in the thread ${rule.thread}`,
    rule.addressed === undefined ? "" : rule.addressed ? "that is addressed to me" : "that is not addressed to me",
  ].filter(Boolean);
  return `${what.join(" ")} ${outcomeWords[rule.outcome]}.`;
}

/** [RD9] What a rule would have done with what came lately, in a sentence or two: kinds and counts, no words of anybody. */
export function trialWords(trial: RulesTrial, ruleId: string): string {
  if (trial.tried === 0) return "Nothing came lately on which I could try it.";
  const fits = trial.matched[ruleId] ?? 0;
  if (fits === 0) return `Of the last ${trial.tried} events it fits none.`;
  if (trial.changed.length === 0) return `It fits ${fits} of the last ${trial.tried} events, and would have changed nothing.`;
  const kinds = new Map<string, number>();
  for (const { trigger, before, after } of trial.changed) {
    const kind = `${trigger.kind} by ${trigger.principal.id} in ${trigger.place} (${shortWords[before.outcome]} → ${shortWords[after.outcome]})`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const named = [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, count]) => `${count} ${kind}`);
  const more = named.length > namedKinds ? [`and ${named.length - namedKinds} other kinds`] : [];
  const those = [...named.slice(0, namedKinds), ...more].join(", ");
  return `It fits ${fits} of the last ${trial.tried} events and would have changed ${trial.changed.length}: ${excerpt(those, 500)}.`;
}

/** What a change makes of a policy; null when there is nothing that it could change. */
export function changed(
  known: Pick<SavedPolicy, "text" | "enabled" | "speculation"> | undefined,
  change: PolicyChange,
): Pick<PolicyInput, "text" | "enabled" | "speculation"> | null {
  const text = change.text ?? known?.text;
  const speculation = change.speculation === undefined ? known?.speculation : (change.speculation ?? undefined);
  if (text === undefined) return null;
  return { text, enabled: change.on ?? known?.enabled ?? true, ...(speculation === undefined ? {} : { speculation }) };
}

/** What a policy lets start by itself, in a sentence's part. */
const allowsWords = ({ speculation }: Pick<PolicyInput, "speculation">): string => {
  if (speculation === undefined) return "lets nothing start by itself";
  const places = speculation.places.map(({ source, place }) => `${source} ${place === "*" ? "(every place)" : place}`).join(", ");
  const { callsPerTask, callsPerDay, maxWastedCalls } = speculation;
  return `lets work start by itself in ${places}, with ${callsPerTask} model calls a task and ${callsPerDay} a day, until ${maxWastedCalls} were wasted in a week`;
};

/** [RD9] The policy as it would be, with all of its words, beside how it is. */
export function changeWords(known: SavedPolicy | undefined, change: PolicyChange): string | null {
  const next = changed(known, change);
  if (next === null) return null;
  const state = next.enabled ? "on" : "off";
  const allows = next.speculation === undefined && known?.speculation === undefined ? "" : `; it ${allowsWords(next)}`;
  if (known === undefined) return `a new policy “${change.id}”, ${state}: “${next.text}”${allows}`;
  const was = known.enabled ? "on" : "off";
  const words = next.text === known.text ? "with the same words" : `“${excerpt(known.text, 200)}” → “${next.text}”`;
  return `the policy “${change.id}” (version ${known.version}), ${was === state ? state : `${was} → ${state}`}, ${words}${allows}`;
}

/** What holds: every policy, and the rules that were made in the chat. */
export function listWords(policies: readonly SavedPolicy[], rules: readonly GateRule[]): string {
  const lines = [
    ...policies
      .slice(0, listed)
      .map(
        ({ id, version, enabled, text, speculation }) =>
          `- ${id} (${enabled ? "on" : "off"}, version ${version}${speculation ? ", starts work by itself" : ""}): ${excerpt(text, 80)}`,
      ),
    ...rules.slice(0, listed).map((rule) => `- ${ruleName(rule)}: ${ruleWords(rule)}`),
  ];
  if (lines.length === 0) return "There is no policy, and no rule was made in the chat. The console shows the rules that ship.";
  return `${lines.join("\n")}\nTo take a rule back, say “undo” and its rul_ name.`;
}

/** Rules made in the chat carry this before the id of their proposal. */
export const chatPrefix = "chat.";

/** The rules that ship for the source `chat` are of its name, and were made by nobody. */
export const isMadeInChat = (rule: Pick<GateRule, "id">): boolean => /^chat\.rul_/.test(rule.id);

/** [RD9] What people call a rule that was made in the chat, wherever it is named: the same wish, said again, has the same name. */
export const ruleName = ({ id }: Pick<GateRule, "id">): string => id.slice(chatPrefix.length);
