// Trying rules before they are saved: what they would have done with the triggers that came lately.
import type { RecentTrigger, RulesTrial } from "../protocol/console.ts";
import type { GateRules } from "../protocol/gate.ts";
import { outcomes, type Trigger, type Verdict } from "../protocol/trigger.ts";
import { judge } from "./gate.ts";

/** Words are kept for rules that look for some; more of a text is rarely what a rule speaks of. */
const maxTextChars = 1_000;

/** What a trial keeps of a trigger. */
export const toRecent = (trigger: Trigger, verdict: Verdict): RecentTrigger => ({
  id: trigger.id,
  threadId: trigger.threadId,
  threadKey: trigger.threadKey,
  source: trigger.source,
  place: trigger.place,
  kind: trigger.kind,
  principal: trigger.principal,
  addressed: trigger.addressed,
  text: trigger.text.slice(0, maxTextChars).toWellFormed(),
  ...(trigger.facts === undefined ? {} : { facts: trigger.facts }),
  atMs: trigger.atMs,
  rule: verdict.rule,
});

export type RingShare = { max: number; maxOfRule: number };

/**
 * [G4] A trigger joins those that are kept, oldest first. A rule has a share: ten thousand events that one rule ignores do not
 * push out the few that a person would want to try.
 */
export function keepRecent(kept: readonly RecentTrigger[], added: RecentTrigger, share: RingShare): RecentTrigger[] {
  const others = kept.filter(({ id }) => id !== added.id);
  const ofRule = others.filter(({ rule }) => rule === added.rule);
  const tooOld = ofRule.length >= share.maxOfRule ? ofRule[0] : others.length >= share.max ? others[0] : undefined;
  return [...others.filter((one) => one !== tooOld), added];
}

/** [G5] What proposed rules do with recent triggers, beside what the rules in force do with them. Nothing is changed. */
export function tryRules(inForce: GateRules, proposed: GateRules, recent: readonly RecentTrigger[]): RulesTrial {
  const tally = () => Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as RulesTrial["before"];
  const trial: RulesTrial = { tried: recent.length, before: tally(), after: tally(), changed: [], matched: {} };
  for (const trigger of recent) {
    const before = judge(inForce, trigger);
    const after = judge(proposed, trigger);
    trial.before[before.outcome]++;
    trial.after[after.outcome]++;
    trial.matched[after.rule] = (trial.matched[after.rule] ?? 0) + 1;
    if (before.outcome !== after.outcome) trial.changed.push({ trigger, before, after });
  }
  return trial;
}
