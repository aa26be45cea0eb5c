// What a failed call of the router's model means: that nobody can be reached, something said before, or one of the items at hand.
import { asFault, detailOf, Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { ModelMessage } from "../protocol/model.ts";
import type { Lane } from "../protocol/principal.ts";
import { retryAtMs } from "./alarms.ts";
import { audienceOf, faultFor } from "./audience.ts";
import { authorityOf } from "./authority.ts";
import { type InboxItem, noDoubt, type QueuedTrigger, type RouterMeta } from "./router.ts";

/** Wrong settings do not heal by themselves: the model is tried again this often, and whenever something new comes. */
const neverRetryMs = 5 * 60_000;
/** After this many failures in a row people are told that they have to wait. */
const failuresUntilTold = 3;
/** A passing fault of a request is retried once before it is asked whether it is the request's own. */
const failuresUntilAsked = 2;

/** The smallest request, to see whether the model answers anything at all. Its answer is read by nobody. */
export const probe: Extract<ModelMessage, { role: "user" }> = {
  role: "user",
  text: "Are you there? Answer with the word yes; nothing is to be decided.",
};

/** What probes found: the model answers nothing, nothing with what was said before in this lane, or all but the items at hand. */
export type Found = "outage" | "past" | "items";

export type FailedTurn = {
  lane: Lane;
  /** Those that the turn had not decided yet. */
  items: readonly Pick<InboxItem, "attempts" | "tries">[];
  /** The call that failed was not the turn's first: what was read meanwhile stands in the transcript. */
  later: boolean;
  settingsProblem: string | null;
  nowMs: number;
};

export type FaultPlan = {
  meta: RouterMeta;
  /** The turn's only item is what the model refuses: that counts as an attempt, and from now on it waits apart. */
  blame: boolean;
};

export const routerFault = (error: unknown): Fault =>
  asFault(error) ?? new Fault("internal", "Something in the router itself failed; it is tried again.", { retry: "later" });

/** Faults that no request can be the reason of. */
const concernsAll = (fault: Fault, settingsProblem: string | null): boolean =>
  settingsProblem !== null || ["unauthorised", "forbidden", "not_found", "rate_limited"].includes(fault.kind);

const isApart = ({ items }: Pick<FailedTurn, "items">): boolean => items.length === 1 && items.some((item) => item.tries > 0);

/** [RT7] Whether it is to be found out what fails: not for what surely concerns all, and not at the first passing fault. */
export const isToAsk = (meta: RouterMeta, fault: Fault, turn: FailedTurn): boolean =>
  !concernsAll(fault, turn.settingsProblem) &&
  (fault.retry === "never" || isApart(turn) || meta.doubts[turn.lane].failures + 1 >= failuresUntilAsked);

/** [RT5][RT7] A failed model call loses nothing: the items stay queued. `found` is null when nothing was asked; `fault` is the probe's in an outage. */
export function planModelFault(meta: RouterMeta, fault: Fault, turn: FailedTurn, found: Found | null): FaultPlan {
  switch (found) {
    case null:
      return {
        meta: concernsAll(fault, turn.settingsProblem) ? unreachable(meta, fault, turn) : onceMore(meta, fault, turn),
        blame: false,
      };
    case "outage":
      return { meta: unreachable(meta, fault, turn), blame: false };
    case "past": {
      const forgotten = withoutPast(reachable(meta), turn.lane);
      // What the turn itself read is among it: read again, it would end the same way.
      return turn.later ? among(forgotten, fault, turn) : { meta: forgotten, blame: false };
    }
    case "items":
      return among(reachable(meta), fault, turn);
  }
}

/**
 * [RT7] A turn that began and never ended: its process died of it, or beside it, or it hangs. No model can be asked which. Several items go
 * in halves, which costs none of them anything; one alone is tried once more, at once, before that counts.
 */
export function planLostTurn(meta: RouterMeta, turn: Pick<FailedTurn, "lane" | "items" | "nowMs">): FaultPlan {
  if (turn.items.length === 0) return { meta, blame: false };
  const doubt = meta.doubts[turn.lane];
  const counted = withDoubt(meta, turn.lane, { ...doubt, failures: doubt.failures + 1 });
  const isFirst = turn.items.length === 1 && !isApart(turn) && doubt.failures === 0;
  return isFirst ? { meta: counted, blame: false } : among(counted, { retry: "later" }, turn);
}

/** All of what failed together is smaller the next time; what fails alone is to blame. */
function among(meta: RouterMeta, fault: Pick<Fault, "retry">, turn: Pick<FailedTurn, "lane" | "items" | "nowMs">): FaultPlan {
  const [item] = turn.items;
  if (item === undefined || turn.items.length > 1) {
    const untilMs = fault.retry === "never" ? turn.nowMs : retryAtMs(turn.nowMs, 1);
    const width = Math.ceil(turn.items.length / 2);
    return { meta: withDoubt(meta, turn.lane, { ...meta.doubts[turn.lane], width, untilMs }), blame: false };
  }
  const attempts = item.attempts + 1;
  const alone = { ...withDoubt(meta, turn.lane, noDoubt), apartMs: retryAtMs(turn.nowMs, 2 * attempts + 1) };
  // Before people are asked it is tried without what was said before: together they may be too long.
  return { meta: attempts === limits.maxDecisionAttempts - 1 ? withoutPast(alone, turn.lane) : alone, blame: true };
}

function onceMore(meta: RouterMeta, fault: Fault, { lane, nowMs }: FailedTurn): RouterMeta {
  const before = meta.doubts[lane];
  const doubt = { ...before, failures: before.failures + 1, untilMs: retryAtMs(nowMs, 1) };
  return { ...withDoubt(meta, lane, doubt), failures: meta.failures + 1, modelNote: detailOf(fault) };
}

function unreachable(meta: RouterMeta, fault: Fault, { lane, nowMs }: FailedTurn): RouterMeta {
  const failures = meta.failures + 1;
  const before = meta.doubts[lane];
  const failed = { ...withDoubt(meta, lane, { ...before, failures: before.failures + 1 }), failures, modelNote: detailOf(fault) };
  if (fault.retry === "never")
    return {
      ...failed,
      retryAtMs: nowMs + neverRetryMs,
      lastRetry: "never",
      notice: cannotAnswer(fault.message),
    };
  return {
    ...failed,
    retryAtMs: Math.max(retryAtMs(nowMs, failures), nowMs + (fault.retryAfterMs ?? 0)),
    lastRetry: "later",
    notice: failures >= failuresUntilTold ? "I cannot reach my model right now; your message is kept and I will answer." : null,
  };
}

const cannotAnswer = (reason: string): string => `I cannot answer yet. ${reason} Your message is kept and I will answer.`;

/** [A11] What somebody who waits is told: a person of the team, on a page of their own, what operators read of a lasting fault. */
export function waitingWords({ lastRetry, modelNote }: RouterMeta, notice: string, { trigger }: QueuedTrigger): string {
  const detail = lastRetry === "never" && modelNote !== null ? cannotAnswer(modelNote) : undefined;
  return faultFor({ message: notice, detail }, audienceOf(trigger), authorityOf(trigger.principal));
}

const withDoubt = (meta: RouterMeta, lane: Lane, doubt: RouterMeta["doubts"][Lane]): RouterMeta => ({
  ...meta,
  doubts: { ...meta.doubts, [lane]: doubt },
});

const withoutPast = (meta: RouterMeta, lane: Lane): RouterMeta => ({
  ...meta,
  segments: { ...meta.segments, [lane]: meta.segments[lane] + 1 },
});

const reachable = (meta: RouterMeta): RouterMeta => ({
  ...meta,
  failures: 0,
  retryAtMs: 0,
  lastRetry: null,
  modelNote: null,
  notice: null,
  told: [],
});

/** After an answer of the model nothing is wrong any more, unless it decided nothing of several items: then they go in parts. */
export function afterModelAnswer(meta: RouterMeta, lane: Lane, undecided: number | null): RouterMeta {
  const width = undecided === null || undecided < 2 ? null : Math.ceil(undecided / 2);
  return withDoubt(reachable(meta), lane, { ...noDoubt, width });
}

/** Threads of people of the team who asked for something, wait for it, and were not told yet. */
export const threadsToTell = (queued: readonly InboxItem[], told: readonly string[]): QueuedTrigger[] => {
  const seen = new Set(told);
  return queued.filter((item): item is QueuedTrigger => {
    if (item.kind !== "trigger" || item.lane !== "team" || item.verdict.outcome !== "request" || seen.has(item.threadId)) return false;
    seen.add(item.threadId);
    return true;
  });
};
