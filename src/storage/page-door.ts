// What a widget page's message passes before it reaches its thread: the limits at the door, then the rules.
import { asksNothing, judge } from "../core/gate.ts";
import { toRecent } from "../core/gate-trial.ts";
import type { Env } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import type { Trigger, Verdict } from "../protocol/trigger.ts";
import { rulesInForce } from "./gate-rules.ts";
import { admit, shareLimits } from "./rate-limits.ts";
import { noteRecent } from "./recent-triggers.ts";

/** The verdict on a message from a page of this root; throws when it may not come in. */
export async function judgeAtPage(
  env: Env,
  rootThreadId: string,
  trigger: Trigger,
  page: { factor: number; isRevoked: (principalId: string) => boolean; later: (work: Promise<unknown>) => void },
): Promise<Verdict> {
  const comer = { source: trigger.source, place: rootThreadId, sender: "people" as const };
  await admit(env.DB, comer, Date.now(), page.factor);
  page.later(shareLimits(env.DB, Date.now(), page.factor));
  const verdict = asksNothing(trigger) ?? judge(await rulesInForce(env.DB, Date.now()), trigger);
  // The revocation may have come while this waited for the rules.
  if (page.isRevoked(trigger.principal.id)) throw new Fault("forbidden", "Your access was revoked.");
  page.later(noteRecent(env.DB, toRecent(trigger, verdict), Date.now()));
  return verdict;
}
