// The console's door to people and machines: who is invited, what is enrolled, and whose access ends.
import { Hono } from "hono";
import * as z from "zod/mini";
import { rootThreadIdOf } from "../core/thread.ts";
import type { EndpointsAnswer, EnrolmentAnswer, InviteAnswer, LoginAnswer, PeopleAnswer } from "../protocol/console.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import { endpointId, personId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import { linkAccount } from "../storage/accounts.ts";
import { listEndpoints } from "../storage/console-reads.ts";
import { createEnrolmentCode, revokeMachine } from "../storage/enrolment.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { createInvite, listPeople, personById, revokePerson } from "../storage/people.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { idOf, operator, remote } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const peopleDoor = new Hono<ConsoleEnv>();
export const machinesDoor = new Hono<ConsoleEnv>();

peopleDoor.get("/", async (c) => {
  const people = (await fromD1(c.env.DB, listPeople)).map(({ id, ...person }) => ({ personId: id, ...person }));
  return c.json({ people } satisfies PeopleAnswer);
});

const inviteRequest = z.object({
  name: z.string().check(z.trim(), z.minLength(1), z.maxLength(100)),
  role: z.enum(["owner", "member"]),
  personId: z.optional(personId),
});

peopleDoor.post("/", async (c) => {
  const { name, role, personId: known } = await bodyOf(c, inviteRequest);
  const person = known === undefined ? null : await fromD1(c.env.DB, (db) => personById(db, known));
  if (person && person.revokedMs !== null)
    throw new Fault("conflict", `The access of ${person.name} was withdrawn. Invite them anew, without the old id.`);
  const nowMs = Date.now();
  const wanted = { name, role, ...(known === undefined ? {} : { personId: known }) };
  const invite = await fromD1(c.env.DB, (db) => createInvite(db, wanted, nowMs));
  const link = `${new URL(c.req.url).origin}/demo#invite=${invite.token}`;
  return c.json({ link, personId: invite.personId, expiresMs: nowMs + limits.inviteMs } satisfies InviteAnswer, 201);
});

peopleDoor.post("/:id/revoke", async (c) => {
  const id = idOf(c, personId, "person");
  const { closed } = await withdraw({
    record: fromD1(c.env.DB, (db) => revokePerson(db, id, Date.now())),
    object: () => remote(c.env.THREAD.getByName(rootThreadIdOf(id)).revoke({ principalId: id })),
    closed: "Their open pages are closed and are not heard any more",
  });
  return c.json({ ok: true, closed });
});

peopleDoor.post("/:id/github", async (c) => {
  const id = idOf(c, personId, "person");
  const { login } = await bodyOf(c, z.object({ login: z.string().check(z.maxLength(200)) }));
  return c.json((await fromD1(c.env.DB, (db) => linkAccount(db, id, login))) satisfies LoginAnswer);
});

machinesDoor.get("/", async (c) => c.json({ endpoints: await fromD1(c.env.DB, listEndpoints) } satisfies EndpointsAnswer));

machinesDoor.post("/enrolment", async (c) => {
  const nowMs = Date.now();
  const code = await fromD1(c.env.DB, (db) => createEnrolmentCode(db, nowMs));
  const { origin } = new URL(c.req.url);
  const commands = [`npm run daemon -- enroll ${origin} ${code}`, "npm run daemon -- grant DIR", "npm run daemon -- run"];
  return c.json({ code, expiresMs: nowMs + limits.enrolmentCodeMs, commands } satisfies EnrolmentAnswer, 201);
});

machinesDoor.post("/:id/revoke", async (c) => {
  const id = idOf(c, endpointId, "machine");
  await withdraw({
    record: fromD1(c.env.DB, (db) => revokeMachine(db, id, Date.now())),
    object: () => remote(c.env.ENDPOINT.getByName(id).revoke({ by: operator.name })),
    closed: "The machine's connection is closed and it gets no more commands",
  });
  return c.json({ ok: true });
});

/**
 * Access ends in two places: the record, which lets nobody in again, and the object, which ends what is open. Each is done also
 * when the other cannot be reached, and the operator hears which one is missing; doing it again completes it.
 */
async function withdraw<T>(of: { record: Promise<void>; object: () => Promise<T>; closed: string }): Promise<T> {
  const record = await settledOf(of.record);
  // Who never existed has no object either, and none is made.
  if (record.status === "rejected" && asFault(record.reason)?.kind === "not_found") throw record.reason;
  const object = await settledOf(of.object());
  if (object.status === "rejected") {
    if (record.status === "rejected") throw record.reason;
    const message = "Access is withdrawn, but what is open now could not be closed. Withdraw it again in a minute.";
    throw new Fault("unavailable", message, { cause: object.reason });
  }
  if (record.status === "rejected") {
    const message = `${of.closed}, but the record could not be changed: the database is away. Withdraw access again in a minute.`;
    throw new Fault("unavailable", message, { cause: record.reason });
  }
  return object.value;
}

const settledOf = async <T>(work: Promise<T>): Promise<PromiseSettledResult<T>> => {
  const [result] = await Promise.allSettled([work]);
  return result;
};
