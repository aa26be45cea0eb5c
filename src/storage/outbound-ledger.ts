// The outbound ledger of a Thread: its rows, and the pump that sends them one after the other through the thread's channel.
import type { Manner } from "../core/manners.ts";
import {
  afterFind,
  afterSend,
  beginSend,
  type ChannelResult,
  confirm,
  expire,
  maxAgeMs,
  newEntry,
  nextOutboundStep,
  type OutboundEntry,
} from "../core/outbound.ts";
import type { Look, SaidOutcome, Seen } from "../core/reactions.ts";
import type { FaultPoint } from "../fault-point.ts";
import type { ThreadEvent } from "../protocol/events.ts";
import { asFault, messageOf } from "../protocol/fault.ts";
import type { OutboundIntent, OutboundState } from "../protocol/thread.ts";
import { withTimeout } from "../timeout.ts";
import type { EventLog } from "./event-log.ts";

/** A channel's side of the ledger, bound to this thread. */
export type Carrier = {
  manner: Manner;
  send(outbound: OutboundIntent): Promise<{ providerId: string }>;
  find(outbound: OutboundIntent): Promise<{ providerId: string } | null>;
  /** Looks for what people of the team say of a message by reacting to it; null where nobody can look. */
  reactions: ((outbound: OutboundIntent, look: Look) => Promise<Seen>) | null;
  reached(point: FaultPoint): Promise<void>;
};

export const outboundSchema = `
CREATE TABLE IF NOT EXISTS outbound (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL, created_ms INTEGER NOT NULL, in_flight INTEGER NOT NULL,
  attempts INTEGER NOT NULL, due_ms INTEGER, provider_id TEXT, detail TEXT, told INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
`;

/** Longer than any sane provider: then the outcome is unknown and gets looked up. */
const callTimeoutMs = 30_000;

export class OutboundLedger {
  readonly #storage: DurableObjectStorage;
  readonly #log: EventLog<ThreadEvent>;

  constructor(storage: DurableObjectStorage, log: EventLog<ThreadEvent>) {
    this.#storage = storage;
    this.#log = log;
  }

  entry(id: string): OutboundEntry | null {
    return this.#entries("SELECT * FROM outbound WHERE id = ?", id)[0] ?? null;
  }

  /** Opens an entry for a row that was just logged; call it in the same transaction. */
  open(outboundId: string, seq: number, nowMs: number): void {
    const entry = newEntry(outboundId, nowMs);
    this.#storage.sql.exec(
      "INSERT INTO outbound (id, seq, state, created_ms, in_flight, attempts, due_ms) VALUES (?, ?, ?, ?, 0, 0, ?)",
      entry.id,
      seq,
      entry.state,
      entry.createdMs,
      entry.dueMs,
    );
  }

  /** The newest entry of a label that may have been put on by now; null when none is that young. */
  labelled(label: string, sinceMs: number): OutboundEntry | null {
    const wanted = label.toLowerCase();
    const entries = this.#entries("SELECT * FROM outbound WHERE created_ms >= ? AND attempts > 0 ORDER BY seq DESC LIMIT 100", sinceMs);
    return entries.find(({ id }) => labelsOf(this.#log.byKey(id)?.event).includes(wanted)) ?? null;
  }

  /** What was said since a time of how tasks ended. */
  outcomes(sinceMs: number): (SaidOutcome & { outbound: OutboundIntent })[] {
    const entries = this.#entries("SELECT * FROM outbound WHERE created_ms >= ? ORDER BY seq DESC LIMIT 100", sinceMs);
    return entries.flatMap((entry) => {
      const event = this.#log.byKey(entry.id)?.event;
      return event?.kind === "thread.outbound" && event.outbound.outcome === true ? [{ outbound: event.outbound, entry }] : [];
    });
  }

  /** Our own message came back. */
  confirm(outboundId: string, providerId: string, nowMs: number): void {
    this.#change(outboundId, nowMs, (entry) => confirm(entry, providerId));
  }

  /** Carries out what is due, in the order in which it was said; returns when the next step is due, or null. */
  async run(carrier: Carrier, now: () => number): Promise<number | null> {
    const ageLimitMs = maxAgeMs(carrier.manner);
    for (;;) {
      const entry = this.#entries("SELECT * FROM outbound WHERE due_ms IS NOT NULL ORDER BY seq LIMIT 1")[0];
      if (!entry) return null;
      const event = this.#log.byKey(entry.id)?.event;
      if (event?.kind !== "thread.outbound") throw new Error(`outbound entry ${entry.id} has no row`);
      const step = nextOutboundStep(entry, now(), ageLimitMs);
      switch (step.do) {
        case "nothing":
          return null;
        case "wait":
          return step.untilMs;
        case "expire":
          this.#change(entry.id, now(), expire);
          break;
        case "send": {
          this.#change(entry.id, now(), beginSend);
          await carrier.reached("thread.outbound.sending");
          const result = await outcomeOf(carrier.send(event.outbound));
          await carrier.reached("thread.outbound.sent");
          this.#change(entry.id, now(), (current) => afterSend(current, result, now()));
          break;
        }
        case "find": {
          const result = await outcomeOf(carrier.find(event.outbound));
          this.#change(entry.id, now(), (current) => afterFind(current, result, now(), ageLimitMs));
          break;
        }
      }
    }
  }

  /** Final entries that did not surely reach people and that the team was not told of. */
  untold(): OutboundEntry[] {
    return this.#entries(
      "SELECT * FROM outbound WHERE due_ms IS NULL AND told = 0 AND state IN ('expired', 'failed', 'unknown') ORDER BY seq LIMIT 100",
    );
  }

  markTold(entries: readonly OutboundEntry[]): void {
    for (const { id } of entries) this.#storage.sql.exec("UPDATE outbound SET told = 1 WHERE id = ?", id);
  }

  /** A confirmation that came meanwhile stands: nothing is taken back from it. */
  #change(id: string, nowMs: number, change: (entry: OutboundEntry) => OutboundEntry): void {
    this.#storage.transactionSync(() => {
      const before = this.entry(id);
      if (!before || before.state === "confirmed") return;
      const after = change(before);
      this.#storage.sql.exec(
        "UPDATE outbound SET state = ?, in_flight = ?, attempts = ?, due_ms = ?, provider_id = ?, detail = ? WHERE id = ?",
        after.state,
        after.inFlight ? 1 : 0,
        after.attempts,
        after.dueMs,
        after.providerId,
        after.detail,
        id,
      );
      const event = eventOf(before, after);
      if (event) this.#log.append(event, nowMs);
    });
  }

  #entries(query: string, ...bindings: (string | number)[]): OutboundEntry[] {
    return this.#storage.sql
      .exec<{
        id: string;
        state: string;
        created_ms: number;
        in_flight: number;
        attempts: number;
        due_ms: number | null;
        provider_id: string | null;
        detail: string | null;
      }>(query, ...bindings)
      .toArray()
      .map((row) => ({
        id: row.id,
        state: row.state as OutboundState,
        createdMs: row.created_ms,
        inFlight: row.in_flight === 1,
        attempts: row.attempts,
        dueMs: row.due_ms,
        providerId: row.provider_id,
        detail: row.detail,
      }));
  }
}

function labelsOf(event: ThreadEvent | undefined): string[] {
  const deed = event?.kind === "thread.outbound" ? event.outbound.deed : undefined;
  return deed?.do === "label" ? deed.labels.map((label) => label.toLowerCase()) : [];
}

/** The ledger's row for a change of state; a step that leaves the state leaves no row. */
function eventOf(before: OutboundEntry, after: OutboundEntry): ThreadEvent | null {
  if (before.state === after.state) return null;
  const outboundId = after.id;
  switch (after.state) {
    case "pending":
      return null;
    case "sent":
      return { kind: "thread.sent", outboundId, providerId: after.providerId ?? "" };
    case "confirmed":
      return { kind: "thread.confirmed", outboundId, providerId: after.providerId ?? "" };
    case "expired":
    case "failed":
    case "unknown":
      return { kind: "thread.unsent", outboundId, state: after.state, reason: after.detail ?? "" };
  }
}

async function outcomeOf(call: Promise<{ providerId: string } | null>): Promise<ChannelResult> {
  try {
    return { ok: true, providerId: (await withTimeout(call, callTimeoutMs, "The provider"))?.providerId ?? null };
  } catch (error) {
    const fault = asFault(error);
    const reason = messageOf(error);
    // A timeout of ours, or an error without a kind: the message may be there.
    if (!fault || fault.kind === "timeout") return { ok: false, retry: "unknown", reason };
    return { ok: false, retry: fault.retry, reason, retryAfterMs: fault.retryAfterMs };
  }
}
