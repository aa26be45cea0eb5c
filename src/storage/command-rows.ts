// The tables of an Endpoint: its machine, its commands, cancelled tasks and effects that are still owed. The log says how each came about.
import type { Cancel, Decision, EndpointEffect, EndpointInput, Entry, Ledger, Machine } from "../core/command-ledger.ts";
import type { CommandResult, CommandState, QueuedCommand } from "../protocol/command.ts";
import { limits } from "../protocol/limits.ts";

type CommandRow = {
  command: string;
  state: string;
  stop_why: string | null;
  result: string | null;
  started_ms: number | null;
  stored_bytes: number;
  waiting_told: number;
};

/** An effect as it waits: `seq` changes when it is owed again, so that a delivery under way does not clear the newer one. */
export type OwedEffect = { id: string; seq: number; target: string; effect: EndpointEffect };

const columns = "command, state, stop_why, result, started_ms, stored_bytes, waiting_told";

export const commandTables = `
CREATE TABLE IF NOT EXISTS machine (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS command (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, command TEXT NOT NULL, not_after_ms INTEGER NOT NULL,
  state TEXT NOT NULL, stop_why TEXT, result TEXT, started_ms INTEGER, stored_bytes INTEGER NOT NULL, waiting_told INTEGER NOT NULL,
  settled_ms INTEGER);
CREATE INDEX IF NOT EXISTS command_open ON command (task_id) WHERE state <> 'settled';
CREATE TABLE IF NOT EXISTS cancel (task_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, answered INTEGER NOT NULL, offline_told INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS effect (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, target TEXT NOT NULL, body TEXT NOT NULL);`;

export class CommandRows {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  machine(): Machine | null {
    const row = this.#sql.exec<{ body: string }>("SELECT body FROM machine").toArray()[0];
    return row ? (JSON.parse(row.body) as Machine) : null;
  }

  entry(commandId: string): Entry | null {
    return this.#entries("WHERE id = ?", commandId)[0] ?? null;
  }

  /** What a decision about this input has to see. While something waits for an idle machine, that is all that is open. */
  load(input: EndpointInput): Ledger {
    const own = this.#concerned(input);
    const waits =
      (input.kind === "submit" && input.command.speculative === true) ||
      this.#sql.exec("SELECT 1 FROM command WHERE state = 'queued' AND json_extract(command, '$.speculative') = 1 LIMIT 1").toArray()
        .length > 0;
    if (!waits) return own;
    const seen = new Set(own.entries.map(({ command }) => command.commandId));
    return { ...own, entries: [...own.entries, ...this.#open().filter(({ command }) => !seen.has(command.commandId))] };
  }

  #concerned(input: EndpointInput): Ledger {
    const machine = this.machine();
    switch (input.kind) {
      case "enrol":
        return { machine, entries: [], cancels: [] };
      case "submit":
        return { machine, ...this.#ofTask(input.command.taskId, input.command.commandId) };
      case "stop_task":
      case "asked":
        return { machine, ...this.#ofTask(input.taskId, "") };
      case "stop":
      case "accepted":
      case "started":
      case "output":
      case "stopped":
      case "output_missing":
        return { machine, ...this.#ofCommand(input.commandId) };
      case "result":
        return { machine, ...this.#ofCommand(input.result.commandId) };
      case "hello": {
        // Settled ones that the machine still names are looked at too.
        const named = input.open.flatMap(({ commandId }) => this.#entries("WHERE id = ? AND state = 'settled'", commandId));
        return { machine, entries: [...named, ...this.#open()], cancels: this.#unanswered() };
      }
      case "revoke":
      case "disconnected":
      case "expire":
        return { machine, entries: this.#open(), cancels: this.#unanswered() };
    }
  }

  /** Saves what a decision changed. Call it inside its transaction. */
  save(decision: Decision, nowMs: number): void {
    if (decision.machine)
      this.#sql.exec(
        "INSERT INTO machine (id, body) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body WHERE body <> excluded.body",
        JSON.stringify(decision.machine),
      );
    for (const entry of decision.entries) this.#saveEntry(entry, nowMs);
    for (const { taskId, epoch, answered, offlineTold } of decision.cancels)
      this.#sql.exec("INSERT OR REPLACE INTO cancel VALUES (?, ?, ?, ?)", taskId, epoch, Number(answered), Number(offlineTold));
    for (const effect of decision.effects)
      this.#sql.exec(
        "INSERT OR REPLACE INTO effect (seq, id, target, body) VALUES ((SELECT IFNULL(MAX(seq), 0) + 1 FROM effect), ?, ?, ?)",
        effectId(effect),
        "taskId" in effect ? effect.taskId : effect.kind,
        JSON.stringify(effect),
      );
  }

  owed(): OwedEffect[] {
    return this.#sql
      .exec<{ id: string; seq: number; target: string; body: string }>("SELECT id, seq, target, body FROM effect ORDER BY seq")
      .toArray()
      .map(({ id, seq, target, body }) => ({ id, seq, target, effect: JSON.parse(body) as EndpointEffect }));
  }

  owes(): boolean {
    return this.#sql.exec("SELECT 1 FROM effect LIMIT 1").toArray().length > 0;
  }

  done(effect: OwedEffect): void {
    this.#sql.exec("DELETE FROM effect WHERE id = ? AND seq = ?", effect.id, effect.seq);
  }

  /** When the first waiting command expires; null when none waits. */
  nextExpiryMs(): number | null {
    return this.#sql.exec<{ due: number | null }>("SELECT MIN(not_after_ms) AS due FROM command WHERE state = 'queued'").one().due;
  }

  counts(): { running: number; waiting: number } {
    return this.#sql
      .exec<{ running: number; waiting: number }>(
        "SELECT IFNULL(SUM(state <> 'queued'), 0) AS running, IFNULL(SUM(state = 'queued'), 0) AS waiting FROM command WHERE state <> 'settled'",
      )
      .one();
  }

  /**
   * Forgets commands that were settled long ago and handed over, and returns their ids. Only those past their `notAfter`:
   * if one of them is submitted again, it expires instead of running twice.
   */
  forget(nowMs: number): string[] {
    return this.#sql
      .exec<{ id: string }>(
        `DELETE FROM command WHERE seq IN (
           SELECT seq FROM command WHERE state = 'settled' AND settled_ms < ? AND not_after_ms < ?
           AND NOT EXISTS (SELECT 1 FROM effect WHERE effect.id = 'settle:' || command.id) ORDER BY seq LIMIT 100) RETURNING id`,
        nowMs - limits.dedupeMs,
        nowMs,
      )
      .toArray()
      .map(({ id }) => id);
  }

  #saveEntry(entry: Entry, nowMs: number): void {
    const { command, state, stopWhy, result, startedMs, storedBytes, waitingTold } = entry;
    this.#sql.exec(
      `INSERT INTO command (id, task_id, command, not_after_ms, state, stop_why, result, started_ms, stored_bytes, waiting_told, settled_ms)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
       ON CONFLICT (id) DO UPDATE SET command = ?3, state = ?5, stop_why = ?6, result = ?7, started_ms = ?8, stored_bytes = ?9, waiting_told = ?10, settled_ms = ?11`,
      command.commandId,
      command.taskId,
      JSON.stringify(command),
      command.notAfterMs,
      state,
      stopWhy,
      result && JSON.stringify(result),
      startedMs,
      storedBytes,
      Number(waitingTold),
      state === "settled" ? nowMs : null,
    );
  }

  #ofCommand(commandId: string): { entries: Entry[]; cancels: Cancel[] } {
    const named = this.entry(commandId);
    return named ? this.#ofTask(named.command.taskId, commandId) : { entries: [], cancels: [] };
  }

  /** The named command, all open ones of its task, and the task's cancel. */
  #ofTask(taskId: string, commandId: string): { entries: Entry[]; cancels: Cancel[] } {
    const entries = this.#entries("WHERE id = ?1 OR (task_id = ?2 AND state <> 'settled')", commandId, taskId);
    return { entries, cancels: this.#cancels("WHERE task_id = ?", taskId) };
  }

  #open(): Entry[] {
    return this.#entries("WHERE state <> 'settled'");
  }

  #unanswered(): Cancel[] {
    return this.#cancels("WHERE answered = 0");
  }

  #entries(where: string, ...bindings: string[]): Entry[] {
    return this.#sql
      .exec<CommandRow>(`SELECT ${columns} FROM command ${where} ORDER BY seq`, ...bindings)
      .toArray()
      .map((row) => ({
        command: JSON.parse(row.command) as QueuedCommand,
        state: row.state as CommandState,
        stopWhy: row.stop_why,
        result: row.result === null ? null : (JSON.parse(row.result) as CommandResult),
        startedMs: row.started_ms,
        storedBytes: row.stored_bytes,
        waitingTold: row.waiting_told === 1,
      }));
  }

  #cancels(where: string, ...bindings: string[]): Cancel[] {
    return this.#sql
      .exec<{ task_id: string; epoch: number; answered: number; offline_told: number }>(`SELECT * FROM cancel ${where}`, ...bindings)
      .toArray()
      .map((row) => ({ taskId: row.task_id, epoch: row.epoch, answered: row.answered === 1, offlineTold: row.offline_told === 1 }));
  }
}

/** The same news again replaces what still waits. */
function effectId(effect: EndpointEffect): string {
  switch (effect.kind) {
    case "settle":
      return `settle:${effect.commandId}`;
    case "command_state":
      return `state:${effect.commandId}`;
    case "stopped":
      return `stopped:${effect.taskId}:${effect.offline}`;
    case "machine":
    case "board":
      return effect.kind;
  }
}
