// The console's door to tasks: the list, one task, and what an operator says to it or of it.
import { Hono } from "hono";
import * as z from "zod/mini";
import { dollarsOf } from "../core/costs.ts";
import { operatorTrigger } from "../core/operator-message.ts";
import { readConfig } from "../env.ts";
import type { TaskAnswer, TasksAnswer } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { taskId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import { finalStatuses } from "../protocol/task.ts";
import { amendments, inputModes, moveTo } from "../protocol/trigger.ts";
import { listTasks, readTask } from "../storage/console-reads.ts";
import { fromD1 } from "../storage/from-d1.ts";
import type { ConsoleContext, ConsoleEnv } from "./console-access.ts";
import { found, idOf, objectsOf, operator, remote } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

const maxTasks = 500;

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const tasksDoor = new Hono<ConsoleEnv>();

tasksDoor.get("/", async (c) => {
  const limit = z.coerce
    .number()
    .check(z.int(), z.minimum(1), z.maximum(maxTasks))
    .safeParse(c.req.query("limit") ?? 100);
  if (!limit.success) throw new Fault("bad_input", `limit: must be a whole number from 1 to ${maxTasks}`);
  return c.json({ tasks: await fromD1(c.env.DB, (db) => listTasks(db, limit.data)) } satisfies TasksAnswer);
});

tasksDoor.get("/:id", async (c) => {
  const id = idOf(c, taskId, "task");
  const task = found(await remote(readTask(objectsOf(c), id)), `There is no task ${id}.`);
  return c.json({ ...task, dollars: dollarsOf(task.spent, readConfig(c.env).model.worker.price) } satisfies TaskAnswer);
});

tasksDoor.post("/:id/cancel", async (c) => {
  const id = idOf(c, taskId, "task");
  const { session } = await taskOf(c, id);
  return c.json(await remote(session.cancel({ by: operator, reason: "stopped in the console" })));
});

/** A person's word on what came of a task. */
tasksDoor.post("/:id/verdict", async (c) => {
  const id = idOf(c, taskId, "task");
  const { accepted } = await bodyOf(c, z.object({ accepted: z.boolean() }));
  const { session, card } = await taskOf(c, id);
  if (!finalStatuses.includes(card.status)) throw new Fault("conflict", "This task has not ended: there is no outcome to judge yet.");
  await remote(session.accept({ by: operator, accepted }));
  return c.json({ ok: true });
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

tasksDoor.post("/:id/backlog/:item", async (c) => {
  const id = idOf(c, taskId, "task");
  const itemId = c.req.param("item");
  const { change, text, before, revision } = await bodyOf(c, amendment);
  if (change === "edit" && text === undefined) throw new Fault("bad_input", "text: a changed message needs its new words");
  if (change === "move" && (before === undefined || revision === undefined))
    throw new Fault(
      "bad_input",
      "before, revision: say which message it comes before (null: it is the last), and the backlogRevision of the card that you saw",
    );
  const { session } = await taskOf(c, id);
  const words = text === undefined ? {} : { text };
  const { outcome } = await remote(session.amend({ by: operator, itemId, change, before, revision, ...words }));
  if (outcome !== "done") throw new Fault("conflict", notAmended[outcome]);
  return c.json({ ok: true });
});

/** What an operator says to a task: a row of its thread like any other, so that the worker and the record have it. */
const messageRequest = z.object({
  id: z.string().check(z.regex(/^[\w-]{8,64}$/, "must be an id of your own for this message, 8 to 64 letters and digits")),
  text: z.string().check(z.trim(), z.minLength(1, "say something"), z.maxLength(limits.maxMessageChars)),
  mode: z.optional(z.enum(inputModes)),
});

tasksDoor.post("/:id/messages", async (c) => {
  const id = idOf(c, taskId, "task");
  const said = await bodyOf(c, messageRequest);
  const { card, start } = await taskOf(c, id);
  if (finalStatuses.includes(card.status))
    throw new Fault("conflict", "This task has ended: nobody would read it. Ask for new work in the widget, or in its thread.");
  return c.json(await sayIn(c, start.threadId, said), 201);
});

/** What failed is asked for again where it was asked for, as in the widget: once for each time that it failed. */
tasksDoor.post("/:id/again", async (c) => {
  const id = idOf(c, taskId, "task");
  const { card, start } = await taskOf(c, id);
  if (card.status !== "failed") throw new Fault("conflict", "Only a task that failed is tried again.");
  if (start.parent) throw new Fault("conflict", `Another task started this one: try that again, ${start.parent.taskId}.`);
  return c.json(await sayIn(c, start.threadId, { id: `again-${id}-${card.revision}`, text: "Try again." }), 201);
});

/** Another allowance for a task that paused. */
tasksDoor.post("/:id/continue", async (c) => {
  const id = idOf(c, taskId, "task");
  const { session, card } = await taskOf(c, id);
  if (card.status !== "paused") throw new Fault("conflict", "Only a task that paused is continued.");
  return c.json(await remote(session.resume({ by: operator, modelCalls: limits.maxModelCallsPerTask })));
});

/** A task that there is. Asked before anything is done to it: a word on an unknown one would make it, and a cancel leave a tombstone. */
async function taskOf(c: ConsoleContext, id: string) {
  const session = c.env.WORKER_SESSION.getByName(id);
  return { session, ...found(await remote(session.describe()), `There is no task ${id}.`) };
}

/** A row of a thread in an operator's words, for whoever has the thread. */
async function sayIn(c: ConsoleContext, id: string, said: Parameters<typeof operatorTrigger>[2]) {
  const thread = c.env.THREAD.getByName(id);
  const { info } = await remote(thread.read({ afterSeq: 0, limit: 1 }));
  const trigger = operatorTrigger(info, operator, said, Date.now());
  const verdict = { outcome: "request", rule: "console", reason: "an operator says it to this task" } as const;
  return { triggerId: trigger.id, outcome: (await remote(thread.append({ trigger, verdict }))).outcome };
}
