// What a task proposed to the outside world, and what becomes of it: it waits for a release, and the task hears the end of it.
import { limits } from "../protocol/limits.ts";
import type { Offer, OfferView } from "../protocol/offer.ts";
import { excerpt } from "./context.ts";
import { childId } from "./ids.ts";
import { kindOfOffer, readOf } from "./offer.ts";
import type { CommandMaker } from "./worker-calls.ts";
import { oneLine } from "./worker-card.ts";
import { inboxEvent } from "./worker-context.ts";
import { pushReleased } from "./worker-draft.ts";
import { follow } from "./worker-follow.ts";
import {
  addReport,
  type Change,
  changeOf,
  type InboxItem,
  type InboxRow,
  releasedStep,
  type TaskOffer,
  type TaskState,
} from "./worker-state.ts";

/** How an offer stands, in one word: until it is released that of the offer, then that of its entry in the outbound ledger. */
const stageOf = ({ offer, state, sent }: OfferView): TaskOffer["stage"] =>
  state === "released" && offer.draft !== true ? (sent?.state ?? "pending") : state;

const order: TaskOffer["stage"][] = ["proposed", "held", "pending"];
/** Nothing more becomes of it. */
const hasEnded = (stage: TaskOffer["stage"]): boolean => !order.includes(stage);
const rank = (stage: TaskOffer["stage"]): number => (hasEnded(stage) ? order.length : order.indexOf(stage));

/** Whether a task waits for what becomes of a proposal of its own. */
export const awaitsOffer = (task: TaskState): boolean => task.offers.some(({ stage }) => !hasEnded(stage));

/** What the worker reads when its proposal came to an end. */
function newsOf({ offer, decided }: OfferView, stage: TaskOffer["stage"], sent: OfferView["sent"]): string {
  const { title, outbound } = offer;
  const by = decided === undefined ? "" : ` by ${decided.by}`;
  const why = decided?.reason ? `: ${decided.reason}` : "";
  switch (stage) {
    case "declined":
      return `Your proposal ${outbound.id} (${title}) was declined${by}${why}. It is not sent.`;
    case "released":
      return `Your draft ${outbound.id} (${title}) was released${by}: the commit that it names is pushed and its pull request opened, unless you made another draft since.`;
    case "expired":
      return `Nobody released your proposal ${outbound.id} (${title}) in time. It is not sent.`;
    case "failed":
    case "unknown":
      return `Your proposal ${outbound.id} (${title}) was released${by}, but ${stage === "failed" ? "it failed" : "whether it arrived is not known"}: ${sent?.detail ?? "no reason given"}`;
    default: {
      const number = kindOfOffer(offer) === "pull_request" && sent?.providerId ? ` It is pull request #${sent.providerId}.` : "";
      return `Your proposal ${outbound.id} (${title}) was released${by} and is sent.${number}`;
    }
  }
}

/** `receive` puts the news into the inbox, null when it is there. */
export type OfferFacts = { receive: (item: InboxItem) => InboxRow | null; commandFor: CommandMaker; nowMs: number };

/** [W23] A proposal stands on the task's card while it waits, the router hears of it, and the task is woken by its end. */
export function offerMoved(task: TaskState, view: OfferView, facts: OfferFacts): Change | null {
  const { id, text } = view.offer.outbound;
  const stage = stageOf(view);
  const known = task.offers.find((each) => each.id === id);
  // News may come late: nothing goes back to an earlier stage.
  if (known && rank(stage) <= rank(known.stage)) return null;
  const change = changeOf(task, `a proposal is ${stage}`);
  const shown = {
    id,
    kind: kindOfOffer(view.offer),
    title: view.offer.title,
    text: excerpt(readOf(view.offer), limits.cardOfferChars),
    stage,
  };
  change.task.offers = known ? task.offers.map((each) => (each.id === id ? shown : each)) : [...task.offers, shown];
  if (stage === "held" && task.mode.mode !== "ended")
    addReport(change, {
      id: childId("rep", task.start.taskId, "proposal", id),
      kind: "proposal",
      text: `${view.offer.title}\n\n${text}`,
      status: task.card.status,
      nowMs: facts.nowMs,
      offer: id,
    });
  return hasEnded(stage) ? offerEnded(change, view, stage, facts) : change;
}

/** Whatever it waits for otherwise, the task hears of the end. */
function offerEnded(change: Change, view: OfferView, stage: TaskOffer["stage"], facts: OfferFacts): Change {
  const { task } = change;
  const { id, deed } = view.offer.outbound;
  // [SP8] Its own draft: nobody else carries the release out.
  if (stage === "released" && task.draft?.offerId === id && task.mode.mode !== "ended" && task.mode.mode !== "cancelling")
    pushReleased(change, { offerId: id, by: view.decided?.by ?? "a person of the team" }, facts);
  // [SP4] The router looks at once what people made of it, and not with its next round.
  if (task.start.speculative === true)
    addReport(change, {
      id: childId("rep", task.start.taskId, "proposal", id, stage),
      kind: "proposal",
      text: stage,
      status: task.card.status,
      nowMs: facts.nowMs,
      offer: id,
    });
  const row = facts.receive({ kind: "offer", id, text: newsOf(view, stage, view.sent) });
  if (row === null) return change;
  const arrived = stage === "sent" || stage === "confirmed";
  const number = deed?.do === "pull_request" && arrived ? view.sent?.providerId : null;
  const place = task.pushes.at(-1)?.place;
  if (number && place !== undefined && task.mode.mode !== "ended")
    follow(change, { source: "github", place, threadKey: `pull:${number}`, title: `Pull request #${number}` });
  change.events.push(inboxEvent(row.key, row.item));
  if (task.mode.mode === "ended") {
    change.consumed = { seqs: [row.seq], step: releasedStep };
    change.events.push({ kind: "task.skipped", itemId: row.key, reason: "the task has ended" });
  } else if (task.mode.mode === "working") task.line = oneLine(`${stage}: ${view.offer.title}`);
  return change;
}

/** A proposal that its thread will never take has its end at once. */
export function offerRefused(task: TaskState, offer: Offer, reason: string, facts: OfferFacts): Change | null {
  const { nowMs } = facts;
  const decided = { by: "Switchyard", via: "policy" as const, reason };
  return offerMoved(task, { offer, state: "declined", atMs: nowMs, untilMs: nowMs, decided }, facts);
}
