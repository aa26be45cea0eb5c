// `npm run bench -- essay-batching`: the load that one router takes, against a frozen replica of the essay's policy in the same run.
import { setTimeout as sleep } from "node:timers/promises";
import { routerName } from "../../src/env.ts";
import type { Logged } from "../../src/protocol/events.ts";
import {
  type Arrival,
  type Asked,
  arrivalsOf,
  figuresOf,
  type Policy,
  type RouterFigures,
  type Run,
  simulate,
  sustainableRate,
} from "./batching-simulation.ts";
import { essayPolicy, runEssayPolicy } from "./essay-policy.ts";
import { colours, drawChart } from "./lib/chart.ts";
import { Deployment, issueOpened } from "./lib/deployment.ts";
import { foreignLoad } from "./lib/foreign-load.ts";
import { type ModelServer, type Script, startModelServer } from "./lib/model-server.ts";
import { type Figures, type Goal, goal, type Result, result } from "./lib/result.ts";
import { planMark, simulatedRouter } from "./lib/simulated-router.ts";
import { leastSquares, median, sum } from "./lib/statistics.ts";

/** Virtual time is at most this often faster: our own time, which is not scaled, counts as often against us. */
const maxSpeed = 20;
const drainMs = 90_000;
/** The essay's context; the same for ours, so that it is the policy that is compared. */
const prefixTokens = 60_000;

export type BatchingOptions = {
  /** Real arrivals a second that this machine takes without queueing; above it virtual time goes slower. */
  maxPerSecond: number;
  rates: number[];
  minimumMs: number;
  minimumDecisions: number;
};
export const fullBatching: BatchingOptions = {
  maxPerSecond: 4,
  rates: [1, 5, 10, 20, 40, 60, 80, 100, 200],
  minimumMs: 12 * 60_000,
  minimumDecisions: 60,
};
export const quickBatching: BatchingOptions = { maxPerSecond: 4, rates: [5, 10, 20, 40, 80], minimumMs: 4 * 60_000, minimumDecisions: 15 };

type RateRun = {
  rate: number;
  ours: RouterFigures;
  essay: RouterFigures;
  oracle: RouterFigures;
  essayOracle: RouterFigures;
  policy: Policy;
  lost: number;
  twice: number;
  overheadMs: number;
  requestMs: number;
  cpuMsPerRequest: number;
  /** Of the machine, used by others meanwhile. */
  foreign: number;
  ownCachedPerDecision: number;
};

const chatter = [
  "The nightly build took twice as long as last week; the cache of the dependencies seems to be missed each time since the runner was changed.",
  "Whoever has a minute: the dialog of the settings page closes when one clicks into the field for the time zone, at least in my browser.",
  "I have looked at the numbers of yesterday again, and the second peak comes from the import that was repeated by hand, nothing to worry about.",
];

/** Workers are mocks: their one answer is a report. */
const script = (): Script => {
  const router = simulatedRouter();
  return (request) =>
    request.model === "router"
      ? router(request)
      : { calls: [{ tool: "report", input: { kind: "done", text: "It is done.", confidence: 0.9 } }] };
};

async function runRate(rate: number, options: BatchingOptions): Promise<RateRun> {
  const windowMs = Math.max(options.minimumMs, (options.minimumDecisions / rate) * 60_000);
  const arrivals = arrivalsOf(rate, windowMs, 1_000 + rate);
  const speed = Math.min(maxSpeed, (options.maxPerSecond * 60) / rate);
  const server = await startModelServer({ speed, script: script(), prefixTokens: (who) => (who.startsWith("router") ? prefixTokens : 0) });
  const deployment = await Deployment.start({ modelUrl: server.url });
  try {
    await warmUp(deployment);
    const before = (await deployment.events("ROUTER", routerName)).at(-1)?.seq ?? 0;
    const servedBefore = server.served.length;
    const cpuBefore = deployment.cpuSeconds();
    const foreign = foreignLoad(() => deployment.cpuSeconds());
    const startMs = Date.now() + 200;
    const endMs = windowMs + drainMs;
    const [triggers, essay] = await Promise.all([
      offer(deployment, server, arrivals, startMs),
      runEssayPolicy(server, arrivals, startMs, endMs),
    ]);
    await settled(deployment, before, triggers, startMs + endMs / speed);
    const foreignShare = foreign();
    const cpuMs = (deployment.cpuSeconds() - cpuBefore) * 1_000;
    const rows = await deployment.events("ROUTER", routerName, before);
    const served = server.served.slice(servedBefore).filter(({ conversation }) => conversation.startsWith("router"));
    const measured = readRows(rows, arrivals, triggers, { speed, startMs, endMs });
    const ourPolicy = policyOf(measured.run, measured.asked);
    return {
      rate,
      ours: figuresOf(measured.run),
      essay: figuresOf(essay),
      oracle: figuresOf(simulate(arrivals, ourPolicy, endMs)),
      essayOracle: figuresOf(simulate(arrivals, essayPolicy, endMs)),
      policy: ourPolicy,
      lost: measured.lost,
      twice: measured.twice,
      overheadMs: median(measured.realMs.map((ms, i) => ms - (served[i]?.latencyMs ?? Number.NaN) / speed)),
      requestMs: median(served.map(({ latencyMs }) => latencyMs)),
      foreign: foreignShare,
      cpuMsPerRequest: cpuMs / (server.served.length - servedBefore),
      ownCachedPerDecision: sum(measured.ownCached) / arrivals.length,
    };
  } finally {
    await deployment.stop();
    await server.close();
  }
}

/** Migrations, permissions and code are there before the clock starts. */
async function warmUp(deployment: Deployment): Promise<void> {
  for (const n of [900_001, 900_002, 900_003])
    await deployment.deliver("issues", `warm-${n}`, issueOpened(n, "Warm", `Hello. ${planMark({ act: "dispatch", steps: 1 })}`));
  await sleep(1_500);
}

/** Open loop: each trigger at its time, whatever the router does. Returns the trigger id of each arrival. */
async function offer(
  deployment: Deployment,
  server: ModelServer,
  arrivals: readonly Arrival[],
  startMs: number,
): Promise<Map<string, number>> {
  const ids = new Map<string, number>();
  await Promise.all(
    arrivals.map(async ({ n, atMs, act, ourSteps }) => {
      await sleep(Math.max(0, startMs + atMs / server.speed - Date.now()));
      const text = `${chatter[n % chatter.length]} ${planMark({ act, steps: ourSteps })}`;
      const { id } = await deployment.deliver("issues", `run-${n}`, issueOpened(n + 1, `Something about ${n}`, text));
      ids.set(id, n);
    }),
  );
  return ids;
}

/** Waits for the last decision; reads only what is new, so that looking costs the router little. */
async function settled(deployment: Deployment, before: number, triggers: Map<string, number>, deadlineMs: number): Promise<void> {
  const waiting = new Set(triggers.keys());
  let seq = before;
  while (Date.now() < deadlineMs) {
    const rows = await deployment.events("ROUTER", routerName, seq);
    seq = rows.at(-1)?.seq ?? seq;
    for (const { event } of rows) if (event.kind === "router.decision") for (const id of event.settles) waiting.delete(id);
    if (waiting.size === 0) return;
    await sleep(1_000);
  }
}

/** Everything from the router's own rows; only the time of arrival is the generator's schedule. */
function readRows(
  rows: readonly Logged[],
  arrivals: readonly Arrival[],
  triggers: ReadonlyMap<string, number>,
  { speed, startMs, endMs }: { speed: number; startMs: number; endMs: number },
): { run: Run; asked: Asked[][]; lost: number; twice: number; realMs: number[]; ownCached: number[] } {
  const virtual = (wallMs: number): number => (wallMs - startMs) * speed;
  const decisions = arrivals.map(({ n, atMs }) => ({
    n,
    arrivedMs: atMs,
    takenMs: null as number | null,
    decidedMs: null as number | null,
  }));
  const run: Run = { decisions, requests: [], endMs };
  const realMs: number[] = [];
  const ownCached: number[] = [];
  const tasks = new Map<string, Set<string>>();
  const openOf: number[][] = [];
  const decidedIn: Set<number>[] = [];
  let reserved: { atMs: number; joined: number; open: number } | null = null;
  let open: number[] = [];
  for (const { atMs, event } of rows) {
    if (event.kind === "router.model" && event.phase === "reserve") {
      const items = event.items.flatMap((id) => decisions[triggers.get(id) ?? -1] ?? []);
      const joined = items.filter((item) => item.takenMs === null);
      for (const item of joined) item.takenMs = virtual(atMs);
      open = items.filter((item) => item.decidedMs === null).map(({ n }) => n);
      reserved = { atMs, joined: joined.length, open: open.length };
    } else if (event.kind === "router.model" && event.phase === "settle" && reserved !== null) {
      run.requests.push({
        ...reserved,
        atMs: virtual(reserved.atMs),
        ms: (atMs - reserved.atMs) * speed,
        cached: event.usage?.cachedTokens ?? 0,
      });
      realMs.push(atMs - reserved.atMs);
      openOf.push(open);
      decidedIn.push(new Set());
      reserved = null;
    } else if (event.kind === "router.decision") {
      for (const id of event.settles) {
        const decision = decisions[triggers.get(id) ?? -1];
        if (!decision) continue;
        decision.decidedMs ??= virtual(atMs);
        decidedIn.at(-1)?.add(decision.n);
        if (event.taskId !== undefined && event.tool === "dispatch") tasks.set(id, (tasks.get(id) ?? new Set()).add(event.taskId));
      }
    }
  }
  const askedIn = (each: number[], i: number): Asked[] =>
    each.flatMap((n) => arrivals[n] ?? []).map(({ n, act }) => ({ act, decides: decidedIn[i]?.has(n) === true }));
  return {
    run,
    asked: openOf.map(askedIn),
    lost: decisions.filter((decision) => decision.decidedMs === null && decision.arrivedMs < endMs - drainMs).length,
    twice: [...tasks.values()].filter((made) => made.size > 1).length,
    realMs,
    ownCached,
  };
}

/** What the latency of a request is made of: what is new to it, what it reads more of, and what it decides, by act. */
const featuresOf = (joined: number, open: readonly Asked[]): number[] => [
  1,
  joined,
  open.filter(({ decides }) => !decides).length,
  ...(["record", "reply", "dispatch"] as const).map((act) => open.filter((item) => item.decides && item.act === act).length),
];

/** The law of our requests for the oracle, fitted to the run; the queue is the oracle's own. */
function policyOf(run: Run, asked: readonly Asked[][]): Policy {
  const law = leastSquares(
    run.requests.map(({ joined }, i) => featuresOf(joined, asked[i] ?? [])),
    run.requests.map(({ ms }) => ms),
  );
  return {
    steps: (arrival) => arrival.ourSteps,
    cost: (joined, open) => ({ ms: sum(featuresOf(joined, open).map((value, i) => value * (law[i] ?? 0))), cached: prefixTokens }),
    joinsMidTurn: true,
  };
}

export async function essayBatching(options: BatchingOptions): Promise<{ result: Result; svg: string }> {
  const runs: RateRun[] = [];
  for (const rate of options.rates) {
    const run = await runRate(rate, options);
    runs.push(run);
    const { ours, essay, oracle } = run;
    console.error(
      `${String(rate).padStart(4)} a minute: ours batch ${ours.batch.toFixed(2)}, ${ours.requestS.toFixed(2)} s a request, wait p95 ${ours.waitP95S.toFixed(1)}, p95 ${ours.decisionP95S.toFixed(1)} s (oracle ${oracle.decisionP95S.toFixed(1)}) · essay batch ${essay.batch.toFixed(2)}, ${essay.requestS.toFixed(2)} s, ${essay.perDecisionS.toFixed(2)} s a decision, p95 ${essay.decisionP95S.toFixed(1)} s · overhead ${run.overheadMs.toFixed(0)} ms, ${run.cpuMsPerRequest.toFixed(1)} ms CPU, lost ${run.lost} · others used ${(100 * run.foreign).toFixed(0)} % of the machine`,
    );
  }
  return { result: judge(runs), svg: picture(runs) };
}

function judge(runs: readonly RateRun[]): Result {
  const at = (rate: number): RateRun | undefined => runs.find((run) => run.rate === rate);
  const figures: Figures = {};
  for (const { rate, ours, essay } of runs) {
    for (const [name, who] of [
      ["ours", ours],
      ["essay", essay],
    ] as const)
      figures[`${rate} a minute, ${name}`] =
        `batch ${who.batch.toFixed(2)} · ${who.requestS.toFixed(2)} s a request · ${who.perDecisionS.toFixed(2)} s a decision · wait p95 ${who.waitP95S.toFixed(1)} s · decision p95 ${who.decisionP95S.toFixed(1)} s · ${(who.cachedPerDecision / 1_000).toFixed(0)} k cached a decision`;
  }
  const forty = at(40);
  const five = at(5);
  const ourRate = forty ? sustainableRate(forty.policy) : Number.NaN;
  const essayRate = sustainableRate(essayPolicy);
  figures["most of the machine that others used in a block, share"] = Math.max(...runs.map(({ foreign }) => foreign));
  figures["sustainable rate, ours"] = ourRate;
  figures["sustainable rate, essay"] = essayRate;
  figures["highest measured rate with p95 below 30 s, ours"] = Math.max(
    0,
    ...runs.filter(({ ours }) => ours.decisionP95S < 30).map(({ rate }) => rate),
  );
  figures["highest measured rate with p95 below 30 s, essay"] = Math.max(
    0,
    ...runs.filter(({ essay }) => essay.decisionP95S < 30).map(({ rate }) => rate),
  );
  const stable = runs.filter(({ ours }) => ours.decisionP95S < 30);
  const apart = (run: RateRun): number =>
    Math.max(
      ...(["batch", "requestS", "decisionP50S", "decisionP95S"] as const).map((name) => Math.abs(run.ours[name] / run.oracle[name] - 1)),
    );
  const goals: Goal[] = [
    goal(
      "decision p95 at 40 a minute, ours / essay's",
      (forty?.ours.decisionP95S ?? Number.NaN) / (forty?.essay.decisionP95S ?? Number.NaN),
      "<=",
      0.35,
    ),
    goal("sustainable rate, ours / essay's", ourRate / essayRate, ">=", 3.5),
    goal(
      "cached tokens a decision at 5 a minute, ours / essay's",
      (five?.ours.cachedPerDecision ?? Number.NaN) / (five?.essay.cachedPerDecision ?? Number.NaN),
      "<=",
      0.65,
    ),
    goal("CPU a request, ms", median(runs.map(({ cpuMsPerRequest }) => cpuMsPerRequest)), "<=", 15),
    goal(
      "our own time in a request, share of its latency",
      median(runs.map(({ overheadMs, requestMs }) => overheadMs / requestMs)),
      "<=",
      0.01,
    ),
    goal("lost", sum(runs.map(({ lost }) => lost)), "<=", 0),
    goal("dispatched twice", sum(runs.map(({ twice }) => twice)), "<=", 0),
    goal("apart from the simulation at most", Math.max(...stable.map(apart)), "<=", 0.1),
  ];
  return result("essay-batching", figures, goals);
}

function picture(runs: readonly RateRun[]): string {
  const curve = (of: (run: RateRun) => number): [number, number][] => runs.map((run) => [run.rate, of(run)]);
  const both = (key: keyof RouterFigures) => [
    { name: "ours, measured", colour: colours.ours, points: curve(({ ours }) => ours[key]) },
    { name: "ours, simulated", colour: colours.ours, dashed: true, points: curve(({ oracle }) => oracle[key]) },
    { name: "essay's policy, measured", colour: colours.essay, points: curve(({ essay }) => essay[key]) },
  ];
  const panel = { xLabel: "triggers a minute", logX: true };
  const at = (rate: number): string[] =>
    runs
      .filter((run) => run.rate === rate)
      .map(
        ({ ours, essay }) =>
          `At ${rate} triggers a minute: ours ${ours.decisionP95S.toFixed(1)} s, the essay's policy ${essay.decisionP95S.toFixed(1)} s.`,
      );
  const about = {
    title: "Decision latency, batch size and time a request of the router over the rate of triggers",
    desc: `Decision latency, p95. ${[5, 40, 80].flatMap(at).join(" ")}`,
    note: `Measured with a simulated model at ${runs.map(({ rate }) => rate).join(", ")} triggers a minute. A line that ends at the top goes on beyond it.`,
  };
  return drawChart(about, [
    { ...panel, title: "Decision latency, p95", yLabel: "seconds", maxY: 40, series: both("decisionP95S") },
    { ...panel, title: "Triggers a batch", yLabel: "triggers", maxY: 8, series: both("batch") },
    { ...panel, title: "Time a request", yLabel: "seconds", maxY: 8, series: both("requestS") },
  ]);
}
