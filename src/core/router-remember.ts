// The router's `remember` tool: what a person of the team said, as a fact with its source; or a fact that is to be forgotten.
import type { RouterCall } from "../protocol/router-tools.ts";
import { audienceOf, mayFlow, overheardBy } from "./audience.ts";
import { excerpt } from "./context.ts";
import { makeId } from "./ids.ts";
import type { QueuedTrigger } from "./router.ts";
import { safeId } from "./router-calls.ts";
import { whereAsked } from "./router-destination.ts";
import { dateOf, type Fact, factAudience, reachOf } from "./router-memory.ts";
import { type Planned, type PlannedDecision, postEffect, stripMarkers } from "./router-plan.ts";

type Input = Extract<RouterCall, { tool: "remember" }>["input"];

/** Facts that the calls of an answer name. */
export type NamedFacts = ReadonlyMap<string, Fact>;
export const noFacts: NamedFacts = new Map();

/** What one call had forgotten, another of the same answer does not find. */
export const without = (facts: NamedFacts, id: string | undefined): NamedFacts =>
  id === undefined ? facts : new Map([...facts].filter(([known]) => known !== id));

/** [RD17] Words for what takes the place of a fact, or none: then it is forgotten. */
export const isToForget = (input: Pick<Input, "text" | "replaces">): boolean => input.text === undefined && input.replaces !== undefined;

/** [RD10] The row says who said it, where and when. Who may have things remembered has been checked. */
export function planRemember(
  view: { nowMs: number; heard?: readonly string[]; facts?: NamedFacts },
  input: Input,
  { trigger }: QueuedTrigger,
  decision: PlannedDecision,
): Planned {
  if (isToForget(input)) return planForget(view.facts, input.replaces ?? "", trigger, decision);
  const text = stripMarkers(input.text ?? "").replace(/\s+/g, " ");
  if (text === "") return { refused: "The fact has no words." };
  const { kind } = input;
  if (kind === undefined) return { refused: "Say of which kind the fact is: a preference, background or a rule." };
  const { source, place, threadId, id: triggerId, principal } = trigger;
  const by = { role: principal.role, id: principal.id, name: principal.name };
  const reach = reachOf({ ...input, kind });
  const about = { kind, for: reach, source, place, by };
  // What was read of a conversation is not put into the memory of everybody.
  if (overheardBy(view.heard ?? [], factAudience(about)))
    return { refused: "This turn read what belongs to a conversation: remember it for `here` only." };
  const fact: Fact = { id: makeId("fct", decision.id), ...about, text, threadId, triggerId, atMs: view.nowMs };
  return {
    // Without the words: a decision is kept for good, and those may be forgotten.
    decision: {
      ...decision,
      reason: `keeps a fact (${kind}, for ${reach === "team" ? "the team" : "this conversation"})`,
      threadId,
      fact: { fact, replaces: input.replaces ?? null },
    },
    result: { remembered: fact.id, for: reach },
  };
}

/** [RD17] Whoever may hear a fact may have it forgotten, for all who knew it. Code says so, and names it. */
function planForget(facts: NamedFacts | undefined, id: string, trigger: QueuedTrigger["trigger"], decision: PlannedDecision): Planned {
  const fact = facts?.get(id);
  // Of what may not be heard here nobody learns that it is there.
  if (fact === undefined || !mayFlow(factAudience(fact), audienceOf(trigger)))
    return { refused: `There is no fact ${safeId(id)} that may be told here: look for it with find.` };
  if (fact.forgotten !== undefined) return { refused: `${id} is forgotten already, on the word of ${fact.forgotten.by.name}.` };
  if (fact.replacedBy !== undefined) return { refused: `${id} counts no more: ${fact.replacedBy} took its place. Forget that one.` };
  const { principal, threadId, id: triggerId } = trigger;
  const by = { role: principal.role, id: principal.id, name: principal.name };
  const words = `I have forgotten what ${excerpt(fact.by.name, 60)} told me on ${dateOf(fact.atMs)}: “${excerpt(fact.text, 300)}”`;
  return {
    decision: {
      ...decision,
      reason: `forgets ${id}`,
      threadId,
      forgets: { id, by, threadId, triggerId },
      effects: [postEffect(decision.id, whereAsked(trigger), "notice", words, { triggerId })],
    },
    result: { forgotten: id, said: "The person was told what was forgotten." },
  };
}
