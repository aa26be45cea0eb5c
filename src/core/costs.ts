// What models cost: tokens at the price of a role, and what a task spent between two of its reports.
import type { Price, TaskSpent } from "../protocol/costs.ts";

/** Null where no price is set. */
export const dollarsOf = ({ inputTokens, outputTokens }: { inputTokens: number; outputTokens: number }, price: Price): number | null =>
  price === null ? null : (inputTokens * price.inputDollars + outputTokens * price.outputDollars) / 1_000_000;

/** What a report says that its task has spent since it began. */
export type Spending = { taskId: string; title: string; atMs: number; calls: number; inputTokens: number; outputTokens: number };

const dayMs = 24 * 60 * 60_000;

/** The day of an instant, counted from 1970, where clocks are `offsetMs` ahead of UTC. */
export const dayOf = (atMs: number, offsetMs: number): number => Math.floor((atMs + offsetMs) / dayMs);

/** When a day begins. */
export const startOfDay = (day: number, offsetMs: number): number => day * dayMs - offsetMs;

const rest = (now: number, before: number | undefined): number => Math.max(0, now - (before ?? 0));

/**
 * Each report says all that its task has spent, so that a day has only what is more than the report before said. `before`: the last one
 * of each task that is older than the first. Reports come in their order.
 */
export function spentByTask(
  reports: readonly Spending[],
  before: ReadonlyMap<string, Omit<Spending, "taskId" | "title" | "atMs">>,
  offsetMs: number,
): TaskSpent[] {
  const last = new Map(before);
  const spent: TaskSpent[] = [];
  for (const { taskId, title, atMs, ...now } of reports) {
    const known = last.get(taskId);
    const inputTokens = rest(now.inputTokens, known?.inputTokens);
    const outputTokens = rest(now.outputTokens, known?.outputTokens);
    const calls = rest(now.calls, known?.calls);
    last.set(taskId, now);
    if (calls === 0 && inputTokens + outputTokens === 0) continue;
    const untold = inputTokens + outputTokens === 0 ? calls : 0;
    spent.push({ taskId, title, atMs, day: dayOf(atMs, offsetMs), calls, untold, inputTokens, outputTokens });
  }
  return spent;
}
