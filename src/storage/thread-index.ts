// The index of threads in D1: a projection for lists and search. It may lag and be lost; the Threads are the truth.

import type { ThreadInfo } from "../protocol/thread.ts";
import { migrated } from "./migrations.ts";

/** Written by hand: each thread that hears something comes here, and making the text anew takes longer than the write. */
const put =
  "INSERT INTO threads (id, source, place, thread_key, title, url, head_seq, updated_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title, url = excluded.url, head_seq = excluded.head_seq, updated_ms = excluded.updated_ms WHERE threads.head_seq <= excluded.head_seq";

/** Writes a thread's entry; the highest head wins, so that a late or repeated write harms nothing. */
export async function indexThread(db: D1Database, info: ThreadInfo, nowMs: number): Promise<void> {
  await migrated(db);
  const { threadId, source, place, threadKey, title, url, headSeq } = info;
  await db
    .prepare(put)
    .bind(threadId, source, place, threadKey, title, url ?? null, headSeq, nowMs)
    .run();
}
