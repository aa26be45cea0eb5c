// The console's door to one trigger: why it was (not) answered, and to have it decided once more.
import { Hono } from "hono";
import * as z from "zod/mini";
import { askedAgain } from "../core/router-answers.ts";
import { triggerId } from "../protocol/ids.ts";
import { readWhy } from "../storage/console-reads.ts";
import type { ConsoleContext, ConsoleEnv } from "./console-access.ts";
import { found, idOf, objectsOf, remote } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

/** Earlier rows that the router reads along, as with every delivery. */
const rowsBefore = 5;

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const triggersDoor = new Hono<ConsoleEnv>();

triggersDoor.get("/:id/why", async (c) => c.json(await whyOf(c)));

const again = z.object({
  id: z.string().check(z.regex(/^[\w-]{8,64}$/, "must be an id of your own for this request, 8 to 64 letters and digits")),
});

/** [RT8] The same request counts once; while the trigger waits for a decision there is nothing to ask for. */
triggersDoor.post("/:id/reprocess", async (c) => {
  const { id } = await bodyOf(c, again);
  const { trigger, verdict, seq, acceptedMs: atMs, threadId } = await whyOf(c);
  const { thread, router } = objectsOf(c);
  const { info, rows } = await remote(thread(threadId).read({ afterSeq: Math.max(0, seq - 1 - rowsBefore), limit: rowsBefore }));
  const row = { kind: "trigger" as const, seq, atMs, trigger, verdict: askedAgain(verdict) };
  const before = rows.filter((each) => each.seq < seq);
  await remote(router.deliver({ threadId, rows: [{ row, alsoWith: [] }], before, tasks: info.subscribers, again: id }));
  return c.json({ ok: true }, 202);
});

async function whyOf(c: ConsoleContext) {
  const id = idOf(c, triggerId, "trigger");
  const neither = `No trigger ${id} is stored: either a gate rule ignored it before anything was written, or the id is wrong.`;
  return found(await remote(readWhy(objectsOf(c), id)), neither);
}
