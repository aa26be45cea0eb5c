// The two loops of a worker session over its rows: one takes steps, the other carries effects out. Both may be started again at any time.
import { isPlatformHiccup, retryAtMs } from "../src/core/alarms.ts";
import { fixedTokens } from "../src/core/token-rate.ts";
import { withCard } from "../src/core/worker-card.ts";
import { compact, isLong } from "../src/core/worker-compact.ts";
import { workerRequest } from "../src/core/worker-prompt.ts";
import { decideReply } from "../src/core/worker-reply.ts";
import { beginStep, callAgain, callFailed, nextMove, pauseTask, tellOverdue } from "../src/core/worker-session.ts";
import type { Change, TaskState } from "../src/core/worker-state.ts";
import { type Config, type Env, readConfig } from "../src/env.ts";
import { faultPoint } from "../src/fault-point.ts";
import { logFault } from "../src/log-fault.ts";
import type { TaskEvent } from "../src/protocol/events.ts";
import { messageOf } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Profile } from "../src/protocol/profile.ts";
import type { Replayed } from "../src/protocol/rpc.ts";
import { AlarmMux } from "../src/storage/alarm-mux.ts";
import { EventLog } from "../src/storage/event-log.ts";
import { profilesInForce } from "../src/storage/profiles.ts";
import { Pump } from "../src/storage/pump.ts";
import { openTables } from "../src/storage/tables.ts";
import { WorkerStore, workerTables } from "../src/storage/worker-store.ts";
import { commandFor } from "../src/tools/on-endpoint.ts";
import { WorkerEffects } from "./worker-effects.ts";
import { type Answer, askWorkerModel, faultOf, replayStep, unkept, WorkerModels } from "./worker-model.ts";

export class WorkerLoop {
  readonly log: EventLog<TaskEvent>;
  readonly store: WorkerStore;
  readonly alarms: AlarmMux<"loop" | "effects">;
  readonly #ctx: DurableObjectState;
  readonly #config: Config;
  readonly #db: D1Database;
  readonly #models: WorkerModels;
  readonly #effects: WorkerEffects;
  readonly #steps = new Pump(
    () => this.#takeSteps(),
    (error) => this.#stumbled("loop", error),
  );
  readonly #sends = new Pump(
    () => this.#sendEffects(),
    (error) => this.#stumbled("effects", error),
  );
  /** The lease of the model call that this instance has out. */
  #held: number | null = null;
  /** Ends the wait for that call. */
  #giveUp: (() => void) | null = null;
  /** Profiles that the team saved, as last read. */
  #profiles: readonly Profile[] = [];
  #stumbles = 0;

  constructor(ctx: DurableObjectState, env: Env, name: string) {
    this.#ctx = ctx;
    this.#config = readConfig(env);
    this.#db = env.DB;
    this.#models = new WorkerModels(this.#config);
    openTables(ctx.storage, workerTables);
    this.log = new EventLog<TaskEvent>(ctx.storage.sql);
    this.store = new WorkerStore(ctx.storage.sql, this.log);
    this.#effects = new WorkerEffects({
      name,
      env,
      store: this.store,
      decide: (decision) => this.decide(decision),
      step: () => void this.#steps.kick(),
      fault: () => this.fault("worker.effect.applied"),
    });
    this.alarms = new AlarmMux(ctx.storage, {
      loop: () => this.#beat(),
      effects: async () => {
        void this.#sends.kick();
        return Date.now() + limits.takeOverMs;
      },
    });
    // Whoever was here before is gone: what it left is taken up by whatever wakes this object.
    if (this.alarms.nextMs() !== null) this.kick();
  }

  /** Makes one decision on the rows as they are now and commits all that it changes. Null changes nothing. */
  decide(decision: (nowMs: number) => Change | null): void {
    const nowMs = Date.now();
    try {
      this.#ctx.storage.transactionSync(() => this.#commit(decision(nowMs), nowMs));
    } catch (error) {
      this.store.inbox.rolledBack();
      throw error;
    }
  }

  #commit(change: Change | null, nowMs: number): void {
    if (change === null) return void this.store.inbox.enter([], nowMs);
    this.store.putCommands(change.commands);
    this.store.save(withCard(change, this.store.openCommands(), nowMs), nowMs);
    this.#arm(nowMs);
  }

  /** Goes on with whatever is due. Harmless at any time. */
  kick(): void {
    // An interrupt or a stop made the call that is out void: nobody waits for it.
    if (this.#held !== null && this.store.task()?.lease.epoch !== this.#held) this.#giveUp?.();
    void this.#steps.kick();
    void this.#sends.kick();
  }

  fault(point: Parameters<typeof faultPoint>[1]): Promise<void> {
    return faultPoint(this.#config.faultUrl, point);
  }

  #arm(nowMs: number): void {
    const task = this.store.task();
    this.alarms.setAbout("loop", task === null ? null : this.#loopDueMs(task, nowMs));
    const effectMs = this.store.nextEffectMs();
    this.alarms.setAbout("effects", effectMs !== null && effectMs <= nowMs ? nowMs + limits.takeOverMs : effectMs);
  }

  #loopDueMs(task: TaskState, nowMs: number): number | null {
    const move = nextMove(task, this.store.inbox.pending(), this.store.openCommands(), nowMs);
    if (move.move === "sleep") return move.untilMs;
    // While this instance has the call out, its heartbeat looks after it.
    const beats = move.move === "call" && task.lease.epoch === this.#held;
    return (beats ? this.alarms.due("loop") : null) ?? nowMs + limits.takeOverMs;
  }

  /** The heartbeat of a model call that is out; without one, the loop goes on. */
  async #beat(): Promise<number> {
    const nowMs = Date.now();
    const task = this.store.task();
    if (task === null || task.lease.epoch !== this.#held) void this.#steps.kick();
    else if (task.lease.untilMs < nowMs + limits.leaseMs / 2)
      this.store.putTask({ ...task, lease: { ...task.lease, untilMs: nowMs + limits.leaseMs } });
    return nowMs + limits.heartbeatMs;
  }

  #stumbled(kind: "loop" | "effects", error: unknown): void {
    logFault(`worker-session.${kind}`, error, { object: this.#ctx.id.name });
    if (!isPlatformHiccup(messageOf(error))) this.#stumbles += 1;
    this.alarms.set(kind, retryAtMs(Date.now(), this.#stumbles));
  }

  async #takeSteps(): Promise<void> {
    for (;;) {
      const nowMs = Date.now();
      const task = this.store.task();
      if (task === null) return;
      const facts = { agentName: this.#config.agentName, model: this.#models.of(task.profile).name, nowMs };
      const pending = this.store.inbox.pending();
      const move = nextMove(task, pending, this.store.openCommands(), nowMs);
      switch (move.move) {
        case "sleep":
          this.#ctx.storage.transactionSync(() => this.#arm(nowMs));
          void this.#sends.kick();
          return;
        case "overdue":
          this.decide(() => tellOverdue(task, nowMs));
          break;
        case "pause":
          this.decide(() => pauseTask(task, nowMs));
          break;
        case "begin":
          if (isLong(task, this.#estimated(task, this.store.transcript().tokens))) this.decide(() => this.#compact(task));
          this.decide(() => beginStep(this.store.task() ?? task, pending, facts));
          await this.#callModel();
          break;
        case "call": {
          // Nobody here has that call out and nobody planned it: it was lost with an earlier instance.
          const lost = task.open.kind === "calling" && task.open.retryAtMs === null;
          this.decide(() => callAgain(task, { lost, ...facts }));
          await this.#callModel();
          break;
        }
      }
    }
  }

  /** Of a request with a transcript of so many tokens. */
  #estimated = ({ profile }: TaskState, tokens: number): number => fixedTokens(workerRequest(this.#config.agentName, profile, [])) + tokens;

  #compact(task: TaskState): Change | null {
    const { store } = this;
    return compact(task, { rows: store.transcriptRows(), commands: store.allCommands(), notes: store.notes(), head: store.head() });
  }

  async #callModel(): Promise<void> {
    const task = this.store.task();
    if (task?.open.kind !== "calling" || task.mode.mode !== "working") return;
    const epoch = task.lease.epoch;
    const { step } = task.open;
    this.#held = epoch;
    const { promise: unwanted, resolve } = Promise.withResolvers<void>();
    this.#giveUp = resolve;
    void this.#sends.kick();
    const startedMs = Date.now();
    await this.fault("worker.model.called");
    this.#profiles = await profilesInForce(this.#db, Date.now());
    const { messages, tokens } = this.store.transcript();
    const answer = await askWorkerModel(this.#config, this.#models.of(task.profile), { profile: task.profile, messages, unwanted });
    await this.fault("worker.model.answered");
    this.#held = null;
    this.#giveUp = null;
    const asked = { epoch, step, ms: Date.now() - startedMs, tokens };
    try {
      this.#commitAnswer(answer, asked);
    } catch (error) {
      this.#commitAnswer(unkept(answer, error), asked);
    }
    this.#stumbles = 0;
    await this.fault("worker.step.committed");
    void this.#sends.kick();
  }

  /** [L2] The request of a step, as the model got it. */
  replay(step: number): Promise<Replayed | null> {
    return replayStep(this.#config, this.#models, { store: this.store, log: this.log, step });
  }

  /** [W12] Commits only under the lease that the call was made with. */
  #commitAnswer(answer: Answer, { epoch, step, ms, tokens }: { epoch: number; step: number; ms: number; tokens: number }): void {
    this.decide((nowMs) => {
      const task = this.store.task();
      if (task === null) return null;
      const model = this.#models.of(task.profile).name;
      if (task.open.kind !== "calling" || task.lease.epoch !== epoch) {
        const usage = "reply" in answer ? { usage: answer.reply.usage } : {};
        this.log.append({ kind: "task.model", step, phase: "superseded", model, consumed: [], ms, ...usage }, nowMs);
        return null;
      }
      const open = this.store.openCommands();
      const facts = { model, ms, nowMs, estimatedTokens: this.#estimated(task, tokens) };
      if ("error" in answer) return callFailed(task, faultOf(answer.error), this.store.inbox.unread(), open, facts);
      return decideReply(task, answer.reply, { ...facts, ...this.store.factsOfReply(), profiles: this.#profiles, open, commandFor });
    });
  }

  async #sendEffects(): Promise<void> {
    await this.#effects.sendDue();
    this.#ctx.storage.transactionSync(() => this.#arm(Date.now()));
    await this.#effects.listWake(this.alarms.nextMs());
  }
}
