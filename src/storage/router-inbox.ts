// The router's inbox: one row for each trigger and report, by its id, which makes it enter once. [RI12] Neither the order of what
// waits nor the log's rows about an item have an index of their own: where an item stands in the log is both.

import type { InboxItem, QueuedReport, QueuedTrigger } from "../core/router.ts";
import type { RouterEvent } from "../protocol/events.ts";
import { lanes } from "../protocol/principal.ts";
import { hasTable, type Part } from "./tables.ts";

/** `passed`: a worker has it. `settled`: a decision was made. */
type InboxState = "queued" | "settled" | "passed";

type ItemRow = { id: string; ord: number; last: number; state: InboxState; released_by: string; body: string } & Pick<
  InboxItem,
  "attempts" | "tries" | "problem"
>;
/** Every queued item is listed here, or entered the log later than `throughSeq`. Bodies up to `prunedSeq` are gone. */
type Mark = { throughSeq: number; prunedSeq: number; ids: string[] };

/** So many rows of the log are looked through at each wake-up and not listed anew. */
const longTail = 500;

/** Ids of the items that entered with a row of the log. */
const entered =
  "SELECT coalesce(json_extract(body, '$.triggerId'), json_extract(body, '$.report.id')) AS id FROM log WHERE seq > ? AND seq <= ? AND kind IN ('router.inbox', 'router.report')";

export class RouterInbox {
  readonly #sql: SqlStorage;
  /** Ids of all that may be queued; what a rolled back change left here is no harm. */
  #open: Set<string> | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  state(id: string): InboxState | null {
    return this.#row(id)?.state ?? null;
  }

  /**
   * Whether an item enters: it is not known, or a worker gives it back that got it instead of a decision, for the first time.
   * [RT8] Or somebody asks for another decision (`again`), for the first time by this word and while none is awaited.
   */
  takes(id: string, by: { releasedBy?: string | undefined; again?: string | undefined } = {}): boolean {
    const known = this.#row(id);
    if (!known) return true;
    const giver = by.again ?? by.releasedBy;
    const may = by.again === undefined ? known.state === "passed" : known.state !== "queued";
    return giver !== undefined && may && !known.released_by.split(" ").includes(giver);
  }

  /** Enters an item that is taken. `ord`: the row of the log that says so, of the same transaction. */
  enter(item: InboxItem, ord: number, nowMs: number, releasedBy = ""): void {
    const released = `${this.#row(item.id)?.released_by ?? ""} ${releasedBy}`.trim();
    this.#sql.exec(
      "INSERT INTO item (id, ord, last, thread_id, seq, state, attempts, tries, problem, released_by, body, at_ms) VALUES (?, ?, 0, ?, ?, 'queued', 0, 0, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET last = 0, state = 'queued', attempts = 0, tries = 0, problem = excluded.problem, released_by = excluded.released_by, body = excluded.body, at_ms = excluded.at_ms",
      item.id,
      ord,
      item.threadId,
      item.kind === "trigger" ? item.seq : 0,
      item.problem,
      released,
      JSON.stringify(item),
      nowMs,
    );
    this.#open?.add(item.id);
  }

  /** The first rows of each lane that wait for a decision, in the order they came. [RT4] Neither the other lane nor a thread that is held hides them. */
  queued(held: ReadonlySet<string> = new Set(), limit = 200): InboxItem[] {
    const where = "json_extract(item.body, '$.lane') = ? AND item.thread_id NOT IN (SELECT value FROM json_each(?)) ORDER BY ord LIMIT ?";
    return lanes.flatMap((lane) => this.#queued(where, lane, JSON.stringify([...held]), limit));
  }

  queuedOf(ids: readonly string[]): Map<string, InboxItem> {
    const query = "SELECT * FROM item WHERE state = 'queued' AND id = ?";
    return new Map(ids.flatMap((id) => this.#sql.exec<ItemRow>(query, id).toArray()).map((row) => [row.id, itemOf(row)]));
  }

  queuedInThread(threadId: string): QueuedTrigger[] {
    return this.#queued("thread_id = ? ORDER BY seq", threadId).filter((item) => item.kind === "trigger");
  }

  queuedCount(): number {
    const query = "SELECT COUNT(*) AS n FROM json_each(?) AS open CROSS JOIN item ON item.id = open.value WHERE state = 'queued'";
    return this.#sql.exec<{ n: number }>(query, this.#candidates()).one().n;
  }

  /** The body stays until the decision's effects are surely applied: a failed one opens its triggers again. `last`: the log's row of it. */
  close(id: string, state: Exclude<InboxState, "queued">, last: number): void {
    const update = "UPDATE item SET state = ?, problem = NULL, last = ? WHERE id = ? AND state IN ('queued', ?)";
    this.#sql.exec(update, state, last, id, state);
  }

  reopen(id: string, problem: string): void {
    const { rowsWritten } = this.#sql.exec(
      "UPDATE item SET state = 'queued', last = 0, attempts = attempts + 1, problem = ? WHERE id = ? AND state = 'settled' AND body <> ''",
      problem,
      id,
    );
    if (rowsWritten === 0) return;
    this.#candidates();
    this.#open?.add(id);
    this.keepOpen();
  }

  setAttempt(id: string, attempts: number, problem: string): void {
    this.#sql.exec("UPDATE item SET attempts = ?, problem = ? WHERE id = ? AND state = 'queued'", attempts, problem, id);
  }

  countTry(id: string): void {
    this.#sql.exec("UPDATE item SET tries = tries + 1 WHERE id = ? AND state = 'queued'", id);
  }

  /** The stretch of the log in which an item is named from its entry to its decision; null for an id that never came. */
  stretch(id: string): { from: number; to: number } | null {
    const row = this.#row(id);
    return row ? { from: row.ord, to: row.state === "queued" ? Number.MAX_SAFE_INTEGER : row.last } : null;
  }

  /** Lists what is queued, inside a transaction: from here on the log is looked through for what came later. */
  keepOpen(): void {
    const ids = this.#queuedIds();
    this.#setMark({ ...this.#mark(), throughSeq: this.#headSeq(), ids });
  }

  /** Outside of a transaction: what is closed is not looked at again. */
  forgetClosed(): void {
    this.#open = new Set(this.#queuedIds());
  }

  /** Forgets what closed items said before `beforeMs`; their ids stay. True when there will be more. */
  prune(beforeMs: number): boolean {
    const mark = this.#mark();
    const old = this.#sql.exec<{ seq: number | null }>(
      "SELECT MAX(seq) AS seq FROM log WHERE seq > ? AND at_ms < ?",
      mark.prunedSeq,
      beforeMs,
    );
    const prunedSeq = old.one().seq ?? mark.prunedSeq;
    if (prunedSeq > mark.prunedSeq) {
      const closed = "state <> 'queued' AND body <> '' AND at_ms < ?";
      this.#sql.exec(`UPDATE item SET body = '' WHERE ${closed} AND id IN (${entered})`, beforeMs, mark.prunedSeq, prunedSeq);
      this.#setMark({ ...mark, prunedSeq });
    }
    return this.#sql.exec(`${entered} LIMIT 1`, prunedSeq, Number.MAX_SAFE_INTEGER).toArray().length > 0;
  }

  #queued(where: string, ...bindings: (string | number)[]): InboxItem[] {
    const from = "FROM json_each(?) AS open CROSS JOIN item ON item.id = open.value WHERE state = 'queued'";
    return this.#sql
      .exec<ItemRow>(`SELECT item.* ${from} AND ${where}`, this.#candidates(), ...bindings)
      .toArray()
      .map(itemOf);
  }

  #queuedIds(): string[] {
    const query = "SELECT item.id FROM json_each(?) AS open CROSS JOIN item ON item.id = open.value WHERE state = 'queued' ORDER BY ord";
    return this.#sql
      .exec<{ id: string }>(query, this.#candidates())
      .toArray()
      .map(({ id }) => id);
  }

  #candidates(): string {
    if (this.#open === null) {
      const { throughSeq, ids } = this.#mark();
      const later = this.#sql.exec<{ id: string }>(entered, throughSeq, Number.MAX_SAFE_INTEGER).toArray();
      this.#open = new Set([...ids, ...later.map(({ id }) => id)]);
      if (this.#headSeq() - throughSeq > longTail) this.keepOpen();
    }
    return JSON.stringify([...this.#open]);
  }

  #row(id: string): ItemRow | undefined {
    return this.#sql.exec<ItemRow>("SELECT * FROM item WHERE id = ?", id).toArray()[0];
  }

  #mark(): Mark {
    const row = this.#sql.exec<{ body: string }>("SELECT body FROM item_mark").toArray()[0];
    return row ? (JSON.parse(row.body) as Mark) : { throughSeq: 0, prunedSeq: 0, ids: [] };
  }

  #setMark(mark: Mark): void {
    const body = JSON.stringify(mark);
    this.#sql.exec(
      "INSERT INTO item_mark (one, body) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET body = excluded.body WHERE body <> excluded.body",
      body,
    );
  }

  #headSeq(): number {
    return this.#sql.exec<{ head: number | null }>("SELECT MAX(seq) AS head FROM log").one().head ?? 0;
  }

  /** An earlier version numbered the items by themselves, and its log has an index of all that it tells of them: they keep their order before all others. */
  adopt(): void {
    if (!hasTable(this.#sql, "inbox")) return;
    this.#sql.exec(
      "INSERT INTO item SELECT id, ord - (SELECT MAX(ord) FROM inbox) - 1, 0, thread_id, seq, state, attempts, tries, problem, released_by, body, at_ms FROM inbox",
    );
    const queued = this.#sql.exec<{ id: string }>("SELECT id FROM inbox WHERE state = 'queued'").toArray();
    this.#setMark({ throughSeq: this.#headSeq(), prunedSeq: 0, ids: queued.map(({ id }) => id) });
    this.#sql.exec("DROP TABLE inbox");
  }
}

export const itemTables: readonly Part[] = [
  // `ord`: the row of the log that tells of its entry; `last`: the one of its decision, 0 while it is open.
  "CREATE TABLE IF NOT EXISTS item (id TEXT PRIMARY KEY, ord INTEGER NOT NULL, last INTEGER NOT NULL, thread_id TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, tries INTEGER NOT NULL, problem TEXT, released_by TEXT NOT NULL, body TEXT NOT NULL, at_ms INTEGER NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS item_mark (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL)",
  (sql) => new RouterInbox(sql).adopt(),
];

const itemOf = (row: ItemRow): InboxItem => ({
  ...(JSON.parse(row.body) as QueuedTrigger | QueuedReport),
  attempts: row.attempts,
  tries: row.tries,
  problem: row.problem,
});

/**
 * Which names of an event are found by an index. What a turn brought along is measured, and a call that is out is told again when it
 * ends: nobody asks for these by what they name. The items themselves are found in their stretch of the log.
 */
export const isAskedFor =
  (inbox: RouterInbox) =>
  (event: RouterEvent, name: string): boolean => {
    switch (event.kind) {
      case "router.context":
        return false;
      case "router.inbox":
        return event.triggerId !== name;
      case "router.model":
        return event.phase !== "reserve" && !event.items.includes(name);
      case "router.passed":
        return !event.triggerIds.includes(name);
      case "router.decision":
        return !event.settles.includes(name) || inbox.state(name) === null;
      default:
        return true;
    }
  };
