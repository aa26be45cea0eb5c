// What a root keeps for its widget page: used tickets, who was revoked, buttons that were pressed, and how far topics were mirrored.
import type { ThreadEvent } from "../protocol/events.ts";
import type { OutboundId, TaskId, ThreadId } from "../protocol/ids.ts";
import type { Principal } from "../protocol/principal.ts";
import type { WidgetClientFrame } from "../protocol/widget-frames.ts";
import type { EventLog } from "./event-log.ts";

type Pressed = Extract<WidgetClientFrame, { t: "act" | "decide" | "mark" }>;
/** What a person did by something else than a button: the pull request of a task was merged. */
type Merged = { t: "merge"; clientMsgId: string; taskId: TaskId; place: string };
/** Or it was found that they reacted to the message `of`, in which its end was told. */
type Reacted = { t: "reaction"; clientMsgId: string; taskId: TaskId; accepted: boolean; sign: string; of: OutboundId };
/** A button's effect on its way to the task. */
export type Act<F = Pressed | Merged | Reacted> = { id: string; by: Principal; atMs: number; frame: F };

/** What an act says of an outcome; null where it says nothing of one. */
export function wordOn({ frame, by }: Act): Extract<ThreadEvent, { kind: "thread.accepted_outcome" }> | null {
  const word = (taskId: TaskId, accepted: boolean) => ({ kind: "thread.accepted_outcome" as const, taskId, accepted, by });
  switch (frame.t) {
    case "merge":
      return word(frame.taskId, true);
    case "reaction":
      return { ...word(frame.taskId, frame.accepted), reaction: { sign: frame.sign, to: frame.of } };
    case "act":
      return frame.action === "accept" || frame.action === "reject" ? word(frame.taskId, frame.action === "accept") : null;
    case "decide":
    case "mark":
      return null;
  }
}

/** More than clocks are ever set back. A ticket is one small row for each connection. */
const usedTicketMs = 30 * 24 * 3_600_000;

export const pageSchema = `
CREATE TABLE IF NOT EXISTS act (id TEXT PRIMARY KEY, done INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ticket (jti TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revoked (principal_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mirrored (thread_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
`;

export class ThreadPage {
  readonly #sql: SqlStorage;
  readonly #log: EventLog<ThreadEvent>;

  constructor(sql: SqlStorage, log: EventLog<ThreadEvent>) {
    this.#sql = sql;
    this.#log = log;
  }

  /** The newest topics, oldest first. */
  topics(limit: number): ThreadId[] {
    return this.#log
      .before(Number.MAX_SAFE_INTEGER, limit, ["thread.topic"])
      .flatMap(({ event }) => (event.kind === "thread.topic" ? [event.topicThreadId] : []));
  }

  /** What was last said of proactive replies: as many as a page may show. */
  marks(limit: number): { of: string; wrong: boolean }[] {
    const marked = this.#log
      .before(Number.MAX_SAFE_INTEGER, limit, ["thread.marked"])
      .flatMap(({ event }) => (event.kind === "thread.marked" ? [[event.outboundId, event.wrong] as const] : []));
    return [...new Map(marked)].map(([of, wrong]) => ({ of, wrong }));
  }

  /** The topic with this thread id under this root; null when it is none of ours. */
  topic(topicThreadId: ThreadId): { taskId: TaskId; title: string } | null {
    const event = this.#log.byKey(topicLogKey(topicThreadId))?.event;
    return event?.kind === "thread.topic" ? { taskId: event.taskId, title: event.title } : null;
  }

  /** Takes the frames of a topic up to `seq`; false when they were taken before. */
  takeMirrored(topicThreadId: ThreadId, seq: number): boolean {
    return (
      this.#sql.exec(
        "INSERT INTO mirrored (thread_id, seq) VALUES (?, ?) ON CONFLICT (thread_id) DO UPDATE SET seq = excluded.seq WHERE seq < excluded.seq",
        topicThreadId,
        seq,
      ).rowsWritten > 0
    );
  }

  /** Keeps a button's effect; false when it is known. */
  addAct(act: Act): boolean {
    return this.#sql.exec("INSERT OR IGNORE INTO act (id, done, body) VALUES (?, 0, ?)", act.id, JSON.stringify(act)).rowsWritten > 0;
  }

  openActs(): Act[] {
    return this.#sql
      .exec<{ body: string }>("SELECT body FROM act WHERE done = 0")
      .toArray()
      .map((row) => JSON.parse(row.body) as Act);
  }

  endAct(id: string): void {
    this.#sql.exec("UPDATE act SET done = 1 WHERE id = ?", id);
  }

  /** Uses a ticket; false when it was used before. Forgotten only long after they end: a clock that goes back makes them young again. */
  useTicket(jti: string, expiresMs: number, nowMs: number): boolean {
    this.#sql.exec("DELETE FROM ticket WHERE expires_ms < ?", nowMs - usedTicketMs);
    return this.#sql.exec("INSERT OR IGNORE INTO ticket (jti, expires_ms) VALUES (?, ?)", jti, expiresMs).rowsWritten > 0;
  }

  revoke(principalId: string): void {
    this.#sql.exec("INSERT OR IGNORE INTO revoked (principal_id) VALUES (?)", principalId);
  }

  isRevoked(principalId: string): boolean {
    return this.#sql.exec("SELECT 1 FROM revoked WHERE principal_id = ?", principalId).toArray().length > 0;
  }
}

/** The log's key of a topic's row: a repeated `attachTopic` finds the first. */
export const topicLogKey = (topicThreadId: ThreadId): string => `topic:${topicThreadId}`;
