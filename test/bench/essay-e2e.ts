// `npm run bench -- essay-e2e`: the essay's first experiment. All designs run at once, for real, on the same seeds; the simulation is
// the oracle beside them.
import type { RealDesign, RealRun } from "./e2e-run.ts";
import { type Design, idealOf, type Outcome, simulateDesign } from "./e2e-simulation.ts";
import { SingleSession } from "./e2e-single.ts";
import { RealTier } from "./e2e-tier.ts";
import { essaySize, type Workload, type WorkloadSize, workloadOf } from "./e2e-workload.ts";
import { bundleChanged, wholeTurns, withoutPassThrough } from "./lib/changed-worker.ts";
import { colours, drawChart, type Series } from "./lib/chart.ts";
import { foreignLoad } from "./lib/foreign-load.ts";
import { type Figures, type Goal, goal, type Result, ratioGoal, result } from "./lib/result.ts";
import { shippedGate } from "./lib/shipped-gate.ts";
import { mean, median, quantile, sum } from "./lib/statistics.ts";

export type EndToEndOptions = {
  size: WorkloadSize;
  seeds: number[];
  /** So many seeds run at once. */
  parallel: number;
  speed: number;
  /** Ours once more at this speed: what it costs by itself counts more there. */
  checkSpeed: number | null;
};
/** Seven seeds: the interval of a median of five ends with the worst of them. */
export const fullEndToEnd: EndToEndOptions = { size: essaySize, seeds: [1, 2, 3, 4, 5, 6, 7], parallel: 4, speed: 15, checkSpeed: 60 };
export const quickEndToEnd: EndToEndOptions = { size: essaySize, seeds: [1], parallel: 1, speed: 30, checkSpeed: null };

const names: Record<Design, string> = {
  ours: "ours",
  ours_ungated: "ours, gate off",
  essay: "super-agent, essay's policy",
  no_pass_through: "the same without pass-through",
  delegating: "single session, delegation first",
  neutral: "single session, neutral",
};
const designs = Object.keys(names) as Design[];

type TwoTier = Exclude<Design, "delegating" | "neutral">;
/** What one seed left behind: measured, and simulated. */
export type SeedRun = {
  workload: Workload;
  ideal: number[];
  measured: Record<Design, Outcome>;
  simulated: Record<Design, Outcome>;
  real: Record<TwoTier, RealRun>;
};

/** Bundles of the replicas of the essay's policy. */
export type Replicas = { essay: string; noPassThrough: string };

/** All designs on one seed, at once. */
export async function runSeed(workload: Workload, speed: number, replicas: Replicas): Promise<SeedRun> {
  const designsOf: Record<TwoTier, RealDesign> = {
    ours: { policy: "ours", gate: "shipped" },
    ours_ungated: { policy: "ours", gate: "off" },
    essay: { policy: "essay", gate: "off", scriptPath: replicas.essay },
    no_pass_through: { policy: "essay", gate: "off", scriptPath: replicas.noPassThrough },
  };
  const tiers: [TwoTier, RealTier][] = [];
  try {
    for (const [name, design] of Object.entries(designsOf)) tiers.push([name as TwoTier, await RealTier.start(design, workload, speed)]);
    const clock = { startMs: Date.now() + 200, speed };
    const [tiersDone, delegating, neutral] = await Promise.all([
      Promise.all(tiers.map(async ([name, tier]) => [name, await tier.run(clock)] as const)),
      SingleSession.run("delegating", workload, clock),
      SingleSession.run("neutral", workload, clock),
    ]);
    const real = Object.fromEntries(tiersDone) as Record<TwoTier, RealRun>;
    const simulated = Object.fromEntries(designs.map((design) => [design, simulateDesign(design, workload, shippedGate)]));
    return {
      workload,
      ideal: idealOf(workload),
      measured: { ...real, delegating, neutral },
      simulated: simulated as Record<Design, Outcome>,
      real,
    };
  } finally {
    for (const [, tier] of tiers) await tier.close();
  }
}

export const finished = (runs: readonly Pick<Outcome, "minutes">[]): number[] =>
  runs.flatMap(({ minutes }) => minutes.filter((each) => each !== null));
const measuredBy = (runs: readonly SeedRun[], design: Design): Outcome[] => runs.map(({ measured }) => measured[design]);
const ratios = (runs: readonly SeedRun[], design: Design, of: "measured" | "simulated" = "measured"): number[] =>
  runs.flatMap((run) => run[of][design].minutes.flatMap((each, i) => (each === null ? [] : [each / (run.ideal[i] ?? Number.NaN)])));
export const perRun = (runs: readonly Outcome[], key: "decisions" | "cachedTokens"): number => mean(runs.map((run) => run[key]));
export const p95 = (runs: readonly Pick<Outcome, "minutes">[]): number => quantile(finished(runs), 0.95);
const p50 = (runs: readonly Outcome[]): number => median(finished(runs));

export async function essayEndToEnd(options: EndToEndOptions): Promise<{ result: Result; svg: string }> {
  const replicas: Replicas = {
    essay: await bundleChanged(wholeTurns),
    noPassThrough: await bundleChanged(wholeTurns, withoutPassThrough),
  };
  const runs: SeedRun[] = [];
  const foreigns: number[] = [];
  for (let i = 0; i < options.seeds.length; i += options.parallel) {
    const foreign = foreignLoad();
    const atOnce = await Promise.all(
      options.seeds
        .slice(i, i + options.parallel)
        .map(async (seed) => ({ seed, run: await runSeed(workloadOf(options.size, seed), options.speed, replicas) })),
    );
    foreigns.push(foreign(sum(atOnce.flatMap(({ run }) => Object.values(run.real).map(({ usedSeconds }) => usedSeconds)))));
    for (const { seed, run } of atOnce) {
      runs.push(run);
      for (const design of designs) console.error(`seed ${seed}, ${names[design]}: ${lineOf([run], design)}`);
    }
  }
  const first = runs[0];
  let fast: RealRun | null = null;
  if (options.checkSpeed !== null && first) {
    const tier = await RealTier.start({ policy: "ours", gate: "shipped" }, first.workload, options.checkSpeed);
    fast = await tier.run({ startMs: Date.now() + 200, speed: options.checkSpeed }).finally(() => tier.close());
  }
  return { result: judgeRuns(runs, options, fast, Math.max(...foreigns)), svg: picture(runs, options) };
}

function lineOf(runs: readonly SeedRun[], design: Design, of: "measured" | "simulated" = "measured"): string {
  const outcomes = runs.map((run) => run[of][design]);
  const all = ratios(runs, design, of);
  return `p50 ${p50(outcomes).toFixed(1)} / p95 ${p95(outcomes).toFixed(1)} min · T/T_ideal p50 ${median(all).toFixed(3)} p95 ${quantile(all, 0.95).toFixed(3)} · ${perRun(outcomes, "decisions").toFixed(0)} router decisions · ${(perRun(outcomes, "cachedTokens") / 1e6).toFixed(1)} M cached tokens`;
}

function judgeRuns(runs: readonly SeedRun[], options: EndToEndOptions, fast: RealRun | null, foreign: number): Result {
  const by = (design: Design): Outcome[] => measuredBy(runs, design);
  const figures: Figures = { "seeds, and how often faster than real time": `${options.seeds.join(" ")}, ${options.speed}` };
  for (const design of designs) figures[names[design]] = lineOf(runs, design);
  for (const design of designs) figures[`simulated: ${names[design]}`] = lineOf(runs, design, "simulated");
  const reals = runs.flatMap(({ real }) => Object.values(real));
  const ours = runs.map(({ real }) => real.ours);
  const cancels = reals.flatMap(({ cancelMs }) => cancelMs);
  const p95s = by("ours").map((run) => p95([run]));
  figures["talk that the shipped gate kept from the router, share"] =
    sum(ours.map(({ dropped }) => dropped)) / sum(runs.map(({ workload }) => workload.casual.length));
  figures["tokens, ours with the gate off / essay's"] = perRun(by("ours_ungated"), "cachedTokens") / perRun(by("essay"), "cachedTokens");
  figures["router decisions, ours with the gate off / essay's"] =
    perRun(by("ours_ungated"), "decisions") / perRun(by("essay"), "decisions");
  figures["router decisions, without / with pass-through"] = perRun(by("no_pass_through"), "decisions") / perRun(by("essay"), "decisions");
  const cpuShare = Math.max(...[...reals, ...(fast === null ? [] : [fast])].map((run) => run.cpuShare));
  figures["most of the machine that others used meanwhile, share"] = foreign;
  figures["p95 over the seeds, ours"] = p95s.map((each) => each.toFixed(1)).join(" ");
  // A seed is a pair: its designs ran at once. What all tasks together say stands beside the goals, in the lines of the designs.
  const seedBySeed: { name: string; of: (run: SeedRun) => number; op: Goal["op"]; bound: number }[] = [
    { name: "p95, single neutral / ours", of: ({ measured }) => p95([measured.neutral]) / p95([measured.ours]), op: ">=", bound: 1.6 },
    { name: "T/T_ideal p50", of: (run) => median(ratios([run], "ours")), op: "<=", bound: 1.015 },
    { name: "T/T_ideal p95", of: (run) => quantile(ratios([run], "ours"), 0.95), op: "<=", bound: 1.04 },
    {
      name: "tokens, without / with pass-through",
      of: ({ measured }) => measured.no_pass_through.cachedTokens / measured.essay.cachedTokens,
      op: ">=",
      bound: 1.3,
    },
    {
      name: "tokens, ours / essay's",
      of: ({ measured }) => measured.ours.cachedTokens / measured.essay.cachedTokens,
      op: "<=",
      bound: 0.75,
    },
    {
      name: "router decisions, ours / essay's",
      of: ({ measured }) => measured.ours.decisions / measured.essay.decisions,
      op: "<=",
      bound: 0.55,
    },
  ];
  const shown = (each: readonly number[]): string =>
    `${each.map((ratio) => ratio.toFixed(3)).join(" ")}, median ${median(each).toFixed(3)}`;
  for (const { name, of } of seedBySeed) figures[`seed by seed: ${name}`] = shown(runs.map(of));
  figures["seed by seed: p95, single neutral / the least that the trace allows"] = shown(
    runs.map((run) => p95([run.measured.neutral]) / p95([{ minutes: run.ideal.filter((_, i) => run.measured.ours.minutes[i] !== null) }])),
  );
  const goals: Goal[] = [
    ...seedBySeed.map(({ name, of, op, bound }) => ratioGoal(name, runs.map(of), op, bound)),
    goal("requests that the gate kept from the router", sum(ours.map(({ droppedRequests }) => droppedRequests)), "<=", 0),
    goal("unfinished tasks", sum(reals.map(({ unfinished }) => unfinished)), "<=", 0),
    goal("CPU share of a runtime", cpuShare, "<=", 0.5),
    goal("apart from the simulation at most: p50, p95, tokens", Math.max(...designs.map((design) => apart(runs, design))), "<=", 0.05),
  ];
  if (p95s.length > 1) goals.push(goal("p95 over the seeds, highest / lowest", Math.max(...p95s) / Math.min(...p95s), "<=", 1.3));
  goals.push(goal("from Stop to the machine's order to stop, ms, slowest", Math.max(...cancels), "<=", 1_000));
  const first = ours[0];
  if (fast && first)
    goals.push(goal(`p50 apart at ${options.checkSpeed} times real time`, Math.abs(p50([fast]) / p50([first]) - 1), "<=", 0.03));
  return result("essay-e2e", figures, goals);
}

/** How far what was measured is from what was simulated, at worst. */
function apart(runs: readonly SeedRun[], design: Design): number {
  const simulated = runs.map((run) => run.simulated[design]);
  const measured = measuredBy(runs, design);
  const figures = [p50, p95, (outcomes: readonly Outcome[]) => perRun(outcomes, "cachedTokens")];
  return Math.max(...figures.map((figure) => Math.abs(figure(measured as Outcome[]) / figure(simulated) - 1)));
}

const drawn: { design: Design; colour: string }[] = [
  { design: "ours", colour: colours.ours },
  { design: "essay", colour: colours.essay },
  { design: "delegating", colour: colours.third },
  { design: "neutral", colour: colours.fifth },
];

/** Requests and results over time, averaged over the seeds, as in the essay's own picture; and how long the tasks took. */
function picture(runs: readonly SeedRun[], options: EndToEndOptions): string {
  const at = Array.from({ length: 111 }, (_, minute) => minute);
  const counted = (isIn: (run: SeedRun, n: number, minute: number) => boolean): [number, number][] =>
    at.map((minute) => [minute, mean(runs.map((run) => run.workload.tasks.filter(({ n }) => isIn(run, n, minute)).length))]);
  const atMin = (run: SeedRun, n: number): number => (run.workload.tasks[n]?.atMs ?? 0) / 60_000;
  const series: Series[] = drawn.map(({ design, colour }) => ({
    name: names[design],
    colour,
    points: counted((run, n, minute) => atMin(run, n) + (run.measured[design].minutes[n] ?? Number.POSITIVE_INFINITY) <= minute),
  }));
  const requests: Series = {
    name: "requests",
    colour: "#8b949e",
    dashed: true,
    points: counted((run, n, minute) => atMin(run, n) <= minute && run.measured.ours.minutes[n] !== null),
  };
  const spread = (design: Design): [number, number][] =>
    Array.from({ length: 21 }, (_, i) => [i * 5, quantile(finished(measuredBy(runs, design)), i / 20)]);
  const said = (design: Design): string =>
    `${names[design]}: p50 ${p50(measuredBy(runs, design)).toFixed(1)}, p95 ${p95(measuredBy(runs, design)).toFixed(1)} minutes`;
  return drawChart(
    {
      title: "From request to result: four designs on the same messages",
      desc: `${drawn.map(({ design }) => said(design)).join("; ")}.`,
      note: `Measured: ${runs.length === 1 ? "one seed" : `${runs.length} seeds`}, ${options.speed} times faster than real time, simulated model and tools. Tasks that were cancelled are left out.`,
    },
    [
      { title: "Requests, and tasks finished", xLabel: "minute", yLabel: "tasks", steps: true, series: [requests, ...series] },
      {
        title: "Time from request to result",
        xLabel: "share of the tasks, %",
        yLabel: "minutes",
        series: drawn.map(({ design, colour }) => ({ name: names[design], colour, points: spread(design) })),
      },
    ],
  );
}
