// `npm run bench -- essay-batching`: the load that one router takes, against a frozen replica of the essay's policy in the same run.
import { prefixTokens, type RateOptions, type RateRun, runApart } from "./batching-run.ts";
import { figuresOf, fittedPolicy, type Policy, type RouterFigures, simulate, sustainableRate } from "./batching-simulation.ts";
import { essayPolicy } from "./essay-policy.ts";
import { colours, drawChart } from "./lib/chart.ts";
import { foreignLoad } from "./lib/foreign-load.ts";
import { type Figures, type Goal, goal, type Result, ratioGoal, result } from "./lib/result.ts";
import { median, sum } from "./lib/statistics.ts";

export type BatchingOptions = RateOptions & {
  rates: number[];
  /** Each has arrivals of its own. */
  seeds: number[];
  /** So many seeds run at once, each in a process of its own. */
  parallel: number;
};
export const fullBatching: BatchingOptions = {
  maxPerSecond: 4,
  rates: [1, 5, 10, 20, 40, 60, 80, 100, 200],
  seeds: [1, 2, 3, 4, 5],
  parallel: 3,
  minimumMs: 12 * 60_000,
  minimumDecisions: 60,
};
export const quickBatching: BatchingOptions = {
  ...fullBatching,
  rates: [5, 10, 20, 40, 80],
  seeds: [1, 2],
  minimumMs: 4 * 60_000,
  minimumDecisions: 15,
};

/** One rate: all its seeds together. */
type AtRate = {
  rate: number;
  runs: RateRun[];
  ours: RouterFigures;
  essay: RouterFigures;
  oracle: RouterFigures;
  /** Share of the machine that others used meanwhile. */
  foreign: number;
};

const policyOf = ({ fitted }: RateRun): Policy => fittedPolicy(fitted, prefixTokens);

function together(rate: number, runs: RateRun[], foreign: number): AtRate {
  return {
    rate,
    runs,
    foreign,
    ours: figuresOf(runs.map(({ ours }) => ours)),
    essay: figuresOf(runs.map(({ essay }) => essay)),
    oracle: figuresOf(runs.map((run) => simulate(run.arrivals, policyOf(run), run.ours.endMs))),
  };
}

export async function essayBatching(options: BatchingOptions): Promise<{ result: Result; svg: string }> {
  const rates: AtRate[] = [];
  for (const rate of options.rates) {
    const runs: RateRun[] = [];
    const foreign = foreignLoad();
    for (let i = 0; i < options.seeds.length; i += options.parallel)
      runs.push(...(await Promise.all(options.seeds.slice(i, i + options.parallel).map((seed) => runApart({ rate, seed, options })))));
    const at = together(rate, runs, foreign(sum(runs.map(({ usedSeconds }) => usedSeconds))));
    rates.push(at);
    console.error(
      `${rate} a minute: ours ${lineOf(at.ours)} (simulated: p95 ${at.oracle.decisionP95S.toFixed(1)} s) · essay ${lineOf(at.essay)} · ${over(runs, ({ overheadMs }) => overheadMs).toFixed(0)} ms and ${over(runs, ({ cpuMsPerRequest }) => cpuMsPerRequest).toFixed(1)} ms CPU a request are our own · others used ${(100 * at.foreign).toFixed(0)} % of the machine`,
    );
  }
  return { result: judge(rates), svg: picture(rates) };
}

const over = (runs: readonly RateRun[], of: (run: RateRun) => number): number => median(runs.map(of));

const lineOf = (who: RouterFigures): string =>
  `batch ${who.batch.toFixed(2)} · ${who.requestS.toFixed(2)} s a request · ${who.perDecisionS.toFixed(2)} s a decision · wait p95 ${who.waitP95S.toFixed(1)} s · decision p95 ${who.decisionP95S.toFixed(1)} s · ${(who.cachedPerDecision / 1_000).toFixed(0)} k cached a decision`;

function judge(rates: readonly AtRate[]): Result {
  const runs = rates.flatMap((each) => each.runs);
  const runsAt = (rate: number): RateRun[] => runs.filter((run) => run.rate === rate);
  /** Ours by the essay's, a seed each. */
  const ratios = (rate: number, of: (figures: RouterFigures) => number): number[] =>
    runsAt(rate).map(({ ours, essay }) => of(figuresOf([ours])) / of(figuresOf([essay])));
  const figures: Figures = { seeds: [...new Set(runs.map(({ seed }) => seed))].join(" ") };
  for (const { rate, ours, essay } of rates) {
    figures[`${rate} a minute, ours`] = lineOf(ours);
    figures[`${rate} a minute, essay`] = lineOf(essay);
  }
  figures["most of the machine that others used at a rate, share"] = Math.max(...rates.map(({ foreign }) => foreign));
  const essayRate = sustainableRate(essayPolicy);
  const ourRates = runsAt(40).map((run) => sustainableRate(policyOf(run)));
  figures["sustainable rate, ours"] = median(ourRates);
  figures["sustainable rate, essay"] = essayRate;
  const highest = (of: (at: AtRate) => RouterFigures): number =>
    Math.max(0, ...rates.filter((at) => of(at).decisionP95S < 30).map(({ rate }) => rate));
  figures["highest measured rate with p95 below 30 s, ours"] = highest(({ ours }) => ours);
  figures["highest measured rate with p95 below 30 s, essay"] = highest(({ essay }) => essay);
  const apart = ({ ours, oracle }: AtRate): number =>
    Math.max(...(["batch", "requestS", "decisionP50S", "decisionP95S"] as const).map((name) => Math.abs(ours[name] / oracle[name] - 1)));
  const goals: Goal[] = [
    ratioGoal(
      "decision p95 at 40 a minute, ours / essay's",
      ratios(40, ({ decisionP95S }) => decisionP95S),
      "<=",
      0.35,
    ),
    ratioGoal(
      "sustainable rate, ours / essay's",
      ourRates.map((rate) => rate / essayRate),
      ">=",
      3.5,
    ),
    ratioGoal(
      "cached tokens a decision at 5 a minute, ours / essay's",
      ratios(5, ({ cachedPerDecision }) => cachedPerDecision),
      "<=",
      0.65,
    ),
    goal(
      "CPU a request, ms",
      over(runs, ({ cpuMsPerRequest }) => cpuMsPerRequest),
      "<=",
      15,
    ),
    goal(
      "our own time in a request, share of its latency",
      over(runs, ({ overheadMs, requestMs }) => overheadMs / requestMs),
      "<=",
      0.01,
    ),
    goal("lost", sum(runs.map(({ lost }) => lost)), "<=", 0),
    goal("dispatched twice", sum(runs.map(({ twice }) => twice)), "<=", 0),
    goal("apart from the simulation at most", Math.max(...rates.filter(({ ours }) => ours.decisionP95S < 30).map(apart)), "<=", 0.1),
  ];
  return result("essay-batching", figures, goals);
}

function picture(rates: readonly AtRate[]): string {
  const curve = (of: (at: AtRate) => number): [number, number][] => rates.map((at) => [at.rate, of(at)]);
  const both = (key: keyof RouterFigures) => [
    { name: "ours, measured", colour: colours.ours, points: curve(({ ours }) => ours[key]) },
    { name: "ours, simulated", colour: colours.ours, dashed: true, points: curve(({ oracle }) => oracle[key]) },
    { name: "essay's policy, measured", colour: colours.essay, points: curve(({ essay }) => essay[key]) },
  ];
  const panel = { xLabel: "triggers a minute", logX: true };
  const at = (rate: number): string[] =>
    rates
      .filter((each) => each.rate === rate)
      .map(
        ({ ours, essay }) =>
          `At ${rate} triggers a minute: ours ${ours.decisionP95S.toFixed(1)} s, the essay's policy ${essay.decisionP95S.toFixed(1)} s.`,
      );
  const about = {
    title: "Decision latency, batch size and time a request of the router over the rate of triggers",
    desc: `Decision latency, p95. ${[5, 40, 80].flatMap(at).join(" ")}`,
    note: `Measured with a simulated model at ${rates.map(({ rate }) => rate).join(", ")} triggers a minute. A line that ends at the top goes on beyond it.`,
  };
  return drawChart(about, [
    { ...panel, title: "Decision latency, p95", yLabel: "seconds", maxY: 40, series: both("decisionP95S") },
    { ...panel, title: "Triggers a batch", yLabel: "triggers", maxY: 8, series: both("batch") },
    { ...panel, title: "Time a request", yLabel: "seconds", maxY: 8, series: both("requestS") },
  ]);
}
