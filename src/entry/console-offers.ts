// The console's door to what waits for a release, and to what the team lets leave by itself.
import { Hono } from "hono";
import * as z from "zod/mini";
import { ownerOf } from "../core/ids.ts";
import { overtaken } from "../core/offer.ts";
import { Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import { releasePolicy } from "../protocol/offer.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { readHeldOffers } from "../storage/held-offers.ts";
import { readReleasePolicy, saveReleasePolicy } from "../storage/release-policy.ts";
import type { ConsoleContext, ConsoleEnv } from "./console-access.ts";
import { found, operator, remote } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const offersDoor = new Hono<ConsoleEnv>();

const maxListed = 200;

offersDoor.get("/", async (c) => c.json(await fromD1(c.env.DB, (db) => readHeldOffers(db, maxListed))));

offersDoor.get("/setting", async (c) => c.json(await fromD1(c.env.DB, readReleasePolicy)));

offersDoor.post("/setting", async (c) => {
  const edited = await bodyOf(c, releasePolicy);
  return c.json(await fromD1(c.env.DB, (db) => saveReleasePolicy(db, edited, operator.id, Date.now())), 201);
});

offersDoor.get("/:id", async (c) => {
  const { id, thread } = ofPath(c);
  return c.json(found(await remote(thread.offered({ outboundId: id })), `There is no offer ${id}.`));
});

const word = z.object({
  verdict: z.enum(["release", "decline"]),
  reason: z.optional(z.string().check(z.trim(), z.maxLength(500))),
  /** Instead of the proposed text. */
  text: z.optional(z.string().check(z.trim(), z.minLength(1), z.maxLength(limits.maxOfferChars))),
});

offersDoor.post("/:id", async (c) => {
  const { id, thread } = ofPath(c);
  const { verdict, reason, text } = await bodyOf(c, word);
  const more = { ...(reason === undefined ? {} : { reason }), ...(text === undefined ? {} : { text }) };
  const view = await remote(thread.decideOffer({ outboundId: id, verdict, by: operator, via: "person", ...more }));
  const late = overtaken(view, verdict);
  if (late !== null) throw new Fault("conflict", late);
  return c.json(view);
});

function ofPath(c: ConsoleContext) {
  const id = c.req.param("id") ?? "";
  const threadId = /^out_[a-z0-9]+-[a-z0-9]+$/.test(id) ? ownerOf(id, "thr") : null;
  if (threadId === null) throw new Fault("not_found", `There is no offer ${id.slice(0, 80)}.`);
  return { id, thread: c.env.THREAD.getByName(threadId) };
}
