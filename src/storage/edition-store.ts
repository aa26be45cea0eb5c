// Edits and deletions of a Thread, as rows: those that wait for their original, and which of them is a row of the log.
import type { KnownEdition } from "../core/thread-editions.ts";

export type KeptEdition = KnownEdition & {
  subject: string;
  /** Until when it waits; null once it is a row. */
  dueMs: number | null;
};

export const editionTables = `CREATE TABLE IF NOT EXISTS edition (subject TEXT NOT NULL, trigger_id TEXT NOT NULL, what TEXT NOT NULL, made_at TEXT NOT NULL,
  seq INTEGER, due_ms INTEGER, PRIMARY KEY (subject, trigger_id)) WITHOUT ROWID`;

export class EditionStore {
  readonly #sql: SqlStorage;
  /** Most threads never see an edit: then nothing is looked up. Null while that is not known. */
  #none: boolean | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** Those that wait, and the newest that is a row: however often a text was edited, no other decides anything. */
  of(subject: string): KeptEdition[] {
    const newest =
      "SELECT trigger_id FROM edition WHERE subject = ?1 AND seq IS NOT NULL ORDER BY what = 'deletion' DESC, made_at DESC, trigger_id DESC LIMIT 1";
    return this.#rows(`WHERE subject = ?1 AND (seq IS NULL OR trigger_id = (${newest})) ORDER BY trigger_id`, subject);
  }

  held(): KeptEdition[] {
    return this.#rows("WHERE due_ms IS NOT NULL ORDER BY due_ms, trigger_id");
  }

  put({ subject, triggerId, what, at, seq, dueMs }: KeptEdition): void {
    this.#none = false;
    this.#sql.exec(
      `INSERT INTO edition (subject, trigger_id, what, made_at, seq, due_ms) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (subject, trigger_id) DO UPDATE SET seq = excluded.seq, due_ms = excluded.due_ms`,
      subject,
      triggerId,
      what,
      at,
      seq,
      dueMs,
    );
  }

  #rows(where: string, ...bindings: string[]): KeptEdition[] {
    this.#none ??= this.#sql.exec("SELECT 1 FROM edition LIMIT 1").toArray().length === 0;
    if (this.#none) return [];
    return this.#sql
      .exec<{ subject: string; trigger_id: string; what: string; made_at: string; seq: number | null; due_ms: number | null }>(
        `SELECT * FROM edition ${where}`,
        ...bindings,
      )
      .toArray()
      .map((row) => ({
        subject: row.subject,
        triggerId: row.trigger_id,
        what: row.what as KnownEdition["what"],
        at: row.made_at,
        seq: row.seq,
        dueMs: row.due_ms,
      }));
  }
}
