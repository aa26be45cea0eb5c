// Decisions of a worker session: when it steps, what a step takes, and what a fault, a cancel or a person's word changes.
// The rules are numbered in SPEC.md. Everything is pure: state and facts in, one change out.
import type { CommandState, SettledCommand } from "../protocol/command.ts";
import type { WorkerItem } from "../protocol/context-items.ts";
import type { Fault, FaultWords } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import { defaultProfile, type Profile } from "../protocol/profile.ts";
import type { TaskStart } from "../protocol/task.ts";
import { retryAtMs } from "./alarms.ts";
import { faultFor, taskAudience } from "./audience.ts";
import { atLeast, authorityOf } from "./authority.ts";
import { branchKeyOf, branchOf, repositoryName } from "./branch.ts";
import { renderMessage } from "./context.ts";
import { childId } from "./ids.ts";
import { profileNamed } from "./profiles.ts";
import { lineOfResult } from "./worker-card.ts";
import { noteChecks, ownership } from "./worker-checks.ts";
import { mayBeShorter } from "./worker-compact.ts";
import { goalItem, inboxEvent, isContext, isTainting, itemsOf, wakes } from "./worker-context.ts";
import { noteKept, releasedPushed } from "./worker-draft.ts";
import { endTask, finishCancel, requireAuthority } from "./worker-end.ts";
import { follow } from "./worker-follow.ts";
import { awaitsOffer } from "./worker-offers.ts";
import {
  addReport,
  type Change,
  changeOf,
  type InboxRow,
  newTask,
  onBehalf,
  releasedStep,
  type TaskState,
  type Tombstone,
  type WorkerCommand,
} from "./worker-state.ts";

export type Move =
  /** Nothing to do until something arrives, or the time comes. */
  | { move: "sleep"; untilMs: number | null }
  | { move: "begin" }
  | { move: "pause" }
  /** The deadline has passed and the router does not know it yet. */
  | { move: "overdue" }
  /** A step's message is in the transcript and has no answer yet. */
  | { move: "call" };

/** [W1] The one question of the step loop. */
export function nextMove(task: TaskState, pending: readonly InboxRow[], open: readonly WorkerCommand[], nowMs: number): Move {
  const overdueMs = task.start.deadlineMs !== undefined && !task.overdue ? task.start.deadlineMs : null;
  if (overdueMs !== null && overdueMs <= nowMs && task.mode.mode !== "ended") return { move: "overdue" };
  const asleep: Move = { move: "sleep", untilMs: task.mode.mode === "ended" ? null : overdueMs };
  switch (task.mode.mode) {
    case "ended":
    case "cancelling":
    case "paused":
      return asleep;
    case "working":
    case "asking":
    case "waiting":
      break;
  }
  if (task.open.kind === "calling") {
    const { retryAtMs: atMs } = task.open;
    return atMs !== null && atMs > nowMs
      ? { move: "sleep", untilMs: earliest([atMs, ...(overdueMs === null ? [] : [overdueMs])]) }
      : { move: "call" };
  }
  if (task.open.kind === "reading") return asleep;
  const idle = open.length === 0 && !task.children.some((child) => child.open) && !awaitsOffer(task);
  const due = alarmsOf(task);
  const wake = task.steps === 0 || task.again || pending.some((row) => wakes(row, task, open)) || due.some(({ atMs }) => atMs <= nowMs);
  // Nothing under way and nothing to wait for: a task never just stops.
  if (!wake && !(task.mode.mode === "working" && idle))
    return { move: "sleep", untilMs: earliest([...due.map(({ atMs }) => atMs), ...(overdueMs === null ? [] : [overdueMs])]) };
  return task.steps >= task.allowance ? { move: "pause" } : { move: "begin" };
}

const earliest = (timesMs: readonly number[]): number | null => (timesMs.length === 0 ? null : Math.min(...timesMs));

/** The task's own alarms, each with what the model is told when it rings. */
function alarmsOf(task: TaskState): { atMs: number; notice: string }[] {
  const { mode, start } = task;
  return [
    ...(mode.mode === "waiting" && mode.untilMs !== null
      ? [{ atMs: mode.untilMs, notice: "The time that you asked to wait for is over." }]
      : []),
    ...(start.deadlineMs !== undefined && !task.deadlineTold
      ? [{ atMs: start.deadlineMs, notice: "The deadline of this task has passed. Report what you have." }]
      : []),
    ...task.children
      .filter((child) => child.open)
      .map((child) => ({
        atMs: child.lostMs,
        notice: `${child.taskId} ("${child.title}") has not reported its end in time: it counts as lost, and is stopped. Its share does not come back; go on without it.`,
      })),
  ];
}

/** A task starts; after a cancel with enough authority it starts ended, so that everybody who already knows of it hears so. */
export function startTask(
  start: TaskStart,
  threads: string[],
  tombstone: Tombstone | null,
  pending: readonly InboxRow[],
  nowMs: number,
  profile: Profile = profileNamed(start.profile),
): Change {
  const change = changeOf(newTask(start, threads, nowMs, profile), "dispatched by the router");
  const { task } = change;
  // A profile of its own brings its own budget; a child's, and a speculative one's, is what it was given.
  if (start.parent === undefined && start.speculative !== true && (profile.version > 0 || profile.name !== defaultProfile))
    task.allowance = profile.modelCalls;
  change.events.push({
    kind: "task.started",
    title: start.title,
    goal: start.goal,
    triggerId: start.quote.triggerId,
    decisionId: start.decisionId,
    authority: start.authority,
    tainted: start.tainted,
    machine: start.endpoint?.name ?? null,
    threadId: start.threadId,
  });
  if (tombstone !== null && atLeast(authorityOf(tombstone.by), start.authority)) {
    task.epoch += 1;
    finishCancel(change, tombstone, pending, nowMs);
  }
  return change;
}

/** Takes what is in the inbox into the next message, and with it the lease of the model call. */
export function beginStep(
  task: TaskState,
  pending: readonly InboxRow[],
  facts: { agentName: string; model: string; nowMs: number },
): Change {
  const { nowMs } = facts;
  const change = changeOf(task, "a step began");
  const taken = pending.filter(({ item }) => ownership(task, item) !== "unclaimed").slice(0, limits.maxStepRows);
  const next = change.task;
  const step = task.steps + 1;
  const lost = task.children.filter((child) => child.open && child.lostMs <= nowMs);
  const rung = alarmsOf(task).filter(({ atMs }) => atMs <= nowMs);
  // [W5] Before the model sees it.
  next.tainted = task.tainted || taken.some(({ item }) => isTainting(item, task));
  next.quiet = task.quiet.filter((key) => !taken.some((row) => row.key === key));
  // [WF2] What came from outside may be a reason to do the same again.
  if (taken.some(({ item }) => item.kind !== "result" && !isContext(item, task))) next.recent = [];
  const notices: WorkerItem[] = [...rung.map(({ notice }) => notice), ...task.notices].map((text) => ({ item: "notice", text }));
  const items: WorkerItem[] = [...(task.steps === 0 ? [goalItem(next)] : []), ...itemsOf(taken, task, facts.agentName), ...notices];
  next.steps = step;
  next.mode = { mode: "working" };
  next.open = { kind: "calling", step, attempts: 1, retryAtMs: null };
  next.again = false;
  next.notices = [];
  // [WC5] Wherever it is, it goes on with nothing that nobody waits for.
  for (const child of lost)
    change.effects.push({
      effect: "cancel_child",
      taskId: child.taskId,
      by: onBehalf(task, "its parent task"),
      reason: "it was not done in time",
    });
  next.children = task.children.map((child) => (lost.includes(child) ? { ...child, open: false } : child));
  next.deadlineTold ||= task.start.deadlineMs !== undefined && task.start.deadlineMs <= nowMs;
  next.lease = { epoch: task.lease.epoch + 1, untilMs: nowMs + limits.leaseMs };
  change.messages.push({ role: "user", text: renderMessage({ step, of: task.allowance }, items) });
  change.consumed = { seqs: taken.map(({ seq }) => seq), step };
  change.events.push({ kind: "task.model", step, phase: "reserve", model: facts.model, consumed: taken.map(({ key }) => key) });
  return change;
}

/** [W6] The same call once more, with the same bytes: after a fault, or because whoever made it is gone (`lost`). */
export function callAgain(task: TaskState, facts: { lost: boolean; model: string; nowMs: number }): Change {
  if (task.open.kind !== "calling") throw new Error("there is no model call to repeat");
  const change = changeOf(task, "a model call is repeated");
  const next = change.task;
  const { step, attempts } = task.open;
  if (facts.lost) {
    change.events.push({ kind: "task.model", step, phase: "failed", model: facts.model, consumed: [], error: "lost: its process ended" });
    const notice =
      "Restarted: the last step was interrupted and its model call repeated. Commands that were started were not started again.";
    if (!next.notices.includes(notice)) next.notices = [...next.notices, notice];
    if (attempts >= limits.maxModelAttempts) {
      pauseForModel(change, `I could not ask the model ${limits.maxModelAttempts} times: it was interrupted again and again.`, facts.nowMs);
      return change;
    }
  }
  next.open = { kind: "calling", step, attempts: facts.lost ? attempts + 1 : attempts, retryAtMs: null };
  next.lease = { epoch: task.lease.epoch + 1, untilMs: facts.nowMs + limits.leaseMs };
  change.events.push({ kind: "task.model", step, phase: "reserve", model: facts.model, consumed: [] });
  return change;
}

const mended = "Operators see it in the console; once it is mended, tell me to try again.";

/**
 * [W7] A model call failed: later again with back-off, at last a pause; or never, then the task fails with what is to be fixed.
 * [W28] Only this request is refused: the older part of a long one is put aside, else people decide whether what came last is left out.
 */
export function callFailed(
  task: TaskState,
  fault: Pick<Fault, "kind" | "retry" | "retryAfterMs"> & FaultWords,
  pending: readonly InboxRow[],
  open: readonly WorkerCommand[],
  facts: { model: string; ms: number; nowMs: number; estimatedTokens: number },
): Change {
  if (task.open.kind !== "calling") throw new Error("there is no model call that could fail");
  const change = changeOf(task, "the model could not be asked");
  const { step, attempts } = task.open;
  const { nowMs } = facts;
  const error = fault.detail ?? fault.message;
  const words = faultFor(fault, taskAudience(task.start), task.start.authority);
  change.events.push({ kind: "task.model", step, phase: "failed", model: facts.model, consumed: [], ms: facts.ms, error });
  if (fault.retry === "never" && ["provider", "too_large", "internal"].includes(fault.kind)) {
    if (mayBeShorter(task, facts.estimatedTokens) && task.refused?.step !== step - 1) leaveOut(change, step, "older");
    else pauseForModel(change, `I cannot go on. ${words}`, nowMs, "refused");
    return change;
  }
  if (fault.retry === "never") {
    endTask(
      change,
      { status: "failed", text: `The model cannot be used, so I stopped. ${words} ${mended}`, key: "model" },
      pending,
      open,
      nowMs,
    );
    return change;
  }
  if (attempts >= limits.maxModelAttempts) {
    pauseForModel(change, `I could not ask the model ${limits.maxModelAttempts} times: ${words}`, nowMs);
    return change;
  }
  const atMs = Math.max(retryAtMs(nowMs, attempts - 1), nowMs + (fault.retryAfterMs ?? 0));
  change.task.open = { kind: "calling", step, attempts: attempts + 1, retryAtMs: atMs };
  change.task.line = `The model does not answer; trying again in ${Math.ceil((atMs - nowMs) / 1000)} s`;
  return change;
}

/** What a step could not be made with is put aside before the next, which begins at once. */
function leaveOut(change: Change, step: number, what: "older" | "all"): void {
  const { task } = change;
  const left = task.refused?.left ?? [];
  task.refused = { step, leaveOut: what, left: what === "all" ? [...left, step] : left };
  task.open = { kind: "none" };
  task.again = true;
  change.events.push({ kind: "task.left_out", step, what });
}

/** `refused`: asking again would end the same way. So it is taken for a call that was given up twice, too. */
function pauseForModel(change: Change, reason: string, nowMs: number, cause: "model" | "refused" = "model"): void {
  const { task } = change;
  const step = task.open.kind === "calling" ? task.open.step : task.steps;
  const why = task.refused?.step === step ? "refused" : cause;
  task.mode = { mode: "paused", why };
  task.refused = { step, leaveOut: null, left: task.refused?.left ?? [] };
  const choice = why === "model" ? "Continue or stop?" : "Continue without what came last, or stop?";
  task.line = why === "model" ? `The model does not answer. ${choice}` : `The model refuses my input. ${choice}`;
  addReport(change, {
    id: childId("rep", task.start.taskId, "paused", "model", task.steps, task.lease.epoch),
    kind: "paused",
    text: `${reason} ${choice}`,
    status: "paused",
    nowMs,
  });
}

/** [W8] The allowance is used up and there is more to do. */
export function pauseTask(task: TaskState, nowMs: number): Change {
  const change = changeOf(task, "out of budget");
  change.task.mode = { mode: "paused", why: "allowance" };
  const text = `I have used my allowance of ${task.allowance} steps. Continue or stop?`;
  change.task.line = text;
  addReport(change, { id: childId("rep", task.start.taskId, "paused", task.allowance), kind: "paused", text, status: "paused", nowMs });
  return change;
}

/** [WF3] The router hears of a deadline once, when it passes, whatever the task is about. */
export function tellOverdue(task: TaskState, nowMs: number): Change {
  const change = changeOf(task, "the deadline has passed");
  change.task.overdue = true;
  const { title } = task.start;
  addReport(change, {
    id: childId("rep", task.start.taskId, "overdue"),
    kind: "overdue",
    text: `The deadline of "${title}" has passed and it is not done. Last: ${task.line}`,
    status: task.card.status,
    nowMs,
  });
  return change;
}

/** Another allowance for a paused task. In any other state it changes nothing, so a repeated click grants nothing twice. */
export function resumeTask(task: TaskState, by: Principal, modelCalls: number, nowMs: number): Change | null {
  requireAuthority(task, by, "continue");
  if (task.mode.mode !== "paused") return null;
  const change = changeOf(task, `continued by ${by.name}`);
  if (task.mode.why === "allowance") {
    const granted = Math.max(1, Math.min(Math.floor(modelCalls), limits.maxModelCallsPerTask * 4));
    change.task.allowance = Math.max(task.allowance, task.steps) + granted;
  }
  if (task.mode.why === "refused") leaveOut(change, task.refused?.step ?? task.steps, "all");
  else if (task.open.kind === "calling") change.task.open = { ...task.open, attempts: 1, retryAtMs: nowMs };
  change.task.mode = { mode: "working" };
  change.task.line = `Continued by ${by.name}`;
  return change;
}

/** A command of this task ended. */
export function commandSettled(
  task: TaskState,
  command: WorkerCommand,
  result: SettledCommand,
  row: InboxRow | null,
  pending: readonly InboxRow[] = [],
): Change {
  const change = changeOf(task, "a result arrived");
  if (row === null) return change;
  const detail = lineOfResult(command.what, result);
  change.commands.push({
    ...command,
    open: false,
    ended: detail,
    ...(result.output.spilled ? { artifactId: result.output.artifactId } : {}),
  });
  change.events.push(inboxEvent(row.key, row.item), {
    kind: "task.tool",
    step: command.step,
    callId: command.callId,
    tool: command.tool,
    phase: "done",
    commandId: command.commandId,
    detail,
  });
  if (command.tool === "push") {
    noteKept(change, command, result);
    notePush(change, command, result, pending);
    releasedPushed(change, command, result);
  }
  if (task.mode.mode === "ended") change.consumed = { seqs: [row.seq], step: releasedStep };
  else if (task.mode.mode !== "paused") change.task.line = detail;
  return change;
}

/** [W24] A push to a repository that has a name enters the ledger, and the task follows its branch; events that came before this word are looked at again. */
function notePush(change: Change, command: WorkerCommand, { pushed, endedMs }: SettledCommand, pending: readonly InboxRow[]): void {
  const { task } = change;
  const { taskId } = task.start;
  task.pushing = task.pushing.filter((id) => id !== command.commandId);
  if (pushed === undefined || pushed.branch !== branchOf(taskId) || !repositoryName.test(pushed.place)) return;
  if (task.pushes.at(-1)?.sha !== pushed.sha) {
    task.pushes = [...task.pushes, { ...pushed, atMs: endedMs }];
    task.checks = null;
  }
  noteChecks(change, pending);
  if (task.mode.mode === "ended") return;
  const threadKey = branchKeyOf(taskId);
  follow(change, { source: "github", place: pushed.place, threadKey, title: `Branch ${pushed.branch}` });
}

/** A command waits for its machine, or is on its way again. */
export function commandMoved(
  task: TaskState,
  command: WorkerCommand,
  input: { state: CommandState; machine: string; online: boolean },
): Change | null {
  if (!command.open || input.state === "settled") return null;
  if (command.online === input.online && command.machine === input.machine) return null;
  const change = changeOf(task, input.online ? `${input.machine} is back` : `${input.machine} is offline`);
  change.commands.push({ ...command, online: input.online, machine: input.machine });
  return change;
}
