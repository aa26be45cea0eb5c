// The console's door to the team's memory: what is remembered, and to have it forgotten.
import { Hono } from "hono";
import { routerName } from "../env.ts";
import type { FactAnswer, MemoryAnswer } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { factId } from "../protocol/ids.ts";
import type { ConsoleContext, ConsoleEnv } from "./console-access.ts";
import { found, idOf, operator, remote } from "./console-objects.ts";

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const memoryDoor = new Hono<ConsoleEnv>();

const maxQueryChars = 400;
const maxListed = 200;

memoryDoor.get("/", async (c) => {
  const query = (c.req.query("q") ?? "").trim().slice(0, maxQueryChars);
  return c.json((await remote(routerOf(c).facts({ query, limit: maxListed }))) satisfies MemoryAnswer);
});

memoryDoor.get("/:id", async (c) => {
  const id = idOf(c, factId, "fact");
  const { facts } = await remote(routerOf(c).facts({ id }));
  return c.json({ fact: found(facts[0] ?? null, `There is no fact ${id}.`) } satisfies FactAnswer);
});

memoryDoor.post("/:id/forget", async (c) => {
  const id = idOf(c, factId, "fact");
  const answer = found(await remote(routerOf(c).forget({ id, by: operator })), `There is no fact ${id}.`);
  if ("problem" in answer) throw new Fault("conflict", answer.problem);
  return c.json(answer satisfies FactAnswer);
});

const routerOf = (c: ConsoleContext) => c.env.ROUTER.getByName(routerName);
