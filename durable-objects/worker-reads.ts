// What a worker's model asks to read of other objects: the answer within its share of the step, all of it under an id.
import { spilledAnswer } from "../src/core/worker-spill.ts";
import type { WorkerRead } from "../src/core/worker-state.ts";
import { type Env, routerName } from "../src/env.ts";
import { asFault, messageOf } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import { putArtifact } from "../src/storage/artifacts.ts";
import { recallObject } from "../src/storage/recall.ts";
import { withTimeout } from "../src/timeout.ts";

/**
 * [W17] The answer of a read. One that is longer than `chars` is kept whole: whoever reads the copy by its id may hear what it is a copy
 * of, or what its reader may hear where that is not known, and is tainted by it alike.
 */
export async function answerRead(
  env: Env,
  reader: { taskId: string; audience: string },
  read: WorkerRead,
  chars: number,
): Promise<{ output: string; tainting: boolean; artifactId: string | null }> {
  const { output, tainting, audience } = await readOne(env, reader.taskId, read);
  if (output.length <= chars) return { output, tainting, artifactId: null };
  const from = { tainting, audience: audience ?? reader.audience };
  const artifactId = await putArtifact(env.STORE, new TextEncoder().encode(output), "text/plain; charset=utf-8", from);
  return { output: spilledAnswer(output, artifactId, chars), tainting, artifactId };
}

/** [W20] Follows a thread and tells the router. What may pass is tried again; what never will is the model's to read. */
async function follow(
  env: Env,
  taskId: string,
  { threadId, decisionId, audience }: Extract<WorkerRead, { read: "subscribe" }>,
): Promise<string> {
  try {
    const { fromSeq } = await env.THREAD.getByName(threadId).subscribe({ taskId, decisionId, reader: audience });
    await env.ROUTER.getByName(routerName).follow({ taskId, threadId, follows: true });
    return JSON.stringify({ subscribed: threadId, from_seq: fromSeq });
  } catch (error) {
    const fault = asFault(error);
    if (fault?.retry !== "never") throw error;
    return JSON.stringify({ error: fault.message });
  }
}

/** What is read, for the model. What cannot be read in time is said. */
async function readOne(
  env: Env,
  taskId: string,
  read: WorkerRead,
): Promise<{ output: string; tainting: boolean; audience?: string | undefined }> {
  switch (read.read) {
    case "subscribe":
      return { output: await follow(env, taskId, read), tainting: false };
    case "recall": {
      const { text, tainting, audience } = await recallObject(env, {
        id: read.id,
        page: read.page,
        ...(read.audience === null ? {} : { readers: [read.audience] }),
      });
      return { output: text, tainting, audience };
    }
    case "output":
      return { output: await readOutput(env, read), tainting: false };
  }
}

async function readOutput(env: Env, { endpointId, commandId, offset, limit }: Extract<WorkerRead, { read: "output" }>): Promise<string> {
  try {
    const answer = env.ENDPOINT.getByName(endpointId).readOutput({ commandId, offset, limit });
    const read = await withTimeout(answer, limits.recallTimeoutMs, "The machine's ledger");
    if (read === null) return JSON.stringify({ error: `${commandId} has no output yet` });
    const { audience: _own, ...output } = read;
    return JSON.stringify({ command: commandId, ...output });
  } catch (error) {
    return JSON.stringify({ error: `could not be read: ${messageOf(error)}` });
  }
}
