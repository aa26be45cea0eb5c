// `npm run bench -- essay-e2e`: the essay's first experiment. Ours runs for real; the other designs are replicas on the same seeds.
import { type RealRun, runReal } from "./e2e-run.ts";
import { type Design, type Outcome, simulateDesign } from "./e2e-simulation.ts";
import { essaySize, type Workload, type WorkloadSize, workloadOf } from "./e2e-workload.ts";
import { colours, drawChart, type Series } from "./lib/chart.ts";
import { type Figures, type Goal, goal, type Result, result } from "./lib/result.ts";
import { mean, median, quantile, sum } from "./lib/statistics.ts";

export type EndToEndOptions = { size: WorkloadSize; seeds: number[]; speed: number; checkSpeed: number | null };
export const fullEndToEnd: EndToEndOptions = { size: essaySize, seeds: [1, 2, 3, 4, 5], speed: 15, checkSpeed: 60 };
export const quickEndToEnd: EndToEndOptions = { size: essaySize, seeds: [1], speed: 15, checkSpeed: null };

const replicas: Design[] = ["essay", "no_pass_through", "delegating", "neutral"];
const names: Record<Design, string> = {
  essay: "super-agent, essay's policy",
  no_pass_through: "without pass-through",
  delegating: "single, delegation first",
  neutral: "single, neutral",
  ours: "ours, simulated",
  ours_gated: "ours, simulated, with a gate that drops 60 % of the talk",
};

export type EndToEnd = { result: Result; svg: string; real: RealRun[]; simulated: Record<Design, Outcome[]> };

type Times = Pick<Outcome, "minutes" | "ideal" | "decisions" | "cachedTokens">;
const finished = (runs: readonly Times[]): number[] => runs.flatMap(({ minutes }) => minutes.filter((each) => each !== null));
const ratios = (runs: readonly Times[]): number[] =>
  runs.flatMap(({ minutes, ideal }) => minutes.flatMap((each, i) => (each === null ? [] : [each / (ideal[i] ?? Number.NaN)])));
const perRun = (runs: readonly Times[], key: "decisions" | "cachedTokens"): number => mean(runs.map((run) => run[key]));
const p95 = (runs: readonly Times[]): number => quantile(finished(runs), 0.95);

export async function essayEndToEnd(options: EndToEndOptions): Promise<EndToEnd> {
  const workloads = options.seeds.map((seed) => workloadOf(options.size, seed));
  const simulated = Object.fromEntries(
    Object.keys(names).map((design) => [design, workloads.map((workload) => simulateDesign(design as Design, workload))]),
  ) as Record<Design, Outcome[]>;
  const real: RealRun[] = [];
  for (const workload of workloads) {
    const run = await runReal(workload, options.speed);
    real.push(run);
    console.error(
      `seed ${workload.seed}: p50 ${quantile(finished([run]), 0.5).toFixed(1)}, p95 ${p95([run]).toFixed(1)} min, T/T_ideal ${median(ratios([run])).toFixed(3)}, ${run.decisions} decisions, ${(run.cachedTokens / 1e6).toFixed(1)} M cached, CPU ${(run.cpuShare * 100).toFixed(0)} %`,
    );
  }
  const first = workloads[0];
  const fast = options.checkSpeed !== null && first ? await runReal(first, options.checkSpeed) : null;
  return { result: judge(real, simulated, fast), svg: picture(workloads, real, simulated), real, simulated };
}

function judge(real: RealRun[], simulated: Record<Design, Outcome[]>, fast: RealRun | null): Result {
  const figures: Figures = {};
  const row = (name: string, runs: readonly Times[]): void => {
    figures[name] =
      `p50 ${quantile(finished(runs), 0.5).toFixed(1)} / p95 ${p95(runs).toFixed(1)} min · T/T_ideal p50 ${median(ratios(runs)).toFixed(3)} p95 ${quantile(ratios(runs), 0.95).toFixed(3)} · ${perRun(runs, "decisions").toFixed(0)} router decisions · ${(perRun(runs, "cachedTokens") / 1e6).toFixed(1)} M cached tokens`;
  };
  for (const design of replicas) row(names[design], simulated[design]);
  row("ours", real);
  row(names.ours, simulated.ours);
  row(names.ours_gated, simulated.ours_gated);
  figures["talk dropped by the shipped gate, share"] = sum(real.map(({ dropped }) => dropped)) / 205 / real.length;
  const cancels = real.flatMap(({ cancelMs }) => cancelMs);
  if (cancels.length > 0) figures["cancel to the machine's order to stop, ms, slowest"] = Math.max(...cancels);
  const p95s = real.map((run) => p95([run]));
  const apart = (key: (runs: readonly Times[]) => number): number => Math.abs(key(real) / key(simulated.ours) - 1);
  const goals: Goal[] = [
    goal("p95, single neutral / ours", p95(simulated.neutral) / p95(real), ">=", 1.6),
    goal("T/T_ideal p50", median(ratios(real)), "<=", 1.015),
    goal("T/T_ideal p95", quantile(ratios(real), 0.95), "<=", 1.04),
    goal(
      "tokens, without / with pass-through",
      perRun(simulated.no_pass_through, "cachedTokens") / perRun(simulated.essay, "cachedTokens"),
      ">=",
      1.3,
    ),
    goal("tokens, ours / essay's", perRun(real, "cachedTokens") / perRun(simulated.essay, "cachedTokens"), "<=", 0.75),
    goal("router decisions, ours / essay's", perRun(real, "decisions") / perRun(simulated.essay, "decisions"), "<=", 0.55),
    goal("CPU share", Math.max(...real.map(({ cpuShare }) => cpuShare)), "<=", 0.5),
    goal("unfinished tasks", sum(real.map(({ unfinished }) => unfinished)), "<=", 0),
    goal(
      "p50 apart from the simulation",
      apart((runs) => quantile(finished(runs), 0.5)),
      "<=",
      0.05,
    ),
    goal("p95 apart from the simulation", apart(p95), "<=", 0.05),
    goal(
      "cached tokens apart from the simulation",
      apart((runs) => perRun(runs, "cachedTokens")),
      "<=",
      0.05,
    ),
  ];
  if (real.length > 1) goals.push(goal("p95 over the seeds, highest / lowest", Math.max(...p95s) / Math.min(...p95s), "<=", 1.3));
  if (cancels.length > 0) goals.push(goal("cancel to the machine's order to stop, ms", Math.max(...cancels), "<=", 1_000));
  const firstRun = real[0];
  if (fast && firstRun)
    goals.push(
      goal(
        "p50 apart between the two speeds",
        Math.abs(quantile(finished([fast]), 0.5) / quantile(finished([firstRun]), 0.5) - 1),
        "<=",
        0.03,
      ),
    );
  return result("essay-e2e", figures, goals);
}

/** Requests and results over time, averaged over the seeds, as in the essay's own picture. */
function picture(workloads: readonly Workload[], real: readonly RealRun[], simulated: Record<Design, Outcome[]>): string {
  const endMin = 110;
  const at = Array.from({ length: endMin + 1 }, (_, minute) => minute);
  const curve = (runs: readonly Times[]): [number, number][] =>
    at.map((minute) => [
      minute,
      mean(
        runs.map(
          (run, i) =>
            run.minutes.filter((took, n) => took !== null && (workloads[i]?.tasks[n]?.atMs ?? 0) / 60_000 + took <= minute).length,
        ),
      ),
    ]);
  const asked: [number, number][] = at.map((minute) => [
    minute,
    mean(workloads.map(({ tasks }) => tasks.filter(({ atMs }) => atMs / 60_000 <= minute).length)),
  ]);
  const series: Series[] = [
    { name: "requests", colour: "#8b949e", dashed: true, points: asked },
    { name: "ours", colour: colours.ours, points: curve(real) },
    { name: "super-agent, essay's policy", colour: colours.essay, points: curve(simulated.essay) },
    { name: "single, delegation first", colour: colours.third, points: curve(simulated.delegating) },
    { name: "single, neutral", colour: colours.fifth, points: curve(simulated.neutral) },
  ];
  const spread = (runs: readonly Times[]): [number, number][] =>
    Array.from({ length: 21 }, (_, i) => [i * 5, quantile(finished(runs), i / 20)]);
  return drawChart("Requests and finished tasks over time, and how long a task takes, for five designs", [
    { title: "Requests, and tasks finished", xLabel: "minute", yLabel: "tasks", steps: true, series },
    {
      title: "Time from request to result",
      xLabel: "share of the tasks, %",
      yLabel: "minutes",
      series: [
        { name: "ours", colour: colours.ours, points: spread(real) },
        { name: "super-agent, essay's policy", colour: colours.essay, points: spread(simulated.essay) },
        { name: "single, delegation first", colour: colours.third, points: spread(simulated.delegating) },
        { name: "single, neutral", colour: colours.fifth, points: spread(simulated.neutral) },
      ],
    },
  ]);
}
