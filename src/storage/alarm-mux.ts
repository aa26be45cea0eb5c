// Named deadlines over an object's single alarm. The rows are the truth; the alarm is only their minimum.
import { type Deadline, isPlatformHiccup, retryAtMs } from "../core/alarms.ts";
import { logFault } from "../log-fault.ts";
import { messageOf } from "../protocol/fault.ts";

/** Does the work of one deadline; a number re-arms it for that time, `undefined` ends it, a throw retries it with back-off. */
export type DeadlineHandler = (deadline: Deadline) => Promise<number | undefined>;

/** What begins again at every change may begin this much early. */
const slackMs = 2_000;
/** The platform takes no time beyond the calendar: an alarm that comes before its deadline finds nothing due and is set anew. */
const farthestMs = 366 * 24 * 60 * 60_000;

export const deadlineTables =
  "CREATE TABLE IF NOT EXISTS deadline (id TEXT PRIMARY KEY, due_ms INTEGER NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL, attempts INTEGER NOT NULL) WITHOUT ROWID";

/** Of its row: the kind, and the key of one that has others beside it. */
const idOf = (kind: string, key: string): string => (key === "" ? kind : `${kind}:${key}`);

/** A deadline is known by its kind, and by a key as well where several of a kind exist. */
export class AlarmMux<Kind extends string> {
  readonly #storage: DurableObjectStorage;
  readonly #handlers: Partial<Record<string, DeadlineHandler>>;
  /** The time that the alarm is surely set to, null when surely to none; undefined while that is open. Setting it is billed as a row. */
  #armedMs: number | null | undefined;
  /** All deadlines as they are committed: asked at every event, changed rarely. Null until they are read, and while a change may still roll back. */
  #known: ReadonlyMap<string, number> | null = null;
  #changing = false;

  constructor(storage: DurableObjectStorage, handlers: Record<Kind, DeadlineHandler>) {
    this.#storage = storage;
    this.#handlers = handlers;
  }

  /** Sets or moves a deadline; null clears it. Inside a transaction it commits and rolls back with it. */
  set(kind: Kind, dueMs: number | null, { key = "", payload = "" }: { key?: string; payload?: string } = {}): void {
    if (dueMs === null) {
      this.clear(kind, key);
      return;
    }
    const { rowsWritten } = this.#storage.sql.exec(
      "INSERT INTO deadline (id, due_ms, kind, payload, attempts) VALUES (?, ?, ?, ?, 0) ON CONFLICT (id) DO UPDATE SET due_ms = excluded.due_ms, kind = excluded.kind, payload = excluded.payload, attempts = 0 WHERE due_ms <> excluded.due_ms OR kind <> excluded.kind OR payload <> excluded.payload OR attempts <> 0",
      idOf(kind, key),
      dueMs,
      kind,
      payload,
    );
    if (rowsWritten === 0) return;
    this.#changed();
    this.#arm();
  }

  /** Sets a deadline unless there is one that is a little earlier: what begins again at every change is not written at every change. */
  setAbout(kind: Kind, dueMs: number | null): void {
    const known = this.due(kind);
    if (known === null || dueMs === null || known > dueMs || known < dueMs - slackMs) this.set(kind, dueMs);
  }

  /** Sets a deadline only when there is none of this kind and key, or a later one. */
  setEarlier(kind: Kind, dueMs: number, more: { key?: string; payload?: string } = {}): void {
    const known = this.due(kind, more.key);
    if (known === null || known > dueMs) this.set(kind, dueMs, more);
  }

  clear(kind: Kind, key = ""): void {
    if (this.due(kind, key) === null) return;
    this.#storage.sql.exec("DELETE FROM deadline WHERE id = ?", idOf(kind, key));
    this.#changed();
    this.#arm();
  }

  due(kind: Kind, key = ""): number | null {
    return this.#dueOf(idOf(kind, key));
  }

  #dueOf(id: string): number | null {
    return this.#all().get(id) ?? null;
  }

  /** There are few: one look at all of them answers whatever is asked next. */
  #all(): ReadonlyMap<string, number> {
    if (this.#known) return this.#known;
    const rows = this.#storage.sql.exec<{ id: string; due_ms: number }>("SELECT id, due_ms FROM deadline").toArray();
    const all = new Map(rows.map((row) => [row.id, row.due_ms]));
    if (!this.#changing) this.#known = all;
    return all;
  }

  /** The earliest deadline, or null: what the wake list says of this object. `besides`: those that do not count. */
  nextMs(...besides: Kind[]): number | null {
    let next: number | null = null;
    for (const [id, dueMs] of this.#all()) if (!besides.some((kind) => kind === id) && (next === null || dueMs < next)) next = dueMs;
    return next;
  }

  /** Arms the alarm when there are deadlines and none is set: it may be lost where the rows are not. */
  async restore(): Promise<void> {
    const next = this.nextMs();
    if (next !== null && (await this.#storage.getAlarm()) === null) this.#arm();
  }

  /** The whole of an object's `alarm()`: never throws, always re-arms, drops nothing. Also run by `poke()`. */
  async run(now: () => number): Promise<void> {
    // The alarm that calls this stays the platform's until it has ended: if this process dies half-way, it comes again.
    this.#armedMs = undefined;
    const due = this.#storage.sql
      .exec<{ id: string; due_ms: number; kind: string; payload: string; attempts: number }>(
        "SELECT * FROM deadline WHERE due_ms <= ? ORDER BY due_ms",
        now(),
      )
      .toArray()
      .map(({ id, due_ms: dueMs, kind, payload, attempts }) => ({
        id,
        deadline: { kind, key: id.slice(kind.length + 1), dueMs, payload, attempts },
      }));
    for (const { id, deadline } of due) if (this.#dueOf(id) === deadline.dueMs) await this.#runOne(id, deadline, now);
    if (this.nextMs() === null) this.#armedMs = null;
    else this.#arm();
  }

  async #runOne(id: string, deadline: Deadline, now: () => number): Promise<void> {
    const handler = this.#handlers[deadline.kind];
    try {
      if (!handler) throw new Error(`no handler for deadline kind "${deadline.kind}"`);
      const again = await handler(deadline);
      // A handler that moved its own deadline has the last word.
      if (this.#dueOf(id) !== deadline.dueMs) return;
      if (again === undefined) this.#storage.sql.exec("DELETE FROM deadline WHERE id = ?", id);
      else this.#storage.sql.exec("UPDATE deadline SET due_ms = ?, attempts = 0 WHERE id = ?", again, id);
      this.#changed();
    } catch (error) {
      const message = messageOf(error);
      const attempts = isPlatformHiccup(message) ? deadline.attempts : deadline.attempts + 1;
      logFault("alarm", error, { deadline: id, kind: deadline.kind, attempts });
      this.#storage.sql.exec(
        "UPDATE deadline SET due_ms = ?, attempts = ? WHERE id = ? AND due_ms = ?",
        retryAtMs(now(), attempts),
        attempts,
        id,
        deadline.dueMs,
      );
      this.#changed();
    }
  }

  /** After each change of the rows. Whether its transaction commits is known when this stretch of code has ended. */
  #changed(): void {
    this.#known = null;
    if (this.#changing) return;
    this.#changing = true;
    queueMicrotask(() => {
      this.#changing = false;
    });
  }

  #arm(): void {
    const next = this.nextMs();
    if (next === this.#armedMs) return;
    // Not awaited: inside a transaction it must stay synchronous, and the output gate holds replies until it is durable.
    if (next === null) void this.#storage.deleteAlarm();
    else void this.#storage.setAlarm(Math.min(next, Date.now() + farthestMs));
    this.#armedMs = undefined;
    // After the transaction: one that rolled back took the alarm and the rows with it.
    queueMicrotask(() => {
      this.#armedMs = this.nextMs() === next ? next : undefined;
    });
  }
}
