// One commit of an Endpoint: what an input decides, its new rows, output, events and deadlines, all in one transaction.
import type { Decision, EndpointInput } from "../core/command-ledger.ts";
import { decide } from "../core/endpoint.ts";
import type { EndpointEvent } from "../protocol/events.ts";
import { type AlarmMux, deadlineTables } from "./alarm-mux.ts";
import { type CommandRows, commandTables } from "./command-rows.ts";
import { type EventLog, indexedLogTables } from "./event-log.ts";
import { type OutputStore, outputTables } from "./output.ts";
import { openTables, type Tables } from "./tables.ts";

/** If the process dies between a commit and its effects, they follow this much later. */
const effectFallbackMs = 5_000;
/** How long a result waits for the rest of its output, while the machine is connected. */
export const heldResultMs = 10 * 60_000;

const tables: Tables = { version: 1, parts: [commandTables, outputTables, indexedLogTables, deadlineTables] };

export type EndpointDeadline = "effects" | "expiry" | "held" | "sweep";

export class EndpointStore {
  readonly #storage: DurableObjectStorage;
  readonly #log: EventLog<EndpointEvent>;
  readonly #rows: CommandRows;
  readonly #output: OutputStore;
  readonly #alarms: AlarmMux<EndpointDeadline>;

  constructor(
    storage: DurableObjectStorage,
    log: EventLog<EndpointEvent>,
    rows: CommandRows,
    output: OutputStore,
    alarms: AlarmMux<EndpointDeadline>,
  ) {
    openTables(storage, tables);
    this.#storage = storage;
    this.#log = log;
    this.#rows = rows;
    this.#output = output;
    this.#alarms = alarms;
  }

  /** Decides about an input and saves everything that follows from it. `bytes` are those of an output frame. */
  apply(input: EndpointInput, bytes?: Uint8Array): Decision {
    const nowMs = Date.now();
    return this.#storage.transactionSync(() => {
      const decision = decide(this.#rows.load(input), input, nowMs);
      this.#rows.save(decision, nowMs);
      const { store } = decision;
      if (store && bytes) this.#output.append(store.commandId, store.offset, bytes.subarray(store.skip));
      for (const event of decision.events) this.#log.append(event, nowMs, keyOf(event));
      this.#arm(decision, nowMs);
      if (decision.entries.some(({ state }) => state === "settled"))
        for (const commandId of this.#rows.forget(nowMs)) this.#output.forget(commandId);
      return decision;
    });
  }

  #arm(decision: Decision, nowMs: number): void {
    if (decision.effects.length > 0) this.#alarms.setEarlier("effects", nowMs + effectFallbackMs);
    for (const { command, state, result } of decision.entries)
      if (result && state !== "settled") this.#alarms.setEarlier("held", nowMs + heldResultMs, { key: command.commandId });
    if (decision.entries.length === 0) return;
    const expiryMs = this.#rows.nextExpiryMs();
    if (expiryMs !== this.#alarms.due("expiry")) this.#alarms.set("expiry", expiryMs);
  }
}

/** A command that settled twice would break the ledger: the key makes that impossible. */
const keyOf = (event: EndpointEvent): string | null =>
  event.kind === "endpoint.command" && event.state === "settled" ? `settled:${event.commandId}` : null;
