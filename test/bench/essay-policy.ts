// A frozen replica of the essay's router policy, as a small driver: it asks the same model server with the essay's prompt sizes and steps.
import { setTimeout as sleep } from "node:timers/promises";
import { type Arrival, essayTokens, type Policy, type Run } from "./batching-simulation.ts";
import { declaredCall, type ModelServer, measuredLaw } from "./lib/model-server.ts";

export const essayPolicy: Policy = {
  steps: (arrival) => arrival.essaySteps,
  cost: (_joined, { length }) => ({ ms: measuredLaw(essayTokens(length)), cached: essayTokens(length).cached }),
  joinsThroughStep: Number.POSITIVE_INFINITY,
  entryMs: 0,
  gapMs: 0,
};

/** Runs the replica against the server in scaled time, from `startMs` (wall clock) until `endMs` (virtual). */
export async function runEssayPolicy(server: ModelServer, arrivals: readonly Arrival[], startMs: number, endMs: number): Promise<Run> {
  const { speed } = server;
  const nowMs = (): number => (Date.now() - startMs) * speed;
  const run: Run = {
    decisions: arrivals.map(({ n, atMs }) => ({ n, arrivedMs: atMs, takenMs: null, decidedMs: null })),
    requests: [],
    endMs,
  };
  let open: { n: number; left: number }[] = [];
  let next = 0;
  while (nowMs() < endMs) {
    let joined = 0;
    for (let arrival = arrivals[next]; arrival !== undefined && arrival.atMs <= nowMs(); arrival = arrivals[++next]) {
      open.push({ n: arrival.n, left: arrival.essaySteps });
      const decision = run.decisions[arrival.n];
      if (decision) decision.takenMs = nowMs();
      joined += 1;
    }
    if (open.length === 0) {
      const upcoming = arrivals[next];
      if (upcoming === undefined) return run;
      await sleep(Math.max(1, (upcoming.atMs - nowMs()) / speed));
      continue;
    }
    const atMs = nowMs();
    const { cached } = await declaredCall(server.url, "essay", essayTokens(open.length));
    run.requests.push({ atMs, ms: nowMs() - atMs, joined, open: open.length, cached });
    for (const item of open) {
      item.left -= 1;
      const decision = run.decisions[item.n];
      if (item.left === 0 && decision && nowMs() <= endMs) decision.decidedMs = nowMs();
    }
    open = open.filter((item) => item.left > 0);
  }
  return run;
}
