// What the doors of sockets have in common.
import type { Context } from "hono";
import { refused } from "../channels/upgrade.ts";
import { logFault } from "../log-fault.ts";
import { asFault, Fault } from "../protocol/fault.ts";

/** The standard close code for a passing state of the server. */
const tryAgainLater = 1013;

/** The answer to a request that does not come to connect; null when it does. `message` says how one connects. */
export const noUpgrade = (c: Context, message: string): Response | null =>
  c.req.header("upgrade")?.toLowerCase() === "websocket"
    ? null
    : c.json({ error: "upgrade_required", message }, 426, { upgrade: "websocket" });

/** The ticket that a page sends beside its protocol, if it sends one. */
export function ticketBeside(c: Context, protocol: string): string | undefined {
  const [first, ticket] = (c.req.header("sec-websocket-protocol") ?? "").split(",").map((part) => part.trim());
  if (first !== protocol) throw new Fault("bad_input", `The first protocol must be ${protocol}.`);
  return ticket;
}

/** An upgrade that failed, as its page sees it: the code says whether waiting helps, or a new ticket. */
export function refuseFailed(error: unknown, at: string, protocol: string, unauthorised: number): Response {
  const fault = asFault(error);
  if (fault === null) logFault(at, error);
  const code = fault === null || fault.retry === "later" ? tryAgainLater : unauthorised;
  return refused(protocol, code, fault?.message ?? "Something went wrong on our side; try again in a minute.");
}
