// Every model provider, one line each.
import type { ModelConfig } from "../env.ts";
import type { Model } from "../protocol/model.ts";
import { offline } from "./offline/offline.ts";
import { openAiCompatible } from "./openai-compatible.ts";

const providers: Record<ModelConfig["provider"], (config: ModelConfig) => Model> = {
  offline,
  "openai-compatible": openAiCompatible,
};

/** The model that a role's configuration names. It never fails here: settings that cannot work fail at each call, in words. */
export const createModel = (config: ModelConfig): Model => providers[config.provider](config);
