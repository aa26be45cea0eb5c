// The changes that a Thread commits, each in one transaction: what `src/core/thread.ts` decided becomes rows and cursors.

import { mayFlow, threadAudience } from "../core/audience.ts";
import { rowTaints } from "../core/authority.ts";
import { ownerOf, threadIdOf } from "../core/ids.ts";
import { reviewCommentOf } from "../core/structured.ts";
import {
  deliveryOf,
  duplicateOf,
  freeSeqs,
  isForRouter,
  isRoot,
  mergedTask,
  planFlip,
  rekeyForTopic,
  rootOwnerOf,
  type Subscription,
  topicKeyOf,
  webSource,
} from "../core/thread.ts";
import { notesIdOf } from "../core/worker-notes.ts";
import type { ThreadEvent } from "../protocol/events.ts";
import { Fault } from "../protocol/fault.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { ThreadRpc } from "../protocol/rpc.ts";
import type { OutboundIntent } from "../protocol/thread.ts";
import { topicLogKey } from "./thread-page.ts";
import type { ThreadRoom } from "./thread-room.ts";
import type { ThreadAbout, ThreadStore } from "./thread-store.ts";

type Input<M extends keyof ThreadRpc> = Parameters<ThreadRpc[M]>[0];
type Accepted = Extract<ThreadEvent, { kind: "thread.accepted" }>;

const aboutOf = (store: ThreadStore, { trigger }: Accepted): ThreadAbout => {
  const { place, source, threadId, threadKey, threadTitle: title, threadUrl } = trigger;
  const { url: oldUrl, ...known }: ThreadAbout = store.about() ?? { threadId, source, place, threadKey, title };
  const url = threadUrl ?? oldUrl;
  return { ...known, title, ...(url === undefined ? {} : { url }) };
};

/** A new row of the outside world. Returns its sequence number. */
export function accept(room: ThreadRoom, event: Accepted): number {
  const about = aboutOf(room.store, event);
  const { id, place, principal: by } = event.trigger;
  const taskId = mergedTask(event.trigger);
  const waitedFor = event.mode === "observe" || isForRouter(event) || about.rootThreadId !== undefined || taskId !== null;
  if (!waitedFor) return room.keep(about, (nowMs) => room.store.accept(event, nowMs));
  return room.commit((nowMs) => {
    // [W30] A merge is a person's word on the outcome.
    if (taskId !== null) room.promise({ id: `merge:${id}`, by, atMs: nowMs, frame: { t: "merge", clientMsgId: id, taskId, place } });
    return acceptInside(room.store, event, nowMs);
  });
}

/** The same inside a commit. */
export function acceptInside(store: ThreadStore, event: Accepted, nowMs: number): number {
  store.setAbout(aboutOf(store, event));
  return store.accept(event, nowMs);
}

/** [G7] Of triggers that came again the log says so, and by what each was known. */
export function repeat(room: ThreadRoom, { repeats }: Input<"repeated">): void {
  const { log } = room.store;
  for (const { triggerId: id, deliveryId, of } of repeats)
    log.append(duplicateOf(of ?? deliveryOf(log.byKey(id)?.event), { id, deliveryId }), Date.now());
  // What still waits from the first time is begun again, as with every event.
  room.kick();
}

/** Passes the thread through to a task from here on. */
export function subscribe(room: ThreadRoom, threadId: ThreadId, input: Input<"subscribe">): Subscription {
  const { store } = room;
  const { taskId, decisionId, triggerId, about, reader } = input;
  if (about && threadIdOf(about.source, about.place, about.threadKey) !== threadId)
    throw new Fault("bad_input", `${threadId} is not the thread ${about.threadKey} of ${about.place}.`);
  const threadKey = store.about()?.threadKey ?? about?.threadKey ?? "";
  if (isRoot(threadKey)) throw new Fault("conflict", `${threadId} is a root conversation: open a topic for the task.`);
  const known = store.about();
  // [A9] What comes here would be said there.
  if (reader !== undefined && known !== null && !mayFlow(threadAudience(known), reader))
    throw new Fault("forbidden", `${threadId} belongs to another conversation, and what you say is read elsewhere.`);
  const { firstSeq, bytes } = store.history();
  const plan = planFlip({
    threadKey,
    subscriptions: store.subscriptions(),
    taskId,
    decisionId,
    triggerSeq: about && firstSeq > 0 ? firstSeq : triggerId === undefined ? "next" : (store.log.byKey(triggerId)?.seq ?? null),
    firstSeq,
    historyBytes: bytes,
    waitingSeq: store.routerWaiting(),
    headSeq: store.log.headSeq(),
  });
  if (plan === "no_such_row") throw new Fault("not_found", `${threadId} has no trigger ${triggerId}.`);
  if ("known" in plan) return plan.known;
  const flip = { ...plan.flip, tainted: store.taintedFrom(plan.flip.fromSeq) };
  const { fromSeq, cutSeq } = flip;
  return room.commit((nowMs) => {
    if (about && store.about() === null) store.setAbout({ threadId, ...about });
    store.subscribe(flip);
    store.raise("router.cursor", cutSeq);
    store.log.append({ kind: "thread.subscribed", taskId, fromSeq, cutSeq, decisionId }, nowMs);
    return flip;
  });
}

/** Ends a task's subscription; rows up to the cut are still handed to it. */
export function unsubscribe(room: ThreadRoom, { taskId, reason }: Input<"unsubscribe">): number {
  const { store } = room;
  const own = store.subscriptions().filter((one) => one.taskId === taskId);
  if (!own.some((one) => one.endSeq === null)) return Math.max(0, ...own.map((one) => one.endSeq ?? 0));
  return room.commit((nowMs) => {
    const atSeq = store.log.headSeq();
    store.endSubscriptions(taskId, atSeq);
    // Rows up to here are the tasks'; only what comes now is the router's again.
    store.raise("router.cursor", atSeq);
    store.log.append({ kind: "thread.unsubscribed", taskId, atSeq, reason }, nowMs);
    return atSeq;
  });
}

/** [W15] A note enters the log once; it is no row of the conversation. */
export const note = (room: ThreadRoom, threadId: ThreadId, input: Input<"note">): void =>
  room.commit((nowMs) => {
    const key = `note:${input.taskId}:${input.n}`;
    if (room.store.log.byKey(key) === null)
      room.store.log.append({ kind: "thread.note", notes: notesIdOf(threadId), note: input }, nowMs, key);
  });

/** A task gives rows up; what every task gave up that got it is free. */
export function release(room: ThreadRoom, { taskId, seqs }: Input<"release">): number[] {
  const { store } = room;
  return room.commit((nowMs) => {
    const news = seqs.filter((seq) => store.release(taskId, seq));
    const free = freeSeqs(store.subscriptions(), seqs, (task, seq) => store.isReleased(task, seq));
    if (news.length > 0) store.log.append({ kind: "thread.released", taskId, seqs: news, free }, nowMs);
    return free;
  });
}

/** Makes a topic: its first row is the trigger that was settled, and its task follows it from there. */
export function openTopic(room: ThreadRoom, threadId: ThreadId, input: Input<"openTopic">): { fromSeq: number; cutSeq: number } {
  const { store } = room;
  const { taskId, decisionId, title, rootThreadId, verdict } = input;
  const known = store.subscriptions().find((one) => one.taskId === taskId);
  if (known) return { fromSeq: known.fromSeq, cutSeq: known.cutSeq };
  const trigger = rekeyForTopic(input.trigger, threadId, taskId, title);
  return room.commit((nowMs) => {
    const about = { threadId, source: webSource, place: trigger.place, threadKey: topicKeyOf(taskId), title };
    store.setAbout({ ...about, rootThreadId, viewerId: rootOwnerOf(input.trigger.threadKey) ?? trigger.principal.id });
    const seq = store.accept({ kind: "thread.accepted", trigger, verdict, mode: "observe", subscribers: [taskId] }, nowMs);
    const tainted = rowTaints({ kind: "trigger", seq, atMs: nowMs, trigger, verdict });
    store.subscribe({ taskId, decisionId, fromSeq: seq, cutSeq: seq, cursor: seq - 1, endSeq: null, tainted });
    store.log.append({ kind: "thread.subscribed", taskId, fromSeq: seq, cutSeq: seq, decisionId }, nowMs);
    return { fromSeq: seq, cutSeq: seq };
  });
}

/** On a root: the row of a topic. `news` says that it is a new one. */
export function attachTopic(room: ThreadRoom, input: Input<"attachTopic">): { seq: number; news: boolean } {
  const key = topicLogKey(input.topicThreadId);
  const known = room.store.log.byKey(key);
  if (known) return { seq: known.seq, news: false };
  return { seq: room.commit((nowMs) => room.store.log.append({ kind: "thread.topic", ...input }, nowMs, key)), news: true };
}

/** Says something: the row, and for a channel that must send it the ledger's entry. */
export function post(
  room: ThreadRoom,
  threadId: ThreadId,
  intent: OutboundIntent,
  inManner: (text: string, source: string) => string,
): { seq: number; news: boolean } {
  const { store } = room;
  const known = store.log.byKey(intent.id);
  if (known) return { seq: known.seq, news: false };
  const { source = "", rootThreadId } = store.about() ?? {};
  const asked = intent.triggerId === undefined ? threadId : ownerOf(intent.triggerId, "thr");
  // What was asked elsewhere is never answered here, whatever the caller believed.
  if (intent.threadId !== threadId || (asked !== threadId && asked !== rootThreadId))
    throw new Fault("conflict", `${intent.id} answers ${intent.triggerId ?? intent.threadId}, which is not in ${threadId}.`);
  // [T13] Nor does anybody speak here by themselves: only a task that this thread was given to.
  if (intent.triggerId === undefined && !store.subscriptions().some(({ taskId }) => taskId === intent.taskId))
    throw new Fault("conflict", `${intent.id} answers nothing in ${threadId}, and is of no task that this thread was given to.`);
  const text = inManner(intent.text, source);
  const asking = intent.triggerId === undefined ? null : store.log.byKey(intent.triggerId)?.event;
  const inReplyTo = asking?.kind === "thread.accepted" ? reviewCommentOf(asking.trigger) : undefined;
  // [O8] What is said in a review thread is answered there.
  const deed = inReplyTo === undefined ? {} : { deed: { do: "comment" as const, inReplyTo } };
  const outbound = { ...deed, ...(text === intent.text ? {} : { fullText: intent.text }), ...intent, text };
  return { seq: room.commit((nowMs) => say(room, outbound, nowMs)), news: true };
}

/** Inside a commit: the row of what is said, and for a channel that must send it the ledger's entry. */
export function say(room: ThreadRoom, outbound: OutboundIntent, nowMs: number): number {
  const seq = room.store.log.append({ kind: "thread.outbound", outbound }, nowMs, outbound.id);
  if (room.store.about()?.source !== webSource) room.openOutbound(outbound, seq, nowMs);
  return seq;
}
