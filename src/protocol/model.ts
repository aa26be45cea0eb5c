// What a model is asked and what it answers: the shape that transcripts keep. Providers are `src/llm`.
import type * as z from "zod/mini";

/** `later`: what stands for the text or output in every later turn, where it is not to be carried into others. */
export type ModelMessage =
  | { role: "user"; text: string; later?: string }
  | { role: "assistant"; text: string; calls: { callId: string; tool: string; input: unknown }[]; later?: string }
  | { role: "tool"; callId: string; tool: string; output: string; later?: string };

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

/** A piece of an answer while it is written. It may never be finished: it is only for showing, nothing is done with it. */
export type ModelPiece =
  | { kind: "text"; delta: string }
  /** `index` counts the calls of this answer from 0, as `ModelReply.calls` will have them. */
  | { kind: "call"; index: number; tool: string; delta: string };

/** A model in a role. `call` throws `Fault` (`provider`, `timeout`, `rate_limited`, `unavailable`, `unauthorised`, `not_found`) with its retry hint. */
export interface Model {
  readonly name: string;
  /** One request; the reply is whole or there is none. `onPiece` sees it being written; when `unwanted` settles, nobody waits for it any more. */
  call(
    request: ModelRequest,
    options: { timeoutMs: number; onPiece?: (piece: ModelPiece) => void; unwanted?: Promise<void> },
  ): Promise<ModelReply>;
}
