// The sweep of what GitHub could not deliver: it lists failed deliveries up to three days back and asks for them again.
import * as z from "zod/mini";
import { canCallGitHub } from "../channels/github/api.ts";
import { type GitHubHook, githubHook, listDeliveries, redeliver } from "../channels/github/deliveries.ts";
import { type DeliveryAttempt, planRedelivery, redeliverBackMs } from "../core/redelivery.ts";
import { type Env, readConfig } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { Fault } from "../protocol/fault.ts";
import { type Fact, factsNamed, saveFact } from "../storage/facts.ts";
import { migrated } from "../storage/migrations.ts";

const hookPrefix = "github.hook:";
const sweepPrefix = "github.sweep:";
/** Of one webhook; the cron itself comes each minute. */
const sweepEveryMs = 5 * 60_000;
/** A webhook that our credential may not list: asked for again now and then, in case that somebody changed it. */
const refusedEveryMs = 60 * 60_000;
const maxPagesPerRun = 5;
const maxRedeliveriesPerRun = 20;
const maxHooks = 20;
/** What fits into one row of D1 many times over. */
const maxSettled = 5_000;
/** A list may lag behind what was delivered. */
const lagMs = 2 * 60_000;

const sweepState = z.object({
  /** Everything that came up to here is delivered or given up. */
  throughMs: z.number(),
  /** A list that was too long for one run goes on here. */
  scan: z.nullable(
    z.object({
      cursor: z.string(),
      beganMs: z.number(),
      openSinceMs: z.nullable(z.number()),
      /** Events that its earlier pages showed as delivered again, or that it asked for: their first attempts stand on later pages. */
      settled: z.array(z.string()),
    }),
  ),
  redelivered: z.number(),
  givenUp: z.number(),
  /** Why it cannot be swept, for people. */
  problem: z.nullable(z.string()),
});
export type SweepState = z.infer<typeof sweepState>;

/** Webhooks that this isolate has noted already, whole and by their ids. */
const noted = new Set<string>();
const notedIds = new Set<string>();

/** Whether the webhook of these headers is noted, as far as its id says; one without an id is never noted. */
export function isNoted(headers: Headers): boolean {
  const id = headers.get("x-github-hook-id");
  return id === null || notedIds.has(id);
}

/** Remembers which webhook a signed delivery came from: its own headers say so. */
export async function noteHook(db: D1Database, headers: Headers, payload: unknown, nowMs: number): Promise<void> {
  const hook = hookOf(headers, payload);
  if (hook === null || noted.has(JSON.stringify(hook))) return;
  await saveFact(db, `${hookPrefix}${hook.id}`, JSON.stringify(hook), nowMs);
  noted.add(JSON.stringify(hook));
  notedIds.add(hook.id);
}

const named = z.object({
  repository: z.optional(z.nullable(z.object({ full_name: z.string() }))),
  organization: z.optional(z.nullable(z.object({ login: z.string() }))),
});

function hookOf(headers: Headers, payload: unknown): GitHubHook | null {
  const of = headers.get("x-github-hook-installation-target-type");
  const body = named.safeParse(payload);
  const repository = body.data?.repository?.full_name;
  const place = of === "organization" ? (body.data?.organization?.login ?? repository?.split("/")[0]) : (repository ?? "");
  // A place becomes part of an address.
  if (place === undefined || !/^[\w.-]*(\/[\w.-]+)?$/.test(place) || (of === "repository" && !place.includes("/"))) return null;
  const hook = githubHook.safeParse({ id: headers.get("x-github-hook-id"), of, place: of === "integration" ? "" : place });
  return hook.success ? hook.data : null;
}

/** Known webhooks and how the sweep of each stands. */
export async function sweptHooks(db: D1Database): Promise<{ hook: GitHubHook; state: SweepState | null; sweptMs: number | null }[]> {
  const [hooks, states] = await Promise.all([factsNamed(db, hookPrefix, maxHooks), factsNamed(db, sweepPrefix, maxHooks)]);
  return hooks.flatMap(({ value }) => {
    const hook = readJson(githubHook, value);
    const fact = states.find(({ name }) => hook !== null && name === `${sweepPrefix}${hook.id}`);
    return hook === null ? [] : [{ hook, state: fact ? readJson(sweepState, fact.value) : null, sweptMs: fact?.atMs ?? null }];
  });
}

/** Sweeps every webhook that is due. One that fails does not keep the others from it. */
export async function sweepFailedDeliveries(env: Env, nowMs: number): Promise<void> {
  if (!canCallGitHub(readConfig(env).github)) return;
  await migrated(env.DB);
  for (const { hook, state, sweptMs } of await sweptHooks(env.DB)) {
    const everyMs = state?.problem ? refusedEveryMs : sweepEveryMs;
    if (sweptMs !== null && nowMs - sweptMs < everyMs && nowMs >= sweptMs) continue;
    const before = state ?? { throughMs: 0, scan: null, redelivered: 0, givenUp: 0, problem: null };
    const after = await sweepHook(env, hook, before, nowMs).catch((error: unknown): SweepState => {
      if (!(error instanceof Fault)) throw error;
      logFault("redelivery", error, { hook: hook.id });
      // A passing fault is tried again in the next run; a cursor of that list may be worth nothing then.
      return { ...before, scan: null, problem: error.retry === "never" ? error.message : null };
    });
    await saveFact(env.DB, `${sweepPrefix}${hook.id}`, JSON.stringify(after), nowMs);
  }
}

async function sweepHook(env: Env, hook: GitHubHook, before: SweepState, nowMs: number): Promise<SweepState> {
  const config = readConfig(env).github;
  const horizonMs = Math.max(nowMs - redeliverBackMs, before.throughMs);
  const listed: DeliveryAttempt[] = [];
  let cursor = before.scan?.cursor ?? null;
  let whole = false;
  for (let pages = 0; pages < maxPagesPerRun && !whole; pages++) {
    const page = await listDeliveries(config, hook, cursor);
    listed.push(...page.attempts.filter(({ atMs }) => atMs > horizonMs));
    cursor = page.next;
    whole = cursor === null || page.attempts.some(({ atMs }) => atMs <= horizonMs);
  }
  const settled = new Set(before.scan?.settled);
  const plan = planRedelivery(
    listed.filter(({ guid }) => !settled.has(guid)),
    nowMs,
    maxRedeliveriesPerRun,
  );
  let redelivered = 0;
  for (const { ok, again, guid } of listed) if (ok && again) settled.add(guid);
  for (const { id, guid } of plan.redeliver) {
    // A lost answer is no matter: should it be sent twice, the second is known by its delivery id.
    const failed = await redeliver(config, hook, id).then(
      () => null,
      (error: unknown) => error,
    );
    settled.add(guid);
    if (failed === null) redelivered++;
    else logFault("redelivery.attempt", failed, { hook: hook.id, attempt: id });
    if (failed instanceof Fault && failed.kind === "rate_limited") break;
  }
  const openSinceMs = earliest(before.scan?.openSinceMs ?? null, plan.openSinceMs);
  const beganMs = before.scan?.beganMs ?? nowMs;
  const counts = { redelivered: before.redelivered + redelivered, givenUp: plan.givenUp, problem: null };
  return whole || cursor === null
    ? { throughMs: (openSinceMs ?? beganMs - lagMs) - (openSinceMs === null ? 0 : 1), scan: null, ...counts }
    : { throughMs: before.throughMs, scan: { cursor, beganMs, openSinceMs, settled: [...settled].slice(-maxSettled) }, ...counts };
}

const earliest = (a: number | null, b: number | null): number | null => (a === null || b === null ? (a ?? b) : Math.min(a, b));

function readJson<T>(schema: z.ZodMiniType<T>, value: Fact["value"]): T | null {
  try {
    return schema.safeParse(JSON.parse(value)).data ?? null;
  } catch (error) {
    logFault("redelivery.fact", error);
    return null;
  }
}
