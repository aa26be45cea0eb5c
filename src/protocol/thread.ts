// Rows of a thread: what subscribers and viewers read from its log.
import type { OutboundId, ReportId, TaskId, ThreadId, TriggerId } from "./ids.ts";
import type { TaskStatus } from "./task.ts";
import type { Trigger, Verdict } from "./trigger.ts";

/** What a channel does beside saying something in the thread. `inReplyTo`: in the review thread of that comment. */
export type Deed =
  | { do: "comment"; inReplyTo: string }
  | { do: "label"; labels: string[] }
  | { do: "pull_request"; head: string; base: string; title: string; draft: boolean };

/** What is to be said in a thread, as the router decided it. The id makes a repeated `post` a no-op. */
export type OutboundIntent = {
  id: OutboundId;
  threadId: ThreadId;
  /** `reply`: the router's words; `relay`: a report's text, unchanged; `notice`: said by code (refusals, waiting, errors); `offer`: proposed by a task, and released. */
  kind: "reply" | "relay" | "notice" | "offer";
  text: string;
  /** Absent: the text is said in the thread. */
  deed?: Deed;
  /** What was to be said before it was cut to the channel's manner; for the same people as the text. */
  fullText?: string;
  /** The trigger that this answers; its thread is the only possible target. */
  triggerId?: TriggerId;
  taskId?: TaskId;
  reportId?: ReportId;
  decisionId?: string;
  /** Made from text of the public lane: it taints whoever reads it, as that text does. */
  tainted?: boolean;
  /** Nobody had asked for it, or a policy wanted it: a person of the team may say that it was not wanted. */
  proactive?: true;
  /** It tells how its task ended: who reacts to it judges that. */
  outcome?: true;
  hops: number;
};

/** `unknown`: it may have been sent; it is looked up by its marker before any retry. */
export type OutboundState = "pending" | "sent" | "confirmed" | "expired" | "failed" | "unknown";

export type ThreadRow =
  | { kind: "trigger"; seq: number; atMs: number; trigger: Trigger; verdict: Verdict }
  | { kind: "outbound"; seq: number; atMs: number; outbound: OutboundIntent; state: OutboundState; detail?: string }
  /** In a root: a task was dispatched and has its own topic from here on. */
  | { kind: "topic"; seq: number; atMs: number; topicThreadId: ThreadId; taskId: TaskId; title: string; triggerId: TriggerId };

/** A task that gets a row too, and how it stood when the row was handed over. */
export type OtherTask = { task: TaskId; status: TaskStatus };

/** A row on its way to a subscriber; names the other tasks that get it too. */
export type DeliveredRow = { row: ThreadRow; alsoWith: OtherTask[] };

export type ThreadInfo = {
  threadId: ThreadId;
  source: string;
  place: string;
  threadKey: string;
  title: string;
  url?: string;
  /** Of a topic in the widget: whose page it is on. */
  viewerId?: string;
  headSeq: number;
  subscribers: TaskId[];
};
