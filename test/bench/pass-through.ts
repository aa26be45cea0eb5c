// `npm run bench -- pass-through`: from a delivery at the door to the worker's inbox and to its next model request, against the bare call.
import { setTimeout as sleep } from "node:timers/promises";
import { routerName } from "../../src/env.ts";
import { commented, Deployment, issueOpened } from "./lib/deployment.ts";
import { Floor } from "./lib/floor.ts";
import { type SimRequest, startModelServer } from "./lib/model-server.ts";
import { goal, type Result, ratioGoal, result } from "./lib/result.ts";
import { planMark, simulatedRouter } from "./lib/simulated-router.ts";
import { median, quantile } from "./lib/statistics.ts";

export type PassThroughOptions = { pairs: number; perBlock: number };
export const fullPassThrough: PassThroughOptions = { pairs: 7, perBlock: 40 };
export const quickPassThrough: PassThroughOptions = { pairs: 3, perBlock: 20 };

const issue = 1;
const apartMs = 60;
const wallMs = (): number => performance.timeOrigin + performance.now();

export async function passThrough({ pairs, perBlock }: PassThroughOptions): Promise<{ result: Result }> {
  const router = simulatedRouter();
  const requestedMs = new Map<string, number>();
  // An idle worker: each row wakes it, it takes note and waits.
  const worker = (request: SimRequest) => {
    for (const mark of request.messages.at(-1)?.content?.match(/row \d+\b/g) ?? [])
      if (!requestedMs.has(mark)) requestedMs.set(mark, wallMs());
    return { calls: [{ tool: "wait", input: { reason: "nothing to do" } }], latencyMs: 0 };
  };
  const server = await startModelServer({
    speed: 1_000,
    script: (request) => (request.model === "router" ? router(request) : worker(request)),
  });
  const floor = await Floor.start();
  const deployment = await Deployment.start({ modelUrl: server.url });
  try {
    await deployment.deliver("issues", "task", issueOpened(issue, "Work", `Please. ${planMark({ act: "dispatch", steps: 1 })}`));
    const taskId = await taskOf(deployment);
    const sentMs = new Map<string, number>();
    let n = 0;
    const ourBlock = async (): Promise<void> => {
      for (let i = 0; i < perBlock; i++) {
        const mark = `row ${++n}`;
        sentMs.set(mark, wallMs());
        await deployment.deliver("issue_comment", `row-${n}`, commented(issue, n, `${mark} of the run`));
        await sleep(apartMs);
        // A task that used its allowance would sleep: it goes on, as a person would let it.
        if (n % 10 === 0) await deployment.resume(taskId);
      }
    };
    const floorBlock = async (): Promise<number[]> => {
      const took: number[] = [];
      for (let i = 0; i < perBlock; i++) {
        const startMs = performance.now();
        await deployment.send(floor.url, "POST", "x", {});
        took.push(performance.now() - startMs);
        await sleep(apartMs);
      }
      return took;
    };
    await ourBlock();
    await floorBlock();
    const bare: number[][] = [];
    const blocks: string[][] = [];
    for (let pair = 0; pair < pairs; pair++) {
      const first = n;
      if (pair % 2 === 0) await ourBlock();
      bare.push(await floorBlock());
      if (pair % 2 === 1) await ourBlock();
      blocks.push(Array.from({ length: n - first }, (_, i) => `row ${first + 1 + i}`));
    }
    await sleep(500);
    const inboxMs = await inboxTimes(deployment, taskId);
    const toInbox = (marks: readonly string[]): number[] =>
      marks.flatMap((mark) => (inboxMs.get(mark) ?? Number.NaN) - (sentMs.get(mark) ?? 0));
    const toModel = blocks.flat().map((mark) => (requestedMs.get(mark) ?? Number.NaN) - (sentMs.get(mark) ?? 0));
    const ratiosAt = (q: number): number[] => blocks.map((marks, i) => quantile(toInbox(marks), q) / quantile(bare[i] ?? [], q));
    const all = toInbox(blocks.flat());
    return {
      result: result(
        "pass-through",
        {
          "arrival to inbox, p50 ms": median(all),
          "arrival to inbox, p95 ms": quantile(all, 0.95),
          "floor, p50 ms": median(bare.flat()),
          "floor, p95 ms": quantile(bare.flat(), 0.95),
          "arrival to the next model request, p50 ms": median(toModel),
          "arrival to the next model request, p95 ms": quantile(toModel, 0.95),
        },
        [
          ratioGoal("arrival to inbox p50, ours / floor", ratiosAt(0.5), "<=", 4),
          ratioGoal("arrival to inbox p95, ours / floor", ratiosAt(0.95), "<=", 5),
          goal("arrival to the next model request, p50 ms, worker idle", median(toModel), "<=", 20),
          goal("rows that did not arrive", all.filter((ms) => !Number.isFinite(ms)).length, "<=", 0),
        ],
      ),
    };
  } finally {
    await deployment.stop();
    await floor.stop();
    await server.close();
  }
}

async function taskOf(deployment: Deployment): Promise<string> {
  for (let i = 0; i < 100; i++) {
    for (const { event } of await deployment.events("ROUTER", routerName))
      if (event.kind === "router.decision" && event.taskId !== undefined) {
        await sleep(500);
        return event.taskId;
      }
    await sleep(100);
  }
  throw new Error("The request was not dispatched.");
}

/** When each row entered the inbox, by the worker's own rows; a row's clock has whole milliseconds, half of one is added. */
async function inboxTimes(deployment: Deployment, taskId: string): Promise<Map<string, number>> {
  const rows = new Map<string, string>();
  const described = await deployment.events("WORKER_SESSION", taskId);
  const threadId = described.flatMap(({ event }) => (event.kind === "task.started" ? [event.threadId] : []))[0] ?? "";
  for (const { event } of await deployment.events("THREAD", threadId))
    if (event.kind === "thread.accepted") rows.set(event.trigger.id, /row \d+\b/.exec(event.trigger.text)?.[0] ?? "");
  const times = new Map<string, number>();
  for (const { atMs, event } of described)
    if (event.kind === "task.inbox" && event.item === "row") {
      const mark = rows.get(event.itemId.split(" ").at(-1) ?? "") ?? rows.get(event.itemId);
      if (mark) times.set(mark, atMs + 0.5);
    }
  return times;
}
