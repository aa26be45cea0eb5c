// The cron: pokes the objects of the wake list that are overdue. The second source of wake-ups beside their own alarms.
import { type Env, routerName } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { migrated } from "../storage/migrations.ts";
import { overdueObjects, type WakeEntry } from "../storage/wake-list.ts";
import { sweepFailedDeliveries } from "./redelivery.ts";

const stubOf = (env: Env, entry: WakeEntry): { poke(): Promise<void> } => {
  switch (entry.kind) {
    case "router":
      return env.ROUTER.getByName(routerName);
    case "thread":
      return env.THREAD.getByName(entry.objectId);
    case "worker":
      return env.WORKER_SESSION.getByName(entry.objectId);
    case "endpoint":
      return env.ENDPOINT.getByName(entry.objectId);
  }
};

/** What the cron does; one part that fails does not keep the others from it. */
export async function onCron(env: Env, nowMs: number): Promise<void> {
  const parts = await Promise.allSettled([sweep(env, nowMs), sweepFailedDeliveries(env, nowMs)]);
  for (const part of parts) if (part.status === "rejected") logFault("cron", part.reason);
}

/** Pokes every overdue object; one that fails does not keep the others from it, and stays on the list. */
async function sweep(env: Env, nowMs: number): Promise<void> {
  await migrated(env.DB);
  const overdue = await overdueObjects(env.DB, nowMs);
  const results = await Promise.allSettled(overdue.map((entry) => stubOf(env, entry).poke()));
  results.forEach((result, i) => {
    if (result.status === "rejected") logFault("sweep", result.reason, { object: overdue[i]?.objectId });
  });
}
