// `npm run bench -- ingest`: signed webhooks of 1 KB, from the door to a durable row, against the bare call; and what a kill -9 leaves.
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ownerOf } from "../../src/core/ids.ts";
import { bundleWorker, root } from "../../src/local/worker.ts";
import { Deployment } from "./lib/deployment.ts";
import { bareObjects, Floor } from "./lib/floor.ts";
import { type Loaded, LoadGenerator, Webhooks, type Workload } from "./lib/load.ts";
import { startModelServer } from "./lib/model-server.ts";
import { rowsWritten } from "./lib/prices.ts";
import { goal, type Result, ratioGoal, result } from "./lib/result.ts";
import { median, quantile } from "./lib/statistics.ts";
import { Undisturbed } from "./lib/undisturbed.ts";

/** `ceilingPairs`: of the closed loop, whose pairs differ most: a core that is shared runs a quarter slower or faster from second to second. */
export type IngestOptions = { pairs: number; ceilingPairs: number; seconds: number; killAfterMs: number };
export const fullIngest: IngestOptions = { pairs: 7, ceilingPairs: 25, seconds: 3, killAfterMs: 1_500 };
export const quickIngest: IngestOptions = { pairs: 3, ceilingPairs: 5, seconds: 1, killAfterMs: 700 };

const closedConnections = 32;
const openConnections = 128;
/** 5 % of what comes is a repeat. */
const repeatEvery = 20;
const maxPerSecond = 4_000;
const quietMs = 4_000;
const rowPairs = 3;
/** So few that all their events come within one burst. */
const burstThreads = 20;
const threads = bareObjects;

/** One event for each thread. */
const everyThread = (port: number, webhooks: Webhooks) => ({
  port,
  workload: webhooks.fresh(threads, { threads }),
  connections: closedConnections,
  seconds: 60,
  perSecond: null,
});

const noMind = () => ({ calls: [] });

export async function ingest(options: IngestOptions): Promise<{ result: Result }> {
  const server = await startModelServer({ speed: 1_000, script: noMind });
  const generator = new LoadGenerator();
  try {
    const speed = await speeds(options, server.url, generator);
    const rows = await rowsOfAnEvent(server.url, generator);
    const kill = await killed(options, server.url, generator);
    return {
      result: result("ingest", { ...speed.figures, ...rows.figures, ...kill.figures }, [...speed.goals, ...rows.goals, ...kill.goals]),
    };
  } finally {
    generator.stop();
    await server.close();
  }
}

async function speeds({ pairs, ceilingPairs, seconds }: IngestOptions, modelUrl: string, generator: LoadGenerator) {
  const floor = await Floor.start();
  const deployment = await Deployment.start({ modelUrl });
  const webhooks = new Webhooks();
  const most = maxPerSecond * seconds;
  const load = async (target: Floor | Deployment, workload: Workload, perSecond: number | null): Promise<Loaded & { cpuMs: number }> => {
    const connections = perSecond === null ? closedConnections : openConnections;
    const before = target.cpuSeconds();
    const loaded = await generator.run({ port: target.port, workload, connections, seconds, perSecond, keepIds: false });
    if (loaded.broken > 0 || loaded.refused > 0)
      throw new Error(`${loaded.refused} requests were refused, ${loaded.broken} connections broke`);
    return { ...loaded, cpuMs: ((target.cpuSeconds() - before) * 1_000) / loaded.accepted };
  };
  const ours = (perSecond: number | null) => load(deployment, webhooks.fresh(most, { threads, repeatEvery }), perSecond);
  const bare = (perSecond: number | null) => load(floor, { what: "bare", keeps: false }, perSecond);
  const quiet = new Undisturbed(() => deployment.cpuSeconds() + floor.cpuSeconds() + generator.cpuSeconds(), ceilingPairs);
  /** A, B, B, A, …: whatever the machine does meanwhile meets both. */
  const interleaved = async <A, B>(a: () => Promise<A>, b: () => Promise<B>, count = pairs): Promise<[A, B][]> => {
    const done: [A, B][] = [];
    for (let pair = 0; pair < count; pair++)
      done.push(
        await quiet.block(async () => {
          if (pair % 2 === 0) {
            const first = await a();
            return [first, await b()];
          }
          const first = await b();
          return [await a(), first];
        }),
      );
    return done;
  };
  try {
    // Every thread is there: making one is another figure than hearing from it.
    await generator.run({ ...everyThread(deployment.port, webhooks), keepIds: false });
    await sleep(quietMs);
    await ours(null);
    await bare(null);
    const closed = await interleaved(
      () => ours(null),
      () => bare(null),
      ceilingPairs,
    );
    // The runtime syncs each commit and waits for it: what of our ceiling is the row's, on whatever the state lies.
    const keeping = () => load(floor, { what: "bare", keeps: true }, null);
    await keeping();
    const kept = await interleaved(() => ours(null), keeping);
    const rate = (loaded: Loaded): number => loaded.accepted / loaded.seconds;
    const ceiling = median(closed.map(([a]) => rate(a)));
    const bareCeiling = median(closed.map(([, b]) => rate(b)));
    const figures: Record<string, number> = {
      "accepted a second, 32 in flight": ceiling,
      "the bare call, 32 in flight": bareCeiling,
      "the bare call that keeps a row, 32 in flight": median(kept.map(([, b]) => rate(b))),
      "accepted a second, ours / the bare call that keeps a row": median(kept.map(([a, b]) => rate(a) / rate(b))),
      "CPU ms of an event": median(closed.map(([a]) => a.cpuMs)),
      "CPU ms of the bare call": median(closed.map(([, b]) => b.cpuMs)),
    };
    const ratios: Record<string, number[]> = {};
    for (const share of [0.25, 0.5, 0.75]) {
      const blocks = await interleaved(
        () => ours(share * ceiling),
        // At the same share of its own ceiling: half load is half of what each takes.
        () => bare(share * bareCeiling),
      );
      const name = `at ${share * 100} % of the ceiling`;
      figures[`p50 ms ${name}`] = median(blocks.map(([a]) => median(a.latencies)));
      figures[`p95 ms ${name}`] = median(blocks.map(([a]) => quantile(a.latencies, 0.95)));
      figures[`p95 ms of the bare call at ${share * 100} % of its own`] = median(blocks.map(([, b]) => quantile(b.latencies, 0.95)));
      ratios[name] = blocks.map(([a, b]) => quantile(a.latencies, 0.95) / quantile(b.latencies, 0.95));
    }
    // As senders do, what comes again is of lately: of the new events before it.
    let lately: Workload = webhooks.again(0, 1);
    const fresh = async () => {
      const { from } = webhooks;
      const loaded = await load(deployment, webhooks.fresh(most, { threads }), null);
      lately = webhooks.again(from, Math.floor(loaded.accepted / 2), { threads });
      return loaded;
    };
    await fresh();
    const repeats = await interleaved(fresh, () => load(deployment, lately, null));
    figures["CPU ms of a new event"] = median(repeats.map(([a]) => a.cpuMs));
    figures["CPU ms of a duplicate"] = median(repeats.map(([, b]) => b.cpuMs));
    return {
      figures: { ...figures, ...quiet.figures() },
      goals: [
        ratioGoal(
          "accepted a second, ours / the bare call",
          closed.map(([a, b]) => rate(a) / rate(b)),
          ">=",
          0.28,
        ),
        ratioGoal("p95 at half load, ours / the bare call", ratios["at 50 % of the ceiling"] ?? [], "<=", 2),
        ratioGoal(
          "CPU of a duplicate / of a new event",
          repeats.map(([a, b]) => b.cpuMs / a.cpuMs),
          "<=",
          0.6,
        ),
      ],
    };
  } finally {
    await deployment.stop();
    await floor.stop();
  }
}

/** Two blocks of the same length that differ only in the number of their events: what one more event adds. */
async function rowsOfAnEvent(modelUrl: string, generator: LoadGenerator) {
  const scriptPath = await bundleWorker("test/bench/worker/counted.ts", path.join(root, "dist/bench/counted.js"));
  const deployment = await Deployment.start({ modelUrl, scriptPath });
  const webhooks = new Webhooks();
  try {
    const written = async (count: number): Promise<number> => {
      await deployment.counts();
      const workload = webhooks.fresh(count, { threads: burstThreads });
      await generator.run({ port: deployment.port, workload, connections: 8, seconds: 30, perSecond: null, keepIds: false });
      await sleep(quietMs);
      return rowsWritten(await deployment.counts());
    };
    await written(burstThreads);
    // The index is told twice a minute: over several blocks that evens out.
    const few: number[] = [];
    const many: number[] = [];
    for (let pair = 0; pair < rowPairs; pair++) {
      few.push(await written(burstThreads));
      many.push(await written(6 * burstThreads));
    }
    const one = median(few);
    const added = (median(many) - one) / (5 * burstThreads);
    return {
      figures: {
        "rows of a new event that comes alone to its thread": one / burstThreads,
        "rows that one more new event adds": added,
      },
      goals: [goal("rows per new event", added, "<=", 2)],
    };
  } finally {
    await deployment.stop();
  }
}

/** How many rows each trigger has in its thread. */
async function rowsOf(deployment: Deployment, acknowledged: readonly { id: string }[]): Promise<Map<string, number>> {
  const rows = new Map<string, number>();
  for (const threadId of new Set(acknowledged.map(({ id }) => ownerOf(id, "thr") ?? "")))
    for (const { event } of await deployment.events("THREAD", threadId))
      if (event.kind === "thread.accepted") rows.set(event.trigger.id, (rows.get(event.trigger.id) ?? 0) + 1);
  return rows;
}

/** The runtime is killed under load and starts again on its state; the senders deliver again what was not answered, and some that was. */
async function killed({ killAfterMs }: IngestOptions, modelUrl: string, generator: LoadGenerator) {
  const deployment = await Deployment.start({ modelUrl });
  const webhooks = new Webhooks();
  const count = 8_000;
  const workload = webhooks.fresh(count, { repeatEvery });
  await generator.run({
    port: deployment.port,
    workload: webhooks.fresh(400),
    connections: 8,
    seconds: 4,
    perSecond: null,
    keepIds: false,
  });
  const { promise: underWay, resolve: begun } = Promise.withResolvers<void>();
  const killing = underWay.then(() => sleep(killAfterMs)).then(() => deployment.kill());
  const before = await generator.run(
    { port: deployment.port, workload, connections: closedConnections, seconds: 60, perSecond: null, keepIds: true },
    begun,
  );
  // The load ends as its connections break, before the runtime is put away: what goes on must go on from that state.
  const after = await Deployment.start({ modelUrl, statePath: await killing });
  try {
    // Looked at before anything is delivered again: that would mend what the kill lost.
    const kept = await rowsOf(after, before.acknowledged);
    const reached = before.acknowledged.reduce((highest, { n }) => Math.max(highest, n), 0) + 100;
    const again = await generator.run({
      port: after.port,
      workload: webhooks.again(0, Math.min(count, reached)),
      connections: closedConnections,
      seconds: 60,
      perSecond: null,
      keepIds: true,
    });
    const rows = await rowsOf(after, [...before.acknowledged, ...again.acknowledged]);
    const missing =
      before.acknowledged.filter(({ id }) => !kept.has(id)).length + again.acknowledged.filter(({ id }) => !rows.has(id)).length;
    const doubled = [...rows.values()].filter((times) => times > 1).length;
    return {
      figures: { "acknowledged before the kill": before.acknowledged.length, "connections that it broke": before.broken },
      goals: [
        goal("the kill met a load: requests that it cut off", before.broken, ">=", 1),
        goal("acknowledged but missing", missing, "<=", 0),
        goal("doubled", doubled, "<=", 0),
      ],
    };
  } finally {
    await after.stop();
  }
}
