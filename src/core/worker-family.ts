// Children of a task: started with a share of its allowance, heard through their reports, stopped with it. And hand-offs between profiles.
import type { TaskId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { ModelUsage } from "../protocol/model.ts";
import type { Profile } from "../protocol/profile.ts";
import { finalStatuses, type Report, type Spend, type TaskStart } from "../protocol/task.ts";
import type { WorkerCall } from "../protocol/worker-tools.ts";
import { excerpt } from "./context.ts";
import { childId, makeId } from "./ids.ts";
import { chooseProfile } from "./profile-name.ts";
import { profileNamed, shippedProfiles } from "./profiles.ts";
import { isSameWork } from "./same-work.ts";
import { learnedRate } from "./token-rate.ts";
import { oneLine } from "./worker-card.ts";
import { inboxEvent } from "./worker-context.ts";
import { finishCancel } from "./worker-end.ts";
import { addReport, type Change, type Child, changeOf, type InboxRow, onBehalf, releasedStep, type TaskState } from "./worker-state.ts";

type Spawn = Extract<WorkerCall, { tool: "spawn" }>;
type HandOff = Extract<WorkerCall, { tool: "hand_off" }>;
export type Spoken = { output: object } | { refused: string };

export const openChildren = (task: TaskState): Child[] => task.children.filter(({ open }) => open);

/** Model calls that a task may still give away: its own next one stays. */
const spare = (task: TaskState): number => Math.max(0, task.allowance - task.steps - 1);

/** [WC1] A child takes its share out of the allowance at once, so that all of a family together never have more than the cap. */
export function spawnChild(change: Change, call: Spawn, step: number, saved: readonly Profile[], nowMs: number): Spoken {
  const { task } = change;
  const { start } = task;
  const { title, goal, share, deadlineMinutes } = call.input;
  const depth = (start.parent?.depth ?? 0) + 1;
  if (depth > limits.maxFamilyDepth) return { refused: "A child of a child starts no children of its own. Do it yourself." };
  if (task.children.length >= limits.maxChildrenPerTask)
    return { refused: `This task has started ${limits.maxChildrenPerTask} children already; that is all it may.` };
  if (share > spare(task)) return { refused: `You have ${spare(task)} model calls that you may give away, not ${share}.` };
  const wanted = call.input.profile === undefined ? task.profile : chooseProfile([...shippedProfiles, ...saved], call.input.profile);
  if ("problem" in wanted) return { refused: wanted.problem };
  const profile = profileNamed(wanted.name, saved);
  const last = task.children.at(-1);
  if (last && isSameWork({ profile: last.profile, text: last.goal }, { profile: profile.name, text: goal }))
    return { refused: `${last.taskId} has just been given the same. Ask it, or give the child another way or another profile.` };
  const taskId = makeId("tsk", start.taskId, step, call.callId);
  const ownDeadlineMs = deadlineMinutes === undefined ? start.deadlineMs : nowMs + Math.round(deadlineMinutes * 60_000);
  const { deadlineMs: _parents, ...rest } = start;
  const childStart: TaskStart = {
    ...rest,
    taskId,
    title: excerpt(title, 120),
    goal,
    tainted: task.tainted,
    profile: profile.name,
    maxModelCalls: share,
    ...(ownDeadlineMs === undefined ? {} : { deadlineMs: ownDeadlineMs }),
    parent: { taskId: start.taskId, depth },
    atMs: nowMs,
  };
  const lostMs = (ownDeadlineMs ?? nowMs + limits.childDeadlineMs) + limits.childLostMs;
  task.children = [...task.children, { taskId, title: childStart.title, goal, profile: profile.name, share, open: true, lostMs }];
  task.allowance -= share;
  task.line = `started: ${childStart.title}`;
  change.effects.push({ effect: "start_child", start: childStart });
  change.events.push({
    kind: "task.spawned",
    child: taskId,
    title: childStart.title,
    profile: profile.name,
    share,
    allowance: task.allowance,
  });
  return { output: { started: taskId, share, left: task.allowance - step } };
}

const childOf = (task: TaskState, id: TaskId): Child | undefined => task.children.find(({ taskId }) => taskId === id);

export function tellChild(change: Change, id: TaskId, text: string, step: number, callId: string): Spoken {
  const child = childOf(change.task, id);
  if (!child) return { refused: `${id} is no child of this task.` };
  if (!child.open) return { refused: `${id} has ended.` };
  change.effects.push({ effect: "tell_child", taskId: id, id: `${change.task.start.taskId}:${step}:${callId}`, text });
  return { output: { told: id } };
}

export function stopChild(change: Change, id: TaskId): Spoken {
  const child = childOf(change.task, id);
  if (!child) return { refused: `${id} is no child of this task.` };
  if (!child.open) return { output: { ended: id } };
  change.effects.push({
    effect: "cancel_child",
    taskId: id,
    by: onBehalf(change.task, "its parent task"),
    reason: "its parent stopped it",
  });
  return { output: { stopping: id } };
}

/** [WC2] A child reports to its parent. Its end gives back what it did not spend, and acknowledges a cancel that came down. */
export function childReported(task: TaskState, row: InboxRow, report: Report, unread: readonly InboxRow[], nowMs: number): Change {
  const change = changeOf(task, `a child reports: ${report.kind}`);
  const next = change.task;
  change.events.push(inboxEvent(row.key, row.item));
  const child = childOf(task, report.taskId);
  if (child?.open && finalStatuses.includes(report.status)) {
    const returned = task.mode.mode === "ended" ? 0 : Math.max(0, Math.min(child.share, report.callsLeft ?? 0));
    next.allowance += returned;
    next.spent = addSpend(task.spent, report.spent);
    next.children = task.children.map((each) => (each.taskId === child.taskId ? { ...each, open: false } : each));
    change.events.push({
      kind: "task.child",
      child: child.taskId,
      report: report.id,
      kindOfReport: report.kind,
      returned,
      allowance: next.allowance,
    });
  }
  // [WC5] That a lost one is stopped is what its parent asked for: no news.
  else if (child !== undefined && report.kind === "cancelled") next.quiet = [...task.quiet, row.key];
  const { mode } = task;
  if (mode.mode === "ended") {
    change.consumed = { seqs: [row.seq], step: releasedStep };
    return change;
  }
  if (mode.mode === "cancelling" && finalStatuses.includes(report.status)) {
    const unstopped = mode.unstopped.filter((id) => id !== report.taskId);
    if (unstopped.length > 0) next.mode = { ...mode, unstopped };
    else finishCancel(change, mode, unread, nowMs);
    return change;
  }
  if (mode.mode === "working") next.line = oneLine(`${report.title}: ${report.text}`);
  return change;
}

/** What was spent, and more of it as far as it is known. */
const addSpend = (a: Spend, b: Partial<Spend> | null | undefined): Spend => ({
  calls: a.calls + (b?.calls ?? 0),
  inputTokens: a.inputTokens + (b?.inputTokens ?? 0),
  outputTokens: a.outputTokens + (b?.outputTokens ?? 0),
});

/** What an answer cost, and what its provider counted of the request. */
export function countUsage(task: TaskState, usage: ModelUsage | null, estimatedTokens: number): void {
  task.spent = addSpend(task.spent, usage);
  task.tokenRate = learnedRate(task.tokenRate, estimatedTokens, usage);
}

/** [WC3] A hand-off is a record: from, to, why, what is known, at which step. After four of them a human decides. */
export function handOff(change: Change, call: HandOff, step: number, saved: readonly Profile[], nowMs: number): Spoken {
  const { task } = change;
  const { reason, summary } = call.input;
  const wanted = chooseProfile([...shippedProfiles, ...saved], call.input.profile);
  if ("problem" in wanted) return { refused: wanted.problem };
  const to = profileNamed(wanted.name, saved);
  if (to.name === task.profile.name) return { refused: `You work as ${to.name} already.` };
  if (task.handOffs >= limits.maxHandOffs) {
    const text = `This task was handed on ${limits.maxHandOffs} times and is not done. ${reason}\n\nWhat is known:\n${summary}\n\nWhat should happen with it?`;
    task.mode = { mode: "asking" };
    task.line = oneLine(text);
    addReport(change, { id: childId("rep", task.start.taskId, step, call.callId), kind: "blocked", text, status: "waiting", nowMs });
    return { output: { asked_a_person: `handed on ${limits.maxHandOffs} times already` } };
  }
  const from = task.profile.name;
  task.handOffs += 1;
  task.before = [...(task.before ?? []), { throughStep: step, profile: task.profile }];
  task.profile = to;
  task.retried = false;
  task.again = true;
  task.line = `handed on to ${to.name}`;
  task.notices = [
    ...task.notices,
    `This task was handed on from ${from} to ${to.name}, hand-off ${task.handOffs} of ${limits.maxHandOffs}: ${reason} You are ${to.name} from here on. What is known: ${summary}`,
  ];
  change.events.push({ kind: "task.hand_off", from, to: to.name, reason, summary, step, count: task.handOffs });
  return { output: { handed_to: to.name } };
}
