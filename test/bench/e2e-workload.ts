// The essay's first experiment as a seeded workload: requests for work, what happens in their threads, and talk.
import { gamma, seeded } from "./lib/statistics.ts";
import { casualTexts, checkTexts, followUpTexts, requestTexts } from "./lib/talk.ts";

/** `cancel` comes by the button, the others as words in the task's thread. */
export type ThreadEvent = { task: number; atMs: number; kind: "ci" | "follow_up" | "cancel"; text: string };
/** Model time is by round, tool time too; both are longer than any task needs. */
export type TaskPlan = { n: number; atMs: number; text: string; rounds: number; routerSteps: number; modelMs: number[]; toolMs: number[] };
export type Workload = {
  seed: number;
  windowMs: number;
  tasks: TaskPlan[];
  events: ThreadEvent[];
  casual: { atMs: number; text: string }[];
};

export type WorkloadSize = {
  windowMs: number;
  tasks: number;
  events: number;
  casual: number;
  rounds: readonly [number, number];
  toolMs: number;
  /** The events of a task come within this time after its request. */
  eventsWithinMs: number;
};

export const essaySize: WorkloadSize = {
  windowMs: 75 * 60_000,
  tasks: 20,
  events: 75,
  casual: 205,
  rounds: [7, 9],
  toolMs: 85_000,
  eventsWithinMs: 11 * 60_000,
};

/** Ends a follow-up that makes more work, where only the simulated worker looks. */
const addsMark = "(one round more)";
export const addsRounds = (text: string): number => text.split(addsMark).length - 1;

const most = 40;
/** 45 % checks, 51 % follow-ups, 4 % cancellations. */
const kindAt = (share: number): ThreadEvent["kind"] => (share < 0.45 ? "ci" : share < 0.96 ? "follow_up" : "cancel");
const pick = <T>(random: () => number, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

export function workloadOf(size: WorkloadSize, seed: number): Workload {
  const random = seeded(seed * 7_919 + 1);
  const [fewest, largest] = size.rounds;
  const tasks = Array.from(
    { length: size.tasks },
    (_, n): TaskPlan => ({
      n,
      // Stratified: one request in each slice of the time.
      atMs: ((n + random()) * size.windowMs) / size.tasks,
      text: requestTexts[n % requestTexts.length] as string,
      rounds: fewest + Math.floor(random() * (largest - fewest + 1)),
      routerSteps: random() < 0.3 ? 2 : 1,
      modelMs: Array.from({ length: most }, () => 1_200 + (gamma(random, 280, 0.5) / 60) * 1_000),
      toolMs: Array.from({ length: most }, () => gamma(random, size.toolMs, 0.3)),
    }),
  );
  // As even as the requests: the tasks in turn, and of each kind its share.
  const shuffled = <T>(list: readonly T[]): T[] =>
    list
      .map((each) => ({ each, key: random() }))
      .sort((a, b) => a.key - b.key)
      .map(({ each }) => each);
  const kinds = shuffled(Array.from({ length: size.events }, (_, i) => kindAt((i + 0.5) / size.events)));
  const events = shuffled(Array.from({ length: size.events }, (_, i) => tasks[i % size.tasks] as TaskPlan)).map((task, i): ThreadEvent => {
    const kind = kinds[i] ?? "ci";
    const atMs = task.atMs + 5_000 + random() * size.eventsWithinMs;
    const addsRound = kind === "follow_up" && random() < 0.35;
    const text = pick(random, kind === "ci" ? checkTexts : followUpTexts);
    return { task: task.n, atMs, kind, text: addsRound ? `${text} ${addsMark}` : text };
  });
  // Each text of the corpus once, in an order of its own for each seed.
  const texts = shuffled(Array.from({ length: size.casual }, (_, i) => casualTexts[i % casualTexts.length] as string));
  const casual = texts.map((text) => ({ atMs: random() * size.windowMs, text }));
  return {
    seed,
    windowMs: size.windowMs,
    tasks,
    events: events.sort((a, b) => a.atMs - b.atMs),
    casual: casual.sort((a, b) => a.atMs - b.atMs),
  };
}
