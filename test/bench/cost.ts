// `npm run bench -- cost`: what the platform would bill, counted on the shipped Worker: rows, calls, an idle day, and 1,000 routed events.
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ownerOf } from "../../src/core/ids.ts";
import { boardName, routerName } from "../../src/env.ts";
import { bundleWorker, root } from "../../src/local/worker.ts";
import type { TasksAnswer } from "../../src/protocol/console.ts";
import type { BoardRpc } from "../../src/protocol/rpc.ts";
import { type Arrival, arrivalsOf } from "./batching-simulation.ts";
import { runEssayPolicy } from "./essay-policy.ts";
import { commented, Deployment, issueOpened } from "./lib/deployment.ts";
import { Machine } from "./lib/machine.ts";
import { type SimRequest, startModelServer, type Tokens } from "./lib/model-server.ts";
import { callsOf, platformDollars, prices, rowsWritten, tokenDollars } from "./lib/prices.ts";
import { goal, type Result, result } from "./lib/result.ts";
import { planMark, simulatedRouter } from "./lib/simulated-router.ts";
import { median, sum } from "./lib/statistics.ts";
import type { Counts } from "./worker/counts.ts";

/** `together`: the three parts at once, each in a runtime of its own; what is counted does not depend on the time that it takes. */
export type CostOptions = { pairs: number; burst: number; routedMs: number; idleMs: number; together: boolean };
export const fullCost: CostOptions = { pairs: 3, burst: 40, routedMs: 24 * 60_000, idleMs: 240_000, together: false };
export const quickCost: CostOptions = { pairs: 1, burst: 20, routedMs: 12 * 60_000, idleMs: 30_000, together: true };

/** The call that takes the first event of a block lasts until all others have come. */
const holdMs = 5_000;
/** Deadlines that a block leaves behind run out in this time. */
const quietMs = 4_000;
const perMinute = 5;
const speed = 20;
/** The essay's context; the same for ours, so that it is the policy that is compared. */
const prefixTokens = 60_000;
const dayMs = 24 * 60 * 60_000;
const machines = 10;
const threads = 100;
/** Longer than the runtime keeps an object that nothing happens in. */
const putAwayMs = 13_000;

let scriptPath: Promise<string> | null = null;
const counted = (): Promise<string> => {
  scriptPath ??= bundleWorker("test/bench/worker/counted.ts", path.join(root, "dist/bench/counted.js"));
  return scriptPath;
};

export async function cost(options: CostOptions): Promise<{ result: Result }> {
  const first = perEvent(options);
  if (!options.together) await first;
  const second = routedEvents(options);
  if (!options.together) await second;
  const [events, routed, idle] = await Promise.all([first, second, idleDay(options)]);
  return {
    result: result("cost", { ...events.figures, ...routed.figures, ...idle.figures }, [...events.goals, ...routed.goals, ...idle.goals]),
  };
}

const idleWorker = { calls: [{ tool: "wait", input: { reason: "nothing to do" } }] };

/** Two blocks that differ in nothing but the number of their events: what one more event adds. A step or a turn is in both. */
async function perEvent({ pairs, burst }: CostOptions) {
  const router = simulatedRouter();
  let latencyMs = 0;
  const script = (request: SimRequest) => ({ ...(request.model === "router" ? router(request) : idleWorker), latencyMs });
  const server = await startModelServer({ speed: 1, script });
  const deployment = await Deployment.start({ modelUrl: server.url, scriptPath: await counted() });
  try {
    let n = 0;
    const passed = (): Promise<unknown> => deployment.deliver("issue_comment", `row-${++n}`, commented(1, n, `row ${n} of the run`));
    const routed = (): Promise<unknown> =>
      deployment.deliver("issue_comment", `talk-${++n}`, commented(2, n, `Words ${n}. ${planMark({ act: "record", steps: 1 })}`));
    const block = async (event: () => Promise<unknown>, count: number, held: boolean): Promise<Counts> => {
      latencyMs = held ? holdMs : 0;
      await deployment.counts();
      for (let i = 0; i < count; i++) {
        if (i > 0) await sleep((holdMs - 1_500) / burst);
        await event();
      }
      await sleep(held ? 2 * holdMs - ((holdMs - 1_500) / burst) * count + quietMs : quietMs);
      return deployment.counts();
    };
    await deployment.deliver("issues", "task", issueOpened(1, "Work", `Please. ${planMark({ act: "dispatch", steps: 1 })}`));
    await deployment.deliver("issues", "talk", issueOpened(2, "Talk", `Hello. ${planMark({ act: "record", steps: 1 })}`));
    await sleep(quietMs);
    const added = async (event: () => Promise<unknown>) => {
      const rows: number[] = [];
      const calls: number[] = [];
      const kinds: Record<string, number[]> = {};
      for (let pair = 0; pair < pairs; pair++) {
        const sizes = pair % 2 === 0 ? [2, burst] : [burst, 2];
        const blocks = new Map<number, Counts>();
        for (const size of sizes) blocks.set(size, await block(event, size, true));
        const [few, many] = [blocks.get(2), blocks.get(burst)];
        if (!few || !many) continue;
        const each = (figure: (counts: Counts) => number): number => (figure(many) - figure(few)) / (burst - 2);
        rows.push(each(rowsWritten));
        calls.push(each(callsOf));
        for (const kind of Object.keys(many.objects)) {
          const of = ({ objects }: Counts): number => (objects[kind]?.rowsWritten ?? 0) + (objects[kind]?.alarmsSet ?? 0);
          kinds[kind] = [...(kinds[kind] ?? []), each(of)];
        }
      }
      const where = Object.entries(kinds).map(([kind, values]) => `${kind} ${median(values).toFixed(2)}`);
      return { rows: median(rows), calls: median(calls), where: where.join(", ") };
    };
    await block(passed, 1, false);
    const lonePass = await block(passed, 1, false);
    const pass = await added(passed);
    await block(routed, 1, false);
    const loneDecision = await block(routed, 1, false);
    const decision = await added(routed);
    return {
      figures: {
        "rows that one more pass-through event adds": pass.rows,
        "of them by object": pass.where,
        "rows of a pass-through event that comes alone, its worker's step and everything after it included": rowsWritten(lonePass),
        "rows that one more decision adds to a turn": decision.rows,
        "of these by object": decision.where,
        "rows of an event that is decided alone, its turn and everything after it included": rowsWritten(loneDecision),
      },
      goals: [
        goal("rows per pass-through event", pass.rows, "<=", 5),
        goal("calls per pass-through event", pass.calls, "<=", 2),
        goal("rows per router decision", decision.rows, "<=", 6),
        goal("calls per router decision", decision.calls, "<=", 2),
      ],
    };
  } finally {
    await deployment.stop();
    await server.close();
  }
}

const total = (served: readonly Tokens[]): Tokens => ({
  cached: sum(served.map((each) => each.cached)),
  uncached: sum(served.map((each) => each.uncached)),
  output: sum(served.map((each) => each.output)),
});

/** The same arrivals at the same model server, decided by our router and by the replica of the essay's policy. The replica pays for its tokens only. */
async function routedEvents({ routedMs }: CostOptions) {
  const arrivals = arrivalsOf(perMinute, routedMs, 77);
  const router = simulatedRouter();
  const report = { calls: [{ tool: "report", input: { kind: "done", text: "It is done.", confidence: 0.9 } }] };
  const server = await startModelServer({
    speed,
    script: (request) => (request.model === "router" ? router(request) : report),
    prefixTokens: (who) => (who.startsWith("router") ? prefixTokens : 0),
  });
  const deployment = await Deployment.start({ modelUrl: server.url, scriptPath: await counted() });
  try {
    await deployment.deliver("issues", "warm", issueOpened(900_001, "Warm", `Hello. ${planMark({ act: "record", steps: 1 })}`));
    await sleep(2_000);
    await deployment.counts();
    const before = server.served.length;
    const startMs = Date.now() + 100;
    await Promise.all([offer(deployment, arrivals, startMs), runEssayPolicy(server, arrivals, startMs, routedMs + 90_000)]);
    await decided(deployment, arrivals.length + 1);
    await sleep(quietMs);
    const served = server.served.slice(before);
    const ours = served.filter(({ conversation }) => conversation !== "essay");
    const [ourTokens, essayTokens] = [total(ours), total(served.filter(({ conversation }) => conversation === "essay"))];
    const counts = await deployment.counts();
    // Asleep between its calls, an object is paid for while it waits for a model.
    const waitedSeconds = sum(ours.map(({ latencyMs }) => latencyMs)) / 1_000;
    const per1000 = 1_000 / arrivals.length;
    const platform = platformDollars(counts, waitedSeconds) * per1000;
    const oursDollars = platform + tokenDollars(ourTokens) * per1000;
    const essayDollars = tokenDollars(essayTokens) * per1000;
    return {
      figures: {
        "1,000 routed events, dollars": oursDollars,
        "1,000 routed events, dollars for the platform alone": platform,
        "1,000 routed events, the essay's policy, dollars for tokens alone": essayDollars,
        "rows of a routed event, dispatched tasks included": rowsWritten(counts) / arrivals.length,
      },
      goals: [goal("money per 1,000 routed events, ours / the essay's policy", oursDollars / essayDollars, "<=", 0.65)],
    };
  } finally {
    await deployment.stop();
    await server.close();
  }
}

async function offer(deployment: Deployment, arrivals: readonly Arrival[], startMs: number): Promise<void> {
  await Promise.all(
    arrivals.map(async ({ n, atMs, act, ourSteps }) => {
      await sleep(Math.max(0, startMs + atMs / speed - Date.now()));
      const text = `Somebody said something about ${n}. ${planMark({ act, steps: ourSteps })}`;
      await deployment.deliver("issues", `run-${n}`, issueOpened(n + 1, `Something about ${n}`, text));
    }),
  );
}

async function decided(deployment: Deployment, count: number): Promise<void> {
  for (let i = 0; i < 60; i++) {
    const rows = await deployment.events("ROUTER", routerName);
    const settled = rows.flatMap(({ event }) =>
      event.kind === "router.decision" ? event.settles.filter((id) => id.startsWith("trg_")) : [],
    );
    if (new Set(settled).size >= count) return;
    await sleep(1_000);
  }
  throw new Error("Not every event was decided.");
}

/** Ten machines are connected and a hundred threads exist, and nothing happens; then each kind of object is touched once more. */
async function idleDay({ idleMs }: CostOptions) {
  const router = simulatedRouter();
  const server = await startModelServer({ speed: 1_000, script: (request) => (request.model === "router" ? router(request) : idleWorker) });
  const deployment = await Deployment.start({ modelUrl: server.url, scriptPath: await counted() });
  const connected: Machine[] = [];
  try {
    for (let i = 0; i < machines; i++) {
      const machine = await Machine.enrol(deployment, `machine ${i}`);
      await machine.connect(deployment.origin);
      connected.push(machine);
    }
    await deployment.deliver("issues", "task", issueOpened(1, "Work", `Please. ${planMark({ act: "dispatch", steps: 1 })}`));
    let last = "";
    for (let i = 2; i <= threads; i++)
      ({ id: last } = await deployment.deliver(
        "issues",
        `thread-${i}`,
        issueOpened(i, "Talk", `Hello. ${planMark({ act: "record", steps: 1 })}`),
      ));
    await sleep(quietMs);
    // No object is touched for this: whoever holds a way to one keeps it in memory.
    const threadId = ownerOf(last, "thr") ?? "";
    const taskId = (JSON.parse(await deployment.list("tasks")) as TasksAnswer).tasks[0]?.taskId ?? "";
    await deployment.counts();
    await sleep(putAwayMs);
    const still = await deployment.counts();
    await deployment.events("THREAD", threadId);
    await deployment.events("WORKER_SESSION", taskId);
    await deployment.events("ROUTER", routerName);
    await deployment.events("ENDPOINT", connected[0]?.endpointId ?? "");
    await (await deployment.object<BoardRpc>("BOARD", boardName)).snapshot();
    const touched = (await deployment.counts()).objects;
    const awake = ["Thread", "WorkerSession", "Router", "Endpoint", "Board"].filter((kind) => touched[kind]?.constructed !== 1);

    await sleep(putAwayMs);
    for (const machine of connected) machine.pings = 0;
    await deployment.counts();
    const startMs = Date.now();
    while (Date.now() - startMs < idleMs) {
      await deployment.cron();
      await sleep(Math.min(60_000, startMs + idleMs - Date.now()));
    }
    const counts = await deployment.counts();
    const minutes = Math.ceil(idleMs / 60_000);
    const pings = sum(connected.map((machine) => machine.pings));
    // A cron is a request of the Worker; a ping that the runtime answers by itself still came in.
    const dollars =
      platformDollars(counts) + prices.workerRequest * minutes + (prices.objectRequest * pings) / prices.socketMessagesARequest;
    // What rings later than this run lasts rings all the same: each time a call, the row of its deadline, and the alarm that is set anew.
    const ring = prices.objectRequest + 2 * prices.rowWritten;
    const later = sum(counts.waiting.filter(({ afterMs }) => afterMs > idleMs).map(({ afterMs }) => (ring * dayMs) / afterMs));
    const day = (dollars * dayMs) / Math.max(idleMs, minutes * 60_000) + later;
    const neverAsleep = machines * (dayMs / 1_000) * prices.activeSecond;
    return {
      figures: {
        "an idle day with 10 machines and 100 threads, dollars": day,
        "of it for what rings rarely": later,
        "the same with machines that never hibernate, dollars": neverAsleep,
        "rows of the idle time, a day": (rowsWritten(counts) * dayMs) / Math.max(idleMs, minutes * 60_000),
        "objects that were active after their last event": awake.join(", ") || "none",
        "calls in the quiet before that": callsOf(still),
      },
      goals: [
        goal("an idle day, ours / never asleep", day / neverAsleep, "<=", 1 / 500),
        goal("kinds of object still in memory 13 s after the last event", awake.length, "<=", 0),
      ],
    };
  } finally {
    for (const machine of connected) machine.close();
    await deployment.stop();
    await server.close();
  }
}
