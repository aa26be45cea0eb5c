// Speculation in the router: each task that nobody asked for is followed from its reservation to its end, and nobody hears of it.

import { isOpen } from "../src/core/router.ts";
import type { PlannedDecision, RouterEffect } from "../src/core/router-plan.ts";
import {
  answeredDecision,
  endedDecision,
  mootDecision,
  offeredDecision,
  openedDecision,
  pausedDecision,
} from "../src/core/router-speculation.ts";
import {
  closeAs,
  figuresOf,
  isOpenSpeculation,
  isPeoples,
  mootBy,
  noLongerAllowed,
  onOffer,
  onReport,
  overWaste,
} from "../src/core/speculation.ts";
import { type Env, readConfig } from "../src/env.ts";
import { logFault } from "../src/log-fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { OfferView } from "../src/protocol/offer.ts";
import type { Policy } from "../src/protocol/policy.ts";
import type { RouterRpc } from "../src/protocol/rpc.ts";
import type { Speculation } from "../src/protocol/speculation.ts";
import type { Report } from "../src/protocol/task.ts";
import type { ThreadRow } from "../src/protocol/thread.ts";
import { policiesInForce } from "../src/storage/policies.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";
import type { RouterSpeculations } from "../src/storage/router-speculations.ts";
import { withTimeout } from "../src/timeout.ts";

const shown = 100;
const readTimeoutMs = 5_000;
/** Rows of a thread that one look reads. */
const readRows = 200;

export class RouterSpeculation {
  readonly #storage: DurableObjectStorage;
  readonly #env: Env;
  readonly #ledger: RouterLedger;
  readonly #rows: RouterSpeculations;
  readonly #onChange: () => void;

  constructor(storage: DurableObjectStorage, env: Env, ledger: RouterLedger, onChange: () => void) {
    this.#storage = storage;
    this.#env = env;
    this.#ledger = ledger;
    this.#rows = ledger.speculations;
    this.#onChange = onChange;
    ledger.hooks.push({
      decided: (decision, nowMs) => this.#decided(decision, nowMs),
      effectEnded: ({ effect }, end, nowMs) => this.#effectEnded(effect, "failure" in end ? end.failure : null, nowMs),
    });
  }

  get busy(): boolean {
    return this.#rows.open().length > 0;
  }

  /** Inside the transaction of a decision: one starts, was taken over by a person, or ends because of another task. */
  #decided({ speculation, adopted, replaced = [] }: PlannedDecision, nowMs: number): void {
    if (speculation !== undefined) {
      this.#rows.put(speculation);
      this.#log(speculation, "reserve", speculation.reservedCalls, nowMs);
      this.#ledger.alarms.setEarlier("speculation", nowMs + limits.speculationWatchMs);
    }
    if (adopted !== undefined) this.#close(adopted, "adopted", "somebody asked for it", nowMs);
    for (const taskId of replaced) this.#close(taskId, "moot", "somebody asked for it and has a task of their own", nowMs);
  }

  /** What can never be offered is discarded. */
  #effectEnded(effect: RouterEffect, failure: string | null, nowMs: number): void {
    if (effect.kind === "offer" && failure !== null)
      this.#close(effect.input.offer.from.taskId, "discarded", `it could not be offered: ${failure}`, nowMs);
  }

  #close(taskId: string, outcome: Speculation["outcome"], why: string, nowMs: number): void {
    const row = this.#rows.get(taskId);
    if (row !== null) this.#save(row, closeAs(row, outcome, why, nowMs), nowMs);
  }

  /** Inside the transaction of a report. True when it is of a task that nobody asked for: then nothing of it is said. */
  reported(report: Report, nowMs: number): boolean {
    const row = this.#rows.get(report.taskId);
    if (row === null) return false;
    if (report.offer !== undefined && report.offer === row.offerId) {
      this.#ledger.alarms.setEarlier("speculation", nowMs);
      return true;
    }
    const { agentName, model } = readConfig(this.#env);
    const step = onReport(row, report, model.worker.price);
    this.#save(row, step.row, nowMs);
    if (isPeoples(row)) return false;
    if (step.row.outcome === row.outcome) return true;
    const hops = this.#ledger.store.task(row.taskId)?.hops ?? 0;
    const decision = step.offer ? offeredDecision(step.row, report, hops, this.#turn) : endedDecision(step, report, agentName, this.#turn);
    const offer = decision.effects.find((effect) => effect.kind === "offer")?.input.offer;
    if (offer !== undefined)
      this.#rows.put({
        ...step.row,
        ...{ offerId: offer.outbound.id, offerText: offer.outbound.text },
        ...(offer.draft ? { draft: true } : {}),
      });
    this.#ledger.commit(decision, nowMs);
    return true;
  }

  get #turn(): number {
    return this.#ledger.store.meta().turn;
  }

  #log(row: Speculation, phase: "reserve" | "settle" | "outcome", calls: number, nowMs: number): void {
    const { taskId, policy, outcome, why } = row;
    const event = { kind: "router.speculation" as const, taskId, policyId: policy.id, phase, calls, outcome, why };
    this.#ledger.log.append(event, nowMs, `speculation:${taskId}:${phase === "outcome" ? outcome : phase}`);
  }

  #save(before: Speculation, after: Speculation, nowMs: number): void {
    if (after === before) return;
    this.#rows.put(after);
    if (before.spent === null && after.spent !== null) this.#log(after, "settle", after.spent.calls, nowMs);
    if (before.outcome !== after.outcome) this.#log(after, "outcome", 0, nowMs);
    const why = overWaste(this.#rows.view(nowMs).rows, after.policy, nowMs);
    if (why === null || !this.#rows.pause(after.policy, why)) return;
    const { id: policyId, version } = after.policy;
    this.#ledger.log.append({ kind: "router.speculation_paused", policyId, version, why }, nowMs);
    this.#ledger.commit(pausedDecision(after, why, this.#turn, nowMs), nowMs);
  }

  /** The `speculation` deadline: whether anybody still needs what is open, and whether it is still allowed. */
  async wake(nowMs: number): Promise<number | undefined> {
    const open = this.#rows.open();
    if (open.length === 0) return undefined;
    const policies = await policiesInForce(this.#env.DB, nowMs);
    for (const row of open) {
      const thread = await this.#threadOf(row);
      const offer = await this.#offerOf(row);
      this.#storage.transactionSync(() => this.#look(row.taskId, policies, { thread, offer }, Date.now()));
    }
    this.#onChange();
    const isRunning = this.#rows.open().some(({ outcome }) => outcome === "running");
    return nowMs + (isRunning ? limits.speculationWatchMs : limits.offerWatchMs);
  }

  /** A thread that does not answer is asked again at the next look. */
  async #threadOf({ threadId, seq }: Speculation): Promise<ThreadRow[]> {
    try {
      const read = this.#env.THREAD.getByName(threadId).read({ afterSeq: seq, limit: readRows });
      return (await withTimeout(read, readTimeoutMs, threadId)).rows;
    } catch (error) {
      logFault("router.speculation", error, { thread: threadId });
      return [];
    }
  }

  async #offerOf({ threadId, offerId }: Speculation): Promise<OfferView | null> {
    if (offerId === null) return null;
    try {
      return await withTimeout(this.#env.THREAD.getByName(threadId).offered({ outboundId: offerId }), readTimeoutMs, threadId);
    } catch (error) {
      logFault("router.speculation", error, { offer: offerId });
      return null;
    }
  }

  #look(
    taskId: string,
    policies: readonly Policy[],
    { thread, offer }: { thread: readonly ThreadRow[]; offer: OfferView | null },
    nowMs: number,
  ): void {
    const row = this.#rows.get(taskId);
    if (row === null || !isOpenSpeculation(row)) return;
    const { agentName } = readConfig(this.#env);
    const said = thread.find((each) => each.kind === "outbound" && each.outbound.id === row.offerId);
    const answered = offer === null ? null : onOffer(row, offer.state, said?.kind === "outbound" ? said.outbound.text : null, nowMs);
    const task = this.#ledger.store.task(taskId);
    if (answered !== null) {
      this.#save(row, answered, nowMs);
      const opened = offer !== null && isPeoples(answered) && openedDecision(answered, offer, task, agentName, this.#turn, nowMs);
      this.#ledger.commit(opened || answeredDecision(answered, agentName, this.#turn), nowMs);
      return;
    }
    const lost = row.outcome === "running" && task !== null && !isOpen(task) ? "it could not be started" : null;
    const why = mootBy(row, thread) ?? noLongerAllowed(policies, row) ?? lost;
    if (why === null) return;
    const after = closeAs(row, "moot", why, nowMs);
    this.#save(row, after, nowMs);
    this.#ledger.commit(mootDecision(after, agentName, this.#turn), nowMs);
  }

  async answer(): ReturnType<RouterRpc["speculation"]> {
    return { figures: figuresOf(this.#rows.view(Date.now()), Date.now()), recent: this.#rows.recent(shown) };
  }
}
