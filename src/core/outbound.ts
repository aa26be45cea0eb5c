// The outbound ledger: pending → sent(provider id) → confirmed, or visibly expired, failed, unknown. Never twice, never silently lost.
import type { Retry } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { OutboundState } from "../protocol/thread.ts";
import { retryAtMs } from "./alarms.ts";
import type { Manner } from "./manners.ts";

export type OutboundEntry = {
  id: string;
  state: OutboundState;
  createdMs: number;
  /** Set before a send and cleared after it: found set after a crash, the message may have been sent. */
  inFlight: boolean;
  attempts: number;
  /** When the next step is due; null once the entry is final. */
  dueMs: number | null;
  providerId: string | null;
  detail: string | null;
};

/** What the team is told of messages that did not reach people, or that nobody knows of whether they did. */
export function unsentWords(entries: readonly OutboundEntry[], where: string): string {
  const failed = entries.every(({ state }) => state === "failed");
  const reasonOf = ({ state, detail }: OutboundEntry): string =>
    `${failed ? "" : `${state}: `}${(detail ?? "no reason given").replace(/\.$/, "")}`;
  const reasons = [...new Set(entries.map(reasonOf))].slice(0, 3).join("; ");
  const messages = entries.length === 1 ? "1 message" : `${entries.length} messages`;
  return failed
    ? `${messages} for ${where} could not be sent. ${reasons}.`
    : `${messages} for ${where} did not surely arrive (${reasons}).`;
}

export type OutboundStep = { do: "send" | "find" | "expire" } | { do: "wait"; untilMs: number } | { do: "nothing" };

/** How a call to the channel ended; `providerId` null only from `find`: the provider does not have it. */
export type ChannelResult =
  | { ok: true; providerId: string | null }
  | { ok: false; retry: Retry; reason: string; retryAfterMs?: number | undefined };

/** Before an ambiguous message is looked up: the provider's own listing may lag behind its answer. */
const findDelayMs = 2_000;

export const maxAgeMs = (manner: Manner): number =>
  manner === "instant" ? limits.outboundMaxAgeInstantMs : limits.outboundMaxAgeStructuredMs;

export const newEntry = (id: string, nowMs: number): OutboundEntry => ({
  id,
  state: "pending",
  createdMs: nowMs,
  inFlight: false,
  attempts: 0,
  dueMs: nowMs,
  providerId: null,
  detail: null,
});

/** [O1] What to do next. An ambiguous entry is looked up before anything else, whatever its age; an old one is not sent. */
export function nextOutboundStep(entry: OutboundEntry, nowMs: number, ageLimitMs: number): OutboundStep {
  switch (entry.state) {
    case "sent":
    case "confirmed":
    case "expired":
    case "failed":
      return { do: "nothing" };
    case "unknown":
    case "pending":
      if (entry.dueMs === null) return { do: "nothing" };
      if (entry.inFlight) return { do: "find" };
      if (entry.dueMs > nowMs) return { do: "wait", untilMs: entry.dueMs };
      if (entry.state === "unknown") return { do: "find" };
      return { do: nowMs - entry.createdMs > ageLimitMs ? "expire" : "send" };
  }
}

const done = (entry: OutboundEntry, state: OutboundState, detail: string | null): OutboundEntry => ({
  ...entry,
  state,
  detail,
  inFlight: false,
  dueMs: null,
});

/** Marks an entry before the channel is called. */
export const beginSend = (entry: OutboundEntry): OutboundEntry => ({ ...entry, inFlight: true, attempts: entry.attempts + 1 });

/** [O2] After `send`: `never` fails it, `later` waits at least as long as the provider asked, `unknown` is looked up first. */
export function afterSend(entry: OutboundEntry, result: ChannelResult, nowMs: number): OutboundEntry {
  if (result.ok) return { ...done(entry, "sent", null), providerId: result.providerId };
  const againMs = Math.max(retryAtMs(nowMs, entry.attempts), nowMs + (result.retryAfterMs ?? 0));
  switch (result.retry) {
    case "never":
      return done(entry, "failed", result.reason);
    case "later":
      return { ...entry, state: "pending", inFlight: false, dueMs: againMs, detail: result.reason };
    case "unknown":
      return { ...entry, state: "unknown", inFlight: false, dueMs: Math.max(againMs, nowMs + findDelayMs), detail: result.reason };
  }
}

/** [O3] After `find`: there it is sent; surely absent it may be sent again while it is young; unanswered it stays unknown. */
export function afterFind(entry: OutboundEntry, result: ChannelResult, nowMs: number, ageLimitMs: number): OutboundEntry {
  const old = nowMs - entry.createdMs > ageLimitMs;
  if (result.ok) {
    if (result.providerId !== null) return { ...done(entry, "sent", null), providerId: result.providerId };
    return old ? expire(entry) : { ...entry, state: "pending", inFlight: false, dueMs: nowMs };
  }
  if (old || result.retry === "never") return done(entry, "unknown", `It may have been sent; looking it up failed: ${result.reason}`);
  const againMs = Math.max(retryAtMs(nowMs, entry.attempts + 1), nowMs + (result.retryAfterMs ?? 0));
  return { ...entry, state: "unknown", inFlight: false, attempts: entry.attempts + 1, dueMs: againMs, detail: result.reason };
}

export const expire = (entry: OutboundEntry): OutboundEntry =>
  done(entry, "expired", `It was not sent in time${entry.detail === null ? "" : `: ${entry.detail}`}`);

/** Our own message came back: whatever we believed before, it is there. What the provider called it when it took it, stays its name. */
export const confirm = (entry: OutboundEntry, providerId: string): OutboundEntry => ({
  ...done(entry, "confirmed", null),
  providerId: entry.providerId ?? providerId,
});
