// The console's door: its session, what is read by id, and the doors behind the sign-in.
import { Hono } from "hono";
import * as z from "zod/mini";
import { boardName, routerName } from "../env.ts";
import type { DecisionAnswer, DecisionsAnswer, ThreadAnswer } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { decisionId, taskId, threadId } from "../protocol/ids.ts";
import { listThreads, readDecision } from "../storage/console-reads.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { markOf } from "../storage/policies.ts";
import { type ConsoleEnv, closeSession, lookForSession, openSession, requireOperator } from "./console-access.ts";
import { boardSocket, boardTicket } from "./console-board.ts";
import { costsDoor } from "./console-costs.ts";
import { gitHubSetUpDoor } from "./console-github.ts";
import { memoryDoor } from "./console-memory.ts";
import { metricsDoor } from "./console-metrics.ts";
import { found, idOf, objectsOf, operator, remote } from "./console-objects.ts";
import { offersDoor } from "./console-offers.ts";
import { machinesDoor, peopleDoor } from "./console-people.ts";
import { marksDoor, policiesDoor, speculationDoor } from "./console-policies.ts";
import { profilesDoor } from "./console-profiles.ts";
import { rulesDoor } from "./console-rules.ts";
import { schedulesDoor } from "./console-schedules.ts";
import { searchDoor } from "./console-search.ts";
import { tasksDoor } from "./console-tasks.ts";
import { triggersDoor } from "./console-triggers.ts";
import { bodyAtMost, bodyOf } from "./json-body.ts";
import { noUpgrade } from "./upgrade.ts";

/** A full list of gate rules is the largest. */
const maxBodyBytes = 256 * 1024;
/** Rows of a thread in one answer. */
const maxThreadRows = 500;
const maxListedThreads = 200;

export const consoleDoor = new Hono<ConsoleEnv>().basePath("/api/console");

consoleDoor.use("*", async (c, next) => {
  c.header("cache-control", "no-store");
  await next();
});

consoleDoor.use("*", bodyAtMost(maxBodyBytes, "A request of the console"));

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

consoleDoor.get("/replay/:id", async (c) => {
  const step = z.coerce.number().check(z.int(), z.minimum(1)).safeParse(c.req.query("step"));
  if (!step.success) throw new Fault("bad_input", "step: must be a whole number from 1 on");
  const isRouter = c.req.param("id") === routerName;
  const mind = isRouter ? c.env.ROUTER.getByName(routerName) : c.env.WORKER_SESSION.getByName(idOf(c, taskId, "task"));
  return c.json(found(await remote(mind.replay({ step: step.data })), `${c.req.param("id")} has taken no step ${step.data}.`));
});

consoleDoor.get("/threads", async (c) => c.json(await fromD1(c.env.DB, (db) => listThreads(db, maxListedThreads))));

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

consoleDoor.post("/notices/:id/answer", async (c) => {
  const id = c.req.param("id");
  const { text } = await bodyOf(c, z.object({ text: z.optional(z.string().check(z.trim(), z.maxLength(8000))) }));
  if (text) {
    const { ok } = await remote(c.env.ROUTER.getByName(routerName).answer({ id, by: operator, text }));
    if (!ok) throw new Fault("not_found", "The router has no open question with this id. It may have been answered already.");
  } else {
    const board = c.env.BOARD.getByName(boardName);
    const { notices } = await remote(board.snapshot());
    if (!notices.some((notice) => notice.id === id)) throw new Fault("not_found", "There is no open notice with this id.");
    // An unanswered question stays open for the router: it is only out of sight here.
    await remote(board.change([{ kind: "notice_done", id }]));
  }
  return c.json({ ok: true });
});

consoleDoor.route("/tasks", tasksDoor);
consoleDoor.route("/people", peopleDoor);
consoleDoor.route("/endpoints", machinesDoor);
consoleDoor.route("/schedules", schedulesDoor);
consoleDoor.route("/rules", rulesDoor);
consoleDoor.route("/offers", offersDoor);
consoleDoor.route("/policies", policiesDoor);
consoleDoor.route("/metrics", metricsDoor);
consoleDoor.route("/costs", costsDoor);
consoleDoor.route("/profiles", profilesDoor);
consoleDoor.route("/speculation", speculationDoor);
consoleDoor.route("/decisions", marksDoor);
consoleDoor.route("/triggers", triggersDoor);
consoleDoor.route("/github", gitHubSetUpDoor);
consoleDoor.route("/search", searchDoor);
consoleDoor.route("/memory", memoryDoor);

consoleDoor.all("*", (c) => {
  throw new Fault("not_found", `There is nothing at ${c.req.method} ${c.req.path}.`);
});
