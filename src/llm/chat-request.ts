// A request in the words of chat completion servers. What a request begins with as an earlier one did is not written again.
import { toolSchema } from "../core/tool-schema.ts";
import type { ModelMessage, ModelRequest, ToolSpecs } from "../protocol/model.ts";

/** The messages of a request as written: `ends` has where each one ends in `text`. */
type Written = { messages: readonly ModelMessage[]; ends: readonly number[]; text: string };

/** The router has a conversation a lane, a worker one a profile. */
const maxConversations = 3;

export class ChatWriter {
  /** By the system prompt: a conversation only grows under its own. */
  readonly #written = new Map<string, Written>();

  /** The fields of a body that grow with a conversation: `"messages"`, and `"tools"` where there are any. */
  fields({ system, messages, tools }: ModelRequest): string {
    const before = this.#written.get(system);
    const start = JSON.stringify({ role: "system", content: system });
    const differs = messages.findIndex((message, i) => message !== before?.messages[i]);
    const same = differs < 0 ? messages.length : differs;
    const ends = before?.ends.slice(0, same) ?? [];
    const parts = [same === 0 ? start : (before?.text.slice(0, ends.at(-1)) ?? start)];
    let length = parts[0]?.length ?? 0;
    for (const message of messages.slice(same)) {
      const part = `,${JSON.stringify(toWire(message))}`;
      parts.push(part);
      length += part.length;
      ends.push(length);
    }
    const text = parts.join("");
    this.#written.delete(system);
    this.#written.set(system, { messages, ends, text });
    for (const [oldest] of this.#written) if (this.#written.size > maxConversations) this.#written.delete(oldest);
    return `"messages":[${text}]${toolFields(tools)}`;
  }
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
