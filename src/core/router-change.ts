// What the router changes at a task that is under way: it is stopped, or told facts from elsewhere. Who may has been checked.
import type { RouterCall } from "../protocol/router-tools.ts";
import { asRouter, taints } from "./authority.ts";
import { excerpt } from "./context.ts";
import type { InboxItem, KnownTask } from "./router.ts";
import { type PlannedDecision, stripMarkers } from "./router-plan.ts";

type Change = Extract<RouterCall, { tool: "deliver" | "cancel" }>;

export function planChange(
  agentName: string,
  call: Change,
  task: KnownTask,
  settled: readonly InboxItem[],
  decision: PlannedDecision,
): { decision: PlannedDecision; result: object } {
  const about = { ...decision, taskId: task.id, threadId: task.threadId };
  if (call.tool === "cancel") {
    const by = asRouter(throughUs(agentName, settled), decision.authority);
    const reason = excerpt(stripMarkers(call.input.reason), 300);
    return {
      decision: { ...about, effects: [{ kind: "cancel", taskId: task.id, input: { by, reason } }] },
      result: { stopping: task.id },
    };
  }
  const tainted = settled.some((item) => (item.kind === "trigger" ? taints(item.trigger.principal) : item.report.tainted));
  const input = { id: decision.id, text: stripMarkers(call.input.facts), authority: decision.authority, tainted };
  return { decision: { ...about, effects: [{ kind: "tell", taskId: task.id, input }] }, result: { delivered: task.id } };
}

/** [W29] Whose word it is that the router passes on: what is stopped says so to whoever asked for it. */
function throughUs(agentName: string, items: readonly InboxItem[]): string {
  const people = [...new Set(items.flatMap((item) => (item.kind === "trigger" ? [excerpt(item.trigger.principal.name, 60)] : [])))];
  const named = people.length > 2 ? [...people.slice(0, 2), `${people.length - 2} more`] : people;
  return named.length === 0 ? agentName : `${named.join(" and ")}, through ${agentName}`;
}
