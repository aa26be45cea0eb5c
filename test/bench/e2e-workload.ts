// The essay's first experiment as a seeded workload: requests for work, what happens in their threads, and talk.
import { choose, gamma, seeded } from "./lib/statistics.ts";

/** `cancel` comes by the button, the others as words in the task's thread. */
export type ThreadEvent = { task: number; atMs: number; kind: "ci" | "follow_up" | "cancel"; addsRound: boolean };
export type TaskPlan = { n: number; atMs: number; rounds: number; routerSteps: number; modelMs: number[]; toolMs: number[] };
export type Workload = { seed: number; windowMs: number; tasks: TaskPlan[]; events: ThreadEvent[]; casual: { atMs: number }[] };

export type WorkloadSize = {
  windowMs: number;
  tasks: number;
  events: number;
  casual: number;
  rounds: readonly [number, number];
  toolMs: number;
};

export const essaySize: WorkloadSize = { windowMs: 75 * 60_000, tasks: 20, events: 75, casual: 205, rounds: [7, 9], toolMs: 85_000 };

const eventsWithinMs = 11 * 60_000;
const most = 40;

export function workloadOf(size: WorkloadSize, seed: number): Workload {
  const random = seeded(seed * 7_919 + 1);
  const [fewest, largest] = size.rounds;
  const tasks = Array.from(
    { length: size.tasks },
    (_, n): TaskPlan => ({
      n,
      // Stratified: one request in each slice of the time.
      atMs: ((n + random()) * size.windowMs) / size.tasks,
      rounds: fewest + Math.floor(random() * (largest - fewest + 1)),
      routerSteps: random() < 0.3 ? 2 : 1,
      modelMs: Array.from({ length: most }, () => 1_200 + (gamma(random, 280, 0.5) / 60) * 1_000),
      toolMs: Array.from({ length: most }, () => gamma(random, size.toolMs, 0.3)),
    }),
  );
  const events = Array.from({ length: size.events }, (): ThreadEvent => {
    const task = tasks[Math.floor(random() * tasks.length)];
    const kind = choose(random, [
      ["ci", 0.45],
      ["follow_up", 0.51],
      ["cancel", 0.04],
    ] as const);
    const atMs = (task?.atMs ?? 0) + 5_000 + random() * Math.min(eventsWithinMs, size.windowMs);
    return { task: task?.n ?? 0, atMs, kind, addsRound: kind === "follow_up" && random() < 0.35 };
  });
  const casual = Array.from({ length: size.casual }, () => ({ atMs: random() * size.windowMs }));
  return {
    seed,
    windowMs: size.windowMs,
    tasks,
    events: events.sort((a, b) => a.atMs - b.atMs),
    casual: casual.sort((a, b) => a.atMs - b.atMs),
  };
}
