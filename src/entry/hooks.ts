// The door for GitHub's webhooks. Forged input stops here; what is accepted is durable before the answer goes out.
import { bytesToHex } from "@noble/hashes/utils.js";
import { type Context, Hono } from "hono";
import type { Draft } from "../channels/github/draft.ts";
import { parseGitHub } from "../channels/github/parse.ts";
import { isOfTeam, type Lookup, principalOf } from "../channels/github/permissions.ts";
import { isMac } from "../channels/mac.ts";
import { audienceOf } from "../core/audience.ts";
import { excerpt } from "../core/context.ts";
import { judge } from "../core/gate.ts";
import type { Sender } from "../core/rate-limit.ts";
import { type AppEnv, readConfig } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { Fault } from "../protocol/fault.ts";
import type { GateRules } from "../protocol/gate.ts";
import { limits } from "../protocol/limits.ts";
import type { Trigger } from "../protocol/trigger.ts";
import { personOf } from "../storage/accounts.ts";
import { putArtifact } from "../storage/artifacts.ts";
import { factNames, saveFact } from "../storage/facts.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { rulesInForce } from "../storage/gate-rules.ts";
import { migrated } from "../storage/migrations.ts";
import { admit, shareLimits } from "../storage/rate-limits.ts";
import { gatherRecent } from "../storage/recent-triggers.ts";
import { withTimeout } from "../timeout.ts";
import { afterwards, headerOf, parseJson, readBody } from "./hook-body.ts";
import { isNoted, noteHook } from "./redelivery.ts";
import { type Answered, noteRepeat, remember, takenBefore } from "./repeats.ts";

/** GitHub waits ten seconds for an answer; what is late is repeated, and dedupe makes that harmless. */
const appendTimeoutMs = 8_000;
/** A burst of deliveries is one write of "the last one arrived at". */
const deliveryFactEveryMs = 60_000;
const maxTitleChars = 300;

export const hooksDoor = new Hono<AppEnv>();

hooksDoor.use("/hooks/github/*", async (c, next) => {
  if (readConfig(c.env).github.webhookSecret === null)
    throw new Fault("unavailable", "GITHUB_WEBHOOK_SECRET is missing: no webhook of GitHub is accepted without it (see /health).");
  await next();
});

hooksDoor.post("/hooks/github", async (c) => {
  const config = readConfig(c.env);
  const bytes = await readBody(c.req.raw, limits.maxHookBodyBytes);
  if (!(await isSigned(config.github.webhookSecret ?? "", bytes, c.req.header("x-hub-signature-256"))))
    throw new Fault("unauthorised", "The signature does not match: the webhook's secret at GitHub must be GITHUB_WEBHOOK_SECRET.");
  const event = headerOf(c, "x-github-event", 80, "GitHub");
  const label = headerOf(c, "x-github-delivery", 200, "GitHub");
  const nowMs = Date.now();

  const deliveryId = await deliveryIdOf(bytes);
  const before = takenBefore(deliveryId, nowMs);
  if (before) {
    await admit(c.env.DB, before.comer, nowMs, config.doorLimitFactor);
    afterwards(c, noteRepeat(c.env, before, deliveryId, nowMs));
    return c.json({ triggers: before.triggers }, 202);
  }
  const payload = parseJson(bytes, c.req.header("content-type"));
  if (event === "ping") {
    await fromD1(c.env.DB, async (db) => {
      await saveFact(db, factNames.githubPing, label, nowMs);
      await noteHook(db, c.req.raw.headers, payload, nowMs);
    });
    return c.json({ ping: "received" }, 202);
  }
  afterwards(c, noteDelivery(c, event, payload, nowMs));
  const parsed = parseGitHub(event, payload, { deliveryId, label, nowMs, login: config.github.login, secret: config.sessionSecret });
  if ("ignored" in parsed) return c.json({ ignored: parsed.ignored }, 202);

  // Only here: what no thread is concerned by costs nothing, and forged input has no place that it could fill.
  afterwards(c, shareLimits(c.env.DB, nowMs, config.doorLimitFactor));
  const [first] = parsed.drafts;
  const comer = { source: "github", place: first.trigger.place, sender: senderOfDraft(first) };
  await admit(c.env.DB, comer, nowMs, config.doorLimitFactor);

  const rules = await rulesInForce(c.env.DB, nowMs);
  const lookup: Lookup = {
    config: config.github,
    nowMs,
    personOf: (login) => personOf(c.env.DB, login, nowMs),
    asking: new Map(),
  };
  const results = await Promise.allSettled(
    parsed.drafts.map(async (draft) => withTimeout(accept(c, draft, { rules, lookup, bytes }), appendTimeoutMs, "The thread")),
  );
  const failed = results.filter((result) => result.status === "rejected");
  for (const { reason } of failed) logFault("hooks", reason, { delivery: label, event });
  if (failed.length > 0)
    throw new Fault("unavailable", "Not everything of this delivery could be stored. Deliver it again: what was stored is not doubled.");
  const triggers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  remember(deliveryId, { comer, triggers, deliveryId }, nowMs);
  return c.json({ triggers }, 202);
});

/** Known before anybody is looked up: from the event itself. */
const senderOfDraft = ({ source }: Draft): Sender =>
  source.kind === "ci" || (source.kind === "people" && source.actors.every((actor) => actor.kind === "bot")) ? "programs" : "people";

async function accept(c: Context<AppEnv>, draft: Draft, given: { rules: GateRules; lookup: Lookup; bytes: Uint8Array }): Promise<Answered> {
  const { env } = c;
  const trigger = await completed(env, draft, given.lookup, given.bytes);
  const verdict = judge(given.rules, trigger);
  afterwards(c, gatherRecent(env.DB, trigger, verdict, given.lookup.nowMs));
  const result = await env.THREAD.getByName(trigger.threadId).append({ trigger, verdict });
  return { id: trigger.id, outcome: result.outcome, verdict: verdict.outcome, reason: verdict.reason };
}

/** Looks up the people, and takes words of others only where they are of the team: a public title must not reach the team's mind. */
async function completed(env: AppEnv["Bindings"], draft: Draft, lookup: Lookup, bytes: Uint8Array): Promise<Trigger> {
  const { trigger, title, subject } = draft;
  const ofTeam = async (words: Draft["subject"]): Promise<string | null> =>
    words && (await isOfTeam(words.by, trigger.place, lookup)) ? words.text : null;
  const [principal, titleWords, subjectWords] = await Promise.all([principalOf(draft, lookup), ofTeam(title.words), ofTeam(subject)]);
  // A delivery holds more than this message: whose words they are is not known.
  const from = { audience: audienceOf({ ...trigger, principal }), tainting: true };
  return {
    ...trigger,
    principal,
    threadTitle: excerpt(titleWords ?? title.plain, maxTitleChars),
    text: subjectWords ? `${trigger.text}\n\n${subjectWords}` : trigger.text,
    ...(trigger.truncated ? { rawArtifact: await putArtifact(env.STORE, bytes, "application/json", from) } : {}),
  };
}

let notedMs = 0;

/** For `/health`: that signed deliveries arrive at all; and for the sweep, from which webhook. Null when both are known of late. */
function noteDelivery(c: Context<AppEnv>, event: string, payload: unknown, nowMs: number): Promise<void> | null {
  const fresh = Math.abs(nowMs - notedMs) >= deliveryFactEveryMs;
  if (!fresh && isNoted(c.req.raw.headers)) return null;
  if (fresh) notedMs = nowMs;
  return note(c, event, payload, { nowMs, fresh });
}

/** Best effort: the delivery itself does not depend on it. */
async function note(
  c: Context<AppEnv>,
  event: string,
  payload: unknown,
  { nowMs, fresh }: { nowMs: number; fresh: boolean },
): Promise<void> {
  const db = c.env.DB;
  try {
    await migrated(db);
    await noteHook(db, c.req.raw.headers, payload, nowMs);
    if (fresh) await saveFact(db, factNames.githubDelivery, event, nowMs);
  } catch (error) {
    if (fresh) notedMs = 0;
    logFault("hooks.fact", error);
  }
}

/**
 * [T9] A delivery is what was signed: the headers that name it and its event are not, so whoever holds a signed body could send it again
 * under new names, and as another event of the same thread. GitHub's own redelivery has the same body too, and is the same delivery.
 */
async function deliveryIdOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `body:${bytesToHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)))}`;
}

const isSigned = (secret: string, bytes: Uint8Array<ArrayBuffer>, header: string | undefined): Promise<boolean> =>
  isMac(secret, /^sha256=(.*)$/is.exec(header ?? "")?.[1], bytes);
