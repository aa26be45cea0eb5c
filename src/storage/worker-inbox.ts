// What came to a worker session, each item once: rows of its log that hold the item as well. What was read is one mark, not a change
// of each row.
import { inboxEvent } from "../core/worker-context.ts";
import { type Change, heldStep, type InboxItem, type InboxRow, inboxKey } from "../core/worker-state.ts";
import type { TaskEvent } from "../protocol/events.ts";
import { EventLog } from "./event-log.ts";
import { hasTable, type Part } from "./tables.ts";

/** Items up to `throughSeq` are closed, but for those that wait for a step and those of the backlog; later ones wait. */
type Mark = { throughSeq: number; waiting: number[]; held: number[] };

/** A long work that hears nothing new writes the mark this rarely; what is looked through for what waits is no longer than that. */
const markEveryRows = 100;

/** Characters of items that are held in memory. */
const maxHeldChars = 2_000_000;

const tells = (event: TaskEvent, key: string): boolean =>
  (event.kind === "task.inbox" || event.kind === "task.rejected") && event.itemId === key;

export class WorkerInbox {
  readonly #sql: SqlStorage;
  readonly #log: EventLog<TaskEvent>;
  /** Received in the decision under way; they enter the log with what it says of them. */
  #fresh: InboxRow[] = [];
  /** Rows as last read. Nobody changes in place what they are given of it. */
  readonly #parsed = new Map<number, InboxRow>();
  #heldChars = 0;

  constructor(sql: SqlStorage, log: EventLog<TaskEvent>) {
    this.#sql = sql;
    this.#log = log;
  }

  /** The decision under way was rolled back: it received nothing, and what it read may never have been. */
  rolledBack(): void {
    this.#fresh = [];
    this.#forget();
  }

  /** Takes items in, each once; returns those that are new. They are rows when the decision is committed. */
  receive(items: readonly InboxItem[]): InboxRow[] {
    return items.flatMap((item) => this.receiveOne(item) ?? []);
  }

  /** The same of one; null when it is known. */
  readonly receiveOne = (item: InboxItem): InboxRow | null => {
    const key = inboxKey(item);
    if (this.item(key) !== null) return null;
    const row = { seq: this.#log.headSeq() + 1 + this.#fresh.length, key, item };
    this.#fresh.push(row);
    return row;
  };

  /** Writes what was received, each with the event that tells of it; returns the other events. */
  enter(events: readonly TaskEvent[], nowMs: number): TaskEvent[] {
    const fresh = this.#fresh;
    this.#fresh = [];
    const told = new Set<TaskEvent>();
    for (const { seq, key, item } of fresh) {
      const event = events.find((each) => tells(each, key)) ?? inboxEvent(key, item);
      told.add(event);
      if (this.#log.append(event, nowMs, key, JSON.stringify(item)) !== seq) throw new Error(`${key} entered the log out of its order`);
    }
    return events.filter((event) => !told.has(event));
  }

  /** What a change says of rows that it found. */
  move({ edited, moved, consumed }: Pick<Change, "edited" | "moved" | "consumed">): void {
    for (const { seq, item } of edited) {
      this.#sql.exec("UPDATE log SET item = ? WHERE seq = ?", JSON.stringify(item), seq);
      this.#parsed.delete(seq);
    }
    const moves = [...moved, ...(consumed?.seqs.map((seq) => ({ seq, step: consumed.step as number | null })) ?? [])];
    if (moves.length === 0 && this.#log.headSeq() - this.#mark().throughSeq < markEveryRows) return;
    const waiting = new Set(this.pending().map(({ seq }) => seq));
    const held = new Set(this.#mark().held);
    for (const { seq, step } of moves) {
      waiting.delete(seq);
      held.delete(seq);
      if (step === null) waiting.add(seq);
      if (step === heldStep) held.add(seq);
    }
    this.#setMark({ throughSeq: this.#log.headSeq(), waiting: [...waiting], held: [...held] });
  }

  /** Rows that the next step takes, oldest first. */
  pending(): InboxRow[] {
    const { throughSeq, waiting } = this.#mark();
    const later = this.#rows("seq > ?", throughSeq);
    return [...this.#listed(waiting), ...later, ...this.#fresh];
  }

  /** Rows of the backlog, oldest first. */
  backlog(): InboxRow[] {
    return this.#listed(this.#mark().held);
  }

  /** All rows that no step took, oldest first. */
  unread(): InboxRow[] {
    return [...this.backlog(), ...this.pending()].sort((a, b) => a.seq - b.seq);
  }

  /** What came under an id, whether a step took it or not. */
  item(key: string): InboxItem | null {
    const fresh = this.#fresh.find((row) => row.key === key);
    if (fresh) return fresh.item;
    const row = this.#sql.exec<{ item: string | null }>("SELECT item FROM log WHERE key = ?", key).toArray()[0];
    return row?.item ? (JSON.parse(row.item) as InboxItem) : null;
  }

  #listed(seqs: readonly number[]): InboxRow[] {
    return seqs.length === 0 ? [] : this.#rows("seq IN (SELECT value FROM json_each(?))", JSON.stringify(seqs));
  }

  #rows(where: string, binding: number | string): InboxRow[] {
    const found = this.#sql
      .exec<{ seq: number }>(`SELECT seq FROM log WHERE ${where} AND item IS NOT NULL ORDER BY seq`, binding)
      .toArray();
    if (this.#heldChars > maxHeldChars) this.#forget();
    const unknown = found.flatMap(({ seq }) => (this.#parsed.has(seq) ? [] : [seq]));
    if (unknown.length > 0) this.#parse(unknown);
    return found.flatMap(({ seq }) => this.#parsed.get(seq) ?? []);
  }

  /** What waits is looked at with everything that comes: it is read and parsed once. */
  #parse(seqs: readonly number[]): void {
    const query = "SELECT seq, key, item FROM log WHERE seq IN (SELECT value FROM json_each(?))";
    for (const { seq, key, item } of this.#sql.exec<{ seq: number; key: string; item: string }>(query, JSON.stringify(seqs))) {
      this.#parsed.set(seq, { seq, key, item: JSON.parse(item) as InboxItem });
      this.#heldChars += item.length;
    }
  }

  #forget(): void {
    this.#parsed.clear();
    this.#heldChars = 0;
  }

  #mark(): Mark {
    const row = this.#sql.exec<{ body: string }>("SELECT body FROM inbox_mark").toArray()[0];
    return row ? (JSON.parse(row.body) as Mark) : { throughSeq: 0, waiting: [], held: [] };
  }

  #setMark(mark: Mark): void {
    const body = JSON.stringify(mark);
    this.#sql.exec("INSERT INTO inbox_mark (one, body) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET body = excluded.body", body);
  }

  /** An earlier version kept the items in a table of their own, and the log told of each. */
  adopt(): void {
    if (!hasTable(this.#sql, "inbox")) return;
    const told = new Map<string, number>();
    for (const { seq, event } of this.#log.after(0, Number.MAX_SAFE_INTEGER, ["task.inbox", "task.rejected"]))
      if ((event.kind === "task.inbox" || event.kind === "task.rejected") && !told.has(event.itemId)) told.set(event.itemId, seq);
    const mark: Mark = { throughSeq: 0, waiting: [], held: [] };
    const rows = this.#sql.exec<{ key: string; body: string; step: number | null }>("SELECT key, body, step FROM inbox ORDER BY seq");
    for (const { key, body, step } of rows.toArray()) {
      const seq = told.get(key) ?? this.#log.append(inboxEvent(key, JSON.parse(body) as InboxItem), Date.now());
      this.#sql.exec("UPDATE log SET key = ?, item = ? WHERE seq = ?", key, body, seq);
      if (step === null) mark.waiting.push(seq);
      if (step === heldStep) mark.held.push(seq);
    }
    this.#setMark({ ...mark, throughSeq: this.#log.headSeq() });
    this.#sql.exec("DROP TABLE inbox");
  }
}

export const inboxTables: readonly Part[] = [
  "CREATE TABLE IF NOT EXISTS inbox_mark (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL)",
  (sql) => new WorkerInbox(sql, new EventLog(sql)).adopt(),
];
