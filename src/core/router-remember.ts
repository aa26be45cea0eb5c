// The router's `remember` tool: what a person of the team said, as a fact with its source.
import type { RouterCall } from "../protocol/router-tools.ts";
import { overheardBy } from "./audience.ts";
import { makeId } from "./ids.ts";
import type { QueuedTrigger } from "./router.ts";
import { type Fact, factAudience, reachOf } from "./router-memory.ts";
import { type PlannedDecision, stripMarkers } from "./router-plan.ts";

/** [RD10] The row says who said it, where and when. Who may have things remembered has been checked. */
export function planRemember(
  view: { nowMs: number; heard?: readonly string[] },
  input: Extract<RouterCall, { tool: "remember" }>["input"],
  { trigger }: QueuedTrigger,
  decision: PlannedDecision,
): { decision: PlannedDecision; result: object } | { refused: string } {
  const text = stripMarkers(input.text).replace(/\s+/g, " ");
  if (text === "") return { refused: "The fact has no words." };
  const { source, place, threadId, id: triggerId, principal } = trigger;
  const by = { role: principal.role, id: principal.id, name: principal.name };
  const reach = reachOf(input);
  const about = { kind: input.kind, for: reach, source, place, by };
  // What was read of a conversation is not put into the memory of everybody.
  if (overheardBy(view.heard ?? [], factAudience(about)))
    return { refused: "This turn read what belongs to a conversation: remember it for `here` only." };
  const fact: Fact = { id: makeId("fct", decision.id), ...about, text, threadId, triggerId, atMs: view.nowMs };
  return {
    decision: { ...decision, reason: `remembered: ${text}`, threadId, fact: { fact, replaces: input.replaces ?? null } },
    result: { remembered: fact.id, for: reach },
  };
}
