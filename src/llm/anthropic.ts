// Anthropic's Messages API. The prefix that stays the same bytes from call to call is marked for its prompt cache.
import { createAnthropic } from "@ai-sdk/anthropic";
import { isRecord } from "../core/json.ts";
import type { ModelConfig } from "../env.ts";
import type { Model } from "../protocol/model.ts";
import { oneStepModel, type Prompt, promptOf } from "./one-step.ts";

export function anthropic(config: ModelConfig, answer: typeof fetch = fetch): Model {
  // Bound: the global fetch wants no other receiver.
  const provider = createAnthropic({ baseURL: config.baseUrl, apiKey: config.apiKey, fetch: (input, init) => answer(input, init) });
  const model = provider.languageModel(config.modelName);
  return oneStepModel((request) => {
    const { prompt, ...tools } = promptOf(request, asObject);
    return { model, options: { prompt: markCached(prompt), ...tools } };
  }, config);
}

const ephemeral = { anthropic: { cacheControl: { type: "ephemeral" } } };

/**
 * Two marks: after the tools and the system prompt, which are constant, and at the end of the transcript, which only grows;
 * the next call finds the second one as its own prefix.
 */
function markCached(prompt: Prompt): Prompt {
  const last = prompt.length - 1;
  return prompt.map((message, at) => (at === 0 || at === last ? { ...message, providerOptions: ephemeral } : message));
}

/** A call's input must be an object here; one that the model wrote as anything else was refused, and is shown as what it was. */
const asObject = (input: unknown): unknown => (isRecord(input) ? input : { unreadable: input });
