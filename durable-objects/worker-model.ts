// One model call of a worker session, with the tools, the words and the model of its profile; and what an earlier one saw.
import { isPlatformHiccup } from "../src/core/alarms.ts";
import { profileAt, workerMessagesAt } from "../src/core/replay.ts";
import { workerRequest } from "../src/core/worker-prompt.ts";
import type { Config } from "../src/env.ts";
import { createModel } from "../src/llm/registry.ts";
import { requestBytes } from "../src/llm/request-bytes.ts";
import type { TaskEvent } from "../src/protocol/events.ts";
import { asFault, Fault, messageOf } from "../src/protocol/fault.ts";
import type { Model, ModelMessage, ModelReply } from "../src/protocol/model.ts";
import type { Profile } from "../src/protocol/profile.ts";
import type { Replayed } from "../src/protocol/rpc.ts";
import type { EventLog } from "../src/storage/event-log.ts";
import type { WorkerStore } from "../src/storage/worker-store.ts";
import { withTimeout } from "../src/timeout.ts";

/** The provider's own timeout comes first; this one is for a provider that ignores it. */
const callGraceMs = 5_000;
/** A task has far fewer: its allowance ends it. */
const replayedEvents = 10_000;

export type Answer = { reply: ModelReply } | { error: unknown };

/** The deployment's model for workers, or the one of the same provider that a profile names. */
export class WorkerModels {
  readonly #config: Config["model"]["worker"];
  readonly #made = new Map<string, Model>();

  constructor(config: Config) {
    this.#config = config.model.worker;
  }

  of({ model }: Pick<Profile, "model">): Model {
    const { provider, modelName: own } = this.#config;
    const modelName = provider === "offline" ? own : (model ?? own);
    const made = this.#made.get(modelName) ?? createModel({ ...this.#config, modelName });
    this.#made.set(modelName, made);
    return made;
  }
}

/** Asks, and never throws. When `unwanted` settles it answers at once, whatever the provider does. */
export async function askWorkerModel(
  config: Config,
  model: Model,
  asked: { profile: Profile; messages: ModelMessage[]; unwanted: Promise<void> },
): Promise<Answer> {
  const { profile, messages, unwanted } = asked;
  const { timeoutMs } = config.model.worker;
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

export const faultOf = (error: unknown): Fault =>
  asFault(error) ?? new Fault("internal", "The request to the model could not be made.", { retry: "later", detail: messageOf(error) });

/**
 * [W12] An answer that cannot be kept is a failed call: else it would be asked for, and paid, without end. Throws what is not the answer's
 * fault.
 */
export function unkept(answer: Answer, error: unknown): Answer {
  if ("error" in answer || isPlatformHiccup(messageOf(error))) throw error;
  const words = `The model's answer could not be kept (${messageOf(error)}); it is asked again.`;
  return { error: new Fault("provider", words, { retry: "later", cause: error }) };
}

/** [L2] The request of a step, made again from the task's own rows. */
export async function replayStep(
  config: Config,
  models: WorkerModels,
  from: { store: WorkerStore; log: EventLog<TaskEvent>; step: number },
): Promise<Replayed | null> {
  const { store, log, step } = from;
  const task = store.task();
  if (task === null) return null;
  const events = log.after(0, replayedEvents, ["task.model", "task.compacted"]).map(({ event }) => event);
  const compactions = events.flatMap((event) => (event.kind === "task.compacted" ? [event] : []));
  const seen = workerMessagesAt(store.transcriptRows(), compactions, step);
  if (seen === null) return null;
  const profile = profileAt(task, step);
  const asked = events.findLast((event) => event.kind === "task.model" && event.step === step);
  const model = profile.model === null && asked?.kind === "task.model" ? asked.model : models.of(profile).name;
  const request = workerRequest(config.agentName, profile, seen.messages);
  return { step, model, bytes: await requestBytes(config.model.worker, model, request), complete: seen.complete };
}
