// The typed event log: one per object, append-only, read by timeline, audit, replay and the history checker.
// A ledger is a chain of these rows: inbound, outbound, side effects, cost.
import type { CommandResult, CommandState } from "./command.ts";
import type { ModelUsage } from "./model.ts";
import type { Offer, OfferJudge, OfferState } from "./offer.ts";
import type { FollowedPolicy } from "./policy.ts";
import type { Authority, Lane, Principal } from "./principal.ts";
import type { SpeculationOutcome } from "./speculation.ts";
import type { Report, TaskStatus, ThreadNote } from "./task.ts";
import type { OutboundIntent } from "./thread.ts";
import type { Amendment, Trigger, Verdict } from "./trigger.ts";

export type ThreadEvent =
  /** Inbound ledger, opened: durable, will be decided. */
  | { kind: "thread.accepted"; trigger: Trigger; verdict: Verdict; mode: "decide" | "observe"; subscribers: string[] }
  /** Durable too, and a row in its order: an edit or deletion that waits for its original. */
  | { kind: "thread.held"; trigger: Trigger; verdict: Verdict; untilMs: number }
  /** A version of a text that is older than the row `newer`: shown to nobody. */
  | { kind: "thread.stale"; trigger: Trigger; newer: string }
  /** `of`: the delivery that was taken; `by`: what showed that this one, `deliveryId`, is the same. */
  | { kind: "thread.duplicate"; triggerId: string; deliveryId?: string; of?: string; by?: "event id" | "message key" }
  | { kind: "thread.subscribed"; taskId: string; fromSeq: number; cutSeq: number; decisionId: string }
  | { kind: "thread.unsubscribed"; taskId: string; atSeq: number; reason: string }
  | { kind: "thread.topic"; topicThreadId: string; taskId: string; title: string; triggerId: string }
  /** The outbound ledger before its first entry: it waits, and is decided once. */
  | { kind: "thread.offered"; offer: Offer; untilMs: number }
  | {
      kind: "thread.offer_decided";
      outboundId: string;
      state: Exclude<OfferState, "held">;
      by: Principal;
      via: OfferJudge;
      reason: string;
    }
  /** Outbound ledger. */
  | { kind: "thread.outbound"; outbound: OutboundIntent }
  | { kind: "thread.sent"; outboundId: string; providerId: string }
  | { kind: "thread.confirmed"; outboundId: string; providerId: string }
  | { kind: "thread.unsent"; outboundId: string; state: "expired" | "failed" | "unknown"; reason: string }
  /** A worker noted something about this thread. `notes`: the id under which all of them are read. */
  | { kind: "thread.note"; notes: string; note: ThreadNote }
  /** A task gives rows up; `free`: those that no task that got them keeps any more. */
  | { kind: "thread.released"; taskId: string; seqs: number[]; free: number[] }
  /** A person's word on an outcome. `reaction`: given by this sign, on the message `to`. */
  | { kind: "thread.accepted_outcome"; taskId: string; accepted: boolean; by: Principal; reaction?: { sign: string; to: string } }
  /** A person's word on what the router said by itself. */
  | { kind: "thread.marked"; outboundId: string; wrong: boolean; by: Principal };

export type RouterEvent =
  /** `again`: an operator asked for another decision, by this word. */
  | { kind: "router.inbox"; triggerId: string; threadId: string; threadSeq: number; lane: Lane; again?: string }
  | { kind: "router.report"; report: Report }
  /** Cost ledger: reserve, then settle. */
  | {
      kind: "router.model";
      turn: number;
      step: number;
      lane: Lane;
      phase: "reserve" | "settle" | "failed";
      model: string;
      items: string[];
      ms?: number;
      usage?: ModelUsage | null;
      error?: string;
    }
  /** After a failed call: whether the model answers anything, alone and after so many earlier messages. */
  | { kind: "router.probe"; lane: Lane; model: string; past: number; ms: number; usage?: ModelUsage | null; error?: string }
  /** Inbound ledger, closed; the side-effect ledger's intents. */
  | {
      kind: "router.decision";
      decisionId: string;
      turn: number;
      lane: Lane;
      tool: string;
      settles: string[];
      reason: string;
      authority: Authority;
      by: "model" | "code";
      taskId?: string;
      threadId?: string;
      /** The policy that the model says it followed. */
      policy?: FollowedPolicy;
      /** Nobody had asked for anything. */
      unasked?: true;
      effects: string[];
    }
  | { kind: "router.refused"; turn: number; tool: string; settles: string[]; reason: string }
  /** Cost ledger of speculation, apart from people's work: reserve, then settle; and what became of it. */
  | {
      kind: "router.speculation";
      taskId: string;
      policyId: string;
      phase: "reserve" | "settle" | "outcome";
      calls: number;
      outcome: SpeculationOutcome;
      why: string;
    }
  /** A policy wasted too much. */
  | { kind: "router.speculation_paused"; policyId: string; version: number; why: string }
  | { kind: "router.effect"; effectId: string; decisionId: string; effect: string; state: "done" | "failed"; reason?: string }
  /** Rows that a subscriber gets instead. */
  | { kind: "router.passed"; threadId: string; triggerIds: string[]; taskId: string }
  | { kind: "router.escalated"; ids: string[]; question: string }
  /** A fact entered the team's memory. Its words stand in its row alone, where they can be forgotten. */
  | { kind: "router.fact"; factId: string; decisionId: string; triggerId: string; replaces?: string }
  /** A person had a fact forgotten: in a thread by a decision, or in the console. */
  | {
      kind: "router.forgot";
      factId: string;
      by: Pick<Principal, "role" | "id" | "name">;
      decisionId?: string;
      threadId?: string;
      triggerId?: string;
    }
  /** A schedule was set or changed, is due (one run), or was missed (one receipt for `missed` due instants). */
  | {
      kind: "router.schedule";
      scheduleId: string;
      name: string;
      what: "set" | "paused" | "resumed" | "cancelled" | "due" | "missed";
      dueMs?: number;
      triggerId?: string;
      missed?: number;
      detail?: string;
    }
  /** Once a turn: which inlined facts, tasks and machines the decisions named, and how often more had to be read. */
  | { kind: "router.context"; turn: number; lane: Lane; inlined: string[]; used: string[]; reads: number };

export type TaskEvent =
  | {
      kind: "task.started";
      title: string;
      goal: string;
      triggerId: string;
      decisionId: string;
      authority: Authority;
      tainted: boolean;
      machine: string | null;
      threadId: string;
    }
  | {
      kind: "task.inbox";
      itemId: string;
      item: "row" | "result" | "notice" | "child";
      threadId?: string;
      threadSeq?: number;
      tainting: boolean;
    }
  | {
      kind: "task.model";
      step: number;
      phase: "reserve" | "settle" | "failed" | "superseded";
      model: string;
      consumed: string[];
      ms?: number;
      usage?: ModelUsage | null;
      error?: string;
    }
  /** Side-effect ledger. */
  | {
      kind: "task.tool";
      step: number;
      callId: string;
      tool: string;
      phase: "intent" | "done" | "refused";
      commandId?: string;
      detail: string;
    }
  | { kind: "task.report"; report: Report }
  | { kind: "task.status"; from: TaskStatus | "new"; to: TaskStatus; why: string }
  | { kind: "task.cancel"; by: Principal; epoch: number; reason: string }
  /** It came and was not taken: with `task.inbox`, every row that was handed over has one of both. */
  | { kind: "task.rejected"; itemId: string; threadId?: string; threadSeq?: number; reason: string }
  /** It was taken and no step reads it: what it says is known or of no use, for this reason. */
  | { kind: "task.skipped"; itemId: string; reason: string }
  /** The backlog: a message is kept, changed, taken back, moved (before another one, or to the end), or handed over (`now`: a person's word; `next`: the work before it has reported). */
  | {
      kind: "task.backlog";
      itemId: string;
      change: "hold" | "next" | Amendment;
      by?: Principal;
      text?: string;
      before?: string | null;
    }
  /** A person stopped what was under way. `step` is the model call that became void, if one was out. */
  | { kind: "task.interrupted"; by: Principal; step: number | null; commands: string[] }
  /** A step that the model's provider refused was given up; the next one is made without the older part, or without what came last as well. */
  | { kind: "task.left_out"; step: number; what: "older" | "all" }
  | { kind: "task.spawned"; child: string; title: string; profile: string; share: number; allowance: number }
  /** A child's end, with what came back of its share. */
  | { kind: "task.child"; child: string; report: string; kindOfReport: string; returned: number; allowance: number }
  /** Rows of the transcript up to `toRow` were put aside under `segment`; `head` stands for them in each request. */
  | { kind: "task.compacted"; segment: string; fromRow: number; toRow: number; charsBefore: number; charsAfter: number; head?: string }
  | { kind: "task.hand_off"; from: string; to: string; reason: string; summary: string; step: number; count: number }
  | { kind: "task.released"; threadId: string; threadSeqs: number[] }
  /** A speculative task became the one of a person who asked for the same. */
  | { kind: "task.adopted"; by: Principal; threadId: string; decisionId: string }
  /** An ended task goes on. */
  | { kind: "task.reopened"; id: string; by: Principal; text: string };

export type EndpointEvent =
  | { kind: "endpoint.enrolled"; name: string }
  | { kind: "endpoint.connected"; epoch: number; sandbox: string }
  | { kind: "endpoint.disconnected"; epoch: number; code: number; reason: string }
  | { kind: "endpoint.revoked"; by: string }
  /** Side-effect ledger of the machine. */
  | { kind: "endpoint.command"; commandId: string; taskId: string; state: CommandState; what: string; result?: CommandResult }
  | { kind: "endpoint.stop"; commandId: string; why: string };

export type SwitchyardEvent = ThreadEvent | RouterEvent | TaskEvent | EndpointEvent;

/** An event as stored: `seq` grows by one within its object. */
export type Logged<E extends SwitchyardEvent = SwitchyardEvent> = { seq: number; atMs: number; event: E };
