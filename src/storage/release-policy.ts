// What the team lets leave by itself: each saved version whole, the highest in force. A reader never waits long and never fails.
import { shippedReleasePolicy } from "../core/offer.ts";
import { Fault } from "../protocol/fault.ts";
import { type ReleasePolicy, releasePolicy } from "../protocol/offer.ts";
import { migrated } from "./migrations.ts";
import { withTimeout } from "./timeout.ts";

const cacheMs = 10_000;
const readTimeoutMs = 2_000;

// Results only, never promises: a promise of one request must not be awaited by another.
const known = new WeakMap<D1Database, { policy: ReleasePolicy; untilMs: number }>();

/** The setting in force, at most about 10 s old. While D1 is away nothing leaves by itself: a stricter setting may be there. */
export async function releasePolicyInForce(db: D1Database, nowMs: number): Promise<ReleasePolicy> {
  const cached = known.get(db);
  if (cached && cached.untilMs > nowMs && cached.untilMs <= nowMs + cacheMs) return cached.policy;
  try {
    const policy = await withTimeout(
      migrated(db).then(() => readReleasePolicy(db)),
      readTimeoutMs,
      "D1",
    );
    known.set(db, { policy, untilMs: nowMs + cacheMs });
    return policy;
  } catch (error) {
    console.error(JSON.stringify({ at: "release-policy", error: String(error) }));
    return { ...shippedReleasePolicy, byItself: [] };
  }
}

export async function readReleasePolicy(db: D1Database): Promise<ReleasePolicy> {
  const row = await db.prepare("SELECT body FROM release_policy ORDER BY version DESC LIMIT 1").first<{ body: string }>();
  return row === null ? shippedReleasePolicy : releasePolicy.parse(JSON.parse(row.body));
}

/** Saves the next version; `conflict` when another was saved since the one that was edited. */
export async function saveReleasePolicy(db: D1Database, edited: ReleasePolicy, by: string, nowMs: number): Promise<ReleasePolicy> {
  const next = { ...edited, version: edited.version + 1 };
  const saved = await db
    .prepare(
      "INSERT INTO release_policy (version, body, saved_by, saved_ms) SELECT ?1 + 1, ?2, ?3, ?4 WHERE (SELECT COALESCE(MAX(version), 0) FROM release_policy) = ?1",
    )
    .bind(edited.version, JSON.stringify(next), by, nowMs)
    .run();
  if (saved.meta.changes !== 1)
    throw new Fault("conflict", "This was changed meanwhile. Look at the newest version and make your change again.");
  known.delete(db);
  return next;
}
