// What a benchmark hands back: figures, and goals that hold or fall short.
import { medianInterval } from "./statistics.ts";

export type Goal = { name: string; figure: number; op: "<=" | ">="; goal: number; ok: boolean };
export type Figures = Record<string, number | string>;
export type Result = { bench: string; figures: Figures; goals: Goal[]; ok: boolean };

const rounded = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(4)) : value);

/** A goal that is no finite number falls short: what was not measured does not hold. */
export const goal = (name: string, figure: number, op: Goal["op"], bound: number): Goal => ({
  name,
  figure: rounded(figure),
  op,
  goal: bound,
  ok: Number.isFinite(figure) && (op === "<=" ? figure <= bound : figure >= bound),
});

/** A goal on the ratios of interleaved pairs: it holds when the bad end of the median's 90 % interval passes. */
export function ratioGoal(name: string, ratios: readonly number[], op: Goal["op"], bound: number): Goal {
  const { low, high } = medianInterval(ratios);
  return goal(name, op === "<=" ? high : low, op, bound);
}

export function result(bench: string, figures: Figures, goals: Goal[]): Result {
  const shown = Object.entries(figures).map(([name, value]): [string, number | string] => [
    name,
    typeof value === "number" ? rounded(value) : value,
  ]);
  return { bench, figures: Object.fromEntries(shown), goals, ok: goals.length > 0 && goals.every((each) => each.ok) };
}

/** For people: figures, then goals. */
export function print(done: Result): void {
  const width = Math.max(...Object.keys(done.figures).map((name) => name.length), 0);
  console.log(`\n${done.bench}`);
  for (const [name, value] of Object.entries(done.figures)) console.log(`  ${name.padEnd(width)}  ${value}`);
  console.log("goals");
  for (const each of done.goals) console.log(`  ${each.ok ? "ok   " : "SHORT"} ${each.name}: ${each.figure} ${each.op} ${each.goal}`);
}
