// The Worker applies its own D1 migrations on first use, in the layout of `wrangler d1 migrations`, so that both agree.
import init from "../../migrations/0000_init.sql";
import gate from "../../migrations/0001_gate.sql";
import profiles from "../../migrations/0002_profiles.sql";
import release from "../../migrations/0003_release.sql";
import speculation from "../../migrations/0004_speculation.sql";
import marks from "../../migrations/0005_marks.sql";
import heldOffers from "../../migrations/0006_held-offers.sql";
import savedIn from "../../migrations/0007_saved-in.sql";
import { Fault } from "../protocol/fault.ts";
import { withTimeout } from "../timeout.ts";

/** Every migration, in order. A new file is one import and one line here. */
const migrations: readonly { name: string; sql: string }[] = [
  { name: "0000_init.sql", sql: init },
  { name: "0001_gate.sql", sql: gate },
  { name: "0002_profiles.sql", sql: profiles },
  { name: "0003_release.sql", sql: release },
  { name: "0004_speculation.sql", sql: speculation },
  { name: "0005_marks.sql", sql: marks },
  { name: "0006_held-offers.sql", sql: heldOffers },
  { name: "0007_saved-in.sql", sql: savedIn },
];

const ready = new WeakSet<D1Database>();
/** Runs under way, so that a crowd at a new isolate makes one. */
const running = new WeakMap<D1Database, Promise<void>>();
/** A run of another request may have gone with it: nobody waits for it longer than this. */
const patienceMs = 2_000;

/** Resolves when all migrations are applied: what is done is known for this isolate, a failure is not. */
export async function migrated(db: D1Database): Promise<void> {
  if (ready.has(db)) return;
  const run = running.get(db);
  if (run === undefined) return begin(db);
  try {
    await withTimeout(run, patienceMs, "A migration");
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (running.get(db) === run) running.delete(db);
    await migrated(db);
  }
}

async function begin(db: D1Database): Promise<void> {
  const run = migrate(db);
  running.set(db, run);
  try {
    await run;
    ready.add(db);
  } finally {
    if (running.get(db) === run) running.delete(db);
  }
}

async function migrate(db: D1Database): Promise<void> {
  await db
    .prepare(
      "CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
    )
    .run();
  const applied = new Set((await db.prepare("SELECT name FROM d1_migrations").all<{ name: string }>()).results.map((row) => row.name));
  for (const { name, sql } of migrations) {
    if (applied.has(name)) continue;
    const statements = sql
      .split("--> statement-breakpoint")
      .map((statement) => statement.trim())
      .filter(Boolean);
    try {
      // The name goes first: of several isolates at once exactly one commits, the others see the unique constraint.
      await db.batch([
        db.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name),
        ...statements.map((statement) => db.prepare(statement)),
      ]);
    } catch (error) {
      if (!/UNIQUE constraint failed: d1_migrations\.name/.test(String(error))) throw error;
    }
  }
}
