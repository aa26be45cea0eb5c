// What the team lets leave by itself, in D1: each saved version whole, the highest in force.
import { shippedReleasePolicy } from "../core/offer.ts";
import { type ReleasePolicy, releasePolicy } from "../protocol/offer.ts";
import { InForce } from "./in-force.ts";

const inForce = new InForce<ReleasePolicy>("release-policy", readReleasePolicy, null);

/** The setting in force, at most about 10 s old. While D1 is away nothing leaves by itself: a stricter setting may be there. */
export const releasePolicyInForce = (db: D1Database, nowMs: number): Promise<ReleasePolicy> =>
  inForce.get(db, nowMs).catch(() => ({ ...shippedReleasePolicy, byItself: [] }));

export async function readReleasePolicy(db: D1Database): Promise<ReleasePolicy> {
  const row = await db.prepare("SELECT body FROM release_policy ORDER BY version DESC LIMIT 1").first<{ body: string }>();
  return row === null ? shippedReleasePolicy : releasePolicy.parse(JSON.parse(row.body));
}

/** Saves the next version; `conflict` when another was saved since the one that was edited. */
export async function saveReleasePolicy(db: D1Database, edited: ReleasePolicy, by: string, nowMs: number): Promise<ReleasePolicy> {
  const next = { ...edited, version: edited.version + 1 };
  const insert = db
    .prepare(
      "INSERT INTO release_policy (version, body, saved_by, saved_ms) SELECT ?1 + 1, ?2, ?3, ?4 WHERE (SELECT COALESCE(MAX(version), 0) FROM release_policy) = ?1",
    )
    .bind(edited.version, JSON.stringify(next), by, nowMs);
  await inForce.save(db, insert, "this setting");
  return next;
}
