// What went wrong at a model provider, as a fault with its retry hint, a sentence for anybody, and one for operators that says what to do.
import { APICallError, InvalidResponseDataError, JSONParseError, TypeValidationError } from "ai";
import { capped, retryAfterMs } from "../core/retry-after.ts";
import type { ModelConfig } from "../env.ts";
import { Fault, type FaultKind, messageOf } from "../protocol/fault.ts";

const maxDetailChars = 200;

/** Some providers say it in milliseconds too. */
function waitOf(headers: Record<string, string> = {}): number | undefined {
  const exact = Number(headers["retry-after-ms"] || Number.NaN);
  return (exact >= 0 ? capped(exact) : undefined) ?? retryAfterMs(headers["retry-after"], Date.now());
}

/** [A11] Every error of a call becomes a `Fault`; what we do not know is ours (`internal`, never retried). Hosts, settings and a provider's words are its detail. */
export function modelFault(error: unknown, config: ModelConfig, timedOut: boolean, timeoutMs: number): Fault {
  if (error instanceof Fault) return error;
  const host = placeOf(config);
  if (timedOut)
    return aboutModel("timeout", host, `did not answer within ${Math.round(timeoutMs / 100) / 10} s; it is asked again.`, { cause: error });
  if (APICallError.isInstance(error)) return apiFault(error, config, host);
  if (InvalidResponseDataError.isInstance(error) || JSONParseError.isInstance(error) || TypeValidationError.isInstance(error))
    return unreadable(host, error);
  // How the Anthropic client says that its first event was no event.
  if (error instanceof Error && /stream error/i.test(error.message)) return unreadable(host, error);
  if (
    error instanceof Error &&
    /network|connection|socket|fetch failed|terminated|ECONN|cut|closed/i.test(`${error.message} ${String(error.cause)}`)
  )
    return unreachable(host, error);
  const made = "The request to the model could not be made";
  return new Fault("internal", `${made}.`, { detail: `${made}: ${messageOf(error)}`, cause: error });
}

/** The same sentence for people and for operators, who read where the model is. */
const aboutModel = (kind: FaultKind, host: string, words: string, options: ConstructorParameters<typeof Fault>[2]): Fault =>
  new Fault(kind, `The model ${words}`, { ...options, detail: `The model at ${host} ${words}` });

const unreadable = (host: string, cause: unknown): Fault =>
  aboutModel("provider", host, "sent an answer that cannot be read; it is asked again.", { retry: "later", cause });

const unreachable = (host: string, cause: unknown): Fault =>
  aboutModel("unavailable", host, "cannot be reached right now; it is asked again.", { cause });

function apiFault(error: APICallError, config: ModelConfig, host: string): Fault {
  const status = error.statusCode;
  const waitMs = waitOf(error.responseHeaders);
  const passing = { cause: error, ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) };
  if (status === undefined) return unreachable(host, error);
  // The body's text is not shown with these: providers repeat parts of the key in it.
  if (status === 401 || status === 403) {
    const detail =
      config.provider === "workers-ai" && status === 403
        ? `Workers AI does not let this account use "${config.modelName}". Accept the model's terms there, or set another MODEL_NAME.`
        : `MODEL_API_KEY is refused by ${host}. Set a valid key.`;
    return new Fault("unauthorised", "The model refuses us access.", { detail, cause: error });
  }
  if (status === 404) {
    const detail = `MODEL_NAME "${config.modelName}" is unknown at ${host}. Check MODEL_NAME${config.provider === "workers-ai" ? "" : " and MODEL_BASE_URL"}.`;
    return new Fault("not_found", "The model is unknown where we ask for it.", { detail, cause: error });
  }
  if (status === 429) return aboutModel("rate_limited", host, "asks us to slow down; it is asked again later.", passing);
  if (status === 408 || status === 409 || status === 425 || status >= 500)
    return new Fault("unavailable", "The model has a fault of its own; it is asked again.", {
      detail: `The model at ${host} has a fault of its own (HTTP ${status}); it is asked again.`,
      ...passing,
    });
  if (status >= 400)
    return new Fault("provider", "The model refused the request.", {
      detail: `The model at ${host} refused the request (HTTP ${status}): ${saidBy(error, config.apiKey)}`,
      cause: error,
    });
  return unreadable(host, error);
}

/** The provider's own words. */
function saidBy(error: APICallError, apiKey: string): string {
  const text = error.message.replace(/\s+/g, " ").trim();
  const safe = apiKey === "" ? text : text.replaceAll(apiKey, "[key]");
  const said = safe.length > maxDetailChars ? `${safe.slice(0, maxDetailChars)}…` : safe || "no reason given";
  return /[.!?…]$/.test(said) ? said : `${said}.`;
}

/** An error that a provider sends inside of a stream: the answer began well and cannot be finished. */
export function streamFault(error: unknown): unknown {
  // A chunk that is no JSON, or none of the protocol, arrives here as the error of the one who read it.
  if (error instanceof Error) return error;
  const said = JSON.stringify(error) ?? "";
  if (/rate.?limit|\b429\b|too many requests/i.test(said))
    return new Fault("rate_limited", "The model asks us to slow down; it is asked again later.", { cause: error });
  return new Fault("unavailable", "The model broke off its answer with a fault of its own; it is asked again.", { cause: error });
}

const placeOf = ({ provider, baseUrl }: ModelConfig): string =>
  provider === "workers-ai" ? "Workers AI" : URL.canParse(baseUrl) ? new URL(baseUrl).host : baseUrl;
