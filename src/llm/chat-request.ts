// A request in the words of chat completion servers, as bytes. What a request begins with as an earlier one did is not written again.
import { toolSchema } from "../core/tool-schema.ts";
import type { ModelMessage, ModelRequest, ToolSpecs } from "../protocol/model.ts";

/** A request as written: `bytes` up to `start` stand before its messages, and `ends` has where each of these ends. */
type Written = { before: string; start: number; messages: readonly ModelMessage[]; ends: number[]; bytes: Uint8Array };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The JSON of a request, for those who answer in a server's place. */
export function bodyText(body: RequestInit["body"]): string {
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return decoder.decode(body);
  throw new TypeError("A request to a model is JSON, as text or as its bytes.");
}

/** The router has a conversation a lane, a worker one a profile. */
const maxConversations = 3;

export class ChatWriter {
  /** By the system prompt: a conversation only grows under its own. */
  readonly #written = new Map<string, Written>();

  /** A body: `before`, then `"messages"`, and `"tools"` where there are any, then `after`. */
  body(before: string, { system, messages, tools }: ModelRequest, after: string): Uint8Array<ArrayBuffer> {
    const known = this.#written.get(system);
    const written = known?.before === before ? known : begun(before, system);
    const differs = messages.findIndex((message, i) => message !== written.messages[i]);
    written.ends.length = differs < 0 ? messages.length : differs;
    for (const message of messages.slice(written.ends.length)) append(written, encoder.encode(`,${JSON.stringify(toWire(message))}`));
    written.messages = messages;
    this.#written.delete(system);
    this.#written.set(system, written);
    for (const [oldest] of this.#written) if (this.#written.size > maxConversations) this.#written.delete(oldest);
    const rest = encoder.encode(`]${toolFields(tools)}${after}`);
    const length = written.ends.at(-1) ?? written.start;
    // A copy: an earlier request may be on its way still.
    const whole = new Uint8Array(length + rest.length);
    whole.set(written.bytes.subarray(0, length));
    whole.set(rest, length);
    return whole;
  }
}

function begun(before: string, system: string): Written {
  const bytes = encoder.encode(`${before}"messages":[${JSON.stringify({ role: "system", content: system })}`);
  return { before, start: bytes.length, messages: [], ends: [], bytes };
}

function append(written: Written, more: Uint8Array): void {
  const from = written.ends.at(-1) ?? written.start;
  const to = from + more.length;
  if (to > written.bytes.length) {
    const larger = new Uint8Array(2 * to);
    larger.set(written.bytes.subarray(0, from));
    written.bytes = larger;
  }
  written.bytes.set(more, from);
  written.ends.push(to);
}

const toolTexts = new WeakMap<ToolSpecs[string], { name: string; text: string }>();

function toolFields(tools: ToolSpecs): string {
  const texts = Object.entries(tools).map(([name, spec]) => {
    const known = toolTexts.get(spec);
    if (known?.name === name) return known.text;
    const made = { name, description: spec.description, parameters: toolSchema(spec) };
    const text = JSON.stringify({ type: "function", function: made });
    toolTexts.set(spec, { name, text });
    return text;
  });
  return texts.length === 0 ? "" : `,"tools":[${texts.join()}],"tool_choice":"auto"`;
}

function toWire(message: ModelMessage): object {
  switch (message.role) {
    case "user":
      return { role: "user", content: message.text };
    case "assistant": {
      const calls = message.calls.map(({ callId, tool, input }) => ({
        id: callId,
        type: "function",
        function: { name: tool, arguments: JSON.stringify(input ?? {}) },
      }));
      // Beside calls, no words are null: some servers refuse an empty text.
      return calls.length === 0
        ? { role: "assistant", content: message.text }
        : { role: "assistant", content: message.text || null, tool_calls: calls };
    }
    case "tool":
      return { role: "tool", tool_call_id: message.callId, content: message.output };
  }
}
