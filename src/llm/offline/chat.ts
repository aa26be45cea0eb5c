// The bytes of a chat completion, read and written. This is all that the planner sees.
import * as z from "zod/mini";
import { recordIn } from "../../core/json.ts";

export type ChatCall = { callId: string; tool: string; input: Record<string, unknown> };

export type ChatMessage =
  | { role: "system" | "user"; text: string }
  | { role: "assistant"; text: string; calls: ChatCall[] }
  | { role: "tool"; callId: string; output: string };

export type Chat = { model: string; messages: ChatMessage[]; tools: ReadonlySet<string>; bytes: number };

/** What a plan answers: words, calls, or both. */
export type Answer = { text?: string; calls?: { tool: string; input: Record<string, unknown> }[] };

const content = z.optional(z.nullable(z.union([z.string(), z.array(z.object({ type: z.string(), text: z.optional(z.string()) }))])));
const wireMessage = z.object({
  role: z.string(),
  content,
  tool_call_id: z.optional(z.string()),
  tool_calls: z.optional(z.array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }))),
});
const wireRequest = z.object({
  model: z.string(),
  messages: z.array(wireMessage),
  tools: z.optional(z.array(z.object({ function: z.object({ name: z.string() }) }))),
});

const textOf = (value: z.infer<typeof content>): string =>
  typeof value === "string" ? value : (value ?? []).map((part) => part.text ?? "").join("");

/** Reads a request; throws when it is none. */
export function readChat(body: string): Chat {
  const request = wireRequest.parse(JSON.parse(body));
  return {
    model: request.model,
    tools: new Set((request.tools ?? []).map((tool) => tool.function.name)),
    bytes: body.length,
    messages: request.messages.flatMap((message): ChatMessage[] => {
      const text = textOf(message.content);
      switch (message.role) {
        case "assistant":
          return [
            {
              role: "assistant",
              text,
              calls: (message.tool_calls ?? []).map((call) => ({
                callId: call.id,
                tool: call.function.name,
                // Arguments that were no JSON were refused by their caller; here it is a call without input.
                input: recordIn(call.function.arguments) ?? {},
              })),
            },
          ];
        case "tool":
          return [{ role: "tool", callId: message.tool_call_id ?? "", output: text }];
        case "user":
          return [{ role: "user", text }];
        default:
          return [{ role: "system", text }];
      }
    }),
  };
}

const charsPerToken = 4;

/** Writes the answer; call ids are unique in the conversation, and the same request gives the same bytes. */
export function writeAnswer(chat: Chat, answer: Answer): string {
  const calls = (answer.calls ?? []).map((call, i) => ({
    id: `call_${chat.messages.length}_${i}`,
    type: "function",
    function: { name: call.tool, arguments: JSON.stringify(call.input) },
  }));
  const message = { role: "assistant", content: answer.text ?? null, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  const prompt = Math.ceil(chat.bytes / charsPerToken);
  const completion = Math.ceil(JSON.stringify(message).length / charsPerToken);
  return JSON.stringify({
    id: `offline-${chat.messages.length}`,
    object: "chat.completion",
    created: 0,
    model: chat.model,
    choices: [{ index: 0, message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }],
    usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  });
}
