// The one typed, append-only event log of an object, in its own SQLite.
import type { Logged, SwitchyardEvent } from "../protocol/events.ts";
import { hasTable } from "./tables.ts";

/** Ids that people ask a log about; those of a long-lived object are indexed. */
const askedFor = /\b(?:trg|tsk|dec)_[a-z0-9-]+/g;
const isIndexed = (about: string): boolean => /^(?:trg|tsk|dec)_[a-z0-9-]+$/.test(about);

export const logTables = (sql: SqlStorage): void => {
  // A log of the first version has its own index over all rows, and keeps it.
  if (hasTable(sql, "log")) return;
  sql.exec("CREATE TABLE log (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT, body TEXT NOT NULL)");
  sql.exec("CREATE UNIQUE INDEX log_key ON log (key) WHERE key IS NOT NULL");
};

/** Of a log whose rows may hold what they tell of, for the object alone. */
export const itemLogTables = (sql: SqlStorage): void => {
  logTables(sql);
  if (sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'log' AND instr(sql, ' item ') > 0").toArray().length === 0)
    sql.exec("ALTER TABLE log ADD COLUMN item TEXT");
};

/** Of a log with an index; one that was kept before there was an index gets one. */
export const indexedLogTables = (sql: SqlStorage): void => {
  logTables(sql);
  sql.exec("CREATE TABLE IF NOT EXISTS log_about (name TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (name, seq)) WITHOUT ROWID");
  if (sql.exec("SELECT 1 FROM log_about LIMIT 1").toArray().length > 0) return;
  for (const { seq, body } of sql.exec<{ seq: number; body: string }>("SELECT seq, body FROM log").toArray()) index(sql, seq, body);
};

function index(sql: SqlStorage, seq: number, body: string, asked: (name: string) => boolean = () => true): void {
  for (const name of new Set(body.match(askedFor) ?? []))
    if (asked(name)) sql.exec("INSERT OR IGNORE INTO log_about (name, seq) VALUES (?, ?)", name, seq);
}

/** Rows of a log from one to another, both included. */
type Stretch = { from: number; to: number };
type LogOptions<E> = {
  indexed?: (event: E, name: string) => boolean;
  stretch?: (name: string) => Stretch | null;
};

/**
 * Rows `{seq, at_ms, kind, key, body}`; `key` is unique where it is given and makes an append idempotent. A row without a key is one row
 * and not two: the index leaves it out.
 */
export class EventLog<E extends SwitchyardEvent> {
  readonly #sql: SqlStorage;
  readonly #indexed: ((event: E, name: string) => boolean) | null;
  readonly #stretch: (name: string) => Stretch | null;

  /**
   * `indexed`: which events are found by the triggers, tasks and decisions that they name, without reading the others; for objects that
   * live for months. Each name is a row. `stretch`: where to look for the others that name something.
   */
  constructor(sql: SqlStorage, { indexed, stretch }: LogOptions<E> = {}) {
    this.#sql = sql;
    this.#indexed = indexed ?? null;
    this.#stretch = stretch ?? (() => null);
  }

  /** Appends an event and returns its sequence number. Call it inside the transaction of the change that it records. */
  append(event: E, atMs: number, key: string | null = null, item: string | null = null): number {
    const body = JSON.stringify(event);
    const row = this.#sql
      .exec<{ seq: number }>(
        `INSERT INTO log (at_ms, kind, key, body${item === null ? "" : ", item"}) VALUES (?, ?, ?, ?${item === null ? "" : ", ?"}) RETURNING seq`,
        ...[atMs, event.kind, key, body, ...(item === null ? [] : [item])],
      )
      .one();
    if (this.#indexed) index(this.#sql, row.seq, body, (name) => this.#indexed?.(event, name) === true);
    return row.seq;
  }

  /** The row with this key, or null. */
  byKey(key: string): Logged<E> | null {
    return this.#rows("SELECT seq, at_ms, body FROM log WHERE key = ?", key)[0] ?? null;
  }

  at(seq: number): Logged<E> | null {
    return this.#rows("SELECT seq, at_ms, body FROM log WHERE seq = ?", seq)[0] ?? null;
  }

  /** Rows after `afterSeq`, oldest first, at most `limit`; only the given kinds when there are any, and only those that name `about`. */
  after(afterSeq: number, limit: number, kinds: readonly E["kind"][] = [], about = ""): Logged<E>[] {
    const filter = kinds.length === 0 ? "" : ` AND kind IN (${kinds.map(() => "?").join(", ")})`;
    if (this.#indexed !== null && isIndexed(about)) {
      const { from, to } = this.#stretch(about) ?? { from: 0, to: -1 };
      return this.#rows(
        `SELECT log.seq, at_ms, body FROM log_about JOIN log ON log.seq = log_about.seq WHERE name = ? AND log_about.seq > ?${filter} UNION SELECT seq, at_ms, body FROM log WHERE seq BETWEEN ? AND ? AND instr(body, ?) > 0${filter} ORDER BY 1 LIMIT ?`,
        ...[about, afterSeq, ...kinds],
        ...[Math.max(from, afterSeq + 1), to, about, ...kinds],
        limit,
      );
    }
    const naming = about === "" ? "" : " AND instr(body, ?) > 0";
    const values = [...kinds, ...(about === "" ? [] : [about])];
    return this.#rows(`SELECT seq, at_ms, body FROM log WHERE seq > ?${filter}${naming} ORDER BY seq LIMIT ?`, afterSeq, ...values, limit);
  }

  /** The newest rows before `beforeSeq`, oldest first. */
  before(beforeSeq: number, limit: number, kinds: readonly E["kind"][] = []): Logged<E>[] {
    const filter = kinds.length === 0 ? "" : ` AND kind IN (${kinds.map(() => "?").join(", ")})`;
    return this.#rows(
      `SELECT seq, at_ms, body FROM log WHERE seq < ?${filter} ORDER BY seq DESC LIMIT ?`,
      beforeSeq,
      ...kinds,
      limit,
    ).reverse();
  }

  /** The n-th row, from 1, of a kind whose field at a JSON path has a value. */
  nth(kind: E["kind"], path: string, value: string, n: number): Logged<E> | null {
    const query = "SELECT seq, at_ms, body FROM log WHERE kind = ? AND json_extract(body, ?) = ? ORDER BY seq LIMIT 1 OFFSET ?";
    return this.#rows(query, kind, path, value, n - 1)[0] ?? null;
  }

  headSeq(): number {
    return this.#sql.exec<{ head: number | null }>("SELECT MAX(seq) AS head FROM log").one().head ?? 0;
  }

  #rows(query: string, ...bindings: (string | number)[]): Logged<E>[] {
    return this.#sql
      .exec<{ seq: number; at_ms: number; body: string }>(query, ...bindings)
      .toArray()
      .map((row) => ({ seq: row.seq, atMs: row.at_ms, event: JSON.parse(row.body) as E }));
  }
}
