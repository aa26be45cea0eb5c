// One request to GitHub's REST API with a given credential, and what its failures mean.
import * as z from "zod/mini";
import { capped, retryAfterMs } from "../../core/retry-after.ts";
import { Fault, type Retry } from "../../protocol/fault.ts";
import { type Answer, ask, retryUnseen } from "../http.ts";

/** `etag`: of an earlier answer to the same call; one that has not changed has no body. */
export type GitHubCall = { method: "GET" | "POST"; path: string; body?: unknown; timeoutMs: number; etag?: string | null };
/** `next`: the cursor of the next page, where GitHub pages by cursor; null on the last one. */
export type GitHubPage = { body: unknown; next: string | null; etag: string | null; unchanged?: true };

const apiVersion = "2022-11-28";
const waitDefaultMs = 60_000;

/** Sends a request and returns the JSON of a success. Throws `Fault`; a write that may have happened has `retry: "unknown"`. */
export async function sendToGitHub(apiUrl: string, bearer: string, call: GitHubCall): Promise<GitHubPage> {
  const { method, path, etag: knownEtag, timeoutMs } = call;
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  const headers = {
    accept: "application/vnd.github+json",
    authorization: `Bearer ${bearer}`,
    "x-github-api-version": apiVersion,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(knownEtag ? { "if-none-match": knownEtag } : {}),
  };
  const answer = await ask("GitHub", `${apiUrl.replace(/\/+$/, "")}${path}`, { method, headers, body }, timeoutMs);
  const { text } = answer;
  if (answer.status === 304 && knownEtag) return { body: null, next: null, etag: knownEtag, unchanged: true };
  if (!answer.ok) throw faultOf(answer, retryUnseen(method));
  const etag = answer.headers.get("etag");
  const next = /<[^>]*[?&]cursor=([^&>]+)[^>]*>;\s*rel="next"/.exec(answer.headers.get("link") ?? "")?.[1];
  try {
    // 202 of a redelivery has an empty object, 204 has nothing.
    return { body: text === "" ? null : JSON.parse(text), next: next === undefined ? null : decodeURIComponent(next), etag };
  } catch (error) {
    throw new Fault("provider", "GitHub answered with something that is not JSON.", { retry: retryUnseen(method), cause: error });
  }
}

const errorBody = z.object({
  message: z.string(),
  /** What is wrong with which field: "A pull request already exists for acme:fix." */
  errors: z.catch(z.optional(z.array(z.object({ message: z.optional(z.string()) }))), undefined),
});

function faultOf({ status, headers, text }: Answer, unseen: Retry): Fault {
  const said = messageOf(text);
  if (status === 429 || (status === 403 && isRateLimit(headers, said)))
    return new Fault("rate_limited", `GitHub asks us to wait${said}`, { retryAfterMs: waitOf(headers, Date.now()) });
  // 503 says that nothing was done; other failures of the server leave that open.
  if (status >= 500) return new Fault("unavailable", `GitHub has a fault (${status})${said}`, { retry: status === 503 ? "later" : unseen });
  switch (status) {
    case 401:
      return new Fault(
        "unauthorised",
        `GitHub refused our credential (GITHUB_TOKEN, or the App's key): it is wrong, expired or revoked${said}`,
      );
    case 403:
      return new Fault("forbidden", `Our credential at GitHub (GITHUB_TOKEN, or the App) may not do this${said}`);
    case 404:
      return new Fault("not_found", `GitHub knows no such place, or our credential (GITHUB_TOKEN, or the App) may not see it${said}`);
    case 410:
      return new Fault("not_found", `This place is gone from GitHub${said}`);
    case 422:
      return new Fault("bad_input", `GitHub did not accept the text${said}`);
    default:
      return new Fault("provider", `GitHub answered ${status}${status < 400 ? ": the repository may have moved" : ""}${said}`, {
        retry: "never",
      });
  }
}

/** GitHub's own words, as the end of our sentence. */
function messageOf(text: string): string {
  try {
    const parsed = errorBody.safeParse(JSON.parse(text));
    if (!parsed.success) return ".";
    const details = (parsed.data.errors ?? []).flatMap(({ message }) => message ?? []);
    return `: ${[parsed.data.message, ...details].join(" ").slice(0, 300)}`;
  } catch {
    // Not JSON: a page of a proxy between us, which says nothing to people.
    return ".";
  }
}

const isRateLimit = (headers: Headers, said: string): boolean =>
  headers.get("x-ratelimit-remaining") === "0" || headers.has("retry-after") || /rate limit/i.test(said);

/** Its limits also say when they begin anew, in seconds of the clock. */
function waitOf(headers: Headers, nowMs: number): number {
  const resetMs = Number(headers.get("x-ratelimit-reset") ?? Number.NaN) * 1000;
  return retryAfterMs(headers.get("retry-after"), nowMs) ?? capped(Math.max(1000, resetMs - nowMs)) ?? waitDefaultMs;
}
