// What waits for a release: who may decide about it, and what the team's setting lets go by itself.
import { Fault } from "../protocol/fault.ts";
import type { Offer, OfferJudge, OfferKind, OfferState, OfferView, ReleasePolicy } from "../protocol/offer.ts";
import type { Authority, Principal } from "../protocol/principal.ts";
import { atLeast, authorityOf } from "./authority.ts";

/** Version 0: what is easily seen and easily taken back, in the repository that the work was asked for in. Words to people wait. */
export const shippedReleasePolicy: ReleasePolicy = { version: 0, byItself: ["label", "pull_request"] };

export const kindOfOffer = ({ outbound }: Offer): OfferKind => outbound.deed?.do ?? "comment";

/** [O12] All that a person reads before they release it. */
export const readOf = ({ outbound, changes }: Offer): string => (changes === undefined ? outbound.text : `${outbound.text}\n\n${changes}`);

/** What an offer needs of whoever releases it: never less than the team, and never less than its task. */
const needed = ({ from }: Offer): Authority => (atLeast(from.authority, "member") ? from.authority : "member");

/** [O4] Why the setting lets an offer go by itself; null when it waits. Of a task that read public text, or that the public asked for, everything waits. */
export function releasedByItself(offer: Offer, where: { source: string; place: string }, policy: ReleasePolicy): string | null {
  const { from } = offer;
  if (offer.personOnly || from.tainted || !atLeast(from.authority, "member")) return null;
  if (from.source !== where.source || from.place.toLowerCase() !== where.place.toLowerCase()) return null;
  return policy.byItself.includes(kindOfOffer(offer)) ? `the team's setting, version ${policy.version}` : null;
}

/** [SP8] Who released the same words before, as a draft; null when nobody did. What was read since of the public counts as always. */
export const releasedBefore = ({ from, personOnly, releasedAs }: Offer): { by: Principal; reason: string } | null =>
  releasedAs === undefined || personOnly || from.tainted || !atLeast(from.authority, "member")
    ? null
    : { by: { role: "agent", id: "draft", name: releasedAs.by }, reason: `released as the draft ${releasedAs.offerId}` };

type Decision = { verdict: "release" | "decline"; by: Principal; via: OfferJudge };

/**
 * [O5] What a word on an offer makes of it; null when it was decided before. The router releases nothing of a tainted task, nor of one
 * that the public asked for, nor what only a person may release; a person needs what the task has, and the team's authority at least.
 */
export function decideOn(
  offer: Offer,
  state: OfferState,
  decision: Decision,
  nowMs: number,
  untilMs: number,
): Exclude<OfferState, "held"> | null {
  if (state !== "held") return null;
  if (nowMs >= untilMs) return "expired";
  if (!atLeast(authorityOf(decision.by), needed(offer)))
    throw new Fault("forbidden", `Only someone with the authority of ${needed(offer)} may release or decline this.`);
  if (decision.verdict === "decline") return "declined";
  if (decision.via === "router" && (offer.personOnly || offer.from.tainted || !atLeast(offer.from.authority, "member")))
    throw new Fault("forbidden", "Only a person of the team may release this.");
  return "released";
}

/** [O5] What a person hears whose word came too late, because another one counts; null when an offer stands as they said. */
export function overtaken({ state, decided }: Pick<OfferView, "state" | "decided">, verdict: Decision["verdict"]): string | null {
  const by = decided?.by ?? "somebody";
  switch (state) {
    case "held":
      return null;
    case "released":
      return verdict === "release" ? null : `Too late to decline it: it was released by ${by}.`;
    case "declined":
      return verdict === "decline" ? null : `Too late to release it: it was declined by ${by}.`;
    case "expired":
      return "Nobody released it in time: it is not sent.";
  }
}
