// Every model provider, one line each.
import type { ModelConfig } from "../env.ts";
import type { Model } from "../protocol/model.ts";
import { anthropic } from "./anthropic.ts";
import { offline } from "./offline/offline.ts";
import { openAiCompatible } from "./openai-compatible.ts";
import { workersAi } from "./workers-ai.ts";

type Provider = (config: ModelConfig, answer?: typeof fetch) => Model;

const providers: Record<ModelConfig["provider"], Provider> = {
  offline,
  "openai-compatible": openAiCompatible,
  anthropic,
  "workers-ai": workersAi,
};

/**
 * The model that a role's configuration names. It never fails here: settings that cannot work fail at each call, in words.
 * `answer` stands in for the provider: it gets each request's bytes as the provider would.
 */
export const createModel: Provider = (config, answer) => providers[config.provider](config, answer);
