// Whatever speaks by itself speaks where the row that caused it says, however many conversations there are and whichever moved last.
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { childId, makeId, ownerOf, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import type { QueuedTrigger } from "../../src/core/router.ts";
import { answerQuestion } from "../../src/core/router-answers.ts";
import { decideStep } from "../../src/core/router-decide.ts";
import { whereAsked } from "../../src/core/router-destination.ts";
import { endSpeculation } from "../../src/core/router-dispatch.ts";
import { isEarly, type PlannedDecision, postEffect, type RouterEffect, tellWaiting } from "../../src/core/router-plan.ts";
import { escalate, planReport, relayUndecided } from "../../src/core/router-reports.ts";
import { pausedDecision as pausedSchedule, runDecision } from "../../src/core/router-schedule.ts";
import {
  answeredDecision,
  endedDecision,
  mootDecision,
  offeredDecision,
  openedDecision,
  pausedDecision as pausedPolicy,
} from "../../src/core/router-speculation.ts";
import { planDue } from "../../src/core/schedule.ts";
import { newSpeculation } from "../../src/core/speculation.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { Schedule } from "../../src/protocol/schedule.ts";
import type { Speculation } from "../../src/protocol/speculation.ts";
import type { Report } from "../../src/protocol/task.ts";
import { guest, member, owner, queuedReport, queuedTrigger, reportOf, taskOf } from "../support/router-fixtures.ts";

const people: Principal[] = [member, owner, { ...member, id: "prs_other", name: "other" }, guest];
const conversation = fc.record({ who: fc.nat(people.length - 1), issue: fc.option(fc.nat(3)), n: fc.nat(999) });
type Conversation = { who: number; issue: number | null; n: number };

const triggerIn = ({ who, issue, n }: Conversation, outcome: "candidate" | "request" = "request"): QueuedTrigger =>
  queuedTrigger({
    name: `n${n}`,
    by: people[who] ?? member,
    ...(issue === null ? {} : { thread: `${issue}` }),
    outcome,
    addressed: outcome === "request",
  });

function scheduleIn(where: Conversation): Schedule {
  const { trigger } = triggerIn(where);
  const { threadId, source, place, threadKey, threadTitle } = trigger;
  return {
    id: makeId("sch", threadId, "nightly"),
    name: "nightly",
    text: "look",
    when: { kind: "every", everyMs: 60_000, anchorMs: 0 },
    zone: "UTC",
    thread: { threadId, source, place, threadKey, threadTitle },
    by: trigger.principal,
    authority: "member",
    state: "active",
    why: "the reason",
    nextMs: 60_000,
    failures: 3,
    createdMs: 0,
  };
}

function speculationIn(where: Conversation, savedIn: Conversation | null): Speculation {
  const first = triggerIn(where, "candidate");
  const id = savedIn === null ? null : triggerIn({ ...savedIn, issue: null }).id;
  const policy = {
    ...{ id: "early", version: 1, text: "t" },
    speculation: { places: [], callsPerTask: 1, callsPerDay: 1, maxWastedCalls: 1 },
    ...(id === null ? {} : { savedIn: { triggerId: id, source: "web" } }),
  };
  return newSpeculation(policy, { taskId: makeId("tsk", where.n), decisionId: "dec_s", title: "t" }, first, 1);
}

/** The words that a decision has said, held or entered somewhere: where, and by which row. */
type Words = { threadId: string; triggerId?: string; taskId?: string };
const wordsOf = ({ effects }: PlannedDecision): Words[] =>
  effects.flatMap((effect: RouterEffect): Words[] => {
    switch (effect.kind) {
      case "post":
        expect(effect.input.threadId).toBe(effect.threadId);
        return [effect.input];
      case "policy":
        return [effect.input.post];
      case "offer":
        expect(effect.input.offer.outbound.threadId).toBe(effect.threadId);
        return [effect.input.offer.outbound];
      case "append":
        expect(effect.input.trigger.threadId).toBe(effect.threadId);
        return [{ threadId: effect.threadId, triggerId: effect.input.trigger.id }];
      default:
        return [];
    }
  });

/** Each kind of thing that speaks by itself, with the thread that its row names; null: it has none, and is silent. */
type Cause = { decision: PlannedDecision; thread: string | null };

const causes: ((where: Conversation, elsewhere: Conversation) => Cause[])[] = [
  (where) => {
    const schedule = scheduleIn(where);
    const run = planDue(schedule, false, 120_000)?.run;
    if (!run) throw new Error("The schedule is not due.");
    const thread = schedule.thread.threadId;
    return [runDecision(schedule, run, 1), pausedSchedule(schedule, run, 1, 9)].map((decision) => ({ decision, thread }));
  },
  (where, elsewhere) => {
    const row = speculationIn(where, elsewhere);
    const report = reportOf({ task: taskOf("s", { id: row.taskId, threadId: row.threadId, source: row.source }) });
    const here = { ...row, offerId: childId("out", row.threadId, "o"), offerText: "words" };
    const silent = [
      endedDecision({ row, stop: true, offer: false }, report, "S", 1),
      answeredDecision({ ...row, outcome: "accepted" }, "S", 1),
      mootDecision(row, "S", 1),
      { ...mootDecision(here, "S", 1), effects: [endSpeculation(row, "S", "over")] },
    ];
    const opened = openedDecision(here, { offer: { outbound: { id: here.offerId } } } as never, null, "S", 1, 1);
    return [
      { decision: offeredDecision(row, report, 0, 1), thread: row.threadId },
      { decision: pausedPolicy(row, "waste", 1, 9), thread: triggerIn({ ...elsewhere, issue: null }).threadId },
      { decision: pausedPolicy(speculationIn(where, null), "waste", 1, 9), thread: null },
      ...[...silent, opened].map((decision) => ({ decision, thread: null })),
    ];
  },
  (where, elsewhere) => {
    const at = triggerIn(where);
    const known = taskOf("t", { threadId: at.threadId, threads: [at.threadId, triggerIn(elsewhere).threadId], source: at.trigger.source });
    const kinds: Report["kind"][] = [
      "done",
      "answer",
      "paused",
      "waiting",
      "notice",
      "cancelled",
      "progress",
      "question",
      "failed",
      "overdue",
    ];
    return kinds.flatMap((kind): Cause[] => {
      // A task that was taken over may report where it was before: what counts is what its row says now.
      const report = reportOf({ task: { ...known, threadId: triggerIn(elsewhere).threadId }, kind, confidence: 0.9 });
      const { decision } = planReport(report, known, [], 1);
      const undecided = relayUndecided(queuedReport({ ...report, threadId: known.threadId }), known, 1);
      return [...(decision === null ? [] : [decision]), undecided].map((each) => ({ decision: each, thread: known.threadId }));
    });
  },
  (where) => {
    const [asked, overheard] = [triggerIn(where), triggerIn(where, "candidate")];
    const loud = asked.lane === "team" ? asked.threadId : null;
    return [
      { decision: tellWaiting(asked, "wait", 1), thread: asked.threadId },
      { decision: escalate(asked, { message: "why" }, 1, 9), thread: loud },
      { decision: escalate(overheard, { message: "why" }, 1, 9), thread: null },
      { decision: escalate(asked, { message: "why" }, 1, 9, true), thread: null },
    ];
  },
  (where, elsewhere) => {
    // Two items, also in one conversation: a trigger is one row.
    const [one, other] = [triggerIn(where, "candidate"), triggerIn({ ...elsewhere, n: where.n + 1 + elsewhere.n })];
    const view = {
      turn: 1,
      step: 1,
      lane: one.lane,
      capped: false,
      nowMs: 1,
      agentName: "S",
      progress: new Map(),
      machines: [],
      policies: [],
    };
    const items = new Map([one, other].map((item) => [item.id, item]));
    const tasks = new Map([["tsk_late", taskOf("late", { id: "tsk_late", threadId: other.threadId })]]);
    const settles = [one.id];
    const step = (tool: string, input: object): PlannedDecision[] =>
      decideStep({ ...view, items, tasks }, [{ callId: "c", tool, input: { settles, ...input } }]).decisions;
    const asks = step("ask_human", { question: "which?" });
    const answers = asks.flatMap(({ question }) => (question ? [answerQuestion(question, owner, "This one.", 2)] : []));
    const refused = one.lane === "team" ? [] : step("dispatch", { title: "t", goal: "g" });
    return [
      ...[...step("reply", { text: "words" }), ...answers].map((decision) => ({ decision, thread: one.threadId })),
      ...[...asks, ...refused, ...step("cancel", { task: "tsk_late", reason: "r" })].map((decision) => ({ decision, thread: null })),
    ];
  },
];

test("[Q6] [RD16] in 10,000 mixtures of conversations, what speaks by itself speaks where its own row says, or nowhere", () => {
  let said = 0;
  let silent = 0;
  void fc.assert(
    fc.property(fc.constantFrom(...causes), conversation, conversation, (cause, where, elsewhere) => {
      for (const { decision, thread } of cause(where, elsewhere)) {
        const words = wordsOf(decision);
        expect(words.map(({ threadId }) => threadId)).toEqual(thread === null ? [] : words.map(() => thread));
        if (thread !== null) expect(words.length).toBe(1);
        for (const { threadId, triggerId, taskId } of words) {
          // The thread sees by the row alone that the words are for it.
          if (triggerId === undefined) expect(taskId).toMatch(/^tsk_/);
          else expect(ownerOf(triggerId, "thr")).toBe(threadId);
        }
        if (thread === null) silent += 1;
        else said += words.length;
      }
    }),
    { numRuns: 10_000 },
  );
  expect(Math.min(said, silent)).toBeGreaterThan(5_000);
});

test("[T13] what is said where a task works waits only while that thread is being given to one", () => {
  const threadId = threadIdOf("github", "acme/app", "issue:1");
  const post = postEffect(
    "dec_a",
    whereAsked({ id: triggerIdOf("github", "d", threadId), threadId, source: "github", hops: 0 }),
    "notice",
    "w",
  );
  const subscribe = (of: string): { effect: RouterEffect } => ({
    effect: { kind: "subscribe", threadId: of, input: { taskId: "tsk_a", decisionId: "dec_a" } },
  });
  expect(isEarly(post, [subscribe(threadId)])).toBe(true);
  expect(isEarly(post, [subscribe("thr_other"), { effect: post }])).toBe(false);
  expect(isEarly(subscribe(threadId).effect, [subscribe(threadId)])).toBe(false);
});
