// Whose account a login of a source is, by our own records. What we do know of a person is read each time.
import { putNewest } from "../core/newest.ts";
import { migrated } from "./migrations.ts";
import { withTimeout } from "./timeout.ts";

/** A door waits for this while its sender waits for the door. */
const recordsTimeoutMs = 2_000;
/** That nobody of ours has a login, as read lately: then the source itself says who it is. */
const strangerMs = 10_000;
const maxStrangers = 2_000;
const strangers = new Map<string, number>();

type Row = { id: string | null; name: string | null; revokedMs: number | null };

/** The person with this login at GitHub, in small letters; null when it is nobody's of ours. Throws when our records cannot be read. */
export async function personOf(
  db: D1Database,
  login: string,
  nowMs: number,
): Promise<{ id: string; name: string; revoked: boolean } | null> {
  const readMs = strangers.get(login);
  if (readMs !== undefined && Math.abs(nowMs - readMs) < strangerMs) return null;
  const row = await withTimeout(accountOf(db, login), recordsTimeoutMs, "D1");
  if (!row) {
    putNewest(strangers, login, nowMs, maxStrangers);
    return null;
  }
  return { id: row.id ?? login, name: row.name ?? login, revoked: row.id === null || row.revokedMs !== null };
}

async function accountOf(db: D1Database, login: string): Promise<Row | null> {
  await migrated(db);
  return db
    .prepare(
      "SELECT people.id AS id, people.name AS name, people.revoked_ms AS revokedMs FROM accounts LEFT JOIN people ON people.id = accounts.person_id WHERE accounts.source = 'github' AND accounts.login = ?",
    )
    .bind(login)
    .first();
}
