// Any server that speaks OpenAI's chat completions: one request a step, tools without execution, the answer as a stream.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import * as z from "zod/mini";
import type { ModelConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import type { Model, ModelRequest } from "../protocol/model.ts";
import { completionEvents, eventStream, readCompletion } from "./chat-events.ts";
import { ChatWriter } from "./chat-request.ts";
import { oneStepModel } from "./one-step.ts";

/** A model behind `config.baseUrl`. `answer` replaces the network: that is how a model without a server gets the same request bytes. */
export function openAiCompatible(config: ModelConfig, answer: typeof fetch = fetch): Model {
  const writer = new ChatWriter();
  /** Each call by the one thing of it that the client hands on as it is. */
  const asked = new WeakMap<AbortSignal, ModelRequest>();
  const provider = createOpenAICompatible({
    name: "model",
    baseURL: config.baseUrl,
    includeUsage: true,
    ...(config.apiKey === "" ? {} : { apiKey: config.apiKey }),
    fetch: async (input, init) => {
      const request = init?.signal ? asked.get(init.signal) : undefined;
      if (request === undefined) throw new TypeError("The client made a request that nobody asked for.");
      return asEvents(await answer(input, { ...init, body: withMessages(init?.body, request, writer) }));
    },
    transformRequestBody: (body) => withOutputLimit(body, config.baseUrl),
  });
  const model = provider.chatModel(config.modelName);
  const client = (request: ModelRequest, signal: AbortSignal) => {
    asked.set(signal, request);
    return { model, options: { prompt: [] } };
  };
  return oneStepModel(client, config, callIds);
}

const noMessages = '"messages":[]';

/** The client writes the body without what grows: that is written already. */
function withMessages(body: unknown, request: ModelRequest, writer: ChatWriter): Uint8Array<ArrayBuffer> {
  const at = typeof body === "string" ? body.indexOf(noMessages) : -1;
  if (typeof body !== "string" || at < 0) throw new TypeError("The client wrote another request than it was asked for.");
  return writer.body(body.slice(0, at), request, body.slice(at + noMessages.length));
}

/** OpenAI's own newer models refuse `max_tokens`; its older ones and other servers know only that. */
function withOutputLimit(body: Record<string, unknown>, baseUrl: string): Record<string, unknown> {
  if (new URL(baseUrl).hostname !== "api.openai.com") return body;
  const { max_tokens, ...rest } = body;
  return { ...rest, max_completion_tokens: max_tokens };
}

/** Some servers cannot stream and answer whole: then that is the one piece of the stream. What is no completion stays unreadable. */
async function asEvents(response: Response): Promise<Response> {
  if (!response.ok || !/\bjson\b/i.test(response.headers.get("content-type") ?? "")) return response;
  const completion = readCompletion(await response.text());
  return eventStream(completion === null ? "data: this is no chat completion\n\n" : completionEvents(completion));
}

const callDeltas = z.object({
  choices: z.array(
    z.object({
      delta: z.object({
        tool_calls: z.array(z.object({ index: z.optional(z.number()), id: z.string(), function: z.object({ name: z.string() }) })),
      }),
    }),
  ),
});

/** Most pieces of a stream are words: they are not looked at further. */
const namesCalls = (chunk: unknown): boolean => {
  const choices = (chunk as { choices?: unknown } | null)?.choices;
  return Array.isArray(choices) && choices.some((choice: { delta?: { tool_calls?: unknown } } | null) => choice?.delta?.tool_calls != null);
};

/** The client below makes ids of its own where two calls share one. Which words belong to which call is then a guess, so there is no reply. */
function callIds(): (chunk: unknown) => void {
  const seen = new Map<string, number | undefined>();
  return (chunk) => {
    if (!namesCalls(chunk)) return;
    const parsed = callDeltas.safeParse(chunk);
    for (const call of parsed.success ? parsed.data.choices.flatMap((choice) => choice.delta.tool_calls) : []) {
      if (call.id !== "" && seen.has(call.id) && seen.get(call.id) !== call.index)
        throw new Fault("provider", "The model gave two of its tool calls the same id; it is asked again.", { retry: "later" });
      seen.set(call.id, call.index);
    }
  };
}
