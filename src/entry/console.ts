// The console's door: its session, its reads, and the changes that an operator may make.
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import * as z from "zod/mini";
import { operatorTrigger } from "../core/operator-message.ts";
import { rootKeyOf, rootThreadIdOf, webSource, widgetPlace } from "../core/thread.ts";
import { boardName, routerName } from "../env.ts";
import type {
  DecisionAnswer,
  DecisionsAnswer,
  EndpointsAnswer,
  EnrolmentAnswer,
  InviteAnswer,
  PeopleAnswer,
  TasksAnswer,
  ThreadAnswer,
} from "../protocol/console.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import { decisionId, endpointId, personId, taskId, threadId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import { type SchedulesAnswer, scheduleChanges, scheduleName, scheduleText, scheduleTime } from "../protocol/schedule.ts";
import { finalStatuses } from "../protocol/task.ts";
import { amendments, inputModes, moveTo } from "../protocol/trigger.ts";
import { listEndpoints, listTasks, readDecision, readTask } from "../storage/console-reads.ts";
import { createEnrolmentCode } from "../storage/enrolment.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { createInvite, listPeople, personById, revokePerson } from "../storage/people.ts";
import { markOf } from "../storage/policies.ts";
import { type ConsoleContext, type ConsoleEnv, closeSession, lookForSession, openSession, requireOperator } from "./console-access.ts";
import { boardSocket, boardTicket } from "./console-board.ts";
import { bodyOf } from "./json-body.ts";
import { gitHubSetUpDoor } from "./console-github.ts";
import { metricsDoor } from "./console-metrics.ts";
import { objectsOf, remote } from "./console-objects.ts";
import { offersDoor } from "./console-offers.ts";
import { marksDoor, policiesDoor, speculationDoor } from "./console-policies.ts";
import { profilesDoor } from "./console-profiles.ts";
import { rulesDoor } from "./console-rules.ts";
import { searchDoor } from "./console-search.ts";
import { triggersDoor } from "./console-triggers.ts";
import { noUpgrade } from "./upgrade.ts";

/** A full list of gate rules is the largest. */
const maxBodyBytes = 256 * 1024;
const maxTasks = 500;
/** Rows of a thread in one answer. */
const maxThreadRows = 500;

/** Whoever holds the operator token acts as the owner; the log names them so. */
const operator: Principal = { role: "owner", id: "operator", name: "Operator" };

export const consoleDoor = new Hono<ConsoleEnv>().basePath("/api/console");

consoleDoor.use("*", async (c, next) => {
  c.header("cache-control", "no-store");
  await next();
});

consoleDoor.use(
  "*",
  bodyLimit({
    maxSize: maxBodyBytes,
    onError: () => {
      throw new Fault("too_large", `A request of the console is smaller than ${maxBodyBytes / 1024} KiB.`);
    },
  }),
);

consoleDoor.post("/session", async (c) => {
  const { token } = await bodyOf(c, z.object({ token: z.string().check(z.minLength(1), z.maxLength(1000)) }));
  await openSession(c, token);
  return c.json({ ok: true });
});

consoleDoor.get("/session", async (c) => c.json(await lookForSession(c)));

consoleDoor.get("/board", async (c) => noUpgrade(c, "Connect here with a WebSocket, as the console does.") ?? boardSocket(c));

// Everything below needs an operator.
consoleDoor.use("*", async (c, next) => {
  c.set("access", await requireOperator(c));
  await next();
});

consoleDoor.post("/session/end", async (c) => {
  await closeSession(c, c.get("access"));
  return c.json({ ok: true });
});

consoleDoor.post("/ticket", async (c) => c.json({ ticket: await boardTicket(c, c.get("access")) }));

consoleDoor.get("/tasks", async (c) => {
  const limit = z.coerce
    .number()
    .check(z.int(), z.minimum(1), z.maximum(maxTasks))
    .safeParse(c.req.query("limit") ?? 100);
  if (!limit.success) throw new Fault("bad_input", `limit: must be a whole number from 1 to ${maxTasks}`);
  return c.json({ tasks: await fromD1(c.env.DB, (db) => listTasks(db, limit.data)) } satisfies TasksAnswer);
});

consoleDoor.get("/tasks/:id", async (c) => {
  const id = idOf(c, taskId, "task");
  return c.json(found(await remote(readTask(objectsOf(c), id)), `There is no task ${id}.`));
});

consoleDoor.post("/tasks/:id/cancel", async (c) => {
  const id = idOf(c, taskId, "task");
  const task = c.env.WORKER_SESSION.getByName(id);
  // Asked first: the cancel of an unknown task would leave a tombstone.
  found(await remote(task.describe()), `There is no task ${id}.`);
  return c.json(await remote(task.cancel({ by: operator, reason: "stopped in the console" })));
});

/** A person's word on what came of a task. */
consoleDoor.post("/tasks/:id/verdict", async (c) => {
  const id = idOf(c, taskId, "task");
  const { accepted } = await bodyOf(c, z.object({ accepted: z.boolean() }));
  const task = c.env.WORKER_SESSION.getByName(id);
  const { card } = found(await remote(task.describe()), `There is no task ${id}.`);
  if (!finalStatuses.includes(card.status)) throw new Fault("conflict", "This task has not ended: there is no outcome to judge yet.");
  await remote(task.accept({ by: operator, accepted }));
  return c.json({ ok: true });
});

consoleDoor.get("/replay/:id", async (c) => {
  const step = z.coerce.number().check(z.int(), z.minimum(1)).safeParse(c.req.query("step"));
  if (!step.success) throw new Fault("bad_input", "step: must be a whole number from 1 on");
  const isRouter = c.req.param("id") === routerName;
  const mind = isRouter ? c.env.ROUTER.getByName(routerName) : c.env.WORKER_SESSION.getByName(idOf(c, taskId, "task"));
  return c.json(found(await remote(mind.replay({ step: step.data })), `${c.req.param("id")} has taken no step ${step.data}.`));
});

const amendment = z.object({
  change: z.enum(amendments),
  text: z.optional(z.string().check(z.trim(), z.minLength(1), z.maxLength(limits.maxMessageChars))),
  ...moveTo,
});

const notAmended = {
  late: "The task has read this message already, or it was taken back. Say what should be different in its thread.",
  stale: "What is queued has changed since you looked. Look at the list again, then move it.",
};

consoleDoor.post("/tasks/:id/backlog/:item", async (c) => {
  const id = idOf(c, taskId, "task");
  const itemId = c.req.param("item");
  const { change, text, before, revision } = await bodyOf(c, amendment);
  if (change === "edit" && text === undefined) throw new Fault("bad_input", "text: a changed message needs its new words");
  if (change === "move" && (before === undefined || revision === undefined))
    throw new Fault(
      "bad_input",
      "before, revision: say which message it comes before (null: it is the last), and the backlogRevision of the card that you saw",
    );
  const task = c.env.WORKER_SESSION.getByName(id);
  found(await remote(task.describe()), `There is no task ${id}.`);
  const words = text === undefined ? {} : { text };
  const { outcome } = await remote(task.amend({ by: operator, itemId, change, before, revision, ...words }));
  if (outcome !== "done") throw new Fault("conflict", notAmended[outcome]);
  return c.json({ ok: true });
});

/** What an operator says to a task: a row of its thread like any other, so that the worker and the record have it. */
const messageRequest = z.object({
  id: z.string().check(z.regex(/^[\w-]{8,64}$/, "must be an id of your own for this message, 8 to 64 letters and digits")),
  text: z.string().check(z.trim(), z.minLength(1, "say something"), z.maxLength(limits.maxMessageChars)),
  mode: z.optional(z.enum(inputModes)),
});

consoleDoor.post("/tasks/:id/messages", async (c) => {
  const id = idOf(c, taskId, "task");
  const said = await bodyOf(c, messageRequest);
  const task = found(await remote(c.env.WORKER_SESSION.getByName(id).describe()), `There is no task ${id}.`);
  if (finalStatuses.includes(task.card.status))
    throw new Fault("conflict", "This task has ended: nobody would read it. Ask for new work in the widget, or in its thread.");
  const thread = c.env.THREAD.getByName(task.start.threadId);
  const { info } = await remote(thread.read({ afterSeq: 0, limit: 1 }));
  const trigger = operatorTrigger(info, operator, said, Date.now());
  const verdict = { outcome: "request", rule: "console", reason: "an operator says it to this task" } as const;
  return c.json({ triggerId: trigger.id, outcome: (await remote(thread.append({ trigger, verdict }))).outcome }, 201);
});

consoleDoor.get("/threads/:id", async (c) => {
  const id = idOf(c, threadId, "thread");
  const thread = c.env.THREAD.getByName(id);
  const { info, rows, cards } = await remote(thread.read({ afterSeq: 0, limit: maxThreadRows }));
  if (info.headSeq === 0) throw new Fault("not_found", `There is no thread ${id}.`);
  return c.json({ info, rows, cards } satisfies ThreadAnswer);
});

consoleDoor.get("/decisions", async (c) => {
  const { decisions } = await remote(c.env.BOARD.getByName(boardName).snapshot());
  return c.json({ decisions } satisfies DecisionsAnswer);
});

consoleDoor.get("/decisions/:id", async (c) => {
  const id = idOf(c, decisionId, "decision");
  const answer = found(await remote(readDecision(objectsOf(c), id)), `There is no decision ${id}.`);
  const mark = await fromD1(c.env.DB, (db) => markOf(db, id));
  return c.json({ ...answer, ...(mark ? { mark } : {}) } satisfies DecisionAnswer);
});

consoleDoor.get("/endpoints", async (c) => c.json({ endpoints: await fromD1(c.env.DB, listEndpoints) } satisfies EndpointsAnswer));

consoleDoor.post("/endpoints/enrolment", async (c) => {
  const nowMs = Date.now();
  const code = await fromD1(c.env.DB, (db) => createEnrolmentCode(db, nowMs));
  const { origin } = new URL(c.req.url);
  const commands = [`npm run daemon -- enroll ${origin} ${code}`, "npm run daemon -- grant DIR", "npm run daemon -- run"];
  return c.json({ code, expiresMs: nowMs + limits.enrolmentCodeMs, commands } satisfies EnrolmentAnswer, 201);
});

consoleDoor.post("/endpoints/:id/revoke", async (c) => {
  const id = idOf(c, endpointId, "machine");
  await withdraw({
    record: fromD1(c.env.DB, async (db) => {
      const row = db.prepare("UPDATE endpoints SET revoked_ms = IFNULL(revoked_ms, ?1) WHERE id = ?2").bind(Date.now(), id);
      if ((await row.run()).meta.changes === 0) throw new Fault("not_found", `There is no machine ${id}.`);
    }),
    object: () => remote(c.env.ENDPOINT.getByName(id).revoke({ by: operator.name })),
    closed: "The machine's connection is closed and it gets no more commands",
  });
  return c.json({ ok: true });
});

consoleDoor.get("/people", async (c) => {
  const people = (await fromD1(c.env.DB, listPeople)).map(({ id, ...person }) => ({ personId: id, ...person }));
  return c.json({ people } satisfies PeopleAnswer);
});

const inviteRequest = z.object({
  name: z.string().check(z.trim(), z.minLength(1), z.maxLength(100)),
  role: z.enum(["owner", "member"]),
  personId: z.optional(personId),
});

consoleDoor.post("/people", async (c) => {
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

consoleDoor.post("/people/:id/revoke", async (c) => {
  const id = idOf(c, personId, "person");
  const { closed } = await withdraw({
    record: fromD1(c.env.DB, (db) => revokePerson(db, id, Date.now())),
    object: () => remote(c.env.THREAD.getByName(rootThreadIdOf(id)).revoke({ principalId: id })),
    closed: "Their open pages are closed and are not heard any more",
  });
  return c.json({ ok: true, closed });
});

consoleDoor.get("/schedules", async (c) =>
  c.json((await remote(c.env.ROUTER.getByName(routerName).schedules())) satisfies SchedulesAnswer),
);

const scheduleRequest = z.object({ name: scheduleName, text: scheduleText, personId, time: scheduleTime });

consoleDoor.post("/schedules", async (c) => {
  const { personId: forWhom, ...setting } = await bodyOf(c, scheduleRequest);
  const person = await fromD1(c.env.DB, (db) => personById(db, forWhom));
  if (person === null || person.revokedMs !== null) throw new Fault("not_found", "There is no such person with access.");
  const thread = {
    threadId: rootThreadIdOf(person.id),
    source: webSource,
    place: widgetPlace,
    threadKey: rootKeyOf(person.id),
    threadTitle: person.name,
  };
  const by = { role: person.role, id: person.id, name: person.name };
  const answer = await remote(c.env.ROUTER.getByName(routerName).setSchedule({ ...setting, thread, by, authority: person.role }));
  if ("problem" in answer) throw new Fault("bad_input", answer.problem);
  return c.json(answer, 201);
});

consoleDoor.post("/schedules/:id/:change", async (c) => {
  const change = z.enum(scheduleChanges).safeParse(c.req.param("change"));
  if (!change.success) throw new Fault("not_found", `A schedule can ${scheduleChanges.join(", ")}.`);
  const answer = await remote(c.env.ROUTER.getByName(routerName).changeSchedule({ id: c.req.param("id"), change: change.data }));
  if ("problem" in answer) throw new Fault("conflict", answer.problem);
  return c.json(answer);
});

consoleDoor.post("/notices/:id/answer", async (c) => {
  const id = c.req.param("id");
  const { text } = await bodyOf(c, z.object({ text: z.optional(z.string().check(z.trim(), z.maxLength(8000))) }));
  const board = c.env.BOARD.getByName(boardName);
  const notice = (await remote(board.snapshot())).notices.find((candidate) => candidate.id === id);
  if (text) {
    const { ok } = await remote(c.env.ROUTER.getByName(routerName).answer({ id, by: operator, text }));
    if (!ok) throw new Fault("not_found", "The router has no open question with this id. It may have been answered already.");
  } else {
    if (!notice) throw new Fault("not_found", "There is no open notice with this id.");
    // An unanswered question stays open for the router: it is only out of sight here.
    await remote(board.change([{ kind: "notice_done", id }]));
  }
  return c.json({ ok: true });
});

consoleDoor.route("/rules", rulesDoor);
consoleDoor.route("/offers", offersDoor);
consoleDoor.route("/policies", policiesDoor);
consoleDoor.route("/metrics", metricsDoor);
consoleDoor.route("/profiles", profilesDoor);
consoleDoor.route("/speculation", speculationDoor);
consoleDoor.route("/decisions", marksDoor);
consoleDoor.route("/triggers", triggersDoor);
consoleDoor.route("/github", gitHubSetUpDoor);
consoleDoor.route("/search", searchDoor);

consoleDoor.all("*", (c) => {
  throw new Fault("not_found", `There is nothing at ${c.req.method} ${c.req.path}.`);
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

function found<T>(value: T | null, sentence: string): T {
  if (value === null) throw new Fault("not_found", sentence);
  return value;
}

/** The id in the path; one that cannot be an id names nothing. */
function idOf(c: ConsoleContext, schema: z.ZodMiniType<string>, what: string): string {
  const id = schema.safeParse(c.req.param("id"));
  if (!id.success) throw new Fault("not_found", `There is no ${what} ${(c.req.param("id") ?? "").slice(0, 80)}.`);
  return id.data;
}
