// How long a service asks to be left alone. It is heeded, but never for longer than an hour: what waits for it is looked at by then.

const maxMs = 60 * 60_000;

/** What `Retry-After` says, in seconds or as a date; undefined when it says neither. */
export function retryAfterMs(header: string | null | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+(\.\d+)?$/.test(text)) return capped(Number(text) * 1000);
  // Only a date has letters: what else `Date.parse` makes something of is none.
  return /[a-z]/i.test(text) ? capped(Date.parse(text) - nowMs) : undefined;
}

/** A wait within reason; undefined when it is none. */
export const capped = (ms: number): number | undefined => (Number.isFinite(ms) ? Math.min(maxMs, Math.max(0, Math.ceil(ms))) : undefined);
