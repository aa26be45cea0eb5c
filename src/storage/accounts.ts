// Whose account a login of a source is, by our own records. What we do know of a person is read each time.
import { and, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { putNewest } from "../core/newest.ts";
import { Fault } from "../protocol/fault.ts";
import type { PersonId } from "../protocol/ids.ts";
import { withTimeout } from "../timeout.ts";
import { accounts } from "./d1-schema.ts";
import { migrated } from "./migrations.ts";
import { personById } from "./people.ts";

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

const loginForm = /^[a-z\d][a-z\d_-]{0,99}$/;

/**
 * Says which login at GitHub a person has; null when none. [A10] One login is of one person, and one person has one. Whose access was
 * withdrawn keeps theirs: without it, GitHub would say that they are of the team. Another isolate may take up to ten seconds to know.
 */
export async function linkAccount(db: D1Database, personId: PersonId, given: string): Promise<{ login: string | null }> {
  const login = given.trim().replace(/^@/, "").toLowerCase();
  if (login !== "" && !loginForm.test(login))
    throw new Fault(
      "bad_input",
      "A login at GitHub is made of letters, digits and dashes: the name after github.com/ on the person's page.",
    );
  const person = await personById(db, personId);
  if (!person) throw new Fault("not_found", `There is no person ${personId}.`);
  if (person.revokedMs !== null)
    throw new Fault("conflict", `The access of ${person.name} was withdrawn. Their login stays theirs, so that it brings nobody back.`);
  const d1 = drizzle(db);
  const atGitHub = eq(accounts.source, "github");
  const [taken] =
    login === ""
      ? []
      : await d1
          .select()
          .from(accounts)
          .where(and(atGitHub, eq(accounts.login, login)));
  if (taken && taken.personId !== personId) {
    const other = await personById(db, taken.personId as PersonId);
    const free = other?.revokedMs === null ? " Take it from them first." : "";
    throw new Fault("conflict", `${login} is the login of ${other?.name ?? taken.personId} already.${free}`);
  }
  const gone = d1.delete(accounts).where(and(atGitHub, eq(accounts.personId, personId)));
  // Who else took it in this very moment keeps it: the key is the login.
  await (login === "" ? gone : d1.batch([gone, d1.insert(accounts).values({ source: "github", login, personId })]));
  strangers.delete(login);
  return { login: login === "" ? null : login };
}
