// The router's model: one call of a turn, and, when it fails, a look at what is wrong: everything, the past, or the items at hand.
import { isPlatformHiccup } from "../src/core/alarms.ts";
import type { InboxItem } from "../src/core/router.ts";
import { type FaultPlan, type Found, isToAsk, planLostTurn, planModelFault, probe, routerFault } from "../src/core/router-faults.ts";
import { routerRequest } from "../src/core/router-prompt.ts";
import { type Env, readConfig } from "../src/env.ts";
import { faultPoint } from "../src/fault-point.ts";
import { detailOf, type Fault, type FaultWords, messageOf } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Model, ModelMessage, ModelPiece, ModelReply } from "../src/protocol/model.ts";
import type { Lane } from "../src/protocol/principal.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";

const leaseSlackMs = 30_000;
const probeTimeoutMs = 30_000;

type AskedTurn = { epoch: number; turn: number; lane: Lane; items: ReadonlyMap<string, InboxItem> };
export type Answer = { reply: ModelReply } | { error: unknown };

export class RouterModel {
  readonly #storage: DurableObjectStorage;
  readonly #env: Env;
  readonly #ledger: RouterLedger;
  readonly #model: Model;

  constructor(storage: DurableObjectStorage, env: Env, ledger: RouterLedger, model: Model) {
    this.#storage = storage;
    this.#env = env;
    this.#ledger = ledger;
    this.#model = model;
  }

  about = ({ turn, lane, items }: AskedTurn, step: number) => ({ turn, step, lane, model: this.#model.name, items: [...items.keys()] });

  #mine = (epoch: number): boolean => this.#ledger.store.meta().epoch === epoch;

  /** Null when another loop took over. */
  async ask(turn: AskedTurn, step: number, messages: ModelMessage[], onPiece: (piece: ModelPiece) => void): Promise<Answer | null> {
    const config = readConfig(this.#env);
    const startedMs = Date.now();
    if (!this.#mine(turn.epoch)) return null;
    this.#storage.transactionSync(() => {
      this.#ledger.log.append({ kind: "router.model", ...this.about(turn, step), phase: "reserve" }, startedMs);
      this.begin(turn, step, startedMs + limits.modelCallTimeoutMs + leaseSlackMs);
    });
    await faultPoint(config.faultUrl, "router.model.called");
    try {
      const options = { timeoutMs: limits.modelCallTimeoutMs, onPiece };
      const reply = await this.#model.call(routerRequest(config.agentName, turn.lane, messages), options);
      return { reply: { ...reply, calls: reply.calls.slice(0, limits.maxCallsPerReply) } };
    } catch (error) {
      const failed = { phase: "failed" as const, ms: Date.now() - startedMs, error: detailOf(error) };
      this.#ledger.log.append({ kind: "router.model", ...this.about(turn, step), ...failed }, Date.now());
      return { error };
    }
  }

  /** [RT7] Before anything of a turn, or of its next request, is made: should that be the end of this process, it is known of what. */
  begin({ turn, lane, items }: Pick<AskedTurn, "turn" | "lane" | "items">, step: number, leaseUntilMs: number): void {
    const { store } = this.#ledger;
    store.setMeta({ ...store.meta(), leaseUntilMs, underWay: { turn, step, lane, ids: [...items.keys()] } });
  }

  /** [RT7] The turn that the loop before left under way, because it died or hangs; false when there is none. Who hangs may still say how it ended. */
  lost(died: boolean, nowMs: number): boolean {
    const { store, log } = this.#ledger;
    const { underWay } = store.meta();
    if (underWay === null) return false;
    const { ids, ...about } = underWay;
    const items = [...store.inbox.queuedOf(ids).values()];
    this.#storage.transactionSync(() => {
      const failed = { phase: "failed" as const, error: "lost: it never came to its end" };
      if (died && about.step > 0) log.append({ kind: "router.model", ...about, model: this.#model.name, items: ids, ...failed }, nowMs);
      const why = { message: "My process ends whenever I work on this." };
      this.#settle(planLostTurn(store.meta(), { lane: about.lane, items, nowMs }), items, "The turn never came to its end.", why, nowMs);
    });
    return true;
  }

  #settle(plan: FaultPlan, items: readonly InboxItem[], problem: string, why: FaultWords, nowMs: number): void {
    const { store } = this.#ledger;
    store.setMeta({ ...plan.meta, underWay: null });
    if (!plan.blame) return;
    for (const item of items) {
      store.inbox.countTry(item.id);
      this.#ledger.undecided(item, problem, nowMs, why);
    }
  }

  /** A turn failed: of its items those that are undecided stay, and what they failed of is found out. */
  async failed(turn: AskedTurn, step: number, error: unknown): Promise<void> {
    // The platform's own trouble is neither the model's nor an item's.
    if (isPlatformHiccup(messageOf(error))) throw error;
    const { store } = this.#ledger;
    const fault = routerFault(error);
    const items = [...store.inbox.queuedOf([...turn.items.keys()]).values()];
    const settingsProblem = readConfig(this.#env).model.router.problem;
    const about = { lane: turn.lane, items, later: step > 1, settingsProblem, nowMs: Date.now() };
    const asked = isToAsk(store.meta(), fault, about) ? await this.#find(turn.lane, fault) : { found: null, fault };
    this.#storage.transactionSync(() => {
      if (!this.#mine(turn.epoch)) return;
      const nowMs = Date.now();
      const plan = planModelFault(store.meta(), asked.fault, { ...about, nowMs }, asked.found);
      const fails = (words: string): string => `My model fails whenever I show it this: ${words}`;
      this.#settle(plan, items, fault.message, { message: fails(fault.message), detail: fails(detailOf(fault)) }, nowMs);
    });
  }

  async #find(lane: Lane, fault: Fault): Promise<{ found: Found; fault: Fault }> {
    const { store } = this.#ledger;
    const dead = await this.#probe(lane, []);
    if (dead !== null) return { found: "outage", fault: dead };
    const past = store.transcript(lane, store.meta().segments[lane]).messages;
    return { found: past.length > 0 && (await this.#probe(lane, past)) !== null ? "past" : "items", fault };
  }

  /** The fault of a request in which nothing but `past` can be wrong. */
  async #probe(lane: Lane, past: readonly ModelMessage[]): Promise<Fault | null> {
    const startedMs = Date.now();
    this.#lease(startedMs + probeTimeoutMs);
    const about = { kind: "router.probe" as const, lane, model: this.#model.name, past: past.length };
    try {
      const request = routerRequest(readConfig(this.#env).agentName, lane, [...past, probe]);
      const { usage } = await this.#model.call(request, { timeoutMs: probeTimeoutMs });
      this.#ledger.log.append({ ...about, ms: Date.now() - startedMs, usage }, Date.now());
      return null;
    } catch (error) {
      this.#ledger.log.append({ ...about, ms: Date.now() - startedMs, error: detailOf(error) }, Date.now());
      return routerFault(error);
    }
  }

  #lease(untilMs: number): void {
    this.#ledger.store.setMeta({ ...this.#ledger.store.meta(), leaseUntilMs: untilMs + leaseSlackMs });
  }
}
