// `npm run bench -- pass-through`: from a delivery at the door to the worker's inbox and to its next model request, against the bare call;
// and to the last of ten workers that share a thread, against one.
import { setTimeout as sleep } from "node:timers/promises";
import { makeId, ownerOf } from "../../src/core/ids.ts";
import { routerName } from "../../src/env.ts";
import type { ThreadRpc } from "../../src/protocol/rpc.ts";
import { commented, Deployment, issueOpened } from "./lib/deployment.ts";
import { Floor } from "./lib/floor.ts";
import { type SimRequest, startModelServer } from "./lib/model-server.ts";
import { goal, type Result, ratioGoal, result } from "./lib/result.ts";
import { planMark, simulatedRouter } from "./lib/simulated-router.ts";
import { median, quantile } from "./lib/statistics.ts";
import { Undisturbed } from "./lib/undisturbed.ts";

export type PassThroughOptions = { pairs: number; perBlock: number };
export const fullPassThrough: PassThroughOptions = { pairs: 7, perBlock: 40 };
export const quickPassThrough: PassThroughOptions = { pairs: 3, perBlock: 20 };

const speed = 1_000;
const apartMs = 60;
/** A model call that is under way when a row comes. */
const callMs = 300;
const fanOut = 10;
const wallMs = (): number => performance.timeOrigin + performance.now();

/** Rows on their way: when each was sent, and when the model was asked with it. */
class Rows {
  readonly sentMs = new Map<string, number>();
  readonly askedMs = new Map<string, number>();
  readonly #deployment: Deployment;
  #n = 0;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  async send(issue: number, words = "of the run"): Promise<string> {
    const mark = `row ${++this.#n}`;
    this.sentMs.set(mark, wallMs());
    await this.#deployment.deliver("issue_comment", `row-${this.#n}`, commented(issue, this.#n, `${mark} ${words}`));
    return mark;
  }

  async block(issue: number, count: number): Promise<string[]> {
    const marks: string[] = [];
    for (let i = 0; i < count; i++) {
      marks.push(await this.send(issue));
      await sleep(apartMs);
    }
    return marks;
  }
}

export async function passThrough({ pairs, perBlock }: PassThroughOptions): Promise<{ result: Result }> {
  const router = simulatedRouter();
  let rows: Rows | null = null;
  // Each row wakes an idle worker: it takes note and waits.
  const worker = (request: SimRequest) => {
    const text = request.messages.at(-1)?.content ?? "";
    for (const mark of text.match(/row \d+\b/g) ?? []) if (!rows?.askedMs.has(mark)) rows?.askedMs.set(mark, wallMs());
    return { calls: [{ tool: "wait", input: { reason: "nothing to do" } }], latencyMs: text.includes("busy") ? callMs * speed : 0 };
  };
  const server = await startModelServer({ speed, script: (request) => (request.model === "router" ? router(request) : worker(request)) });
  const floor = await Floor.start();
  const deployment = await Deployment.start({ modelUrl: server.url });
  rows = new Rows(deployment);
  const { sentMs, askedMs } = rows;
  try {
    const quiet = new Undisturbed(() => deployment.cpuSeconds() + floor.cpuSeconds(), 2 * pairs);
    const alone = await hops({ pairs, perBlock, deployment, floor, rows, quiet });
    const busy = await duringCalls({ pairs, samples: perBlock / 4, deployment, rows });
    const shared = await toMany({ pairs, perBlock: perBlock / 2, deployment, rows, quiet });
    const since = (mark: string, atMs: number | undefined): number => (atMs ?? Number.NaN) - (sentMs.get(mark) ?? 0);
    const toModel = alone.marks.map((mark) => since(mark, askedMs.get(mark)));
    return {
      result: result(
        "pass-through",
        {
          "arrival to inbox, p50 ms": median(alone.toInbox),
          "arrival to inbox, p95 ms": quantile(alone.toInbox, 0.95),
          "floor, p50 ms": median(alone.bare),
          "floor, p95 ms": quantile(alone.bare, 0.95),
          "arrival to the next model request, p50 ms": median(toModel),
          "arrival to the next model request, p95 ms": quantile(toModel, 0.95),
          "end of the call under way to the next model request, p50 ms": median(busy.afterMs),
          "end of the call under way to the next model request, p95 ms": quantile(busy.afterMs, 0.95),
          "arrival to the inbox of a thread's only worker, p50 ms": median(shared.one),
          [`arrival to the last of ${fanOut} inboxes, p50 ms`]: median(shared.many),
          ...quiet.figures(),
        },
        [
          ratioGoal("arrival to inbox p50, ours / floor", alone.p50s, "<=", 4),
          ratioGoal("arrival to inbox p95, ours / floor", alone.p95s, "<=", 5),
          goal("arrival to the next model request, p50 ms, worker idle", median(toModel), "<=", 20),
          goal("the same beyond the rest of the call under way, p50 ms", median(busy.afterMs), "<=", 20),
          ratioGoal(`arrival to the last of ${fanOut} inboxes / to one`, shared.ratios, "<=", 6),
          goal(
            "rows that did not arrive",
            [...alone.toInbox, ...busy.afterMs, ...shared.one, ...shared.many].filter((ms) => !Number.isFinite(ms)).length,
            "<=",
            0,
          ),
        ],
      ),
    };
  } finally {
    await deployment.stop();
    await floor.stop();
    await server.close();
  }
}

type Part = { pairs: number; deployment: Deployment; rows: Rows; quiet: Undisturbed };

/** One worker that each row wakes, between blocks of the bare call. */
async function hops({ pairs, perBlock, deployment, floor, rows, quiet }: Part & { perBlock: number; floor: Floor }) {
  const issue = 1;
  await deployment.deliver("issues", "task", issueOpened(issue, "Work", `Please. ${planMark({ act: "dispatch", steps: 1 })}`));
  const taskId = await taskOf(deployment);
  /** A task that used its allowance would sleep: it goes on, as a person would let it. */
  const ourBlock = async (): Promise<string[]> => {
    const marks: string[] = [];
    for (let i = 0; i < perBlock; i += 10) {
      marks.push(...(await rows.block(issue, Math.min(10, perBlock - i))));
      await deployment.resume(taskId);
    }
    return marks;
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
  const kept: { marks: string[]; bare: number[] }[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const both = async () => {
      const first = pair % 2 === 0 ? await ourBlock() : null;
      const bare = await floorBlock();
      return { bare, marks: first ?? (await ourBlock()) };
    };
    kept.push(await quiet.block(both));
  }
  await sleep(500);
  const inboxMs = await inboxTimes(deployment, taskId);
  const toInbox = (marks: readonly string[]): number[] =>
    marks.map((mark) => (inboxMs.get(mark) ?? Number.NaN) - (rows.sentMs.get(mark) ?? 0));
  const ratiosAt = (q: number): number[] => kept.map(({ marks, bare }) => quantile(toInbox(marks), q) / quantile(bare, q));
  const marks = kept.flatMap((each) => each.marks);
  return { marks, toInbox: toInbox(marks), bare: kept.flatMap(({ bare }) => bare), p50s: ratiosAt(0.5), p95s: ratiosAt(0.95) };
}

/** Rows that come while the worker's model is asked: the first of two begins the call, the second comes in the middle of it. */
async function duringCalls({
  pairs,
  samples,
  deployment,
  rows,
}: Omit<Part, "quiet"> & { samples: number }): Promise<{ afterMs: number[] }> {
  const both: [string, string][] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const issue = 1_000 + pair;
    await following(deployment, issue, 1, 60);
    await sleep(500);
    for (let i = 0; i < samples; i++) {
      const first = await rows.send(issue, "busy");
      await sleep(20 + ((callMs - 100) * i) / samples);
      both.push([first, await rows.send(issue, "busy")]);
      await sleep(2 * callMs + apartMs);
    }
  }
  const afterMs = both.map(([first, second]) => {
    const endMs = (rows.askedMs.get(first) ?? Number.NaN) + callMs;
    return (rows.askedMs.get(second) ?? Number.NaN) - Math.max(endMs, rows.sentMs.get(second) ?? 0);
  });
  return { afterMs };
}

/** Two threads, one with a single worker and one with ten. All of them are out of calls: what comes enters their inboxes, and nothing else happens. */
async function toMany({ pairs, perBlock, deployment, rows, quiet }: Part & { perBlock: number }) {
  const [one, many] = [2_000, 2_001];
  const followers = { [one]: await following(deployment, one, 1, 1), [many]: await following(deployment, many, fanOut, 1) };
  for (const issue of [one, many]) await rows.block(issue, 3);
  await sleep(1_000);
  const kept: Record<number, string[]>[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const order = pair % 2 === 0 ? [one, many] : [many, one];
    const both = async () => {
      const blocks: Record<number, string[]> = {};
      for (const issue of order) blocks[issue] = await rows.block(issue, perBlock);
      return blocks;
    };
    kept.push(await quiet.block(both));
  }
  await sleep(500);
  const lastMs = async (issue: number): Promise<(mark: string) => number> => {
    const times = await Promise.all((followers[issue] ?? []).map((taskId) => inboxTimes(deployment, taskId)));
    return (mark) => Math.max(...times.map((each) => each.get(mark) ?? Number.NaN)) - (rows.sentMs.get(mark) ?? 0);
  };
  const [toOne, toLast] = [await lastMs(one), await lastMs(many)];
  const of = (issue: number, took: (mark: string) => number): number[][] => kept.map((blocks) => (blocks[issue] ?? []).map(took));
  const [ones, manies] = [of(one, toOne), of(many, toLast)];
  return { one: ones.flat(), many: manies.flat(), ratios: ones.map((took, i) => median(manies[i] ?? []) / median(took)) };
}

/** An issue with so many tasks that follow it, each with so many model calls; started straight at their objects. */
async function following(deployment: Deployment, issue: number, tasks: number, maxModelCalls: number): Promise<string[]> {
  const words = `Hello. ${planMark({ act: "record", steps: 1 })}`;
  const { id: triggerId } = await deployment.deliver("issues", `issue-${issue}`, issueOpened(issue, `Issue ${issue}`, words));
  const threadId = ownerOf(triggerId, "thr") ?? "";
  const thread = await deployment.object<ThreadRpc>("THREAD", threadId);
  const taskIds = Array.from({ length: tasks }, (_, n) => makeId("tsk", "pass-through", issue, n));
  for (const taskId of taskIds) {
    const decisionId = makeId("dec", taskId);
    await thread.subscribe({ taskId, decisionId });
    await deployment.startTask({ taskId, threadId, triggerId, goal: "Work.", maxModelCalls });
  }
  return taskIds;
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
