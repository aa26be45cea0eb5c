// The one typed, append-only event log of an object, in its own SQLite.
import type { Logged, SwitchyardEvent } from "../protocol/events.ts";

/** Ids that people ask a log about; those of a long-lived object are indexed. */
const askedFor = /\b(?:trg|tsk|dec)_[a-z0-9-]+/g;
const isIndexed = (about: string): boolean => /^(?:trg|tsk|dec)_[a-z0-9-]+$/.test(about);

/**
 * Rows `{seq, at_ms, kind, key, body}`; `key` is unique where it is given and makes an append idempotent. A row without a key is one row
 * and not two: the index leaves it out.
 */
export class EventLog<E extends SwitchyardEvent> {
  readonly #sql: SqlStorage;
  readonly #indexed: ((event: E) => boolean) | null;

  /**
   * `indexed`: which events are found by the triggers, tasks and decisions that they name, without reading the others; for objects that
   * live for months. Each name is a row. `items`: a row may hold what it tells of, for the object alone.
   */
  constructor(sql: SqlStorage, { indexed = null, items = false }: { indexed?: ((event: E) => boolean) | null; items?: boolean } = {}) {
    this.#sql = sql;
    this.#indexed = indexed;
    // A log of an earlier version has its own index over all rows, and keeps it.
    if (sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'log'").toArray().length === 0) {
      sql.exec("CREATE TABLE log (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT, body TEXT NOT NULL)");
      sql.exec("CREATE UNIQUE INDEX log_key ON log (key) WHERE key IS NOT NULL");
    }
    if (items && sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'log' AND instr(sql, ' item ') > 0").toArray().length === 0)
      sql.exec("ALTER TABLE log ADD COLUMN item TEXT");
    if (indexed !== null) this.#openIndex();
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
    if (this.#indexed?.(event)) this.#index(row.seq, body);
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
    if (this.#indexed !== null && isIndexed(about))
      return this.#rows(
        `SELECT log.seq, at_ms, body FROM log_about JOIN log ON log.seq = log_about.seq WHERE name = ? AND log_about.seq > ?${filter} ORDER BY log_about.seq LIMIT ?`,
        about,
        afterSeq,
        ...kinds,
        limit,
      );
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

  /** A log that was kept before there was an index gets one, once. */
  #openIndex(): void {
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS log_about (name TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (name, seq)) WITHOUT ROWID",
    );
    if (this.#sql.exec("SELECT 1 FROM log_about LIMIT 1").toArray().length > 0) return;
    for (const { seq, body } of this.#sql.exec<{ seq: number; body: string }>("SELECT seq, body FROM log").toArray())
      this.#index(seq, body);
  }

  #index(seq: number, body: string): void {
    for (const name of new Set(body.match(askedFor) ?? []))
      this.#sql.exec("INSERT OR IGNORE INTO log_about (name, seq) VALUES (?, ?)", name, seq);
  }

  #rows(query: string, ...bindings: (string | number)[]): Logged<E>[] {
    return this.#sql
      .exec<{ seq: number; at_ms: number; body: string }>(query, ...bindings)
      .toArray()
      .map((row) => ({ seq: row.seq, atMs: row.at_ms, event: JSON.parse(row.body) as E }));
  }
}
