// A decision enters the log together with what it closes and the effects that carry it out: all of it, or nothing.
import type { InboxItem } from "../core/router.ts";
import { effectRows, type PlannedDecision } from "../core/router-plan.ts";
import { escalate, relayUndecided } from "../core/router-reports.ts";
import type { RouterEvent } from "../protocol/events.ts";
import { limits } from "../protocol/limits.ts";
import type { AlarmMux } from "./alarm-mux.ts";
import type { EventLog } from "./event-log.ts";
import type { RouterStore } from "./router-store.ts";

/** How long after a commit its effects are looked for, if nothing carried them out at once. */
const effectsFallbackMs = 5_000;

export class RouterLedger {
  readonly store: RouterStore;
  readonly log: EventLog<RouterEvent>;
  readonly alarms: AlarmMux;

  constructor(store: RouterStore, log: EventLog<RouterEvent>, alarms: AlarmMux) {
    this.store = store;
    this.log = log;
    this.alarms = alarms;
  }

  /** Inside a transaction. A decision that is known already changes nothing. */
  commit(decision: PlannedDecision, nowMs: number): void {
    if (this.log.byKey(decision.id) !== null) return;
    const rows = effectRows(decision, this.store.nextOrder(decision.chain ?? decision.id), nowMs);
    this.log.append(
      {
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
        effects: rows.map((row) => row.id),
      },
      nowMs,
      decision.id,
    );
    for (const id of decision.settles) this.store.close(id, "settled");
    if (decision.newTask) this.store.setTask(decision.newTask);
    if (decision.question) this.store.addQuestion(decision.question);
    this.store.addEffects(rows, nowMs);
    this.alarms.setEarlier("effects", "effects", nowMs + effectsFallbackMs);
  }

  /** A turn left an item undecided: it goes into the next, or after the last attempt to people. */
  undecided(item: InboxItem, problem: string, nowMs: number): void {
    const attempts = item.attempts + 1;
    if (attempts < limits.maxDecisionAttempts) this.store.setAttempt(item.id, attempts, problem);
    else this.giveUp(item, `I could not decide this in ${limits.maxDecisionAttempts} turns.`, nowMs);
  }

  giveUp(item: InboxItem, why: string, nowMs: number, quiet = false): void {
    const turn = this.store.meta().turn;
    if (item.kind === "report") {
      this.commit(relayUndecided(item, this.store.task(item.report.taskId), turn), nowMs);
      return;
    }
    const decision = escalate(item, why, turn, nowMs, quiet);
    this.commit(decision, nowMs);
    this.log.append({ kind: "router.escalated", ids: [item.id], question: decision.reason }, nowMs, `escalated:${item.id}`);
  }
}
