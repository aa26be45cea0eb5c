// What a widget page's message passes before it reaches its thread: the limits at the door, then the rules.
import { judgeMessage } from "../core/gate.ts";
import { toRecent } from "../core/gate-trial.ts";
import { type Env, readConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import type { Trigger, Verdict } from "../protocol/trigger.ts";
import { rulesInForce } from "./gate-rules.ts";
import { admit, shareLimits } from "./rate-limits.ts";
import { noteRecent } from "./recent-triggers.ts";

/** The verdict on a message from a page of this root; throws when it may not come in. */
export async function judgeAtPage(
  env: Env,
  ctx: Pick<DurableObjectState, "waitUntil">,
  rootThreadId: string,
  trigger: Trigger,
  isRevoked: (principalId: string) => boolean,
): Promise<Verdict> {
  const { doorLimitFactor } = readConfig(env);
  const comer = { source: trigger.source, place: rootThreadId, sender: "people" as const };
  await admit(env.DB, comer, Date.now(), doorLimitFactor);
  const sharing = shareLimits(env.DB, Date.now(), doorLimitFactor);
  if (sharing !== null) ctx.waitUntil(sharing);
  const verdict = judgeMessage(await rulesInForce(env.DB, Date.now()), trigger);
  // The revocation may have come while this waited for the rules.
  if (isRevoked(trigger.principal.id)) throw new Fault("forbidden", "Your access was revoked.");
  ctx.waitUntil(noteRecent(env.DB, toRecent(trigger, verdict), Date.now()));
  return verdict;
}
