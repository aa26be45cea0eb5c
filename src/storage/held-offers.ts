// The list of what waits for a release, over all threads: a projection in D1. It may lag and be lost; the Threads are the truth.
import { asc, count, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { HeldOffersAnswer } from "../protocol/console.ts";
import type { OfferView } from "../protocol/offer.ts";
import { heldOffers } from "./d1-schema.ts";
import { migrated } from "./migrations.ts";

/** Takes the place of all that was listed of this thread. */
export async function listHeldOffers(d1: D1Database, threadId: string, held: readonly OfferView[]): Promise<void> {
  await migrated(d1);
  const db = drizzle(d1);
  const rows = held.map(({ offer, atMs, untilMs }) => ({
    ...{ id: offer.outbound.id, threadId, taskId: offer.from.taskId, title: offer.title, atMs, untilMs },
  }));
  await db.batch([db.delete(heldOffers).where(eq(heldOffers.threadId, threadId)), ...rows.map((row) => db.insert(heldOffers).values(row))]);
}

/** What runs out first comes first. */
export async function readHeldOffers(d1: D1Database, limit: number): Promise<HeldOffersAnswer> {
  const db = drizzle(d1);
  const [offers, [all]] = await db.batch([
    db.select().from(heldOffers).orderBy(asc(heldOffers.untilMs), asc(heldOffers.id)).limit(limit),
    db.select({ n: count() }).from(heldOffers),
  ]);
  return { offers, total: all?.n ?? 0 };
}
