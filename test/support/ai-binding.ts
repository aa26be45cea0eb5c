// A stand-in of the Workers AI binding over the scripted model server. It answers in either way of the real one: newer models
// stream chat completion chunks, older ones `{response}` and whole calls.
import type { AiBinding } from "../../src/env.ts";

/** Codes of the real binding, by the status that the script asks for. */
const codes: Record<number, string> = {
  400: "5004: Invalid data",
  401: "5018: Account not allowed",
  404: "5007: No such model",
  429: "3040: Capacity exceeded",
};

type Chunk = {
  error?: unknown;
  choices?: { delta?: { content?: string; tool_calls?: { index: number; function: { name?: string; arguments: string } }[] } }[];
  usage?: unknown;
};

export function aiBinding(wire: "chat" | "native"): AiBinding {
  return {
    async run(model, input, options) {
      const body = JSON.stringify({ ...input, model, stream_options: { include_usage: true } });
      const response = await fetch("http://model.test/v1/chat/completions", { method: "POST", body, ...options });
      if (!response.ok) {
        await response.body?.cancel();
        throw new Error(codes[response.status] ?? "3043: Internal server error");
      }
      if (response.body === null || !response.headers.get("content-type")?.includes("event-stream")) return response.json();
      return wire === "chat" ? response.body : asNative(response.body);
    },
  };
}

function asNative(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const calls: { name: string; arguments: string }[] = [];
  let rest = "";
  const native = new TransformStream<string, string>({
    transform(text, controller) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const data = /^data: (.*)$/.exec(line)?.[1];
        if (data === undefined) continue;
        if (data === "[DONE]") {
          if (calls.length > 0)
            controller.enqueue(event({ tool_calls: calls.map((call) => ({ ...call, arguments: readable(call.arguments) })) }));
          controller.enqueue("data: [DONE]\n\n");
          continue;
        }
        const chunk = JSON.parse(data) as Chunk;
        if (chunk.error !== undefined) controller.enqueue(event({ error: chunk.error }));
        const delta = chunk.choices?.[0]?.delta;
        for (const part of delta?.tool_calls ?? []) {
          const call = calls[part.index];
          if (call) call.arguments += part.function.arguments;
          else calls[part.index] = { name: part.function.name ?? "", arguments: part.function.arguments };
        }
        if (delta?.content) controller.enqueue(event({ response: delta.content, p: "abcdef" }));
        if (chunk.usage) controller.enqueue(event({ response: "", usage: chunk.usage }));
      }
    },
  });
  return (body as ReadableStream<BufferSource>)
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(native)
    .pipeThrough(new TextEncoderStream());
}

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

function readable(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
