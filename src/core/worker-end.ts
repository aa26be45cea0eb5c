// How a task ends: by its own report, by a fault, or by a person's word. What is left open is stopped, what nobody read is given back.
import { Fault } from "../protocol/fault.ts";
import type { EndpointId } from "../protocol/ids.ts";
import type { Principal } from "../protocol/principal.ts";
import type { DeliveredRow } from "../protocol/thread.ts";
import { atLeast, authorityOf, laneOf } from "./authority.ts";
import { childId, ownerOf } from "./ids.ts";
import { oneLine } from "./worker-card.ts";
import {
  addReport,
  type Change,
  changeOf,
  type InboxRow,
  onBehalf,
  releasedStep,
  type TaskState,
  type WorkerCommand,
  type WorkerEffect,
} from "./worker-state.ts";

/** [W29] Whoever has the task's authority may decide about it; a person below the team about what they asked for themselves, and nothing else. */
export function mayDecide({ start: { authority, quote } }: Pick<TaskState, "start">, by: Principal): boolean {
  if (!atLeast(authorityOf(by), authority)) return false;
  const inTeam = laneOf(authorityOf(by)) === "team" || by.role === "agent";
  return inTeam || (by.role === quote.from.role && by.id === quote.from.id);
}

/** Refuses a person who may not decide about the task. */
export function requireAuthority(task: TaskState, by: Principal, what: string): void {
  if (mayDecide(task, by)) return;
  const { authority } = task.start;
  const who =
    laneOf(authority) === "team"
      ? `someone with the authority of a${authority === "owner" ? "n" : ""} ${authority}`
      : "whoever asked for it, or a member of the team,";
  throw new Fault("forbidden", `Only ${who} may ${what} this task.`);
}

/** [W9] Cancel is code: what is out becomes void, and the machine is asked to end what runs there. */
export function cancelTask(
  task: TaskState,
  by: Principal,
  reason: string,
  pending: readonly InboxRow[],
  open: readonly WorkerCommand[],
  nowMs: number,
): Change | null {
  requireAuthority(task, by, "stop");
  if (task.mode.mode === "ended" || task.mode.mode === "cancelling") return null;
  const change = changeOf(task, `stopped by ${by.name}`);
  const next = change.task;
  next.epoch = task.epoch + 1;
  change.voided.push("submit", "stop", "read", "report", "offer", "follow");
  const machines: EndpointId[] = [...new Set(open.map((command) => command.endpointId))];
  // [WC4] A stop goes down the family: the task is stopped when its machines and its children are.
  const children = task.children.filter((child) => child.open).map((child) => child.taskId);
  const unstopped = [...machines, ...children];
  if (unstopped.length === 0) {
    finishCancel(change, { by, reason }, pending, nowMs);
    return change;
  }
  change.events.push({ kind: "task.cancel", by, epoch: next.epoch, reason });
  voidCall(change);
  next.mode = { mode: "cancelling", by, reason, unstopped, offline: null };
  for (const endpointId of machines) change.effects.push({ effect: "stop_task", endpointId, epoch: next.epoch });
  for (const child of children)
    change.effects.push({ effect: "cancel_child", taskId: child, by, reason: `its parent was stopped: ${reason}` });
  return change;
}

/** A machine has ended everything of this task, or is offline and will when it is back. */
export function machineStopped(
  task: TaskState,
  input: { endpointId: EndpointId; epoch: number; offline: boolean },
  pending: readonly InboxRow[],
  open: readonly WorkerCommand[],
  nowMs: number,
): Change | null {
  const { mode } = task;
  if (mode.mode !== "cancelling" || input.epoch < task.epoch || !mode.unstopped.includes(input.endpointId)) return null;
  const change = changeOf(task, `stopped by ${mode.by.name}`);
  if (input.offline) {
    const machine = open.find((command) => command.endpointId === input.endpointId)?.machine ?? task.start.endpoint?.name ?? "the machine";
    change.task.mode = { ...mode, offline: machine };
    return change;
  }
  const unstopped = mode.unstopped.filter((endpointId) => endpointId !== input.endpointId);
  change.commands.push(...open.filter(({ endpointId }) => endpointId === input.endpointId).map((command) => ({ ...command, open: false })));
  if (unstopped.length > 0) change.task.mode = { ...mode, unstopped, offline: null };
  else finishCancel(change, mode, pending, nowMs);
  return change;
}

export function finishCancel(change: Change, cancel: { by: Principal; reason: string }, pending: readonly InboxRow[], nowMs: number): void {
  const { task } = change;
  if (task.mode.mode !== "cancelling") change.events.push({ kind: "task.cancel", by: cancel.by, epoch: task.epoch, reason: cancel.reason });
  const queued = task.backlog.length;
  // They stood on the card as what comes next.
  const left =
    queued === 0
      ? ""
      : ` ${queued === 1 ? "A queued message was" : `${queued} queued messages were`} not begun: say again what is still wanted.`;
  endTask(change, { status: "cancelled", text: `Stopped by ${cancel.by.name}.${left}`, key: "cancelled" }, pending, [], nowMs);
}

/** The answer of a call that is out will find another epoch. */
export function voidCall(change: Change): void {
  change.task.open = { kind: "none" };
  change.task.lease = { epoch: change.task.lease.epoch + 1, untilMs: 0 };
}

/** [W10] The end: nothing stays open, nothing passes through any more, and rows that no step took go back to the router. */
export function endTask(
  change: Change,
  end: {
    status: "done" | "failed" | "cancelled";
    text: string;
    key: string;
    confidence?: number;
    straightforward?: boolean;
    callId?: string;
  },
  pending: readonly InboxRow[],
  open: readonly WorkerCommand[],
  nowMs: number,
): void {
  const { task } = change;
  const { taskId } = task.start;
  task.mode = { mode: "ended", status: end.status, endedMs: nowMs };
  task.line = oneLine(end.text);
  voidCall(change);
  addReport(change, {
    id: childId("rep", taskId, task.steps, end.callId ?? end.key),
    kind: end.status,
    text: end.text,
    ...(end.confidence === undefined ? {} : { confidence: end.confidence }),
    ...(end.straightforward === true ? { straightforward: true } : {}),
    status: end.status,
    nowMs,
  });
  for (const { endpointId, commandId } of open) change.effects.push({ effect: "stop", endpointId, commandId, why: "its task has ended" });
  // Whoever stops a task stops its children with it. What is held may still be released after a good end; a stop takes it back.
  if (end.status === "cancelled") change.effects.push(...withdrawals(task));
  else change.effects.push(...childrensEnds(task));
  task.backlog = [];
  releaseRows(change, pending);
  for (const threadId of task.threads) change.effects.push({ effect: "unsubscribe", threadId, reason: `the task is ${end.status}` });
}

const childrensEnds = (task: TaskState): WorkerEffect[] =>
  task.children
    .filter(({ open }) => open)
    .map(({ taskId }) => ({ effect: "cancel_child", taskId, by: onBehalf(task, "its parent task"), reason: "its parent has ended" }));

const withdrawals = (task: TaskState): WorkerEffect[] =>
  task.offers
    .filter(({ stage }) => stage === "held" || stage === "proposed")
    .map(({ id }) => ({
      effect: "withdraw",
      threadId: ownerOf(id, "thr") ?? "",
      outboundId: id,
      by: onBehalf(task, "its task"),
      reason: "its task was stopped",
    }));

/** Rows of an ended task: the router decides on those that it would have decided on; after a cancel they are only recorded. */
export function releaseRows(change: Change, pending: readonly InboxRow[]): void {
  const { task } = change;
  if (pending.length === 0) return;
  change.consumed = { seqs: pending.map(({ seq }) => seq), step: releasedStep };
  const byThread = new Map<string, DeliveredRow[]>();
  for (const { item } of pending) {
    if (item.kind !== "row" || item.row.kind !== "trigger" || item.row.trigger.id === task.start.quote.triggerId) continue;
    byThread.set(item.threadId, [...(byThread.get(item.threadId) ?? []), { row: item.row, alsoWith: item.alsoWith }]);
  }
  const cancelled = task.mode.mode === "ended" && task.mode.status === "cancelled";
  for (const [threadId, rows] of byThread) {
    change.events.push({ kind: "task.released", threadId, threadSeqs: rows.map(({ row }) => row.seq) });
    const asked = rows.filter(
      ({ row }) => row.kind === "trigger" && (row.verdict.outcome === "candidate" || row.verdict.outcome === "request"),
    );
    if (!cancelled && asked.length > 0) change.effects.push({ effect: "release", threadId, rows: asked });
    // Another task may hand it back later: then nobody waits for this one.
    if (cancelled && rows.some(({ alsoWith }) => alsoWith.length > 0))
      change.effects.push({ effect: "release", threadId, rows, recordOnly: true });
  }
}

/**
 * A person's word on the outcome of an ended task. [W30] A merge of what the task pushed is one whoever may merge there, also before the
 * task has said that it is done. [W31] A reaction is found late: what somebody said meanwhile stands.
 */
export function acceptTask(task: TaskState, by: Principal, accepted: boolean, heard?: { place: string } | { sign: string }): Change | null {
  const merged = heard !== undefined && "place" in heard ? heard : undefined;
  if (merged === undefined) requireAuthority(task, by, "judge");
  const judged =
    merged === undefined ? task.mode.mode === "ended" : task.pushes.some(({ place }) => place.toLowerCase() === merged.place.toLowerCase());
  const late = heard !== undefined && "sign" in heard && task.accepted !== null;
  if (!judged || late || task.accepted === accepted) return null;
  const how = heard === undefined ? "" : "place" in heard ? `: merged into ${heard.place}` : ` by a reaction (${heard.sign})`;
  const change = changeOf(task, `${accepted ? "accepted" : "rejected"} by ${by.name}${how}`);
  change.task.accepted = accepted;
  return change;
}

const maxMuteReplies = 2;

const unreadOf = ({ pending, backlog }: { pending: readonly InboxRow[]; backlog: readonly InboxRow[] }): InboxRow[] =>
  [...pending, ...backlog].sort((a, b) => a.seq - b.seq);

/** Text without a call reaches nobody: say so, twice, then give up. */
export function muteReply(
  change: Change,
  step: number,
  facts: { pending: readonly InboxRow[]; backlog: readonly InboxRow[]; open: readonly WorkerCommand[]; nowMs: number },
): Change {
  const { task } = change;
  task.mute += 1;
  if (task.mute > maxMuteReplies) {
    const text = "I could not finish this: the model kept answering without using any of its tools.";
    endTask(change, { status: "failed", text, key: `mute-${step}` }, unreadOf(facts), facts.open, facts.nowMs);
    return change;
  }
  task.notices = [...task.notices, "Use `report` to say something; nothing was sent."];
  task.again = true;
  return change;
}
