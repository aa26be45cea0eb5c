import { expect, test } from "vitest";
import { childId } from "../../src/core/ids.ts";
import { decideStep } from "../../src/core/router-decide.ts";
import { renderTurn } from "../../src/core/router-items.ts";
import { planReport } from "../../src/core/router-reports.ts";
import { reviewCommentOf } from "../../src/core/structured.ts";
import type { Report } from "../../src/protocol/task.ts";
import { member, queuedReport, queuedTrigger, reportOf, taskOf, triggerOf } from "../support/router-fixtures.ts";

const task = taskOf("proposing");
const proposal = childId("out", "thr_branch", "pull");
const told = (more: Partial<Report> = {}) =>
  queuedReport(reportOf({ task, kind: "proposal", status: "running", offer: proposal, text: "Pull request", ...more }));
const decide = (item: ReturnType<typeof told> | ReturnType<typeof queuedTrigger>, input: object) =>
  decideStep(
    {
      turn: 2,
      step: 1,
      lane: item.lane,
      capped: false,
      nowMs: 9,
      agentName: "agent",
      items: new Map([[item.id, item]]),
      progress: new Map(),
      tasks: new Map([[task.id, task]]),
      machines: [],
      policies: [],
    },
    [{ callId: "c", tool: "release", input: { settles: [item.id], verdict: "release", reason: "as asked", ...input } }],
  );

test("[RD12] a proposal is an item of the next turn, with its id, and said to nobody by code", () => {
  const item = told();
  expect(planReport(item.report, task, [], 1)).toMatchObject({ decision: null, queue: { id: item.id } });
  const text = renderTurn({
    turn: 1,
    lane: "team",
    items: [item],
    tasks: [task],
    machines: [],
    observed: [],
    policies: null,
    readers: [],
    summary: [],
    nowMs: 9,
  });
  expect(text).toContain(proposal);
});

test("[RD12] the router's word goes to the proposal's own thread, with the report's authority and the task's name", () => {
  const { decisions, refused } = decide(told(), { proposal });
  expect(refused).toEqual([]);
  expect(decisions[0]?.effects).toMatchObject([
    {
      kind: "decide_offer",
      threadId: "thr_branch",
      input: { outboundId: proposal, verdict: "release", via: "router", taskId: task.id, by: { role: "agent", onBehalfOf: "member" } },
    },
  ]);
});

test("[RD12] a proposal that the settled report did not tell of, or of a tainted or public task, is not decided by the router", () => {
  expect(decide(told(), { proposal: childId("out", "thr_branch", "another") }).refused).toMatchObject([
    { reason: expect.stringContaining("no proposal") },
  ]);
  expect(decide(queuedTrigger({ name: "yes", by: member }), { proposal }).refused).toHaveLength(1);
  for (const more of [{ tainted: true }, { authority: "public" as const }])
    expect(decide(told(more), { proposal }).refused).toMatchObject([{ reason: expect.stringContaining("Only a person of the team") }]);
});

test("[O8] a review comment names the thread that it is of, anything else none", () => {
  const trigger = triggerOf({ name: "r", by: member, thread: "12" });
  const review = { ...trigger, kind: "pull_request_review_comment.created", externalId: "78" };
  expect(reviewCommentOf(review)).toBe("78");
  expect(reviewCommentOf({ ...review, facts: { in_reply_to: "77" } })).toBe("77");
  expect(reviewCommentOf(trigger)).toBeUndefined();
});
