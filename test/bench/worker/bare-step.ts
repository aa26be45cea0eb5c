// The reference of a turn: one bare `ai` step in a plain object. It keeps its messages as rows, and nothing else: no log, no deadlines,
// no ledger, no rules.
import { DurableObject } from "cloudflare:workers";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { type JSONSchema7, jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import type { BareRpc, BareTurns } from "./bare-turns.ts";

export class Bare extends DurableObject implements BareRpc {
  readonly #messages: ModelMessage[] = [];

  constructor(ctx: DurableObjectState, env: object) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS message (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)");
  }

  async turns({ baseUrl, model: name, system, tools: specs, text, turns }: BareTurns): Promise<void> {
    const model = createOpenAICompatible({ name: "model", baseURL: baseUrl, apiKey: "bench", includeUsage: true }).chatModel(name);
    const tools: ToolSet = {};
    for (const { name: toolName, description, schema } of specs)
      tools[toolName] = tool({
        description,
        inputSchema: jsonSchema<object>(schema as JSONSchema7),
        execute: async () => ({ done: true }),
      });
    for (let turn = 0; turn < turns; turn++) {
      this.#keep([{ role: "user", content: text }]);
      const step = streamText({ model, instructions: system, messages: this.#messages, tools, maxOutputTokens: 8_000 });
      await step.consumeStream();
      this.#keep(await step.responseMessages);
    }
  }

  /** What a call from outside costs, with as much in it. */
  async nothing(_input: unknown): Promise<void> {}

  #keep(messages: readonly ModelMessage[]): void {
    this.#messages.push(...messages);
    this.ctx.storage.transactionSync(() => {
      for (const message of messages) this.ctx.storage.sql.exec("INSERT INTO message (body) VALUES (?)", JSON.stringify(message));
    });
  }
}

export default { fetch: () => new Response("ok") };
