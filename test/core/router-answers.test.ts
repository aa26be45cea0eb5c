import { expect, test } from "vitest";
import { answerQuestion } from "../../src/core/router-answers.ts";
import { whereAsked, whereReported } from "../../src/core/router-destination.ts";
import { isLastStep } from "../../src/core/router-turn.ts";
import { limits } from "../../src/protocol/limits.ts";

test("[RC1] a console's answer goes to each thread of the question once, word for word, and the notice is done", () => {
  const question = {
    id: "dec_question",
    lane: "team" as const,
    text: "Which branch?",
    threads: [
      whereAsked({ threadId: "thr_aa", source: "github", id: "trg_aa-one", hops: 0 }),
      whereAsked({ threadId: "thr_aa", source: "github", id: "trg_aa-two", hops: 0 }),
      whereReported({ threadId: "thr_bb", taskId: "tsk_b", id: "rep_b-one" }, { source: "web", hops: 0 }),
    ],
  };
  const { effects, settles } = answerQuestion(question, { role: "owner", id: "prs_owner", name: "Owner" }, "Use main.", 3);
  const posts = effects.flatMap((effect) => (effect.kind === "post" ? [effect.input] : []));
  expect(posts).toMatchObject([
    { threadId: "thr_aa", text: "Use main.", triggerId: "trg_aa-two" },
    { threadId: "thr_bb", text: "Use main.", taskId: "tsk_b" },
  ]);
  expect(effects.at(-1)).toEqual({ kind: "board", input: [{ kind: "notice_done", id: "dec_question" }] });
  expect(settles).toEqual([]);
});

test("[RM2] a turn takes another step only for what was read, while something is undecided and steps are left", () => {
  expect(isLastStep(1, 1, 1)).toBe(false);
  expect(isLastStep(1, 0, 1)).toBe(true);
  expect(isLastStep(1, 1, 0)).toBe(true);
  expect(isLastStep(limits.maxRouterStepsPerTurn, 1, 1)).toBe(true);
});
