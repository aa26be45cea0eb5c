// Carries out what the router decided: chains of effects, in order within a decision, independent of each other.
import { isPlatformHiccup, retryAtMs } from "../src/core/alarms.ts";
import { makeId } from "../src/core/ids.ts";
import { isOpen } from "../src/core/router.ts";
import { type EffectResult, type EffectRow, flips, type PlannedDecision, type RouterEffect, startedBy } from "../src/core/router-plan.ts";
import { type Env, readConfig } from "../src/env.ts";
import { faultPoint } from "../src/fault-point.ts";
import { logFault } from "../src/log-fault.ts";
import { asFault, messageOf } from "../src/protocol/fault.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";
import { withTimeout } from "../src/timeout.ts";
import { applyEffect } from "./router-apply.ts";

const callTimeoutMs = 30_000;
/** The board is a projection: it is told again with the next change. */
const maxBoardAttempts = 5;
const fallbackMs = 5_000;

export class RouterEffects {
  readonly #storage: DurableObjectStorage;
  readonly #env: Env;
  readonly #ledger: RouterLedger;
  readonly #onApplied: () => void;
  readonly #running = new Map<string, Promise<void>>();

  constructor(storage: DurableObjectStorage, env: Env, ledger: RouterLedger, onApplied: () => void) {
    this.#storage = storage;
    this.#env = env;
    this.#ledger = ledger;
    this.#onApplied = onApplied;
  }

  /** Starts every chain that has work and does not run. */
  kick(): void {
    for (const chain of this.#ledger.store.pendingChains()) {
      if (this.#running.has(chain)) continue;
      const run = this.#chain(chain).finally(() => this.#running.delete(chain));
      this.#running.set(chain, run);
    }
  }

  /** The `effects` deadline: kicks, and says when to look again. */
  wake(nowMs: number): number | undefined {
    this.kick();
    const next = this.#ledger.store.nextEffectDueMs();
    return next === null ? undefined : Math.max(next, nowMs + fallbackMs);
  }

  /** Threads whose dispatch is committed and not applied yet. */
  held(): Set<string> {
    return new Set(this.#ledger.store.pendingEffects().flatMap(({ effect }) => (flips(effect) ? [effect.threadId] : [])));
  }

  /** Waits until committed dispatches are applied, but not for ever: one that cannot be applied holds back only its thread. */
  async dispatched(maxWaitMs: number): Promise<void> {
    this.kick();
    const chains = new Set(this.#ledger.store.pendingEffects().flatMap((row) => (flips(row.effect) ? [row.chain] : [])));
    const running = [...chains].flatMap((chain) => this.#running.get(chain) ?? []);
    if (running.length === 0) return;
    await withTimeout(Promise.all(running), maxWaitMs, "a dispatch").catch(() => undefined);
  }

  async #chain(chain: string): Promise<void> {
    const { store, alarms } = this.#ledger;
    for (;;) {
      const row = store.nextEffect(chain);
      if (row === null || row.dueMs > Date.now()) return;
      try {
        const result = await withTimeout(applyEffect(this.#env, this.#ledger, row), callTimeoutMs, row.effect.kind);
        // Who dies here repeats it.
        await faultPoint(readConfig(this.#env).faultUrl, "router.effect.applied");
        this.#storage.transactionSync(() => this.#done(row, result, Date.now()));
      } catch (error) {
        const nowMs = Date.now();
        this.#storage.transactionSync(() => this.#failed(row, error, nowMs));
        const next = store.nextEffectDueMs();
        if (next !== null) alarms.setEarlier("effects", next);
      }
      this.#onApplied();
    }
  }

  #done(row: EffectRow, result: EffectResult, nowMs: number): void {
    const { store, log } = this.#ledger;
    store.setEffect(row.id, "done", { result });
    for (const hook of this.#ledger.hooks) hook.effectEnded(row, { result }, nowMs);
    log.append(
      { kind: "router.effect", effectId: row.id, decisionId: row.decisionId, effect: row.effect.kind, state: "done" },
      nowMs,
      `effect:${row.id}`,
    );
    const { effect } = row;
    if ((effect.kind === "subscribe" || effect.kind === "open_topic") && result.cutSeq !== undefined) {
      store.setCut(effect.threadId, result.cutSeq);
      this.#pass(effect.threadId, result.fromSeq ?? 0, result.cutSeq, effect.input.taskId, nowMs);
    }
    if (effect.kind === "start" || effect.kind === "adopt") {
      const task = store.task(effect.taskId);
      if (task !== null && isOpen(task))
        this.#ledger.setTask({
          ...task,
          tainted: task.tainted || result.tainted === true,
          status: task.status === "queued" ? "running" : task.status,
        });
    }
  }

  /** The rows that the worker gets instead of a decision here. */
  #pass(threadId: string, fromSeq: number, cutSeq: number, taskId: string, nowMs: number): void {
    const { store, log } = this.#ledger;
    const rows = store.inbox.queuedInThread(threadId).filter((item) => item.seq >= fromSeq && item.seq <= cutSeq);
    if (rows.length === 0) return;
    const seq = log.append({ kind: "router.passed", threadId, triggerIds: rows.map((item) => item.id), taskId }, nowMs);
    for (const item of rows) store.inbox.close(item.id, "passed", seq);
    this.#ledger.passed(rows, taskId, nowMs);
  }

  #failed(row: EffectRow, error: unknown, nowMs: number): void {
    const { store, log } = this.#ledger;
    const reason = messageOf(error);
    const attempts = isPlatformHiccup(reason) ? row.attempts : row.attempts + 1;
    const hopeless = asFault(error)?.retry === "never" || (row.effect.kind === "board" && attempts >= maxBoardAttempts);
    if (!hopeless) {
      if (row.effect.kind !== "receipt") logFault("router.effect", error, { effect: row.id, attempts });
      store.setEffect(row.id, "pending", { attempts, dueMs: retryAtMs(nowMs, attempts) });
      return;
    }
    store.setEffect(row.id, "failed", { attempts });
    log.append(
      { kind: "router.effect", effectId: row.id, decisionId: row.decisionId, effect: row.effect.kind, state: "failed", reason },
      nowMs,
      `effect:${row.id}`,
    );
    for (const hook of this.#ledger.hooks) hook.effectEnded(row, { failure: reason }, nowMs);
    this.#afterFailure(row, reason, nowMs);
  }

  /** What can never be applied is decided again, or shown to people: it is not dropped in silence. */
  #afterFailure(row: EffectRow, reason: string, nowMs: number): void {
    const { effect } = row;
    switch (effect.kind) {
      case "board":
      case "offer":
      case "withdraw":
      case "append":
      case "receipt":
        return;
      case "policy":
        this.#reopen(row, null, `Rules and policies could not be changed: ${reason}`, nowMs);
        return;
      case "post":
      case "unsubscribe":
        this.#tellTeam(
          row,
          `A ${effect.kind === "post" ? "message" : "change"} for ${effect.threadId} could not be made: ${reason}`,
          nowMs,
        );
        return;
      case "tell":
        this.#reopen(row, effect.input.id, `The facts did not reach ${effect.taskId}: ${reason}`, nowMs);
        return;
      case "decide_offer":
        this.#reopen(row, null, `${effect.input.outboundId} could not be decided: ${reason}`, nowMs);
        return;
      case "accept":
        this.#reopen(row, null, `${effect.taskId} could not be judged: ${reason}`, nowMs);
        return;
      case "reopen":
        this.#undoDispatch(row, reason, nowMs);
        this.#reopen(row, null, `${effect.taskId} could not be opened again: ${reason}`, nowMs);
        return;
      case "cancel":
        this.#reopen(row, null, `${effect.taskId} could not be stopped: ${reason}`, nowMs);
        return;
      case "open_topic":
      case "attach_topic":
      case "subscribe":
      case "start":
      case "adopt":
        this.#undoDispatch(row, reason, nowMs);
        this.#reopen(row, null, `The work could not be started: ${reason}`, nowMs);
    }
  }

  #undoDispatch(row: EffectRow, reason: string, nowMs: number): void {
    const { store, log } = this.#ledger;
    const own = store.chain(row.chain).filter((each) => each.decisionId === row.decisionId);
    for (const each of own) {
      if (each.state !== "pending") continue;
      store.setEffect(each.id, "failed", {});
      const { id: effectId, decisionId, effect } = each;
      const about = { effectId, decisionId, effect: effect.kind, reason: `an earlier effect failed: ${reason}` };
      log.append({ kind: "router.effect", ...about, state: "failed" }, nowMs, `effect:${effectId}`);
    }
    const taskId = own.flatMap((each) => startedBy(each.effect) ?? [])[0];
    if (taskId === undefined) return;
    const task = store.task(taskId);
    if (task !== null) this.#ledger.setTask({ ...task, status: "failed", line: reason.slice(0, 160), updatedMs: nowMs, endedMs: nowMs });
    const undo = own.flatMap((each): RouterEffect[] =>
      each.state === "done" && (each.effect.kind === "subscribe" || each.effect.kind === "open_topic")
        ? [{ kind: "unsubscribe", threadId: each.effect.threadId, input: { taskId, reason: "the task could not be started" } }]
        : [],
    );
    this.#byCode(row, { id: makeId("dec", "undo", row.decisionId), reason: `undone: ${reason}`, effects: undo, taskId }, nowMs);
  }

  /** The settled triggers wait again: all of the decision, or only the one that this effect was for. */
  #reopen(row: EffectRow, only: string | null, problem: string, nowMs: number): void {
    const { store, log } = this.#ledger;
    const decided = log.byKey(row.decisionId)?.event;
    if (decided?.kind !== "router.decision") return;
    if (decided.by === "code") {
      this.#tellTeam(row, problem, nowMs);
      return;
    }
    const ids = only !== null && decided.settles.includes(only) ? [only] : decided.settles;
    for (const id of ids) store.inbox.reopen(id, problem);
    for (const item of store.inbox.queuedOf(ids).values()) {
      if (item.kind === "trigger")
        log.append({ kind: "router.inbox", triggerId: item.id, threadId: item.threadId, threadSeq: item.seq, lane: item.lane }, nowMs);
      this.#ledger.undecided({ ...item, attempts: item.attempts - 1 }, problem, nowMs);
    }
  }

  #tellTeam(row: EffectRow, text: string, nowMs: number): void {
    const id = makeId("dec", "fault", row.id);
    this.#byCode(row, { id, reason: text, effects: [], notice: { id, atMs: nowMs, kind: "fault", text } }, nowMs);
  }

  #byCode(row: EffectRow, part: Pick<PlannedDecision, "id" | "reason" | "effects"> & Partial<PlannedDecision>, nowMs: number): void {
    const decided = this.#ledger.log.byKey(row.decisionId)?.event;
    const known = decided?.kind === "router.decision" ? decided : null;
    this.#ledger.commit(
      {
        turn: known?.turn ?? 0,
        lane: known?.lane ?? "public",
        tool: "ask_human",
        by: "code",
        settles: [],
        authority: known?.authority ?? "public",
        ...part,
      },
      nowMs,
    );
  }
}
