// One request to GitHub's REST API with a given credential, and what its failures mean.
import * as z from "zod/mini";
import { Fault } from "../../protocol/fault.ts";

/** `etag`: of an earlier answer to the same call; one that has not changed has no body. */
export type GitHubCall = { method: "GET" | "POST"; path: string; body?: unknown; timeoutMs: number; etag?: string | null };
/** `next`: the cursor of the next page, where GitHub pages by cursor; null on the last one. */
export type GitHubPage = { body: unknown; next: string | null; etag: string | null; unchanged?: true };

const apiVersion = "2022-11-28";
const retryAfterDefaultMs = 60_000;
const retryAfterCapMs = 60 * 60_000;

/** Sends a request and returns the JSON of a success. Throws `Fault`; a write that may have happened has `retry: "unknown"`. */
export async function sendToGitHub(apiUrl: string, bearer: string, call: GitHubCall): Promise<GitHubPage> {
  // A write whose answer we did not see may have happened; a read can simply be repeated.
  const unseen = call.method === "POST" ? "unknown" : "later";
  let response: Response;
  let text: string;
  // Not AbortSignal.timeout: its timer would keep the calling object awake after the answer.
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), call.timeoutMs);
  try {
    response = await fetch(`${apiUrl.replace(/\/+$/, "")}${call.path}`, {
      method: call.method,
      headers: {
        accept: "application/vnd.github+json",
        authorization: `Bearer ${bearer}`,
        "user-agent": "switchyard",
        "x-github-api-version": apiVersion,
        ...(call.body === undefined ? {} : { "content-type": "application/json" }),
        ...(call.etag ? { "if-none-match": call.etag } : {}),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      // The token must not follow a redirect to another host.
      redirect: "manual",
      signal: abort.signal,
    });
    text = await response.text();
  } catch (error) {
    const timedOut = abort.signal.aborted;
    const message = timedOut ? `GitHub did not answer within ${call.timeoutMs / 1000} seconds.` : "GitHub could not be reached.";
    throw new Fault(timedOut ? "timeout" : "unavailable", message, { retry: unseen, cause: error });
  } finally {
    clearTimeout(timer);
  }
  const etag = response.headers.get("etag");
  if (response.status === 304 && call.etag) return { body: null, next: null, etag: call.etag, unchanged: true };
  if (!response.ok) throw faultOf(response, text, unseen);
  const next = /<[^>]*[?&]cursor=([^&>]+)[^>]*>;\s*rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  try {
    // 202 of a redelivery has an empty object, 204 has nothing.
    return { body: text === "" ? null : JSON.parse(text), next: next === undefined ? null : decodeURIComponent(next), etag };
  } catch (error) {
    throw new Fault("provider", "GitHub answered with something that is not JSON.", { retry: unseen, cause: error });
  }
}

const errorBody = z.object({
  message: z.string(),
  /** What is wrong with which field: "A pull request already exists for acme:fix." */
  errors: z.catch(z.optional(z.array(z.object({ message: z.optional(z.string()) }))), undefined),
});

function faultOf(response: Response, text: string, unseen: "unknown" | "later"): Fault {
  const said = messageOf(text);
  const { status } = response;
  if (status === 429 || (status === 403 && isRateLimit(response, said)))
    return new Fault("rate_limited", `GitHub asks us to wait${said}`, { retryAfterMs: retryAfterMs(response, Date.now()) });
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

const isRateLimit = (response: Response, said: string): boolean =>
  response.headers.get("x-ratelimit-remaining") === "0" || response.headers.has("retry-after") || /rate limit/i.test(said);

function retryAfterMs(response: Response, nowMs: number): number {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  if (Number.isFinite(seconds) && seconds >= 0) return Math.min(retryAfterCapMs, seconds * 1000);
  const resetMs = Number(response.headers.get("x-ratelimit-reset") ?? Number.NaN) * 1000;
  if (Number.isFinite(resetMs)) return Math.min(retryAfterCapMs, Math.max(1000, resetMs - nowMs));
  return retryAfterDefaultMs;
}
