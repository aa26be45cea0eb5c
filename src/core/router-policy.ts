// Rules and policies in the router's decisions. Its `set_policy` tool: an owner changes the gate in the chat. A rule is shown first, and saved when an owner confirms it.
import type { GateRule } from "../protocol/gate.ts";
import type { Policy } from "../protocol/policy.ts";
import type { RouterCall } from "../protocol/router-tools.ts";
import { excerpt } from "./context.ts";
import { makeId } from "./ids.ts";
import type { QueuedTrigger } from "./router.ts";
import { type PlannedDecision, postEffect, stripMarkers } from "./router-plan.ts";

export type RuleProposal = { id: string; rule: GateRule; threadId: string; by: string; atMs: number; saved: boolean };
export type PolicyCall = Extract<RouterCall, { tool: "set_policy" }>["input"];

/** A preview is about what the owner has in mind now. */
const proposalMs = 60 * 60_000;

const outcomeWords: Record<GateRule["outcome"], string> = {
  ignore: "is ignored",
  record: "is kept, and nobody is asked",
  candidate: "is judged by me",
  request: "counts as a request to me",
};

/** A rule in one sentence. */
export function ruleWords(rule: GateRule): string {
  const what = [
    rule.kind === undefined ? "Everything" : `“${rule.kind}”`,
    rule.principalId === undefined ? "" : `by ${rule.principalId}`,
    rule.source === undefined ? "" : `from ${rule.source}`,
    rule.place === undefined ? "" : `in ${rule.place}`,
    rule.addressed === undefined ? "" : rule.addressed ? "that is addressed to me" : "that is not addressed to me",
  ].filter(Boolean);
  return `${what.join(" ")} ${outcomeWords[rule.outcome]}.`;
}

/** [RD9] Shown first, saved only when an owner confirms that very proposal in its own thread, in their own words, within the hour. */
export function planPolicy(
  view: { nowMs: number; proposals: readonly RuleProposal[] },
  input: PolicyCall,
  said: QueuedTrigger,
  decision: PlannedDecision,
): { decision: PlannedDecision; result: object } | { refused: string } {
  const { trigger } = said;
  const target = { threadId: said.threadId, source: trigger.source, hops: trigger.hops };
  const about = { ...decision, threadId: said.threadId };
  if (input.confirm !== undefined) {
    const proposal = view.proposals.find((each) => each.id === input.confirm);
    if (proposal === undefined) return { refused: "There is no such proposal: propose the rule first." };
    if (proposal.saved) return { refused: "It is saved already." };
    if (proposal.threadId !== said.threadId) return { refused: "It was proposed in another thread: it is confirmed there." };
    if (view.nowMs - proposal.atMs > proposalMs) return { refused: "The proposal is too old: propose it again." };
    // A model's word is not enough: the owner has to have said it.
    if (!trigger.text.toLowerCase().includes(proposal.id))
      return { refused: `The owner has to answer with the words “confirm ${proposal.id}”: ask for them.` };
    const words = `Saved: ${ruleWords(proposal.rule)} It is in force within seconds. The console keeps the earlier rules.`;
    return {
      decision: {
        ...about,
        reason: `saved the rule ${proposal.rule.id}: ${ruleWords(proposal.rule)}`,
        proposal: { ...proposal, saved: true },
        effects: [
          { kind: "rule", input: { rule: proposal.rule, by: trigger.principal.name } },
          postEffect(decision.id, target, "notice", words, { triggerId: trigger.id }),
        ],
      },
      result: { saved: proposal.rule.id },
    };
  }
  const { outcome, source, place, kind, principal, addressed, why } = input;
  if ([source, place, kind, principal].every((each) => each === undefined))
    return { refused: "A rule for everything would make me deaf: name a source, a place, a kind or a principal." };
  if (outcome === undefined) return { refused: "Say in `outcome` what is to happen." };
  const conditions = {
    ...(source === undefined ? {} : { source }),
    ...(place === undefined ? {} : { place }),
    ...(kind === undefined ? {} : { kind }),
    ...(principal === undefined ? {} : { principalId: principal }),
    ...(addressed === undefined ? {} : { addressed }),
  };
  const reason = excerpt(stripMarkers(why ?? "") || `Asked for in the chat by ${trigger.principal.name}.`, 300);
  const rule: GateRule = { id: `chat.${makeId("rul", JSON.stringify(conditions))}`, outcome, ...conditions, reason };
  const proposal: RuleProposal = {
    id: makeId("rul", decision.id),
    rule,
    threadId: said.threadId,
    by: trigger.principal.id,
    atMs: view.nowMs,
    saved: false,
  };
  const words = `I would put this rule before all others: ${ruleWords(rule)} A task that follows a thread still sees all of it. Say “confirm ${proposal.id}”, and I save it.`;
  return {
    decision: {
      ...about,
      reason: `proposed a rule: ${ruleWords(rule)}`,
      proposal,
      effects: [postEffect(decision.id, target, "notice", words, { triggerId: trigger.id })],
    },
    result: { proposed: proposal.id, rule: ruleWords(rule) },
  };
}

/** [G9] The policy that a decision names, if it is one that the model was shown; another name is as if none were given. */
export function followed(
  view: { policies: readonly Policy[]; capped: boolean },
  call: RouterCall,
  by: PlannedDecision["by"],
): Pick<PlannedDecision, "policy"> {
  if (by === "code" || !("policy" in call.input)) return {};
  const { policy: id, policyWhy } = call.input;
  const policy = view.policies.find((known) => known.id === id);
  // Like a reason: words written after public text was read are not kept.
  return policy ? { policy: { id: policy.id, version: policy.version, why: view.capped ? "" : excerpt(policyWhy ?? "", 300) } } : {};
}
