// Offers of a Thread, as rows: what waits, how each was decided, and who knows of it.
import type { ThreadEvent } from "../protocol/events.ts";
import { limits } from "../protocol/limits.ts";
import type { Offer, OfferState, OfferView } from "../protocol/offer.ts";
import type { Principal } from "../protocol/principal.ts";
import type { EventLog } from "./event-log.ts";
import type { OutboundLedger } from "./outbound-ledger.ts";

/** `told`: how far task and consoles know of it; null once there is nothing more to say. */
export const offerTables =
  "CREATE TABLE IF NOT EXISTS offer (id TEXT PRIMARY KEY, state TEXT NOT NULL, at_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL, told TEXT, offer TEXT NOT NULL, decided TEXT) WITHOUT ROWID";

type Row = { id: string; state: OfferState; at_ms: number; until_ms: number; told: string | null; offer: string; decided: string | null };
export type Told = "nothing" | "held" | "decided";

export class OfferStore {
  readonly #sql: SqlStorage;
  readonly #log: EventLog<ThreadEvent>;
  readonly #outbound: OutboundLedger;

  constructor(sql: SqlStorage, log: EventLog<ThreadEvent>, outbound: OutboundLedger) {
    this.#sql = sql;
    this.#log = log;
    this.#outbound = outbound;
  }

  view(id: string): OfferView | null {
    return this.#rows("SELECT * FROM offer WHERE id = ?", id)[0]?.view ?? null;
  }

  /** Offers of which somebody does not know yet how they stand. */
  untold(): { view: OfferView; told: Told }[] {
    return this.#rows("SELECT * FROM offer WHERE told IS NOT NULL ORDER BY at_ms");
  }

  held(): OfferView[] {
    return this.#rows("SELECT * FROM offer WHERE state = 'held' ORDER BY at_ms").map(({ view }) => view);
  }

  setTold(id: string, told: Told | null): void {
    this.#sql.exec("UPDATE offer SET told = ? WHERE id = ?", told, id);
  }

  /** Keeps an offer; call it inside a commit. */
  open(offer: Offer, nowMs: number): void {
    const untilMs = nowMs + limits.offerMs;
    const { id } = offer.outbound;
    this.#sql.exec(
      "INSERT INTO offer (id, state, at_ms, until_ms, told, offer) VALUES (?, 'held', ?, ?, 'nothing', ?)",
      id,
      nowMs,
      untilMs,
      JSON.stringify(offer),
    );
    this.#log.append({ kind: "thread.offered", offer, untilMs }, nowMs, `offer:${id}`);
  }

  decided(
    id: string,
    state: Exclude<OfferState, "held">,
    by: Principal,
    via: NonNullable<OfferView["decided"]>["via"],
    reason: string,
    nowMs: number,
  ): void {
    this.#sql.exec("UPDATE offer SET state = ?, decided = ? WHERE id = ?", state, JSON.stringify({ by: by.name, via, reason }), id);
    this.#log.append({ kind: "thread.offer_decided", outboundId: id, state, by, via, reason }, nowMs);
  }

  #rows(query: string, ...bindings: string[]): { view: OfferView; told: Told }[] {
    return this.#sql
      .exec<Row>(query, ...bindings)
      .toArray()
      .map((row) => ({ view: this.#viewOf(row), told: (row.told ?? "decided") as Told }));
  }

  #viewOf(row: Row): OfferView {
    const entry = this.#outbound.entry(row.id);
    const said = this.#log.byKey(row.id) !== null;
    return {
      offer: JSON.parse(row.offer) as Offer,
      state: row.state,
      atMs: row.at_ms,
      untilMs: row.until_ms,
      ...(row.decided === null ? {} : { decided: JSON.parse(row.decided) as NonNullable<OfferView["decided"]> }),
      ...(entry
        ? { sent: { state: entry.dueMs === null ? entry.state : ("pending" as const), providerId: entry.providerId, detail: entry.detail } }
        : said
          ? // In the widget the row in the log is the delivery.
            { sent: { state: "sent" as const, providerId: null, detail: null } }
          : {}),
    };
  }
}
