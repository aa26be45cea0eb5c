// Five designs of an agent system on one workload, as a discrete-event simulation: replicas of the essay's four, and ours as the oracle of the real run.
import type { TaskPlan, Workload } from "./e2e-workload.ts";
import { measuredLaw } from "./lib/model-server.ts";

export type Design = "essay" | "no_pass_through" | "delegating" | "neutral" | "ours" | "ours_gated";
/** A task's time from request to result message; null when it was cancelled. */
export type Outcome = { minutes: (number | null)[]; ideal: number[]; decisions: number; cachedTokens: number };

class Clock {
  nowMs = 0;
  readonly #due: { atMs: number; run: () => void }[] = [];

  at(atMs: number, run: () => void): void {
    const entry = { atMs: Math.max(atMs, this.nowMs), run };
    const after = this.#due.findIndex((other) => other.atMs > entry.atMs);
    if (after < 0) this.#due.push(entry);
    else this.#due.splice(after, 0, entry);
  }

  run(): void {
    for (let next = this.#due.shift(); next !== undefined; next = this.#due.shift()) {
      this.nowMs = next.atMs;
      next.run();
    }
  }
}

export const routerPrefix = 40_000;
/** A worker's context grows with each of its steps. */
export const workerPrefix = (step: number): number => 30_000 + 3_000 * step;

type RouterCost = (open: number) => number;
const essayCost: RouterCost = (open) => measuredLaw({ cached: routerPrefix, uncached: 500 + 250 * open, output: 56 + 13 * open });
/** As measured by essay-batching: short names, reasons of a word. */
const ourCost: RouterCost = (open) => measuredLaw({ cached: routerPrefix, uncached: 450 + 250 * open, output: 8 + 10 * open });

/** One mind, one queue: what waits joins the next request. */
class RouterQueue {
  decisions = 0;
  requests = 0;
  readonly #clock: Clock;
  readonly #cost: RouterCost;
  #open: { left: number; decided: () => void }[] = [];
  #busy = false;

  constructor(clock: Clock, cost: RouterCost) {
    this.#clock = clock;
    this.#cost = cost;
  }

  enter(steps: number, decided: () => void): void {
    this.#open.push({ left: steps, decided });
    if (!this.#busy) this.#request();
  }

  #request(): void {
    this.#busy = true;
    this.requests += 1;
    const taken = [...this.#open];
    this.#clock.at(this.#clock.nowMs + this.#cost(taken.length), () => {
      for (const item of taken) item.left -= 1;
      this.#open = this.#open.filter((item) => item.left > 0);
      for (const item of taken) {
        if (item.left > 0) continue;
        this.decisions += 1;
        item.decided();
      }
      if (this.#open.length > 0) this.#request();
      else this.#busy = false;
    });
  }
}

/** A worker's loop: model call, tool, and so on; what comes meanwhile is in the next step. */
class Worker {
  cachedTokens = 0;
  readonly #clock: Clock;
  readonly #plan: TaskPlan;
  readonly #done: () => void;
  #rounds: number;
  #round = 0;
  #steps = 0;
  #seen = 0;
  #events = 0;
  #phase: "idle" | "model" | "tool" | "ended" = "idle";

  constructor(clock: Clock, plan: TaskPlan, done: () => void) {
    this.#clock = clock;
    this.#plan = plan;
    this.#rounds = plan.rounds;
    this.#done = done;
  }

  start(): void {
    if (this.#phase !== "idle") return;
    this.#step();
  }

  /** False when the task has ended: then the router gets it. */
  event(addsRound: boolean): boolean {
    if (this.#phase === "ended") return false;
    this.#events += 1;
    if (addsRound) this.#rounds += 1;
    // Seen at once by a step of its own, while the tool goes on.
    if (this.#phase === "tool") this.#count();
    return true;
  }

  cancel(): void {
    this.#phase = "ended";
  }

  #count(): void {
    this.cachedTokens += workerPrefix(this.#steps);
    this.#steps += 1;
    this.#seen = this.#events;
  }

  #step(): void {
    this.#phase = "model";
    this.#count();
    const seen = this.#seen;
    const last = this.#round >= this.#rounds;
    this.#clock.at(this.#clock.nowMs + (this.#plan.modelMs[this.#steps - 1] ?? 5_000), () => {
      if (this.#phase === "ended") return;
      if (last) {
        // A final report counts only if nothing came since its request.
        if (this.#events > seen) return this.#step();
        this.#phase = "ended";
        return this.#done();
      }
      this.#phase = "tool";
      const toolMs = this.#plan.toolMs[this.#round] ?? 0;
      this.#round += 1;
      this.#clock.at(this.#clock.nowMs + toolMs, () => {
        if (this.#phase !== "ended") this.#step();
      });
    });
  }
}

/** Unlimited workers and no routing: no design can be faster on this trace. */
export function idealOf(workload: Workload): number[] {
  const clock = new Clock();
  const ideal = workload.tasks.map(() => Number.NaN);
  runWorkers(
    clock,
    workload,
    (plan, worker) => clock.at(plan.atMs, () => worker.start()),
    (plan) => {
      ideal[plan.n] = clock.nowMs - plan.atMs;
    },
  );
  clock.run();
  return ideal.map((ms) => ms / 60_000);
}

function runWorkers(
  clock: Clock,
  workload: Workload,
  begin: (plan: TaskPlan, worker: Worker) => void,
  done: (plan: TaskPlan) => void,
  forward: (reach: () => boolean) => void = (reach) => reach(),
): Worker[] {
  const workers = workload.tasks.map((plan) => new Worker(clock, plan, () => done(plan)));
  workload.tasks.forEach((plan, n) => {
    const worker = workers[n];
    if (worker) begin(plan, worker);
  });
  for (const event of workload.events)
    clock.at(event.atMs, () => {
      if (event.kind === "cancel") workers[event.task]?.cancel();
      else forward(() => workers[event.task]?.event(event.addsRound) ?? false);
    });
  return workers;
}

type TwoTier = { cost: RouterCost; taskSteps: (plan: TaskPlan) => number; resultSteps: number; passThrough: boolean; talk: number };

const twoTiers: Record<Exclude<Design, "neutral" | "delegating">, TwoTier> = {
  essay: { cost: essayCost, taskSteps: () => 3, resultSteps: 2, passThrough: true, talk: 1 },
  no_pass_through: { cost: essayCost, taskSteps: () => 3, resultSteps: 2, passThrough: false, talk: 1 },
  ours: { cost: ourCost, taskSteps: (plan) => plan.routerSteps, resultSteps: 0, passThrough: true, talk: 1 },
  ours_gated: { cost: ourCost, taskSteps: (plan) => plan.routerSteps, resultSteps: 0, passThrough: true, talk: 0.4 },
};

function twoTier(workload: Workload, design: TwoTier): Outcome {
  const clock = new Clock();
  const router = new RouterQueue(clock, design.cost);
  const minutes: (number | null)[] = workload.tasks.map(() => null);
  const told = (plan: TaskPlan): void => {
    minutes[plan.n] = (clock.nowMs - plan.atMs) / 60_000;
  };
  const workers = runWorkers(
    clock,
    workload,
    (plan, worker) => clock.at(plan.atMs, () => router.enter(design.taskSteps(plan), () => worker.start())),
    (plan) => (design.resultSteps === 0 ? told(plan) : router.enter(design.resultSteps, () => told(plan))),
    (reach) => {
      if (!design.passThrough) router.enter(3, () => void reach());
      else if (!reach()) router.enter(1, () => undefined);
    },
  );
  workload.casual.forEach(({ atMs }, i) => {
    if ((i * 0.618_034) % 1 < design.talk) clock.at(atMs, () => router.enter(1, () => undefined));
  });
  clock.run();
  return {
    minutes,
    ideal: idealOf(workload),
    decisions: router.decisions,
    cachedTokens: router.requests * routerPrefix + workers.reduce((total, worker) => total + worker.cachedTokens, 0),
  };
}

/**
 * One session does everything itself. It calls the tools of all its tasks in parallel, but synchronously: a turn ends with its
 * slowest tool, and what came meanwhile is seen then.
 */
function singleSession(workload: Workload): Outcome {
  type Held = { plan: TaskPlan; rounds: number; done: number };
  const minutes: (number | null)[] = workload.tasks.map(() => null);
  const arrivals = [
    ...workload.tasks.map((plan) => ({ atMs: plan.atMs, plan, event: null })),
    ...workload.events.map((event) => ({ atMs: event.atMs, plan: null, event })),
    ...workload.casual.map(({ atMs }) => ({ atMs, plan: null, event: null })),
  ].sort((a, b) => a.atMs - b.atMs);
  let held: Held[] = [];
  let next = 0;
  let nowMs = 0;
  let turns = 0;
  while (next < arrivals.length || held.length > 0) {
    if (held.length === 0) nowMs = Math.max(nowMs, arrivals[next]?.atMs ?? nowMs);
    for (let arrival = arrivals[next]; arrival !== undefined && arrival.atMs <= nowMs; arrival = arrivals[++next]) {
      const { plan, event } = arrival;
      if (plan !== null) held.push({ plan, rounds: plan.rounds, done: 0 });
      else if (event?.kind === "cancel") held = held.filter(({ plan: { n } }) => n !== event.task);
      else if (event?.addsRound) for (const task of held) if (task.plan.n === event.task) task.rounds += 1;
    }
    turns += 1;
    // One call writes the next step of each task.
    nowMs += 1_200 + held.reduce((ms, { plan, done }) => ms + (plan.modelMs[done] ?? 5_000) - 1_200, 0);
    const running = held.filter(({ done, rounds }) => done < rounds);
    for (const { plan, done, rounds } of held) if (done >= rounds) minutes[plan.n] = (nowMs - plan.atMs) / 60_000;
    held = running;
    nowMs += Math.max(0, ...running.map(({ plan, done }) => plan.toolMs[done] ?? 0));
    for (const task of running) task.done += 1;
  }
  return { minutes, ideal: idealOf(workload), decisions: arrivals.length, cachedTokens: turns * routerPrefix };
}

/** Delegation first: in four of five runs it delegates, and each message still passes its main session; in the fifth it does the work itself. */
export function simulateDesign(design: Design, workload: Workload): Outcome {
  if (design === "neutral" || (design === "delegating" && workload.seed % 5 === 0)) return singleSession(workload);
  return twoTier(workload, design === "delegating" ? twoTiers.no_pass_through : twoTiers[design]);
}
