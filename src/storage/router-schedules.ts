// Schedules and their runs, as rows of the router: they share the transaction of the decision that makes them, and its one alarm.
import type { Schedule, ScheduleRun } from "../protocol/schedule.ts";
import { bodiesOf } from "./tables.ts";

export const scheduleTables = [
  "CREATE TABLE IF NOT EXISTS schedule (id TEXT PRIMARY KEY, active INTEGER NOT NULL, next_ms INTEGER, updated_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS schedule_run (id TEXT PRIMARY KEY, schedule_id TEXT NOT NULL, task_id TEXT, open INTEGER NOT NULL, at_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS schedule_next ON schedule (next_ms)",
  "CREATE INDEX IF NOT EXISTS schedule_held ON schedule (active)",
  "CREATE INDEX IF NOT EXISTS schedule_run_of ON schedule_run (schedule_id, at_ms)",
  "CREATE INDEX IF NOT EXISTS schedule_run_task ON schedule_run (task_id, at_ms)",
];
/** Runs that are kept of one schedule. */
const keptRuns = 100;

export class RouterSchedules {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  get(id: string): Schedule | null {
    return this.#schedules("SELECT body FROM schedule WHERE id = ?", id)[0] ?? null;
  }

  /** Those that hold, by name; cancelled and ended ones are left out. */
  list(): Schedule[] {
    return this.#schedules("SELECT body FROM schedule WHERE active = 1 ORDER BY id").sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** All, the newest first. */
  all(limit: number): Schedule[] {
    return this.#schedules("SELECT body FROM schedule ORDER BY updated_ms DESC, id LIMIT ?", limit);
  }

  put(schedule: Schedule, nowMs: number): void {
    const held = schedule.state === "active" || schedule.state === "paused";
    this.#sql.exec(
      "INSERT INTO schedule (id, active, next_ms, updated_ms, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET active = excluded.active, next_ms = excluded.next_ms, updated_ms = excluded.updated_ms, body = excluded.body",
      schedule.id,
      held ? 1 : 0,
      schedule.state === "active" ? schedule.nextMs : null,
      nowMs,
      JSON.stringify(schedule),
    );
  }

  due(nowMs: number): Schedule[] {
    return this.#schedules("SELECT body FROM schedule WHERE next_ms <= ? ORDER BY next_ms", nowMs);
  }

  nextMs(): number | null {
    return this.#sql.exec<{ next: number | null }>("SELECT MIN(next_ms) AS next FROM schedule").one().next;
  }

  run(id: string): ScheduleRun | null {
    return this.#runs("SELECT body FROM schedule_run WHERE id = ?", id)[0] ?? null;
  }

  runOfTask(taskId: string): ScheduleRun | null {
    return this.#runs("SELECT body FROM schedule_run WHERE task_id = ? ORDER BY at_ms DESC LIMIT 1", taskId)[0] ?? null;
  }

  isBusy(scheduleId: string): boolean {
    return this.#sql.exec("SELECT 1 FROM schedule_run WHERE schedule_id = ? AND open = 1 LIMIT 1", scheduleId).toArray().length > 0;
  }

  /** The newest first. */
  runs(scheduleId: string, limit: number): ScheduleRun[] {
    return this.#runs("SELECT body FROM schedule_run WHERE schedule_id = ? ORDER BY at_ms DESC, id LIMIT ?", scheduleId, limit);
  }

  putRun(run: ScheduleRun): void {
    this.#sql.exec(
      "INSERT INTO schedule_run (id, schedule_id, task_id, open, at_ms, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET task_id = excluded.task_id, open = excluded.open, body = excluded.body",
      run.id,
      run.scheduleId,
      run.taskId,
      run.execution === "pending" || run.execution === "running" ? 1 : 0,
      run.atMs,
      JSON.stringify(run),
    );
    this.#sql.exec(
      "DELETE FROM schedule_run WHERE schedule_id = ?1 AND open = 0 AND id NOT IN (SELECT id FROM schedule_run WHERE schedule_id = ?1 ORDER BY at_ms DESC, id LIMIT ?2)",
      run.scheduleId,
      keptRuns,
    );
  }

  #schedules(query: string, ...bindings: (string | number)[]): Schedule[] {
    return bodiesOf<Schedule>(this.#sql, query, ...bindings);
  }

  #runs(query: string, ...bindings: (string | number)[]): ScheduleRun[] {
    return bodiesOf<ScheduleRun>(this.#sql, query, ...bindings);
  }
}
