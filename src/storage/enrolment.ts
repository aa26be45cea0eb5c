// Enrolment codes: shown once, kept as a hash, used once within ten minutes. What redeems one is a machine's own key. And what is enrolled.
import { makeId, sha256Hex } from "../core/ids.ts";
import { Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";

/** No 0, O, 1, I or L: people read these aloud and type them. */
const alphabet = "23456789ABCDEFGHJKMNPQRSTUVWXYZ";
const groups = 5;
const groupChars = 5;

const hashOf = (code: string): string => sha256Hex(`enrolment:${code.toUpperCase().replace(/[^0-9A-Z]/g, "")}`);

/** A new code, such as `K7M2P-…`; only its hash is kept, so it cannot be shown again. */
export async function createEnrolmentCode(db: D1Database, nowMs: number): Promise<string> {
  const chars: string[] = [];
  while (chars.length < groups * groupChars) {
    for (const byte of crypto.getRandomValues(new Uint8Array(64))) {
      // The rest of a division would favour some characters: such bytes are drawn again.
      if (byte < 256 - (256 % alphabet.length)) chars.push(alphabet.charAt(byte % alphabet.length));
    }
  }
  const code = Array.from({ length: groups }, (_, i) => chars.slice(i * groupChars, (i + 1) * groupChars).join("")).join("-");
  await db
    .prepare("INSERT INTO grants (hash, kind, expires_ms) VALUES (?, 'enrolment', ?)")
    .bind(hashOf(code), nowMs + limits.enrolmentCodeMs)
    .run();
  return code;
}

/**
 * Uses a code for a machine's key and writes the machine's row, both or neither. The same code with the same key finds the same
 * machine, so that a lost answer can be asked for again while the code lives; with another key it is used up. Null when it is no good.
 */
export async function redeemEnrolmentCode(
  db: D1Database,
  machine: { code: string; name: string; publicKey: string; platform: string },
  nowMs: number,
): Promise<{ endpointId: string; name: string } | null> {
  const hash = hashOf(machine.code);
  const endpointId = makeId("ep", hash, machine.publicKey);
  const name = await freeName(db, machine.name, endpointId);
  // The grant remembers who used it; only that machine passes both statements.
  const results = await db.batch<{ id: string; name: string }>([
    db
      .prepare(
        "UPDATE grants SET used_ms = IFNULL(used_ms, ?1), person_id = ?2 WHERE hash = ?3 AND kind = 'enrolment' AND expires_ms > ?1 AND (used_ms IS NULL OR person_id = ?2)",
      )
      .bind(nowMs, endpointId, hash),
    db
      .prepare(
        "INSERT OR IGNORE INTO endpoints (id, name, platform, created_ms) SELECT ?1, ?2, ?3, ?4 FROM grants WHERE hash = ?5 AND person_id = ?1 AND expires_ms > ?4",
      )
      .bind(endpointId, name, machine.platform, nowMs, hash),
    db
      .prepare(
        "SELECT id, name FROM endpoints WHERE id = ?1 AND revoked_ms IS NULL AND EXISTS (SELECT 1 FROM grants WHERE hash = ?2 AND person_id = ?1 AND expires_ms > ?3)",
      )
      .bind(endpointId, hash, nowMs),
  ]);
  const row = results[2]?.results[0];
  return row ? { endpointId: row.id, name: row.name } : null;
}

/** Names are how people choose a machine: a second `laptop` becomes `laptop-2`. */
async function freeName(db: D1Database, wanted: string, endpointId: string): Promise<string> {
  const { results } = await db
    .prepare("SELECT name FROM endpoints WHERE revoked_ms IS NULL AND id <> ?")
    .bind(endpointId)
    .all<{ name: string }>();
  const taken = new Set(results.map((row) => row.name.toLowerCase()));
  for (let n = 1; ; n++) {
    const suffix = n === 1 ? "" : `-${n}`;
    const name = `${wanted.slice(0, 60 - suffix.length)}${suffix}`;
    if (!taken.has(name.toLowerCase())) return name;
  }
}

/** The machine of an id, revoked ones too; null when none was enrolled. */
export const machineById = (db: D1Database, endpointId: string): Promise<{ name: string; revokedMs: number | null } | null> =>
  db
    .prepare("SELECT name, revoked_ms AS revokedMs FROM endpoints WHERE id = ?")
    .bind(endpointId)
    .first<{ name: string; revokedMs: number | null }>();

/** Takes a machine's access away for good. Its Endpoint's `revoke` closes the connection. */
export async function revokeMachine(db: D1Database, endpointId: string, nowMs: number): Promise<void> {
  const row = db.prepare("UPDATE endpoints SET revoked_ms = IFNULL(revoked_ms, ?1) WHERE id = ?2").bind(nowMs, endpointId);
  if ((await row.run()).meta.changes === 0) throw new Fault("not_found", `There is no machine ${endpointId}.`);
}
