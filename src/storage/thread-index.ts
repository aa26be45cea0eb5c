// The index of threads in D1: a projection for lists and search. It may lag and be lost; the Threads are the truth.

import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { ThreadInfo } from "../protocol/thread.ts";
import { threads } from "./d1-schema.ts";
import { migrated } from "./migrations.ts";

/** Writes a thread's entry; the highest head wins, so that a late or repeated write harms nothing. */
export async function indexThread(db: D1Database, info: ThreadInfo, nowMs: number): Promise<void> {
  await migrated(db);
  const { source, place, threadKey, title, headSeq } = info;
  await drizzle(db)
    .insert(threads)
    .values({ id: info.threadId, source, place, threadKey, title, url: info.url ?? null, headSeq, updatedMs: nowMs })
    .onConflictDoUpdate({
      target: threads.id,
      set: { title, url: info.url ?? null, headSeq, updatedMs: nowMs },
      setWhere: sql`${threads.headSeq} <= ${headSeq}`,
    });
}
