// Decisions of code about speculative tasks: an end in silence, and a policy that pauses itself.
import type { Offer, OfferView } from "../protocol/offer.ts";
import type { Lane } from "../protocol/principal.ts";
import type { Speculation } from "../protocol/speculation.ts";
import type { Report } from "../protocol/task.ts";
import { asRouter } from "./authority.ts";
import { excerpt } from "./context.ts";
import { makeId } from "./ids.ts";
import { type KnownTask, laneOfReport } from "./router.ts";
import { whereFound, whereSaved } from "./router-destination.ts";
import { endSpeculation, withdrawOffer } from "./router-dispatch.ts";
import { type PlannedDecision, postEffect } from "./router-plan.ts";
import type { SpeculationStep } from "./speculation.ts";
import { titleOfDraft } from "./structured.ts";

const byCode = (row: Speculation, lane: Lane, turn: number) => ({
  turn,
  lane,
  by: "code" as const,
  authority: "public" as const,
  taskId: row.taskId,
  threadId: row.threadId,
  policy: { id: row.policy.id, version: row.policy.version, why: "" },
});

/** [SP4] Recorded, and said to nobody. */
export function endedDecision({ row, stop }: SpeculationStep, report: Report, agentName: string, turn: number): PlannedDecision {
  return {
    ...byCode(row, laneOfReport(report), turn),
    id: makeId("dec", "speculation", report.id),
    tool: "record",
    settles: [report.id],
    // What a report says of public text stays out of a reason.
    reason: `speculation ${row.outcome}: ${report.tainted ? "its worker read text from outside the team" : row.why}`,
    effects: stop ? [endSpeculation(row, agentName, row.why)] : [],
  };
}

/** [SP4] Its words, or its pull request, are held in the thread that it came from, until a person of the team releases or declines them. */
export function offeredDecision(row: Speculation, report: Report, hops: number, turn: number): PlannedDecision {
  const id = makeId("dec", "speculation", report.id);
  const { input } = postEffect(id, whereFound(row, report.id, hops), "offer", report.text);
  const { draft } = report;
  const what = draft === undefined ? `${row.title} — say it in ${row.place}?` : titleOfDraft(draft);
  const offer: Offer = {
    outbound: draft === undefined ? input : { ...input, text: draft.text, deed: draft.deed },
    ...(draft === undefined ? {} : { draft: true as const, changes: draft.changes }),
    title: excerpt(`Nobody asked, found early: ${what}`, 500),
    from: { taskId: row.taskId, authority: report.authority, tainted: report.tainted, source: row.source, place: row.place },
    personOnly: true,
  };
  return {
    ...byCode(row, laneOfReport(report), turn),
    id,
    tool: "record",
    settles: [report.id],
    reason: `speculation offered: ${row.title}`,
    effects: [{ kind: "offer", threadId: row.threadId, input: { offer } }],
  };
}

/** [SP4] A person has sent or declined what was offered, or nobody did in time: the task's outcome is judged by that. */
export function answeredDecision(row: Speculation, agentName: string, turn: number): PlannedDecision {
  const by = asRouter(agentName, "owner");
  const accepted = row.outcome === "accepted" || row.outcome === "edited";
  return {
    ...byCode(row, "team", turn),
    id: makeId("dec", "speculation", row.taskId, row.outcome),
    tool: "record",
    settles: [],
    reason: `speculation ${row.outcome}`,
    effects: row.outcome === "expired" ? [] : [{ kind: "accept", taskId: row.taskId, input: { by, accepted } }],
  };
}

/** [SP8] A person released the draft of a pull request: its task makes it, by code, and is one like any other from here on. */
export function openedDecision(
  row: Speculation,
  { offer, decided }: OfferView,
  task: KnownTask | null,
  agentName: string,
  turn: number,
  nowMs: number,
): PlannedDecision {
  const { taskId, threadId } = row;
  const id = makeId("dec", "speculation", taskId, row.outcome);
  const released = { offerId: offer.outbound.id, by: decided?.by ?? "a person of the team" };
  const by = asRouter(agentName, "owner");
  const text = `${released.by} released your draft of a pull request: its commit is pushed and its pull request opened as they are, without you. You hear what became of both. From here on you are a task like any other: mend what its checks say, then report.`;
  const { speculative: _, ...known } = task ?? {};
  return {
    ...byCode(row, "team", turn),
    id,
    tool: "resolve",
    settles: [],
    reason: `speculation ${row.outcome}: its draft was released by ${released.by}`,
    effects: [
      // Opened before it is subscribed: an ended task would give the rows back.
      { kind: "reopen", taskId, input: { id, by, text, tainted: false, released } },
      { kind: "subscribe", threadId, input: { taskId, decisionId: id } },
    ],
    ...(task === null
      ? {}
      : { newTask: { ...(known as KnownTask), status: "running", line: "", endedMs: null, updatedMs: nowMs, threads: [threadId] } }),
  };
}

/** [SP6] Nobody needs it any more. */
export function mootDecision(row: Speculation, agentName: string, turn: number): PlannedDecision {
  return {
    ...byCode(row, "team", turn),
    id: makeId("dec", "speculation", row.taskId, row.outcome),
    tool: "cancel",
    settles: [],
    reason: `speculation ${row.outcome}: ${row.why}`,
    effects: row.offerId === null ? [endSpeculation(row, agentName, row.why)] : withdrawOffer(row, row.why, agentName),
  };
}

/** [SP7] Said where an owner saved the policy, and to whoever looks at a console. */
export function pausedDecision(row: Speculation, why: string, turn: number, nowMs: number): PlannedDecision {
  const id = makeId("dec", "speculation_paused", row.policy.id, row.policy.version);
  const text = `The policy “${row.policy.id}” starts no more work by itself: ${why}. Look at what it did in the console under Rules; saving the policy again starts it anew.`;
  const { taskId: _, threadId: _where, ...decision } = byCode(row, "team", turn);
  const to = whereSaved(row.policy);
  return {
    ...decision,
    id,
    tool: "record",
    settles: [],
    reason: text,
    ...(to === null ? {} : { threadId: to.threadId }),
    effects: to === null ? [] : [postEffect(id, to, "notice", text)],
    notice: { id, atMs: nowMs, kind: "fault", text },
  };
}
