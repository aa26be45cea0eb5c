// The people of the team, and the personal invite links by which they come. Only the hash of a link's token is kept.
import { and, asc, eq, getTableColumns, gt, isNull } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { makeId, sha256Hex } from "../core/ids.ts";
import { Fault } from "../protocol/fault.ts";
import type { PersonId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import { accounts, grants, people } from "./d1-schema.ts";

export type Person = { id: PersonId; name: string; role: "owner" | "member"; createdMs: number; revokedMs: number | null };

const hashOf = (token: string): string => sha256Hex(`invite:${token}`);

/** 256 random bits, in letters that survive a link. */
function randomToken(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/**
 * A personal invite, good once and for `limits.inviteMs`. With `personId` it is for that person, who is made if need be: the
 * owner's link of each start leads to the same person and the same conversations.
 */
export async function createInvite(
  db: D1Database,
  invite: { name: string; role: "owner" | "member"; personId?: PersonId },
  nowMs: number,
): Promise<{ token: string; personId: PersonId }> {
  const name = invite.name.trim();
  if (name === "" || name.length > 100) throw new Fault("bad_input", "A person needs a name of 1 to 100 characters.");
  const token = randomToken();
  const personId = invite.personId ?? makeId("prs", token);
  const d1 = drizzle(db);
  await d1.batch([
    d1.insert(people).values({ id: personId, name, role: invite.role, createdMs: nowMs }).onConflictDoNothing(),
    d1.insert(grants).values({ hash: hashOf(token), kind: "invite", personId, expiresMs: nowMs + limits.inviteMs }),
  ]);
  return { token, personId };
}

/** Uses an invite and returns its person. Throws a `Fault` that says why it does not work. */
export async function redeemInvite(db: D1Database, token: string, nowMs: number): Promise<Person> {
  const d1 = drizzle(db);
  const byHash = eq(grants.hash, hashOf(token));
  const [used] = await d1
    .update(grants)
    .set({ usedMs: nowMs })
    .where(and(byHash, eq(grants.kind, "invite"), isNull(grants.usedMs), gt(grants.expiresMs, nowMs)))
    .returning({ personId: grants.personId });
  if (!used) {
    const [known] = await d1.select({ usedMs: grants.usedMs }).from(grants).where(byHash);
    const why = !known ? "is not known" : known.usedMs !== null ? "was used already" : "is too old";
    throw new Fault("unauthorised", `This invite link ${why}. Ask the team for a new one.`);
  }
  const person = used.personId === null ? null : await personById(db, used.personId);
  if (!person) throw new Fault("unauthorised", "The person of this invite link is gone. Ask the team for a new one.");
  if (person.revokedMs !== null) throw new Fault("forbidden", "Your access was withdrawn. Ask the team for help.");
  return person;
}

/** Takes a person's access away for good: sessions end with their next use, open links die. The root Thread's `revoke` closes the sockets. */
export async function revokePerson(db: D1Database, personId: PersonId, nowMs: number): Promise<void> {
  const d1 = drizzle(db);
  const [changed] = await d1.batch([
    d1
      .update(people)
      .set({ revokedMs: nowMs })
      .where(and(eq(people.id, personId), isNull(people.revokedMs)))
      .returning({ id: people.id }),
    d1
      .update(grants)
      .set({ usedMs: nowMs })
      .where(and(eq(grants.personId, personId), eq(grants.kind, "invite"), isNull(grants.usedMs))),
  ]);
  if (changed.length === 0 && !(await personById(db, personId))) throw new Fault("not_found", `There is no person ${personId}.`);
}

export async function personById(db: D1Database, personId: PersonId): Promise<Person | null> {
  const [person] = await drizzle(db).select().from(people).where(eq(people.id, personId));
  return person ?? null;
}

/** Everybody who was ever invited, oldest first, with their login at GitHub where we know it. */
export async function listPeople(db: D1Database): Promise<(Person & { login: string | null })[]> {
  return drizzle(db)
    .select({ ...getTableColumns(people), login: accounts.login })
    .from(people)
    .leftJoin(accounts, and(eq(accounts.personId, people.id), eq(accounts.source, "github")))
    .orderBy(asc(people.createdMs), asc(people.id));
}
