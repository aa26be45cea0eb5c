// Workers AI: the ordinary client over the binding instead of the network. Its own way of answering becomes chat completion events.
import { isRecord } from "../core/json.ts";
import type { AiBinding, ModelConfig } from "../env.ts";
import { messageOf } from "../protocol/fault.ts";
import type { Model } from "../protocol/model.ts";
import { completionEvents, eventStream } from "./chat-events.ts";
import { bodyText } from "./chat-request.ts";
import { openAiCompatible } from "./openai-compatible.ts";

export const workersAi = (config: ModelConfig, answer: typeof fetch = overBinding(config.binding)): Model =>
  openAiCompatible(config, answer);

const overBinding =
  (binding: AiBinding | undefined): typeof fetch =>
  async (_input, init) => {
    if (binding === undefined) throw new TypeError("Workers AI is asked through its binding.");
    const { model, stream_options: _, ...request } = JSON.parse(bodyText(init?.body)) as ChatRequest;
    const ids = `call_${request.messages.length}`;
    let answer: unknown;
    try {
      answer = await binding.run(model, { ...request, messages: request.messages.map(withContent) }, signalOf(init?.signal));
    } catch (error) {
      return refusal(error);
    }
    if (!(answer instanceof ReadableStream)) return eventStream(completionEvents(asCompletion(answer, ids)));
    const events = (answer as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).pipeThrough(asChunks(ids));
    return new Response(events.pipeThrough(new TextEncoderStream()), { headers: { "content-type": "text/event-stream" } });
  };

type ChatRequest = { model: string; stream_options?: unknown; messages: Record<string, unknown>[] } & Record<string, unknown>;
type RunOptions = NonNullable<Parameters<AiBinding["run"]>[2]>;

const signalOf = (signal: AbortSignal | null | undefined): RunOptions => (signal ? { signal } : {});

/** Its schemas want text where OpenAI's allow none. */
const withContent = (message: Record<string, unknown>): Record<string, unknown> =>
  message.content === null || message.content === undefined ? { ...message, content: "" } : message;

/** Its error codes that are worth telling apart, as the HTTP status that means the same; what is unknown may pass. */
const statusOfCode: Record<string, number> = {
  3003: 400,
  3006: 413,
  3007: 408,
  3008: 408,
  3023: 403,
  3030: 400,
  3036: 429,
  3039: 400,
  3040: 429,
  3041: 403,
  3042: 404,
  5004: 400,
  5005: 405,
  5007: 404,
  5016: 403,
  5018: 403,
  5019: 405,
};

function refusal(error: unknown): Response {
  if (error instanceof Error && error.name === "AbortError") throw error;
  const message = messageOf(error);
  const code = /\b([35]0\d\d)\b/.exec(message)?.[1] ?? "";
  return Response.json({ error: { message } }, { status: statusOfCode[code] ?? 503 });
}

/** Calls as its older models write them (`{name, arguments}`) or as OpenAI does. */
function wireCalls(calls: unknown, ids: string, from: number): Record<string, unknown>[] {
  return (Array.isArray(calls) ? calls.filter(isRecord) : []).map((call, i) => {
    const made = isRecord(call.function) ? call.function : call;
    const args = typeof made.arguments === "string" ? made.arguments : JSON.stringify(made.arguments ?? {});
    const id = typeof call.id === "string" && call.id !== "" ? call.id : `${ids}_${from + i}`;
    return { index: from + i, id, type: "function", function: { name: made.name, arguments: args } };
  });
}

function asCompletion(answer: unknown, ids: string): Parameters<typeof completionEvents>[0] {
  const said = isRecord(answer) ? answer : {};
  if (Array.isArray(said.choices) && isRecord(said.choices[0]) && isRecord(said.choices[0].message))
    return said as Parameters<typeof completionEvents>[0];
  const calls = wireCalls(said.tool_calls, ids, 0);
  const { response } = said;
  const content = response === undefined || response === null ? null : typeof response === "string" ? response : JSON.stringify(response);
  const message = { role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  return {
    choices: [{ message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }],
    ...(isRecord(said.usage) ? { usage: said.usage } : {}),
  };
}

/** Its stream, line by line: newer models write chat completion chunks, older ones `{response}`; only `[DONE]` says that an older one is whole. */
function asChunks(ids: string): TransformStream<string, string> {
  let rest = "";
  let calls = 0;
  let finished = false;
  const line = (text: string, say: (data: string) => void): void => {
    const data = /^data:\s?(.*)$/.exec(text.trimEnd())?.[1];
    if (data === undefined) return;
    if (data.trim() === "[DONE]") {
      if (!finished) say(JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: calls > 0 ? "tool_calls" : "stop" }] }));
      say("[DONE]");
      return;
    }
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    // What cannot be read goes on as it is: the client says so.
    if (!isRecord(chunk) || Array.isArray(chunk.choices) || "error" in chunk) {
      if (isRecord(chunk) && Array.isArray(chunk.choices))
        finished ||= chunk.choices.some((choice) => isRecord(choice) && typeof choice.finish_reason === "string");
      say(data);
      return;
    }
    const tool_calls = wireCalls(chunk.tool_calls, ids, calls);
    calls += tool_calls.length;
    const { response } = chunk;
    const content = response === undefined || response === null || response === "" ? {} : { content: String(response) };
    const delta = { ...content, ...(tool_calls.length > 0 ? { tool_calls } : {}) };
    const usage = isRecord(chunk.usage) ? { usage: chunk.usage } : {};
    say(JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...usage }));
  };
  return new TransformStream({
    transform(text, controller) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const each of lines) line(each, (data) => controller.enqueue(`data: ${data}\n\n`));
    },
    // A line without its end was cut off.
    flush: (controller) => {
      if (rest.trim() !== "") line(rest, (data) => controller.enqueue(`data: ${data}\n\n`));
    },
  });
}
