// `npm run bench -- worker-step`: CPU of a worker's turn, with log, deadlines and ledger, against one bare `ai` step in a plain object.
import { setTimeout as sleep } from "node:timers/promises";
import { ownerOf } from "../../src/core/ids.ts";
import type { WorkerSessionRpc } from "../../src/protocol/rpc.ts";
import { BareRuntime } from "./lib/bare.ts";
import { Deployment, issueOpened } from "./lib/deployment.ts";
import { type Result, ratioGoal, result } from "./lib/result.ts";
import { median } from "./lib/statistics.ts";
import { Undisturbed } from "./lib/undisturbed.ts";
import { growth, pair, perTurn, type Side, Turns } from "./turn-cost.ts";

/** `lives`: how often a long one of `long` turns is measured; ten turns at one end of a single one are at the mercy of a pause. */
export type StepOptions = { pairs: number; turns: number; long: number; lives: number };
export const fullWorkerStep: StepOptions = { pairs: 7, turns: 50, long: 1_000, lives: 5 };
export const quickWorkerStep: StepOptions = { pairs: 3, turns: 25, long: 200, lives: 2 };

/** What a task is given at once, at most. */
const allowance = 60;
const operator = { role: "owner" as const, id: "operator", name: "Operator" };

const few = 20;
const many = 220;

/** Each turn keeps one note: a call that the worker session answers by itself, and then it goes on. */
const noteOf = (n: number) => [{ tool: "note", input: { kind: "fact", text: `what was found in step ${n}` } }];

/** As a person would let a task go on whose allowance is used. */
async function goOn(session: WorkerSessionRpc): Promise<void> {
  // On a busy machine the last step takes its time.
  for (let i = 0; i < 3_000; i++) {
    await sleep(20);
    if ((await session.describe())?.card.status !== "paused") continue;
    await session.resume({ by: operator, modelCalls: allowance });
    return;
  }
  throw new Error("The task did not pause at its allowance.");
}

export async function workerStep({ pairs, turns: perBlock, long, lives }: StepOptions): Promise<{ result: Result }> {
  const turns = await Turns.start();
  const bare = await BareRuntime.start();
  const deployment = await Deployment.start({ modelUrl: turns.model.url });
  try {
    const { id: triggerId } = await deployment.deliver("issues", "work", issueOpened(1, "Work", "Please."));
    const threadId = ownerOf(triggerId, "thr") ?? "";
    let n = 0;
    const ours: Side = async (pieces, count) => {
      const taskId = `tsk_bench${++n}`;
      const failed = Promise.withResolvers<never>();
      const marks = turns.take("worker", {
        pieces,
        cpuMs: () => deployment.cpuMs(),
        until: count + 1,
        calls: (step) => {
          if (step % allowance === 0 && step <= count) session.then(goOn).catch(failed.reject);
          return noteOf(step);
        },
      });
      const session = deployment.startTask({ taskId, threadId, triggerId, goal: "Keep notes of what you find.", maxModelCalls: allowance });
      session.catch(failed.reject);
      const done = await Promise.race([marks, failed.promise]);
      await (await session).cancel({ by: operator, reason: "the block is over" });
      return done;
    };
    const plain: Side = async (pieces, count) => {
      const marks = turns.take("bare", { pieces, calls: noteOf, cpuMs: () => bare.cpuMs(), until: count + 1 });
      const like = turns.likeLast("worker");
      await bare.turns(`bare-${++n}`, { baseUrl: turns.model.url, model: "bare", ...like, turns: count + 1 });
      return marks;
    };
    const quiet = new Undisturbed(() => (deployment.cpuMs() + bare.cpuMs()) / 1_000, 2 * pairs);
    for (let warm = 0; warm < 3; warm++) {
      await ours(few, perBlock);
      await plain(few, perBlock);
    }
    const turn: { ours: number; bare: number }[] = [];
    const token: { ours: number; bare: number }[] = [];
    for (let i = 0; i < pairs; i++) {
      const oursFirst = i % 2 === 0;
      const both = (pieces: number) =>
        quiet.block(() =>
          pair(
            oursFirst,
            async () => perTurn(await ours(pieces, perBlock)),
            async () => perTurn(await plain(pieces, perBlock)),
          ),
        );
      const short = await both(few);
      const wordy = await both(many);
      turn.push(short);
      token.push({ ours: (wordy.ours - short.ours) / (many - few), bare: (wordy.bare - short.bare) / (many - few) });
    }
    const histories: number[][] = [];
    for (let i = 0; i < lives; i++) histories.push(await quiet.block(() => ours(few, long)));
    const ratio = ({ ours: a, bare: b }: { ours: number; bare: number }): number => a / b;
    return {
      result: result(
        "worker-step",
        {
          "CPU a turn, ours, ms": median(turn.map((each) => each.ours)),
          "CPU a turn, bare ai step, ms": median(turn.map((each) => each.bare)),
          "CPU a streamed token, ours, µs": 1_000 * median(token.map((each) => each.ours)),
          "CPU a streamed token, bare ai step, µs": 1_000 * median(token.map((each) => each.bare)),
          "first ten turns, ours, ms a turn": median(histories.map((history) => perTurn(history, 1, 11))),
          [`last ten of ${long} turns, ours, ms a turn`]: median(histories.map((history) => perTurn(history, long - 10, long))),
          [`mean of ${long} turns, ours, ms a turn`]: median(histories.map((history) => perTurn(history))),
          ...quiet.figures(),
        },
        [
          ratioGoal("CPU a turn, ours / bare ai step", turn.map(ratio), "<=", 1.5),
          ratioGoal("CPU a streamed token, ours / bare ai step", token.map(ratio), "<=", 1.5),
          ratioGoal(`last ten of ${long} turns / first ten`, histories.map(growth), "<=", 1.3),
        ],
      ),
    };
  } finally {
    await deployment.stop();
    await bare.stop();
    await turns.model.close();
  }
}
