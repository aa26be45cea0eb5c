// What models cost, as consoles show it: read from rows that are there anyway.

/** Dollars for a million tokens read and written; null: nobody said. */
export type Price = { inputDollars: number; outputDollars: number } | null;

/** What so many calls of a model read and wrote; of `untold` of them the provider did not say. */
export type Tokens = { calls: number; untold: number; inputTokens: number; outputTokens: number };

/** Of a day, counted from 1970 where the one who asks is. */
export type RouterSpent = Tokens & { day: number; model: string };

/** What a task, its children with it, spent up to a report, since the one before. */
export type TaskSpent = Tokens & { taskId: string; title: string; atMs: number; day: number };

/** `fromMs`: from when on it is counted. `cut`: there are older rows, which are too many to read. */
export type Spent = { fromMs: number; cut: boolean; router: RouterSpent[]; tasks: TaskSpent[] };

/** The roles whose models are counted, with what is set for them now. */
export type CostRoles = Record<"router" | "worker", { model: string; price: Price }>;

export type CostsAnswer = Spent & { days: number; today: number; roles: CostRoles };

/** `days`: tasks that began on a day, today's last. `wrong`: how often a person called an unasked act wrong today. */
export type TodayAnswer = {
  days: { tasks: number; failed: number }[];
  asked: number;
  unasked: number;
  wrong: number;
  spent: Spent;
  roles: CostRoles;
};
