// What we do at GitHub beside a comment: a pull request from a task's branch, labels, an answer in a review thread. Each can be found
// again, so that an answer that we did not see leads to no second one.
import * as z from "zod/mini";
import type { Config } from "../../env.ts";
import { Fault } from "../../protocol/fault.ts";
import type { Deed } from "../../protocol/thread.ts";
import { callGitHub } from "./api.ts";

const timeoutMs = 15_000;
const pageSize = 100;

type Pull = Extract<Deed, { do: "pull_request" }>;

const pullAnswer = z.object({ number: z.int().check(z.positive()) });
const pullList = z.array(z.object({ number: z.int().check(z.positive()), body: z.nullish(z.string()) }));
const labelList = z.array(z.object({ name: z.string() }));
const commentAnswer = z.object({ id: z.number() });

/** Opens the pull request. GitHub takes one for a branch and its target: "already exists" is found and taken as ours only with our marker. */
export async function openPull(config: Config, place: string, deed: Pull, body: string, marker: string): Promise<{ providerId: string }> {
  const { head, base, title, draft } = deed;
  const call = { method: "POST" as const, path: `/repos/${place}/pulls`, body: { title, head, base, body, draft }, timeoutMs };
  try {
    const answer = pullAnswer.safeParse(await callGitHub(config.github, call));
    if (!answer.success) throw new Fault("provider", "GitHub took the pull request, but did not say its number.", { retry: "unknown" });
    return { providerId: String(answer.data.number) };
  } catch (error) {
    if (!(error instanceof Fault) || error.kind !== "bad_input") throw error;
    const there = await findPull(config, place, deed, marker);
    if (there === null) throw error;
    return there;
  }
}

/** The pull request of this branch that has our marker, open or not. */
export async function findPull(config: Config, place: string, { head }: Pull, marker: string): Promise<{ providerId: string } | null> {
  const owner = place.split("/")[0] ?? "";
  const query = `head=${encodeURIComponent(`${owner}:${head}`)}&state=all&per_page=${pageSize}`;
  const pulls = pullList.safeParse(await callGitHub(config.github, { method: "GET", path: `/repos/${place}/pulls?${query}`, timeoutMs }));
  if (!pulls.success) throw new Fault("provider", "GitHub's list of pull requests cannot be read.", { retry: "later" });
  const ours = pulls.data.find(({ body }) => body?.includes(marker));
  return ours ? { providerId: String(ours.number) } : null;
}

const labelsPath = (place: string, number: string): string => `/repos/${place}/issues/${number}/labels`;

/** Adding a label that is there changes nothing: a repeat is harmless. */
export async function addLabels(config: Config, place: string, number: string, labels: readonly string[]): Promise<{ providerId: string }> {
  await callGitHub(config.github, { method: "POST", path: labelsPath(place, number), body: { labels }, timeoutMs });
  return { providerId: `labels:${number}` };
}

export async function findLabels(
  config: Config,
  place: string,
  number: string,
  labels: readonly string[],
): Promise<{ providerId: string } | null> {
  const path = `${labelsPath(place, number)}?per_page=${pageSize}`;
  const there = labelList.safeParse(await callGitHub(config.github, { method: "GET", path, timeoutMs }));
  if (!there.success) throw new Fault("provider", "GitHub's list of labels cannot be read.", { retry: "later" });
  const names = new Set(there.data.map(({ name }) => name.toLowerCase()));
  return labels.every((label) => names.has(label.toLowerCase())) ? { providerId: `labels:${number}` } : null;
}

/** Answers in the review thread; null when that thread is gone, and the words belong into the pull request itself. */
export async function replyInReview(
  config: Config,
  place: string,
  number: string,
  commentId: string,
  body: string,
): Promise<{ providerId: string } | null> {
  const path = `/repos/${place}/pulls/${number}/comments/${commentId}/replies`;
  try {
    const answer = commentAnswer.safeParse(await callGitHub(config.github, { method: "POST", path, body: { body }, timeoutMs }));
    if (!answer.success) throw new Fault("provider", "GitHub took the comment, but did not say its number.", { retry: "unknown" });
    return { providerId: String(answer.data.id) };
  } catch (error) {
    if (error instanceof Fault && (error.kind === "not_found" || error.kind === "bad_input")) return null;
    throw error;
  }
}
