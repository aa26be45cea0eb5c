// When the daemon dials again after a connection ended, and when it must not. Pure; `random` is a parameter.
import { retryAfterMs } from "../src/core/retry-after.ts";
import { daemonClose } from "../src/protocol/daemon-frames.ts";
import { limits } from "../src/protocol/limits.ts";

/** How a connection ended. `status`: the cloud refused the upgrade; `lost`: no answer, a broken line, silence. */
export type ConnectionEnd =
  | { kind: "closed"; code: number; reason: string }
  | { kind: "status"; status: number; retryAfter: string | null }
  | { kind: "lost"; reason: string }
  | { kind: "asked"; reason: string };

export type NextStep = { kind: "retry"; waitMs: number; say: string } | { kind: "stop"; say: string };

const enrolAgain = "enrol it again with: npm run daemon -- enroll URL CODE";

/** Full jitter: anything between 0 and the doubling cap. */
export const jitterMs = (attempt: number, random: number): number =>
  random * Math.min(limits.reconnectCapMs, limits.reconnectBaseMs * 2 ** Math.min(attempt, 20));

const seconds = (ms: number): string => `${Math.max(1, Math.round(ms / 1000))} s`;

/** What to do after the `attempt`-th failure in a row (from 0). */
export function nextStep(end: ConnectionEnd, attempt: number, random: number, nowMs: number): NextStep {
  const jitter = jitterMs(attempt, random);
  const retry = (why: string, atLeastMs = 0): NextStep => {
    // On top of a given wait, some spread: many machines may have been told the same.
    const waitMs = atLeastMs > 0 ? atLeastMs + random * Math.min(atLeastMs, limits.reconnectCapMs) * 0.2 : jitter;
    return { kind: "retry", waitMs, say: `${why}; trying again in ${seconds(waitMs)}` };
  };
  const version = `the cloud speaks another protocol version: update this daemon (or the deployment), then it connects by itself`;
  switch (end.kind) {
    case "asked":
      return { kind: "retry", waitMs: 0, say: end.reason };
    case "lost":
      return retry(`connection lost (${end.reason})`);
    case "closed":
      switch (end.code) {
        case daemonClose.revoked:
          return { kind: "stop", say: `this machine was revoked in the console; ${enrolAgain}` };
        case daemonClose.unauthorised:
          return { kind: "stop", say: `the cloud does not accept this machine's key; ${enrolAgain}` };
        case daemonClose.superseded:
          return retry("another daemon connected with this machine's identity", limits.supersededBackoffMs);
        case daemonClose.version:
          return retry(version, limits.reconnectCapMs);
        case daemonClose.protocolError:
          return retry(`the cloud could not read a frame (${end.reason}): update this daemon`, limits.reconnectBaseMs);
        default:
          return retry(`connection closed (${end.code}${end.reason ? ` ${end.reason}` : ""})`);
      }
    case "status":
      switch (end.status) {
        case 401:
          return { kind: "stop", say: `the cloud does not accept this machine (401); ${enrolAgain}` };
        case 404:
          return { kind: "stop", say: `the cloud does not know this machine (404); check its address, or ${enrolAgain}` };
        case 410:
          return { kind: "stop", say: `this machine was revoked in the console (410); ${enrolAgain}` };
        case 426:
          return retry(version, limits.reconnectCapMs);
        default:
          return retry(`the cloud answered ${end.status}`, retryAfterMs(end.retryAfter, nowMs));
      }
  }
}
