// Rules and policies in the router's decisions. Its `set_policy` tool: an owner changes in the chat what is reacted to. What would
// change is shown first, with what it would have done, and saved when an owner confirms it; it can be taken back.
import type { GateRule } from "../protocol/gate.ts";
import type { Policy, PolicyChange } from "../protocol/policy.ts";
import type { RouterCall } from "../protocol/router-tools.ts";
import type { SavedIn } from "../protocol/speculation.ts";
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

/** [RD9] Shown first, saved only when an owner confirms that very proposal in its own thread, in their own words, within the hour. */
export function planPolicy(
  view: { nowMs: number; proposals: readonly Proposal[] },
  input: PolicyCall,
  said: QueuedTrigger,
  decision: PlannedDecision,
): Planned {
  const { trigger } = said;
  const act = (policy: PolicyAct, reason: string, result: object, proposal?: Proposal): Planned => {
    const { input: post } = postEffect(decision.id, whereAsked(trigger), "notice", "");
    const effects = [{ kind: "policy" as const, threadId: said.threadId, input: { act: policy, post } }];
    return { decision: { ...decision, threadId: said.threadId, reason, effects, ...(proposal === undefined ? {} : { proposal }) }, result };
  };
  const by = trigger.principal.name;
  const savedIn = { triggerId: trigger.id, source: trigger.source };
  if (input.list === true) return act({ do: "list" }, "listed the policies", { listed: true });
  if (input.confirm !== undefined || input.undo !== undefined) {
    const id = input.confirm ?? input.undo ?? "";
    // A model's word is not enough: the owner has to have said it.
    const verb = input.confirm === undefined ? "undo" : "confirm";
    if (!/^rul_[a-z0-9]+$/.test(id) || !saysSo(trigger.text, verb, id))
      return { refused: `The owner has to answer with the words “${verb} rul_…”: ask for them.` };
    const proposal = view.proposals.find((each) => each.id === id || each.rule?.id === `${chatPrefix}${id}`);
    if (input.confirm === undefined) {
      if (proposal?.change !== undefined)
        return act({ do: "undo_policy", id: proposal.id, policyId: proposal.change.id, by, savedIn }, `take back ${id}`, { undoing: id });
      return act({ do: "undo", id, ruleId: proposal?.rule?.id ?? `${chatPrefix}${id}`, by }, `take back the rule ${id}`, { undoing: id });
    }
    if (proposal === undefined) return { refused: "There is no such proposal: propose it first." };
    if (proposal.saved) return { refused: "It is saved already." };
    if (proposal.threadId !== said.threadId) return { refused: "It was proposed in another thread: it is confirmed there." };
    if (view.nowMs - proposal.atMs > proposalMs) return { refused: "The proposal is too old: propose it again." };
    const saved = { ...proposal, saved: true };
    if (proposal.rule !== undefined)
      return act(
        { do: "save", id: proposal.id, rule: proposal.rule, by },
        `saved the rule ${proposal.rule.id}: ${ruleWords(proposal.rule)}`,
        { saving: proposal.rule.id },
        saved,
      );
    if (proposal.change === undefined) return { refused: "There is nothing to save in it." };
    return act(
      { do: "save_policy", id: proposal.id, change: proposal.change, by, savedIn },
      `saved the policy ${proposal.change.id}`,
      { saving: proposal.change.id },
      saved,
    );
  }
  const about = { id: makeId("rul", decision.id), threadId: said.threadId, by: trigger.principal.id, atMs: view.nowMs, saved: false };
  if (input.change !== undefined) {
    const { id, text, on, speculation } = input.change;
    if (text === undefined && on === undefined && speculation === undefined)
      return { refused: "Say in `change` what its new text is, or whether it is on." };
    const change: PolicyChange = {
      id,
      ...(text === undefined ? {} : { text: stripMarkers(visible(text)) }),
      ...(on === undefined ? {} : { on }),
      ...(speculation === undefined ? {} : { speculation }),
    };
    return act(
      { do: "propose_policy", id: about.id, change },
      `proposed to change the policy ${id}`,
      { proposed: about.id },
      { ...about, change },
    );
  }
  const rule = ruleOf(input, trigger.principal.name);
  if ("refused" in rule) return rule;
  // Whoever sets a rule must still be heard where it was set.
  const own = judge({ version: 0, rules: [rule] }, trigger);
  if (own.rule === rule.id && own.outcome !== "candidate" && own.outcome !== "request")
    return { refused: "This rule would cover what the owner says to me here, and I could not hear them take it back: narrow it." };
  return act(
    { do: "propose", id: about.id, rule },
    `proposed a rule: ${ruleWords(rule)}`,
    { proposed: about.id, rule: ruleWords(rule) },
    { ...about, rule },
  );
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

function ruleOf(input: PolicyCall, by: string): GateRule | { refused: string } {
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
