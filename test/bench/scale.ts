// `npm run bench -- scale`: thousands of threads, sessions and machines: what one event costs among them, what they cost at rest, and what
// a long history or a long list costs. Each figure is a ratio to a small deployment, or to the same one, in the same run.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { makeId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import type { EndpointRpc, WorkerSessionRpc } from "../../src/protocol/rpc.ts";
import { Deployment, place } from "./lib/deployment.ts";
import { type Loaded, LoadGenerator, Webhooks, type Workload } from "./lib/load.ts";
import { startModelServer } from "./lib/model-server.ts";
import { goal, type Result, ratioGoal, result } from "./lib/result.ts";
import { median, quantile } from "./lib/statistics.ts";

export type ScaleOptions = { threads: number; sessions: number; endpoints: number; history: number; pairs: number; idleSeconds: number };
export const fullScale: ScaleOptions = { threads: 10_000, sessions: 1_000, endpoints: 1_000, history: 10_000, pairs: 7, idleSeconds: 60 };
export const quickScale: ScaleOptions = { threads: 1_000, sessions: 50, endpoints: 50, history: 1_000, pairs: 3, idleSeconds: 10 };

/** Three descriptors an object, ten seconds until one is put away: so many a second are never 6,000 at once. */
const perSecond = 400;
const measuredPerSecond = 50;
const blockSeconds = 3;
const smallThreads = 10;
/** Longer than the runtime keeps an object that nothing happens in, its deadline of two seconds included. */
const putAwayMs = 13_000;
const cycles = 6;
const longThreads = 3;
const farThread = 1_000_000;
const listed = { few: 100, many: 10_000 };

export async function scale(options: ScaleOptions): Promise<{ result: Result }> {
  const server = await startModelServer({
    speed: 1_000,
    script: () => ({ calls: [{ tool: "wait", input: { reason: "nothing to do" } }], latencyMs: 0 }),
  });
  const generator = new LoadGenerator();
  const small = await Deployment.start({ modelUrl: server.url });
  const large = await Deployment.start({ modelUrl: server.url });
  try {
    return { result: await measured(options, { small, large, generator }) };
  } finally {
    generator.stop();
    await small.stop();
    await large.stop();
    await server.close();
  }
}

type Parts = { small: Deployment; large: Deployment; generator: LoadGenerator };

async function measured(options: ScaleOptions, { small, large, generator }: Parts): Promise<Result> {
  const webhooks = new Webhooks();
  const load = async (target: Deployment, workload: Workload, rate: number, connections = 32): Promise<Loaded> => {
    const count = workload.what === "webhooks" ? workload.count : 0;
    const loaded = await generator.run({
      port: target.port,
      workload,
      connections,
      seconds: count / rate + 1,
      perSecond: rate,
      keepIds: false,
    });
    if (loaded.broken > 0 || loaded.refused > 0)
      throw new Error(`${loaded.refused} requests were refused, ${loaded.broken} connections broke`);
    return loaded;
  };
  const block = measuredPerSecond * blockSeconds;
  const touch = (target: Deployment, threads: number, firstThread = 0) =>
    load(target, webhooks.fresh(threads, { threads, firstThread }), perSecond);
  const events = (target: Deployment, threads: number, firstThread = 0) =>
    load(target, webhooks.fresh(block, { threads, firstThread }), measuredPerSecond);

  await populate(options, large, (firstThread, count) => touch(large, count, firstThread));
  await touch(small, smallThreads);
  for (let i = 0; i < longThreads; i++)
    await load(large, webhooks.fresh(options.history, { threads: 1, firstThread: farThread + i }), 4 * perSecond);
  for (let i = 0; i < longThreads; i++) await load(large, webhooks.fresh(10, { threads: 1, firstThread: farThread + 100 + i }), perSecond);

  const warm: [Loaded, Loaded][] = [];
  const cold: Loaded[] = [];
  for (let pair = 0; pair < options.pairs; pair++) {
    const few = () => touch(small, smallThreads).then(() => events(small, smallThreads));
    const many = () => touch(large, block).then(() => events(large, block));
    if (pair % 2 === 0) {
      const first = await many();
      warm.push([first, await few()]);
    } else {
      const first = await few();
      warm.push([await many(), first]);
    }
    // Nobody spoke in these since they were made, or since an earlier round of all of them.
    cold.push(await events(large, block, block * (1 + (pair % (Math.floor(options.threads / block) - 1)))));
  }

  const memory: number[] = [];
  const wakes: { long: number; short: number }[] = [];
  for (let cycle = 0; cycle < cycles; cycle++) {
    await touch(large, Math.min(1_000, options.threads));
    memory.push(large.memoryBytes());
    await sleep(putAwayMs);
    const woken = async (firstThread: number): Promise<number> => {
      const { latencies } = await load(large, webhooks.fresh(longThreads, { threads: longThreads, firstThread }), 20, 1);
      return median(latencies);
    };
    // In turn, so that neither has always the first connection.
    if (cycle % 2 === 0) {
      const long = await woken(farThread);
      wakes.push({ long, short: await woken(farThread + 100) });
    } else {
      const short = await woken(farThread + 100);
      wakes.push({ long: await woken(farThread), short });
    }
  }

  await sleep(putAwayMs);
  const before = large.cpuSeconds();
  await sleep(options.idleSeconds * 1_000);
  const idle = (large.cpuSeconds() - before) / options.idleSeconds;

  const lists = await listTimes(options, small, large);
  const p50 = (loaded: Loaded): number => median(loaded.latencies);
  const p95 = (loaded: Loaded): number => quantile(loaded.latencies, 0.95);
  const warmMs = median(warm.map(([a]) => p50(a)));
  return result(
    "scale",
    {
      "threads, sessions, machines": `${options.threads}, ${options.sessions}, ${options.endpoints}`,
      "warm event p50 ms among many": warmMs,
      "warm event p95 ms among many": median(warm.map(([a]) => p95(a))),
      "warm event p95 ms among ten": median(warm.map(([, b]) => p95(b))),
      "event p50 ms to a thread that was put away": median(cold.map(p50)),
      "first event p50 ms after a long history": median(wakes.map(({ long }) => long)),
      "first event p50 ms after a short one": median(wakes.map(({ short }) => short)),
      "CPU at rest, share of a core": idle,
      "MB after each cycle": memory.map((bytes) => (bytes / 1e6).toFixed(0)).join(" "),
      "list of tasks ms, 10,000 of them": median(lists.many),
      "list of tasks ms, 100 of them": median(lists.few),
    },
    [
      ratioGoal(
        "warm event p95, among many / among ten",
        warm.map(([a, b]) => p95(a) / p95(b)),
        "<=",
        1.2,
      ),
      ratioGoal(
        "event p50, put away / warm",
        cold.map((each, i) => p50(each) / p50(warm[i]?.[0] ?? each)),
        "<=",
        5,
      ),
      goal("CPU at rest, share of a core", idle, "<=", 0.005),
      goal("memory, cycle 6 / cycle 3", (memory[5] ?? Number.NaN) / (memory[2] ?? Number.NaN), "<=", 1.05),
      goal("list of tasks, 10,000 / 100", median(lists.many) / median(lists.few), "<=", 2),
      goal("wake / warm", median(wakes.map(({ short }) => short)) / warmMs, "<=", 8),
      goal("wake, long history / short", median(wakes.map(({ long, short }) => long / short)), "<=", 1.2),
    ],
  );
}

/** Threads through the door, sessions and machines straight at their objects. */
async function populate(options: ScaleOptions, large: Deployment, touch: (firstThread: number, count: number) => Promise<unknown>) {
  const slice = 2_000;
  for (let first = 0; first < options.threads; first += slice) await touch(first, Math.min(slice, options.threads - first));
  const atOnce = 8;
  const each = async (count: number, make: (i: number) => Promise<void>): Promise<void> => {
    for (let first = 0; first < count; first += atOnce)
      await Promise.all(Array.from({ length: Math.min(atOnce, count - first) }, (_, i) => make(first + i)));
  };
  await each(options.sessions, async (i) => {
    const taskId = makeId("tsk", `scale ${i}`);
    const threadId = threadIdOf("github", place, `issue:${1 + 2 * i}`);
    const session = await large.object<WorkerSessionRpc>("WORKER_SESSION", taskId);
    await session.start({
      taskId,
      decisionId: makeId("dec", `scale ${i}`),
      title: "Work",
      goal: "Work.",
      quote: {
        triggerId: triggerIdOf("github", `scale ${i}`, threadId),
        from: { role: "member", id: "member", name: "member" },
        text: "Work.",
      },
      authority: "member",
      tainted: false,
      profile: "default",
      endpoint: null,
      threadId,
      source: "github",
      place,
      maxModelCalls: 15,
      atMs: Date.now(),
    });
  });
  await each(options.endpoints, async (i) => {
    const endpointId = makeId("ep", `scale ${i}`);
    const endpoint = await large.object<EndpointRpc>("ENDPOINT", endpointId);
    const publicKey = randomBytes(32).toString("base64");
    await endpoint.enrol({ endpointId, name: `machine ${i}`, publicKey, platform: "linux", by: "the benchmark" });
  });
}

/** The same list of the console over few and over many rows of the index. */
async function listTimes({ pairs }: ScaleOptions, small: Deployment, large: Deployment): Promise<{ few: number[]; many: number[] }> {
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
  for (let i = 0; i < 10 * pairs; i++) {
    await timed(small, times.few);
    await timed(large, times.many);
  }
  return times;
}
