// Any server that speaks OpenAI's chat completions: one request a step, tools without execution.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { type ModelMessage as AiMessage, generateText, jsonSchema, type ToolSet, tool } from "ai";
import * as z from "zod/mini";
import type { ModelConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import type { Model, ModelMessage, ModelReply, ModelUsage, ToolSpecs } from "../protocol/model.ts";
import { modelFault } from "./model-fault.ts";

/** A model behind `config.baseUrl`. `answer` replaces the network: that is how the offline planner gets the same request bytes. */
export function openAiCompatible(config: ModelConfig, answer?: typeof fetch): Model {
  const provider = createOpenAICompatible({
    name: "model",
    baseURL: config.baseUrl,
    ...(config.apiKey === "" ? {} : { apiKey: config.apiKey }),
    ...(answer ? { fetch: answer } : {}),
    transformRequestBody: (body) => withOutputLimit(body, config.baseUrl),
  });
  const languageModel = provider.chatModel(config.modelName);

  return {
    name: config.modelName,
    async call(request, options) {
      if (config.problem !== null) throw new Fault("bad_input", config.problem, { retry: "never" });
      const timeoutMs = Math.min(options.timeoutMs, config.timeoutMs);
      // Not AbortSignal.timeout: its timer would keep the calling object awake after the answer.
      const abort = new AbortController();
      const timer = setTimeout(() => abort.abort(), timeoutMs);
      void options.unwanted?.then(() => abort.abort());
      try {
        const result = await generateText({
          model: languageModel,
          instructions: request.system,
          messages: request.messages.map(toAiMessage),
          tools: toAiTools(request.tools),
          maxOutputTokens: request.maxOutputTokens,
          maxRetries: 0,
          abortSignal: abort.signal,
        });
        return checked({
          text: result.text,
          calls: result.toolCalls.map((call) => ({ callId: call.toolCallId, tool: call.toolName, input: call.input as unknown })),
          usage: usageOf(result.usage),
          finish: finishOf(result.finishReason),
        });
      } catch (error) {
        throw modelFault(error, config, abort.signal.aborted, timeoutMs);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** OpenAI's own newer models refuse `max_tokens`; its older ones and other servers know only that. */
function withOutputLimit(body: Record<string, unknown>, baseUrl: string): Record<string, unknown> {
  if (new URL(baseUrl).hostname !== "api.openai.com") return body;
  const { max_tokens, ...rest } = body;
  return { ...rest, max_completion_tokens: max_tokens };
}

/** The schema is only shown to the model. Without `validate`, input comes back as the model wrote it, and the caller refuses what does not fit. */
const toAiTools = (specs: ToolSpecs): ToolSet =>
  Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [
      name,
      tool({
        description: spec.description,
        inputSchema: jsonSchema(z.toJSONSchema(spec.input, { target: "draft-7", io: "input" }) as object),
      }),
    ]),
  );

function toAiMessage(message: ModelMessage): AiMessage {
  switch (message.role) {
    case "user":
      return { role: "user", content: message.text };
    case "assistant":
      return {
        role: "assistant",
        content: [
          ...(message.text !== "" || message.calls.length === 0 ? [{ type: "text" as const, text: message.text }] : []),
          ...message.calls.map((call) => ({
            type: "tool-call" as const,
            toolCallId: call.callId,
            toolName: call.tool,
            input: call.input ?? {},
          })),
        ],
      };
    case "tool":
      return {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: message.callId, toolName: message.tool, output: { type: "text", value: message.output } },
        ],
      };
  }
}

/** An answer without words and calls, or with two calls of one id, cannot be acted on: the provider's fault, not the task's. */
function checked(reply: ModelReply): ModelReply {
  if (reply.text === "" && reply.calls.length === 0)
    throw new Fault("provider", "The model gave an empty answer; it is asked again.", { retry: "later" });
  if (new Set(reply.calls.map((call) => call.callId)).size !== reply.calls.length)
    throw new Fault("provider", "The model gave two of its tool calls the same id; it is asked again.", { retry: "later" });
  return reply;
}

function usageOf(usage: {
  inputTokens: number | undefined;
  outputTokens: number | undefined;
  inputTokenDetails: { cacheReadTokens: number | undefined };
}): ModelUsage | null {
  if (usage.inputTokens === undefined || usage.outputTokens === undefined) return null;
  return {
    inputTokens: usage.inputTokens,
    cachedTokens: usage.inputTokenDetails.cacheReadTokens ?? 0,
    outputTokens: usage.outputTokens,
  };
}

function finishOf(reason: string): ModelReply["finish"] {
  switch (reason) {
    case "stop":
      return "stop";
    case "tool-calls":
      return "tools";
    case "length":
      return "length";
    default:
      return "other";
  }
}
