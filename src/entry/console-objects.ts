// How the console's doors reach objects.
import { routerName } from "../env.ts";
import { asFault } from "../protocol/fault.ts";
import type { Objects } from "../storage/console-reads.ts";
import type { ConsoleContext } from "./console-access.ts";

export const objectsOf = (c: ConsoleContext): Objects => ({
  thread: (id) => c.env.THREAD.getByName(id),
  worker: (id) => c.env.WORKER_SESSION.getByName(id),
  endpoint: (id) => c.env.ENDPOINT.getByName(id),
  router: c.env.ROUTER.getByName(routerName),
});

/** An error of another object arrives without its class: it becomes a fault again, so that its sentence reaches the page. */
export async function remote<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw asFault(error) ?? error;
  }
}
