// Limits on waiting for another object, a provider or a service: a call that never ends must not hold a pump.
import { Fault } from "./protocol/fault.ts";

/** The result of `work`, or a `timeout` fault after `ms`. The work itself goes on; whoever repeats it relies on its id. */
export function withTimeout<T>(work: Promise<T>, ms: number, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Fault("timeout", `${what} did not answer within ${ms / 1000} s.`)), ms);
    work.then(
      (result) => {
        clearTimeout(timer);
        resolve(result);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** Does `work` under a limit that is over after `ms`, or when `work` says so. */
export async function abortAfter<T>(ms: number, work: (limit: AbortController) => Promise<T>): Promise<T> {
  // Not AbortSignal.timeout: its timer would keep the calling object awake after the answer.
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), ms);
  try {
    return await work(limit);
  } finally {
    clearTimeout(timer);
  }
}
