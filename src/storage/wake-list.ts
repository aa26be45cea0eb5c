// The second source of wake-ups: busy objects stand in D1, and the cron pokes those that are overdue.

import { logFault } from "../log-fault.ts";
import { limits } from "../protocol/limits.ts";
import { migrated } from "./migrations.ts";

export type WakeKind = "router" | "thread" | "worker" | "endpoint";
export type WakeEntry = { objectId: string; kind: WakeKind; dueMs: number };

/** Tells D1 when an object turns busy (its next deadline) or idle. D1 may fail: the object's own alarm is the first source. */
export class WakeList {
  readonly #db: D1Database;
  readonly #kind: WakeKind;
  readonly #objectId: string;
  /** What D1 has, as far as this instance knows. */
  #listed: { busy: boolean; farMs: number | null } | null = null;

  constructor(db: D1Database, kind: WakeKind, objectId: string) {
    this.#db = db;
    this.#kind = kind;
    this.#objectId = objectId;
  }

  /**
   * `dueMs` null means idle. Writes only on a change between the two. `far`: until then nothing is to be done, so the very time is listed,
   * else the cron would look in every other minute.
   */
  async report(dueMs: number | null, far = false): Promise<void> {
    const busy = dueMs !== null;
    const farMs = far ? dueMs : null;
    if (this.#listed?.busy === busy && this.#listed.farMs === farMs) return;
    try {
      await migrated(this.#db);
      if (busy) {
        await this.#db
          .prepare(
            "INSERT INTO wake_list (object_id, kind, due_ms) VALUES (?, ?, ?) ON CONFLICT (object_id) DO UPDATE SET due_ms = excluded.due_ms",
          )
          .bind(this.#objectId, this.#kind, dueMs)
          .run();
      } else {
        await this.#db.prepare("DELETE FROM wake_list WHERE object_id = ?").bind(this.#objectId).run();
      }
      this.#listed = { busy, farMs };
    } catch (error) {
      logFault("wake-list", error, { object: this.#objectId });
    }
  }
}

/** Objects that should have done something `limits.wakeOverdueMs` ago, and moves their entry so that the next cron does not poke them again at once. */
export async function overdueObjects(db: D1Database, nowMs: number): Promise<WakeEntry[]> {
  const { results } = await db
    .prepare(
      "UPDATE wake_list SET due_ms = ?1 WHERE object_id IN (SELECT object_id FROM wake_list WHERE due_ms <= ?2 ORDER BY due_ms LIMIT 100) RETURNING object_id AS objectId, kind, due_ms AS dueMs",
    )
    .bind(nowMs, nowMs - limits.wakeOverdueMs)
    .all<WakeEntry>();
  return results;
}
