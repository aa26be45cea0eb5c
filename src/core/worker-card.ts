// What people see of a task, derived from its state: status, one line, and the one notice that a machine is awaited.
import type { CommandSpec, SettledCommand } from "../protocol/command.ts";
import type { TaskCard, TaskStatus } from "../protocol/task.ts";
import type { WorkerCall } from "../protocol/worker-tools.ts";
import { excerpt } from "./context.ts";
import { childId } from "./ids.ts";
import { addReport, type Change, type TaskState, type WorkerCommand } from "./worker-state.ts";

const maxLineChars = 200;

/** The first line of a text, short enough for a card. */
export const oneLine = (text: string): string =>
  excerpt(
    text
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ?? "",
    maxLineChars,
  );

/** What a call does, in a few words. */
export function lineOfCall(call: WorkerCall): string {
  switch (call.tool) {
    case "run_command":
      return oneLine(call.input.script);
    case "push":
      return "pushing its branch";
    case "propose":
      return `proposing a ${call.input.what.replace("_", " ")}`;
    case "read_file":
      return `reading ${call.input.path}`;
    case "write_file":
      return `writing ${call.input.path}`;
    case "edit_file":
      return `editing ${call.input.path}`;
    case "list_files":
      return `listing ${call.input.path ?? "files"}`;
    case "search_files":
      return `searching for ${call.input.query}`;
    case "stop_command":
      return "stopping a command";
    case "read_output":
      return "reading more output";
    case "subscribe":
      return `following ${call.input.thread}`;
    case "unsubscribe":
      return `leaving ${call.input.thread}`;
    case "hand_back":
      return `handing back ${call.input.trigger}`;
    case "recall":
      return `reading ${call.input.id}`;
    case "report":
      return oneLine(call.input.text);
    case "note":
      return `noting a ${call.input.kind}`;
    case "spawn":
      return `starting a child: ${oneLine(call.input.title)}`;
    case "tell_child":
      return "telling a child";
    case "stop_child":
      return "stopping a child";
    case "hand_off":
      return `handing on to ${call.input.profile}`;
    case "wait":
      return call.input.reason === "" ? "waiting" : `waiting: ${call.input.reason}`;
  }
}

/** How a command ended, in a few words: `npm test · exit 1`. */
export function lineOfResult(what: string, result: SettledCommand): string {
  switch (result.outcome) {
    case "exited":
      return result.exitCode === null ? `${what} · ended by ${result.signal ?? "a signal"}` : `${what} · exit ${result.exitCode}`;
    case "outcome_unknown":
      return `${what} · outcome unknown`;
    case "timed_out":
      return `${what} · timed out`;
    case "stopped":
    case "refused":
    case "expired":
    case "void":
      return `${what} · ${result.outcome}`;
  }
}

/** Words for a command that a machine is asked for. */
export function whatOf(spec: CommandSpec): string {
  switch (spec.kind) {
    case "shell":
      return oneLine(spec.script);
    case "push":
      return "pushing its branch";
    case "keep":
      return "keeping its commit";
    case "push_kept":
      return `pushing ${spec.sha.slice(0, 10)} to its branch`;
    default:
      return spec.kind.replace("_", " ");
  }
}

/** What a status is shown as, and for whom or what it waits. */
function statusOf(task: TaskState, open: readonly WorkerCommand[]): { status: TaskStatus; waitingFor?: string; line: string } {
  const { mode, line } = task;
  switch (mode.mode) {
    case "ended":
      return { status: mode.status, line };
    case "cancelling":
      return { status: "cancelling", line: mode.offline === null ? "stopping" : `stopping, ${mode.offline} offline` };
    case "paused":
      return { status: "paused", line };
    case "asking":
      return { status: "waiting", waitingFor: "you", line };
    case "waiting": {
      const running = open.find((command) => command.online);
      // Who waits for its own command is at work: that is what people want to know.
      if (running !== undefined) return { status: "running", line: running.what };
      return { status: "waiting", waitingFor: awaitedMachine(open) ?? "event", line };
    }
    case "working": {
      if (task.steps === 0) return { status: "queued", line };
      const held =
        task.open.kind === "none" && open.length === 0 && !task.again ? task.offers.find(({ stage }) => stage === "held") : undefined;
      if (held !== undefined) return { status: "waiting", waitingFor: "release", line: oneLine(`Release? ${held.title}`) };
      const machine = task.open.kind === "none" ? awaitedMachine(open) : null;
      return machine === null ? { status: "running", line } : { status: "waiting", waitingFor: machine, line };
    }
  }
}

/** The machine that everything open waits for, or null. */
function awaitedMachine(open: readonly WorkerCommand[]): string | null {
  const first = open[0];
  return first && open.every((command) => !command.online) ? first.machine : null;
}

const refsOf = (task: TaskState): string[] => task.backlog.map(({ ref }) => ref);

/** The revision of the list of queued messages, with what a change under way does to it. */
export const backlogRevision = (task: TaskState): number =>
  (task.card.backlogRevision ?? 0) + ((task.card.backlog ?? []).join() === refsOf(task).join() ? 0 : 1);

type Seen = ReturnType<typeof statusOf>;

/**
 * Ends every change: derives the card, raises its revision when people would see a difference, and says once that a machine is awaited.
 * `open` are the open commands as they are after the change.
 */
export function withCard(change: Change, open: readonly WorkerCommand[], nowMs: number): Change {
  const { task } = change;
  const before = task.card;
  const seen = statusOf(task, open);
  tellAwaited(change, seen, open, nowMs);
  const next = cardOf(task, seen);
  const isNew = before.revision === 0;
  const statusChanged = isNew || before.status !== next.status;
  if (statusChanged) change.events.push({ kind: "task.status", from: isNew ? "new" : before.status, to: next.status, why: change.why });
  // A step that has only begun is not worth a revision: its end follows.
  const stepEnded = before.modelCalls !== next.modelCalls && task.open.kind !== "calling";
  if (!statusChanged && !stepEnded && looksAlike(before, next)) return change;
  task.card = { ...next, updatedMs: nowMs, revision: before.revision + 1 };
  // First, so that a thread has the last card before it lets go of the task.
  change.effects.unshift(
    ...task.threads.map((threadId) => ({ effect: "card" as const, to: threadId })),
    { effect: "card", to: "board" },
    { effect: "card", to: "index" },
  );
  return change;
}

function tellAwaited(change: Change, { status, waitingFor }: Seen, open: readonly WorkerCommand[], nowMs: number): void {
  const { task } = change;
  if (status !== "waiting" || waitingFor === undefined || waitingFor !== awaitedMachine(open) || task.awaited.includes(waitingFor)) return;
  task.awaited = [...task.awaited, waitingFor];
  addReport(change, {
    id: childId("rep", task.start.taskId, "waiting", waitingFor),
    kind: "waiting",
    text: `Waiting for ${waitingFor}; I start as soon as it is back.`,
    status: "waiting",
    nowMs,
  });
}

/** The card as the task stands now, with the revision and the time of the one before. */
function cardOf(task: TaskState, seen: Seen): TaskCard {
  const { waitingFor: _gone, endedMs: _ended, accepted: _accepted, backlog: _queued, offers: _held, ...rest } = task.card;
  const backlog = refsOf(task);
  const listed = backlogRevision(task);
  const offers = task.offers.filter(({ stage }) => stage === "held").map(({ id, title, text }) => ({ id, title, text }));
  return {
    ...rest,
    ...seen,
    line: excerpt(seen.line, maxLineChars),
    modelCalls: task.steps,
    ...(task.mode.mode === "ended" ? { endedMs: task.mode.endedMs } : {}),
    ...(task.accepted === null ? {} : { accepted: task.accepted }),
    ...(backlog.length === 0 ? {} : { backlog }),
    ...(listed === 0 ? {} : { backlogRevision: listed }),
    ...(offers.length === 0 ? {} : { offers }),
  };
}

const offered = ({ offers = [] }: TaskCard): string => offers.map(({ id }) => id).join();

const looksAlike = (before: TaskCard, next: TaskCard): boolean =>
  before.waitingFor === next.waitingFor &&
  before.line === next.line &&
  before.backlogRevision === next.backlogRevision &&
  before.accepted === next.accepted &&
  offered(before) === offered(next);
