// What a Thread does with a trigger: what it knows of it, and where it goes among the versions of its text. An edit waits for its
// original, and what is older than a row is shown to nobody.
import { type AppendPlan, activeTasks, labelOfOurs, planAppend } from "../core/thread.ts";
import { asEdited, asksMoreThan, type EditionPlan, editionOf, inOrder, placeOf } from "../core/thread-editions.ts";
import type { ThreadEvent } from "../protocol/events.ts";
import { limits } from "../protocol/limits.ts";
import type { AppendResult, ThreadRpc } from "../protocol/rpc.ts";
import type { Trigger } from "../protocol/trigger.ts";
import type { KeptEdition } from "./edition-store.ts";
import { accept, acceptInside } from "./thread-changes.ts";
import type { ThreadRoom } from "./thread-room.ts";
import type { ThreadStore } from "./thread-store.ts";

type Accepted = Extract<ThreadEvent, { kind: "thread.accepted" }>;

/** Rows in which an original that is so young is looked for. */
const lookedThrough = 200;

/** The plan for a trigger; `store` is undefined while the thread keeps nothing. */
export const planFor = (
  store: ThreadStore | undefined,
  { trigger, verdict }: Parameters<ThreadRpc["append"]>[0],
  { knownSeq, fromChannel, nowMs }: { knownSeq: number | null; fromChannel: boolean; nowMs: number },
): AppendPlan =>
  planAppend({
    trigger,
    verdict,
    subscriptions: store?.subscriptions() ?? [],
    knownSeq,
    echo: (store && echoIn(store, trigger, nowMs)) ?? null,
    saidLately: () => store?.saidLately() ?? false,
    hopsHere: () => store?.hopsHere() ?? 0,
    fromChannel,
  });

/** By the marker that the channel verified; a label, which has none, by what was sent here lately. */
function echoIn({ outbound }: ThreadStore, trigger: Trigger, nowMs: number): ReturnType<ThreadStore["outbound"]["entry"]> {
  const claimed = trigger.facts?.echoOf;
  if (claimed !== undefined) return outbound.entry(claimed);
  const label = labelOfOurs(trigger);
  return label === null ? null : outbound.labelled(label, nowMs - 2 * limits.outboundMaxAgeStructuredMs);
}

/** Takes a row in its place among the versions of its text. `seqs`: what became a row by it. */
export function takeInOrder(room: ThreadRoom, event: Accepted): { result: AppendResult; seqs: number[] } {
  const { store } = room;
  const { trigger } = event;
  const triggerId = trigger.id;
  const edition = editionOf(trigger);
  const known = edition === null ? [] : store.editions.of(edition.subject);
  if (known.some((each) => each.triggerId === triggerId && each.seq === null)) return { result: { outcome: "held", triggerId }, seqs: [] };
  const rowOf = (seq: number): Accepted | null => acceptedAt(store, seq);
  const asksMore = (seq: number): boolean => {
    const row = rowOf(seq);
    return row !== null && asksMoreThan(event, row);
  };
  const plan: EditionPlan =
    edition === null ? { do: "take" } : placeOf(edition, known, () => hasOriginal(store, edition.subject), asksMore);
  // Most of what happens has no other version.
  if (plan.do === "take" && known.length === 0 && (edition === null || edition.what === "original")) {
    const seq = accept(room, event);
    return { result: { outcome: "accepted", triggerId, seq }, seqs: [seq] };
  }
  return room.commit((nowMs) => {
    switch (plan.do) {
      case "hold": {
        const dueMs = nowMs + limits.originalWaitMs;
        store.log.append({ kind: "thread.held", trigger, verdict: event.verdict, untilMs: dueMs }, nowMs, heldKey(triggerId));
        if (edition !== null) store.editions.put({ ...edition, triggerId, seq: null, dueMs });
        room.alarms.setEarlier("editions", dueMs);
        return { result: { outcome: "held", triggerId }, seqs: [] };
      }
      case "stale": {
        const seq = store.log.append({ kind: "thread.stale", trigger, newer: plan.newer }, nowMs, triggerId);
        return { result: { outcome: "stale", triggerId, seq }, seqs: [] };
      }
      case "take":
      case "take_as": {
        const newer = plan.do === "take_as" ? rowOf(plan.seq) : null;
        const seq = acceptInside(store, newer === null ? event : asEdited(event, newer), nowMs);
        if (edition !== null && edition.what !== "original") store.editions.put({ ...edition, triggerId, seq, dueMs: null });
        const waited = edition === null || edition.what !== "original" ? [] : known.filter((each) => each.seq === null);
        return { result: { outcome: "accepted", triggerId, seq }, seqs: [seq, ...takeHeld(store, waited, nowMs)] };
      }
    }
  });
}

/** What waited long enough is a row, whether its original came or not. Returns when the next one has. */
export function takeOverdue(room: ThreadRoom): number | undefined {
  const { store } = room;
  const overdue = store.editions.held().filter((each) => (each.dueMs ?? 0) <= Date.now());
  const subjects = new Set(overdue.map(({ subject }) => subject));
  room.commit((nowMs) => {
    for (const subject of subjects)
      takeHeld(
        store,
        store.editions.of(subject).filter((each) => each.seq === null),
        nowMs,
      );
  });
  room.kick();
  return store.editions.held()[0]?.dueMs ?? undefined;
}

function takeHeld(store: ThreadStore, held: readonly KeptEdition[], nowMs: number): number[] {
  return inOrder(held).flatMap((each) => {
    const kept = store.log.byKey(heldKey(each.triggerId))?.event;
    if (kept?.kind !== "thread.held") return [];
    const subscribers = activeTasks(store.subscriptions());
    const mode = subscribers.length > 0 ? "observe" : "decide";
    const { trigger, verdict } = kept;
    const seq = acceptInside(store, { kind: "thread.accepted", trigger, verdict, mode, subscribers }, nowMs);
    store.editions.put({ ...each, seq, dueMs: null });
    return [seq];
  });
}

const heldKey = (triggerId: string): string => `held:${triggerId}`;

function acceptedAt(store: ThreadStore, seq: number): Accepted | null {
  const event = store.log.at(seq)?.event;
  return event?.kind === "thread.accepted" ? event : null;
}

const hasOriginal = ({ log }: ThreadStore, subject: string): boolean =>
  log
    .before(Number.MAX_SAFE_INTEGER, lookedThrough, ["thread.accepted"])
    .some(({ event }) => event.kind === "thread.accepted" && editionOf(event.trigger)?.subject === subject);
