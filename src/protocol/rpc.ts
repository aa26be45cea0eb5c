// How objects speak to each other. Every method returns after its own durable write and never waits for another object;
// what must happen next is an effect row that the object's pump carries out. Every method may be repeated: ids make that harmless.
import type { BoardChange, BoardState } from "./board.ts";
import type { CommandState, QueuedCommand, SettledCommand } from "./command.ts";
import type { FactLine, MemoryAnswer, SearchAnswer } from "./console.ts";
import type { Spent } from "./costs.ts";
import type { Logged } from "./events.ts";
import type { CommandId, EndpointId, TaskId, ThreadId, TriggerId } from "./ids.ts";
import type { Offer, OfferJudge, OfferView } from "./offer.ts";
import type { Authority, Principal } from "./principal.ts";
import type { ScheduleChange, ScheduleSetting, SchedulesAnswer } from "./schedule.ts";
import type { SpeculationAnswer } from "./speculation.ts";
import type { Amended, Report, TaskCard, TaskDescription, TaskStart, ThreadNote } from "./task.ts";
import type { DeliveredRow, OutboundIntent, ThreadInfo, ThreadRow } from "./thread.ts";
import type { Amendment, MoveTo, Trigger, Verdict } from "./trigger.ts";
import type { DraftFrame, WidgetServerFrame } from "./widget-frames.ts";

/** What every object offers. */
export interface ObjectRpc {
  /** Continue whatever is due: called by the cron for overdue objects of the wake list. Harmless at any time. */
  poke(): Promise<void>;
  /** The event log, for timeline, audit and tests; `about` keeps only events that name this id. */
  events(input: { afterSeq: number; limit: number; about?: string }): Promise<Logged[]>;
}

export type AppendResult =
  | { outcome: "accepted"; triggerId: TriggerId; seq: number }
  | { outcome: "duplicate"; triggerId: TriggerId; seq: number }
  /** Unsubscribed and the gate said `ignore`: nothing was written. */
  | { outcome: "ignored"; triggerId: TriggerId; rule: string }
  /** An edit or a deletion whose original may still come: a row when it did, or in a moment. */
  | { outcome: "held"; triggerId: TriggerId }
  /** An earlier version of a text whose newer one is a row: it is in the log, and nobody is shown it. */
  | { outcome: "stale"; triggerId: TriggerId; seq: number }
  /** Our own message came back: it confirmed an outbound row. */
  | { outcome: "confirmed"; triggerId: TriggerId; outboundId: string };

export interface ThreadRpc extends ObjectRpc {
  append(input: { trigger: Trigger; verdict: Verdict }): Promise<AppendResult>;
  /** Triggers of this thread that came again and were answered without it: its log says so. `of`: the first delivery, where the door knows it. */
  repeated(input: { repeats: { triggerId: TriggerId; deliveryId: string; of: string | null }[] }): Promise<void>;
  /**
   * Makes the thread pass through to a task. Idempotent per task. `cutSeq` is the head at the flip: rows up to it are the worker's, and the router drops those that it still holds.
   * `triggerId`: the oldest trigger of this thread that the decision settles or that the router still holds undecided; the worker gets every row from it on.
   * Without one it gets what comes from now on. `about`: the thread is of the task's own work, and it gets every row of it; what the thread is,
   * where nothing has happened in it yet. `reader`: who hears what the task says, where the task itself chose to follow: only what they may hear.
   */
  subscribe(input: {
    taskId: TaskId;
    decisionId: string;
    triggerId?: TriggerId;
    about?: Pick<ThreadInfo, "source" | "place" | "threadKey" | "title">;
    reader?: string;
  }): Promise<{ fromSeq: number; cutSeq: number; tainted: boolean }>;
  unsubscribe(input: { taskId: TaskId; reason: string }): Promise<{ atSeq: number }>;
  /** A worker's note on this thread: added once, by its task and number; nobody changes one. Read by `events`, about their id. */
  note(input: ThreadNote): Promise<void>;
  /** A task gives rows up. `free`: those of them that every task which got them has given up. Idempotent. */
  release(input: { taskId: TaskId; seqs: number[] }): Promise<{ free: number[] }>;
  /** On a new topic: its first row is the settled trigger, re-keyed to this thread; the task subscribes from it. */
  openTopic(input: {
    rootThreadId: ThreadId;
    title: string;
    taskId: TaskId;
    decisionId: string;
    trigger: Trigger;
    verdict: Verdict;
  }): Promise<{ fromSeq: number; cutSeq: number }>;
  /** On a root: the task's card stands here from now on. */
  attachTopic(input: { topicThreadId: ThreadId; taskId: TaskId; title: string; triggerId: TriggerId }): Promise<{ seq: number }>;
  /** Say something in this thread. Idempotent by the intent's id. */
  post(input: OutboundIntent): Promise<{ seq: number }>;
  /**
   * Something that waits until it is released: see offer.ts. Idempotent by the intent's id; the first one stands. `about` says what the
   * thread is, where nothing has happened in it yet.
   */
  offer(input: { offer: Offer; about?: Pick<ThreadInfo, "source" | "place" | "threadKey" | "title"> }): Promise<OfferView>;
  /** Releases or declines it. The first word counts, whoever comes later hears it. `taskId`: whose it must be. `text`: instead of the proposed one. */
  decideOffer(input: {
    outboundId: string;
    verdict: "release" | "decline";
    by: Principal;
    via: OfferJudge;
    reason?: string;
    taskId?: TaskId;
    text?: string;
  }): Promise<OfferView>;
  offered(input: { outboundId: string }): Promise<OfferView | null>;
  /** A reply while it is written, for the pages of this thread's own people: nothing of it is kept. Not taken where nobody could see it. */
  draft(input: Omit<DraftFrame, "t">): Promise<{ taken: boolean }>;
  /** The task's card changed; the highest revision wins. */
  card(input: TaskCard): Promise<void>;
  /** On a root: frames of a topic, for the root's sockets. Not taken before `attachTopic`, so that a page knows the topic first. */
  mirror(input: { topicThreadId: ThreadId; frames: WidgetServerFrame[] }): Promise<{ taken: boolean }>;
  /** Rows after a sequence number, oldest first. */
  read(input: { afterSeq: number; limit: number; by?: "router" }): Promise<{ info: ThreadInfo; rows: ThreadRow[]; cards: TaskCard[] }>;
  row(input: { triggerId: TriggerId }): Promise<ThreadRow | null>;
  /** Close the sockets of a principal who was revoked. */
  revoke(input: { principalId: string }): Promise<{ closed: number }>;
}

/** What a mind saw at a step. `complete` is false where something that was sent is not kept. */
export type Replayed = { step: number; model: string; bytes: string; complete: boolean };

interface MindRpc extends ObjectRpc {
  /** The bytes of the request of a step, made again from what is kept; null when there was no such step. */
  replay(input: { step: number }): Promise<Replayed | null>;
}

export interface RouterRpc extends MindRpc {
  /**
   * Rows of an unsubscribed thread, for a decision. `releasedBy`: an ended task gives back rows that it did not consume. `again`: an
   * operator asks to have known rows decided once more; the same word counts once.
   */
  deliver(input: {
    threadId: ThreadId;
    rows: DeliveredRow[];
    /** A few earlier rows, for context, and tasks that the thread had before. */
    before: ThreadRow[];
    tasks: TaskId[];
    releasedBy?: TaskId;
    again?: string;
  }): Promise<{ throughSeq: number }>;
  /** A subscribed thread has new rows: looked at in the next turn, wakes nobody. */
  moved(input: { threadId: ThreadId; headSeq: number }): Promise<void>;
  report(input: Report): Promise<void>;
  /** A worker follows a thread by its own choice, or no longer does. */
  follow(input: { taskId: TaskId; threadId: ThreadId; follows: boolean }): Promise<void>;
  /** A machine's state, for the turn's inlined list. */
  machine(input: {
    endpointId: EndpointId;
    name: string;
    online: boolean;
    workspaces: string[];
    revoked: boolean;
    revision: number;
  }): Promise<void>;
  /** A console's answer to `ask_human` settles its question. */
  answer(input: { id: string; by: Principal; text: string }): Promise<{ ok: boolean }>;
  overview(): Promise<{
    tasks: Report["taskId"][];
    pending: number;
    turn: number;
    modelNote: string | null;
    /** How well the inlined context served: turns, those that read nothing more, ids inlined, and ids that decisions named. */
    context: { turns: number; withoutRead: number; inlined: number; used: number };
    /** Of the last 30 days: how often the router acted because somebody had asked, and how often nobody had. */
    acts: { asked: number; unasked: number };
  }>;
  /** What models read and wrote since then, and how often the router acted. `offsetMs`: by how much days begin before those of UTC. */
  days(input: { sinceMs: number; offsetMs: number; maxRows: number }): Promise<Spent & { asked: number; unasked: number }>;
  /** The ledger of what nobody asked for. */
  speculation(): Promise<Omit<SpeculationAnswer, "off">>;
  schedules(): Promise<SchedulesAnswer>;
  setSchedule(input: ScheduleSetting): Promise<{ id: string } | { problem: string }>;
  changeSchedule(input: { id: string; change: ScheduleChange }): Promise<{ ok: true } | { problem: string }>;
  /** For operators: what is found by words, of every audience but the facts of others' own conversations. */
  search(input: { query: string; limit: number }): Promise<SearchAnswer>;
  /** For operators: what is remembered, by words or the newest first; or one fact, also of those that count no more. */
  facts(input: { query: string; limit: number } | { id: string }): Promise<MemoryAnswer>;
  /** Has a fact forgotten; known already, nothing changes. Null: there is no such fact. */
  forget(input: { id: string; by: Principal }): Promise<{ fact: FactLine } | { problem: string } | null>;
  /** A decision or fact by its id, as text for a model. */
  recall(input: { id: string }): Promise<{ text: string; tainting: boolean; audience?: string } | null>;
}

export interface WorkerSessionRpc extends MindRpc {
  /** Idempotent. After a cancel that came first it is a no-op. */
  start(input: TaskStart): Promise<{ started: boolean }>;
  deliver(input: { threadId: ThreadId; rows: DeliveredRow[] }): Promise<{ throughSeq: number }>;
  /** A part of the transcript that was put aside, as text; null when there is no such part. */
  segment(input: { id: string }): Promise<{ text: string; tainting: boolean; audience: string } | null>;
  /** A child of this task reports. */
  childReport(input: Report): Promise<void>;
  /** Changes a message that no step took yet: the console's way; people in a thread do it by a row. */
  amend(input: { by: Principal; itemId: string; change: Amendment; text?: string } & MoveTo): Promise<{ outcome: Amended }>;
  /** A command of this task ended. */
  settle(input: SettledCommand): Promise<void>;
  /** A command waits for its machine, or runs again after waiting: said on the card. */
  commandState(input: { commandId: CommandId; state: CommandState; machine: string; online: boolean }): Promise<void>;
  /** Facts from the router (`deliver`), as an inbox row. */
  tell(input: { id: string; text: string; authority: Authority; tainted: boolean }): Promise<void>;
  cancel(input: { by: Principal; reason: string }): Promise<{ status: TaskCard["status"] }>;
  /** How something stands that this task proposed. */
  offerMoved(input: OfferView): Promise<void>;
  /** The endpoint has ended or voided everything of this task below `epoch`. */
  stopped(input: { endpointId: EndpointId; epoch: number; offline: boolean }): Promise<void>;
  /** Continue a paused task with another allowance. */
  resume(input: { by: Principal; modelCalls: number }): Promise<{ status: TaskCard["status"] }>;
  /** `merged`: the word is that the pull request of the task's branch was merged there. `reacted`: it was found as this sign, and counts only while nobody judged. */
  accept(input: { by: Principal; accepted: boolean; merged?: { place: string }; reacted?: { sign: string } }): Promise<void>;
  /** A speculative task becomes the one of a person; any other stays as it is. Idempotent. */
  adopt(input: TaskStart): Promise<{ tainted: boolean }>;
  /** An ended task goes on. Without `text` it waits for the row that is on its way. Idempotent by id. */
  reopen(input: {
    id: string;
    by: Principal;
    text: string;
    tainted: boolean;
    endpoint?: NonNullable<TaskStart["endpoint"]>;
    /** Another profile's name: that is a hand-off. */
    profile?: string;
    /** A person released the draft that this task made when nobody had asked. */
    released?: NonNullable<Offer["releasedAs"]>;
  }): Promise<{ status: TaskCard["status"] }>;
  describe(): Promise<TaskDescription | null>;
}

export interface EndpointRpc extends ObjectRpc {
  /** `host` is where the machine enrolled: from then on its hello counts for no other one. */
  enrol(input: { endpointId: EndpointId; name: string; publicKey: string; platform: string; host?: string }): Promise<void>;
  /** Enters the command ledger; the outcome, also a refusal, comes to the task as `settle`. Idempotent by command id. */
  submit(input: QueuedCommand): Promise<{ state: CommandState }>;
  /** Somebody asks for this task now: its commands wait for those of nobody else any more. */
  asked(input: { taskId: TaskId }): Promise<void>;
  stop(input: { commandId: CommandId; why: string }): Promise<{ known: boolean }>;
  /** Everything of the task below `epoch`; answered by `WorkerSession.stopped`. */
  stopTask(input: { taskId: TaskId; epoch: number }): Promise<void>;
  /** Text from a byte offset, never half a character; the answer's `offset` is where the following text begins. */
  readOutput(input: {
    commandId: CommandId;
    offset: number;
    limit: number;
  }): Promise<{ text: string; offset: number; totalBytes: number; done: boolean; audience?: string | undefined } | null>;
  revoke(input: { by: string }): Promise<void>;
  describe(): Promise<{
    endpointId: EndpointId;
    name: string;
    online: boolean;
    workspaces: string[];
    sandbox: string;
    running: number;
    waiting: number;
    revoked: boolean;
  } | null>;
}

export interface BoardRpc {
  change(input: BoardChange[]): Promise<void>;
  snapshot(): Promise<BoardState>;
  /** Uses a console's ticket; false when it was used before, is too old, or its session has ended. */
  redeem(input: { ticketId: string; sessionId: string; expiresMs: number; nowMs: number }): Promise<boolean>;
  isSessionOpen(input: { sessionId: string }): Promise<boolean>;
  /** Ends a console session for good and closes its sockets. */
  closeSession(input: { sessionId: string; expiresMs: number }): Promise<{ closed: number }>;
}
