// A worker session's rows: state, transcript, calls, commands, effects and reports, in its own SQLite.
import { estimateTokens } from "../core/context.ts";
import { effectAddress } from "../core/worker-address.ts";
import {
  type Change,
  completeTask,
  type StepCall,
  type TaskState,
  type Tombstone,
  type WorkerCommand,
  type WorkerEffect,
} from "../core/worker-state.ts";
import type { TaskEvent } from "../protocol/events.ts";
import type { ModelMessage } from "../protocol/model.ts";
import type { Note, Report } from "../protocol/task.ts";
import { deadlineTables } from "./alarm-mux.ts";
import { type EventLog, itemLogTables } from "./event-log.ts";
import { ParsedRow, ParsedRows } from "./parsed-rows.ts";
import { bodiesOf, keepsTables, type Tables } from "./tables.ts";
import { inboxTables, WorkerInbox } from "./worker-inbox.ts";

/** An effect as stored. `version` tells a newer one of the same id from the one that was carried out. */
export type StoredEffect = { id: string; version: number; target: string; attempts: number; effect: WorkerEffect };

const schema = [
  "CREATE TABLE IF NOT EXISTS note (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)",
  "CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS transcript (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)",
  "CREATE TABLE IF NOT EXISTS call (step INTEGER NOT NULL, call_id TEXT NOT NULL, at INTEGER NOT NULL, tool TEXT NOT NULL, output TEXT, tainting INTEGER NOT NULL, PRIMARY KEY (step, call_id)) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS command (id TEXT PRIMARY KEY, open INTEGER NOT NULL, artifact_id TEXT, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS effect (id TEXT PRIMARY KEY, version INTEGER NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, body TEXT NOT NULL, attempts INTEGER NOT NULL, due_ms INTEGER NOT NULL) WITHOUT ROWID",
  // Long answers of reads, kept whole.
  "CREATE TABLE IF NOT EXISTS spilled (artifact_id TEXT PRIMARY KEY) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS report (id TEXT PRIMARY KEY, at INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
];

export const workerTables: Tables = { version: 1, parts: [...schema, itemLogTables, ...inboxTables, deadlineTables] };

export class WorkerStore {
  readonly #sql: SqlStorage;
  readonly #log: EventLog<TaskEvent>;
  readonly #task = new ParsedRow((body) => completeTask(JSON.parse(body) as TaskState));
  readonly #transcript = new ParsedRows((body) => JSON.parse(body) as ModelMessage);
  /** What stands for the parts put aside, since the last of them was. */
  #head: { segment: string; message: { role: "user"; text: string }; tokens: number } | null = null;
  readonly inbox: WorkerInbox;

  /** Whether this object keeps anything yet. */
  static exists(storage: DurableObjectStorage): boolean {
    return keepsTables(storage, "transcript");
  }

  constructor(sql: SqlStorage, log: EventLog<TaskEvent>) {
    this.#sql = sql;
    this.#log = log;
    this.inbox = new WorkerInbox(sql, log);
  }

  task(): TaskState | null {
    const body = this.#body("task");
    return body === null ? null : this.#task.of(body);
  }

  /** The state alone; for what changes nothing that anybody sees. */
  putTask(task: TaskState): void {
    this.#write("task", task);
  }

  tombstone(): Tombstone | null {
    return this.#read<Tombstone>("tombstone");
  }

  bury(tombstone: Tombstone): void {
    this.#write("tombstone", tombstone);
  }

  /** Threads that delivered before the start. */
  earlyThreads(): string[] {
    return this.#read<string[]>("threads") ?? [];
  }

  addEarlyThread(threadId: string): void {
    const known = this.earlyThreads();
    if (!known.includes(threadId)) this.#write("threads", [...known, threadId]);
  }

  /** What a request begins with: what stands for the parts that were put aside, then every row after them. `tokens` are estimated. */
  transcript(): { messages: ModelMessage[]; tokens: number } {
    const aside = this.task()?.aside ?? null;
    const from = lastRowOf(aside) + 1;
    const { values, tokens } = this.#transcript.of(`from ${from}`, (seq) => this.#transcriptFrom(Math.max(from, seq)));
    const head = this.#headOf(aside);
    return head === null ? { messages: [...values], tokens } : { messages: [head.message, ...values], tokens: head.tokens + tokens };
  }

  /** What stands for all parts that were put aside; null before the first. */
  head(): string | null {
    return this.#headOf(this.task()?.aside ?? null)?.message.text ?? null;
  }

  #headOf(aside: TaskState["aside"]): { message: { role: "user"; text: string }; tokens: number } | null {
    const segment = aside?.segments.at(-1)?.id;
    if (segment === undefined) return null;
    if (this.#head?.segment !== segment) {
      // The first version kept it in the task's state.
      const text = this.#read<string>("head") ?? (aside as { head?: string } | null)?.head ?? "";
      this.#head = { segment, message: { role: "user", text }, tokens: estimateTokens(text) };
    }
    return this.#head;
  }

  /** Rows of the whole transcript, from one number on. */
  transcriptRows(fromRow = 0, toRow = Number.MAX_SAFE_INTEGER): { row: number; message: ModelMessage }[] {
    return this.#transcriptFrom(fromRow, toRow).map(({ seq, body }) => ({ row: seq, message: JSON.parse(body) as ModelMessage }));
  }

  #transcriptFrom(fromRow: number, toRow = Number.MAX_SAFE_INTEGER): { seq: number; body: string }[] {
    const query = "SELECT seq, body FROM transcript WHERE seq BETWEEN ? AND ? ORDER BY seq";
    return this.#sql.exec<{ seq: number; body: string }>(query, fromRow, toRow).toArray();
  }

  notes(): Note[] {
    return bodiesOf<Note>(this.#sql, "SELECT body FROM note ORDER BY seq");
  }

  allCommands(): WorkerCommand[] {
    return bodiesOf<WorkerCommand>(this.#sql, "SELECT body FROM command");
  }

  openCommands(): WorkerCommand[] {
    return bodiesOf<WorkerCommand>(this.#sql, "SELECT body FROM command WHERE open = 1 ORDER BY id");
  }

  command(commandId: string): WorkerCommand | null {
    const row = this.#sql.exec<{ body: string }>("SELECT body FROM command WHERE id = ?", commandId).toArray()[0];
    return row ? (JSON.parse(row.body) as WorkerCommand) : null;
  }

  /** Whether an artifact is the output of one of this task's commands, or a long answer that it was given. */
  ownsArtifact(artifactId: string): boolean {
    const own = "SELECT 1 FROM command WHERE artifact_id = ?1 UNION ALL SELECT 1 FROM spilled WHERE artifact_id = ?1";
    return this.#sql.exec(own, artifactId).toArray().length > 0;
  }

  addSpilled(artifactId: string): void {
    this.#sql.exec("INSERT OR IGNORE INTO spilled (artifact_id) VALUES (?)", artifactId);
  }

  calls(step: number): StepCall[] {
    return this.#sql
      .exec<{ call_id: string; tool: string; output: string | null; tainting: number }>(
        "SELECT call_id, tool, output, tainting FROM call WHERE step = ? ORDER BY at",
        step,
      )
      .toArray()
      .map((row) => ({ step, callId: row.call_id, tool: row.tool, output: row.output, tainting: row.tainting === 1 }));
  }

  /** The result of a read; the first answer stays. */
  answer(step: number, callId: string, output: string, tainting: boolean): void {
    this.#sql.exec(
      "UPDATE call SET output = ?, tainting = ? WHERE step = ? AND call_id = ? AND output IS NULL",
      output,
      tainting ? 1 : 0,
      step,
      callId,
    );
  }

  reports(): Report[] {
    return bodiesOf<Report>(this.#sql, "SELECT body FROM report ORDER BY at");
  }

  /** What a decision on a reply asks of the rows. */
  factsOfReply() {
    return {
      pending: this.inbox.pending(),
      backlog: this.inbox.backlog(),
      commandOf: (commandId: string) => this.command(commandId),
      ownsArtifact: (artifactId: string) => this.ownsArtifact(artifactId),
      allCommands: () => this.allCommands(),
      itemOf: (key: string) => this.inbox.item(key),
    };
  }

  /** First of a change, so that its card is derived from the commands as they are after it. */
  putCommands(commands: readonly WorkerCommand[]): void {
    for (const command of commands)
      this.#sql.exec(
        "INSERT INTO command (id, open, artifact_id, body) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET open = excluded.open, artifact_id = excluded.artifact_id, body = excluded.body",
        command.commandId,
        command.open ? 1 : 0,
        command.artifactId ?? null,
        JSON.stringify(command),
      );
  }

  /** Everything else of a change. Call it, with `putCommands`, inside one transaction. */
  save(change: Change, nowMs: number): void {
    this.putTask(change.task);
    for (const event of this.inbox.enter(change.events, nowMs)) this.#log.append(event, nowMs);
    for (const event of change.events) if (event.kind === "task.compacted" && event.head !== undefined) this.#write("head", event.head);
    for (const message of change.messages) this.#sql.exec("INSERT INTO transcript (body) VALUES (?)", JSON.stringify(message));
    this.inbox.move(change);
    change.calls.forEach((call, at) => {
      this.#sql.exec(
        "INSERT INTO call (step, call_id, at, tool, output, tainting) VALUES (?, ?, ?, ?, ?, ?)",
        call.step,
        call.callId,
        at,
        call.tool,
        call.output,
        call.tainting ? 1 : 0,
      );
    });
    for (const note of change.notes) this.#sql.exec("INSERT INTO note (body) VALUES (?)", JSON.stringify(note));
    for (const report of change.reports)
      this.#sql.exec("INSERT INTO report (id, at, body) VALUES (?, ?, ?)", report.id, this.#next("report", "at"), JSON.stringify(report));
    for (const kind of change.voided) this.#sql.exec("DELETE FROM effect WHERE kind = ?", kind);
    for (const effect of change.effects) this.#addEffect(effect, nowMs);
  }

  #addEffect(effect: WorkerEffect, nowMs: number): void {
    const { id, target } = effectAddress(effect);
    this.#sql.exec(
      "INSERT INTO effect (id, version, kind, target, body, attempts, due_ms) VALUES (?, ?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body",
      id,
      this.#next("effect", "version"),
      effect.effect,
      target,
      JSON.stringify(effect),
      nowMs,
    );
  }

  /** Effects that are due, in order, by target: what comes after one that is not due waits behind it. */
  dueEffects(nowMs: number): StoredEffect[][] {
    const groups = new Map<string, { due: StoredEffect[]; blocked: boolean }>();
    const rows = this.#sql.exec<{ id: string; version: number; target: string; body: string; attempts: number; due_ms: number }>(
      "SELECT id, version, target, body, attempts, due_ms FROM effect ORDER BY version",
    );
    for (const { id, version, target, body, attempts, due_ms } of rows) {
      const group = groups.get(target) ?? { due: [], blocked: false };
      groups.set(target, group);
      group.blocked ||= due_ms > nowMs;
      if (!group.blocked) group.due.push({ id, version, target, attempts, effect: JSON.parse(body) as WorkerEffect });
    }
    return [...groups.values()].map(({ due }) => due).filter((due) => due.length > 0);
  }

  effectDone({ id, version }: StoredEffect): void {
    this.#sql.exec("DELETE FROM effect WHERE id = ? AND version = ?", id, version);
  }

  effectFailed({ id, attempts }: StoredEffect, retryMs: number): void {
    this.#sql.exec("UPDATE effect SET attempts = ?, due_ms = ? WHERE id = ?", attempts + 1, retryMs, id);
  }

  nextEffectMs(): number | null {
    return this.#sql.exec<{ due: number | null }>("SELECT MIN(due_ms) AS due FROM effect").one().due;
  }

  #next(table: "effect" | "report", column: string): number {
    return (this.#sql.exec<{ top: number | null }>(`SELECT MAX(${column}) AS top FROM ${table}`).one().top ?? 0) + 1;
  }

  #read<T>(name: string): T | null {
    const body = this.#body(name);
    return body === null ? null : (JSON.parse(body) as T);
  }

  #body(name: string): string | null {
    return this.#sql.exec<{ body: string }>("SELECT body FROM state WHERE name = ?", name).toArray()[0]?.body ?? null;
  }

  #write(name: string, value: unknown): void {
    this.#sql.exec(
      "INSERT INTO state (name, body) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body WHERE body <> excluded.body",
      name,
      JSON.stringify(value),
    );
  }
}

const lastRowOf = (aside: TaskState["aside"]): number => aside?.segments.at(-1)?.toRow ?? 0;
