// The router's word on what a task proposed. Whether it may say it is decided here, and by the thread again.
import type { RouterCall } from "../protocol/router-tools.ts";
import { asRouter, atLeast } from "./authority.ts";
import { excerpt } from "./context.ts";
import { ownerOf } from "./ids.ts";
import type { InboxItem } from "./router.ts";
import { safeId } from "./router-calls.ts";
import { type Planned, type PlannedDecision, stripMarkers } from "./router-plan.ts";

/** [RD12] A proposal is named by the report that told of it; what is of the public's making waits for a person. */
export function planRelease(
  agentName: string,
  input: Extract<RouterCall, { tool: "release" }>["input"],
  settled: readonly InboxItem[],
  decision: PlannedDecision,
): Planned {
  const { proposal, verdict } = input;
  const told = settled.find((item) => item.kind === "report" && item.report.offer === proposal);
  const threadId = ownerOf(proposal, "thr");
  if (told?.kind !== "report" || threadId === null) return { refused: `${safeId(proposal)} is no proposal of a report that you settle.` };
  if (!atLeast(decision.authority, "member"))
    return { refused: "Only a person of the team decides about this one, in the console or on the task's card: record the report." };
  const by = asRouter(agentName, decision.authority);
  const { taskId } = told.report;
  const reason = excerpt(stripMarkers(input.reason), 300);
  return {
    decision: {
      ...decision,
      taskId,
      threadId: told.report.threadId,
      effects: [{ kind: "decide_offer", threadId, input: { outboundId: proposal, verdict, by, via: "router", taskId, reason } }],
    },
    result: { [verdict === "release" ? "released" : "declined"]: proposal },
  };
}
