// The door's buckets. They live in the isolate's memory: a count that costs a write would itself be the flood. What ran low is
// written to D1 every ten seconds at most, and read by other isolates every ten seconds and once when they begin, so that neither a new isolate
// nor a second one starts with full buckets for long. A sender reaches few isolates, and so the bound is a small multiple of the
// limit; an object of its own would make it exact, at the price of one more call for every event, noise or not.
import { putNewest } from "../core/newest.ts";
import { type Bucket, placeLimits, type RateLimit, type Sender, scaled, sourceLimit, take, tokensAt } from "../core/rate-limit.ts";
import { logFault } from "../log-fault.ts";
import type { LimitedPlace } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { withTimeout } from "../timeout.ts";
import { migrated } from "./migrations.ts";

const shareEveryMs = 10_000;
const readTimeoutMs = 1_000;
/** Full again for sure after this long: nothing to share. */
const memoryMs = 60 * 60_000;
const keepMs = 7 * 24 * 60 * 60_000;
/** Places that one isolate counts; a source that names more has its own bucket to stop it. */
const maxBuckets = 5_000;
const maxSharedRows = 50;
const shownPlaces = 20;

type Isolate = {
  buckets: Map<string, Bucket>;
  /** Refusals that D1 does not know of yet. */
  refused: Map<string, number>;
  sharedMs: number;
  /** When others' buckets were read; null before the first time. */
  readMs: number | null;
};

const isolates = new WeakMap<D1Database, Isolate>();

function isolateOf(db: D1Database): Isolate {
  const known = isolates.get(db) ?? { buckets: new Map(), refused: new Map(), sharedMs: 0, readMs: null };
  isolates.set(db, known);
  return known;
}

export type Comer = { source: string; place: string; sender: Sender };

const keyOf = ({ source, place, sender }: Comer): string => `${source} ${place.toLowerCase()} ${sender}`;
/** All pages of guests fill one bucket together, and not the team's. */
const sourceKeyOf = ({ source, sender }: Comer): string => (sender === "guests" ? `${source} * guests` : `${source} *`);
const ofSource = / \*( guests)?$/;
const senders = Object.keys(placeLimits) as Sender[];
function limitOf(key: string, factor: number): RateLimit {
  const sender = senders.find((each) => key.endsWith(` ${each}`)) ?? "programs";
  return scaled(ofSource.test(key) ? sourceLimit : placeLimits[sender], factor);
}

/** Lets one event in, or throws the fault that says when to come back. Nothing is written here; `shareLimits` does, off the hot path. */
export async function admit(db: D1Database, comer: Comer, nowMs: number, factor = 1): Promise<void> {
  const isolate = isolateOf(db);
  if (isolate.readMs === null) await readOthers(db, isolate, nowMs, factor);
  const keys = [keyOf(comer), sourceKeyOf(comer)];
  const taken = keys.map((key) => ({ key, ...take(isolate.buckets.get(key) ?? null, limitOf(key, factor), nowMs) }));
  for (const each of taken)
    if (!each.ok) {
      isolate.refused.set(each.key, (isolate.refused.get(each.key) ?? 0) + 1);
      putNewest(isolate.buckets, each.key, each.bucket, maxBuckets);
      const whose = each.key === keys[0] ? comer.place : `all places of ${comer.source} together`;
      throw new Fault("rate_limited", `Too much at once from ${whose}. Nothing of this was taken; deliver it again later.`, {
        retryAfterMs: each.retryAfterMs,
      });
    }
  for (const { key, bucket } of taken) putNewest(isolate.buckets, key, bucket, maxBuckets);
}

/** Tells other isolates of buckets that ran low, and hears of theirs; null when it is not time for that. */
export function shareLimits(db: D1Database, nowMs: number, factor = 1): Promise<void> | null {
  const isolate = isolateOf(db);
  if (Math.abs(nowMs - isolate.sharedMs) < shareEveryMs) return null;
  isolate.sharedMs = nowMs;
  return share(db, isolate, nowMs, factor);
}

async function share(db: D1Database, isolate: Isolate, nowMs: number, factor: number): Promise<void> {
  await readOthers(db, isolate, nowMs, factor);
  const low = [...isolate.buckets]
    .filter(([key, bucket]) => isolate.refused.has(key) || tokensAt(bucket, limitOf(key, factor), nowMs) < limitOf(key, factor).burst / 2)
    // A source's bucket bounds all of its places: it is told before any of them.
    .sort(
      ([a, { tokens: x }], [b, { tokens: y }]) =>
        Number(ofSource.test(b)) - Number(ofSource.test(a)) || Number(isolate.refused.has(b)) - Number(isolate.refused.has(a)) || x - y,
    )
    .slice(0, maxSharedRows);
  if (low.length === 0) return;
  const told = new Map(low.map(([key]) => [key, isolate.refused.get(key) ?? 0]));
  try {
    await migrated(db);
    const save = db.prepare(
      "INSERT INTO rate_limits (key, tokens, at_ms, refused, refused_ms) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key) DO UPDATE SET tokens = excluded.tokens, at_ms = excluded.at_ms, refused = rate_limits.refused + excluded.refused, refused_ms = COALESCE(excluded.refused_ms, rate_limits.refused_ms)",
    );
    await db.batch([
      db.prepare("DELETE FROM rate_limits WHERE at_ms < ?").bind(nowMs - keepMs),
      ...low.map(([key, bucket]) =>
        save.bind(key, bucket.tokens, bucket.atMs, told.get(key) ?? 0, (told.get(key) ?? 0) > 0 ? nowMs : null),
      ),
    ]);
    for (const [key, count] of told) {
      const rest = (isolate.refused.get(key) ?? 0) - count;
      if (rest > 0) isolate.refused.set(key, rest);
      else isolate.refused.delete(key);
    }
  } catch (error) {
    logFault("rate-limits.share", error);
  }
}

/** Where something was refused lately, the newest first. */
export async function limitedPlaces(db: D1Database): Promise<LimitedPlace[]> {
  const { results } = await db
    .prepare(
      "SELECT key, refused, refused_ms AS lastMs FROM rate_limits WHERE refused > 0 AND refused_ms IS NOT NULL ORDER BY refused_ms DESC, refused DESC LIMIT ?",
    )
    .bind(shownPlaces)
    .all<{ key: string; refused: number; lastMs: number }>();
  return results.map(({ key, ...row }) => {
    const [source = "", place = "", sender = ""] = key.split(" ");
    return { source, place: place === "*" ? "all places together" : place, sender, ...row };
  });
}

/** Also when D1 is away the door stays open: then this isolate's own count has to do. */
async function readOthers(db: D1Database, isolate: Isolate, nowMs: number, factor: number): Promise<void> {
  try {
    const read = async () => {
      await migrated(db);
      return db
        .prepare("SELECT key, tokens, at_ms AS atMs FROM rate_limits WHERE at_ms > ? ORDER BY at_ms DESC LIMIT 500")
        .bind(nowMs - memoryMs)
        .all<Bucket & { key: string }>();
    };
    const { results } = await withTimeout(read(), readTimeoutMs, "D1");
    for (const { key, ...theirs } of results) {
      const ours = isolate.buckets.get(key);
      const limit = limitOf(key, factor);
      if (!ours || tokensAt(theirs, limit, nowMs) < tokensAt(ours, limit, nowMs)) putNewest(isolate.buckets, key, theirs, maxBuckets);
    }
  } catch (error) {
    logFault("rate-limits.read", error);
  } finally {
    // After the read: what comes meanwhile reads too, since nobody may wait for the promise of another request.
    isolate.readMs = nowMs;
  }
}
