// The doors for any system that can sign a POST: `/hooks/generic/:place`, and `/hooks/chat/:place` for a bridge to a chat. Forged, stale
// and rate-limited input stops here.

import { type Context, Hono } from "hono";
import { parseGeneric, type SignedSource, signedSources } from "../channels/generic/parse.ts";
import { isSigned, signatureHeaders } from "../channels/generic/sign.ts";
import { audienceOf } from "../core/audience.ts";
import { judge } from "../core/gate.ts";
import { senderOf } from "../core/rate-limit.ts";
import { type AppEnv, readConfig } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { Fault } from "../protocol/fault.ts";
import type { Trigger } from "../protocol/trigger.ts";
import { putArtifact } from "../storage/artifacts.ts";
import { rulesInForce } from "../storage/gate-rules.ts";
import { admit, shareLimits } from "../storage/rate-limits.ts";
import { gatherRecent } from "../storage/recent-triggers.ts";
import { withTimeout } from "../timeout.ts";
import { afterwards, headerOf, parseJson, readBody } from "./hook-body.ts";
import { noteRepeat, remember, takenBefore } from "./repeats.ts";

/** A text of a million characters in JSON's longest writing stays below. */
const maxBodyBytes = 8 * 1024 * 1024;
/** A signature is of now: what is older may be a copy that somebody kept. */
const maxSkewMs = 5 * 60_000;
const appendTimeoutMs = 8_000;
const whose = "the generic webhook";

export const genericDoor = new Hono<AppEnv>();

for (const source of signedSources) genericDoor.post(`/hooks/${source}/:place`, (c) => takeIn(c, source, c.req.param("place")));

async function takeIn(c: Context<AppEnv>, source: SignedSource, place: string): Promise<Response> {
  const config = readConfig(c.env);
  const secret = config.generic.webhookSecret;
  if (secret === null) throw new Fault("unavailable", "GENERIC_WEBHOOK_SECRET is missing: the generic webhook accepts nothing without it.");
  if (!/^[a-z0-9][a-z0-9._-]{0,99}$/i.test(place))
    throw new Fault("bad_input", "The place in the address is made of letters, digits, dots, dashes and underscores.");
  const id = headerOf(c, signatureHeaders.id, 200, whose);
  const timestamp = headerOf(c, signatureHeaders.timestamp, 20, whose);
  const signature = headerOf(c, signatureHeaders.signature, 200, whose);
  const body = await readBody(c.req.raw, maxBodyBytes);
  if (!(await isSigned(secret, signature, { timestamp, id, body })))
    throw new Fault(
      "unauthorised",
      "The signature does not match: it is v1=HMAC-SHA256(GENERIC_WEBHOOK_SECRET, timestamp.id.body) in hex.",
    );
  const nowMs = Date.now();
  if (!/^\d+$/.test(timestamp) || Math.abs(nowMs - Number(timestamp) * 1000) > maxSkewMs)
    throw new Fault("unauthorised", "The timestamp is more than five minutes from now: it is the time of sending, in seconds since 1970.");

  const { trigger: parsed, cut } = parseGeneric(parseJson(body, c.req.header("content-type")), { source, place, deliveryId: id, nowMs });
  afterwards(c, shareLimits(c.env.DB, nowMs, config.doorLimitFactor));
  const comer = { source, place, sender: senderOf(parsed.principal.role) };
  await admit(c.env.DB, comer, nowMs, config.doorLimitFactor);
  const before = takenBefore(parsed.id, nowMs);
  if (before) {
    afterwards(c, noteRepeat(c.env, before, id, nowMs));
    return c.json({ triggers: before.triggers }, 202);
  }
  const from = { audience: audienceOf(parsed), tainting: true };
  const trigger: Trigger = cut ? { ...parsed, rawArtifact: await putArtifact(c.env.STORE, body, "application/json", from) } : parsed;
  const verdict = judge(await rulesInForce(c.env.DB, nowMs), trigger);
  afterwards(c, gatherRecent(c.env.DB, trigger, verdict, nowMs));
  const append = c.env.THREAD.getByName(trigger.threadId).append({ trigger, verdict });
  const { outcome } = await withTimeout(append, appendTimeoutMs, "The thread").catch((error: unknown) => {
    logFault(`hooks.${source}`, error, { id });
    throw new Fault("unavailable", "This could not be stored. Deliver it again: what was stored is not doubled.", { cause: error });
  });
  const triggers = [{ id: trigger.id, outcome, verdict: verdict.outcome, reason: verdict.reason }];
  remember(trigger.id, { comer, triggers, deliveryId: id }, nowMs);
  return c.json({ triggers }, 202);
}
