// The console's door to policies in plain language, and to a person's word on a decision.
import { Hono } from "hono";
import * as z from "zod/mini";
import { routerName } from "../env.ts";
import type { PoliciesAnswer } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { decisionId } from "../protocol/ids.ts";
import { policyInput } from "../protocol/policy.ts";
import { listPolicies, policyMarks, policyVersions, saveMark, savePolicy } from "../storage/policies.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { bodyOf } from "./console-body.ts";

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const policiesDoor = new Hono<ConsoleEnv>();

policiesDoor.get("/", async (c) => {
  const [policies, marks] = await Promise.all([listPolicies(c.env.DB), policyMarks(c.env.DB)]);
  return c.json({ policies, marks } satisfies PoliciesAnswer);
});

policiesDoor.get("/:id", async (c) => {
  const versions = await policyVersions(c.env.DB, c.req.param("id"));
  if (versions.length === 0) throw new Fault("not_found", "There is no such policy.");
  return c.json({ versions });
});

policiesDoor.post("/", async (c) => c.json(await savePolicy(c.env.DB, await bodyOf(c, policyInput), "operator", Date.now()), 201));

const markInput = z.object({ wrong: z.boolean(), note: z.optional(z.string().check(z.trim(), z.maxLength(500))) });

/** Mounted below a decision. */
export const marksDoor = new Hono<ConsoleEnv>();

marksDoor.post("/:id/mark", async (c) => {
  const id = decisionId.safeParse(c.req.param("id"));
  const { wrong, note } = await bodyOf(c, markInput);
  const logged = id.success ? await c.env.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 50, about: id.data }) : [];
  const decided = logged.map(({ event }) => event).find((event) => event.kind === "router.decision" && event.decisionId === id.data);
  if (decided?.kind !== "router.decision") throw new Fault("not_found", "There is no such decision.");
  await saveMark(c.env.DB, {
    decisionId: decided.decisionId,
    policyId: decided.policy?.id ?? null,
    wrong,
    note: note ?? "",
    by: "operator",
    atMs: Date.now(),
  });
  return c.json({ ok: true });
});
