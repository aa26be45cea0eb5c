// Errors that cross a wire are part of the protocol: each says whether a retry can help.

/** `never`: the same call will fail again; `later`: a passing state, try with back-off; `unknown`: it may have had its effect, look before you retry. */
export type Retry = "never" | "later" | "unknown";

export type FaultKind =
  | "bad_input"
  | "unauthorised"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "too_large"
  | "rate_limited"
  | "unavailable"
  | "timeout"
  | "provider"
  | "internal";

/**
 * An expected failure. `message` is a sentence for people that says what to do. `detail` is one for the team alone, in its place: it may
 * name hosts and settings, and repeat what another system said.
 */
export class Fault extends Error {
  readonly kind: FaultKind;
  readonly retry: Retry;
  readonly retryAfterMs: number | undefined;
  readonly detail: string | undefined;

  constructor(kind: FaultKind, message: string, options: { retry?: Retry; retryAfterMs?: number; detail?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "Fault";
    this.kind = kind;
    this.retry = options.retry ?? (kind === "unavailable" || kind === "timeout" || kind === "rate_limited" ? "later" : "never");
    this.retryAfterMs = options.retryAfterMs;
    this.detail = options.detail;
  }
}

/** The words of a fault: for anybody, and for the team. */
export type FaultWords = { message: string; detail?: string | undefined };

/** What an error says, for a log or a sentence. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The same for operators, with what only the team may read. */
export const detailOf = (error: unknown): string => asFault(error)?.detail ?? messageOf(error);

/** The HTTP status that stands for a fault. */
export const httpStatusOf: Record<FaultKind, number> = {
  bad_input: 400,
  unauthorised: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  rate_limited: 429,
  unavailable: 503,
  timeout: 504,
  provider: 502,
  internal: 500,
};

/**
 * An error as a fault, when it is one; else null. Between objects an error arrives as a plain `Error` with a fault's fields,
 * so `instanceof` says no there.
 */
export function asFault(error: unknown): Fault | null {
  if (error instanceof Fault) return error;
  if (!(error instanceof Error) || error.name !== "Fault") return null;
  const { kind, retry, retryAfterMs, detail } = error as Error & Partial<Record<"kind" | "retry" | "retryAfterMs" | "detail", unknown>>;
  if (typeof kind !== "string" || !(kind in httpStatusOf)) return null;
  return new Fault(kind as FaultKind, error.message, {
    ...(retry === "never" || retry === "later" || retry === "unknown" ? { retry } : {}),
    ...(typeof retryAfterMs === "number" ? { retryAfterMs } : {}),
    ...(typeof detail === "string" ? { detail } : {}),
    cause: error,
  });
}
