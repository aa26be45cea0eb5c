// The ledger of speculation, as rows of the router: they share the transaction of the decision that starts, ends or adopts a task.
import { isOpenSpeculation, lookBackMs, type SpeculationView, stampOf } from "../core/speculation.ts";
import type { Speculation } from "../protocol/speculation.ts";
import { bodiesOf } from "./tables.ts";

export const speculationTables = [
  "CREATE TABLE IF NOT EXISTS speculation (task_id TEXT PRIMARY KEY, open INTEGER NOT NULL, started_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS speculation_started ON speculation (started_ms)",
  "CREATE TABLE IF NOT EXISTS speculation_paused (stamp TEXT PRIMARY KEY, why TEXT NOT NULL) WITHOUT ROWID",
];
const keptMs = 90 * 24 * 60 * 60_000;

export class RouterSpeculations {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  get(taskId: string): Speculation | null {
    return this.#rows("SELECT body FROM speculation WHERE task_id = ?", taskId)[0] ?? null;
  }

  put(row: Speculation): void {
    this.#sql.exec(
      "INSERT INTO speculation (task_id, open, started_ms, body) VALUES (?, ?, ?, ?) ON CONFLICT (task_id) DO UPDATE SET open = excluded.open, body = excluded.body",
      row.taskId,
      isOpenSpeculation(row) ? 1 : 0,
      row.startedMs,
      JSON.stringify(row),
    );
    this.#sql.exec("DELETE FROM speculation WHERE open = 0 AND started_ms < ?", row.startedMs - keptMs);
  }

  /** At work, or offered. */
  open(): Speculation[] {
    return this.#rows("SELECT body FROM speculation WHERE open = 1 ORDER BY started_ms, task_id");
  }

  /** What decisions and figures are made from. */
  view(nowMs: number): SpeculationView {
    const paused = this.#sql.exec<{ stamp: string; why: string }>("SELECT stamp, why FROM speculation_paused").toArray();
    return {
      rows: this.#rows("SELECT body FROM speculation WHERE open = 1 OR started_ms > ? ORDER BY started_ms, task_id", nowMs - lookBackMs),
      paused: new Map(paused.map(({ stamp, why }) => [stamp, why])),
    };
  }

  /** The newest first. */
  recent(limit: number): Speculation[] {
    return this.#rows("SELECT body FROM speculation ORDER BY started_ms DESC, task_id LIMIT ?", limit);
  }

  /** False when it was paused before. */
  pause(policy: { id: string; version: number }, why: string): boolean {
    const insert = "INSERT OR IGNORE INTO speculation_paused (stamp, why) VALUES (?, ?) RETURNING stamp";
    return this.#sql.exec(insert, stampOf(policy), why).toArray().length > 0;
  }

  #rows(query: string, ...bindings: (string | number)[]): Speculation[] {
    return bodiesOf<Speculation>(this.#sql, query, ...bindings);
  }
}
