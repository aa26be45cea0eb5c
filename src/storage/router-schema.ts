// The router's tables. [RI12] It lives for months: whatever a turn or a wake-up asks for has an index, so that the past costs nothing.
import { deadlineTables } from "./alarm-mux.ts";
import { indexedLogTables } from "./event-log.ts";
import { actsTables } from "./router-acts.ts";
import { itemTables } from "./router-inbox.ts";
import { memoryTables } from "./router-memory.ts";
import { scheduleTables } from "./router-schedules.ts";
import { speculationTables } from "./router-speculations.ts";
import type { Tables } from "./tables.ts";

const schema = [
  "CREATE TABLE IF NOT EXISTS meta (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL)",
  "CREATE TABLE IF NOT EXISTS cut (thread_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS effect (id TEXT PRIMARY KEY, decision_id TEXT NOT NULL, chain TEXT NOT NULL, ord INTEGER NOT NULL, effect TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, due_ms INTEGER NOT NULL, result TEXT NOT NULL, at_ms INTEGER NOT NULL)",
  "CREATE INDEX IF NOT EXISTS effect_pending ON effect (chain, ord) WHERE state = 'pending'",
  "CREATE INDEX IF NOT EXISTS effect_chain ON effect (chain)",
  "CREATE TABLE IF NOT EXISTS transcript (seq INTEGER PRIMARY KEY, lane TEXT NOT NULL, segment INTEGER NOT NULL, turn INTEGER NOT NULL, body TEXT NOT NULL)",
  "CREATE INDEX IF NOT EXISTS transcript_segment ON transcript (lane, segment)",
  "CREATE TABLE IF NOT EXISTS task (id TEXT PRIMARY KEY, open INTEGER NOT NULL, updated_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS task_open ON task (open, updated_ms)",
  "CREATE TABLE IF NOT EXISTS machine (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS moved (thread_id TEXT PRIMARY KEY, head_seq INTEGER NOT NULL, seen_seq INTEGER NOT NULL) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS moved_unseen ON moved (thread_id) WHERE head_seq > seen_seq",
  "CREATE TABLE IF NOT EXISTS proposal (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS proposal_at ON proposal (at_ms)",
  "CREATE TABLE IF NOT EXISTS question (id TEXT PRIMARY KEY, answered INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
];

export const routerTables: Tables = {
  version: 2,
  parts: [...schema, ...memoryTables, ...scheduleTables, ...speculationTables, actsTables, indexedLogTables, ...itemTables, deadlineTables],
};
