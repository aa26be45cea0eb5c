// The console's door to schedules.
import { Hono } from "hono";
import * as z from "zod/mini";
import { rootKeyOf, rootThreadIdOf, webSource, widgetPlace } from "../core/thread.ts";
import { routerName } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import { personId } from "../protocol/ids.ts";
import { type SchedulesAnswer, scheduleChanges, scheduleName, scheduleText, scheduleTime } from "../protocol/schedule.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { personById } from "../storage/people.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { remote } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const schedulesDoor = new Hono<ConsoleEnv>();

schedulesDoor.get("/", async (c) => c.json((await remote(c.env.ROUTER.getByName(routerName).schedules())) satisfies SchedulesAnswer));

const scheduleRequest = z.object({ name: scheduleName, text: scheduleText, personId, time: scheduleTime });

schedulesDoor.post("/", async (c) => {
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

schedulesDoor.post("/:id/:change", async (c) => {
  const change = z.enum(scheduleChanges).safeParse(c.req.param("change"));
  if (!change.success) throw new Fault("not_found", `A schedule can ${scheduleChanges.join(", ")}.`);
  const answer = await remote(c.env.ROUTER.getByName(routerName).changeSchedule({ id: c.req.param("id"), change: change.data }));
  if ("problem" in answer) throw new Fault("conflict", answer.problem);
  return c.json(answer);
});
