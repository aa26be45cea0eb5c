// One HTTP request of a channel, and what it means when no answer comes.
import { Fault, type Retry } from "../protocol/fault.ts";
import { abortAfter } from "../timeout.ts";

type Method = "GET" | "POST";
export type Answer = { status: number; ok: boolean; headers: Headers; text: string };

/** What an answer that we did not see leaves open: a write may have happened, a read can simply be repeated. */
export const retryUnseen = (method: Method): Retry => (method === "POST" ? "unknown" : "later");

/** Sends a request and reads its whole answer. No answer is a `Fault`, whose sentence begins with `who`. */
export const ask = (
  who: string,
  url: string | URL,
  call: { method: Method; headers: Record<string, string>; body?: string | Uint8Array<ArrayBuffer> | undefined },
  timeoutMs: number,
): Promise<Answer> =>
  abortAfter(timeoutMs, async ({ signal }) => {
    const { method, headers, body } = call;
    try {
      const answer = await fetch(url, {
        method,
        headers: { "user-agent": "switchyard", ...headers },
        ...(body === undefined ? {} : { body }),
        // A credential or a signature must not follow a redirect to another host.
        redirect: "manual",
        signal,
      });
      // Read here, so that an answer that breaks off is no success.
      return { status: answer.status, ok: answer.ok, headers: answer.headers, text: await answer.text() };
    } catch (error) {
      const [kind, what] = signal.aborted
        ? (["timeout", `did not answer within ${timeoutMs / 1000} seconds`] as const)
        : (["unavailable", "could not be reached"] as const);
      throw new Fault(kind, `${who} ${what}.`, { retry: retryUnseen(method), cause: error });
    }
  });
