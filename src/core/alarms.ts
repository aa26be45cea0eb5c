// Deadlines: what one is, when one that failed is tried again, and how those of many objects are kept apart.

/** `key`: which one of its kind; empty where there is only one. `payload`: what its handler is told. */
export type Deadline = { kind: string; key: string; dueMs: number; payload: string; attempts: number };

const backoffBaseMs = 500;
const backoffCapMs = 5 * 60_000;

/** When a deadline that failed `attempts` times is due again: doubling from 0.5 s to 5 min. It is never given up. */
export const retryAtMs = (nowMs: number, attempts: number): number =>
  nowMs + Math.min(backoffCapMs, backoffBaseMs * 2 ** Math.min(attempts, 20));

/** Errors of the platform (a deploy, a lost connection) are not the work's fault: they do not count as an attempt. */
export const isPlatformHiccup = (message: string): boolean =>
  /code was updated|network connection lost|internal error|durable object reset|isolate.*(reset|evicted)|cannot perform I\/O/i.test(
    message,
  );

/**
 * A time below `withinMs` that is always the same for an id: what many objects do after the same event they do not do in the same moment.
 * An id of ours ends with characters of a digest, which are digits of base 36 too.
 */
export const spreadMs = (id: string, withinMs: number): number => Number.parseInt(id.slice(-6), 36) % withinMs;
