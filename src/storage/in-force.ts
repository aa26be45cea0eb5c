// A setting that the team saves in D1 and every decision goes by. A reader never waits long, and never fails where something
// can hold while D1 is away.

import { logFault } from "../log-fault.ts";
import { Fault } from "../protocol/fault.ts";
import { withTimeout } from "../timeout.ts";
import { migrated } from "./migrations.ts";

/** For so long a change that another isolate saved may be unknown here. */
const knownForMs = 10_000;
const readTimeoutMs = 2_000;

export class InForce<T extends object> {
  readonly #name: string;
  readonly #read: (db: D1Database) => Promise<T>;
  readonly #away: T | null;
  // Results only, never promises: a promise of one request must not be awaited by another.
  readonly #known = new WeakMap<D1Database, { value: T | null; untilMs: number }>();

  /** `away`: what holds while D1 is away and nothing is known; null where nothing may, and a reader hears the fault. */
  constructor(name: string, read: (db: D1Database) => Promise<T>, away: T | null) {
    this.#name = name;
    this.#read = read;
    this.#away = away;
  }

  /** What is in force, at most about 10 s old; while D1 is away, what was last known. */
  async get(db: D1Database, nowMs: number): Promise<T> {
    const known = this.#known.get(db);
    if (known?.value && known.untilMs > nowMs && known.untilMs <= nowMs + knownForMs) return known.value;
    const value = await this.#readOr(db, this.#away && (known?.value ?? this.#away));
    // What was saved while this read was under way is newer than what it read.
    if (this.#known.get(db) === known) this.#known.set(db, { value, untilMs: nowMs + knownForMs });
    return value;
  }

  async #readOr(db: D1Database, away: T | null): Promise<T> {
    try {
      return await withTimeout(
        migrated(db).then(() => this.#read(db)),
        readTimeoutMs,
        "D1",
      );
    } catch (error) {
      logFault(this.#name, error);
      if (away === null) throw error;
      return away;
    }
  }

  /**
   * Runs what inserts the next version of something; `conflict` when it inserts nothing, since another was saved after the one that was
   * edited. `what`: how people call it.
   */
  async save(db: D1Database, insert: D1PreparedStatement, what: string, value?: T): Promise<void> {
    const { meta } = await insert.run();
    if (meta.changes !== 1)
      throw new Fault("conflict", `Somebody else saved ${what} meanwhile. Look at the newest version and make your change again.`);
    this.changed(db, value);
  }

  /** Another version was saved: it is in force here with the next look. `value`: all that is in force now, where the saver knows it. */
  changed(db: D1Database, value: T | null = this.#known.get(db)?.value ?? null): void {
    this.#known.set(db, { value, untilMs: 0 });
  }
}
