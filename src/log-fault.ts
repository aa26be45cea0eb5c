// The Worker's log: one line of JSON for each failure that nobody else is told of. `wrangler tail` and the platform's log show it.
import { asFault } from "./protocol/fault.ts";

/**
 * Notes a failure that what goes on survives. `at`: the part of the house; `about`: what an operator looks for, ids first. Only what is no
 * fault of ours brings its stack along: it was expected by nobody.
 */
export function logFault(at: string, error: unknown, about: Record<string, unknown> = {}): void {
  const fault = asFault(error);
  const stack = fault === null && error instanceof Error ? { stack: error.stack } : {};
  console.error(
    JSON.stringify({ at, ...about, error: String(error), ...(fault === null ? stack : { fault: fault.kind, detail: fault.detail }) }),
  );
}
