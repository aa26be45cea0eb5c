// What a thread decides: who gets which row, where a flip cuts, and what a widget's page may see. The log is the outbox,
// each subscriber a cursor in it.
import type { ThreadEvent } from "../protocol/events.ts";
import type { TaskId, ThreadId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { TaskStatus } from "../protocol/task.ts";
import type { OtherTask, OutboundIntent, OutboundState, ThreadInfo, ThreadRow } from "../protocol/thread.ts";
import { type Trigger, timerKind, type Verdict } from "../protocol/trigger.ts";
import type { WidgetRow } from "../protocol/widget-frames.ts";
import { isPerson, isTeamPerson } from "./authority.ts";
import { isNamedForTask, taskOfBranch } from "./branch.ts";
import { threadIdOf, triggerIdOf } from "./ids.ts";

export const webSource = "web";
export const widgetPlace = "widget";

/** The root conversation of a person or guest in the widget. */
export const rootKeyOf = (principalId: string): string => `root:${principalId}`;
export const rootThreadIdOf = (principalId: string): ThreadId => threadIdOf(webSource, widgetPlace, rootKeyOf(principalId));
/** A task's own topic under a root. */
export const topicKeyOf = (taskId: TaskId): string => `topic:${taskId}`;
export const topicThreadIdOf = (taskId: TaskId, place: string = widgetPlace): ThreadId => threadIdOf(webSource, place, topicKeyOf(taskId));

/** [T1] A flat conversation is never passed through: each of its tasks has a topic of its own. */
export const isRoot = (threadKey: string): boolean => threadKey.startsWith("root:");
/** The principal whose root this is, or null. */
export const rootOwnerOf = (threadKey: string): string | null => (isRoot(threadKey) ? threadKey.slice("root:".length) : null);

/** A cursor in the log. It covers the rows `fromSeq` to `endSeq`; a row up to `cursor` was handed over. */
export type Subscription = {
  taskId: TaskId;
  decisionId: string;
  fromSeq: number;
  /** The thread's head at the flip: rows up to it are the worker's, not the router's. */
  cutSeq: number;
  cursor: number;
  endSeq: number | null;
  tainted: boolean;
};

export const covers = (subscription: Subscription, seq: number): boolean =>
  seq >= subscription.fromSeq && (subscription.endSeq === null || seq <= subscription.endSeq);

export const isActive = (subscription: Subscription): boolean => subscription.endSeq === null;

/** Tasks that get rows which are accepted now. */
export const activeTasks = (subscriptions: readonly Subscription[]): TaskId[] => [
  ...new Set(subscriptions.filter(isActive).map((subscription) => subscription.taskId)),
];

/** The other tasks that this row reaches, with their status; one of which no card came yet has not started. */
export const alsoWith = (
  subscriptions: readonly Subscription[],
  taskId: TaskId,
  seq: number,
  statuses: ReadonlyMap<TaskId, TaskStatus>,
): OtherTask[] =>
  [...new Set(subscriptions.filter((other) => other.taskId !== taskId && covers(other, seq)).map((other) => other.taskId))].map((task) => ({
    task,
    status: statuses.get(task) ?? "queued",
  }));

/** Rows that every task which got them has given up. `released` says whether a task gave up a row. */
export const freeSeqs = (
  subscriptions: readonly Subscription[],
  seqs: readonly number[],
  released: (taskId: TaskId, seq: number) => boolean,
): number[] =>
  seqs.filter((seq) => subscriptions.every((subscription) => !covers(subscription, seq) || released(subscription.taskId, seq)));

export type AppendPlan =
  | { do: "confirm"; outboundId: string; news: boolean }
  | { do: "duplicate"; seq: number }
  | { do: "ignore"; rule: string }
  | { do: "accept"; event: Extract<ThreadEvent, { kind: "thread.accepted" }> };

/**
 * [T2] What happens to a trigger: our own message confirms its ledger row; a known trigger changes nothing; without a
 * subscriber `ignore` leaves no trace; with one, every row is accepted and the router only observes it.
 */
export function planAppend(input: {
  trigger: Trigger;
  verdict: Verdict;
  subscriptions: readonly Subscription[];
  /** The row of this trigger, when it came before. */
  knownSeq: number | null;
  /** The outbound row of this thread that the trigger is, as far as the ledger knows it. */
  echo: { id: string; state: OutboundState } | null;
  /** Whether we said something among the newest rows of this thread. */
  saidLately: () => boolean;
  /** How often it went back and forth between programs and us since a person spoke here. */
  hopsHere: () => number;
  /** It came through a channel; what code of ours makes has a source of its own. */
  fromChannel: boolean;
}): AppendPlan {
  const verdict = judgedHere(input);
  const { echo } = input;
  if (echo !== null) return { do: "confirm", outboundId: echo.id, news: echo.state !== "confirmed" };
  // To its branch a pull request comes only as an echo; as an event it has a thread of its own.
  if (isBranch(input.trigger) && input.trigger.kind.startsWith("pull_request.")) return { do: "ignore", rule: "own.pull_request" };
  if (input.knownSeq !== null) return { do: "duplicate", seq: input.knownSeq };
  // [T5] An owner's mute holds also where a task follows the thread.
  if (verdict.outcome === "mute") return { do: "ignore", rule: verdict.rule };
  const subscribers = activeTasks(input.subscriptions);
  // What happens to a branch of ours is kept before its task follows it: a machine may say late that it pushed.
  const ours = input.trigger.facts?.fork === undefined && isNamedForTask(input.trigger.facts?.branch ?? "");
  if (subscribers.length === 0 && verdict.outcome === "ignore" && !ours) return { do: "ignore", rule: verdict.rule };
  const mode = subscribers.length > 0 ? "observe" : "decide";
  // A schedule of ours speaks in its thread, through no channel; no channel may bring its kind.
  const isOthers = input.fromChannel && input.trigger.kind !== timerKind;
  const trigger = isOthers ? derived(asPersons(input.trigger), verdict, input.hopsHere) : input.trigger;
  return { do: "accept", event: { kind: "thread.accepted", trigger, verdict, mode, subscribers } };
}

/** [W30] The task of whose branch a person of the team merged the pull request; null for every other event. In a fork a branch says nothing. */
export function mergedTask({ source, kind, facts, principal }: Pick<Trigger, "source" | "kind" | "facts" | "principal">): TaskId | null {
  const merged = source === "github" && kind === "pull_request.closed" && facts?.merged === "true" && facts.fork === undefined;
  return merged && isTeamPerson(principal) ? taskOfBranch(facts?.branch ?? "") : null;
}

const isBranch = ({ threadKey }: Pick<Trigger, "threadKey">): boolean => threadKey.startsWith("branch:");

/** [O10] The label that our own account put on: labels carry no marker. Null for every other event. */
export const labelOfOurs = ({ kind, facts }: Pick<Trigger, "kind" | "facts">): string | null =>
  /^(?:issues|pull_request)\.labeled$/.test(kind) && facts?.self !== undefined ? (facts.label ?? null) : null;

/** The shipped rules for small talk; a rule of the team's own counts as it stands. */
const talkRule = /\.talk(?::|$)/;

/** [G14] Small talk right after our own words may be the answer to them. [O10] A pull request of ours asks nobody for anything. */
function judgedHere({
  trigger,
  verdict,
  saidLately,
}: Pick<Parameters<typeof planAppend>[0], "trigger" | "verdict" | "saidLately">): Verdict {
  if (trigger.facts?.self === "marked" && verdict.outcome !== "mute")
    return { outcome: "record", rule: "own.pull_request", reason: "Our own pull request: kept as the beginning of its thread." };
  if (verdict.outcome !== "record" || !talkRule.test(verdict.rule) || trigger.facts?.words !== "talk" || !saidLately()) return verdict;
  return { outcome: "candidate", rule: verdict.rule, reason: "Small talk, but we spoke here: it may be an answer to us." };
}

/**
 * [T8] Words that a channel brought and that our ledger does not confirm are not ours, whatever they claim: nobody may speak as the
 * agent, whose words taint nothing.
 */
function asPersons(trigger: Trigger): Trigger {
  const { echoOf, ...facts } = trigger.facts ?? {};
  const claimed = echoOf === undefined ? trigger : { ...trigger, facts };
  if (trigger.principal.role !== "agent") return claimed;
  return { ...claimed, principal: { role: "public", id: trigger.principal.id, name: trigger.principal.name } };
}

/** [T16] What a program says after us may be its answer to us: it goes on counting where our words were. A person's word begins anew. */
const derived = (trigger: Trigger, { outcome }: Verdict, hopsHere: () => number): Trigger =>
  trigger.principal.role === "bot" && (outcome === "candidate" || outcome === "request")
    ? { ...trigger, hops: Math.max(trigger.hops, hopsHere()) }
    : trigger;

/** [T16] The hops of our last words among these rows, oldest first, unless a person, or a schedule of one, spoke since. */
export function hopsOf(rows: readonly ThreadRow[]): number {
  const last = rows.findLast(
    (row) => row.kind === "outbound" || (row.kind === "trigger" && (isPerson(row.trigger.principal) || row.trigger.kind === timerKind)),
  );
  return last?.kind === "outbound" ? last.outbound.hops : 0;
}

/** What the log says of a trigger that came again, first with the delivery `of`. One with another delivery id was known by its message key. */
export function duplicateOf(
  of: string | null,
  again: Pick<Trigger, "id" | "deliveryId">,
): Extract<ThreadEvent, { kind: "thread.duplicate" }> {
  const about = { kind: "thread.duplicate" as const, triggerId: again.id, deliveryId: again.deliveryId };
  return of === null ? about : { ...about, of, by: of === again.deliveryId ? "event id" : "message key" };
}

/** The delivery that a row of the log came with; null where it is no trigger's. */
export const deliveryOf = (event: ThreadEvent | undefined): string | null =>
  event?.kind === "thread.accepted" ? event.trigger.deliveryId : null;

/** [T3] The router decides rows of unsubscribed threads that the gate let through; `record` is kept and asked of nobody. */
export function isForRouter(event: ThreadEvent): boolean {
  if (event.kind !== "thread.accepted" || event.mode !== "decide") return false;
  return event.verdict.outcome === "candidate" || event.verdict.outcome === "request";
}

export type FlipInput = {
  threadKey: string;
  subscriptions: readonly Subscription[];
  taskId: TaskId;
  decisionId: string;
  /** The row of the trigger that was named; null when this thread has none. `next`: from what comes now. */
  triggerSeq: number | "next" | null;
  /** First row, and bytes of all rows, of the thread. */
  firstSeq: number;
  historyBytes: number;
  /** The first row that the router should get and did not take yet. */
  waitingSeq: number | null;
  headSeq: number;
};

/**
 * [T4] Where a flip cuts. A small issue or pull request is handed over from its first row, everything else from the settled
 * trigger; never later than the first row that the router did not take, so that no row falls between the two.
 * A task that comes back starts after its own end. The same decision, or a task that is subscribed, gets its old answer.
 */
export function planFlip(input: FlipInput): { known: Subscription } | { flip: Subscription } | "no_such_row" {
  const own = input.subscriptions.filter((subscription) => subscription.taskId === input.taskId);
  const known = own.find((subscription) => subscription.decisionId === input.decisionId) ?? own.find(isActive);
  if (known) return { known };
  if (input.triggerSeq === null) return "no_such_row";
  const { triggerSeq, headSeq } = input;
  const whole = /^(issue|pull|pr):/.test(input.threadKey) && input.historyBytes <= limits.maxInlineHistoryBytes;
  const from = triggerSeq === "next" ? headSeq + 1 : whole ? input.firstSeq : triggerSeq;
  const wanted = Math.min(from, input.waitingSeq ?? Number.POSITIVE_INFINITY);
  const fromSeq = Math.max(wanted, ...own.map((subscription) => (subscription.endSeq ?? 0) + 1));
  return {
    flip: {
      taskId: input.taskId,
      decisionId: input.decisionId,
      fromSeq,
      cutSeq: input.headSeq,
      cursor: fromSeq - 1,
      endSeq: null,
      tainted: false,
    },
  };
}

/** The settled trigger as the first row of its topic: the same delivery, in another thread. */
export function rekeyForTopic(trigger: Trigger, topicThreadId: ThreadId, taskId: TaskId, title: string): Trigger {
  return {
    ...trigger,
    id: triggerIdOf(trigger.source, trigger.deliveryId, topicThreadId),
    threadId: topicThreadId,
    threadKey: topicKeyOf(taskId),
    threadTitle: title,
  };
}

/** A log row as viewers and subscribers read it; null for events that are no row of the conversation. */
export function toRow(
  logged: { seq: number; atMs: number; event: ThreadEvent },
  outboundState: (outbound: OutboundIntent) => { state: OutboundState; detail?: string },
): ThreadRow | null {
  const { seq, atMs, event } = logged;
  switch (event.kind) {
    case "thread.accepted":
      return { kind: "trigger", seq, atMs, trigger: event.trigger, verdict: event.verdict };
    case "thread.outbound":
      return { kind: "outbound", seq, atMs, outbound: event.outbound, ...outboundState(event.outbound) };
    case "thread.topic":
      return {
        kind: "topic",
        seq,
        atMs,
        topicThreadId: event.topicThreadId,
        taskId: event.taskId,
        title: event.title,
        triggerId: event.triggerId,
      };
    case "thread.held":
    case "thread.stale":
    case "thread.duplicate":
    case "thread.subscribed":
    case "thread.unsubscribed":
    case "thread.sent":
    case "thread.confirmed":
    case "thread.unsent":
    case "thread.accepted_outcome":
    case "thread.marked":
    case "thread.released":
    case "thread.note":
    case "thread.offered":
    case "thread.offer_decided":
      return null;
  }
}

/** Events that are rows of the conversation, and those that subscribers get. */
export const rowKinds = ["thread.accepted", "thread.outbound", "thread.topic"] as const satisfies readonly ThreadEvent["kind"][];
export const deliveredKinds = ["thread.accepted", "thread.outbound"] as const satisfies readonly ThreadEvent["kind"][];

/** [T6] A row as the page of `viewerId` may see it: that person's own messages, what was said to them, their topics; nothing else. */
export function toWidgetRow(row: ThreadRow, viewerId: string): WidgetRow | null {
  switch (row.kind) {
    case "trigger": {
      const { principal, deliveryId, source, kind, text, mode, amends, externalId, facts } = row.trigger;
      if (source === webSource && kind === timerKind && facts?.for === viewerId)
        return { kind: "message", from: { role: principal.role, name: principal.name, you: false }, text, atMs: row.atMs };
      if (source !== webSource || principal.id !== viewerId) return null;
      if (amends !== undefined && externalId !== undefined)
        return { kind: "amend", of: externalId, change: amends.change, text, atMs: row.atMs };
      if (kind !== "message") return null;
      return {
        kind: "message",
        from: { role: principal.role, name: principal.name, you: true },
        text,
        clientMsgId: deliveryId.slice(viewerId.length + 1),
        ...(mode === undefined ? {} : { mode }),
        atMs: row.atMs,
      };
    }
    case "outbound": {
      const { id, kind, text, fullText, taskId, proactive } = row.outbound;
      const more = {
        ...(proactive === undefined ? {} : { proactive }),
        ...(fullText === undefined ? {} : { fullText }),
        ...(taskId === undefined ? {} : { taskId }),
      };
      return { kind: "reply", id, replyKind: kind === "offer" ? "relay" : kind, text, state: row.state, ...more, atMs: row.atMs };
    }
    case "topic":
      return { kind: "topic", topicThreadId: row.topicThreadId, taskId: row.taskId, title: row.title, atMs: row.atMs };
  }
}

/** [T11] The decision that a person may call unwanted, by the row in which it was said; else a sentence on why there is none. */
export function saidUnasked(row: ThreadRow | null): { decisionId: string } | { problem: string } {
  if (row?.kind !== "outbound")
    return { problem: "Nothing of this id was said in this conversation, so there is nothing to call unwanted." };
  const { proactive, decisionId } = row.outbound;
  return proactive && decisionId !== undefined
    ? { decisionId }
    : { problem: "This was not said unasked, so there is nothing to call unwanted." };
}

/** What is said of a thread that keeps nothing. */
export const unknownThread = (threadId: string): ThreadInfo => ({
  threadId,
  source: "",
  place: "",
  threadKey: "",
  title: "",
  headSeq: 0,
  subscribers: [],
});
