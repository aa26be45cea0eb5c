// What the console's doors have in common: who acts, which object a path names, and how objects are reached.
import type * as z from "zod/mini";
import { operatorId } from "../core/audience.ts";
import { routerName } from "../env.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import type { Principal } from "../protocol/principal.ts";
import type { Objects } from "../storage/console-reads.ts";
import type { ConsoleContext } from "./console-access.ts";

/** Whoever holds the operator token acts as the owner; the log names them so. */
export const operator: Principal = { role: "owner", id: operatorId, name: "Operator" };

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

export function found<T>(value: T | null, sentence: string): T {
  if (value === null) throw new Fault("not_found", sentence);
  return value;
}

/** The id in the path; one that cannot be an id names nothing. */
export function idOf(c: ConsoleContext, schema: z.ZodMiniType<string>, what: string): string {
  const id = schema.safeParse(c.req.param("id"));
  if (!id.success) throw new Fault("not_found", `There is no ${what} ${(c.req.param("id") ?? "").slice(0, 80)}.`);
  return id.data;
}
