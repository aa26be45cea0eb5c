// What an owner changes in the chat, in D1: each act may be repeated, and answers with what the owner is to be told.
import { tryRules } from "../core/gate-trial.ts";
import type { PolicyAct } from "../core/router-policy.ts";
import { changed, changeWords, isMadeInChat, listWords, ruleName, ruleWords, trialWords } from "../core/router-policy-words.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import type { GateRules } from "../protocol/gate.ts";
import { currentRules, putRuleFirst, removeRule } from "./gate-rules.ts";
import { migrated } from "./migrations.ts";
import { listPolicies, policyVersions, savePolicy } from "./policies.ts";
import { recentTriggers } from "./recent-triggers.ts";

/** Carries the act out. Throws what can be tried again; what never can is said in a sentence. */
export async function carryOutPolicy(db: D1Database, act: PolicyAct, nowMs: number): Promise<string> {
  await migrated(db);
  try {
    return await carryOut(db, act, nowMs);
  } catch (error) {
    const fault = asFault(error);
    // Somebody saved meanwhile: theirs is read with the next attempt.
    if (fault?.kind === "conflict") throw new Fault("conflict", fault.message, { retry: "later", cause: error });
    if (fault?.retry === "never") return fault.message;
    throw error;
  }
}

async function carryOut(db: D1Database, act: PolicyAct, nowMs: number): Promise<string> {
  switch (act.do) {
    case "list": {
      const [policies, inForce] = await Promise.all([listPolicies(db), currentRules(db)]);
      return listWords(policies, inForce.rules.filter(isMadeInChat));
    }
    case "propose": {
      const [inForce, recent] = await Promise.all([currentRules(db), recentTriggers(db)]);
      const others = inForce.rules.filter(({ id }) => id !== act.rule.id);
      const proposed: GateRules = { version: inForce.version + 1, rules: [act.rule, ...others] };
      const trial = trialWords(tryRules(inForce, proposed, recent), act.rule.id);
      return `Say “confirm ${act.id}”, and I put this rule before all others: ${ruleWords(act.rule)}\n\n${trial}`;
    }
    case "save":
      await putRuleFirst(db, act.rule, act.by, nowMs);
      return `Saved: ${ruleWords(act.rule)} It is in force within seconds. To take it back, say “undo ${ruleName(act.rule)}”.`;
    case "undo": {
      const rule = await removeRule(db, act.ruleId, act.by, nowMs);
      return rule === null ? `There is no rule ${act.id} (any more).` : `Taken back. It was: ${ruleWords(rule)}`;
    }
    case "propose_policy": {
      const [known] = await policyVersions(db, act.change.id);
      const words = changeWords(known, act.change);
      if (words === null) return `There is no policy “${act.change.id}” yet: tell me its words, or say “list policies”.`;
      return `Say “confirm ${act.id}”, and I save ${words}.`;
    }
    case "save_policy": {
      const { id, change, by, savedIn } = act;
      const [known] = await policyVersions(db, change.id);
      if (known?.savedBy.endsWith(`(${id})`)) return savedWords(known.id, known.version, known.enabled, id);
      const next = changed(known, change);
      if (next === null) return `There is no policy “${change.id}” to switch: nothing was saved.`;
      const edited = { id: change.id, version: known?.version ?? 0, ...next };
      const { version, enabled } = await savePolicy(db, edited, `${by} (${id})`, nowMs, savedIn);
      return savedWords(change.id, version, enabled, id);
    }
    case "undo_policy": {
      const { id, policyId, by, savedIn } = act;
      const [newest, before] = await policyVersions(db, policyId);
      if (newest?.savedBy.endsWith(`(undo ${id})`)) return `The policy “${policyId}” is as it was before.`;
      if (newest === undefined || !newest.savedBy.endsWith(`(${id})`))
        return `The policy “${policyId}” was changed again since: nothing was taken back. The console shows its versions.`;
      const { text, enabled, speculation } = before ?? { ...newest, enabled: false };
      const allows = speculation === undefined ? {} : { speculation };
      await savePolicy(db, { id: policyId, version: newest.version, text, enabled, ...allows }, `${by} (undo ${id})`, nowMs, savedIn);
      return `The policy “${policyId}” is as it was before.`;
    }
  }
}

const savedWords = (policyId: string, version: number, on: boolean, id: string): string =>
  `Saved: the policy “${policyId}” is ${on ? "on" : "off"}, version ${version}. To take it back, say “undo ${id}”.`;
