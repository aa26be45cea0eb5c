// What a widget page's message passes before anything of it is kept: the limits at the door, then the rules.
import { judgeMessage } from "../core/gate.ts";
import { toRecent } from "../core/gate-trial.ts";
import { senderOf } from "../core/rate-limit.ts";
import { webSource } from "../core/thread.ts";
import { type Env, readConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import type { Principal } from "../protocol/principal.ts";
import type { Trigger, Verdict } from "../protocol/trigger.ts";
import { rulesInForce } from "./gate-rules.ts";
import { admit, shareLimits } from "./rate-limits.ts";
import { noteRecent } from "./recent-triggers.ts";

type Context = Pick<DurableObjectState, "waitUntil">;

/** [T10] Lets a message from a page of this root in, or throws the fault that says when to come back. */
export async function admitAtPage(env: Env, ctx: Context, rootThreadId: string, { role }: Principal): Promise<void> {
  const { doorLimitFactor } = readConfig(env);
  await admit(env.DB, { source: webSource, place: rootThreadId, sender: senderOf(role) }, Date.now(), doorLimitFactor);
  const sharing = shareLimits(env.DB, Date.now(), doorLimitFactor);
  if (sharing !== null) ctx.waitUntil(sharing);
}

/** The verdict on a message that was let in; throws when its sender lost access meanwhile. */
export async function judgeAtPage(env: Env, ctx: Context, trigger: Trigger, isRevoked: (principalId: string) => boolean): Promise<Verdict> {
  const verdict = judgeMessage(await rulesInForce(env.DB, Date.now()), trigger);
  // The revocation may have come while this waited for the rules.
  if (isRevoked(trigger.principal.id)) throw new Fault("forbidden", "Your access was revoked.");
  ctx.waitUntil(noteRecent(env.DB, toRecent(trigger, verdict), Date.now()));
  return verdict;
}
