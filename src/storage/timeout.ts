// A limit on waiting for another object or a provider: a call that never ends must not hold a pump.
import { Fault } from "../protocol/fault.ts";

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
