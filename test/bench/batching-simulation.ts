// A router as a queue, without any of our code: the oracle beside the measured run, and what both policies are made of.
import { limits } from "../../src/protocol/limits.ts";
import type { Tokens } from "./lib/model-server.ts";
import { choose, exponential, mean, quantile, seeded, sum } from "./lib/statistics.ts";

export type Act = "record" | "reply" | "dispatch";
/** A trigger that needs a decision. `steps`: model requests until it is decided, by the policy that decides it. */
export type Arrival = { n: number; atMs: number; act: Act; essaySteps: number; ourSteps: number };

/** Steps a decision: the essay's mean is 2.56, most of it context that is fetched; with the context inlined 1.3. */
const essaySteps = [
  [1, 0.04],
  [2, 0.4],
  [3, 0.52],
  [4, 0.04],
] as const;
const ourSteps = [
  [1, 0.7],
  [2, 0.3],
] as const;
/** Mostly talk, as in the essay's own stream: about 20 of 244 decisions of its first experiment were new tasks. */
const acts = [
  ["record", 0.8],
  ["reply", 0.1],
  ["dispatch", 0.1],
] as const;

/** Poisson arrivals of one rate, the same for every policy. */
export function arrivalsOf(perMinute: number, windowMs: number, seed: number): Arrival[] {
  const random = seeded(seed);
  const arrivals: Arrival[] = [];
  for (let atMs = exponential(random, 60_000 / perMinute); atMs < windowMs; atMs += exponential(random, 60_000 / perMinute))
    arrivals.push({
      n: arrivals.length,
      atMs,
      act: choose(random, acts),
      essaySteps: choose(random, essaySteps),
      ourSteps: choose(random, ourSteps),
    });
  return arrivals;
}

export type Decision = { n: number; arrivedMs: number; takenMs: number | null; decidedMs: number | null };
export type Request = { atMs: number; ms: number; joined: number; open: number; cached: number };
/** An item of a request, and whether this request decides it. */
export type Asked = { act: Act; decides: boolean };
/** What a run leaves behind, measured or simulated, in virtual time from its start. */
export type Run = { decisions: Decision[]; requests: Request[]; endMs: number };

/** The essay's policy: a cached context of 60 k tokens, 500 uncached, 56 fixed output tokens; each decision step adds 250 in, 13 out. */
export const essayTokens = (open: number): Tokens => ({ cached: 60_000, uncached: 500 + 250 * open, output: 56 + 13 * open });

export type Policy = {
  steps: (arrival: Arrival) => number;
  /** What a request costs that has these items open, `joined` of which are new to it. */
  cost: (joined: number, open: readonly Asked[]) => { ms: number; cached: number };
  /** Up to this request of a turn what came meanwhile joins it; a turn ends when all that it took is decided. */
  joinsThroughStep: number;
  /** Until a trigger is where the router sees it. */
  entryMs: number;
  /** Between two requests when there is work. */
  gapMs: number;
};

/** What the latency of a request is made of: what is new to it, what it reads more of, and what it decides, by act. */
export const featuresOf = (joined: number, open: readonly Asked[]): number[] => [
  1,
  joined,
  open.filter(({ decides }) => !decides).length,
  ...(["record", "reply", "dispatch"] as const).map((act) => open.filter((item) => item.decides && item.act === act).length),
];

/** Our own requests as a run had them, in virtual milliseconds; `law` weighs the features. */
export type Fitted = { law: number[]; entryMs: number; gapMs: number };

export const fittedPolicy = ({ law, entryMs, gapMs }: Fitted, cached: number): Policy => ({
  steps: (arrival) => arrival.ourSteps,
  cost: (joined, open) => ({ ms: sum(featuresOf(joined, open).map((value, i) => value * (law[i] ?? 0))), cached }),
  // [RT6] What joins has a step to read in and one to be decided in.
  joinsThroughStep: limits.maxRouterStepsPerTurn - 1,
  entryMs,
  gapMs,
});

/** One server, one queue: a request takes all that waits; what is not decided by it is in the next. */
export function simulate(arrivals: readonly Arrival[], policy: Policy, endMs: number): Run {
  const run: Run = {
    decisions: arrivals.map(({ n, atMs }) => ({ n, arrivedMs: atMs, takenMs: null, decidedMs: null })),
    requests: [],
    endMs,
  };
  let open: { arrival: Arrival; left: number }[] = [];
  let next = 0;
  let nowMs = 0;
  let step = 0;
  for (;;) {
    const upcoming = arrivals[next];
    step += 1;
    if (open.length === 0) {
      step = 1;
      if (upcoming === undefined) return run;
      nowMs = Math.max(nowMs, upcoming.atMs + policy.entryMs);
    }
    if (nowMs >= endMs) return run;
    let joined = 0;
    const isHere = (arrival: Arrival): boolean => step <= policy.joinsThroughStep && arrival.atMs + policy.entryMs <= nowMs;
    for (let arrival = arrivals[next]; arrival !== undefined && isHere(arrival); arrival = arrivals[++next]) {
      open.push({ arrival, left: policy.steps(arrival) });
      const decision = run.decisions[arrival.n];
      if (decision) decision.takenMs = nowMs;
      joined += 1;
    }
    const asked = open.map(({ arrival, left }) => ({ act: arrival.act, decides: left === 1 }));
    const { ms, cached } = policy.cost(joined, asked);
    run.requests.push({ atMs: nowMs, ms, joined, open: open.length, cached });
    nowMs += ms;
    for (const item of open) {
      item.left -= 1;
      const decision = run.decisions[item.arrival.n];
      if (item.left === 0 && decision && nowMs <= endMs) decision.decidedMs = nowMs;
    }
    open = open.filter((item) => item.left > 0);
    if (open.length > 0 || (arrivals[next]?.atMs ?? Number.POSITIVE_INFINITY) + policy.entryMs <= nowMs) nowMs += policy.gapMs;
  }
}

export type RouterFigures = {
  batch: number;
  requestS: number;
  /** Amortised: model time a decision. */
  perDecisionS: number;
  waitP95S: number;
  decisionP50S: number;
  decisionP95S: number;
  cachedPerDecision: number;
};

/** Of runs together. A decision that is still open counts with the time that it waited so far: an overloaded policy cannot look fast. */
export function figuresOf(runs: readonly Run[]): RouterFigures {
  const all = runs.flatMap(({ decisions, endMs }) => decisions.map((decision) => ({ ...decision, endMs })));
  const requests = runs.flatMap((run) => run.requests);
  const decided = all.filter((decision) => decision.decidedMs !== null).length;
  const latencies = all.map(({ arrivedMs, decidedMs, endMs }) => (decidedMs ?? endMs) - arrivedMs);
  const waits = all.map(({ arrivedMs, takenMs, endMs }) => (takenMs ?? endMs) - arrivedMs);
  const requestMs = requests.map((request) => request.ms);
  return {
    batch: mean(requests.filter((request) => request.joined > 0).map((request) => request.joined)),
    requestS: mean(requestMs) / 1000,
    perDecisionS: sum(requestMs) / decided / 1000,
    waitP95S: quantile(waits, 0.95) / 1000,
    decisionP50S: quantile(latencies, 0.5) / 1000,
    decisionP95S: quantile(latencies, 0.95) / 1000,
    cachedPerDecision: sum(requests.map((request) => request.cached)) / decided,
  };
}

/** The highest rate whose decisions have a p95 below 30 s, by bisection over long simulated runs. */
export function sustainableRate(policy: Policy): number {
  let low = 1;
  let high = 2_000;
  const windowMs = 60 * 60_000;
  while (high / low > 1.02) {
    const rate = Math.sqrt(low * high);
    const { decisionP95S } = figuresOf([simulate(arrivalsOf(rate, windowMs, 7), policy, windowMs)]);
    if (decisionP95S < 30) low = rate;
    else high = rate;
  }
  return low;
}
