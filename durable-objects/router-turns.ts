// The router's loop: detached, under a heartbeat and a lease. Whoever wakes the object takes over a loop that died.
import { retryAtMs } from "../src/core/alarms.ts";
import { nextTurnMs, type PickedTurn, pickTurn } from "../src/core/router.ts";
import { threadsToTell, waitingWords } from "../src/core/router-faults.ts";
import { observedLine } from "../src/core/router-items.ts";
import { tellWaiting } from "../src/core/router-plan.ts";
import type { Env } from "../src/env.ts";
import { logFault } from "../src/log-fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Model } from "../src/protocol/model.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";
import { withTimeout } from "../src/timeout.ts";
import type { RouterEffects } from "./router-effects.ts";
import type { Observed } from "./router-message.ts";
import { RouterModel } from "./router-model.ts";
import { RouterSteps } from "./router-steps.ts";

const maxDispatchWaitMs = 3_000;
const observeTimeoutMs = 2_000;
const maxObservedThreads = 20;

export class RouterTurns {
  readonly #storage: DurableObjectStorage;
  readonly #env: Env;
  readonly #ledger: RouterLedger;
  readonly #effects: RouterEffects;
  readonly #model: RouterModel;
  readonly #steps: RouterSteps;
  /** The epoch of the loop that lives in this process; a lease of any other process is void, since an object has only one. */
  #alive: number | null = null;

  constructor(storage: DurableObjectStorage, env: Env, ledger: RouterLedger, effects: RouterEffects, model: Model) {
    this.#storage = storage;
    this.#env = env;
    this.#ledger = ledger;
    this.#effects = effects;
    this.#model = new RouterModel(storage, env, ledger, model);
    this.#steps = new RouterSteps(storage, env, ledger, this.#model, effects);
  }

  get busy(): boolean {
    return this.#alive !== null;
  }

  /** Starts the loop, unless one lives that holds its lease. */
  kick(): void {
    const { store, alarms } = this.#ledger;
    const nowMs = Date.now();
    if (this.#alive !== null && nowMs < store.meta().leaseUntilMs) return;
    if (this.#model.lost(this.#alive === null, nowMs)) this.#effects.kick();
    // A loop that finds nothing to do costs rows, and its heartbeat moves the time at which there is something.
    if (this.#pick() === null) return;
    const epoch = store.meta().epoch + 1;
    this.#storage.transactionSync(() => {
      store.setMeta({ ...store.meta(), epoch, leaseUntilMs: nowMs + limits.leaseMs });
      alarms.setEarlier("turn", nowMs + limits.takeOverMs);
    });
    this.#alive = epoch;
    void this.#loop(epoch);
  }

  /** The `turn` deadline: the heartbeat of a living loop, the start of a new one. */
  wake(nowMs: number): number | undefined {
    const lived = this.#alive !== null;
    this.kick();
    if (this.#alive === null) return this.#restUntilMs(nowMs, false);
    return nowMs + (lived ? limits.heartbeatMs : limits.takeOverMs);
  }

  #mine = (epoch: number): boolean => this.#ledger.store.meta().epoch === epoch;

  async #loop(epoch: number): Promise<void> {
    let crashed = false;
    try {
      while (this.#mine(epoch)) {
        this.#ledger.store.inbox.forgetClosed();
        await this.#effects.dispatched(maxDispatchWaitMs);
        const next = this.#pick();
        if (next === null) break;
        const observed = next.lane === "team" ? await this.#observe() : [];
        // What came meanwhile belongs to this turn as well.
        const picked = this.#pick();
        if (picked === null || !this.#mine(epoch)) break;
        await this.#turn(epoch, picked, observed);
      }
    } catch (error) {
      crashed = true;
      logFault("router.turn", error);
    }
    if (this.#alive === epoch) this.#rest(crashed);
  }

  /** [RT7] A turn that fails before its model is called, or after, fails of its items as well. */
  async #turn(epoch: number, picked: PickedTurn, observed: Observed[]): Promise<void> {
    const items = new Map(picked.items.map((item) => [item.id, item]));
    const turn = { epoch, turn: this.#ledger.store.meta().turn + 1, lane: picked.lane, items };
    this.#model.begin(turn, 0, Date.now() + limits.leaseMs);
    try {
      await this.#steps.turn(epoch, picked, observed);
    } catch (error) {
      logFault("router.turn", error);
      await this.#model.failed(turn, 1, error);
    }
  }

  #pick(): PickedTurn | null {
    const { store } = this.#ledger;
    const held = this.#effects.held();
    return pickTurn(store.inbox.queued(held), held, store.meta(), Date.now());
  }

  /** The loop ends: what is left waits for its time, or for the effect that holds it back and kicks us when it is applied. */
  #rest(crashed: boolean): void {
    const { store, alarms } = this.#ledger;
    const nowMs = Date.now();
    this.#alive = null;
    // A turn that was void came to its end as well.
    if (store.meta().underWay !== null) store.setMeta({ ...store.meta(), underWay: null });
    this.#tellWaiting();
    alarms.set("turn", this.#restUntilMs(nowMs, crashed) ?? null);
  }

  #restUntilMs(nowMs: number, crashed: boolean): number | undefined {
    const { store } = this.#ledger;
    const queued = store.inbox.queued();
    if (queued.length === 0) return undefined;
    if (crashed) return retryAtMs(nowMs, 3);
    const nextMs = nextTurnMs(queued, this.#effects.held(), store.meta());
    return Number.isFinite(nextMs) && nextMs > nowMs ? nextMs : nowMs + limits.heartbeatMs;
  }

  /** One line a thread that moved by itself; a thread that does not answer is asked again in the next turn. */
  async #observe(): Promise<Observed[]> {
    const unseen = this.#ledger.store.unseen(maxObservedThreads);
    const answers = await Promise.allSettled(
      unseen.map(async ({ threadId, seenSeq }) => {
        const read = this.#env.THREAD.getByName(threadId).read({ afterSeq: seenSeq, limit: 50, by: "router" });
        const { info, rows } = await withTimeout(read, observeTimeoutMs, threadId);
        return { threadId, headSeq: info.headSeq, seenSeq: rows.at(-1)?.seq ?? info.headSeq, line: observedLine(info, rows) };
      }),
    );
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
  }

  /** During an outage: people of the team who wait hear so, once each thread. */
  #tellWaiting(): void {
    const { store } = this.#ledger;
    const meta = store.meta();
    const { notice } = meta;
    if (notice === null) return;
    const waiting = threadsToTell(store.inbox.queued(), meta.told);
    if (waiting.length === 0) return;
    this.#storage.transactionSync(() => {
      for (const item of waiting) this.#ledger.commit(tellWaiting(item, waitingWords(meta, notice, item), meta.turn), Date.now());
      store.setMeta({ ...meta, told: [...meta.told, ...waiting.map((item) => item.threadId)].slice(-500) });
    });
    this.#effects.kick();
  }
}
