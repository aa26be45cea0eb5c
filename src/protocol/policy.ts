// A policy in plain language: what the router's model is told about when to act and when to be quiet. Versioned, switchable.
import * as z from "zod/mini";
import { type SavedIn, type SpeculationSetting, speculationSetting } from "./speculation.ts";

export const policyInput = z.object({
  /** A short name: decisions speak of it. */
  id: z.string().check(z.regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "is made of small letters, digits and dashes")),
  /** The version that was edited; 0 for a new policy. */
  version: z.number().check(z.int(), z.minimum(0)),
  text: z.string().check(z.trim(), z.minLength(1), z.maxLength(2_000)),
  enabled: z.boolean(),
  /** Work that nobody asked for, on a budget of its own; absent: none. */
  speculation: z.optional(speculationSetting),
});
export type PolicyInput = z.infer<typeof policyInput>;

/** What an owner asks for in the chat: other words, or on and off; a new policy is on. */
export const policyChange = z.object({
  id: policyInput.shape.id,
  text: z.optional(policyInput.shape.text),
  on: z.optional(z.boolean()),
  /** Null: it lets nothing start by itself any more. */
  speculation: z.optional(z.nullable(speculationSetting)),
});
export type PolicyChange = { id: string; text?: string; on?: boolean; speculation?: SpeculationSetting | null };

export type Policy = { id: string; version: number; text: string; speculation?: SpeculationSetting; savedIn?: SavedIn };
/** A version as it is stored. */
export type SavedPolicy = Policy & { enabled: boolean; savedBy: string; savedMs: number };

/** What a decision says of the policy that it followed. */
export type FollowedPolicy = { id: string; version: number; why: string };
