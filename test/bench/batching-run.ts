// One rate of the router's experiment on the real Worker, in scaled time and in a process of its own, beside the replica of the
// essay's policy on the same arrivals and the same model server.
import { setTimeout as sleep } from "node:timers/promises";
import { routerName } from "../../src/env.ts";
import type { Logged } from "../../src/protocol/events.ts";
import { type Arrival, type Asked, arrivalsOf, type Fitted, featuresOf, type Request, type Run } from "./batching-simulation.ts";
import { runEssayPolicy } from "./essay-policy.ts";
import { Deployment, issueOpened } from "./lib/deployment.ts";
import { ownSeconds } from "./lib/foreign-load.ts";
import { type ModelServer, type Script, startModelServer } from "./lib/model-server.ts";
import { OwnProcess, serveOrders } from "./lib/own-process.ts";
import { planMark, simulatedRouter } from "./lib/simulated-router.ts";
import { leastSquares, median } from "./lib/statistics.ts";

/** Virtual time is at most this often faster: our own time, which is not scaled, counts as often against us. */
const maxSpeed = 20;
const drainMs = 90_000;
/** The essay's context; the same for ours, so that it is the policy that is compared. */
export const prefixTokens = 60_000;

export type RateOptions = {
  /** Real arrivals a second that this machine takes without queueing; above it virtual time goes slower. */
  maxPerSecond: number;
  minimumMs: number;
  minimumDecisions: number;
};
export type RateOrder = { rate: number; seed: number; options: RateOptions };
/** What one seed left behind at one rate. */
export type RateRun = {
  rate: number;
  seed: number;
  arrivals: Arrival[];
  ours: Run;
  essay: Run;
  /** What makes the oracle's router ours. */
  fitted: Fitted;
  lost: number;
  twice: number;
  overheadMs: number;
  requestMs: number;
  cpuMsPerRequest: number;
  /** Seconds of CPU, from its start to its end. */
  usedSeconds: number;
};

/** In a process of its own. */
export async function runApart(order: RateOrder): Promise<RateRun> {
  const apart = new OwnProcess<RateOrder, RateRun>(import.meta.filename);
  return apart.ask(order).finally(() => apart.close());
}

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

async function runRate({ rate, seed, options }: RateOrder): Promise<RateRun> {
  const windowMs = Math.max(options.minimumMs, (options.minimumDecisions / rate) * 60_000);
  const arrivals = arrivalsOf(rate, windowMs, 1_000 * seed + rate);
  const speed = Math.min(maxSpeed, (options.maxPerSecond * 60) / rate);
  const server = await startModelServer({ speed, script: script(), prefixTokens: (who) => (who.startsWith("router") ? prefixTokens : 0) });
  const deployment = await Deployment.start({ modelUrl: server.url });
  try {
    await warmUp(deployment);
    const before = (await deployment.events("ROUTER", routerName)).at(-1)?.seq ?? 0;
    const servedBefore = server.served.length;
    const cpuBefore = deployment.cpuSeconds();
    const startMs = Date.now() + 200;
    const endMs = windowMs + drainMs;
    const [triggers, essay] = await Promise.all([
      offer(deployment, server, arrivals, startMs),
      runEssayPolicy(server, arrivals, startMs, endMs),
    ]);
    await settled(deployment, before, triggers, startMs + endMs / speed);
    const cpuMs = (deployment.cpuSeconds() - cpuBefore) * 1_000;
    const rows = await deployment.events("ROUTER", routerName, before);
    const served = server.served.slice(servedBefore).filter(({ conversation }) => conversation.startsWith("router"));
    const measured = readRows(rows, arrivals, triggers, { speed, startMs, endMs });
    return {
      rate,
      seed,
      arrivals,
      ours: measured.run,
      essay,
      fitted: fitted(measured.run, measured.asked),
      lost: measured.lost,
      twice: measured.twice,
      overheadMs: median(measured.realMs.map((ms, i) => ms - (served[i]?.latencyMs ?? Number.NaN) / speed)),
      requestMs: median(served.map(({ latencyMs }) => latencyMs)),
      cpuMsPerRequest: cpuMs / (server.served.length - servedBefore),
      usedSeconds: ownSeconds() + deployment.cpuSeconds(),
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
): { run: Run; asked: Asked[][]; lost: number; twice: number; realMs: number[] } {
  const virtual = (wallMs: number): number => (wallMs - startMs) * speed;
  const decisions = arrivals.map(({ n, atMs }) => ({
    n,
    arrivedMs: atMs,
    takenMs: null as number | null,
    decidedMs: null as number | null,
  }));
  const run: Run = { decisions, requests: [], endMs };
  const realMs: number[] = [];
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
  };
}

/** The law of our requests, and what passes before and between them; the queue is the oracle's own. */
function fitted({ decisions, requests }: Run, asked: readonly Asked[][]): Fitted {
  const endOf = (request: Request | undefined): number => (request ? request.atMs + request.ms : 0);
  const gaps: number[] = [];
  const entries: number[] = [];
  requests.forEach((request, i) => {
    const taken = decisions.filter(({ takenMs }) => takenMs === request.atMs);
    const earlier = requests[i - 1];
    const hadWork = request.open > taken.length || taken.some(({ arrivedMs }) => arrivedMs < endOf(earlier));
    if (earlier !== undefined && hadWork) gaps.push(request.atMs - endOf(earlier));
    else entries.push(...taken.map(({ arrivedMs }) => request.atMs - arrivedMs));
  });
  return {
    law: leastSquares(
      requests.map(({ joined }, i) => featuresOf(joined, asked[i] ?? [])),
      requests.map(({ ms }) => ms),
    ),
    entryMs: entries.length === 0 ? 0 : median(entries),
    gapMs: gaps.length === 0 ? 0 : median(gaps),
  };
}

if (process.argv[1] === import.meta.filename) serveOrders(runRate, async () => undefined);
