// A best-effort ring of recent triggers, so that rules can be tried before they are saved. An isolate gathers in memory and
// writes one D1 row at a time, seconds apart: noise that the gate ignores still adds no row of its own, however much it is.
import { keepRecent, toRecent } from "../core/gate-trial.ts";
import { logFault } from "../log-fault.ts";
import type { RecentTrigger } from "../protocol/console.ts";
import type { Trigger, Verdict } from "../protocol/trigger.ts";
import { migrated } from "./migrations.ts";

/** Between two writes of one isolate; short enough for what may run after an answer. */
const flushEveryMs = 15_000;
/** Deliveries come in groups: one write for the group. */
const gatherMs = 500;
/** A waiter that was cut off with its request is not waited for. */
const waiterLifeMs = 30_000;
/** What one write holds, and the whole ring. */
const rowShare = { max: 40, maxOfRule: 10 };
const ringShare = { max: 200, maxOfRule: 80 };
const ringRows = 200;

let gathered: RecentTrigger[] = [];
/** How many of each rule: what would only push out others of its flood is not looked at. */
let ofRules = new Map<string, number>();
let flushedMs = 0;
let waiterMs: number | null = null;

/**
 * Takes a trigger into the ring, with what else was gathered. Only for the Worker: it waits, and a timer keeps an object awake.
 * The promise is of the write of all that is gathered by then; null when another call will write it.
 */
export function gatherRecent(db: D1Database, trigger: Trigger, verdict: Verdict, nowMs: number): Promise<void> | null {
  const awaited = waiterMs !== null && Math.abs(nowMs - waiterMs) < waiterLifeMs;
  const before = ofRules.get(verdict.rule) ?? 0;
  if (awaited && before >= rowShare.maxOfRule) return null;
  ofRules.set(verdict.rule, before + 1);
  gathered = keepRecent(gathered, toRecent(trigger, verdict), rowShare);
  if (awaited) return null;
  waiterMs = nowMs;
  return flush(db, nowMs);
}

async function flush(db: D1Database, nowMs: number): Promise<void> {
  const waitMs = Math.min(flushEveryMs, Math.max(gatherMs, flushedMs + flushEveryMs - nowMs));
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  const row = gathered;
  gathered = [];
  ofRules = new Map();
  waiterMs = null;
  flushedMs = nowMs + waitMs;
  await write(db, row, nowMs);
}

/** Takes a trigger into the ring at once: for an object, where people's own messages come one by one and pass a limit first. */
export const noteRecent = (db: D1Database, trigger: RecentTrigger, nowMs: number): Promise<void> => write(db, [trigger], nowMs);

async function write(db: D1Database, row: readonly RecentTrigger[], nowMs: number): Promise<void> {
  try {
    await migrated(db);
    await db.batch([
      db.prepare("INSERT INTO recent_triggers (at_ms, triggers) VALUES (?, ?)").bind(nowMs, JSON.stringify(row)),
      db.prepare("DELETE FROM recent_triggers WHERE id <= (SELECT MAX(id) FROM recent_triggers) - ?").bind(ringRows),
    ]);
  } catch (error) {
    logFault("recent-triggers", error, { lost: row.length });
  }
}

/** The triggers of the ring, oldest first, each once, a noisy rule with its share only. */
export async function recentTriggers(db: D1Database): Promise<RecentTrigger[]> {
  const { results } = await db.prepare("SELECT triggers FROM recent_triggers ORDER BY id").all<{ triggers: string }>();
  return results
    .flatMap(({ triggers }) => JSON.parse(triggers) as RecentTrigger[])
    .reduce<RecentTrigger[]>((kept, trigger) => keepRecent(kept, trigger, ringShare), []);
}
