// The small live view that every console follows: a projection, bounded, told to each open console as it changes.
import { DurableObject } from "cloudflare:workers";
import { Lifecycle } from "agents/lifecycle";
import { State } from "agents/state";
import { WebSockets } from "agents/websockets";
import { applyBoardChanges, emptyBoard } from "../src/core/board.ts";
import type { Env } from "../src/env.ts";
import type { BoardChange, BoardState } from "../src/protocol/board.ts";
import { boardClose, boardSessionHeader } from "../src/protocol/board-wire.ts";
import type { BoardRpc } from "../src/protocol/rpc.ts";
import { openTables, type Tables } from "../src/storage/tables.ts";

/** Ids that left are remembered while a late repeat of an older change is thinkable. */
const maxGone = 500;

const tables: Tables = {
  version: 1,
  parts: [
    "CREATE TABLE IF NOT EXISTS gone (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS used_ticket (id TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS ended_session (id TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID",
  ],
};

export class Board extends DurableObject<Env> implements BoardRpc {
  // The order of these fields is the order in which the parts of `agents` must come to life.
  readonly state = new State<BoardState>({
    initialState: emptyBoard,
    onChanged: (_state, source) => this.webSockets.broadcastState(source),
  });
  readonly webSockets: WebSockets = new WebSockets({
    state: this.state,
    readonly: () => true,
    getConnectionTags: (_connection, { request }) => [request.headers.get(boardSessionHeader) ?? "none"],
  });
  readonly lifecycle = Lifecycle.install(this).use(this.state).use(this.webSockets);

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    openTables(ctx.storage, tables);
  }

  async change(input: BoardChange[]): Promise<void> {
    await this.lifecycle.start();
    const { sql } = this.ctx.storage;
    this.ctx.storage.transactionSync(() => {
      const gone = new Set(
        sql
          .exec<{ id: string }>("SELECT id FROM gone")
          .toArray()
          .map((row) => row.id),
      );
      const before = this.#current();
      const { state, left } = applyBoardChanges(before, input, gone);
      for (const id of left) sql.exec("INSERT INTO gone (id) VALUES (?)", id);
      if (left.length > 0) sql.exec("DELETE FROM gone WHERE seq <= (SELECT MAX(seq) FROM gone) - ?", maxGone);
      if (state !== before) this.state.set(state);
    });
  }

  async snapshot(): Promise<BoardState> {
    await this.lifecycle.start();
    return this.#current();
  }

  async redeem(input: { ticketId: string; sessionId: string; expiresMs: number; nowMs: number }): Promise<boolean> {
    const { sql } = this.ctx.storage;
    return this.ctx.storage.transactionSync(() => {
      sql.exec("DELETE FROM used_ticket WHERE expires_ms < ?", input.nowMs);
      if (input.expiresMs < input.nowMs || this.#hasEnded(input.sessionId)) return false;
      const { rowsWritten } = sql.exec(
        "INSERT INTO used_ticket (id, expires_ms) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
        input.ticketId,
        input.expiresMs,
      );
      return rowsWritten > 0;
    });
  }

  async isSessionOpen(input: { sessionId: string }): Promise<boolean> {
    return !this.#hasEnded(input.sessionId);
  }

  async closeSession(input: { sessionId: string; expiresMs: number }): Promise<{ closed: number }> {
    await this.lifecycle.start();
    const { sql } = this.ctx.storage;
    // Remembered until its cookie is too old by itself.
    sql.exec("DELETE FROM ended_session WHERE expires_ms < ?", Date.now());
    sql.exec("INSERT OR IGNORE INTO ended_session (id, expires_ms) VALUES (?, ?)", input.sessionId, input.expiresMs);
    const connections = [...this.webSockets.getConnections(input.sessionId)];
    for (const connection of connections) connection.close(boardClose.signedOut, "signed out");
    return { closed: connections.length };
  }

  #hasEnded(sessionId: string): boolean {
    return this.ctx.storage.sql.exec("SELECT 1 FROM ended_session WHERE id = ?", sessionId).toArray().length > 0;
  }

  #current(): BoardState {
    return this.state.get() ?? emptyBoard;
  }
}
