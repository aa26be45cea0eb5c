// Who is behind a trigger. Decided by code, never by a model.
import * as z from "zod/mini";

export const roles = ["owner", "member", "guest", "public", "agent", "bot"] as const;
export const role = z.enum(roles);
export type Role = z.infer<typeof role>;

/** What a decision or a task may do; a total order, highest first. */
export const authorities = ["owner", "member", "guest", "public"] as const;
export const authority = z.enum(authorities);
export type Authority = z.infer<typeof authority>;

/** The router keeps one transcript a lane and never mixes them. */
export const lanes = ["team", "public"] as const;
export type Lane = (typeof lanes)[number];

export const principal = z.object({
  role,
  /** Stable id within the source: a person's `prs_` id, a guest's id, a GitHub login. */
  id: z.string().check(z.minLength(1), z.maxLength(200)),
  name: z.string().check(z.maxLength(200)),
  /** For `agent`: the authority of the task or creator on whose behalf it speaks. */
  onBehalfOf: z.optional(authority),
});
export type Principal = z.infer<typeof principal>;
