// Carries out one effect of a worker session. Every receiver takes a repeated one as the same.
import type { TaskState, WorkerEffect, WorkerRead } from "../src/core/worker-state.ts";
import { boardName, type Env, routerName } from "../src/env.ts";
import { limits } from "../src/protocol/limits.ts";
import { recallObject, withTimeout } from "../src/storage/recall.ts";
import { indexTask } from "../src/storage/task-index.ts";

/** Another object, or D1, has this long for one effect; then it is tried again later. */
const effectTimeoutMs = 30_000;

/** Resolves when the receiver has it; throws when it must be tried again. Reads are `answerRead`'s. */
export async function applyEffect(env: Env, effect: Exclude<WorkerEffect, { effect: "read" }>, task: TaskState): Promise<void> {
  await withTimeout(send(env, effect, task), effectTimeoutMs);
}

async function send(env: Env, effect: Exclude<WorkerEffect, { effect: "read" }>, task: TaskState): Promise<void> {
  const { start, card } = task;
  switch (effect.effect) {
    case "submit":
      await env.ENDPOINT.getByName(effect.endpointId).submit(effect.command);
      return;
    case "stop":
      await env.ENDPOINT.getByName(effect.endpointId).stop({ commandId: effect.commandId, why: effect.why });
      return;
    case "stop_task":
      await env.ENDPOINT.getByName(effect.endpointId).stopTask({ taskId: start.taskId, epoch: effect.epoch });
      return;
    case "report":
      await env.ROUTER.getByName(routerName).report(effect.report);
      return;
    case "card":
      switch (effect.to) {
        case "board": {
          const place = { source: start.source, place: start.place, askedBy: start.quote.from.name };
          await env.BOARD.getByName(boardName).change([{ kind: "task", task: { ...card, ...place } }]);
          return;
        }
        case "index":
          await indexTask(env.DB, start, card);
          return;
        default:
          await env.THREAD.getByName(effect.to).card(card);
          return;
      }
    case "unsubscribe":
      await env.THREAD.getByName(effect.threadId).unsubscribe({ taskId: start.taskId, reason: effect.reason });
      return;
    case "release":
      await env.ROUTER.getByName(routerName).deliver({
        threadId: effect.threadId,
        rows: effect.rows,
        before: [],
        tasks: [start.taskId],
        releasedBy: start.taskId,
      });
      return;
  }
}

/** The result of a read, for the model. It never throws: what cannot be read in time is said. */
export async function answerRead(env: Env, read: WorkerRead): Promise<{ output: string; tainting: boolean }> {
  switch (read.read) {
    case "recall": {
      const { text, tainting } = await recallObject(env, { id: read.id, page: read.page });
      return { output: text, tainting };
    }
    case "output":
      return { output: await readOutput(env, read), tainting: false };
  }
}

async function readOutput(env: Env, { endpointId, commandId, offset, limit }: Extract<WorkerRead, { read: "output" }>): Promise<string> {
  try {
    const answer = env.ENDPOINT.getByName(endpointId).readOutput({ commandId, offset, limit });
    const output = await withTimeout(answer, limits.recallTimeoutMs);
    return JSON.stringify(output === null ? { error: `${commandId} has no output yet` } : { command: commandId, ...output });
  } catch (error) {
    return JSON.stringify({ error: `could not be read: ${error instanceof Error ? error.message : String(error)}` });
  }
}
