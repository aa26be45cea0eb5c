// Rules and policies in the router's decisions. Its `set_policy` tool: an owner changes in the chat what is reacted to. What would
// change is shown first, with what it would have done, and saved when an owner confirms it; it can be taken back.
import type { GateRule } from "../protocol/gate.ts";
import type { Policy, PolicyChange } from "../protocol/policy.ts";
import type { RouterCall } from "../protocol/router-tools.ts";
import type { SavedIn } from "../protocol/speculation.ts";
import type { Trigger } from "../protocol/trigger.ts";
import { excerpt, markData } from "./context.ts";
import { judge } from "./gate.ts";
import { makeId } from "./ids.ts";
import type { QueuedTrigger } from "./router.ts";
import { whereAsked } from "./router-destination.ts";
import { type Planned, type PlannedDecision, postEffect, stripMarkers } from "./router-plan.ts";
import { chatPrefix, ruleWords } from "./router-policy-words.ts";
import { visible } from "./structured.ts";

/** What an owner was shown: a rule of the gate, or a change of a policy. */
export type Proposal = { id: string; rule?: GateRule; change?: PolicyChange; threadId: string; by: string; atMs: number; saved: boolean };
export type PolicyCall = Extract<RouterCall, { tool: "set_policy" }>["input"];

/** What is done with rules and policies; `id` is the proposal, by which a repeated save is known. */
export type PolicyAct =
  | { do: "propose"; id: string; rule: GateRule }
  | { do: "save"; id: string; rule: GateRule; by: string }
  | { do: "undo"; id: string; ruleId: string; by: string }
  | { do: "propose_policy"; id: string; change: PolicyChange }
  | { do: "save_policy"; id: string; change: PolicyChange; by: string; savedIn?: SavedIn }
  | { do: "undo_policy"; id: string; policyId: string; by: string; savedIn?: SavedIn }
  | { do: "list" };

/** A preview is about what the owner has in mind now. */
const proposalMs = 60 * 60_000;

type Refused = { refused: string };
/** What is done, and how the decision and the model call it. */
type Step = { act: PolicyAct; reason: string; result: object; proposal?: Proposal };
type View = { nowMs: number; proposals: readonly Proposal[] };

/** [RD9] Shown first, saved only when an owner confirms that very proposal in its own thread, in their own words, within the hour. */
export function planPolicy(view: View, input: PolicyCall, said: QueuedTrigger, decision: PlannedDecision): Planned {
  const step = stepOf(view, input, said, decision.id);
  if ("refused" in step) return step;
  const { act, reason, result, proposal } = step;
  const { threadId } = said;
  const { input: post } = postEffect(decision.id, whereAsked(said.trigger), "notice", "");
  const effects = [{ kind: "policy" as const, threadId, input: { act, post } }];
  return { decision: { ...decision, threadId, reason, effects, ...(proposal === undefined ? {} : { proposal }) }, result };
}

function stepOf(view: View, input: PolicyCall, said: QueuedTrigger, decisionId: string): Step | Refused {
  if (input.list === true) return { act: { do: "list" }, reason: "listed the policies", result: { listed: true } };
  if (input.confirm !== undefined) return confirm(view, input.confirm, said);
  if (input.undo !== undefined) return undo(view, input.undo, said);
  const { trigger, threadId } = said;
  const about = { id: makeId("rul", decisionId), threadId, by: trigger.principal.id, atMs: view.nowMs, saved: false };
  return input.change === undefined ? proposeRule(about, input, trigger) : proposeChange(about, input.change);
}

/** A model's word is not enough: the owner has to have said it. */
const unsaid = (verb: "confirm" | "undo", id: string, text: string): Refused | null =>
  /^rul_[a-z0-9]+$/.test(id) && saysSo(text, verb, id)
    ? null
    : { refused: `The owner has to answer with the words “${verb} rul_…”: ask for them.` };

const proposalOf = ({ proposals }: View, id: string): Proposal | undefined =>
  proposals.find((each) => each.id === id || each.rule?.id === `${chatPrefix}${id}`);

const savedIn = ({ trigger }: QueuedTrigger): SavedIn => ({ triggerId: trigger.id, source: trigger.source });

function confirm(view: View, named: string, said: QueuedTrigger): Step | Refused {
  const refusal = unsaid("confirm", named, said.trigger.text);
  if (refusal !== null) return refusal;
  const proposal = proposalOf(view, named);
  if (proposal === undefined) return { refused: "There is no such proposal: propose it first." };
  if (proposal.saved) return { refused: "It is saved already." };
  if (proposal.threadId !== said.threadId) return { refused: "It was proposed in another thread: it is confirmed there." };
  if (view.nowMs - proposal.atMs > proposalMs) return { refused: "The proposal is too old: propose it again." };
  const { id, rule, change } = proposal;
  const by = said.trigger.principal.name;
  const saved = { ...proposal, saved: true };
  if (rule !== undefined) {
    const reason = `saved the rule ${rule.id}: ${ruleWords(rule)}`;
    return { act: { do: "save", id, rule, by }, reason, result: { saving: rule.id }, proposal: saved };
  }
  if (change === undefined) return { refused: "There is nothing to save in it." };
  const act: PolicyAct = { do: "save_policy", id, change, by, savedIn: savedIn(said) };
  return { act, reason: `saved the policy ${change.id}`, result: { saving: change.id }, proposal: saved };
}

function undo(view: View, id: string, said: QueuedTrigger): Step | Refused {
  const refusal = unsaid("undo", id, said.trigger.text);
  if (refusal !== null) return refusal;
  const proposal = proposalOf(view, id);
  const by = said.trigger.principal.name;
  const result = { undoing: id };
  if (proposal?.change !== undefined) {
    const act: PolicyAct = { do: "undo_policy", id: proposal.id, policyId: proposal.change.id, by, savedIn: savedIn(said) };
    return { act, reason: `take back ${id}`, result };
  }
  return { act: { do: "undo", id, ruleId: proposal?.rule?.id ?? `${chatPrefix}${id}`, by }, reason: `take back the rule ${id}`, result };
}

function proposeChange(about: Proposal, { id, text, on, speculation }: NonNullable<PolicyCall["change"]>): Step | Refused {
  if (text === undefined && on === undefined && speculation === undefined)
    return { refused: "Say in `change` what its new text is, or whether it is on." };
  const change: PolicyChange = {
    id,
    ...(text === undefined ? {} : { text: stripMarkers(visible(text)) }),
    ...(on === undefined ? {} : { on }),
    ...(speculation === undefined ? {} : { speculation }),
  };
  const act: PolicyAct = { do: "propose_policy", id: about.id, change };
  return { act, reason: `proposed to change the policy ${id}`, result: { proposed: about.id }, proposal: { ...about, change } };
}

function proposeRule(about: Proposal, input: PolicyCall, trigger: Trigger): Step | Refused {
  const rule = ruleOf(input, trigger.principal.name);
  if ("refused" in rule) return rule;
  // Whoever sets a rule must still be heard where it was set.
  const own = judge({ version: 0, rules: [rule] }, trigger);
  if (own.rule === rule.id && own.outcome !== "candidate" && own.outcome !== "request")
    return { refused: "This rule would cover what the owner says to me here, and I could not hear them take it back: narrow it." };
  const words = ruleWords(rule);
  const act: PolicyAct = { do: "propose", id: about.id, rule };
  return { act, reason: `proposed a rule: ${words}`, result: { proposed: about.id, rule: words }, proposal: { ...about, rule } };
}

const quotes = "[\"“”„'‘’`]*";
const politely = "(?:(?:yes|ok|okay|please|ja|bitte)[\\s,.:!]+)*";

/** [RD9] Whether somebody said it: in a line of their own words, and nothing else in it. Quoted, asked about, or refused it is not said. */
const saysSo = (text: string, verb: "confirm" | "undo", id: string): boolean =>
  markData(text)
    .text.split("\n")
    .some((line) =>
      new RegExp(
        `^\\s*(?:@[\\w-]+[\\s,:]+)?${politely}${quotes}${verb}\\s+${quotes}${id}${quotes}[\\s,.!]*(?:please|thanks|thank you|bitte|danke)?[\\s.!]*$`,
        "iu",
      ).test(line),
    );

function ruleOf(input: PolicyCall, by: string): GateRule | Refused {
  const { outcome, source, place, kind, principal, addressed, thread, why } = input;
  if ([source, place, kind, principal, thread].every((each) => each === undefined))
    return { refused: "A rule for everything would make me deaf: name a source, a place, a thread, a kind or a principal." };
  if (outcome === undefined) return { refused: "Say in `outcome` what is to happen." };
  const conditions = {
    ...(source === undefined ? {} : { source }),
    ...(place === undefined ? {} : { place }),
    ...(thread === undefined ? {} : { thread }),
    ...(kind === undefined ? {} : { kind }),
    ...(principal === undefined ? {} : { principalId: principal }),
    ...(addressed === undefined ? {} : { addressed }),
  };
  const reason = excerpt(stripMarkers(why ?? "") || `Asked for in the chat by ${by}.`, 300);
  return { id: `${chatPrefix}${makeId("rul", JSON.stringify(conditions))}`, outcome, ...conditions, reason };
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
