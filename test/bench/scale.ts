// `npm run bench -- scale`: thousands of threads, sessions and machines: what one event costs among them, what they cost at rest, and what
// a long history or a long list costs. Each figure is a ratio to a small deployment, or to the same one, in the same run.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { makeId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import type { EndpointRpc } from "../../src/protocol/rpc.ts";
import { Deployment, place } from "./lib/deployment.ts";
import { type Load, type Loaded, LoadGenerator, Webhooks } from "./lib/load.ts";
import { startModelServer } from "./lib/model-server.ts";
import { goal, type Result, ratioGoal, result } from "./lib/result.ts";
import { median, quantile } from "./lib/statistics.ts";
import { Undisturbed } from "./lib/undisturbed.ts";

export type ScaleOptions = {
  threads: number;
  sessions: number;
  endpoints: number;
  history: number;
  /** In each: sleeping objects wake, the warm blocks of both deployments, and all sleep again. */
  rounds: number;
  /** Threads that are awake at once in a round. */
  live: number;
  /** Rounds whose memory is compared. */
  memory: [number, number];
  idleSeconds: number;
};
export const fullScale: ScaleOptions = {
  threads: 10_000,
  sessions: 1_000,
  endpoints: 1_000,
  history: 10_000,
  rounds: 7,
  live: 2_000,
  memory: [3, 6],
  idleSeconds: 60,
};
export const quickScale: ScaleOptions = {
  threads: 1_000,
  sessions: 50,
  endpoints: 50,
  history: 1_000,
  rounds: 2,
  live: 400,
  memory: [1, 2],
  idleSeconds: 5,
};

type Pace = Pick<Load, "perSecond" | "connections" | "keepIds">;
/** Three descriptors an object, ten seconds until one is put away: so many a second are never 6,000 at once. */
const touching: Pace = { perSecond: 400, connections: 32, keepIds: false };
/** One after the other: what an event takes, not what it waits for others. */
const inTurn: Pace = { perSecond: null, connections: 1, keepIds: true };
const filling: Pace = { perSecond: null, connections: 32, keepIds: false };
const maxFillSeconds = 600;
/** Events of a block. */
const block = 300;
/** Warm blocks of each deployment in a round, in turn: what the machine does meanwhile meets both. */
const warmBlocks = 2;
/** What an event leaves to do comes two seconds after it: before a block that of what went before is over. */
const followUpMs = 3_000;
/** Longer than the runtime keeps an object that nothing happens in, its deadline of two seconds included. */
const putAwayMs = 13_000;
/** Half a minute after it was told of a thread, the index hears what came since: in no block either. */
const indexedMs = 34_000;
const smallThreads = 10;
/** Far from all others: threads of a long history and of a short one, two by two, so that each source has both. */
const far = { first: 1_000_000, threads: 16, long: [0, 4, 8, 12], short: [2, 6, 10, 14], pair: 2 };
const isLong = (thread: number): boolean => thread % 4 < far.pair;
const shortHistory = 10;
const listed = { few: 100, many: 10_000 };
const lists = 30;

export async function scale(options: ScaleOptions): Promise<{ result: Result }> {
  const server = await startModelServer({
    speed: 1_000,
    script: () => ({ calls: [{ tool: "wait", input: { reason: "nothing to do" } }], latencyMs: 0 }),
  });
  const generator = new LoadGenerator();
  const start = (statePath?: string) => Deployment.start({ modelUrl: server.url, ...(statePath === undefined ? {} : { statePath }) });
  const webhooks = new Webhooks();
  const running = new Set<Deployment>();
  try {
    const made = await start();
    running.add(made);
    await populate(options, made, loading(generator, webhooks));
    // Whoever held an object keeps it awake: the runtime comes back on its state, and nobody holds one.
    running.delete(made);
    const large = await start(await made.kill());
    running.add(large);
    const small = await start();
    running.add(small);
    return { result: await measured(options, { small, large, generator, load: loading(generator, webhooks) }) };
  } finally {
    generator.stop();
    for (const each of running) await each.stop();
    await server.close();
  }
}

type Loading = (target: Deployment, count: number, where: { threads: number; firstThread?: number }, pace: Pace) => Promise<Loaded>;
type Parts = { small: Deployment; large: Deployment; generator: LoadGenerator; load: Loading };

async function measured(options: ScaleOptions, { small, large, generator, load }: Parts): Promise<Result> {
  const used = (): number => small.cpuSeconds() + large.cpuSeconds() + generator.cpuSeconds();
  const quiet = new Undisturbed(used, options.rounds);
  const touch = (target: Deployment, threads: number, firstThread = 0) => load(target, threads, { threads, firstThread }, touching);
  const warmEvents = async (target: Deployment, threads: number) => (await load(target, block, { threads }, inTurn)).latencies;

  const startMs = performance.now();
  let usedMs = startMs;
  const until = (timeMs: number) => sleep(Math.max(0, timeMs - performance.now()));
  await until(startMs + indexedMs + putAwayMs);
  const restedSeconds = large.cpuSeconds();
  await sleep(options.idleSeconds * 1_000);
  const idle = (large.cpuSeconds() - restedSeconds) / options.idleSeconds;

  const rounds: Round[] = [];
  let touchedMs = startMs;
  const round = async (n: number): Promise<Round> => {
    await until(usedMs + putAwayMs);
    const descriptorsAtRest = large.descriptors();
    // What the Worker itself remembers for some seconds is no part of a wake.
    await touch(large, far.pair, far.first + far.threads);
    const wakes = await load(large, far.threads, { threads: far.threads, firstThread: far.first }, inTurn);
    // Nobody spoke in these since they were made.
    const cold = await load(large, block, { threads: block, firstThread: options.live + block * n }, inTurn);
    await until(touchedMs + indexedMs);
    await touch(large, options.live);
    // Those that are measured were touched last: the runtime puts none of them away meanwhile.
    touchedMs = performance.now();
    await touch(small, smallThreads);
    await touch(large, block);
    await sleep(followUpMs);
    const [memory, descriptors] = [large.memoryBytes(), large.descriptors()];
    const warm: Warm = { many: [], few: [] };
    for (let i = 0; i < warmBlocks; i++)
      for (const which of (n + i) % 2 === 0 ? (["many", "few"] as const) : (["few", "many"] as const))
        warm[which].push(...(await (which === "many" ? warmEvents(large, block) : warmEvents(small, smallThreads))));
    usedMs = performance.now();
    return { ...warm, cold: cold.latencies, wakes: wakeTimes(wakes), memory, descriptors, descriptorsAtRest };
  };
  let begun = 0;
  for (let i = 0; i < options.rounds; i++) rounds.push(await quiet.block(() => round(begun++)));

  const times = await listTimes(small, large);
  const of = (figure: (round: Round) => number): number => median(rounds.map(figure));
  const [from, to] = options.memory.map((n) => rounds[n - 1]?.memory ?? Number.NaN);
  const wakeRatios = rounds.map(({ wakes: { long, short } }) => median(long) / median(short));
  const warmRatios = rounds.map(({ many, few }) => p95(many) / p95(few));
  const independent = "wake, long history / short";
  return result(
    "scale",
    {
      "threads, sessions, machines": `${options.threads}, ${options.sessions}, ${options.endpoints}`,
      "warm event p50 ms among many": of(({ many }) => median(many)),
      "warm event p50 ms among ten": of((round) => median(round.few)),
      "warm event p95 ms among many": of(({ many }) => p95(many)),
      "warm event p95 ms among ten": of((round) => p95(round.few)),
      "event p50 ms to a thread that was put away": of(({ cold }) => median(cold)),
      "first event ms after a long history": of(({ wakes }) => median(wakes.long)),
      "first event ms after a short one": of(({ wakes }) => median(wakes.short)),
      "CPU at rest, share of a core": idle,
      "MB in each round": rounds.map(({ memory }) => (memory / 1e6).toFixed(0)).join(" "),
      "descriptors of the runtime with many awake": Math.max(...rounds.map(({ descriptors }) => descriptors)),
      "descriptors of the runtime with all asleep": of(({ descriptorsAtRest }) => descriptorsAtRest),
      "list of tasks ms, 10,000 of them": median(times.many),
      "list of tasks ms, 100 of them": median(times.few),
      "warm event p95, among many / among ten, in each round": warmRatios.map((ratio) => ratio.toFixed(2)).join(" "),
      ...quiet.figures(),
    },
    [
      ratioGoal("warm event p95, among many / among ten", warmRatios, "<=", 1.2),
      ratioGoal(
        "event p50, put away / warm",
        rounds.map(({ cold, many }) => median(cold) / median(many)),
        "<=",
        5,
      ),
      goal("CPU at rest, share of a core", idle, "<=", 0.005),
      goal(`memory, round ${options.memory[1]} / round ${options.memory[0]}`, (to ?? Number.NaN) / (from ?? Number.NaN), "<=", 1.05),
      goal("list of tasks, 10,000 / 100", median(times.many) / median(times.few), "<=", 2),
      ratioGoal(
        "wake / warm",
        rounds.map(({ wakes, many }) => median([...wakes.long, ...wakes.short]) / median(many)),
        "<=",
        8,
      ),
      ratioGoal(independent, wakeRatios, "<=", 1.2),
      ratioGoal(independent, wakeRatios, ">=", 0.8),
    ],
  );
}

/** Latencies of warm events. */
type Warm = { many: number[]; few: number[] };
type Round = Warm & {
  cold: number[];
  wakes: Wakes;
  memory: number;
  descriptors: number;
  descriptorsAtRest: number;
};
type Wakes = { long: number[]; short: number[] };

const loading =
  (generator: LoadGenerator, webhooks: Webhooks): Loading =>
  async (target, count, where, pace) => {
    const { perSecond } = pace;
    const seconds = perSecond === null ? maxFillSeconds : count / perSecond + 1;
    const loaded = await generator.run({ port: target.port, workload: webhooks.fresh(count, where), seconds, ...pace });
    if (loaded.broken > 0 || loaded.refused > 0)
      throw new Error(`${loaded.refused} requests were refused, ${loaded.broken} connections broke`);
    return loaded;
  };

const p95 = (latencies: readonly number[]): number => quantile(latencies, 0.95);

/** One after the other on one line: the answers are in the order of the events, and their numbers say which thread each woke. */
function wakeTimes({ acknowledged, latencies }: Loaded): Wakes {
  const all = acknowledged.map(({ n }, i) => ({ long: isLong(n % far.threads), ms: latencies[i] ?? Number.NaN }));
  return { long: all.flatMap(({ long, ms }) => (long ? [ms] : [])), short: all.flatMap(({ long, ms }) => (long ? [] : [ms])) };
}

/** Threads through the door, sessions and machines straight at their objects. */
async function populate(options: ScaleOptions, large: Deployment, load: Loading) {
  const touch = (firstThread: number, count: number) => load(large, count, { threads: count, firstThread }, touching);
  for (const at of far.long) await load(large, far.pair * options.history, { threads: far.pair, firstThread: far.first + at }, filling);
  for (const at of far.short) await load(large, far.pair * shortHistory, { threads: far.pair, firstThread: far.first + at }, filling);
  // Each session has an issue; it is awake together with its thread, so most threads come after them.
  const withSessions = 2 * options.sessions;
  await touch(0, withSessions);
  const atOnce = 8;
  const each = async (count: number, make: (i: number) => Promise<void>): Promise<void> => {
    for (let first = 0; first < count; first += atOnce)
      await Promise.all(Array.from({ length: Math.min(atOnce, count - first) }, (_, i) => make(first + i)));
  };
  await each(options.sessions, async (i) => {
    const taskId = makeId("tsk", `scale ${i}`);
    const threadId = threadIdOf("github", place, `issue:${1 + 2 * i}`);
    const triggerId = triggerIdOf("github", `scale ${i}`, threadId);
    await large.startTask({ taskId, threadId, triggerId, goal: "Work.", maxModelCalls: 15 });
  });
  await each(options.endpoints, async (i) => {
    const endpointId = makeId("ep", `scale ${i}`);
    const endpoint = await large.object<EndpointRpc>("ENDPOINT", endpointId);
    const publicKey = randomBytes(32).toString("base64");
    await endpoint.enrol({ endpointId, name: `machine ${i}`, publicKey, platform: "linux" });
  });
  await touch(withSessions, options.threads - withSessions);
}

/** The same list of the console over few and over many rows of the index. */
async function listTimes(small: Deployment, large: Deployment): Promise<{ few: number[]; many: number[] }> {
  const card = JSON.stringify({ taskId: "tsk_a", threadId: "thr_a", title: "A task", status: "done", revision: 1, updatedMs: 1 });
  const fill = (count: number): string =>
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) INSERT OR IGNORE INTO tasks (id, thread_id, decision_id, source, place, asked_by, card, revision, updated_ms) SELECT 'tsk_list' || i, 'thr_a', 'dec_a', 'github', 'team/app', 'member', '${card}', 1, i FROM n`;
  await small.list("tasks");
  await large.list("tasks");
  await small.sql(fill(listed.few));
  await large.sql(fill(listed.many));
  const times = { few: [] as number[], many: [] as number[] };
  const timed = async (of: Deployment, into: number[]): Promise<void> => {
    const startMs = performance.now();
    await of.list("tasks");
    into.push(performance.now() - startMs);
  };
  for (let i = 0; i < lists; i++) {
    await timed(small, times.few);
    await timed(large, times.many);
  }
  return times;
}
