// What a model is asked and what it answers: the shape that transcripts keep. Providers are `src/llm`.
import type * as z from "zod/mini";

export type ModelMessage =
  | { role: "user"; text: string }
  | { role: "assistant"; text: string; calls: { callId: string; tool: string; input: unknown }[] }
  | { role: "tool"; callId: string; tool: string; output: string };

export type ToolSpecs = Record<string, { description: string; input: z.ZodMiniType }>;

export type ModelRequest = {
  system: string;
  messages: ModelMessage[];
  tools: ToolSpecs;
  maxOutputTokens: number;
};

export type ModelUsage = { inputTokens: number; cachedTokens: number; outputTokens: number };

export type ModelReply = {
  text: string;
  /** Input is unparsed: the caller checks it against the tool's schema before anything is done. */
  calls: { callId: string; tool: string; input: unknown }[];
  /** Null when the provider did not say. */
  usage: ModelUsage | null;
  finish: "stop" | "tools" | "length" | "other";
};

/** A model in a role. `call` throws `Fault` (`provider`, `timeout`, `rate_limited`, `unavailable`, `unauthorised`) with its retry hint. When `unwanted` settles, nobody waits for the answer any more. */
export interface Model {
  readonly name: string;
  call(request: ModelRequest, options: { timeoutMs: number; unwanted?: Promise<void> }): Promise<ModelReply>;
}
