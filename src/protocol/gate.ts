// A gate rule: deterministic, versioned, first match wins. Every condition that is present must hold.
import * as z from "zod/mini";
import { role } from "./principal.ts";
import { outcomes } from "./trigger.ts";

export const gateRule = z.object({
  id: z.string().check(z.minLength(1), z.maxLength(80)),
  outcome: z.enum(outcomes),
  source: z.optional(z.string()),
  /** Exact place, or a prefix that ends in `*`. */
  place: z.optional(z.string()),
  /** A `thr_` id, a thread's key within its place (`branch:main`), or `#12` for the issue or pull request of that number. */
  thread: z.optional(z.string().check(z.maxLength(200))),
  /** Exact kind, or a prefix that ends in `*`. */
  kind: z.optional(z.string()),
  roles: z.optional(z.array(role)),
  /** An account; at GitHub a name without `[bot]` also means the program of that name. */
  principalId: z.optional(z.string()),
  addressed: z.optional(z.boolean()),
  /** Words (case-insensitive, any of them) that the text must hold. */
  anyWord: z.optional(z.array(z.string().check(z.minLength(1)))),
  /** Facts that must be equal: `{ conclusion: "failure" }`. */
  facts: z.optional(z.record(z.string(), z.string())),
  reason: z.string().check(z.maxLength(300)),
});
export type GateRule = z.infer<typeof gateRule>;

export type GateRules = { version: number; rules: GateRule[] };
