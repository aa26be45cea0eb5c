// Decisions that code makes for people and gates: a console's answer, and rows that nobody has to judge.
import type { Principal } from "../protocol/principal.ts";
import type { Verdict } from "../protocol/trigger.ts";
import { authorityOf } from "./authority.ts";
import { excerpt } from "./context.ts";
import { makeId } from "./ids.ts";
import type { QueuedTrigger } from "./router.ts";
import { type PlannedDecision, postEffect, type Question } from "./router-plan.ts";

/** [RC1] A console's answer goes to the threads of the question, word for word; the notice on the board is done. */
export function answerQuestion(question: Question, by: Principal, text: string, turn: number): PlannedDecision {
  const id = makeId("dec", "answer", question.id);
  const places = new Map(question.threads.map((place) => [place.threadId, place]));
  return {
    id,
    turn,
    lane: question.lane,
    tool: "reply",
    by: "code",
    settles: [],
    reason: `answered in the console by ${excerpt(by.name, 60)}`,
    authority: authorityOf(by),
    ...(question.threads[0] === undefined ? {} : { threadId: question.threads[0].threadId }),
    effects: [
      ...[...places.values()].map((place) => postEffect(id, place, "reply", text)),
      { kind: "board", input: [{ kind: "notice_done", id: question.id }] },
    ],
  };
}

/** [RC2] A row that the gate kept without asking anybody, and that an ended task gave back, is recorded. */
export function recordByGate(item: QueuedTrigger, turn: number, releasedBy: string): PlannedDecision {
  return {
    id: makeId("dec", "gate", item.id, releasedBy),
    turn,
    lane: item.lane,
    tool: "record",
    by: "code",
    settles: [item.id],
    reason: `the gate said ${item.verdict.outcome}: ${excerpt(item.verdict.reason, 200)}`,
    authority: authorityOf(item.trigger.principal),
    threadId: item.threadId,
    effects: [],
  };
}

/** [RT8] What the gate kept from the router is a request now: an operator asks for it. What it let through stays what it was. */
export const askedAgain = (verdict: Verdict): Verdict =>
  verdict.outcome === "candidate" || verdict.outcome === "request"
    ? verdict
    : { outcome: "request", rule: "reprocess", reason: `An operator asks for a decision; the gate had said ${verdict.outcome}.` };
