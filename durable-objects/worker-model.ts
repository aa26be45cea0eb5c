// One model call of a worker session, with the tools, the words and the model of its profile.
import { workerRequest } from "../src/core/worker-prompt.ts";
import type { Config } from "../src/env.ts";
import { createModel } from "../src/llm/registry.ts";
import { asFault, Fault } from "../src/protocol/fault.ts";
import type { Model, ModelMessage, ModelReply } from "../src/protocol/model.ts";
import type { Profile } from "../src/protocol/profile.ts";
import { withTimeout } from "../src/storage/timeout.ts";

/** The provider's own timeout comes first; this one is for a provider that ignores it. */
const callGraceMs = 5_000;

export type Answer = { reply: ModelReply } | { error: unknown };

/** Asks, and never throws. When `unwanted` settles it answers at once, whatever the provider does. */
export async function askWorkerModel(
  config: Config,
  fallback: Model,
  asked: { profile: Profile; messages: ModelMessage[]; unwanted: Promise<void> },
): Promise<Answer> {
  const { profile, messages, unwanted } = asked;
  const { worker } = config.model;
  const { timeoutMs } = worker;
  const model = profile.model === null || worker.provider === "offline" ? fallback : createModel({ ...worker, modelName: profile.model });
  const request = workerRequest(config.agentName, profile, messages);
  const given = unwanted.then((): never => {
    throw new Fault("unavailable", "The answer is not wanted any more.");
  });
  try {
    const call = Promise.race([model.call(request, { timeoutMs, unwanted }), given]);
    return { reply: await withTimeout(call, timeoutMs + callGraceMs, "The model") };
  } catch (error) {
    return { error };
  }
}

export const faultOf = (error: unknown): Pick<Fault, "message" | "retry" | "retryAfterMs"> =>
  asFault(error) ?? { message: error instanceof Error ? error.message : String(error), retry: "later", retryAfterMs: undefined };
