// The essay's first experiment in small: the order of the designs, so that a change which breaks the scheduling is seen. The figures
// themselves are `npm run bench -- essay-e2e`.
import { beforeAll, describe, expect, test } from "vitest";
import { type RealRun, RealSystem } from "../bench/e2e-run.ts";
import type { Outcome } from "../bench/e2e-simulation.ts";
import { SingleSession } from "../bench/e2e-single.ts";
import { type WorkloadSize, workloadOf } from "../bench/e2e-workload.ts";
import { finished, p95 } from "../bench/essay-e2e.ts";
import { bundleChanged, withoutPassThrough } from "../bench/lib/changed-worker.ts";

const size: WorkloadSize = {
  windowMs: 60_000,
  tasks: 6,
  events: 18,
  casual: 20,
  rounds: [2, 2],
  toolMs: 20_000,
  eventsWithinMs: 40_000,
};
/** Slow enough that what a busy machine adds to each step is small beside it. */
const speed = 6;
const startUpMs = 60_000;
const runMs = 90_000;

/** The seeds only say whether the session that should delegate does so; the messages are the same. */
const workload = workloadOf(size, 3);
const doesItself = { ...workload, seed: 5 };

let ours: RealRun;
let without: RealRun;
let delegating: Outcome[];
let neutral: Outcome;

beforeAll(async () => {
  const scriptPath = await bundleChanged(withoutPassThrough);
  const systems: RealSystem[] = [];
  try {
    systems.push(await RealSystem.start({ policy: "ours", gate: "off" }, workload, speed));
    systems.push(await RealSystem.start({ policy: "ours", gate: "off", scriptPath }, workload, speed));
    const clock = { startMs: Date.now() + 200, speed };
    const [first, second, ...single] = await Promise.all([
      systems[0]?.run(clock),
      systems[1]?.run(clock),
      SingleSession.run("delegating", workload, clock),
      SingleSession.run("delegating", doesItself, clock),
      SingleSession.run("neutral", workload, clock),
    ]);
    if (!first || !second) throw new Error("A system did not run.");
    [ours, without] = [first, second];
    delegating = single.slice(0, 2);
    neutral = single[2] ?? single[0];
  } finally {
    for (const system of systems) await system.close();
  }
}, startUpMs + runMs);

describe("the essay's first experiment, in small", () => {
  test("every request gets its result, and none is kept from the router", () => {
    expect(ours.unfinished + without.unfinished).toBe(0);
    expect(finished([ours]).length).toBeGreaterThan(size.tasks / 2);
    expect(ours.droppedRequests).toBe(0);
  });

  test("ours is faster than one session that does everything itself, and has no tail as one that should delegate", () => {
    expect(p95([neutral]) / p95([ours])).toBeGreaterThan(1.25);
    expect(p95(delegating) / p95([ours])).toBeGreaterThan(1.2);
    expect(p95(delegating) / p95([neutral])).toBeLessThan(1.05);
  });

  test("without pass-through the router decides more", () => {
    expect(without.decisions / ours.decisions).toBeGreaterThan(1.3);
  });
});
