// The router's tables: effects, transcripts, what it knows of tasks and machines. Every method is one or a few statements.
import { asLater, type TurnRow } from "../core/replay.ts";
import { freshMeta, type InboxItem, isOpen, type KnownMachine, type KnownTask, type RouterMeta, readersOf } from "../core/router.ts";
import type { EffectResult, EffectRow, Question, RouterEffect } from "../core/router-plan.ts";
import type { Proposal } from "../core/router-policy.ts";
import type { ModelMessage } from "../protocol/model.ts";
import type { Lane } from "../protocol/principal.ts";
import { ParsedRow, ParsedRows } from "./parsed-rows.ts";
import { RouterInbox } from "./router-inbox.ts";
import { bodiesOf } from "./tables.ts";

type EffectSql = {
  id: string;
  decision_id: string;
  chain: string;
  ord: number;
  effect: string;
  state: EffectRow["state"];
  attempts: number;
  due_ms: number;
  result: string;
};

export class RouterStore {
  readonly #sql: SqlStorage;
  readonly #meta = new ParsedRow((body): RouterMeta => ({ ...freshMeta, ...(JSON.parse(body) as RouterMeta) }));
  readonly #transcripts: Record<Lane, ParsedRows<ModelMessage>> = { team: new ParsedRows(asRead), public: new ParsedRows(asRead) };
  readonly inbox: RouterInbox;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.inbox = new RouterInbox(sql);
  }

  meta(): RouterMeta {
    const row = this.#sql.exec<{ body: string }>("SELECT body FROM meta").toArray()[0];
    return row ? this.#meta.of(row.body) : freshMeta;
  }

  setMeta(meta: RouterMeta): void {
    this.#sql.exec("INSERT INTO meta (one, body) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET body = excluded.body", JSON.stringify(meta));
  }

  cutOf(threadId: string): number {
    return this.#sql.exec<{ seq: number }>("SELECT seq FROM cut WHERE thread_id = ?", threadId).toArray()[0]?.seq ?? 0;
  }

  setCut(threadId: string, seq: number): void {
    this.#sql.exec(
      "INSERT INTO cut (thread_id, seq) VALUES (?, ?) ON CONFLICT (thread_id) DO UPDATE SET seq = max(seq, excluded.seq)",
      threadId,
      seq,
    );
  }

  // Effects

  addEffects(rows: readonly EffectRow[], nowMs: number): void {
    for (const row of rows) {
      this.#sql.exec(
        "INSERT OR IGNORE INTO effect (id, decision_id, chain, ord, effect, state, attempts, due_ms, result, at_ms) VALUES (?, ?, ?, ?, ?, 'pending', 0, ?, '{}', ?)",
        row.id,
        row.decisionId,
        row.chain,
        row.order,
        JSON.stringify(row.effect),
        row.dueMs,
        nowMs,
      );
    }
  }

  nextOrder(chain: string): number {
    const row = this.#sql.exec<{ last: number | null }>("SELECT MAX(ord) AS last FROM effect WHERE chain = ?", chain).one();
    return (row.last ?? -1) + 1;
  }

  /** Chains with something left to do. */
  pendingChains(): string[] {
    return this.#sql
      .exec<{ chain: string }>("SELECT DISTINCT chain FROM effect WHERE state = 'pending'")
      .toArray()
      .map((row) => row.chain);
  }

  nextEffect(chain: string): EffectRow | null {
    return this.#effects("SELECT * FROM effect WHERE chain = ? AND state = 'pending' ORDER BY ord LIMIT 1", chain)[0] ?? null;
  }

  chain(chain: string): EffectRow[] {
    return this.#effects("SELECT * FROM effect WHERE chain = ? ORDER BY ord", chain);
  }

  pendingEffects(): EffectRow[] {
    return this.#effects("SELECT * FROM effect WHERE state = 'pending' ORDER BY chain, ord");
  }

  /** When the next effect is due, heads of chains only; null when none is left. */
  nextEffectDueMs(): number | null {
    return this.#sql
      .exec<{ due: number | null }>(
        "SELECT MIN(due_ms) AS due FROM (SELECT due_ms, MIN(ord) FROM effect WHERE state = 'pending' GROUP BY chain)",
      )
      .one().due;
  }

  setEffect(id: string, state: EffectRow["state"], change: { attempts?: number; dueMs?: number; result?: EffectResult }): void {
    this.#sql.exec(
      "UPDATE effect SET state = ?, attempts = coalesce(?, attempts), due_ms = coalesce(?, due_ms), result = coalesce(?, result) WHERE id = ?",
      state,
      change.attempts ?? null,
      change.dueMs ?? null,
      change.result === undefined ? null : JSON.stringify(change.result),
      id,
    );
  }

  // Transcripts

  /** A segment as later turns have it. `tokens` are estimated. */
  transcript(lane: Lane, segment: number): { messages: readonly ModelMessage[]; tokens: number } {
    const query = "SELECT seq, body FROM transcript WHERE lane = ? AND segment = ? AND seq >= ? ORDER BY seq";
    const { values, tokens } = this.#transcripts[lane].of(`segment ${segment}`, (fromSeq) =>
      this.#sql.exec<{ seq: number; body: string }>(query, lane, segment, fromSeq).toArray(),
    );
    return { messages: values, tokens };
  }

  /** The rows of the segment that a turn was in, with the turn of each. */
  segmentOf(lane: Lane, turn: number): TurnRow[] {
    return this.#sql
      .exec<{ turn: number; body: string }>(
        "SELECT turn, body FROM transcript WHERE lane = ?1 AND segment = (SELECT segment FROM transcript WHERE lane = ?1 AND turn = ?2 LIMIT 1) ORDER BY seq",
        lane,
        turn,
      )
      .toArray()
      .map((row) => ({ turn: row.turn, message: JSON.parse(row.body) as ModelMessage }));
  }

  appendTranscript(lane: Lane, segment: number, turn: number, messages: readonly ModelMessage[]): void {
    for (const message of messages) {
      this.#sql.exec(
        "INSERT INTO transcript (lane, segment, turn, body) VALUES (?, ?, ?, ?)",
        lane,
        segment,
        turn,
        JSON.stringify(message),
      );
    }
  }

  // What it knows

  task(id: string): KnownTask | null {
    return this.#tasks("SELECT body FROM task WHERE id = ?", id)[0] ?? null;
  }

  /** Open tasks, and the ones that ended last. */
  tasks(): KnownTask[] {
    return [
      ...this.#tasks("SELECT body FROM task WHERE open = 1"),
      ...this.#tasks("SELECT body FROM task WHERE open = 0 ORDER BY updated_ms DESC LIMIT 10"),
    ];
  }

  setTask(task: KnownTask): void {
    this.#sql.exec(
      "INSERT INTO task (id, open, updated_ms, body) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET open = excluded.open, updated_ms = excluded.updated_ms, body = excluded.body",
      task.id,
      isOpen(task) ? 1 : 0,
      task.updatedMs,
      JSON.stringify(task),
    );
  }

  machines(): KnownMachine[] {
    return bodiesOf<KnownMachine>(this.#sql, "SELECT body FROM machine ORDER BY id");
  }

  /** The highest revision wins. */
  setMachine(machine: KnownMachine): void {
    const known = this.machines().find((each) => each.id === machine.id);
    if (known !== undefined && known.revision >= machine.revision) return;
    this.#sql.exec(
      "INSERT INTO machine (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
      machine.id,
      JSON.stringify(machine),
    );
  }

  moved(threadId: string, headSeq: number): void {
    this.#sql.exec(
      "INSERT INTO moved (thread_id, head_seq, seen_seq) VALUES (?, ?, 0) ON CONFLICT (thread_id) DO UPDATE SET head_seq = max(head_seq, excluded.head_seq)",
      threadId,
      headSeq,
    );
  }

  /** Threads with rows that no turn was told of. */
  unseen(limit: number): { threadId: string; seenSeq: number }[] {
    return this.#sql
      .exec<{ thread_id: string; seen_seq: number }>("SELECT thread_id, seen_seq FROM moved WHERE head_seq > seen_seq LIMIT ?", limit)
      .toArray()
      .map((row) => ({ threadId: row.thread_id, seenSeq: row.seen_seq }));
  }

  seen({ threadId, headSeq, seenSeq }: { threadId: string; headSeq: number; seenSeq: number }): void {
    const update = "UPDATE moved SET seen_seq = max(seen_seq, ?), head_seq = max(head_seq, ?) WHERE thread_id = ?";
    this.#sql.exec(update, seenSeq, headSeq, threadId);
  }

  addQuestion(question: Question): void {
    this.#sql.exec("INSERT OR IGNORE INTO question (id, answered, body) VALUES (?, 0, ?)", question.id, JSON.stringify(question));
  }

  /** `answer`: what was answered; null while nobody did. */
  question(id: string): { question: Question; answer: string | null } | null {
    const row = this.#sql.exec<{ answered: number; body: string }>("SELECT answered, body FROM question WHERE id = ?", id).toArray()[0];
    if (!row) return null;
    const { answer = "", ...question } = JSON.parse(row.body) as Question & { answer?: string };
    return { question, answer: row.answered === 1 ? answer : null };
  }

  setProposal(proposal: Proposal): void {
    this.#sql.exec(
      "INSERT INTO proposal (id, at_ms, body) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
      proposal.id,
      proposal.atMs,
      JSON.stringify(proposal),
    );
  }

  proposal(id: string): Proposal | null {
    const row = this.#sql.exec<{ body: string }>("SELECT body FROM proposal WHERE id = ?", id).toArray()[0];
    return row ? (JSON.parse(row.body) as Proposal) : null;
  }

  /** [A8] Who reads what is answered to these. */
  readersOf(items: readonly InboxItem[]): string[] {
    return readersOf(items, (taskId) => this.task(taskId)?.audience);
  }

  /** The newest first. */
  proposals(): Proposal[] {
    return bodiesOf<Proposal>(this.#sql, "SELECT body FROM proposal ORDER BY at_ms DESC LIMIT 20");
  }

  setAnswered(id: string, text: string): void {
    this.#sql.exec("UPDATE question SET answered = 1, body = json_set(body, '$.answer', ?) WHERE id = ?", text, id);
  }

  /** Forgets what closed rows held before `beforeMs`; true when more will be due later. */
  prune(beforeMs: number): boolean {
    this.#sql.exec("DELETE FROM effect WHERE state <> 'pending' AND at_ms < ?", beforeMs);
    const effects = this.#sql.exec("SELECT 1 FROM effect LIMIT 1").toArray().length > 0;
    return this.inbox.prune(beforeMs) || effects;
  }

  #effects(query: string, ...bindings: (string | number)[]): EffectRow[] {
    return this.#sql
      .exec<EffectSql>(query, ...bindings)
      .toArray()
      .map((row) => ({
        id: row.id,
        decisionId: row.decision_id,
        chain: row.chain,
        order: row.ord,
        effect: JSON.parse(row.effect) as RouterEffect,
        state: row.state,
        attempts: row.attempts,
        dueMs: row.due_ms,
        result: JSON.parse(row.result) as EffectResult,
      }));
  }

  #tasks(query: string, ...bindings: string[]): KnownTask[] {
    return bodiesOf<KnownTask>(this.#sql, query, ...bindings);
  }
}

const asRead = (body: string): ModelMessage => asLater(JSON.parse(body) as ModelMessage);
