// Costs in figures and words. What is not in the figures is said beside them.
import { dollarsOf, startOfDay } from "../../core/costs.ts";
import type { CostRoles, CostsAnswer, Spent, Tokens } from "../../protocol/costs.ts";

type Role = keyof CostRoles;
/** `dollars`: of the roles that have a price; null where none has one. */
export type Amount = Tokens & { dollars: number | null };

const nothing: Amount = { calls: 0, untold: 0, inputTokens: 0, outputTokens: 0, dollars: null };

const plus = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : a + b);

const sum = (amounts: readonly Amount[]): Amount =>
  amounts.reduce(
    (all, each) => ({
      calls: all.calls + each.calls,
      untold: all.untold + each.untold,
      inputTokens: all.inputTokens + each.inputTokens,
      outputTokens: all.outputTokens + each.outputTokens,
      dollars: plus(all.dollars, each.dollars),
    }),
    nothing,
  );

const amountOf = (tokens: Tokens, role: Role, roles: CostRoles): Amount => {
  const { calls, untold, inputTokens, outputTokens } = tokens;
  return { calls, untold, inputTokens, outputTokens, dollars: dollarsOf(tokens, roles[role].price) };
};

const routerAmount = ({ router }: Pick<Spent, "router">, roles: CostRoles): Amount =>
  sum([amountOf(nothing, "router", roles), ...router.map((each) => amountOf(each, "router", roles))]);
const tasksAmount = ({ tasks }: Pick<Spent, "tasks">, roles: CostRoles): Amount =>
  sum([amountOf(nothing, "worker", roles), ...tasks.map((each) => amountOf(each, "worker", roles))]);

/** All of it. */
export const allOf = (spent: Pick<Spent, "router" | "tasks">, roles: CostRoles): Amount =>
  sum([routerAmount(spent, roles), tasksAmount(spent, roles)]);

export const tokensOf = ({ inputTokens, outputTokens }: Tokens): number => inputTokens + outputTokens;

/** `$0.41`; a little is more than nothing. */
export function moneyWords(dollars: number): string {
  if (dollars === 0) return "$0.00";
  return dollars < 0.01 ? "< $0.01" : `$${dollars.toFixed(2)}`;
}

/** `950`, `12.3 k`, `4.56 M`. */
export function countWords(count: number): string {
  if (count < 1000) return `${count}`;
  const [value, unit] = count < 999_500 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
}

/** `$0.41`, or `132 k tokens` where no price is set. */
export const amountWords = (amount: Amount): string =>
  amount.dollars === null ? `${countWords(tokensOf(amount))} tokens` : moneyWords(amount.dollars);

const callWords = (calls: number): string => `${calls} ${calls === 1 ? "call" : "calls"}`;

/** `41 calls, 120 k tokens read, 3.10 k written`. */
export const detailWords = ({ calls, inputTokens, outputTokens }: Tokens): string =>
  `${callWords(calls)}, ${countWords(inputTokens)} tokens read, ${countWords(outputTokens)} written`;

/** By which rows are compared, and how long their bars are. */
const weight = (amount: Amount): number => amount.dollars ?? tokensOf(amount);

const withShares = <T extends { amount: Amount }>(rows: readonly T[]): (T & { share: number })[] => {
  const most = Math.max(...rows.map(({ amount }) => weight(amount)), 0);
  return rows.map((row) => ({ ...row, share: most === 0 ? 0 : weight(row.amount) / most }));
};

/** Days on which something was spent, the newest first. */
export function byDay({ router, tasks, roles }: CostsAnswer, offsetMs: number) {
  const days = [...new Set([...router, ...tasks].map(({ day }) => day))].sort((a, b) => b - a);
  return withShares(
    days.map((day) => {
      const own = { router: router.filter((each) => each.day === day), tasks: tasks.filter((each) => each.day === day) };
      const parts = { router: routerAmount(own, roles), worker: tasksAmount(own, roles) };
      return { day, atMs: startOfDay(day, offsetMs), ...parts, amount: sum([parts.router, parts.worker]) };
    }),
  );
}

/** The router by its models, and the workers, whose reports do not name theirs. */
export function byRole({ router, tasks, roles }: CostsAnswer) {
  const models = [...new Set(router.map(({ model }) => model))].sort();
  const rows = models.map((model) => ({
    key: `router ${model}`,
    name: `Router, ${model}`,
    amount: routerAmount({ router: router.filter((each) => each.model === model) }, roles),
  }));
  const workers = { key: "workers", name: `Workers, now ${roles.worker.model}`, amount: tasksAmount({ tasks }, roles) };
  return withShares(tasks.length === 0 ? rows : [...rows, workers]);
}

/** The dearest tasks first. */
export function byTask({ tasks, roles }: CostsAnswer, limit: number) {
  const ids = [...new Set(tasks.map(({ taskId }) => taskId))];
  const rows = ids.map((taskId) => {
    const own = tasks.filter((each) => each.taskId === taskId);
    const last = own.at(-1);
    return { taskId, title: last?.title ?? taskId, atMs: last?.atMs ?? 0, amount: tasksAmount({ tasks: own }, roles) };
  });
  return withShares(rows.sort((a, b) => weight(b.amount) - weight(a.amount) || b.atMs - a.atMs).slice(0, limit));
}

/** What the figures do not hold, in sentences. */
export function notCounted({ router, tasks, roles }: CostsAnswer): string[] {
  const { calls, untold } = allOf({ router, tasks }, roles);
  const unpriced = (["router", "worker"] as const).filter((role) => roles[role].price === null);
  const names = { router: "the router", worker: "the workers" };
  return [
    ...(unpriced.length === 1 ? unpriced.map((role) => `In dollars, ${names[role]}: no price is set for that role's model.`) : []),
    ...(untold > 0 ? [`${untold} of ${callWords(calls)}: the provider did not say how many tokens they had.`] : []),
    "What a task spent since its last report, and a child of it that is still at work.",
    "What other models cost: a profile may name its own, and all workers are shown at the one price of their role.",
    "Calls that failed, and answers that came too late to be used: your provider may charge them.",
    "Discounts: tokens that a provider kept in its cache are priced like others, and days before a change of MODEL_PRICE are shown at today's price.",
    "Cloudflare, GitHub, and your own machines.",
  ];
}
