// [L1] One step of a language model over its stream: the pieces are shown, the reply is taken only when it is whole.
import type { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { toolSchema } from "../core/tool-schema.ts";
import type { ModelConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { Model, ModelMessage, ModelReply, ModelRequest, ModelUsage } from "../protocol/model.ts";
import { abortAfter } from "../timeout.ts";
import { modelFault, streamFault } from "./model-fault.ts";

type ChatModel = ReturnType<ReturnType<typeof createOpenAICompatible>["chatModel"]>;
/** What every provider package gives us: one request, its answer as a stream of parts. */
export type StreamingModel = Pick<ChatModel, "doStream">;
type CallOptions = Parameters<ChatModel["doStream"]>[0];
type Part = Awaited<ReturnType<ChatModel["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;
export type Prompt = CallOptions["prompt"];
type PromptMessage = Prompt[number];
type Tool = NonNullable<CallOptions["tools"]>[number];

/** The client of one call, and what it is given of the request; the rest it may know already. */
type Client = (
  request: ModelRequest,
  signal: AbortSignal,
) => { model: StreamingModel; options: Pick<CallOptions, "prompt" | "tools" | "toolChoice"> };

/**
 * A `Model` of a provider package. Retrying is the caller's decision: one call is one request. `inspect` looks at each chunk of one
 * answer as it came, and throws when it cannot be trusted.
 */
export function oneStepModel(client: Client, config: ModelConfig, inspect?: () => (chunk: unknown) => void): Model {
  return {
    name: config.modelName,
    async call(request, options) {
      if (config.problem !== null) throw new Fault("bad_input", "The model is not set up yet.", { detail: config.problem, retry: "never" });
      const timeoutMs = Math.min(options.timeoutMs, config.timeoutMs);
      return abortAfter(timeoutMs, async (limit) => {
        const { signal } = limit;
        void options.unwanted?.then(() => limit.abort());
        try {
          const { model, options: asked } = client(request, signal);
          const { maxOutputTokens } = request;
          const call = { ...asked, maxOutputTokens, abortSignal: signal, includeRawChunks: inspect !== undefined };
          return checked(await readReply(model, call, inspect?.(), options.onPiece));
        } catch (error) {
          throw modelFault(error, config, signal.aborted, timeoutMs);
        }
      });
    },
  };
}

/** The request in the words of provider packages. `input`: what the provider may be sent as a call's input. */
export function promptOf(request: ModelRequest, input: (input: unknown) => unknown): ReturnType<Client>["options"] {
  const tools = Object.entries(request.tools).map(
    ([name, spec]): Tool => ({ type: "function", name, description: spec.description, inputSchema: toolSchema(spec) }),
  );
  return {
    prompt: [{ role: "system", content: request.system }, ...request.messages.map((message) => toPrompt(message, input))],
    ...(tools.length > 0 ? { tools, toolChoice: { type: "auto" as const } } : {}),
  };
}

function toPrompt(message: ModelMessage, input: (input: unknown) => unknown): PromptMessage {
  switch (message.role) {
    case "user":
      return { role: "user", content: [{ type: "text", text: message.text }] };
    case "assistant":
      return {
        role: "assistant",
        content: [
          ...(message.text !== "" || message.calls.length === 0 ? [{ type: "text" as const, text: message.text }] : []),
          ...message.calls.map((call) => ({
            type: "tool-call" as const,
            toolCallId: call.callId,
            toolName: call.tool,
            input: input(call.input ?? {}),
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

async function readReply(
  model: StreamingModel,
  options: CallOptions,
  inspect: ((chunk: unknown) => void) | undefined,
  onPiece: Parameters<Model["call"]>[1]["onPiece"],
): Promise<ModelReply> {
  const { abortSignal } = options;
  // A provider that does not heed the signal must not hold the caller: whoever loses this race is left alone.
  const aborted = new Promise<never>((_, reject) => abortSignal?.addEventListener("abort", () => reject(abortSignal.reason)));
  const { stream } = await Promise.race([model.doStream(options), aborted]);
  const parts = stream.getReader();
  const reply: ModelReply = { text: "", calls: [], usage: null, finish: "other" };
  const order = new Map<string, { index: number; tool: string }>();
  let whole = false;
  let chars = 0;
  const grow = (by: number): void => {
    chars += by;
    if (chars > limits.maxReplyChars)
      throw new Fault("too_large", `The model's answer is longer than ${limits.maxReplyChars} characters; nothing of it was taken.`);
  };
  try {
    for (;;) {
      const { done, value } = await Promise.race([parts.read(), aborted]);
      if (done) break;
      const part: Part = value;
      switch (part.type) {
        case "text-delta":
          grow(part.delta.length);
          reply.text += part.delta;
          onPiece?.({ kind: "text", delta: part.delta });
          break;
        case "tool-input-start": {
          grow(callChars + part.id.length + part.toolName.length);
          order.set(part.id, { index: order.size, tool: nameOf(part.toolName) });
          break;
        }
        case "tool-input-delta": {
          grow(part.delta.length);
          const call = order.get(part.id);
          if (call) onPiece?.({ kind: "call", ...call, delta: part.delta });
          break;
        }
        case "tool-call":
          if (!order.has(part.toolCallId)) grow(callChars + part.toolCallId.length + part.toolName.length + part.input.length);
          reply.calls.push({ callId: part.toolCallId, tool: nameOf(part.toolName), input: readInput(part.input) });
          break;
        case "finish":
          // Without the provider's own word the answer ended because the connection did.
          whole = part.finishReason.raw !== undefined;
          reply.finish = finishOf(part.finishReason.unified);
          reply.usage = usageOf(part.usage);
          break;
        case "raw":
          inspect?.(part.rawValue);
          break;
        case "error":
          throw streamFault(part.error);
        default:
      }
    }
  } finally {
    // Ends the request of an answer that nobody will read.
    void parts.cancel().catch(() => undefined);
  }
  // Cut off within a sign, by its provider's own limit: half a sign is no text, and the next request with it would be refused.
  reply.text = reply.text.toWellFormed();
  if (!whole) throw new Fault("provider", "The model's answer broke off before its end; it is asked again.", { retry: "later" });
  return reply;
}

/** A call in a transcript beside its words, about: thousands of empty ones are long as well. */
const callChars = 40;

/** A name that no tool has is said back to the model, and providers refuse a request with one that none could have. */
const nameOf = (said: string): string => said.replace(/[^\w-]/g, "_").slice(0, 64) || "unknown";

/** No tool's input is as deep. What is far deeper can be read, and then not be written down again. */
const maxInputDepth = 64;

function isDeep(text: string): boolean {
  let depth = 0;
  for (const [sign] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (sign === "[" || sign === "{") depth += 1;
    else if (sign === "]" || sign === "}") depth -= 1;
    if (depth > maxInputDepth) return true;
  }
  return false;
}

/** Arguments as the model wrote them: parsed when they are JSON, else their text, which no schema takes. */
function readInput(text: string): unknown {
  if (text.trim() === "") return {};
  if (isDeep(text)) return text.toWellFormed();
  try {
    return JSON.parse(text, (key, value: unknown) => {
      if (key === "__proto__") throw new SyntaxError("no key of ours");
      return typeof value === "string" ? value.toWellFormed() : value;
    });
  } catch (error) {
    if (error instanceof SyntaxError) return text.toWellFormed();
    throw error;
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

function usageOf(usage: Extract<Part, { type: "finish" }>["usage"]): ModelUsage | null {
  const { inputTokens, outputTokens } = usage;
  if (inputTokens.total === undefined || outputTokens.total === undefined) return null;
  return { inputTokens: inputTokens.total, cachedTokens: inputTokens.cacheRead ?? 0, outputTokens: outputTokens.total };
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
