// GitHub's list of what it delivered to a webhook of ours, and the request to deliver something again.
import * as z from "zod/mini";
import type { DeliveryAttempt } from "../../core/redelivery.ts";
import type { Config } from "../../env.ts";
import { Fault } from "../../protocol/fault.ts";
import { callGitHub, callGitHubPage } from "./api.ts";

const timeoutMs = 10_000;
const pageSize = 100;

/** A webhook as its own deliveries name it: of a repository, an organisation, or the App. */
export const githubHook = z.object({
  id: z.string().check(z.regex(/^\d{1,20}$/)),
  of: z.enum(["repository", "organization", "integration"]),
  /** `owner/name`, or the organisation; for an App any place where it was heard. */
  place: z.string(),
});
export type GitHubHook = z.infer<typeof githubHook>;

const attempts = z.array(
  z.object({
    id: z.number(),
    guid: z.string(),
    delivered_at: z.string(),
    status_code: z.number(),
    redelivery: z.optional(z.boolean()),
    event: z.string(),
  }),
);

function pathOf({ id, of, place }: GitHubHook): string {
  switch (of) {
    case "repository":
      return `/repos/${place}/hooks/${id}/deliveries`;
    case "organization":
      return `/orgs/${place}/hooks/${id}/deliveries`;
    case "integration":
      return "/app/hook/deliveries";
  }
}

/** One page, the newest first. */
export async function listDeliveries(
  config: Config["github"],
  hook: GitHubHook,
  cursor: string | null,
): Promise<{ attempts: DeliveryAttempt[]; next: string | null }> {
  const query = `per_page=${pageSize}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
  const { body, next } = await callGitHubPage(config, { method: "GET", path: `${pathOf(hook)}?${query}`, timeoutMs });
  const parsed = attempts.safeParse(body);
  if (!parsed.success) throw new Fault("provider", "GitHub's list of deliveries has an unexpected form.", { retry: "later" });
  const listed = parsed.data.map(({ id, guid, delivered_at, status_code, redelivery, event }): DeliveryAttempt => {
    return { id, guid, atMs: Date.parse(delivered_at), ok: status_code >= 200 && status_code < 300, again: redelivery === true, event };
  });
  return { attempts: listed, next };
}

/** Asks for an attempt again; GitHub sends it under its old guid, so that what was stored is not doubled. */
export async function redeliver(config: Config["github"], hook: GitHubHook, attemptId: number): Promise<void> {
  await callGitHub(config, { method: "POST", path: `${pathOf(hook)}/${attemptId}/attempts`, timeoutMs });
}
