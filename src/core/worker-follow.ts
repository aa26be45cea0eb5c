// Threads that a worker follows by its own choice, events that it hands back, and a task that is opened again after its end.

import { Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { Offer } from "../protocol/offer.ts";
import type { Principal } from "../protocol/principal.ts";
import type { Profile } from "../protocol/profile.ts";
import type { TaskStart } from "../protocol/task.ts";
import type { DeliveredRow } from "../protocol/thread.ts";
import { handedBackRule } from "../protocol/trigger.ts";
import { taskAudience } from "./audience.ts";
import { excerpt } from "./context.ts";
import { makeId, threadIdOf } from "./ids.ts";
import type { CommandMaker } from "./worker-calls.ts";
import { oneLine } from "./worker-card.ts";
import { pushReleased } from "./worker-draft.ts";
import { requireAuthority } from "./worker-end.ts";
import { type Change, changeOf, type InboxItem, type TaskState, type WorkerCommand, type WorkerRead } from "./worker-state.ts";

/** Threads that one task follows. */
const maxThreads = 10;

/** [W20] Why a task may not follow a thread; null when it may. */
export function whyNotFollow(task: TaskState, threadId: string, readable: boolean): string | null {
  if (!/^thr_[a-z0-9]+$/.test(threadId)) return "A thread has an id that starts with thr_.";
  if (!readable) return "This task is not of the team alone, so it follows only its own threads.";
  return task.threads.length < maxThreads || task.threads.includes(threadId)
    ? null
    : `A task follows at most ${maxThreads} threads. Leave one first.`;
}

/** [A9] Whoever hears the task must be among those who may hear the thread: the thread itself looks. */
export const followRead = ({ start }: TaskState, threadId: string, decisionId: string): WorkerRead => ({
  read: "subscribe",
  threadId,
  decisionId,
  audience: taskAudience(start),
});

/** [W24] The thread of its own branch or pull request, from its first row on: by code, not by the worker's choice. */
export function follow(change: Change, about: { source: string; place: string; threadKey: string; title: string }): void {
  const { task } = change;
  const threadId = threadIdOf(about.source, about.place, about.threadKey);
  task.ownThreads = [...new Set([...(task.ownThreads ?? []), threadId])];
  if (task.threads.includes(threadId)) return;
  task.threads = [...task.threads, threadId];
  change.effects.push({ effect: "follow", threadId, decisionId: makeId("dec", task.start.taskId, "own", threadId), about });
}

/** [W20] The end of a thread's following, asked for by the worker. The thread that gets the answer stays. */
export function leaveThread(change: Change, threadId: string, reason: string): string | null {
  const { task } = change;
  if (threadId === task.start.threadId) return "This task answers in that thread. Report its end instead.";
  if (!task.threads.includes(threadId)) return "This task does not follow that thread.";
  task.threads = task.threads.filter((each) => each !== threadId);
  change.effects.push({ effect: "unsubscribe", threadId, reason: excerpt(reason, 200), byWorker: true });
  return null;
}

/** [W21] An event goes back to the router, once, when all tasks that got it have released it. Null when it can, else why not. */
export function handBack(change: Change, item: InboxItem | null, input: { trigger: string; reason: string }): string | null {
  const { trigger: triggerId, reason } = input;
  const { task } = change;
  if (item?.kind !== "row" || item.row.kind !== "trigger") return `${triggerId} is no event that this task got.`;
  if (triggerId === task.start.quote.triggerId) return "That is what this task was asked for. Report instead.";
  // What a worker says after it read public text is no word for the team's lane.
  const why = task.tainted ? "a task handed it back" : `${task.start.taskId} handed it back: ${excerpt(reason, 200)}`;
  const row: DeliveredRow = {
    row: { ...item.row, verdict: { outcome: "candidate", rule: handedBackRule, reason: why } },
    alsoWith: item.alsoWith,
  };
  change.events.push({ kind: "task.released", threadId: item.threadId, threadSeqs: [item.row.seq] });
  change.effects.push({ effect: "release", threadId: item.threadId, rows: [row] });
  return null;
}

/** [SP5] A person asked for what this task does already: it is theirs now, and goes on with all that it knows. Twice is once. */
export function adoptTask(task: TaskState, start: TaskStart, open: readonly WorkerCommand[]): Change | null {
  if (task.start.speculative !== true) return null;
  const change = changeOf(task, `asked for by ${start.quote.from.name}`);
  const next = change.task;
  // Where it works stays, and the goal that it works on: the new words reach it as a message.
  next.start = { ...start, goal: task.start.goal, profile: task.start.profile, endpoint: task.start.endpoint ?? start.endpoint };
  next.tainted = task.tainted || start.tainted;
  next.threads = [...new Set([start.threadId, ...task.threads])];
  next.allowance = Math.max(task.allowance, start.maxModelCalls);
  next.deadlineTold = false;
  next.overdue = false;
  const { speculative: _, ...card } = task.card;
  next.card = { ...card, threadId: start.threadId };
  next.line = oneLine(`Asked for by ${start.quote.from.name}`);
  for (const endpointId of new Set(open.map((command) => command.endpointId))) change.effects.push({ effect: "asked", endpointId });
  const { draft } = task;
  delete next.draft;
  if (task.mode.mode === "ended" && task.mode.status === "done" && draft !== undefined && !task.tainted) {
    // [SP8] Its work is done but for what only an asked task may do. Their words follow.
    goOn(next, true);
    next.notices = [
      ...task.notices,
      `This task goes on: somebody asks for what you have drafted. Your draft of a pull request is none any more: where it is what they ask for, \`push\` its commit (${draft.sha.slice(0, 10)}) and \`propose\` it; else change it first.`,
    ];
    change.events.push({ kind: "task.reopened", id: start.decisionId, by: start.quote.from, text: "" });
  } else if (task.mode.mode === "ended") {
    next.line = task.line;
    change.effects.push({ effect: "unsubscribe", threadId: start.threadId, reason: "the task has ended" });
  }
  change.events.push({ kind: "task.adopted", by: start.quote.from, threadId: start.threadId, decisionId: start.decisionId });
  return change;
}

export type Reopening = {
  id: string;
  by: Principal;
  /** The router's words; empty when a row that is on its way says it all. */
  text: string;
  tainted: boolean;
  /** Another machine than before. */
  endpoint?: NonNullable<TaskStart["endpoint"]>;
  profile?: Profile;
  /** Who released the draft that it made when nobody had asked. */
  released?: NonNullable<Offer["releasedAs"]>;
};

/** [W22] An ended task goes on with all that it knows and another allowance. The same opening, or one of an open task, changes nothing. */
export function reopenTask(task: TaskState, input: Reopening, facts: { commandFor: CommandMaker; nowMs: number }): Change | null {
  requireAuthority(task, input.by, "open again");
  const known = task.reopened ?? [];
  if (task.mode.mode !== "ended" || known.includes(input.id)) return null;
  const change = changeOf(task, `opened again by ${input.by.name}`);
  const next = change.task;
  next.reopened = [...known, input.id];
  if (input.profile !== undefined && input.profile.name !== task.profile.name) {
    // [WC3] The router's other path is a hand-off too, and counts as one.
    if (task.handOffs >= limits.maxHandOffs)
      throw new Fault("conflict", `This task was handed on ${limits.maxHandOffs} times already: a person has to decide.`);
    const [from, to] = [task.profile.name, input.profile.name];
    next.handOffs = task.handOffs + 1;
    next.before = [...(task.before ?? []), { throughStep: task.steps, profile: task.profile }];
    next.profile = input.profile;
    const about = { reason: "the router took another path", summary: excerpt(input.text, 500) };
    change.events.push({ kind: "task.hand_off", from, to, ...about, step: task.steps, count: next.handOffs });
  }
  // [SP8] Whoever opens it again wants it: from here on it is a task like any other.
  const { speculative: _unasked, ...start } = task.start;
  next.start = input.endpoint === undefined ? start : { ...start, endpoint: input.endpoint };
  const { speculative: _silent, ...card } = task.card;
  next.card = card;
  next.tainted = task.tainted || input.tainted;
  goOn(next, input.text === "");
  next.threads = [task.start.threadId];
  next.notices = [
    ...task.notices,
    `This task was opened again.${input.text === "" ? "" : ` From the router: ${input.text}`}${input.endpoint === undefined ? "" : ` It works on ${input.endpoint.name} now.`}${next.profile.name === task.profile.name ? "" : ` You are ${next.profile.name} from here on.`}`,
  ];
  next.line = oneLine(input.text === "" ? "Opened again" : `Opened again: ${input.text}`);
  change.events.push({ kind: "task.reopened", id: input.id, by: input.by, text: excerpt(input.text, 500) });
  if (input.released !== undefined && task.draft !== undefined) {
    // The result of the push wakes it.
    next.again = false;
    pushReleased(change, input.released, facts);
  }
  return change;
}

/** Another allowance, and a clean slate; without words it waits for a row that is on its way. */
function goOn(task: TaskState, waits: boolean): void {
  task.mode = waits ? { mode: "asking" } : { mode: "working" };
  task.again = !waits;
  task.allowance = task.steps + limits.maxModelCallsPerTask;
  task.mute = 0;
  task.accepted = null;
  task.deadlineTold = true;
  task.overdue = true;
  task.retried = false;
  task.recent = [];
}
