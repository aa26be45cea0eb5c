// The console's door to policies in plain language, and to a person's word on a decision.
import { Hono } from "hono";
import * as z from "zod/mini";
import { readConfig, routerName } from "../env.ts";
import type { PoliciesAnswer } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { decisionId } from "../protocol/ids.ts";
import { policyInput } from "../protocol/policy.ts";
import type { SpeculationAnswer } from "../protocol/speculation.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { listPolicies, markDecision, policyMarks, policyVersions, savePolicy } from "../storage/policies.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { idOf, operator, remote } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const policiesDoor = new Hono<ConsoleEnv>();

policiesDoor.get("/", async (c) => {
  const [policies, marks] = await fromD1(c.env.DB, (db) => Promise.all([listPolicies(db), policyMarks(db)]));
  return c.json({ policies, marks } satisfies PoliciesAnswer);
});

policiesDoor.get("/:id", async (c) => {
  const versions = await fromD1(c.env.DB, (db) => policyVersions(db, c.req.param("id")));
  if (versions.length === 0) throw new Fault("not_found", "There is no such policy.");
  return c.json({ versions });
});

policiesDoor.post("/", async (c) => {
  const input = await bodyOf(c, policyInput);
  return c.json(await fromD1(c.env.DB, (db) => savePolicy(db, input, operator.id, Date.now())), 201);
});

/** The ledger of what nobody asked for, and whether any policy lets something start at all. */
export const speculationDoor = new Hono<ConsoleEnv>();

speculationDoor.get("/", async (c) => {
  const [policies, ledger] = await Promise.all([fromD1(c.env.DB, listPolicies), remote(c.env.ROUTER.getByName(routerName).speculation())]);
  const allowed = policies.some(({ enabled, speculation }) => enabled && speculation !== undefined);
  const { router, worker } = readConfig(c.env).model;
  const off =
    router.provider === "offline" || worker.provider === "offline"
      ? "The embedded model does not speculate: it does what is asked. Set MODEL_PROVIDER to use a model that can."
      : allowed
        ? null
        : "No policy that is on allows it.";
  return c.json({ off, ...ledger } satisfies SpeculationAnswer);
});

const markInput = z.object({ wrong: z.boolean(), note: z.optional(z.string().check(z.trim(), z.maxLength(500))) });

/** Mounted below a decision. */
export const marksDoor = new Hono<ConsoleEnv>();

marksDoor.post("/:id/mark", async (c) => {
  const id = idOf(c, decisionId, "decision");
  const { wrong, note } = await bodyOf(c, markInput);
  const mark = { decisionId: id, wrong, note: note ?? "", by: operator.id, atMs: Date.now() };
  await fromD1(c.env.DB, (db) => markDecision(db, c.env.ROUTER.getByName(routerName), mark));
  return c.json({ ok: true });
});
