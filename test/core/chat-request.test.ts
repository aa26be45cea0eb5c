import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ModelConfig } from "../../src/env.ts";
import { bodyText } from "../../src/llm/chat-request.ts";
import { promptOf } from "../../src/llm/one-step.ts";
import { openAiCompatible } from "../../src/llm/openai-compatible.ts";
import type { ModelMessage, ModelRequest } from "../../src/protocol/model.ts";
import { workerTools } from "../../src/protocol/worker-tools.ts";

const config: ModelConfig = {
  provider: "openai-compatible",
  baseUrl: "http://model.invalid/v1",
  apiKey: "",
  modelName: "m",
  timeoutMs: 1_000,
  price: null,
  problem: null,
};
const { note, report } = workerTools;
const request = (system: string, messages: ModelMessage[]): ModelRequest => ({
  system,
  messages,
  tools: { note, report },
  maxOutputTokens: 8_000,
});

/** Sends nothing and keeps what would have been. */
function recorder(): { bodies: string[]; answer: typeof fetch } {
  const bodies: string[] = [];
  const answer = async (_input: unknown, init?: RequestInit): Promise<Response> => {
    bodies.push(bodyText(init?.body));
    return new Response("{}", { status: 500 });
  };
  return { bodies, answer: answer as typeof fetch };
}

function isJson(value: string): boolean {
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}

const quiet = (error: unknown): string => String(error);

async function asTheClientWrites(asked: ModelRequest): Promise<string> {
  const { bodies, answer } = recorder();
  const provider = createOpenAICompatible({ name: "model", baseURL: config.baseUrl, includeUsage: true, fetch: answer });
  const { maxOutputTokens } = asked;
  const sent = provider.chatModel("m").doStream({ ...promptOf(asked, (input) => input), maxOutputTokens });
  await Promise.resolve(sent).catch(quiet);
  return bodies[0] ?? "";
}

const text = fc.string({ unit: "binary", maxLength: 30 });
/** As it came from the model: parsed, or its text where it is no JSON. The package takes a text that is JSON for arguments as they are. */
const input = fc.jsonValue({ noUnicodeString: false }).filter((value) => typeof value !== "string" || !isJson(value));
const message: fc.Arbitrary<ModelMessage> = fc.oneof(
  fc.record({ role: fc.constant("user" as const), text }),
  fc.record({
    role: fc.constant("assistant" as const),
    text,
    calls: fc.array(fc.record({ callId: text, tool: text, input }), { maxLength: 3 }),
  }),
  fc.record({ role: fc.constant("tool" as const), callId: text, tool: text, output: text }),
);

test("[L5] whatever is said: the bytes are those that the client package would have written", async () => {
  const { bodies, answer } = recorder();
  const model = openAiCompatible(config, answer);
  await fc.assert(
    fc.asyncProperty(text, fc.array(message, { maxLength: 6 }), async (system, messages) => {
      const asked = request(system, messages);
      await model.call(asked, { timeoutMs: 1_000 }).catch(quiet);
      expect(bodies.at(-1)).toBe(await asTheClientWrites(asked));
    }),
    { numRuns: 200 },
  );
});

test("[L5] whatever was asked before: a request is the same bytes as if it were the first", async () => {
  const { bodies, answer } = recorder();
  const model = openAiCompatible(config, answer);
  const systems = ["a", "b", "c", "d", "e"];
  /** Which conversation, how much of what it has is kept, and what is added. */
  const step = fc.record({ system: fc.constantFrom(...systems), keep: fc.nat({ max: 12 }), more: fc.array(message, { maxLength: 4 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), async (steps) => {
      const said = new Map<string, ModelMessage[]>();
      for (const { system, keep, more } of steps) {
        const messages = [...(said.get(system) ?? []).slice(0, keep), ...more];
        said.set(system, messages);
        await model.call(request(system, messages), { timeoutMs: 1_000 }).catch(quiet);
        const alone = recorder();
        await openAiCompatible(config, alone.answer)
          .call(request(system, structuredClone(messages)), { timeoutMs: 1_000 })
          .catch(quiet);
        expect(bodies.at(-1)).toBe(alone.bodies[0]);
      }
    }),
    { numRuns: 100 },
  );
});

test("[L5] a conversation that goes on is not written again", async () => {
  const { bodies, answer } = recorder();
  const model = openAiCompatible(config, answer);
  let written = 0;
  const watched = (words: string): ModelMessage => ({
    role: "user",
    get text() {
      written += 1;
      return words;
    },
  });
  const messages = Array.from({ length: 50 }, (_, i) => watched(`word ${i}`));
  for (let n = 1; n <= messages.length; n++) await model.call(request("system", messages.slice(0, n)), { timeoutMs: 1_000 }).catch(quiet);
  expect(written).toBe(messages.length);
  expect((JSON.parse(bodies.at(-1) ?? "{}") as { messages: unknown[] }).messages).toHaveLength(51);
});
