// How large a request is in its provider's own tokens: its count of the last one, carried on by what we estimate of what came since.
import type { ModelRequest, ModelUsage, ToolSpecs } from "../protocol/model.ts";
import { estimateTokens } from "./context.ts";
import { toolSchema } from "./tool-schema.ts";

/** What no text has: whoever counts so few counts only what was not cached, or something else, and whoever counts so many another request. */
const leastRate = 0.25;
const mostRate = 4;

const toolTokens = new WeakMap<ToolSpecs[string], number>();

function tokensOfTool(spec: ToolSpecs[string]): number {
  const known = toolTokens.get(spec);
  if (known !== undefined) return known;
  const tokens = estimateTokens(spec.description + JSON.stringify(toolSchema(spec)));
  toolTokens.set(spec, tokens);
  return tokens;
}

/** Estimated tokens of what every request of a mind begins with: system prompt and tools. */
export const fixedTokens = ({ system, tools }: Pick<ModelRequest, "system" | "tools">): number =>
  Object.values(tools).reduce((sum, spec) => sum + tokensOfTool(spec), estimateTokens(system));

/** [L4] The provider's tokens for each one that we estimate, in the last request that it counted. `estimated` is what we took that for. */
export function learnedRate(before: number, estimated: number, usage: Pick<ModelUsage, "inputTokens"> | null): number {
  const rate = usage === null ? 0 : usage.inputTokens / estimated;
  return rate >= leastRate && rate <= mostRate ? rate : before;
}

/** [L4] What a request of so many estimated tokens is for its provider: what that counted of the last one, and the same rate for the rest. */
export const providerTokens = (estimated: number, rate: number): number => Math.round(estimated * rate);
