// What a task's report leads to: said by code when it is certain, else a decision of the model.
import type { FaultWords } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import { finalStatuses, type Report } from "../protocol/task.ts";
import { excerpt } from "./context.ts";
import { makeId } from "./ids.ts";
import { isOpen, isUnasked, type KnownTask, laneOfReport, type QueuedReport, type QueuedTrigger } from "./router.ts";
import { whereAsked, whereReported } from "./router-destination.ts";
import { reportInForm } from "./router-manner.ts";
import { outcomeOf, type PlannedDecision, postEffect } from "./router-plan.ts";

const confident = 0.7;

export type ReportPlan = {
  task: KnownTask;
  /** Said or settled by code. */
  decision: PlannedDecision | null;
  /** An item of the next turn. */
  queue: QueuedReport | null;
};

/** [RR1] A report changes the task's line, and one of: code says it, the model decides, or nobody is disturbed. */
export function planReport(given: Report, known: KnownTask | null, others: readonly KnownTask[], turn: number): ReportPlan {
  // [SP5] A task that was taken over answers where it was asked for, also if it did not know that yet.
  const report = known === null ? given : { ...given, threadId: known.threadId };
  const task = updated(known ?? taskOfReport(report), report);
  switch (report.kind) {
    case "progress":
      return { task, decision: null, queue: null };
    case "cancelled": {
      // [W29] In the widget the task's card says who stopped it; a source that nobody knows may be the widget.
      const untold = task.source !== "web" && task.source !== "";
      return { task, decision: untold ? sayByCode(report, task, "notice", "stopped: who did is told once", turn) : null, queue: null };
    }
    case "answer":
      return { task, decision: sayByCode(report, task, "relay", "an answer beside the work", turn), queue: null };
    case "paused":
    case "waiting":
    case "notice":
      return { task, decision: sayByCode(report, task, "notice", `${report.kind}: told once`, turn), queue: null };
    case "done":
      if ((report.confidence ?? 0) >= confident && isSole(task, others))
        return { task, decision: sayByCode(report, task, "relay", "a confident result of the thread's only task", turn), queue: null };
      return { task, decision: null, queue: queuedReport(report) };
    case "question":
    case "blocked":
    case "failed":
    case "overdue":
    case "proposal":
      return { task, decision: null, queue: queuedReport(report) };
  }
}

const isSole = (task: KnownTask, others: readonly KnownTask[]): boolean =>
  !others.some((other) => other.id !== task.id && isOpen(other) && other.threads.includes(task.threadId));

export const queuedReport = (report: Report): QueuedReport => ({
  kind: "report",
  id: report.id,
  lane: laneOfReport(report),
  threadId: report.threadId,
  attempts: 0,
  tries: 0,
  problem: null,
  report,
});

/** A task that this router does not know: its own record was lost, the report is enough to go on. */
const taskOfReport = (report: Report): KnownTask => ({
  id: report.taskId,
  title: report.title,
  threadId: report.threadId,
  threads: [report.threadId],
  decisionId: "",
  authority: report.authority,
  tainted: report.tainted,
  // What the report says of it is applied as to any other task.
  status: "running",
  line: "",
  machine: null,
  source: "",
  place: "",
  // Nobody's but its own: nothing flows into a task of which nothing is known.
  audience: report.threadId,
  hops: 0,
  startedMs: report.atMs,
  updatedMs: 0,
  endedMs: null,
});

function updated(task: KnownTask, report: Report): KnownTask {
  const tainted = task.tainted || report.tainted;
  // Reports may come late and in any order; an ended task stays ended.
  if (report.atMs < task.updatedMs || !isOpen(task)) return { ...task, tainted };
  return {
    ...task,
    tainted,
    status: report.status,
    line: excerpt(report.text.replace(/\s+/g, " ").trim(), 160),
    updatedMs: report.atMs,
    endedMs: finalStatuses.includes(report.status) ? report.atMs : null,
  };
}

/** [RR2] The id is of the report alone: a report is said once, by whomever. */
function sayByCode(report: Report, task: KnownTask, kind: "relay" | "notice", reason: string, turn: number, note = ""): PlannedDecision {
  const id = makeId("dec", "report", report.id);
  return {
    id,
    turn,
    lane: laneOfReport(report),
    tool: "relay",
    by: "code",
    settles: [report.id],
    reason,
    authority: report.tainted ? "public" : report.authority,
    taskId: report.taskId,
    threadId: report.threadId,
    effects: [
      postEffect(
        id,
        whereReported(report, task),
        kind,
        reportInForm(report, task.source, note === "" ? report.text : `${note}\n\n${report.text}`),
        outcomeOf(report),
      ),
    ],
  };
}

/** [RR3] People must hear it: a report that the model left undecided is said by code. */
export const relayUndecided = (item: QueuedReport, task: KnownTask | null, turn: number): PlannedDecision =>
  sayByCode(
    item.report,
    task ?? taskOfReport(item.report),
    "relay",
    `undecided ${limits.maxDecisionAttempts} times`,
    turn,
    `The task "${excerpt(item.report.title, 80)}" reports (${item.report.kind}):`,
  );

/** [RR4] A trigger that stays undecided goes to a human; people of the team are told that it did. */
export function escalate(item: QueuedTrigger, why: FaultWords, turn: number, nowMs: number, quiet = false): PlannedDecision {
  const id = makeId("dec", "escalate", item.id);
  const question = `${why.detail ?? why.message} ${item.trigger.principal.name} wrote in ${item.trigger.source} ${item.trigger.place}: "${excerpt(item.trigger.text, 300)}"`;
  const to = whereAsked(item.trigger);
  return {
    id,
    turn,
    lane: item.lane,
    tool: "ask_human",
    by: "code",
    settles: [item.id],
    reason: why.message,
    authority: "public",
    threadId: item.threadId,
    effects:
      quiet || item.lane === "public" || isUnasked([item])
        ? []
        : [postEffect(id, to, "notice", "I could not decide what to do with this, so I have asked the team's operators.")],
    question: { id, lane: item.lane, threads: [to], text: question },
    notice: { id, atMs: nowMs, kind: "question", text: question, threadId: item.threadId },
  };
}
