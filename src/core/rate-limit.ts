// Token buckets at the door: how much one place, and one source, may bring before it is asked to wait.
import type { Role } from "../protocol/principal.ts";

/** `tokens` at `atMs`; they grow with time up to the limit's burst. */
export type Bucket = { tokens: number; atMs: number };
export type RateLimit = { burst: number; perSecond: number };

/** People, guests and programs have buckets of their own: a storm of checks, or of strangers, never makes the team wait. */
export type Sender = "people" | "guests" | "programs";

export const senderOf = (role: Role): Sender => (role === "bot" ? "programs" : role === "guest" ? "guests" : "people");

/**
 * A matrix of CI jobs brings hundreds of events within a minute, a long review some dozens of comments: neither is a flood.
 * What one place may bring in an hour is then at most a few thousand rows, and all places of a source together some ten thousand.
 * [T10] A guest's place is their own page: nobody types faster than this for long.
 */
export const placeLimits: Record<Sender, RateLimit> = {
  people: { burst: 300, perSecond: 0.5 },
  guests: { burst: 30, perSecond: 0.5 },
  programs: { burst: 600, perSecond: 1 },
};
export const sourceLimit: RateLimit = { burst: 3_000, perSecond: 5 };

/** [T10] Sessions of guests behind one address: an office, a class. */
export const guestSessionLimit: RateLimit = { burst: 60, perSecond: 0.2 };
/** [T10] Connections of one guest, each a row and a look at all that was said: a page that comes back, not one that hammers. */
export const guestTicketLimit: RateLimit = { burst: 30, perSecond: 0.1 };

/** A larger team turns all limits up by one factor. */
export const scaled = ({ burst, perSecond }: RateLimit, factor: number): RateLimit => ({
  burst: burst * factor,
  perSecond: perSecond * factor,
});

/** How full a bucket is now; a clock that went back adds nothing and takes nothing. */
export const tokensAt = (bucket: Bucket, limit: RateLimit, nowMs: number): number =>
  Math.min(limit.burst, bucket.tokens + (Math.max(0, nowMs - bucket.atMs) / 1000) * limit.perSecond);

export type Taken = { ok: true; bucket: Bucket } | { ok: false; bucket: Bucket; retryAfterMs: number };

/** [G6] Takes one token, or says when there is one. A refusal takes nothing: who keeps knocking does not wait longer. */
export function take(bucket: Bucket | null, limit: RateLimit, nowMs: number): Taken {
  const tokens = bucket === null ? limit.burst : tokensAt(bucket, limit, nowMs);
  const atMs = Math.max(nowMs, bucket?.atMs ?? nowMs);
  if (tokens >= 1) return { ok: true, bucket: { tokens: tokens - 1, atMs } };
  return { ok: false, bucket: { tokens, atMs }, retryAfterMs: Math.ceil(((1 - tokens) / limit.perSecond) * 1000) };
}
