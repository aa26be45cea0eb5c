// What people say to a worker that is busy: seen at the next step, kept in a backlog, or first of all the end of what runs.
// Every row that is handed over is taken or refused with a reason; none is dropped.
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import type { Amended } from "../protocol/task.ts";
import type { Amendment, MoveTo, Trigger } from "../protocol/trigger.ts";
import { isPerson } from "./authority.ts";
import { childId } from "./ids.ts";
import { backlogRevision } from "./worker-card.ts";
import { noteChecks } from "./worker-checks.ts";
import { inboxEvent } from "./worker-context.ts";
import { cancelTask, mayDecide, releaseRows, voidCall } from "./worker-end.ts";
import { resumeTask } from "./worker-session.ts";
import {
  addReport,
  type Change,
  changeOf,
  heldStep,
  type InboxItem,
  type InboxRow,
  rejectedStep,
  releasedStep,
  type TaskState,
  triggerOf,
  type WorkerCommand,
} from "./worker-state.ts";

export type InputFacts = {
  threadId: string | null;
  /** Rows that no step took, those of the backlog and the new ones too. */
  unread: readonly InboxRow[];
  open: readonly WorkerCommand[];
  nowMs: number;
};

/** [WI1] New rows entered the inbox; each is taken, kept in the backlog, or refused with a reason. */
export function received(task: TaskState, rows: readonly InboxRow[], facts: InputFacts): Change {
  const change = changeOf(task, "something arrived");
  if (facts.threadId !== null && !task.threads.includes(facts.threadId)) change.task.threads = [...task.threads, facts.threadId];
  if (task.mode.mode === "ended") {
    for (const { key, item } of rows) change.events.push(inboxEvent(key, item));
    releaseRows(change, rows);
    // A subscription that came into being while the task ended.
    if (facts.threadId !== null && rows.some(({ item }) => triggerOf(item) !== null))
      change.effects.push({ effect: "unsubscribe", threadId: facts.threadId, reason: "the task has ended" });
    return change;
  }
  const known = new Set(task.backlog.map(({ key }) => key));
  let waiting = facts.unread.filter(({ key, seq }) => !known.has(key) && !rows.some((row) => row.seq === seq)).length;
  const taken: InboxRow[] = [];
  for (const row of rows) {
    const trigger = triggerOf(row.item);
    const full = refusal(change.task, row.item, waiting);
    if (full !== null) {
      reject(change, row, full, facts.nowMs);
      continue;
    }
    change.events.push(inboxEvent(row.key, row.item, task));
    if (trigger?.amends !== undefined && isPerson(trigger.principal)) {
      const { triggerId, change: what, ...to } = trigger.amends;
      const done = amend(change, { by: trigger.principal, itemId: triggerId, change: what, text: trigger.text, ...to }, facts.unread);
      if (done === "stale") tellStale(change, row.key, trigger.principal, facts.nowMs);
      // Once a step has taken the message, an edit is news and taking it back is a word like any other.
      if (done === "done" || what === "now" || what === "move") {
        change.moved.push({ seq: row.seq, step: releasedStep });
        change.events.push({ kind: "task.skipped", itemId: row.key, reason: amendedWords[done] });
        continue;
      }
    }
    if (trigger !== null && holds(trigger)) hold(change, row, trigger);
    else {
      waiting += 1;
      taken.push(row);
    }
  }
  noteChecks(change, taken);
  interruptFor(change, taken, facts.open);
  const answer = task.mode.mode === "paused" ? pauseAnswer(task, taken) : null;
  switch (answer?.word) {
    case "continue":
      return mergeInto(change, resumeTask(change.task, answer.by, limits.maxModelCallsPerTask, facts.nowMs));
    case "stop":
      return mergeInto(change, cancelTask(change.task, answer.by, "asked to stop", facts.unread, facts.open, facts.nowMs));
    case undefined:
      return change;
  }
}

/** [WI2] Why a row cannot be taken; null when it can. Results, and what a child says, always can: they are bounded by what was started. */
function refusal(task: TaskState, item: InboxItem, waiting: number): string | null {
  if (item.kind === "result" || item.kind === "child" || item.kind === "offer") return null;
  const trigger = triggerOf(item);
  if (trigger !== null && holds(trigger))
    return task.backlog.length < limits.maxBacklog ? null : `${limits.maxBacklog} messages are queued already`;
  return waiting < limits.maxPendingRows ? null : `${limits.maxPendingRows} rows are unread already`;
}

const holds = (trigger: Trigger): boolean => trigger.mode === "queue" && trigger.amends === undefined && isPerson(trigger.principal);

/** Refused, and said so: to a person for each message, for a flood of events once. */
function reject(change: Change, row: InboxRow, reason: string, nowMs: number): void {
  const { task } = change;
  const place = row.item.kind === "row" ? { threadId: row.item.threadId, threadSeq: row.item.row.seq } : {};
  change.moved.push({ seq: row.seq, step: rejectedStep });
  change.events.push({ kind: "task.rejected", itemId: row.key, ...place, reason });
  // Another task may hand it back later: then nobody waits for this one.
  if (row.item.kind === "row" && row.item.alsoWith.length > 0) {
    const { threadId, alsoWith, row: refused } = row.item;
    change.effects.push({ effect: "release", threadId, rows: [{ row: refused, alsoWith }], recordOnly: true });
  }
  const trigger = triggerOf(row.item);
  const byPerson = trigger !== null && isPerson(trigger.principal);
  const id = childId("rep", task.start.taskId, "rejected", byPerson ? row.key : reason);
  if (change.reports.some((report) => report.id === id)) return;
  const text = byPerson
    ? `I did not take the last message of ${trigger.principal.name}: ${reason}. Take one back, or say it again when I have reported.`
    : `I do not read new events for now: ${reason}.`;
  if (byPerson || !task.awaited.includes(id)) addReport(change, { id, kind: "notice", text, status: task.card.status, nowMs });
  if (!byPerson) task.awaited = [...task.awaited, id];
}

const amendedWords: Record<Amended, string> = {
  done: "a change of the backlog, which was made",
  late: "a change of the backlog, for which it was too late",
  stale: "a move in the backlog, which had changed meanwhile",
};

/** [WI9] Two who move the same list hear of each other: whoever saw an older one looks again. */
function tellStale(change: Change, key: string, by: Principal, nowMs: number): void {
  const text = `I left the order as it is, ${by.name}: what is queued has changed since you looked. Look at it and move your message again.`;
  const id = childId("rep", change.task.start.taskId, "stale", key);
  addReport(change, { id, kind: "notice", text, status: change.task.card.status, nowMs });
}

/** [WI3] A queued message waits until the current work has reported. */
function hold(change: Change, row: InboxRow, trigger: Trigger): void {
  change.task.backlog = [...change.task.backlog, { key: row.key, ref: trigger.externalId ?? trigger.id }];
  change.moved.push({ seq: row.seq, step: heldStep });
  change.events.push({ kind: "task.backlog", itemId: row.key, change: "hold", by: trigger.principal });
}

type Amending = { by: Principal; itemId: string; change: Amendment; text?: string | undefined } & MoveTo;

/** [WI4] Changes a message that no step took yet. */
function amend(change: Change, input: Amending, unread: readonly InboxRow[]): Amended {
  const { task } = change;
  const row = change.edited.find(({ key }) => key === input.itemId) ?? unread.find(({ key }) => key === input.itemId);
  const trigger = row && triggerOf(row.item);
  if (!row || !trigger || row.item.kind !== "row" || row.item.row.kind !== "trigger") return "late";
  if (change.moved.some(({ seq, step }) => seq === row.seq && step !== heldStep)) return "late";
  if (trigger.principal.id !== input.by.id && input.by.role !== "owner") return "late";
  const held = task.backlog.some(({ key }) => key === row.key);
  const forget = (): void => {
    task.backlog = task.backlog.filter(({ key }) => key !== row.key);
  };
  switch (input.change) {
    case "edit": {
      if (input.text === undefined || input.text.trim() === "") return "late";
      const item = { ...row.item, row: { ...row.item.row, trigger: { ...trigger, text: input.text } } };
      change.edited = [...change.edited.filter(({ key }) => key !== row.key), { ...row, item }];
      break;
    }
    case "withdraw":
      forget();
      change.moved.push({ seq: row.seq, step: releasedStep });
      break;
    case "now":
      if (!held) return "late";
      forget();
      change.moved.push({ seq: row.seq, step: null });
      break;
    case "move": {
      if (!held) return "late";
      const order = movedBefore(task.backlog, row.key, input.before ?? null);
      // It stands there already: a repeat, or somebody had the same wish.
      if (order?.every(({ key }, at) => key === task.backlog[at]?.key)) return "done";
      if (order === null || input.revision !== backlogRevision(task)) return "stale";
      task.backlog = order;
      change.events.push({ kind: "task.backlog", itemId: row.key, change: "move", by: input.by, before: input.before ?? null });
      return "done";
    }
  }
  const text = input.change === "edit" && input.text !== undefined ? { text: input.text } : {};
  change.events.push({ kind: "task.backlog", itemId: row.key, change: input.change, by: input.by, ...text });
  return "done";
}

/** [WI9] The list with one of its items before another, or last; null when that other one is not in it. */
function movedBefore<T extends { key: string }>(list: readonly T[], key: string, before: string | null): T[] | null {
  if (before === key) return [...list];
  const item = list.find((each) => each.key === key);
  const rest = list.filter((each) => each !== item);
  const at = before === null ? rest.length : rest.findIndex((each) => each.key === before);
  return item === undefined || at < 0 ? null : rest.toSpliced(at, 0, item);
}

/** The console's way to change a message of the backlog: what became of it, and the change when there is one. */
export function amendMessage(task: TaskState, input: Amending, unread: readonly InboxRow[]): { outcome: Amended; change: Change | null } {
  if (task.mode.mode === "ended") return { outcome: "late", change: null };
  const change = changeOf(task, "a queued message was changed");
  const outcome = amend(change, input, unread);
  return { outcome, change: outcome === "done" ? change : null };
}

/** [WI5] The first message of the backlog is the next input; what it asks for gets an allowance as new work does. */
export function takeNext(change: Change, backlog: readonly InboxRow[]): void {
  const { task } = change;
  const [first] = task.backlog;
  const row = backlog.find(({ key }) => key === first?.key);
  if (first === undefined || row === undefined) return;
  task.backlog = task.backlog.slice(1);
  task.allowance = Math.max(task.allowance, task.steps + task.start.maxModelCalls);
  task.retried = false;
  change.moved.push({ seq: row.seq, step: null });
  change.events.push({ kind: "task.backlog", itemId: row.key, change: "next" });
}

/** [WI6] An interrupt is a stop of what runs, not of the task: it needs what a stop needs; from anybody else it is a message. */
function interruptFor(change: Change, taken: readonly InboxRow[], open: readonly WorkerCommand[]): void {
  const { task } = change;
  const by = taken
    .flatMap(({ item }) => triggerOf(item) ?? [])
    .find((trigger) => trigger.mode === "interrupt" && isPerson(trigger.principal) && mayDecide(task, trigger.principal))?.principal;
  if (by === undefined || task.mode.mode === "cancelling" || task.mode.mode === "paused") return;
  for (const { endpointId, commandId } of open)
    change.effects.push({ effect: "stop", endpointId, commandId, why: `${by.name} interrupted the task` });
  const step = task.open.kind === "calling" ? task.open.step : null;
  if (step !== null) voidCall(change);
  task.mode = { mode: "working" };
  task.line = `Interrupted by ${by.name}`;
  const stopped = open.length === 0 ? "" : ` ${open.length === 1 ? "The command that ran is" : "All commands that ran are"} being stopped.`;
  task.notices = [...task.notices, `${by.name} interrupted you.${stopped} Do what the message says before anything else.`];
  change.events.push({ kind: "task.interrupted", by, step, commands: open.map(({ commandId }) => commandId) });
}

const mergeInto = (first: Change, second: Change | null): Change =>
  second === null
    ? first
    : {
        ...second,
        events: [...first.events, ...second.events],
        effects: [...first.effects, ...second.effects],
        reports: [...first.reports, ...second.reports],
        // What the second one gives back is no longer set aside by the first.
        moved: first.moved.filter(({ seq }) => second.consumed?.seqs.includes(seq) !== true),
        edited: first.edited,
      };

/** "Continue or stop?" may be answered in words, where there is no button. Code reads it: exactly one word, from someone who may decide. */
function pauseAnswer(task: TaskState, rows: readonly InboxRow[]): { word: "continue" | "stop"; by: Principal } | null {
  for (const { item } of rows) {
    const trigger = triggerOf(item);
    if (trigger === null) continue;
    const word = /^\s*(?:@\S+\s+)?(continue|stop)\s*[.!]?\s*$/i.exec(trigger.text)?.[1]?.toLowerCase();
    if ((word === "continue" || word === "stop") && mayDecide(task, trigger.principal)) return { word, by: trigger.principal };
  }
  return null;
}
