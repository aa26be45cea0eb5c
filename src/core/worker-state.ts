// The state of one worker session, and the shape of every change to it: data in, data out.
import type { Command, NamedCommit, SettledCommand } from "../protocol/command.ts";
import type { TaskEvent } from "../protocol/events.ts";
import type { ArtifactId, CommandId, EndpointId, TaskId, ThreadId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { ModelMessage } from "../protocol/model.ts";
import type { Offer, OfferKind, OfferState, PullDraft } from "../protocol/offer.ts";
import type { Authority, Principal } from "../protocol/principal.ts";
import type { Profile } from "../protocol/profile.ts";
import type { ThreadRpc } from "../protocol/rpc.ts";
import type { Note, Report, Spend, TaskCard, TaskStart, ThreadNote } from "../protocol/task.ts";
import type { DeliveredRow, OutboundState, ThreadRow } from "../protocol/thread.ts";
import type { Trigger } from "../protocol/trigger.ts";
import type { MachineTool } from "../protocol/worker-tools.ts";
import { profileNamed } from "./profiles.ts";

/** What the task is about to do. What people see of it (`TaskStatus`) follows from this, the open step and the open commands. */
type Mode =
  | { mode: "working" }
  /** A question or an obstacle was reported; the next row wakes it. */
  | { mode: "asking" }
  | { mode: "waiting"; untilMs: number | null; reason: string }
  | { mode: "paused"; why: "allowance" | "model" | "refused" }
  | { mode: "cancelling"; by: Principal; reason: string; unstopped: (EndpointId | TaskId)[]; offline: string | null }
  | { mode: "ended"; status: "done" | "failed" | "cancelled"; endedMs: number };

/** The step under way. `calling`: its message is in the transcript and a model call is out, lost or to be retried; `reading`: its reads are not all answered. */
type OpenStep =
  | { kind: "none" }
  | { kind: "calling"; step: number; attempts: number; retryAtMs: number | null }
  | { kind: "reading"; step: number };

/** Rows of the transcript from one number to another, both included. */
export type Segment = { id: string; fromRow: number; toRow: number };

/** A child, as its parent keeps it. `lostMs`: without an end by then it counts as lost. */
export type Child = { taskId: TaskId; title: string; goal: string; profile: string; share: number; open: boolean; lostMs: number };

/** Something that the task proposed. `stage`: that of the offer until it is released, then that of its entry in the outbound ledger, if it has one. */
export type TaskOffer = {
  id: string;
  kind: OfferKind;
  title: string;
  text: string;
  /** `proposed`: on its way to its thread. */
  stage: "proposed" | OfferState | OutboundState;
};

/** A commit that the task's machine pushed to its branch, by the daemon's own word. */
type Push = NonNullable<SettledCommand["pushed"]> & { atMs: number };
/** A commit that is kept on the machine, by the daemon's own word, and the folder that it is in. `changes`: null when they are too long to be read. */
type KeptCommit = NamedCommit & { from: NonNullable<WorkerCommand["from"]>; changes: string | null };

/** A pull request that was not released yet, with the call that proposed it. `offerId`: where this task offered it itself. `pushing`: the command that carries out its release. */
export type TaskDraft = PullDraft & {
  title: string;
  commit: KeptCommit;
  step: number;
  callId: string;
  tainted: boolean;
  offerId?: string;
  released?: NonNullable<Offer["releasedAs"]>;
  pushing?: CommandId;
};
/** Checks of the last push: whether any is known, whether one failed, and each suite's conclusion. */
type HeadChecks = { seen: boolean; failed: boolean; suites: Record<string, string> };

export type TaskState = {
  start: TaskStart;
  /** As it was when the task started, or was handed over; a later edit does not change work under way. */
  profile: Profile;
  /** Profiles before the hand-offs, oldest first, each with the last step that was made under it. */
  before?: { throughStep: number; profile: Profile }[];
  mode: Mode;
  open: OpenStep;
  /** Steps begun: what the allowance counts. */
  steps: number;
  allowance: number;
  /** Raised by a cancel; commands carry it. */
  epoch: number;
  /** Whose model call may commit its answer. */
  lease: { epoch: number; untilMs: number };
  tainted: boolean;
  /** The last step's results are new to the model and nothing else will wake it. */
  again: boolean;
  deadlineTold: boolean;
  /** The router has heard that the deadline passed. */
  overdue: boolean;
  /** Queued messages, oldest first: inbox key, and the source's own id of each. */
  backlog: { key: string; ref: string }[];
  children: Child[];
  offers: TaskOffer[];
  /** Proposals that were made in all. */
  proposals: number;
  /** Of a task that may push nothing yet: the last commit that its machine kept, and the pull request that waits for a person. */
  kept?: KeptCommit;
  draft?: TaskDraft;
  /** The ledger of pushes, oldest first, and the commands of those that are under way. */
  pushes: Push[];
  pushing: CommandId[];
  checks: HeadChecks | null;
  /** Keys of unread rows that wake nothing. */
  quiet: string[];
  /** Parts of the transcript that were put aside, oldest first. What stands for all of them is a row of its own: it is long, and this is written at each step. */
  aside: { segments: Segment[] } | null;
  /** How many tokens the provider counts for one that we estimate, in the last request. */
  tokenRate: number;
  /** The last step whose call was given up, what is put aside before the next (the older part, or all), and steps that are left out for good. */
  refused?: { step: number; leaveOut: "older" | "all" | null; left: number[] };
  notes: number;
  handOffs: number;
  /** Commands that were started in all. */
  commands: number;
  /** The one retry of a failure was used up. */
  retried: boolean;
  /** What was spent beside the own steps: the children's calls, and tokens of all. */
  spent: Spend;
  /** The step whose report came back because it was too long; the next one is taken as it is. */
  shorter?: number | undefined;
  /** Replies without any call, in a row; and the last calls, as keys under which near-identical ones meet. */
  mute: number;
  recent: string[];
  /** Notices of code for the next message. */
  notices: string[];
  threads: ThreadId[];
  /** Of these, what it follows by code: its branch and its pull request. */
  ownThreads?: ThreadId[];
  /** Machines whose absence people have heard of. */
  awaited: string[];
  line: string;
  /** Ids of the openings after an end. */
  reopened?: string[];
  /** A person's word on the outcome. */
  accepted: boolean | null;
  card: TaskCard;
};

/** A cancel that came before the start. */
export type Tombstone = { by: Principal; reason: string };

export type InboxItem =
  | { kind: "row"; threadId: ThreadId; row: ThreadRow; alsoWith: DeliveredRow["alsoWith"] }
  | { kind: "result"; tool: MachineTool; result: SettledCommand }
  | { kind: "tell"; id: string; text: string; authority: Authority; tainted: boolean }
  | { kind: "child"; report: Report }
  /** What became of a proposal. */
  | { kind: "offer"; id: string; text: string };

export type InboxRow = { seq: number; key: string; item: InboxItem };

/** The event that a row brought; null for everything else. */
export const triggerOf = (item: InboxItem | null): Trigger | null =>
  item?.kind === "row" && item.row.kind === "trigger" ? item.row.trigger : null;

/** A command of this task. `online` is false while it waits for its machine. */
export type WorkerCommand = {
  commandId: CommandId;
  endpointId: EndpointId;
  step: number;
  callId: string;
  tool: MachineTool;
  what: string;
  open: boolean;
  online: boolean;
  machine: string;
  artifactId?: ArtifactId;
  /** Of one that keeps a commit: where. */
  from?: { workspace: string; cwd?: string };
  /** How it ended, in a few words. */
  ended?: string;
};

/** A call of a step and its one result; null until its read is answered. */
export type StepCall = { step: number; callId: string; tool: string; output: string | null; tainting: boolean };

export type WorkerRead =
  /** `audience`: who reads what the task says; null for its own objects. */
  | { read: "recall"; id: string; page: number; audience: string | null }
  /** A change of the thread, whose answer the model gets. */
  | { read: "subscribe"; threadId: ThreadId; decisionId: string; audience: string }
  | { read: "output"; endpointId: EndpointId; commandId: CommandId; offset: number; limit: number };

/** What must happen elsewhere. Every one may be repeated. A card effect carries no card: the latest one is sent. */
export type WorkerEffect =
  | { effect: "submit"; endpointId: EndpointId; command: Command }
  | { effect: "stop"; endpointId: EndpointId; commandId: CommandId; why: string }
  | { effect: "stop_task"; endpointId: EndpointId; epoch: number }
  /** Somebody asks for it now: its commands wait for nobody any more. */
  | { effect: "asked"; endpointId: EndpointId }
  /** To the router, or to the parent of a child. */
  | { effect: "report"; report: Report }
  /** A note, for the other workers of its thread. */
  | { effect: "note"; threadId: ThreadId; note: ThreadNote }
  | { effect: "start_child"; start: TaskStart }
  | { effect: "tell_child"; taskId: TaskId; id: string; text: string }
  | { effect: "cancel_child"; taskId: TaskId; by: Principal; reason: string }
  | { effect: "card"; to: "board" | "index" | ThreadId }
  | { effect: "offer"; threadId: ThreadId; input: Parameters<ThreadRpc["offer"]>[0] }
  /** A proposal that waits is taken back. */
  | { effect: "withdraw"; threadId: ThreadId; outboundId: string; by: Principal; reason: string }
  /** To the thread of its own branch or pull request, from the first row on; made where nothing has happened in it yet. */
  | { effect: "follow"; threadId: ThreadId; decisionId: string; about: NonNullable<Parameters<ThreadRpc["subscribe"]>[0]["about"]> }
  /** `byWorker`: by its own choice, so the router is told. */
  | { effect: "unsubscribe"; threadId: ThreadId; reason: string; byWorker?: true }
  /** `recordOnly`: given up by a cancel, nobody decides on it again. */
  | { effect: "release"; threadId: ThreadId; rows: DeliveredRow[]; recordOnly?: true }
  | { effect: "read"; step: number; callId: string; read: WorkerRead };

/** Everything that one decision changes; committed in one transaction. */
export type Change = {
  task: TaskState;
  /** Why the status changed, if it did. */
  why: string;
  events: TaskEvent[];
  effects: WorkerEffect[];
  /** Effects of these kinds that were not carried out are void. */
  voided: WorkerEffect["effect"][];
  messages: ModelMessage[];
  /** Inbox rows that a step took, or that an ended task gave up. */
  consumed: { seqs: number[]; step: number } | null;
  /** Rows that were put aside (`heldStep` …), or that wait for a step again (null). */
  moved: { seq: number; step: number | null }[];
  /** Rows whose text a person changed before a step took them. */
  edited: InboxRow[];
  calls: StepCall[];
  commands: WorkerCommand[];
  reports: Report[];
  notes: Note[];
};

/** Stand in for the step of rows that no step took: given back, kept in the backlog, refused. */
export const releasedStep = -1;
export const heldStep = -2;
export const rejectedStep = -3;

/** An empty change over a copy of the state: its own fields may be assigned. */
export const changeOf = (task: TaskState, why = ""): Change => ({
  task: { ...task },
  why,
  events: [],
  effects: [],
  voided: [],
  messages: [],
  consumed: null,
  moved: [],
  edited: [],
  calls: [],
  commands: [],
  reports: [],
  notes: [],
});

/** The key under which an item enters the inbox once. */
export function inboxKey(item: InboxItem): string {
  switch (item.kind) {
    case "row":
      return rowId(item.row, item.threadId);
    case "result":
      return `result:${item.result.commandId}`;
    case "tell":
      return `tell:${item.id}`;
    case "child":
      return item.report.id;
    case "offer":
      return `offer:${item.id}`;
  }
}

function rowId(row: ThreadRow, threadId: ThreadId): string {
  switch (row.kind) {
    case "trigger":
      return row.trigger.id;
    case "outbound":
      return row.outbound.id;
    case "topic":
      return `topic:${threadId}:${row.seq}`;
  }
}

/** A task as it begins. */
export function newTask(start: TaskStart, threads: ThreadId[], nowMs: number, profile: Profile = profileNamed(start.profile)): TaskState {
  const line = "Waiting for its first step";
  return {
    start,
    profile,
    mode: { mode: "working" },
    open: { kind: "none" },
    steps: 0,
    allowance: Math.max(1, Math.min(start.maxModelCalls, limits.maxModelCallsPerTask * 4)),
    epoch: 1,
    lease: { epoch: 0, untilMs: 0 },
    tainted: start.tainted,
    again: false,
    deadlineTold: false,
    overdue: false,
    backlog: [],
    children: [],
    offers: [],
    proposals: 0,
    pushes: [],
    pushing: [],
    checks: null,
    quiet: [],
    aside: null,
    tokenRate: 1,
    notes: 0,
    handOffs: 0,
    commands: 0,
    retried: false,
    spent: { calls: 0, inputTokens: 0, outputTokens: 0 },
    mute: 0,
    recent: [],
    notices: [],
    // A child hears its parent alone, and what nobody asked for is heard of nowhere.
    threads: [...new Set(start.parent === undefined && start.speculative !== true ? [start.threadId, ...threads] : threads)],
    awaited: [],
    line,
    accepted: null,
    card: {
      taskId: start.taskId,
      threadId: start.threadId,
      title: start.title,
      status: "queued",
      ...(start.endpoint === null ? {} : { machine: start.endpoint.name }),
      line,
      ...(start.speculative === true ? { speculative: true } : {}),
      modelCalls: 0,
      startedMs: nowMs,
      updatedMs: nowMs,
      revision: 0,
    },
  };
}

/** A state that an earlier version kept, with what it did not know yet. */
export const completeTask = (stored: Partial<TaskState> & Pick<TaskState, "start">): TaskState => ({
  ...newTask(stored.start, [], stored.start.atMs),
  ...stored,
});

/** A worker session as somebody who acts for its task; `name`: as what it is known to whom it acts on. */
export const onBehalf = (task: TaskState, name: "its task" | "its parent task"): Principal => ({
  role: "agent",
  id: task.start.taskId,
  name,
  onBehalfOf: task.start.authority,
});

/** All that a task has spent so far. */
export const spentOf = ({ steps, spent }: TaskState): Spend => ({ ...spent, calls: steps + spent.calls });

const shownDraft = ({ threadId, text, deed, sha, changes }: PullDraft): PullDraft => ({ threadId, text, deed, sha, changes });

/** Makes a report and everything that goes with it. */
export function addReport(
  change: Change,
  input: Pick<Report, "id" | "kind" | "text" | "confidence" | "straightforward" | "offer" | "status"> & { nowMs: number },
): void {
  const { start, tainted, draft } = change.task;
  const report: Report = {
    id: input.id,
    taskId: start.taskId,
    kind: input.kind,
    title: start.title,
    text: input.text.slice(0, 20_000),
    ...(input.confidence === undefined ? {} : { confidence: input.confidence }),
    ...(input.offer === undefined ? {} : { offer: input.offer }),
    ...(input.straightforward === true ? { straightforward: true } : {}),
    threadId: start.threadId,
    authority: start.authority,
    tainted,
    status: input.status,
    ...(start.parent === undefined ? {} : { callsLeft: Math.max(0, change.task.allowance - change.task.steps) }),
    spent: spentOf(change.task),
    ...(input.kind === "done" && start.speculative === true && draft !== undefined ? { draft: shownDraft(draft) } : {}),
    atMs: input.nowMs,
  };
  change.reports.push(report);
  change.events.push({ kind: "task.report", report });
  change.effects.push({ effect: "report", report });
}
