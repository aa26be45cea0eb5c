// A Thread's own SQLite: the log, and beside it the cursors and the small state that its rows imply. The tables are made
// with the first row that is kept, so that what the gate ignores leaves nothing behind.
import { rowTaints } from "../core/authority.ts";
import { deliveredKinds, hopsOf, isForRouter, rowKinds, type Subscription, toRow, unknownThread } from "../core/thread.ts";
import type { Logged, ThreadEvent } from "../protocol/events.ts";
import type { TaskId, ThreadId } from "../protocol/ids.ts";
import type { ThreadRpc } from "../protocol/rpc.ts";
import type { TaskCard } from "../protocol/task.ts";
import type { OutboundIntent, OutboundState, ThreadInfo, ThreadRow } from "../protocol/thread.ts";
import { deadlineTables } from "./alarm-mux.ts";
import { EditionStore, editionTables } from "./edition-store.ts";
import { EventLog, logTables } from "./event-log.ts";
import { OfferStore, offerTables } from "./offer-store.ts";
import { OutboundLedger, outboundSchema } from "./outbound-ledger.ts";
import { keepsTables, openTables, type Tables } from "./tables.ts";
import { pageSchema, ThreadPage } from "./thread-page.ts";

export type ThreadAbout = {
  threadId: ThreadId;
  source: string;
  place: string;
  threadKey: string;
  title: string;
  url?: string;
  /** Of a topic: where its frames go, and whose page that is. */
  rootThreadId?: ThreadId;
  viewerId?: string;
};

/** How far a target took the log. */
type CursorMark = "router.cursor" | "mirror.cursor";
/** Cursors and marks of a thread, each one number. `moved`: up to where the router was told of it, and up to where it looked. */
export type Mark = CursorMark | "moved.told" | "moved.read" | "busy" | "offers.unlisted";

const schema = `
CREATE TABLE IF NOT EXISTS about (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS mark (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscription (task_id TEXT NOT NULL, decision_id TEXT NOT NULL, from_seq INTEGER NOT NULL, cut_seq INTEGER NOT NULL,
  cursor INTEGER NOT NULL, end_seq INTEGER, tainted INTEGER NOT NULL, PRIMARY KEY (task_id, decision_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS card (task_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, mirrored INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS released (task_id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (task_id, seq)) WITHOUT ROWID;
${outboundSchema}${pageSchema}`;

const tables: Tables = { version: 2, parts: [schema, logTables, offerTables, editionTables, deadlineTables] };

/** The next row that `isForRouter` may hold of, by how it is written: inside a text the quotes would be escaped. */
const maybeForRouter = `SELECT seq, body FROM log WHERE seq > ? AND kind = 'thread.accepted' AND instr(body, '"mode":"decide"') > 0
  AND (instr(body, '"outcome":"candidate"') > 0 OR instr(body, '"outcome":"request"') > 0) ORDER BY seq LIMIT 1`;

/** An answer to us comes within so many rows. */
const saidLatelyRows = 8;
/** A program says less than this in answer to us. */
const hopRows = 20;

export class ThreadStore {
  readonly log: EventLog<ThreadEvent>;
  readonly outbound: OutboundLedger;
  readonly page: ThreadPage;
  readonly offers: OfferStore;
  readonly editions: EditionStore;
  readonly #sql: SqlStorage;
  /** Rows up to here are not for the router; rows never change. */
  #routerPassedSeq = 0;
  /** Cursors further on than their rows say, by what writes them. */
  readonly #taken = new Map<string, { seq: number; keep: () => void }>();
  /** The router has all that is for it, and nothing of that kind came since. */
  #routerHasAll = false;
  /** As committed, so that an event reads neither; null when unread. */
  #about: { value: ThreadAbout | null; body: string } | null = null;
  #subscriptions: readonly Subscription[] | null = null;

  /** Whether this thread has ever kept anything. */
  static exists(storage: DurableObjectStorage): boolean {
    return keepsTables(storage, "log");
  }

  constructor(storage: DurableObjectStorage) {
    this.#sql = storage.sql;
    openTables(storage, tables);
    this.log = new EventLog(storage.sql);
    this.outbound = new OutboundLedger(storage, this.log);
    this.page = new ThreadPage(storage.sql, this.log);
    this.offers = new OfferStore(storage.sql, this.log, this.outbound);
    this.editions = new EditionStore(storage.sql);
  }

  /** After a transaction that rolled back: what it left in memory was never true. */
  forget(): void {
    this.#about = null;
    this.#subscriptions = null;
    this.#routerHasAll = false;
    this.#routerPassedSeq = 0;
  }

  about(): ThreadAbout | null {
    if (this.#about === null) {
      const body = this.#sql.exec<{ body: string }>("SELECT body FROM about").toArray()[0]?.body ?? "";
      this.#about = { body, value: body === "" ? null : (JSON.parse(body) as ThreadAbout) };
    }
    return this.#about.value;
  }

  /** A new row of the outside world. */
  accept(event: Extract<ThreadEvent, { kind: "thread.accepted" }>, nowMs: number): number {
    if (isForRouter(event)) this.#routerHasAll = false;
    return this.log.append(event, nowMs, event.trigger.id);
  }

  /** Whether something of the newest rows is our own words. */
  saidLately(): boolean {
    return this.rowsBefore(Number.MAX_SAFE_INTEGER, saidLatelyRows).some((row) => row.kind === "outbound");
  }

  /** How often it went back and forth here between programs and us. */
  hopsHere(): number {
    return hopsOf(this.rowsBefore(Number.MAX_SAFE_INTEGER, hopRows));
  }

  /** Whether this is what the thread is already. */
  isAbout(about: ThreadAbout): boolean {
    return this.about() !== null && this.#about?.body === JSON.stringify(about);
  }

  /** Keeps what the thread is; writes only on a change. */
  setAbout(about: ThreadAbout): void {
    if (this.isAbout(about)) return;
    const body = JSON.stringify(about);
    this.#sql.exec("INSERT INTO about (id, body) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body", body);
    this.#about = { body, value: about };
  }

  /** A task gives a row up; false when it did before. */
  release(taskId: TaskId, seq: number): boolean {
    return this.#sql.exec("INSERT OR IGNORE INTO released (task_id, seq) VALUES (?, ?) RETURNING seq", taskId, seq).toArray().length > 0;
  }

  isReleased(taskId: TaskId, seq: number): boolean {
    return this.#sql.exec("SELECT 1 FROM released WHERE task_id = ? AND seq = ?", taskId, seq).toArray().length > 0;
  }

  mark(name: Mark): number {
    const stored = this.#sql.exec<{ value: number }>("SELECT value FROM mark WHERE name = ?", name).toArray()[0]?.value ?? 0;
    return Math.max(stored, this.#taken.get(name)?.seq ?? 0);
  }

  setMark(name: Mark, value: number): void {
    this.#sql.exec("INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value);
  }

  /** Moves a mark forward; it never goes back, so that an answer that comes late harms nothing. */
  raise(name: Mark, value: number): void {
    this.#sql.exec(
      "INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value < excluded.value",
      name,
      value,
    );
  }

  /** [T12] A target took the log up to here. `keepCursors` writes it: lost before that, its rows are handed over again to whom they are known. */
  took(name: CursorMark, seq: number): void {
    this.#take(name, seq, () => this.raise(name, seq));
  }

  /** The same of a subscriber. */
  advance({ taskId, decisionId }: Subscription, seq: number): void {
    this.#subscriptions = null;
    const update = "UPDATE subscription SET cursor = ? WHERE task_id = ? AND decision_id = ? AND cursor < ?";
    this.#take(`${taskId} ${decisionId}`, seq, () => this.#sql.exec(update, seq, taskId, decisionId, seq));
  }

  #take(whose: string, seq: number, keep: () => void): void {
    if (seq > (this.#taken.get(whose)?.seq ?? 0)) this.#taken.set(whose, { seq, keep });
  }

  /** Writes how far each target is: once for a burst, not for each row. */
  keepCursors(): void {
    for (const { keep } of this.#taken.values()) keep();
    this.#taken.clear();
  }

  /** Sequence number of the last row of the conversation. */
  headRow(): number {
    return (
      this.#sql.exec<{ seq: number }>(`SELECT seq FROM log WHERE kind IN (${quoted(rowKinds)}) ORDER BY seq DESC LIMIT 1`).toArray()[0]
        ?.seq ?? 0
    );
  }

  /** The next row for subscribers after a cursor, up to and with `endSeq`; null when there is none. */
  nextSeq(cursor: number, endSeq: number | null): number | null {
    return (
      this.#sql
        .exec<{ seq: number }>(
          `SELECT seq FROM log WHERE seq > ? AND seq <= ? AND kind IN (${quoted(deliveredKinds)}) ORDER BY seq LIMIT 1`,
          cursor,
          endSeq ?? Number.MAX_SAFE_INTEGER,
        )
        .toArray()[0]?.seq ?? null
    );
  }

  /** First row and size of the conversation; the size is only exact while it is small. */
  history(): { firstSeq: number; bytes: number } {
    const row = this.#sql
      .exec<{ first: number | null; bytes: number | null }>(
        `SELECT MIN(seq) AS first, SUM(length(CAST(body AS BLOB))) AS bytes FROM (SELECT seq, body FROM log WHERE kind IN (${quoted(deliveredKinds)}) ORDER BY seq LIMIT 200)`,
      )
      .one();
    const more = this.#sql.exec<{ n: number }>(
      `SELECT COUNT(*) AS n FROM (SELECT 1 FROM log WHERE kind IN (${quoted(deliveredKinds)}) LIMIT 201)`,
    );
    return { firstSeq: row.first ?? 0, bytes: more.one().n > 200 ? Number.POSITIVE_INFINITY : (row.bytes ?? 0) };
  }

  rowsAfter(afterSeq: number, limit: number, kinds: readonly ThreadEvent["kind"][] = rowKinds): ThreadRow[] {
    return this.log.after(afterSeq, limit, kinds).flatMap((logged) => this.row(logged) ?? []);
  }

  rowsBefore(beforeSeq: number, limit: number): ThreadRow[] {
    return this.log.before(beforeSeq, limit, rowKinds).flatMap((logged) => this.row(logged) ?? []);
  }

  /** The next rows for the router, and how far the log was looked through for them. */
  routerRows(limit: number): { rows: ThreadRow[]; throughSeq: number } {
    const logged = this.log.after(this.mark("router.cursor"), limit, ["thread.accepted"]);
    const rows = logged.filter(({ event }) => isForRouter(event)).flatMap((row) => this.row(row) ?? []);
    return { rows, throughSeq: logged.at(-1)?.seq ?? 0 };
  }

  /** The first row that the router should get and did not take yet. A wake does not read what else came since its cursor was written. */
  routerWaiting(): number | null {
    if (this.#routerHasAll) return null;
    for (;;) {
      const after = Math.max(this.mark("router.cursor"), this.#routerPassedSeq);
      const row = this.#sql.exec<{ seq: number; body: string }>(maybeForRouter, after).toArray()[0];
      if (!row) {
        this.#routerHasAll = true;
        return null;
      }
      if (isForRouter(JSON.parse(row.body) as ThreadEvent)) return row.seq;
      this.#routerPassedSeq = row.seq;
    }
  }

  /** [RI4] Whether the router has heard that there is something new here, and did not look since. */
  routerKnows(): boolean {
    return this.mark("moved.told") > this.mark("moved.read");
  }

  /** The router reads, and knows of all there is: of what comes next it is told again. */
  routerLooked(): void {
    if (this.routerKnows()) this.raise("moved.read", this.headRow());
  }

  /** Skips rows that nobody decides, so that looking for waiting ones stays cheap in a long log. */
  skipDecided(): void {
    const head = this.log.headSeq();
    if (head > this.mark("router.cursor") + 50 && this.routerWaiting() === null) this.raise("router.cursor", head);
  }

  row(logged: Logged<ThreadEvent>): ThreadRow | null {
    return toRow(logged, (outbound) => this.outboundState(outbound));
  }

  outboundState(outbound: OutboundIntent): { state: OutboundState; detail?: string } {
    const entry = this.outbound.entry(outbound.id);
    // In the widget the row in the log is the delivery.
    if (!entry) return { state: "sent" };
    return entry.detail === null ? { state: entry.state } : { state: entry.state, detail: entry.detail };
  }

  subscriptions(): readonly Subscription[] {
    this.#subscriptions ??= this.#sql
      .exec<{
        task_id: string;
        decision_id: string;
        from_seq: number;
        cut_seq: number;
        cursor: number;
        end_seq: number | null;
        tainted: number;
      }>("SELECT * FROM subscription ORDER BY from_seq, task_id")
      .toArray()
      .map((row) => ({
        taskId: row.task_id,
        decisionId: row.decision_id,
        fromSeq: row.from_seq,
        cutSeq: row.cut_seq,
        cursor: Math.max(row.cursor, this.#taken.get(`${row.task_id} ${row.decision_id}`)?.seq ?? 0),
        endSeq: row.end_seq,
        tainted: row.tainted === 1,
      }));
    return this.#subscriptions;
  }

  subscribe(subscription: Subscription): void {
    const { taskId, decisionId, fromSeq, cutSeq, cursor, tainted } = subscription;
    this.#subscriptions = null;
    this.#sql.exec(
      "INSERT INTO subscription (task_id, decision_id, from_seq, cut_seq, cursor, end_seq, tainted) VALUES (?, ?, ?, ?, ?, NULL, ?)",
      taskId,
      decisionId,
      fromSeq,
      cutSeq,
      cursor,
      tainted ? 1 : 0,
    );
  }

  endSubscriptions(taskId: TaskId, endSeq: number): void {
    this.#subscriptions = null;
    this.#sql.exec("UPDATE subscription SET end_seq = ? WHERE task_id = ? AND end_seq IS NULL", endSeq, taskId);
  }

  /** Whether rows of `fromSeq` and after bring public text along. */
  taintedFrom(fromSeq: number): boolean {
    for (let after = fromSeq - 1; ; ) {
      const rows = this.rowsAfter(after, 100, deliveredKinds);
      if (rows.some(rowTaints)) return true;
      const last = rows.at(-1);
      if (!last) return false;
      after = last.seq;
    }
  }

  /** Tasks that this thread had: subscribers, and those with a topic here. Newest last. */
  tasks(): TaskId[] {
    const topics = this.log.before(Number.MAX_SAFE_INTEGER, 20, ["thread.topic"]);
    const ids = topics.map(({ event }) => (event.kind === "thread.topic" ? event.taskId : ""));
    return [...new Set([...this.subscriptions().map((subscription) => subscription.taskId), ...ids])];
  }

  /** Keeps a card when it is newer than the known one. */
  saveCard(card: TaskCard): boolean {
    const { rowsWritten } = this.#sql.exec(
      "INSERT INTO card (task_id, revision, mirrored, body) VALUES (?, ?, 0, ?) ON CONFLICT (task_id) DO UPDATE SET revision = excluded.revision, body = excluded.body WHERE revision < excluded.revision",
      card.taskId,
      card.revision,
      JSON.stringify(card),
    );
    return rowsWritten > 0;
  }

  cards(): TaskCard[] {
    return this.#cards("SELECT body FROM card ORDER BY task_id");
  }

  unmirroredCards(): TaskCard[] {
    return this.#cards("SELECT body FROM card WHERE mirrored < revision ORDER BY task_id");
  }

  mirroredCard(card: TaskCard): void {
    this.#sql.exec("UPDATE card SET mirrored = ? WHERE task_id = ? AND mirrored < ?", card.revision, card.taskId, card.revision);
  }

  #cards(query: string): TaskCard[] {
    return this.#sql
      .exec<{ body: string }>(query)
      .toArray()
      .map((row) => JSON.parse(row.body) as TaskCard);
  }

  info(about: ThreadAbout): ThreadInfo {
    const { threadId, source, place, threadKey, title, url, viewerId } = about;
    return {
      threadId,
      source,
      place,
      threadKey,
      title,
      ...(url === undefined ? {} : { url }),
      ...(viewerId === undefined ? {} : { viewerId }),
      headSeq: this.headRow(),
      subscribers: this.subscriptions().flatMap((subscription) => (subscription.endSeq === null ? [subscription.taskId] : [])),
    };
  }
}

const quoted = (kinds: readonly string[]): string => kinds.map((kind) => `'${kind}'`).join(", ");

/** What `read` answers; of a thread that keeps nothing, an empty one. */
export function readThread(
  store: ThreadStore | undefined,
  threadId: string,
  range: Parameters<ThreadRpc["read"]>[0],
): Awaited<ReturnType<ThreadRpc["read"]>> {
  const about = store?.about();
  if (!store || !about) return { info: unknownThread(threadId), rows: [], cards: [] };
  if (range.by === "router") store.routerLooked();
  return { info: store.info(about), rows: store.rowsAfter(range.afterSeq, range.limit), cards: store.cards() };
}
