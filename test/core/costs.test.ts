// What models cost: of tasks only what a report says more than the one before it, and in words what the figures do not hold.
import { expect, test } from "vitest";
import { dayOf, dollarsOf, type Spending, spentByTask, startOfDay } from "../../src/core/costs.ts";
import type { CostsAnswer, RouterSpent, TaskSpent } from "../../src/protocol/costs.ts";
import {
  allOf,
  amountWords,
  byDay,
  byRole,
  byTask,
  countWords,
  detailWords,
  moneyWords,
  notCounted,
} from "../../src/web/console/costs-model.ts";

const hourMs = 3_600_000;
const day20 = 20 * 24 * hourMs;
const price = { inputDollars: 3, outputDollars: 15 };

test("a day begins where the one who asks is", () => {
  const halfPastTen = day20 + 22.5 * hourMs;
  expect([0, 2 * hourMs, -5.5 * hourMs].map((offsetMs) => dayOf(halfPastTen, offsetMs))).toEqual([20, 21, 20]);
  expect(dayOf(startOfDay(20, 5.5 * hourMs), 5.5 * hourMs)).toBe(20);
  expect(dayOf(startOfDay(20, 5.5 * hourMs) - 1, 5.5 * hourMs)).toBe(19);
});

test("each report of a task counts what is more than the one before said, on its own day", () => {
  const said = (taskId: string, atMs: number, calls: number, tokens: number): Spending => ({
    ...{ taskId, title: taskId, atMs, calls },
    ...{ inputTokens: tokens, outputTokens: tokens / 10 },
  });
  const before = new Map([["tsk_b", { calls: 4, inputTokens: 4000, outputTokens: 400 }]]);
  const spent = spentByTask(
    [
      said("tsk_a", day20, 2, 1000),
      said("tsk_b", day20 + 1, 5, 5000),
      said("tsk_a", day20 + 2, 2, 1000),
      said("tsk_a", day20 + 24 * hourMs, 3, 1500),
      said("tsk_c", day20 + 24 * hourMs, 2, 0),
    ],
    before,
    0,
  );
  expect(
    spent.map(({ taskId, day, calls, untold, inputTokens, outputTokens }) => [taskId, day, calls, untold, inputTokens, outputTokens]),
  ).toEqual([
    ["tsk_a", 20, 2, 0, 1000, 100],
    ["tsk_b", 20, 1, 0, 1000, 100],
    ["tsk_a", 21, 1, 0, 500, 50],
    // Its provider does not count: that is said, and not that it was free.
    ["tsk_c", 21, 2, 2, 0, 0],
  ]);
});

const router = (day: number, parts: Partial<RouterSpent> = {}): RouterSpent => ({
  ...{ day, model: "large", calls: 1, untold: 0, inputTokens: 100_000, outputTokens: 2_000 },
  ...parts,
});
const task = (taskId: string, day: number, inputTokens: number): TaskSpent => ({
  ...{ taskId, title: `title of ${taskId}`, atMs: day, day, calls: 2, untold: 0, inputTokens, outputTokens: 0 },
});
const answer: CostsAnswer = {
  ...{ days: 30, today: 21, fromMs: 0, cut: false },
  router: [router(20), router(21), router(21, { model: "small", untold: 1 })],
  tasks: [task("tsk_a", 20, 10_000), task("tsk_b", 21, 200_000), task("tsk_a", 21, 30_000)],
  roles: { router: { model: "large", price }, worker: { model: "w", price } },
};
const unpriced = { router: { model: "large", price: null }, worker: { model: "w", price: null } };

test("costs stand by day, by role and model, and by task, the dearest first", () => {
  expect(dollarsOf({ inputTokens: 1_000_000, outputTokens: 100_000 }, price)).toBe(4.5);
  expect(byDay(answer, 0).map(({ day, amount }) => [day, amountWords(amount)])).toEqual([
    [21, "$1.35"],
    [20, "$0.36"],
  ]);
  expect(byRole(answer).map(({ name, amount }) => [name, amountWords(amount)])).toEqual([
    ["Router, large", "$0.66"],
    ["Router, small", "$0.33"],
    ["Workers, now w", "$0.72"],
  ]);
  const tasks = byTask(answer, 10);
  expect(tasks.map(({ taskId, amount, share }) => [taskId, amountWords(amount), share])).toEqual([
    ["tsk_b", "$0.60", 1],
    ["tsk_a", "$0.12", 0.2],
  ]);
  expect(byTask(answer, 1)).toHaveLength(1);
  expect(amountWords(allOf(answer, answer.roles))).toBe("$1.71");
});

test("without a price tokens are shown, with one for a single role it is said what is missing, and a little is not nothing", () => {
  expect(amountWords(allOf(answer, unpriced))).toBe("546 k tokens");
  const half = { ...answer, roles: { ...answer.roles, worker: unpriced.worker } };
  expect(amountWords(allOf(half, half.roles))).toBe("$0.99");
  expect(notCounted(half)[0]).toContain("the workers: no price is set");
  expect(notCounted(answer)[0]).toBe("1 of 9 calls: the provider did not say how many tokens they had.");
  expect(notCounted(answer).join(" ")).toContain("a profile may name its own");
  expect(amountWords(allOf({ router: [], tasks: [] }, answer.roles))).toBe("$0.00");
  expect([0, 0.0001, 0.41, 12].map(moneyWords)).toEqual(["$0.00", "< $0.01", "$0.41", "$12.00"]);
  expect([950, 1_230, 12_340, 999_499, 999_500, 4_560_000].map(countWords)).toEqual([
    "950",
    "1.23 k",
    "12.3 k",
    "999 k",
    "1.00 M",
    "4.56 M",
  ]);
  expect(detailWords(router(1))).toBe("1 call, 100 k tokens read, 2.00 k written");
});
