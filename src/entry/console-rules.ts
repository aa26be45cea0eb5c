// The console's door to the gate's rules: read a version, try rules on what came lately, save them, go back to an older version.
import { Hono } from "hono";
import * as z from "zod/mini";
import { tryRules } from "../core/gate-trial.ts";
import type { LimitsAnswer, RulesAnswer, RulesTrial } from "../protocol/console.ts";
import type { GateRules } from "../protocol/gate.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { checkRules, currentRules, listRules, rulesOfVersion, saveRules } from "../storage/gate-rules.ts";
import { limitedPlaces } from "../storage/rate-limits.ts";
import { recentTriggers } from "../storage/recent-triggers.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { found, operator } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

const version = z.number().check(z.int(), z.minimum(0));

/** Mounted behind the console's sign-in. */
export const rulesDoor = new Hono<ConsoleEnv>();

rulesDoor.get("/", async (c) => {
  const [inForce, versions] = await fromD1(c.env.DB, (db) => Promise.all([currentRules(db), listRules(db)]));
  return c.json({ inForce, versions } satisfies RulesAnswer);
});

/** What the door let wait, beside what the rules let through. */
rulesDoor.get("/limits", async (c) => c.json({ limited: await fromD1(c.env.DB, limitedPlaces) } satisfies LimitsAnswer));

rulesDoor.get("/:version", async (c) => c.json(await fromD1(c.env.DB, (db) => versionNamed(db, Number(c.req.param("version"))))));

/** Changes nothing. */
rulesDoor.post("/try", async (c) => {
  const { rules } = await bodyOf(c, z.object({ rules: z.unknown() }));
  const [inForce, recent] = await fromD1(c.env.DB, (db) => Promise.all([currentRules(db), recentTriggers(db)]));
  return c.json(tryRules(inForce, { version: inForce.version + 1, rules: checkRules(rules) }, recent) satisfies RulesTrial);
});

rulesDoor.post("/", async (c) => {
  const { version: edited, rules } = await bodyOf(c, z.object({ version, rules: z.unknown() }));
  return c.json(await fromD1(c.env.DB, (db) => saveRules(db, { version: edited, rules: checkRules(rules) }, operator.id, Date.now())), 201);
});

/** An old version becomes the newest again; what was between stays in the list. */
rulesDoor.post("/revert", async (c) => {
  const { version: inForce, to } = await bodyOf(c, z.object({ version, to: version }));
  const { rules } = await fromD1(c.env.DB, (db) => versionNamed(db, to));
  return c.json(await fromD1(c.env.DB, (db) => saveRules(db, { version: inForce, rules }, operator.id, Date.now())), 201);
});

async function versionNamed(db: D1Database, wanted: number): Promise<GateRules> {
  const known = Number.isSafeInteger(wanted) && wanted >= 0 ? await rulesOfVersion(db, wanted) : null;
  return found(known, "There is no such version of the rules.");
}
