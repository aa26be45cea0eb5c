// The console's door to what the router keeps: tasks, threads, decisions and facts, found by words.
import { Hono } from "hono";
import { routerName } from "../env.ts";
import type { SearchAnswer } from "../protocol/console.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { remote } from "./console-objects.ts";

/** Mounted behind the console's sign-in. */
export const searchDoor = new Hono<ConsoleEnv>();

const maxQueryChars = 400;
const maxHits = 40;

searchDoor.get("/", async (c) => {
  const query = (c.req.query("q") ?? "").trim().slice(0, maxQueryChars);
  const router = c.env.ROUTER.getByName(routerName);
  const answer = query === "" ? { hits: [], total: 0 } : await remote(router.search({ query, limit: maxHits }));
  return c.json(answer satisfies SearchAnswer);
});
