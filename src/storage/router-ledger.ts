// A decision enters the log together with what it closes and the effects that carry it out: all of it, or nothing.
import { nobody } from "../core/audience.ts";
import { ownerOf } from "../core/ids.ts";
import type { ContextFigures, InboxItem, KnownTask } from "../core/router.ts";
import {
  addFigures,
  decisionEntry,
  type Fact,
  type Forgotten,
  factAudience,
  factLine,
  factText,
  mayReplace,
  taskEntry,
  withoutWords,
} from "../core/router-memory.ts";
import { type EffectResult, type EffectRow, effectRows, isAct, type PlannedDecision } from "../core/router-plan.ts";
import { ruleWords } from "../core/router-policy-words.ts";
import { escalate, relayUndecided } from "../core/router-reports.ts";
import { scheduleAudience } from "../core/router-schedule.ts";
import { timeWords } from "../core/schedule.ts";
import type { FactLine, MemoryAnswer } from "../protocol/console.ts";
import type { RouterEvent } from "../protocol/events.ts";
import type { FaultWords } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { Lane, Principal } from "../protocol/principal.ts";
import type { AlarmMux } from "./alarm-mux.ts";
import type { EventLog } from "./event-log.ts";
import type { RouterActs } from "./router-acts.ts";
import type { RouterMemory } from "./router-memory.ts";
import type { RouterSchedules } from "./router-schedules.ts";
import type { RouterSpeculations } from "./router-speculations.ts";
import type { RouterStore } from "./router-store.ts";

/** How long after a commit its effects are looked for, if nothing carried them out at once. */
const effectsFallbackMs = 5_000;

/** Runs of a schedule that a look at it shows. */
const shownRuns = 5;

export type RouterDeadline = "turn" | "effects" | "schedule" | "speculation" | "prune";

type LedgerHooks = {
  decided: (decision: PlannedDecision, nowMs: number) => void;
  /** A trigger that waited here, or came late, is its thread's task's. */
  passed?: (triggerId: string, taskId: string, nowMs: number) => void;
  effectEnded: (row: EffectRow, end: { result: EffectResult } | { failure: string }, nowMs: number) => void;
};

export class RouterLedger {
  readonly store: RouterStore;
  readonly log: EventLog<RouterEvent>;
  readonly alarms: AlarmMux<RouterDeadline>;
  readonly memory: RouterMemory;
  readonly schedules: RouterSchedules;
  readonly speculations: RouterSpeculations;
  readonly acts: RouterActs;
  /** Who else changes rows in the transaction of a decision, or of an effect's end. */
  readonly hooks: LedgerHooks[] = [];

  constructor(
    store: RouterStore,
    log: EventLog<RouterEvent>,
    alarms: AlarmMux<RouterDeadline>,
    memory: RouterMemory,
    schedules: RouterSchedules,
    speculations: RouterSpeculations,
    acts: RouterActs,
  ) {
    this.speculations = speculations;
    this.acts = acts;
    this.memory = memory;
    this.schedules = schedules;
    this.store = store;
    this.log = log;
    this.alarms = alarms;
  }

  /** Inside a transaction. */
  passed(triggers: readonly { id: string }[], taskId: string, nowMs: number): void {
    for (const hook of this.hooks) for (const { id } of triggers) hook.passed?.(id, taskId, nowMs);
  }

  /** Inside a transaction. A decision that is known already changes nothing. */
  commit(decision: PlannedDecision, nowMs: number): void {
    if (this.log.byKey(decision.id) !== null) return;
    const rows = effectRows(decision, this.store.nextOrder(decision.chain ?? decision.id), nowMs);
    const event: Extract<RouterEvent, { kind: "router.decision" }> = {
      kind: "router.decision",
      decisionId: decision.id,
      turn: decision.turn,
      lane: decision.lane,
      tool: decision.tool,
      settles: decision.settles,
      reason: decision.reason,
      authority: decision.authority,
      by: decision.by,
      ...(decision.taskId === undefined ? {} : { taskId: decision.taskId }),
      ...(decision.threadId === undefined ? {} : { threadId: decision.threadId }),
      ...(decision.policy === undefined ? {} : { policy: decision.policy }),
      ...(decision.unasked ? { unasked: true as const } : {}),
      effects: rows.map((row) => row.id),
    };
    const seq = this.log.append(event, nowMs, decision.id);
    if (isAct(decision) && decision.settles.length > 0) this.acts.count(decision.unasked === true, nowMs);
    for (const id of decision.settles) this.store.inbox.close(id, "settled", seq);
    if (decision.newTask) this.setTask(decision.newTask, goalOf(decision));
    const entry = decisionEntry(event, this.#audienceOf(event), nowMs);
    if (entry !== null && !this.#mayRepeat(decision)) this.memory.put(entry);
    if (decision.fact) this.#remember(decision.id, decision.fact, nowMs);
    if (decision.forgets) this.forget(decision.forgets, nowMs, decision.id);
    if (decision.proposal) this.store.setProposal(decision.proposal);
    if (decision.question) this.store.addQuestion(decision.question);
    this.store.addEffects(rows, nowMs);
    for (const hook of this.hooks) hook.decided(decision, nowMs);
    this.alarms.setEarlier("effects", nowMs + effectsFallbackMs);
  }

  /** [RD17] It was decided by a turn that may have read what was forgotten since. */
  #mayRepeat = ({ by, turn }: PlannedDecision): boolean => by === "model" && turn <= (this.store.meta().forgotTurn ?? 0);

  /** What is known of a task changed; it is found by its words as well. */
  setTask(task: KnownTask, goal: string | null = null): void {
    this.store.setTask(task);
    this.memory.put(taskEntry(task, goal));
  }

  /** What the router itself holds, for whoever recalls it; null when it holds nothing of this id. */
  recall(id: string): { text: string; tainting: boolean; audience?: string } | null {
    if (id.startsWith("fct_")) {
      const fact = this.memory.fact(id);
      return fact === null ? null : { text: factText(fact), tainting: false, audience: factAudience(fact) };
    }
    if (id.startsWith("sch_")) return this.#recallSchedule(id);
    if (id.startsWith("rul_")) return this.#recallProposal(id);
    const decided = id.startsWith("dec_") ? this.log.byKey(id) : null;
    if (decided?.event.kind !== "router.decision") return null;
    const { kind: _, decisionId, effects, ...rest } = decided.event;
    // What was decided in the public lane may repeat what it answered.
    return {
      text: JSON.stringify({ decision: decisionId, at: new Date(decided.atMs).toISOString(), ...rest, effects: effects.length }),
      tainting: decided.event.lane === "public",
      audience: this.memory.audienceOf(id) || this.#audienceOf(decided.event),
    };
  }

  /** [A9] What an owner was shown is heard where it was shown. */
  #recallProposal(id: string): { text: string; tainting: boolean; audience: string } | null {
    const proposal = this.store.proposal(id);
    if (proposal === null) return null;
    const { rule, change, threadId, atMs, saved } = proposal;
    const what = rule === undefined ? { policy: change } : { rule: rule.id, says: ruleWords(rule) };
    const text = JSON.stringify({ proposed: id, ...what, thread: threadId, at: new Date(atMs).toISOString(), saved });
    return { text, tainting: false, audience: this.memory.audienceOf(threadId) || nobody };
  }

  #recallSchedule(id: string): { text: string; tainting: boolean; audience: string } | null {
    const schedule = this.schedules.get(id);
    if (schedule === null) return null;
    const { name, text, zone, thread, by, state, why, nextMs } = schedule;
    const next = nextMs === null ? {} : { next: new Date(nextMs).toISOString() };
    const runs = this.schedules.runs(id, shownRuns).map(({ dueMs, execution, delivery, taskId, missed, detail }) => ({
      due: new Date(dueMs).toISOString(),
      ...{ execution, delivery, task: taskId, missed, detail },
    }));
    const head = { schedule: id, name, when: timeWords(schedule), zone, thread: thread.threadId, by: by.name, state, why, ...next };
    return { text: JSON.stringify({ ...head, text, runs }), tainting: false, audience: scheduleAudience(schedule) };
  }

  /** [A9] A decision is of the conversation whose items it settled: a topic, where its words may go, has no entry of its own. */
  #audienceOf({ settles, threadId = "", taskId = "" }: Extract<RouterEvent, { kind: "router.decision" }>): string {
    const [first = ""] = settles;
    const task = this.store.task(ownerOf(first, "tsk") ?? "") ?? this.store.task(taskId);
    return this.memory.audienceOf(ownerOf(first, "thr") ?? "") || task?.audience || this.memory.audienceOf(threadId) || nobody;
  }

  /** What the inlined context was worth in a turn: one event, and the sum. */
  measure(
    { turn, lane, inlined, used, reads }: { turn: number; lane: Lane; inlined: string[]; used: ReadonlySet<string>; reads: number },
    before: ContextFigures,
    nowMs: number,
  ): ContextFigures {
    this.log.append({ kind: "router.context", turn, lane, inlined, used: [...used], reads }, nowMs);
    for (const id of used) if (id.startsWith("fct_")) this.memory.used(id, nowMs);
    return addFigures(before, { inlined: inlined.length, used: used.size, reads });
  }

  #remember(decisionId: string, { fact, replaces: named }: { fact: Fact; replaces: string | null }, nowMs: number): void {
    const old = named === null ? null : this.memory.fact(named);
    const replaces = old !== null && old.forgotten === undefined && mayReplace(old, fact) ? old.id : null;
    this.memory.remember(fact, replaces);
    const { id: factId, triggerId } = fact;
    this.log.append({ kind: "router.fact", factId, decisionId, triggerId, ...(replaces === null ? {} : { replaces }) }, nowMs, factId);
  }

  /** [RD17] Inside a transaction. The words go; the log says who had them forgotten, where and when, and the next turn begins without them. */
  forget({ id: factId, ...of }: { id: string } & Omit<Forgotten, "atMs">, nowMs: number, decisionId?: string): void {
    const about = { ...of, ...(decisionId === undefined ? {} : { decisionId }) };
    if (!this.memory.forget(factId, { ...about, atMs: nowMs })) return;
    this.log.append({ kind: "router.forgot", factId, ...about }, nowMs, `forgot:${factId}`);
    this.store.setMeta(withoutWords(this.store.meta()));
  }

  /** For operators: see RouterRpc. */
  facts(input: { query: string; limit: number } | { id: string }): MemoryAnswer {
    if ("query" in input) {
      const { facts, total } = this.memory.list(input.query, input.limit);
      return { facts: facts.map(factLine), total };
    }
    const fact = this.memory.fact(input.id);
    return fact === null ? { facts: [], total: 0 } : { facts: [factLine(fact)], total: 1 };
  }

  /** [RD17] Inside a transaction: somebody has a fact forgotten in the console. */
  forgetFor(id: string, { role, id: who, name }: Principal, nowMs: number): { fact: FactLine } | { problem: string } | null {
    const known = this.memory.fact(id);
    if (known === null) return null;
    if (known.forgotten === undefined && known.replacedBy !== undefined)
      return { problem: `This counts no more: ${known.replacedBy} took its place, and both go when that one is forgotten.` };
    this.forget({ id, by: { role, id: who, name } }, nowMs);
    return { fact: factLine(this.memory.fact(id) ?? known) };
  }

  /** A turn left an item undecided: it goes into the next, or after the last attempt to people. */
  undecided(
    item: InboxItem,
    problem: string,
    nowMs: number,
    why: FaultWords = { message: `I could not decide this in ${limits.maxDecisionAttempts} turns.` },
  ): void {
    const attempts = item.attempts + 1;
    if (attempts < limits.maxDecisionAttempts) this.store.inbox.setAttempt(item.id, attempts, problem);
    else this.giveUp(item, why, nowMs);
  }

  giveUp(item: InboxItem, why: FaultWords, nowMs: number, quiet = false): void {
    const turn = this.store.meta().turn;
    if (item.kind === "report") {
      this.commit(relayUndecided(item, this.store.task(item.report.taskId), turn), nowMs);
      return;
    }
    const decision = escalate(item, why, turn, nowMs, quiet);
    this.commit(decision, nowMs);
    this.log.append({ kind: "router.escalated", ids: [item.id], question: why.detail ?? why.message }, nowMs, `escalated:${item.id}`);
  }
}

const goalOf = (decision: PlannedDecision): string | null =>
  decision.effects.flatMap((effect) => (effect.kind === "start" ? [effect.input.goal] : []))[0] ?? null;
