// The router's clock: what is due becomes a trigger in its thread, and what came of it is followed to the end.
// Schedules live in the router and not in an object of their own: they have no state or socket that it has not, one is made in the
// transaction of the decision that made it, and its alarm is one more deadline. The clock needs no model and waits for no turn.

import { isOpen } from "../src/core/router.ts";
import type { EffectResult, EffectRow, PlannedDecision, RouterEffect } from "../src/core/router-plan.ts";
import { changeSchedule, pausedDecision, runDecision, type ScheduleEdit, setSchedule } from "../src/core/router-schedule.ts";
import {
  afterRun,
  isOver,
  missedByChange,
  planDue,
  runDecided,
  runPassed,
  runSaid,
  scheduleIdOf,
  timeWords,
} from "../src/core/schedule.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Schedule, ScheduleChange, ScheduleLine, ScheduleRun, ScheduleSetting } from "../src/protocol/schedule.ts";
import type { Report } from "../src/protocol/task.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";
import type { RouterSchedules } from "../src/storage/router-schedules.ts";

const shownRuns = 10;
const maxShown = 200;
/** Longer than any message waits to be sent. */
const receiptMs = limits.outboundMaxAgeStructuredMs + 60 * 60_000;

export class RouterClock {
  readonly #rows: RouterSchedules;
  readonly #storage: DurableObjectStorage;
  readonly #ledger: RouterLedger;
  readonly #onDue: () => void;

  constructor(storage: DurableObjectStorage, ledger: RouterLedger, onDue: () => void) {
    this.#storage = storage;
    this.#ledger = ledger;
    this.#onDue = onDue;
    this.#rows = ledger.schedules;
    ledger.hooks.push({
      decided: (decision, nowMs) => this.#decided(decision, nowMs),
      passed: (triggerId, taskId, nowMs) => this.#passed(triggerId, taskId, nowMs),
      effectEnded: (row, end, nowMs) =>
        this.#effectEnded(row, "failure" in end ? end.failure : null, nowMs, "result" in end ? end.result : {}),
    });
  }

  /** The `schedule` deadline. Everything that is due, each schedule in one transaction. */
  wake(nowMs: number): number | undefined {
    for (const schedule of this.#rows.due(nowMs)) this.#storage.transactionSync(() => this.#fire(schedule, nowMs));
    this.#onDue();
    return this.#rows.nextMs() ?? undefined;
  }

  #fire(schedule: Schedule, nowMs: number): void {
    const plan = planDue(schedule, this.#rows.isBusy(schedule.id), nowMs);
    if (plan === null) return;
    this.#rows.put(plan.schedule, nowMs);
    if (plan.receipt !== null) this.#missed(schedule, plan.receipt, nowMs);
    if (plan.run === null) return;
    this.#rows.putRun(plan.run);
    const about = { kind: "router.schedule" as const, scheduleId: schedule.id, name: schedule.name };
    this.#ledger.log.append({ ...about, what: "due", dueMs: plan.run.dueMs, triggerId: plan.run.id }, nowMs, `due:${plan.run.id}`);
    this.#ledger.commit(runDecision(schedule, plan.run, this.#ledger.store.meta().turn), nowMs);
  }

  #missed({ id: scheduleId, name }: Schedule, receipt: ScheduleRun, nowMs: number): void {
    const { missed, detail, dueMs } = receipt;
    this.#rows.putRun(receipt);
    this.#ledger.log.append({ kind: "router.schedule", scheduleId, name, what: "missed", dueMs, missed, detail }, nowMs, receipt.id);
  }

  /** Inside a transaction: a schedule is set or changed. */
  #apply({ schedule, what }: ScheduleEdit, nowMs: number): void {
    const before = this.#rows.get(schedule.id);
    const receipt = before === null ? null : missedByChange(before, nowMs);
    if (before !== null && receipt !== null) this.#missed(before, receipt, nowMs);
    this.#rows.put(schedule, nowMs);
    const about = { kind: "router.schedule" as const, scheduleId: schedule.id, name: schedule.name };
    this.#ledger.log.append(
      { ...about, what, detail: timeWords(schedule), ...(schedule.nextMs === null ? {} : { dueMs: schedule.nextMs }) },
      nowMs,
    );
    this.#arm();
  }

  #arm(): void {
    this.#ledger.alarms.set("schedule", this.#rows.nextMs());
  }

  /** Inside the transaction of a decision: of the schedule tool, or on the trigger of a run. */
  #decided(decision: PlannedDecision, nowMs: number): void {
    if (decision.schedule !== undefined) this.#apply(decision.schedule, nowMs);
    for (const id of decision.settles) {
      const run = this.#rows.run(id);
      if (run !== null) this.#follow(run, runDecided(run, decision), nowMs);
    }
  }

  /** From the console: a schedule is set, on behalf of a person. */
  set(input: ScheduleSetting, zone: string, nowMs: number): { id: string } | { problem: string } {
    const id = scheduleIdOf(input.thread.threadId, input.name);
    const edit =
      this.#rows.get(id) === null && this.#rows.list().length >= limits.maxSchedules
        ? { problem: `There are ${limits.maxSchedules} schedules already: cancel one first.` }
        : setSchedule(this.#rows.get(id), input, zone, nowMs);
    if ("problem" in edit) return edit;
    this.#storage.transactionSync(() => this.#apply(edit, nowMs));
    this.#onDue();
    return { id };
  }

  /** From the console: pauses, resumes or cancels. */
  change(id: string, change: ScheduleChange, nowMs: number): { ok: true } | { problem: string } {
    const known = this.#rows.get(id);
    if (known === null || known.state === "cancelled") return { problem: "There is no such schedule any more." };
    const edit = changeSchedule(known, change, nowMs);
    if ("problem" in edit) return edit;
    this.#storage.transactionSync(() => this.#apply(edit, nowMs));
    this.#onDue();
    return { ok: true };
  }

  /** Inside the transaction of a report. */
  reported(report: Report, nowMs: number): void {
    const run = this.#rows.runOfTask(report.taskId);
    if (run === null || run.execution !== "running" || isOpen(report)) return;
    const execution = report.status === "done" ? "done" : "failed";
    this.#follow(run, { ...run, execution, delivery: "pending", detail: report.text.slice(0, 300) }, nowMs);
  }

  /** Inside the transaction of an effect's end: a trigger that could not be placed, a message that was or was not. */
  #effectEnded({ effect, id, decisionId }: EffectRow, failure: string | null, nowMs: number, result: EffectResult): void {
    const { sent = "unknown", follower } = result;
    if (effect.kind === "append" && follower !== undefined) this.#passed(effect.input.trigger.id, follower, nowMs);
    if (effect.kind === "append" && failure !== null) {
      const run = this.#rows.run(effect.input.trigger.id);
      if (run !== null) this.#follow(run, { ...run, execution: "failed", detail: failure }, nowMs);
    }
    if (effect.kind === "receipt") {
      const run = this.#rows.run(effect.input.runId);
      if (run !== null) this.#follow(run, runSaid(run, failure === null ? sent : "unknown"), nowMs);
    }
    if (effect.kind !== "post") return;
    const { triggerId, taskId } = effect.input;
    const run =
      (triggerId === undefined ? null : this.#rows.run(triggerId)) ?? (taskId === undefined ? null : this.#rows.runOfTask(taskId));
    // An acknowledgement is not yet the answer.
    if (run === null || run.delivery !== "pending" || run.execution === "running") return;
    this.#follow(run, { ...run, delivery: failure === null ? "posted" : "failed", detail: failure ?? run.detail }, nowMs);
    if (failure !== null) return;
    const input = { runId: run.id, outboundId: effect.input.id, untilMs: nowMs + receiptMs };
    const receipt: RouterEffect = { kind: "receipt", threadId: effect.threadId, input };
    const about = { id: `${id}/receipt`, decisionId, chain: `${id}/receipt`, order: 0, effect: receipt };
    this.#ledger.store.addEffects([{ ...about, state: "pending", attempts: 0, dueMs: nowMs, result: {} }], nowMs);
    this.#ledger.alarms.setEarlier("effects", nowMs);
  }

  /** Inside a transaction: what is due reached a task with its thread, and no decision here. */
  #passed(triggerId: string, taskId: string, nowMs: number): void {
    const run = this.#rows.run(triggerId);
    if (run === null) return;
    const task = this.#ledger.store.task(taskId);
    this.#follow(run, runPassed(run, taskId, task !== null && isOpen(task)), nowMs);
  }

  #follow(before: ScheduleRun, run: ScheduleRun, nowMs: number): void {
    this.#rows.putRun(run);
    const schedule = this.#rows.get(run.scheduleId);
    if (schedule === null || isOver(before) || !isOver(run)) return;
    const after = afterRun(schedule, run);
    this.#rows.put(after.schedule, nowMs);
    if (!after.paused) return;
    this.#ledger.log.append(
      { kind: "router.schedule", scheduleId: schedule.id, name: schedule.name, what: "paused", detail: after.schedule.why },
      nowMs,
    );
    this.#ledger.commit(pausedDecision(after.schedule, run, this.#ledger.store.meta().turn, nowMs), nowMs);
    this.#arm();
  }

  lines(): ScheduleLine[] {
    return this.#rows
      .all(maxShown)
      .map((schedule) => ({ ...schedule, words: timeWords(schedule), runs: this.#rows.runs(schedule.id, shownRuns) }));
  }
}
