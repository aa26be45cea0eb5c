// Deliveries that this isolate took in lately: one that comes again is answered at once, since its trigger is durable, and its thread hears
// of a burst of repeats in one call. What another isolate took in, the thread itself knows.
import { ownerOf } from "../core/ids.ts";
import { putNewest } from "../core/newest.ts";
import type { Env } from "../env.ts";
import { logFault } from "../log-fault.ts";
import type { ThreadId, TriggerId } from "../protocol/ids.ts";
import type { ThreadRpc } from "../protocol/rpc.ts";
import type { Comer } from "../storage/rate-limits.ts";
import { withTimeout } from "../timeout.ts";

/** What a door answers of a trigger. */
export type Answered = { id: TriggerId; outcome: string; verdict: string; reason: string };
/** `of`: the delivery that they first came with; null where this isolate did not see it. */
export type TakenIn = { comer: Comer; triggers: Answered[]; of: string | null };

/** Senders that got no answer try again within minutes. */
const keptMs = 10 * 60_000;
/** Some hundred bytes each. */
const maxKept = 16_000;
/** Repeats come in groups: one call to their thread for the group. */
const gatherMs = 2_000;
/** Fewer calls than one request may make. */
const maxThreads = 200;
/** A waiter that was cut off with its request is not waited for. */
const waiterLifeMs = 10_000;
const callTimeoutMs = 8_000;

const takenIn = new Map<string, TakenIn & { atMs: number }>();

/** Remembers a delivery that is durable as a whole; what was ignored is judged anew when it comes again. */
export function remember(key: string, taken: { comer: Comer; triggers: Answered[]; deliveryId: string }, nowMs: number): void {
  const { comer, triggers, deliveryId } = taken;
  if (!triggers.every(({ outcome }) => outcome === "accepted" || outcome === "duplicate")) return;
  const of = triggers.every(({ outcome }) => outcome === "accepted") ? deliveryId : null;
  const again = triggers.map((one) => ({ ...one, outcome: "duplicate" as const }));
  putNewest(takenIn, key, { comer, triggers: again, of, atMs: nowMs }, maxKept);
}

/** The same delivery as it was answered, as a duplicate; null when this isolate does not know it. */
export function takenBefore(key: string, nowMs: number): TakenIn | null {
  const known = takenIn.get(key);
  return known && Math.abs(nowMs - known.atMs) < keptMs ? known : null;
}

type Repeat = Parameters<ThreadRpc["repeated"]>[0]["repeats"][number];
type Batch = { byThread: Map<ThreadId, Repeat[]>; beganMs: number };
let gathering: Batch | null = null;

/** [G7] Has the log of each thread say that the delivery came again. The promise is of all that is gathered by then; null when another call sends it. */
export function noteRepeat(env: Env, { triggers, of }: TakenIn, deliveryId: string, nowMs: number): Promise<void> | null {
  const joined = gathering !== null && gathering.byThread.size < maxThreads && Math.abs(nowMs - gathering.beganMs) < waiterLifeMs;
  const batch: Batch = joined && gathering !== null ? gathering : { byThread: new Map(), beganMs: nowMs };
  for (const { id: triggerId } of triggers) {
    const threadId = ownerOf(triggerId, "thr") ?? "";
    const repeats = batch.byThread.get(threadId) ?? [];
    repeats.push({ triggerId, deliveryId, of });
    batch.byThread.set(threadId, repeats);
  }
  gathering = batch;
  return joined ? null : tell(env, batch);
}

async function tell(env: Env, batch: Batch): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, gatherMs));
  if (gathering === batch) gathering = null;
  const failed = (error: unknown): void => logFault("hooks.repeats", error);
  const calls = [...batch.byThread].map(([threadId, repeats]) => env.THREAD.getByName(threadId).repeated({ repeats }).catch(failed));
  await withTimeout(Promise.all(calls), callTimeoutMs, "A thread").catch(failed);
}
