// The designs of the end-to-end experiment as a discrete-event simulation, without any of our objects: the oracle beside the measured runs.
import { addsRounds, type TaskPlan, type Workload } from "./e2e-workload.ts";
import { measuredLaw } from "./lib/model-server.ts";

export type Design = "ours" | "ours_ungated" | "essay" | "no_pass_through" | "delegating" | "neutral";
/** A task's time from request to result message; null when it was cancelled. */
export type Outcome = { minutes: (number | null)[]; decisions: number; cachedTokens: number };

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

/** The context of whoever hears everything; of every design the same. */
export const routerPrefix = 40_000;
/** A worker's context grows with each of its steps. */
export const workerPrefix = (step: number): number => 30_000 + 3_000 * step;
/** Model requests until it is decided, by the essay's policy. */
export const essaySteps = { casual: 1, task: 3, result: 2, forward: 3 } as const;
/** In one of five runs the session that should delegate does the work itself, as in the essay. */
export const delegates = (seed: number): boolean => seed % 5 !== 0;

type RouterCost = (open: number) => number;
export const essayCost: RouterCost = (open) => measuredLaw({ cached: routerPrefix, uncached: 500 + 250 * open, output: 56 + 13 * open });
/** As measured by essay-batching: short answers, reasons of a word. */
const ourCost: RouterCost = (open) => measuredLaw({ cached: routerPrefix, uncached: 450 + 250 * open, output: 8 + 10 * open });

/** What one call of a session costs that does all the work itself: it reads each message as a router does, and writes the next step of each task. */
export const ownWorkMs = (messages: number, held: readonly { plan: TaskPlan; done: number }[]): number =>
  held.reduce((ms, { plan, done }) => ms + (plan.modelMs[done] ?? 0) - 1_200, 1_200 + essayCost(messages) - essayCost(0));

/** One mind, one queue: it takes all that waits, and what comes meanwhile waits until all of that is decided. */
class RouterQueue {
  decisions = 0;
  requests = 0;
  readonly #clock: Clock;
  readonly #cost: RouterCost;
  #open: { left: number; decided: () => void }[] = [];
  #waiting: { left: number; decided: () => void }[] = [];
  #busy = false;

  constructor(clock: Clock, cost: RouterCost) {
    this.#clock = clock;
    this.#cost = cost;
  }

  enter(steps: number, decided: () => void): void {
    this.#waiting.push({ left: steps, decided });
    if (!this.#busy) this.#request();
  }

  #request(): void {
    this.#busy = true;
    this.requests += 1;
    if (this.#open.length === 0) this.#open = this.#waiting.splice(0);
    this.#clock.at(this.#clock.nowMs + this.#cost(this.#open.length), () => {
      for (const item of this.#open) item.left -= 1;
      const decided = this.#open.filter((item) => item.left === 0);
      this.#open = this.#open.filter((item) => item.left > 0);
      for (const item of decided) {
        this.decisions += 1;
        item.decided();
      }
      if (this.#open.length + this.#waiting.length > 0) this.#request();
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
  /** Whether what is heard while a tool runs is read at once, by a step of its own. */
  readonly #looks: boolean;
  #rounds: number;
  #round = 0;
  #steps = 0;
  #unread = 0;
  #phase: "idle" | "model" | "tool" | "ended" = "idle";

  constructor(clock: Clock, plan: TaskPlan, looks: boolean, done: () => void) {
    this.#clock = clock;
    this.#looks = looks;
    this.#plan = plan;
    this.#rounds = plan.rounds;
    this.#done = done;
  }

  start(): void {
    if (this.#phase === "idle") this.#step();
  }

  /** False when the task has ended: then the router gets it. */
  hear(more: number): boolean {
    if (this.#phase === "ended") return false;
    this.#unread += 1;
    this.#rounds += more;
    if (this.#phase === "tool" && this.#looks) this.#count();
    return true;
  }

  cancel(): void {
    this.#phase = "ended";
  }

  /** A step, and the tokens that it reads. */
  #count(): void {
    this.cachedTokens += workerPrefix(this.#steps);
    this.#steps += 1;
    this.#unread = 0;
  }

  #step(): void {
    this.#phase = "model";
    this.#count();
    const last = this.#round >= this.#rounds;
    this.#clock.at(this.#clock.nowMs + (this.#plan.modelMs[this.#round] ?? 0), () => {
      if (this.#phase === "ended") return;
      if (last) {
        // A final report counts only if nothing came since its request.
        if (this.#unread > 0) return this.#step();
        this.#phase = "ended";
        return this.#done();
      }
      this.#phase = "tool";
      if (this.#unread > 0 && this.#looks) this.#count();
      const toolMs = this.#plan.toolMs[this.#round] ?? 0;
      this.#round += 1;
      this.#clock.at(this.#clock.nowMs + toolMs, () => {
        if (this.#phase !== "ended") this.#step();
      });
    });
  }
}

type WorkersInput = {
  looks: boolean;
  begin: (plan: TaskPlan, worker: Worker) => void;
  done: (plan: TaskPlan) => void;
  forward: (event: Workload["events"][number], reach: () => boolean) => void;
};

function runWorkers(clock: Clock, workload: Workload, { looks, begin, done, forward }: WorkersInput): Worker[] {
  const workers = workload.tasks.map((plan) => new Worker(clock, plan, looks, () => done(plan)));
  workload.tasks.forEach((plan, n) => {
    const worker = workers[n];
    if (worker) begin(plan, worker);
  });
  for (const event of workload.events)
    clock.at(event.atMs, () => {
      const worker = workers[event.task];
      if (event.kind === "cancel") worker?.cancel();
      else forward(event, () => worker?.hear(addsRounds(event.text)) ?? false);
    });
  return workers;
}

/** Minutes of each task with unlimited workers and no routing: no design can be faster on this trace. */
export function idealOf(workload: Workload): number[] {
  const clock = new Clock();
  const ideal = workload.tasks.map(() => Number.NaN);
  runWorkers(clock, workload, {
    looks: true,
    begin: (plan, worker) => clock.at(plan.atMs, () => worker.start()),
    done: (plan) => {
      ideal[plan.n] = (clock.nowMs - plan.atMs) / 60_000;
    },
    forward: (_event, reach) => void reach(),
  });
  clock.run();
  return ideal;
}

type Hearing = {
  cost: RouterCost;
  taskSteps: (plan: TaskPlan) => number;
  /** 0: said by code. */
  resultSteps: number;
  forwardSteps: number;
  passThrough: boolean;
  /** Whether a worker reads at once what comes while its tool runs. */
  looks: boolean;
  /** Whether the gate lets this talk through to the router; null: no gate. */
  gate: ((text: string, kind: "talk" | "ci" | "follow_up") => boolean) | null;
};

const essay: Hearing = {
  cost: essayCost,
  taskSteps: () => essaySteps.task,
  resultSteps: essaySteps.result,
  forwardSteps: essaySteps.forward,
  passThrough: true,
  looks: true,
  gate: null,
};

function twoTiers(design: Exclude<Design, "neutral">, gate: Exclude<Hearing["gate"], null>): Hearing {
  switch (design) {
    case "essay":
      return essay;
    case "no_pass_through":
      return { ...essay, passThrough: false };
    case "delegating":
      return { ...essay, passThrough: false, looks: false };
    case "ours":
      return { ...essay, cost: ourCost, taskSteps: (plan) => plan.routerSteps, resultSteps: 0, gate };
    case "ours_ungated":
      return { ...essay, cost: ourCost, taskSteps: (plan) => plan.routerSteps, resultSteps: 0 };
  }
}

function twoTier(workload: Workload, design: Hearing): Outcome {
  const clock = new Clock();
  const router = new RouterQueue(clock, design.cost);
  const minutes: (number | null)[] = workload.tasks.map(() => null);
  const ended = new Set<number>();
  const passes = (text: string, kind: "talk" | "ci" | "follow_up"): boolean => design.gate?.(text, kind) ?? true;
  const told = (plan: TaskPlan): void => {
    minutes[plan.n] = (clock.nowMs - plan.atMs) / 60_000;
  };
  const workers = runWorkers(clock, workload, {
    looks: design.looks,
    begin: (plan, worker) => clock.at(plan.atMs, () => router.enter(design.taskSteps(plan), () => worker.start())),
    done: (plan) => {
      ended.add(plan.n);
      if (design.resultSteps === 0) told(plan);
      else router.enter(design.resultSteps, () => told(plan));
    },
    forward: ({ task, kind, text }, reach) => {
      const record = (): void => router.enter(1, () => undefined);
      if (kind === "cancel") return;
      if (design.passThrough) {
        if (!reach() && passes(text, kind)) record();
      } else if (ended.has(task)) record();
      else router.enter(design.forwardSteps, () => void reach());
    },
  });
  for (const { atMs, text } of workload.casual) if (passes(text, "talk")) clock.at(atMs, () => router.enter(1, () => undefined));
  clock.run();
  return {
    minutes,
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
    const first = next;
    for (let arrival = arrivals[next]; arrival !== undefined && arrival.atMs <= nowMs; arrival = arrivals[++next]) {
      const { plan, event } = arrival;
      if (plan !== null) held.push({ plan, rounds: plan.rounds, done: 0 });
      else if (event?.kind === "cancel") held = held.filter(({ plan: { n } }) => n !== event.task);
      else if (event) for (const task of held) if (task.plan.n === event.task) task.rounds += addsRounds(event.text);
    }
    turns += 1;
    nowMs += ownWorkMs(next - first, held);
    const running = held.filter(({ done, rounds }) => done < rounds);
    for (const { plan, done, rounds } of held) if (done >= rounds) minutes[plan.n] = (nowMs - plan.atMs) / 60_000;
    held = running;
    nowMs += Math.max(0, ...running.map(({ plan, done }) => plan.toolMs[done] ?? 0));
    for (const task of running) task.done += 1;
  }
  return { minutes, decisions: arrivals.length, cachedTokens: turns * routerPrefix };
}

/** `gate`: what the shipped rules let through. */
export function simulateDesign(design: Design, workload: Workload, gate: Exclude<Hearing["gate"], null>): Outcome {
  if (design === "neutral" || (design === "delegating" && !delegates(workload.seed))) return singleSession(workload);
  return twoTier(workload, twoTiers(design, gate));
}
