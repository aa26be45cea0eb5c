// The two channels of the generic webhook, outbound: a signed POST to the address of the team's own bridge, which says the source that
// it is for. The outbound id is the idempotency key; a GET with `?id=` asks whether the bridge has it.
import * as z from "zod/mini";
import { retryAfterMs } from "../../core/retry-after.ts";
import type { Config } from "../../env.ts";
import { Fault, type Retry } from "../../protocol/fault.ts";
import type { Channel, OutboundMessage } from "../channel.ts";
import { type Answer, ask } from "../http.ts";
import type { SignedSource } from "./parse.ts";
import { signHeaders } from "./sign.ts";

const timeoutMs = 10_000;
const waitDefaultMs = 30_000;
const who = "The address in GENERIC_REPLY_URL";

const answerBody = z.object({ id: z.optional(z.union([z.string(), z.number()])) });

const channelFor = (source: SignedSource): Channel => ({
  source,

  async send(message, config) {
    const { id, kind, text, fullText, triggerId } = message.outbound;
    const said = {
      id,
      source,
      place: message.place,
      ...whereOf(message.threadKey),
      kind,
      text,
      ...(fullText === undefined ? {} : { fullText }),
      ...(triggerId === undefined ? {} : { triggerId }),
    };
    const answer = await callBridge(config, id, "POST", JSON.stringify(said));
    // 409: the bridge knows the id, so an earlier attempt arrived after all.
    if (answer.status !== 409 && !answer.ok) throw faultOf(answer, "unknown");
    return { providerId: providerIdOf(answer, id, "unknown") };
  },

  async find({ outbound }, config) {
    const answer = await callBridge(config, outbound.id, "GET", null);
    if (answer.ok) return { providerId: providerIdOf(answer, outbound.id, "later") };
    // Without a look-up of its own the bridge still has the idempotency key: sending again cannot double anything.
    if ([404, 405, 501].includes(answer.status)) return null;
    throw faultOf(answer, "later");
  },
});

export const generic = channelFor("generic");
export const chat = channelFor("chat");

/** The keys as the sender named them. */
function whereOf(threadKey: OutboundMessage["threadKey"]): Record<string, string> {
  const at = threadKey.indexOf(":");
  const rest = threadKey.slice(at + 1);
  switch (threadKey.slice(0, at)) {
    case "thread":
      return { thread: rest };
    case "message":
      return { messageKey: rest };
    default:
      return { event: rest };
  }
}

async function callBridge(config: Config, id: string, method: "GET" | "POST", body: string | null): Promise<Answer> {
  const { replyUrl, webhookSecret } = config.generic;
  if (replyUrl === null)
    throw new Fault("unauthorised", "GENERIC_REPLY_URL is missing: without it nothing can be said to where signed messages come from.");
  if (webhookSecret === null)
    throw new Fault("unauthorised", "GENERIC_WEBHOOK_SECRET is missing: without it an answer cannot be signed, and is not sent.");
  if (!URL.canParse(replyUrl)) throw new Fault("bad_input", "GENERIC_REPLY_URL is no address: it must begin with https://.");
  const url = new URL(replyUrl);
  if (method === "GET") url.searchParams.set("id", id);
  const bytes = Uint8Array.from(new TextEncoder().encode(body ?? ""));
  const signed = await signHeaders(webhookSecret, id, bytes, Date.now());
  const headers = { ...signed, ...(body === null ? {} : { "content-type": "application/json", "idempotency-key": id }) };
  return ask(who, url, { method, headers, body: body === null ? undefined : bytes }, timeoutMs);
}

/** The bridge may name what it made, in JSON; else our own id stands for it. Half an answer is none. */
function providerIdOf(answer: Answer, id: string, unseen: Retry): string {
  const text = answer.text.trim();
  if (!text.startsWith("{")) return id;
  try {
    const parsed = answerBody.safeParse(JSON.parse(text));
    return String((parsed.success ? parsed.data.id : undefined) ?? id).slice(0, 200);
  } catch (error) {
    throw new Fault("provider", "The answer of the address in GENERIC_REPLY_URL broke off.", { retry: unseen, cause: error });
  }
}

function faultOf({ status, headers }: Answer, unseen: Retry): Fault {
  const at = "the address in GENERIC_REPLY_URL";
  if (status === 429 || status === 503) {
    const waitMs = retryAfterMs(headers.get("retry-after"), Date.now()) ?? waitDefaultMs;
    return new Fault(status === 429 ? "rate_limited" : "unavailable", `Asked to wait by ${at}.`, { retryAfterMs: waitMs });
  }
  if (status >= 500) return new Fault("unavailable", `There is a fault (${status}) at ${at}.`, { retry: unseen });
  if (status === 401 || status === 403)
    return new Fault("unauthorised", `Our signature was refused (${status}) by ${at}: does it know the same secret?`);
  if (status === 404 || status === 410) return new Fault("not_found", `Nothing is found at ${at}: is it right?`);
  return new Fault("provider", `An unexpected answer (${status}) came from ${at}.`, { retry: "never" });
}
