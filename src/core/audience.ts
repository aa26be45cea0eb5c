// Who can read what is said somewhere, as far as code can know it: what one conversation holds must not turn up in another.
import type { FaultWords } from "../protocol/fault.ts";
import type { Offer } from "../protocol/offer.ts";
import type { Authority, Principal } from "../protocol/principal.ts";
import type { TaskStart } from "../protocol/task.ts";
import type { ThreadInfo } from "../protocol/thread.ts";
import { type Trigger, timerKind } from "../protocol/trigger.ts";
import { laneOf } from "./authority.ts";
import { rootOwnerOf, webSource } from "./thread.ts";

/** A conversation in the widget is one person's; a place like `acme/app` is read by everybody who reads the place. */
export const webAudience = (personId: string): string => `${webSource} ${personId}`;

/** [A8] Who reads what is said at a place; in the widget it is the conversation of `personId`. */
export const audienceAt = ({ source, place }: { source: string; place: string }, personId: string): string =>
  source === webSource ? webAudience(personId) : `${source} ${place}`;

/** Whoever holds the operator token. */
export const operatorId = "operator";

/** Operators hear what a person of the team hears on a page of their own, and nothing of another's. */
export const operatorAudience = webAudience(operatorId);

/** For everybody of the team, wherever they ask. */
export const teamAudience = "";

/** Of what it is not known who may hear it. */
export const nobody = "nobody";

/** Who speaks, under the id of the person whose conversation it is: a schedule speaks into the one of the person who made it, an operator into a task's. */
export const speakerOf = ({ kind, facts, principal }: Pick<Trigger, "principal" | "kind" | "facts">): Trigger["principal"] =>
  facts?.for !== undefined && (kind === timerKind || isOperator(principal)) ? { ...principal, id: facts.for } : principal;

const isOperator = ({ role, id }: Principal): boolean => role === "owner" && id === operatorId;

/** [A8] The audience of a trigger's thread. */
export const audienceOf = (trigger: Pick<Trigger, "source" | "place" | "principal" | "kind" | "facts">): string =>
  audienceAt(trigger, speakerOf(trigger).id);

/** [RI2] Whoever opened a thread wrote its title: whether that was whoever is behind this trigger, or, in the widget, we. */
export const hasKnownTitle = ({ source, kind }: Pick<Trigger, "source" | "kind">): boolean =>
  source === webSource || kind.endsWith(".opened");

/** [A8] Who reads a thread: of a conversation in the widget the person whose page it is on. */
export const threadAudience = (thread: Pick<ThreadInfo, "source" | "place" | "threadKey" | "viewerId">): string =>
  audienceAt(thread, thread.viewerId ?? rootOwnerOf(thread.threadKey) ?? thread.threadKey);

/** [A8] The audience of what a task says. */
export const taskAudience = (start: Pick<TaskStart, "source" | "place" | "quote">): string => audienceAt(start, start.quote.from.id);

/** [A9] Until it is said, a proposal is heard by whoever hears its task; where that is not known, by nobody. */
export const offerAudience = ({ from }: Pick<Offer, "from">): string =>
  from.audience ?? (from.source === webSource ? nobody : `${from.source} ${from.place}`);

/**
 * [A8] Whether words of one audience may be handed to another: to itself, and from a shared place into a conversation of
 * one person of the team. What one person wrote in their own conversation goes nowhere else.
 */
export const mayFlow = (from: string, to: string): boolean => from === teamAudience || from === to || (isOwn(to) && isPlace(from));

/** [A11] A fault in words for an audience. The team alone reads a conversation of one of its people's own; of a place nobody knows who reads it. */
export const faultFor = ({ message, detail }: FaultWords, audience: string, authority: Authority): string =>
  isOwn(audience) && laneOf(authority) === "team" ? (detail ?? message) : message;

const isOwn = (audience: string): boolean => audience.startsWith(webAudience(""));

/** `source place`; what has no place is nobody's, or one thread's alone. */
const isPlace = (audience: string): boolean => audience.includes(" ") && !isOwn(audience);

/** [A9] Whether something may be shown to a mind that answers several conversations: one of them at least may hear it. */
export const mayReachAny = (from: string, readers: readonly string[]): boolean => readers.some((reader) => mayFlow(from, reader));

/** [A9] What was read of one conversation, and could be repeated in another that may not hear it. */
export const overheardBy = (heard: readonly string[], reader: string): boolean => heard.some((from) => !mayFlow(from, reader));
