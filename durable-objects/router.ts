// The router: one long-lived mind that sees every thread, decides, dispatches and speaks to people. It has no execution tool.
import { DurableObject } from "cloudflare:workers";
import { atLeast, authorityOf } from "../src/core/authority.ts";
import { isComplete, routerMessagesAt } from "../src/core/replay.ts";
import { arrivals, tooManyHops } from "../src/core/router.ts";
import { answerQuestion, recordByGate } from "../src/core/router-answers.ts";
import { threadEntry } from "../src/core/router-memory.ts";
import { routerRequest } from "../src/core/router-prompt.ts";
import { planReport } from "../src/core/router-reports.ts";
import { type Env, readConfig } from "../src/env.ts";
import { createModel } from "../src/llm/registry.ts";
import { requestBytes } from "../src/llm/request-bytes.ts";
import type { Logged, RouterEvent } from "../src/protocol/events.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Replayed, RouterRpc } from "../src/protocol/rpc.ts";
import { AlarmMux } from "../src/storage/alarm-mux.ts";
import { EventLog } from "../src/storage/event-log.ts";
import { RouterActs } from "../src/storage/router-acts.ts";
import { readDays } from "../src/storage/router-days.ts";
import { isAskedFor } from "../src/storage/router-inbox.ts";
import { type RouterDeadline, RouterLedger } from "../src/storage/router-ledger.ts";
import { RouterMemory } from "../src/storage/router-memory.ts";
import { RouterSchedules } from "../src/storage/router-schedules.ts";
import { routerTables } from "../src/storage/router-schema.ts";
import { RouterSpeculations } from "../src/storage/router-speculations.ts";
import { RouterStore } from "../src/storage/router-store.ts";
import { openTables } from "../src/storage/tables.ts";
import { WakeList } from "../src/storage/wake-list.ts";
import { RouterClock } from "./router-clock.ts";
import { RouterEffects } from "./router-effects.ts";
import { RouterSpeculation } from "./router-speculation.ts";
import { RouterTurns } from "./router-turns.ts";

const pruneMs = 24 * 60 * 60_000;

type Rpc<M extends keyof RouterRpc> = Parameters<RouterRpc[M]>[0];

export class Router extends DurableObject<Env> implements RouterRpc {
  readonly #store: RouterStore;
  readonly #log: EventLog<RouterEvent>;
  readonly #alarms: AlarmMux<RouterDeadline>;
  readonly #ledger: RouterLedger;
  readonly #effects: RouterEffects;
  readonly #turns: RouterTurns;
  readonly #clock: RouterClock;
  readonly #speculation: RouterSpeculation;
  readonly #wakeList: WakeList;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    openTables(ctx.storage, routerTables);
    this.#store = new RouterStore(ctx.storage.sql);
    this.#log = new EventLog(ctx.storage.sql, {
      indexed: isAskedFor(this.#store.inbox),
      stretch: (name) => this.#store.inbox.stretch(name),
    });
    this.#alarms = new AlarmMux(ctx.storage, {
      turn: async () => this.#turns.wake(Date.now()),
      effects: async () => this.#effects.wake(Date.now()),
      schedule: async () => this.#clock.wake(Date.now()),
      speculation: () => this.#speculation.wake(Date.now()),
      prune: async () => (this.#store.prune(Date.now() - limits.dedupeMs) ? Date.now() + pruneMs : undefined),
    });
    this.#ledger = new RouterLedger(
      this.#store,
      this.#log,
      this.#alarms,
      new RouterMemory(ctx.storage.sql),
      new RouterSchedules(ctx.storage.sql),
      new RouterSpeculations(ctx.storage.sql),
      new RouterActs(ctx.storage.sql),
    );
    this.#speculation = new RouterSpeculation(ctx.storage, env, this.#ledger, () => this.#kick());
    this.#clock = new RouterClock(ctx.storage, this.#ledger, () => this.#kick());
    this.#effects = new RouterEffects(ctx.storage, env, this.#ledger, () => this.#kick());
    this.#turns = new RouterTurns(ctx.storage, env, this.#ledger, this.#effects, createModel(readConfig(env).model.router));
    this.#wakeList = new WakeList(env.DB, "router", ctx.id.name ?? "router");
    // Deadlines are rows; should their alarm be lost, whatever touches this object brings it back.
    void this.#alarms.restore();
  }

  async deliver(input: Rpc<"deliver">): Promise<{ throughSeq: number }> {
    const nowMs = Date.now();
    this.ctx.storage.transactionSync(() => {
      const { releasedBy, again } = input;
      for (const arrival of arrivals(input, this.#store.cutOf(input.threadId))) {
        if (arrival.what === "passed") {
          this.#ledger.passed([{ id: arrival.triggerId }], input.tasks.at(-1) ?? "", nowMs);
          continue;
        }
        const { item } = arrival;
        const { id: triggerId, threadId, seq, lane } = item;
        if (!this.#store.inbox.takes(triggerId, { releasedBy, again })) continue;
        const asked = again === undefined ? {} : { again };
        const ord = this.#log.append({ kind: "router.inbox", triggerId, threadId, threadSeq: seq, lane, ...asked }, nowMs);
        this.#store.inbox.enter(item, ord, nowMs, again ?? releasedBy);
        this.#ledger.memory.put(threadEntry(item, nowMs));
        if (arrival.what === "record") this.#ledger.commit(recordByGate(item, this.#store.meta().turn, releasedBy ?? ""), nowMs);
        if (arrival.what === "too_many_hops") this.#ledger.giveUp(item, tooManyHops, nowMs, true);
      }
      // Settings may be right by now: with something new it is worth a try.
      const meta = this.#store.meta();
      if (meta.lastRetry === "never") this.#store.setMeta({ ...meta, retryAtMs: 0 });
      this.#armTurn(nowMs);
    });
    this.#kick();
    return { throughSeq: Math.max(0, ...input.rows.map(({ row }) => row.seq)) };
  }

  async moved(input: Rpc<"moved">): Promise<void> {
    this.#store.moved(input.threadId, input.headSeq);
  }

  async report(input: Rpc<"report">): Promise<void> {
    const nowMs = Date.now();
    this.ctx.storage.transactionSync(() => {
      if (this.#log.byKey(input.id) !== null) return;
      const ord = this.#log.append({ kind: "router.report", report: input }, nowMs, input.id);
      const plan = planReport(input, this.#store.task(input.taskId), this.#store.tasks(), this.#store.meta().turn);
      this.#ledger.setTask(plan.task);
      const unasked = this.#speculation.reported(input, nowMs);
      if (plan.queue !== null && !unasked) this.#store.inbox.enter(plan.queue, ord, nowMs);
      this.#clock.reported(input, nowMs);
      if (plan.decision !== null && !unasked) this.#ledger.commit(plan.decision, nowMs);
      this.#armTurn(nowMs);
    });
    this.#kick();
  }

  async follow({ taskId, threadId, follows }: Rpc<"follow">): Promise<void> {
    const task = this.#store.task(taskId);
    if (task === null || threadId === task.threadId) return;
    const others = task.threads.filter((each) => each !== threadId);
    this.#store.setTask({ ...task, threads: follows ? [...others, threadId] : others });
  }

  async machine(input: Rpc<"machine">): Promise<void> {
    const { endpointId, ...state } = input;
    this.#store.setMachine({ id: endpointId, ...state, seenMs: Date.now() });
  }

  async answer(input: Rpc<"answer">): Promise<{ ok: boolean }> {
    const known = this.#store.question(input.id);
    if (known === null || !atLeast(authorityOf(input.by), "member")) return { ok: false };
    // [RC1] Repeated it is the same answer; another one came too late, and its words went nowhere.
    if (known.answer !== null) return { ok: known.answer === input.text };
    const nowMs = Date.now();
    this.ctx.storage.transactionSync(() => {
      this.#store.setAnswered(input.id, input.text);
      this.#ledger.commit(answerQuestion(known.question, input.by, input.text, this.#store.meta().turn), nowMs);
    });
    this.#kick();
    return { ok: true };
  }

  async days(input: Rpc<"days">): ReturnType<RouterRpc["days"]> {
    return readDays(this.ctx.storage.sql, input);
  }

  async speculation(): ReturnType<RouterRpc["speculation"]> {
    return this.#speculation.answer();
  }

  async schedules(): ReturnType<RouterRpc["schedules"]> {
    return { zone: readConfig(this.env).timeZone, schedules: this.#clock.lines() };
  }

  async setSchedule(input: Rpc<"setSchedule">): ReturnType<RouterRpc["setSchedule"]> {
    return this.#clock.set(input, readConfig(this.env).timeZone, Date.now());
  }

  async changeSchedule(input: Rpc<"changeSchedule">): ReturnType<RouterRpc["changeSchedule"]> {
    return this.#clock.change(input.id, input.change, Date.now());
  }

  async overview(): ReturnType<RouterRpc["overview"]> {
    const meta = this.#store.meta();
    const open = this.#store.tasks().filter((task) => task.endedMs === null);
    const { turn, modelNote, context } = meta;
    const acts = this.#ledger.acts.sum(Date.now());
    return { tasks: open.map((task) => task.id), pending: this.#store.inbox.queuedCount(), turn, modelNote, context, acts };
  }

  async search({ query, limit }: Rpc<"search">): ReturnType<RouterRpc["search"]> {
    const { hits, total } = this.#ledger.memory.find({ query, page: 1 }, { lane: "all" }, limit);
    return { hits: hits.map(({ id, kind, title, body, tail, atMs }) => ({ id, kind, title, text: body || tail, atMs })), total };
  }

  async facts(input: Rpc<"facts">): ReturnType<RouterRpc["facts"]> {
    return this.#ledger.facts(input);
  }

  async forget({ id, by }: Rpc<"forget">): ReturnType<RouterRpc["forget"]> {
    return this.ctx.storage.transactionSync(() => this.#ledger.forgetFor(id, by, Date.now()));
  }

  async recall(input: Rpc<"recall">): ReturnType<RouterRpc["recall"]> {
    return this.#ledger.recall(input.id);
  }

  /** [L2] Steps are counted over all lanes, as the log has their answers. */
  async replay({ step }: Rpc<"replay">): Promise<Replayed | null> {
    const asked = this.#log.nth("router.model", "$.phase", "settle", step)?.event;
    if (asked?.kind !== "router.model") return null;
    const rows = this.#store.segmentOf(asked.lane, asked.turn);
    const messages = routerMessagesAt(rows, asked.turn, asked.step);
    if (messages === null) return null;
    const { agentName, model } = readConfig(this.env);
    const bytes = await requestBytes(model.router, asked.model, routerRequest(agentName, asked.lane, messages));
    const ofTurn = rows.flatMap((row) => (row.turn === asked.turn ? [row.message] : [])).filter((message) => messages.includes(message));
    return { step, model: asked.model, bytes, complete: isComplete(ofTurn) };
  }

  async events(input: Rpc<"events">): Promise<Logged[]> {
    return this.#log.after(input.afterSeq, input.limit, [], input.about ?? "");
  }

  async poke(): Promise<void> {
    await this.#alarms.run(Date.now);
    this.#kick();
  }

  override async alarm(): Promise<void> {
    await this.#alarms.run(Date.now);
    await this.#reportWake();
  }

  #armTurn(nowMs: number): void {
    if (this.#store.inbox.queuedCount() > 0) this.#alarms.setEarlier("turn", nowMs + limits.takeOverMs);
    this.#alarms.setEarlier("prune", nowMs + pruneMs);
  }

  /** Effects first: a follow-up that queued while its dispatch was decided passes through. */
  #kick(): void {
    this.#effects.kick();
    this.#turns.kick();
    this.ctx.waitUntil(this.#reportWake());
  }

  async #reportWake(): Promise<void> {
    // Nothing is left to carry out: the router may sleep now, and not after its fallback.
    if (this.#store.nextEffectDueMs() === null) this.#alarms.clear("effects");
    const busy =
      this.#turns.busy || this.#speculation.busy || this.#store.inbox.queuedCount() > 0 || this.#store.nextEffectDueMs() !== null;
    await this.#wakeList.report(busy ? this.#alarms.nextMs() : this.#ledger.schedules.nextMs(), !busy);
  }
}
