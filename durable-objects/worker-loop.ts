// The two loops of a worker session over its rows: one takes steps, the other carries effects out. Both may be started again at any time.
import { isPlatformHiccup, retryAtMs } from "../src/core/alarms.ts";
import { withCard } from "../src/core/worker-card.ts";
import { workerOutputTokens, workerPrompt } from "../src/core/worker-prompt.ts";
import { decideReply, readsAnswered } from "../src/core/worker-reply.ts";
import { beginStep, callAgain, callFailed, nextMove, pauseTask } from "../src/core/worker-session.ts";
import type { Change, TaskState } from "../src/core/worker-state.ts";
import { type Config, type Env, readConfig } from "../src/env.ts";
import { faultPoint } from "../src/fault-point.ts";
import { createModel } from "../src/llm/registry.ts";
import type { TaskEvent } from "../src/protocol/events.ts";
import { Fault } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Model, ModelReply } from "../src/protocol/model.ts";
import { workerTools } from "../src/protocol/worker-tools.ts";
import { AlarmMux, Pump } from "../src/storage/alarm-mux.ts";
import { EventLog } from "../src/storage/event-log.ts";
import { migrated } from "../src/storage/migrations.ts";
import { withTimeout } from "../src/storage/recall.ts";
import { WakeList } from "../src/storage/wake-list.ts";
import { type StoredEffect, WorkerStore } from "../src/storage/worker-store.ts";
import { commandFor } from "../src/tools/on-endpoint.ts";
import { answerRead, applyEffect } from "./worker-effects.ts";

/** When work that was to begin at once did not begin, the alarm begins it. */
const fallbackMs = 5_000;
/** The provider's own timeout comes first; this one is for a provider that ignores it. */
const callGraceMs = 5_000;

type Answer = { reply: ModelReply } | { error: unknown };

export class WorkerLoop {
  readonly log: EventLog<TaskEvent>;
  readonly store: WorkerStore;
  readonly alarms: AlarmMux;
  readonly #ctx: DurableObjectState;
  readonly #env: Env;
  readonly #config: Config;
  readonly #model: Model;
  readonly #wakeList: WakeList;
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
  #stumbles = 0;
  #listedMs: number | null = null;

  constructor(ctx: DurableObjectState, env: Env, name: string) {
    this.#ctx = ctx;
    this.#env = env;
    this.#config = readConfig(env);
    this.#model = createModel(this.#config.model.worker);
    this.#wakeList = new WakeList(env.DB, "worker", name);
    this.log = new EventLog<TaskEvent>(ctx.storage.sql);
    this.store = new WorkerStore(ctx.storage.sql, this.log);
    this.alarms = new AlarmMux(ctx.storage, {
      loop: () => this.#beat(),
      effects: async () => {
        void this.#sends.kick();
        return Date.now() + fallbackMs;
      },
    });
    // Whoever was here before is gone: what it left is taken up by whatever wakes this object.
    if (this.alarms.nextMs() !== null) this.kick();
  }

  /** Makes one decision on the rows as they are now and commits all that it changes. Null changes nothing. */
  decide(decision: (nowMs: number) => Change | null): void {
    const nowMs = Date.now();
    this.#ctx.storage.transactionSync(() => {
      const change = decision(nowMs);
      if (change === null) return;
      this.store.putCommands(change.commands);
      this.store.save(withCard(change, this.store.openCommands(), nowMs), nowMs);
      this.#arm(nowMs);
    });
  }

  /** Goes on with whatever is due. Harmless at any time. */
  kick(): void {
    void this.#steps.kick();
    void this.#sends.kick();
  }

  fault(point: Parameters<typeof faultPoint>[1]): Promise<void> {
    return faultPoint(this.#config.faultUrl, point);
  }

  #arm(nowMs: number): void {
    const task = this.store.task();
    const loopMs = task === null ? null : this.#loopDueMs(task, nowMs);
    if (loopMs === null) this.alarms.clear("loop");
    else this.alarms.set("loop", "loop", loopMs);
    const effectMs = this.store.nextEffectMs();
    if (effectMs === null) this.alarms.clear("effects");
    else this.alarms.set("effects", "effects", effectMs > nowMs ? effectMs : nowMs + fallbackMs);
  }

  #loopDueMs(task: TaskState, nowMs: number): number | null {
    const move = nextMove(task, this.store.pending(), this.store.openCommands(), nowMs);
    if (move.move === "sleep") return move.untilMs;
    return nowMs + (move.move === "call" ? limits.heartbeatMs : fallbackMs);
  }

  /** The heartbeat of a model call that is out; without one, the loop goes on. */
  async #beat(): Promise<number> {
    const nowMs = Date.now();
    const task = this.store.task();
    if (task !== null && task.lease.epoch === this.#held)
      this.store.putTask({ ...task, lease: { ...task.lease, untilMs: nowMs + limits.leaseMs } });
    else void this.#steps.kick();
    return nowMs + limits.heartbeatMs;
  }

  #stumbled(id: "loop" | "effects", error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    console.error(JSON.stringify({ at: `worker-session.${id}`, object: this.#ctx.id.name, error: message }));
    if (!isPlatformHiccup(message)) this.#stumbles += 1;
    this.alarms.set(id, id, retryAtMs(Date.now(), this.#stumbles));
  }

  async #takeSteps(): Promise<void> {
    for (;;) {
      const nowMs = Date.now();
      const task = this.store.task();
      if (task === null) return;
      const facts = { agentName: this.#config.agentName, model: this.#model.name, nowMs };
      const pending = this.store.pending();
      const move = nextMove(task, pending, this.store.openCommands(), nowMs);
      switch (move.move) {
        case "sleep":
          this.#ctx.storage.transactionSync(() => this.#arm(nowMs));
          void this.#sends.kick();
          return;
        case "pause":
          this.decide(() => pauseTask(task, nowMs));
          break;
        case "begin":
          this.decide(() => beginStep(task, pending, facts));
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

  async #callModel(): Promise<void> {
    const task = this.store.task();
    if (task?.open.kind !== "calling" || task.mode.mode !== "working") return;
    const epoch = task.lease.epoch;
    this.#held = epoch;
    void this.#sends.kick();
    const startedMs = Date.now();
    await this.fault("worker.model.called");
    const answer = await this.#ask();
    await this.fault("worker.model.answered");
    this.#held = null;
    this.#commitAnswer(answer, epoch, Date.now() - startedMs);
    this.#stumbles = 0;
    await this.fault("worker.step.committed");
    void this.#sends.kick();
  }

  async #ask(): Promise<Answer> {
    const { timeoutMs } = this.#config.model.worker;
    const request = {
      system: workerPrompt(this.#config.agentName),
      messages: this.store.transcript(),
      tools: workerTools,
      maxOutputTokens: workerOutputTokens,
    };
    try {
      return { reply: await withTimeout(this.#model.call(request, { timeoutMs }), timeoutMs + callGraceMs) };
    } catch (error) {
      return { error };
    }
  }

  /** [W12] Commits only under the lease that the call was made with. */
  #commitAnswer(answer: Answer, epoch: number, ms: number): void {
    this.decide((nowMs) => {
      const task = this.store.task();
      if (task === null) return null;
      const model = this.#model.name;
      if (task.open.kind !== "calling" || task.lease.epoch !== epoch) {
        this.log.append({ kind: "task.model", step: task.steps, phase: "superseded", model, consumed: [], ms }, nowMs);
        return null;
      }
      const pending = this.store.pending();
      const open = this.store.openCommands();
      if ("error" in answer) return callFailed(task, faultOf(answer.error), pending, open, { model, ms, nowMs });
      return decideReply(task, answer.reply, {
        model,
        ms,
        nowMs,
        pending,
        open,
        commandOf: (commandId) => this.store.command(commandId),
        ownsArtifact: (artifactId) => this.store.ownsArtifact(artifactId),
        commandFor,
      });
    });
  }

  async #sendEffects(): Promise<void> {
    await Promise.all(this.store.dueEffects(Date.now()).map((group) => this.#sendGroup(group)));
    this.#ctx.storage.transactionSync(() => this.#arm(Date.now()));
    await this.#listWake();
  }

  async #sendGroup(group: StoredEffect[]): Promise<void> {
    for (const stored of group) {
      const task = this.store.task();
      if (task === null) return;
      try {
        if (stored.effect.effect === "read") await this.#read(stored, stored.effect);
        else {
          await applyEffect(this.#env, stored.effect, task);
          await this.fault("worker.effect.applied");
          this.store.effectDone(stored);
        }
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        console.error(JSON.stringify({ at: "worker-session.effect", effect: stored.id, attempts: stored.attempts, error: message }));
        this.store.effectFailed(stored, retryAtMs(Date.now(), stored.attempts));
        return;
      }
    }
  }

  async #read(stored: StoredEffect, { step, callId, read }: Extract<StoredEffect["effect"], { effect: "read" }>): Promise<void> {
    const { output, tainting } = await answerRead(this.#env, read);
    await this.fault("worker.effect.applied");
    this.decide(() => {
      const own = read.read === "recall" && this.store.ownsArtifact(read.id);
      this.store.answer(step, callId, output, tainting && !own);
      this.store.effectDone(stored);
      const task = this.store.task();
      return task?.open.kind === "reading" && task.open.step === step ? readsAnswered(task, this.store.calls(step)) : null;
    });
    void this.#steps.kick();
  }

  /** A wake far away is listed anew, with its time: else the cron would look in every other minute until then. */
  async #listWake(): Promise<void> {
    const nextMs = this.alarms.nextMs();
    try {
      await migrated(this.#env.DB);
    } catch (error) {
      console.error(JSON.stringify({ at: "worker-session.wake-list", error: String(error) }));
      return;
    }
    if (nextMs !== null && nextMs > Date.now() + limits.wakeOverdueMs && nextMs !== this.#listedMs) {
      await this.#wakeList.report(null);
      this.#listedMs = nextMs;
    }
    await this.#wakeList.report(nextMs);
  }
}

const faultOf = (error: unknown): Pick<Fault, "message" | "retry" | "retryAfterMs"> =>
  error instanceof Fault
    ? error
    : { message: error instanceof Error ? error.message : String(error), retry: "later", retryAfterMs: undefined };
