// Offers of a Thread: they wait here until somebody releases or declines them. A released one enters the outbound ledger once; the task
// that made it, and the consoles, hear what becomes of it until they have it.

import { ownerOf, threadIdOf } from "../core/ids.ts";
import { decideOn, readOf, releasedBefore, releasedByItself } from "../core/offer.ts";
import { plainLine, revealed, visible } from "../core/structured.ts";
import { webSource } from "../core/thread.ts";
import { boardName, type Env } from "../env.ts";
import type { BoardChange } from "../protocol/board.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { Offer, OfferView, ReleasePolicy } from "../protocol/offer.ts";
import type { Principal } from "../protocol/principal.ts";
import type { ThreadRpc } from "../protocol/rpc.ts";
import type { OutboundIntent } from "../protocol/thread.ts";
import { withTimeout } from "../timeout.ts";
import type { Told } from "./offer-store.ts";
import { say } from "./thread-changes.ts";
import { callTimeoutMs } from "./thread-delivery.ts";
import type { ThreadRoom } from "./thread-room.ts";

type Input<M extends keyof ThreadRpc> = Parameters<ThreadRpc[M]>[0];

const maxTitleChars = 1_000;
const outOfTime: Principal = { role: "agent", id: "time", name: "nobody, in time" };
const setting: Principal = { role: "agent", id: "setting", name: "the team's setting" };

const viewOf = (room: ThreadRoom, id: string): OfferView => {
  const view = room.store.offers.view(id);
  if (view === null) throw new Fault("not_found", `There is no offer ${id}.`);
  return view;
};

/** Takes an offer: the first one of an id stands. */
export function takeOffer(room: ThreadRoom, threadId: ThreadId, { offer: given, about }: Input<"offer">, policy: ReleasePolicy): OfferView {
  const { store } = room;
  const { id } = given.outbound;
  if (store.offers.view(id) !== null) return viewOf(room, id);
  const place = store.about() ?? about;
  if (!place) throw new Fault("not_found", `There is no thread ${threadId}.`);
  if (given.outbound.threadId !== threadId || threadIdOf(place.source, place.place, place.threadKey) !== threadId)
    throw new Fault("conflict", `${id} belongs to ${given.outbound.threadId}, not to ${threadId}.`);
  // [W27] What a task only asked to follow is none of its threads. [T13] What nobody asked for waits where it comes from.
  const follows = store.subscriptions().some(({ taskId }) => taskId === given.from.taskId);
  if (given.personOnly && !follows && ownerOf(given.outbound.triggerId ?? "", "thr") !== threadId)
    throw new Fault("conflict", `${id} comes from nothing in ${threadId}.`);
  if (!given.personOnly && about === undefined && !follows)
    throw new Fault("forbidden", `${given.from.taskId} does not follow ${threadId}: it proposes only in its own threads.`);
  // Where it would go stands in the title by code's word, not by the task's.
  const where = place.source === webSource ? "" : ` · ${place.place} ${place.threadKey.replace(":", " ")}`;
  // [O12] A person reads what would be sent before it is sent.
  const outbound = { ...given.outbound, text: visible(given.outbound.text) };
  const shown = given.changes === undefined ? {} : { changes: revealed(given.changes) };
  const offer = { ...given, ...shown, outbound, title: plainLine(`${given.title}${where}`, maxTitleChars) };
  room.commit((nowMs) => {
    if (store.about() === null) store.setAbout({ threadId, ...place });
    store.offers.open(offer, nowMs);
    const before = releasedBefore(offer);
    const why = releasedByItself(offer, place, policy);
    if (before !== null) release(room, offer, { ...before, via: "person" }, offer.outbound.text, nowMs);
    else if (why !== null) release(room, offer, { by: setting, via: "policy", reason: why }, offer.outbound.text, nowMs);
    room.armOffers(nowMs);
  });
  return viewOf(room, id);
}

/** A word on an offer: the first one counts. */
export function decideOffer(room: ThreadRoom, input: Input<"decideOffer">, inManner: (text: string, source: string) => string): OfferView {
  const { outboundId: id, by, via, reason = "" } = input;
  const { offer, state, untilMs } = viewOf(room, id);
  if (input.taskId !== undefined && input.taskId !== offer.from.taskId)
    throw new Fault("forbidden", `${id} was not proposed by ${input.taskId}.`);
  const next = decideOn(offer, state, input, Date.now(), untilMs);
  if (next === null) return viewOf(room, id);
  // [O12] On a card stands no more than this.
  if (next === "released" && via === "person" && input.taskId !== undefined && readOf(offer).length > limits.cardOfferChars)
    throw new Fault(
      "forbidden",
      "It is longer than what a card shows: read all of it in the console, under Proposals, and release it there.",
    );
  if (offer.draft && input.text !== undefined && input.text !== offer.outbound.text)
    throw new Fault("bad_input", "A draft is released as it is, or declined. Released, its task goes on: say there what should change.");
  room.commit((nowMs) => {
    if (next === "released")
      release(room, offer, { by, via, reason }, inManner(input.text ?? offer.outbound.text, room.store.about()?.source ?? ""), nowMs);
    else room.store.offers.decided(id, next, next === "expired" ? outOfTime : by, next === "expired" ? "time" : via, reason, nowMs);
    room.armOffers(nowMs);
  });
  return viewOf(room, id);
}

/** [O6] Once and for good: the word on it and its entry in the outbound ledger are one transaction. [SP8] Of a draft nothing is said. */
function release(
  room: ThreadRoom,
  offer: Offer,
  decided: { by: Principal; via: NonNullable<OfferView["decided"]>["via"]; reason: string },
  text: string,
  nowMs: number,
): void {
  const outbound: OutboundIntent = { ...offer.outbound, text };
  room.store.offers.decided(outbound.id, "released", decided.by, decided.via, decided.reason, nowMs);
  if (offer.draft !== true) say(room, outbound, nowMs);
}

/** What the task and the consoles are told of an offer, now that it stands like this; null when they know. */
function newsOf(view: OfferView, told: Told): { task: boolean; board: "notice" | "done" | null; next: Told | null } {
  if (view.state === "held") return { task: true, board: told === "nothing" ? "notice" : null, next: "held" };
  const ended = view.state !== "released" || view.offer.draft === true || (view.sent !== undefined && view.sent.state !== "pending");
  const board = told === "held" ? "done" : null;
  return { task: told !== "decided" || ended, board, next: ended ? null : "decided" };
}

/** Tells everybody who waits; what fails is told again with the next deadline. Returns when that is. */
export async function tellOffers(room: ThreadRoom, env: Listeners, nowMs: number): Promise<number | null> {
  const dues: number[] = [];
  for (const { view, told } of room.store.offers.untold()) {
    const dueMs = await tellOffer(room, env, view, told, nowMs);
    if (dueMs !== null) dues.push(dueMs);
  }
  return dues.length === 0 ? null : Math.min(...dues);
}

type Listeners = Pick<Env, "BOARD" | "WORKER_SESSION">;

/** Returns when there is more to tell of it; null when everybody knows all. */
async function tellOffer(room: ThreadRoom, env: Listeners, view: OfferView, told: Told, nowMs: number): Promise<number | null> {
  const { offers } = room.store;
  const { id } = view.offer.outbound;
  if (view.state === "held" && nowMs >= view.untilMs) {
    room.commit((atMs) => {
      offers.decided(id, "expired", outOfTime, "time", "nobody decided", atMs);
      room.armOffers(atMs);
    });
    return nowMs;
  }
  const news = newsOf(view, told);
  if (news.next !== told) {
    if (news.task) await tellTask(env, view);
    if (news.board !== null) await tellBoard(env, view, news.board);
    offers.setTold(id, news.next);
  }
  if (news.next === null) return null;
  return news.next === "held" ? view.untilMs : nowMs + limits.heartbeatMs;
}

async function tellBoard(env: Listeners, { offer, atMs }: OfferView, what: "notice" | "done"): Promise<void> {
  const { id, threadId } = offer.outbound;
  const text = `${offer.title}\n\n${readOf(offer)}`;
  const change: BoardChange =
    what === "done"
      ? { kind: "notice_done", id }
      : { kind: "notice", notice: { id, atMs, kind: "offer", text, threadId, taskId: offer.from.taskId } };
  await withTimeout(env.BOARD.getByName(boardName).change([change]), callTimeoutMs, "The board");
}

async function tellTask(env: Listeners, view: OfferView): Promise<void> {
  const { taskId } = view.offer.from;
  try {
    await withTimeout(env.WORKER_SESSION.getByName(taskId).offerMoved(view), callTimeoutMs, taskId);
  } catch (error) {
    // A task that is not there needs to hear nothing.
    if (asFault(error)?.retry !== "never") throw error;
  }
}
