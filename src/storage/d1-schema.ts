// D1: configuration, and projections that may lag. Losing it loses nothing that was accepted.
import { index, integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Projection: the highest revision wins. */
export const threads = sqliteTable("threads", {
  id: text().primaryKey(),
  source: text().notNull(),
  place: text().notNull(),
  threadKey: text("thread_key").notNull(),
  title: text().notNull(),
  url: text(),
  headSeq: integer("head_seq").notNull(),
  updatedMs: integer("updated_ms").notNull(),
});

/** Projection: `card` is the task's card as JSON; the highest revision wins. */
export const tasks = sqliteTable(
  "tasks",
  {
    id: text().primaryKey(),
    threadId: text("thread_id").notNull(),
    endpointId: text("endpoint_id"),
    decisionId: text("decision_id").notNull(),
    source: text().notNull(),
    place: text().notNull(),
    askedBy: text("asked_by").notNull(),
    card: text().notNull(),
    revision: integer().notNull(),
    updatedMs: integer("updated_ms").notNull(),
  },
  (table) => [index("tasks_updated").on(table.updatedMs)],
);

export const people = sqliteTable("people", {
  id: text().primaryKey(),
  name: text().notNull(),
  role: text({ enum: ["owner", "member"] }).notNull(),
  createdMs: integer("created_ms").notNull(),
  revokedMs: integer("revoked_ms"),
});

/** Accounts of people at a source: `github` + login (lower case). */
export const accounts = sqliteTable(
  "accounts",
  { source: text().notNull(), login: text().notNull(), personId: text("person_id").notNull() },
  (table) => [primaryKey({ columns: [table.source, table.login] })],
);

/** Personal invite links and enrolment codes: only their hash is kept, each is used once. */
export const grants = sqliteTable("grants", {
  hash: text().primaryKey(),
  kind: text({ enum: ["invite", "enrolment"] }).notNull(),
  personId: text("person_id"),
  expiresMs: integer("expires_ms").notNull(),
  usedMs: integer("used_ms"),
});

export const endpoints = sqliteTable("endpoints", {
  id: text().primaryKey(),
  name: text().notNull(),
  platform: text().notNull(),
  createdMs: integer("created_ms").notNull(),
  revokedMs: integer("revoked_ms"),
});

/** Each saved version whole; the highest is in force. */
export const gateRules = sqliteTable("gate_rules", {
  version: integer().primaryKey(),
  rules: text().notNull(),
  savedBy: text("saved_by").notNull(),
  savedMs: integer("saved_ms").notNull(),
});

/** A ring of what came lately, for trying rules: each row is one flush of an isolate, `triggers` a JSON list. Best effort. */
export const recentTriggers = sqliteTable("recent_triggers", {
  id: integer().primaryKey(),
  atMs: integer("at_ms").notNull(),
  triggers: text().notNull(),
});

/** Policies in plain language: each saved version whole; the highest of an id is in force while `enabled`. */
export const policies = sqliteTable(
  "policies",
  {
    id: text().notNull(),
    version: integer().notNull(),
    text: text().notNull(),
    enabled: integer().notNull(),
    savedBy: text("saved_by").notNull(),
    savedMs: integer("saved_ms").notNull(),
    /** What it allows of speculation, as JSON; null: none. */
    speculation: text(),
    /** The words by which an owner saved it in a conversation, as JSON; null: in the console. */
    savedIn: text("saved_in"),
  },
  (table) => [primaryKey({ columns: [table.id, table.version] })],
);

/** A person's word on a decision: `wrong` is an action that nobody wanted. */
export const decisionMarks = sqliteTable("decision_marks", {
  decisionId: text("decision_id").primaryKey(),
  policyId: text("policy_id"),
  wrong: integer().notNull(),
  /** The decision was one that nobody had asked for. */
  unasked: integer().notNull().default(0),
  note: text().notNull(),
  markedBy: text("marked_by").notNull(),
  atMs: integer("at_ms").notNull(),
});

/** Buckets of the door that ran low, shared between isolates now and then; and how much was refused. */
export const rateLimits = sqliteTable("rate_limits", {
  key: text().primaryKey(),
  tokens: real().notNull(),
  atMs: integer("at_ms").notNull(),
  refused: integer().notNull(),
  refusedMs: integer("refused_ms"),
});

/** Profiles of workers that the team changed or added: each saved version whole, the highest of a name in force. */
export const profiles = sqliteTable(
  "profiles",
  {
    name: text().notNull(),
    version: integer().notNull(),
    /** The profile as JSON. */
    body: text().notNull(),
    savedBy: text("saved_by").notNull(),
    savedMs: integer("saved_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.name, table.version] })],
);

/** What leaves without a person's word: each saved version whole, the highest in force. */
export const releasePolicy = sqliteTable("release_policy", {
  version: integer().primaryKey(),
  body: text().notNull(),
  savedBy: text("saved_by").notNull(),
  savedMs: integer("saved_ms").notNull(),
});

/** What waits for a release, over all threads: a projection; the Thread is the truth. */
export const heldOffers = sqliteTable(
  "held_offers",
  {
    id: text().primaryKey(),
    threadId: text("thread_id").notNull(),
    taskId: text("task_id").notNull(),
    title: text().notNull(),
    atMs: integer("at_ms").notNull(),
    untilMs: integer("until_ms").notNull(),
  },
  (table) => [index("held_offers_thread").on(table.threadId)],
);

/** Objects that are busy and when their next deadline is; written only when an object turns busy or idle. */
export const wakeList = sqliteTable("wake_list", {
  objectId: text("object_id").primaryKey(),
  kind: text({ enum: ["router", "thread", "worker", "endpoint"] }).notNull(),
  dueMs: integer("due_ms").notNull(),
});

/** Small facts about the deployment: when a signed ping of GitHub arrived, and the like. */
export const facts = sqliteTable("facts", { name: text().primaryKey(), value: text().notNull(), atMs: integer("at_ms").notNull() });
