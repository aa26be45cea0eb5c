// Regular-expression search in a granted folder, in a thread of its own: a pattern that never ends is ended by the command's timeout.
import { Worker } from "node:worker_threads";
import * as z from "zod/mini";
import { Fault } from "../src/protocol/fault.ts";

const answerSchema = z.union([z.object({ text: z.string() }), z.object({ problem: z.string() })]);

/** Lines that match, as `path:line:text`. */
export function searchFiles(
  root: string,
  top: string,
  spec: { query: string; glob?: string | undefined },
  signal: AbortSignal,
): Promise<string> {
  const worker = new Worker(new URL("./search-worker.ts", import.meta.url), {
    workerData: { root, top, query: spec.query, glob: spec.glob ?? null },
    env: {},
  });
  return new Promise<string>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Fault("timeout", "The search was stopped before its end.")), { once: true });
    worker.once("error", reject);
    worker.once("message", (message) => {
      const answer = answerSchema.parse(message);
      if ("text" in answer) resolve(answer.text);
      else reject(new Fault("bad_input", answer.problem));
    });
  }).finally(() => worker.terminate());
}
