// A profile: a named role of worker sessions with a small tool set, a prompt, a model and a budget. Data, versioned, edited by owners.
import * as z from "zod/mini";

export const profileName = z.string().check(z.regex(/^[a-z][a-z0-9-]{0,38}$/, "must be lower-case letters, digits and -, at most 39"));

export const profile = z.object({
  name: profileName,
  version: z.int().check(z.minimum(0)),
  /** When the router should choose it, in a sentence. */
  purpose: z.string().check(z.minLength(1), z.maxLength(300)),
  /** Tools beside those that every worker has; a call of any other is refused by code. */
  tools: z.array(z.string().check(z.maxLength(40))).check(z.maxLength(40)),
  /** What is said to its workers after the common prompt. */
  prompt: z.string().check(z.maxLength(4000)),
  /** The name of another model at the same provider; null takes the deployment's. */
  model: z.nullable(z.string().check(z.minLength(1), z.maxLength(200))),
  /** Model calls of a task when the dispatch says no other. */
  modelCalls: z.int().check(z.minimum(1), z.maximum(60)),
});
export type Profile = z.infer<typeof profile>;
/** A version with who saved it; null for what ships. */
export type SavedProfile = Profile & { savedBy: string | null; savedMs: number | null };

/** What a task gets when nothing else was named. */
export const defaultProfile = "general";
