// One contract for every model provider: a valid reply, unique call ids, usage, typed faults. The request's bytes are part of it.
import { describe, expect, it } from "vitest";
import { renderMessage } from "../../src/core/context.ts";
import type { ModelConfig } from "../../src/env.ts";
import { createModel } from "../../src/llm/registry.ts";
import { detailOf, Fault, type FaultKind, type Retry } from "../../src/protocol/fault.ts";
import type { ModelMessage, ModelPiece, ModelRequest } from "../../src/protocol/model.ts";
import { routerTools } from "../../src/protocol/router-tools.ts";
import { workerTools } from "../../src/protocol/worker-tools.ts";
import { aiBinding } from "../support/ai-binding.ts";
import { faultOf } from "./fault-of.ts";
import { scriptModel } from "./router-lab.ts";

type Reply = Record<string, unknown>;

let count = 0;
const unique = (): string => `contract-${Date.now().toString(36)}-${++count}`;

const requestsOf = async (token: string): Promise<string[]> =>
  (await (await fetch(`http://model.test/control/requests?contains=${token}`)).json()) as string[];

const config = (over: Partial<ModelConfig> = {}): ModelConfig => ({
  provider: "openai-compatible",
  baseUrl: "http://model.test/v1",
  apiKey: "secret-key-of-the-test",
  modelName: "scripted",
  timeoutMs: 20_000,
  price: null,
  problem: null,
  ...over,
});
const settings: Record<string, ModelConfig> = {
  "openai-compatible": config(),
  anthropic: config({ provider: "anthropic" }),
  "workers-ai": config({ provider: "workers-ai", baseUrl: "http://workers-ai.invalid/v1", apiKey: "", binding: aiBinding("chat") }),
  "workers-ai, older model": config({
    provider: "workers-ai",
    baseUrl: "http://workers-ai.invalid/v1",
    apiKey: "",
    binding: aiBinding("native"),
  }),
};
const offline = config({ provider: "offline", baseUrl: "http://offline.invalid/v1", apiKey: "", modelName: "offline" });

const turn = (text: string): ModelMessage => ({
  role: "user",
  text: renderMessage({ turn: 1, lane: "team" }, [
    { item: "tasks", open: [], recent: [] },
    { item: "machines", list: [{ id: "ep_a", name: "studio", online: true, workspaces: ["main"] }] },
    {
      item: "trigger",
      id: "trg_aaa-bbb",
      thread: "thr_aaa",
      source: "web",
      place: "widget",
      title: "Talk",
      kind: "message",
      from: { role: "member", name: "member" },
      verdict: "request",
      addressed: true,
      text,
    },
  ]),
});

const request = (text: string, over: Partial<ModelRequest> = {}): ModelRequest => ({
  system: "You are the router.",
  messages: [turn(text)],
  tools: routerTools,
  maxOutputTokens: 500,
  ...over,
});

const call = (modelConfig: ModelConfig, asked: ModelRequest, timeoutMs = 10_000) => createModel(modelConfig).call(asked, { timeoutMs });

const goal = (asked: string): ModelMessage => ({
  role: "user",
  text: renderMessage({ step: 1, of: 15 }, [
    {
      item: "goal",
      task: "tsk_a",
      goal: "Run the tests.",
      asked: { from: { role: "member", name: "member" }, trigger: "trg_aaa-bbb", text: asked },
      machine: { id: "ep_a", name: "studio", workspaces: ["main"] },
      authority: "member",
      tainted: false,
      modelCalls: 15,
    },
  ]),
});

describe.each([...Object.keys(settings), "offline"])("Provider %s", (provider) => {
  const made = settings[provider] ?? offline;
  const ready = (token: string, replies: Reply[]): Promise<void> =>
    provider === "offline" ? Promise.resolve() : scriptModel([token], replies);

  it("answers with calls whose ids are unique and whose input fits the tools' schemas", async () => {
    const token = unique();
    await ready(token, [
      {
        calls: [
          { tool: "dispatch", input: { settles: ["$trg"], title: "Run the tests", goal: "g" } },
          { tool: "record", input: { settles: ["$trg"], reason: "r" } },
        ],
      },
    ]);
    const reply = await call(made, request(`run the tests ${token}`));
    expect(reply.calls.length).toBeGreaterThan(0);
    expect(new Set(reply.calls.map((each) => each.callId)).size).toBe(reply.calls.length);
    for (const each of reply.calls) {
      const tool = routerTools[each.tool as keyof typeof routerTools];
      expect(tool.input.safeParse(each.input).success).toBe(true);
      expect(each.input).toMatchObject({ settles: ["trg_aaa-bbb"] });
    }
    expect(reply.finish).toBe("tools");
  });

  it("counts what it used", async () => {
    const token = unique();
    await ready(token, [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: "hello" } }] }]);
    const { usage } = await call(made, request(`hello ${token}`));
    expect(usage?.inputTokens).toBeGreaterThan(0);
    expect(usage?.outputTokens).toBeGreaterThan(0);
    expect(usage?.cachedTokens).toBeGreaterThanOrEqual(0);
  });

  it("answers a transcript with calls and results, and with other call ids than those before", async () => {
    const token = unique();
    await ready(token, [{ calls: [{ tool: "report", input: { kind: "done", text: "ok", confidence: 1 } }] }]);
    const messages: ModelMessage[] = [
      goal(`run the tests ${token}`),
      { role: "assistant", text: "", calls: [{ callId: "call_2_0", tool: "list_files", input: { depth: 1 } }] },
      { role: "tool", callId: "call_2_0", tool: "list_files", output: '{"started":"cmd_a-b"}' },
      {
        role: "user",
        text: renderMessage({ step: 2, of: 15 }, [
          { item: "result", command: "cmd_a-b", outcome: "exited", exit: 0, ms: 1, bytes: 8, output: "(empty)\n" },
        ]),
      },
    ];
    const reply = await call(made, request("", { messages, tools: workerTools }));
    expect(reply.calls).toHaveLength(1);
    expect(reply.calls[0]?.callId).not.toBe("call_2_0");
    expect(workerTools[reply.calls[0]?.tool as keyof typeof workerTools].input.safeParse(reply.calls[0]?.input).success).toBe(true);
  });

  it("is seen while it writes: the pieces add up to the reply, and the reply does not depend on who looks", async () => {
    const token = unique();
    const answer = {
      text: "Looking into it.",
      calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Hello, what should be done? 🎉" } }],
    };
    await ready(token, [
      { ...answer, pieceChars: 7 },
      { ...answer, pieceChars: 7 },
    ]);
    const pieces: ModelPiece[] = [];
    const asked = request(`hello ${token}`);
    const reply = await createModel(made).call(asked, { timeoutMs: 10_000, onPiece: (piece) => pieces.push(piece) });
    expect(pieces.flatMap((piece) => (piece.kind === "text" ? [piece.delta] : [])).join("")).toBe(reply.text);
    reply.calls.forEach((each, index) => {
      const written = pieces.flatMap((piece) => (piece.kind === "call" && piece.index === index ? [piece] : []));
      expect(new Set(written.map((piece) => piece.tool))).toEqual(new Set([each.tool]));
      expect(JSON.parse(written.map((piece) => piece.delta).join(""))).toEqual(each.input);
    });
    expect(pieces.length).toBeGreaterThan(2);
    const unseen = await call(made, asked);
    expect({ text: unseen.text, inputs: unseen.calls.map((each) => each.input) }).toEqual({
      text: reply.text,
      inputs: reply.calls.map((each) => each.input),
    });
  });

  it("a setting that cannot work fails at once, with the sentence that says so", async () => {
    const fault = await faultOf(call({ ...made, problem: "MODEL_NAME is missing." }, request("hello")));
    expect({ kind: fault.kind, message: fault.message, detail: fault.detail, retry: fault.retry }).toEqual({
      kind: "bad_input",
      message: "The model is not set up yet.",
      detail: "MODEL_NAME is missing.",
      retry: "never",
    });
  });

  it("gives the same answer to the same request", async () => {
    const token = unique();
    const same = { calls: [{ tool: "reply", input: { settles: ["$trg"], text: "hello" } }] };
    await ready(token, [same, same]);
    const [first, second] = [await call(made, request(`hello ${token}`)), await call(made, request(`hello ${token}`))];
    const shape = (reply: typeof first) => ({
      text: reply.text,
      calls: reply.calls.map(({ tool, input }) => ({ tool, input })),
      finish: reply.finish,
    });
    expect(shape(second)).toEqual(shape(first));
  });
});

describe.each(Object.keys(settings))("Faults of the provider %s", (provider) => {
  const made = settings[provider] ?? config();
  const binding = made.provider === "workers-ai";

  it("[L8] what a request could not be made of again is none of the reply: half a sign, a name that no tool could have", async () => {
    const token = unique();
    await scriptModel(
      [token],
      [
        {
          text: "half \ud83c",
          calls: [
            { tool: "multi_tool_use.parallel", input: {} },
            { tool: "record", rawInput: '{"settles":["$trg"],"reason":"half \\ud83c"}' },
            { tool: `a name ${"n".repeat(300)}`, input: {} },
          ],
        },
      ],
    );
    const { text, calls } = await call(made, request(token));
    expect(text).toBe("half \ufffd");
    expect(calls[1]?.input).toMatchObject({ reason: "half \ufffd" });
    expect(calls.map(({ tool }) => tool)).toEqual(["multi_tool_use_parallel", "record", `a_name_${"n".repeat(57)}`]);
  });

  it.each([
    ["five thousand calls", Array.from({ length: 5_000 }, () => ({ tool: "record", input: {} }))],
    ["a call whose name is a book", [{ tool: "n".repeat(200_000), input: {} }]],
  ])("[L8] %s are more than one answer, however little each says", async (_name, calls) => {
    const token = unique();
    await scriptModel([token], [{ calls }]);
    expect(await faultOf(call(made, request(token)))).toMatchObject({ kind: "too_large" });
  });

  it.each<[fault: Reply, kind: FaultKind, retry: Retry, message: RegExp]>([
    [{ fault: "429", retryAfter: 7 }, "rate_limited", "later", /slow down/],
    [{ fault: "500" }, "unavailable", "later", /HTTP 50[03]/],
    [{ fault: "401" }, "unauthorised", "never", /MODEL_API_KEY is refused by model\.test|does not let this account/],
    [{ fault: "400" }, "provider", "never", /refused the request \(HTTP 400\)/],
    [{ fault: "404" }, "not_found", "never", /MODEL_NAME "scripted" is unknown/],
    [{ fault: "garbage" }, "provider", "later", /cannot be read|broke off|empty answer/],
    [{ fault: "no_choices" }, "provider", "later", /cannot be read|broke off|empty answer/],
    [{ fault: "duplicate_ids" }, "provider", "later", /same id/],
    [{}, "provider", "later", /empty answer/],
  ])("%j becomes %s, retry %s", async (reply, kind, retry, message) => {
    // Older models of Workers AI give their calls no ids.
    if (reply.fault === "duplicate_ids" && provider === "workers-ai, older model") return;
    if (reply.fault === "garbage" && binding) return;
    const token = unique();
    await scriptModel([token], [reply]);
    const fault = await faultOf(call(made, request(token)));
    expect({ kind: fault.kind, retry: fault.retry }).toEqual({ kind, retry });
    expect(detailOf(fault)).toMatch(message);
    // Operators read neither the key nor the address beyond its host; people read no host, no setting and no word of the provider.
    expect(detailOf(fault)).not.toMatch(/secret-key|model\.test\//);
    expect(fault.message).toMatch(/^The model(?:'s)? [a-z ;]+\.$/);
    expect(fault.message).not.toContain("model.test");
    expect(fault.retryAfterMs).toBe(reply.fault === "429" && !binding ? 7000 : undefined);
    // One call is one request: retrying is the caller's decision.
    expect(await requestsOf(token)).toHaveLength(1);
  });

  it.each(
    (["429", "500", "hang", "garbage", "cut", "no_choices"] as const).flatMap((fault) =>
      (["first", "middle", "last"] as const).map((at) => [fault, at] as const),
    ),
  )(
    "[R21] %s at the %s event is one typed fault or, when the end was said already, the whole reply; never a part of it",
    async (fault, at) => {
      if (fault === "garbage" && provider === "workers-ai, older model") return;
      const answer = {
        text: "I look at it.",
        calls: [
          { tool: "dispatch", input: { settles: ["$trg"], title: "Run the tests", goal: "all of them" } },
          { tool: "reply", input: { settles: ["$trg"], text: "On it." } },
        ],
      };
      const token = unique();
      await scriptModel([token], [answer, { ...answer, fault, at }]);
      const whole = await call(made, request(token));
      const ended = await call(made, request(token), fault === "hang" ? 300 : 10_000).then(
        (reply) => ({ reply }),
        (thrown: unknown) => ({ thrown }),
      );
      if ("thrown" in ended) {
        const error = await faultOf(Promise.reject(ended.thrown));
        expect(["provider", "unavailable", "rate_limited", "timeout"]).toContain(error.kind);
        expect(error.retry).toBe("later");
        if (fault === "hang") expect(error.kind).toBe("timeout");
        if (fault === "429") expect(error.kind).toBe("rate_limited");
      } else {
        expect(at).toBe("last");
        expect(ended.reply.calls.map(({ tool, input }) => ({ tool, input }))).toEqual(
          whole.calls.map(({ tool, input }) => ({ tool, input })),
        );
      }
      expect(await requestsOf(token)).toHaveLength(2);
    },
  );

  it("a body that is cut off is asked for again later", async () => {
    const token = unique();
    await scriptModel([token], [{ fault: "cut", text: "a long answer that is cut in the middle of it" }]);
    const fault = await faultOf(call(made, request(token)));
    expect(["provider", "unavailable"]).toContain(fault.kind);
    expect(fault.retry).toBe("later");
  });

  it("a server that hangs is given up after the time of the call, or of the settings if that is shorter", async () => {
    for (const [timeoutMs, ofSettings] of [
      [150, 20_000],
      [20_000, 150],
    ] as const) {
      const token = unique();
      await scriptModel([token], [{ fault: "hang" }]);
      const started = Date.now();
      const fault = await faultOf(call({ ...made, timeoutMs: ofSettings }, request(token), timeoutMs));
      expect({ kind: fault.kind, retry: fault.retry }).toEqual({ kind: "timeout", retry: "later" });
      expect(Date.now() - started).toBeLessThan(5_000);
    }
  });

  it("cached tokens are told", async () => {
    const token = unique();
    await scriptModel([token], [{ text: "hello" }]);
    expect((await call(made, request(token))).usage).toEqual({ inputTokens: 100, cachedTokens: 60, outputTokens: 20 });
  });
});

describe("[L1] [R21] A stream that is cut at any of its bytes", () => {
  const fixture = async (path: string, token: string): Promise<Uint8Array> => {
    await scriptModel(
      [token],
      [
        {
          text: "Grüße 🎉",
          calls: [
            { tool: "reply", input: { settles: ["trg_a"], text: "Done – «ja» 🎉" } },
            { tool: "record", input: { settles: ["trg_b"], reason: "kept" } },
          ],
          pieceChars: 9,
        },
      ],
    );
    const body = JSON.stringify({ stream: true, stream_options: { include_usage: true }, token });
    return new Uint8Array(await (await fetch(`http://model.test/v1${path}`, { method: "POST", body })).arrayBuffer());
  };
  const body = (bytes: Uint8Array, broken: boolean): ReadableStream<Uint8Array> =>
    new ReadableStream({
      pull(controller) {
        if (bytes.length > 0) {
          controller.enqueue(bytes);
          bytes = new Uint8Array();
        } else if (broken) controller.error(new Error("connection lost"));
        else controller.close();
      },
    });

  it.each([
    ["openai-compatible", "/chat/completions", 'finish_reason":"tool_calls'],
    ["anthropic", "/messages", 'stop_reason":"tool_use'],
  ])(
    "%s: nothing before the provider's own word that it is finished is taken as a reply",
    async (provider, path, lastWord) => {
      const made = settings[provider] ?? config();
      const token = unique();
      const bytes = await fixture(path, token);
      const saidAt = new TextEncoder().encode(new TextDecoder().decode(bytes).split(lastWord)[0]).length + lastWord.length;
      expect(saidAt).toBeLessThan(bytes.length);
      const answerWith = (piece: Uint8Array, broken: boolean) =>
        createModel(made, async () => new Response(body(piece, broken), { headers: { "content-type": "text/event-stream" } }))
          .call(request(token), { timeoutMs: 5_000 })
          .then(
            (reply) => ({ reply }),
            (thrown: unknown) => ({ thrown }),
          );
      const whole = await answerWith(bytes, false);
      if (!("reply" in whole)) throw new Error(String(whole.thrown));
      expect(whole.reply.calls).toHaveLength(2);
      for (let end = 0; end < bytes.length; end++)
        for (const broken of [false, true]) {
          const got = await answerWith(bytes.slice(0, end), broken);
          if ("reply" in got) {
            expect(end).toBeGreaterThan(saidAt);
            expect(broken).toBe(false);
            expect({ ...got.reply, usage: null }).toEqual({ ...whole.reply, usage: null });
            continue;
          }
          if (!(got.thrown instanceof Fault)) throw new Error(`byte ${end}: ${String(got.thrown)}`);
          expect([end, got.thrown.retry, ["provider", "unavailable"].includes(got.thrown.kind)]).toEqual([end, "later", true]);
        }
    },
    120_000,
  );
});

describe("Faults of a server", () => {
  it("an address where nobody answers is unavailable, not an error of ours", async () => {
    const fault = await faultOf(call(config({ baseUrl: "http://nobody.test/v1" }), request("hello")));
    expect(["unavailable"]).toContain(fault.kind);
    expect(fault.retry).toBe("later");
  });

  it("usage that the server does not tell is null, not zero", async () => {
    const token = unique();
    await scriptModel([token], [{ text: "hello", usage: null }]);
    expect((await call(config(), request(token))).usage).toBeNull();
  });

  it("a server that cannot stream and answers whole is understood as well", async () => {
    const token = unique();
    const answer = { text: "hello", calls: [{ tool: "record", input: { settles: ["trg_a"], reason: "r" } }] };
    await scriptModel(
      [token],
      [
        { ...answer, whole: true },
        { ...answer, whole: true, fault: "cut" },
      ],
    );
    const pieces: ModelPiece[] = [];
    const reply = await createModel(config()).call(request(token), { timeoutMs: 5_000, onPiece: (piece) => pieces.push(piece) });
    expect(reply).toMatchObject({ text: "hello", calls: [{ tool: "record", input: answer.calls[0]?.input }], finish: "tools" });
    expect(reply.usage).toEqual({ inputTokens: 100, cachedTokens: 60, outputTokens: 20 });
    expect(pieces.map((piece) => piece.kind)).toEqual(["text", "call"]);
    const fault = await faultOf(call(config(), request(token)));
    expect(fault.retry).toBe("later");
  });

  it("arguments that are no JSON, do not fit, or name no tool come back as they are, for the caller to refuse", async () => {
    const token = unique();
    await scriptModel(
      [token],
      [
        {
          calls: [
            { tool: "dispatch", rawInput: '{"settles": ["trg_a' },
            { tool: "record", input: { settles: "not a list" } },
            { tool: "launch_rocket", input: { at: 1 } },
            { tool: "record", rawInput: '{"__proto__": {"polluted": true}}' },
          ],
        },
      ],
    );
    const { calls } = await call(config(), request(token));
    expect(calls.map(({ tool, input }) => ({ tool, input }))).toEqual([
      { tool: "dispatch", input: '{"settles": ["trg_a' },
      { tool: "record", input: { settles: "not a list" } },
      { tool: "launch_rocket", input: { at: 1 } },
      { tool: "record", input: '{"__proto__": {"polluted": true}}' },
    ]);
  });
});

describe("Arguments that are nested without end", () => {
  it.each([
    ["lists", "[", "]"],
    ["objects", '{"a":', "}"],
  ])("[L7] %s are words that fit no tool, and can be kept; a bracket inside of words is none", async (_name, open, close) => {
    const token = unique();
    const deep = `{"settles":${open.repeat(15_000)}1${close.repeat(15_000)}}`;
    const words = { settles: ["trg_a-b"], reason: `\\"${open.repeat(500)}` };
    await scriptModel(
      [token],
      [
        {
          calls: [
            { tool: "record", rawInput: deep },
            { tool: "record", input: words },
          ],
        },
      ],
    );
    const { calls } = await call(config(), request(token));
    expect(calls.map(({ input }) => input)).toEqual([deep, words]);
    expect(JSON.stringify(calls).length).toBeGreaterThan(deep.length);
  });
});

describe("The request", () => {
  it("has the system prompt, every message in its role, calls with their results, and the tools as JSON schemas", async () => {
    const token = unique();
    await scriptModel([token], [{ text: "ok" }]);
    await call(
      config(),
      request("", {
        system: "You are a worker.",
        messages: [
          { role: "user", text: `first ${token}` },
          {
            role: "assistant",
            text: "",
            calls: [
              { callId: "c1", tool: "run_command", input: { script: "ls" } },
              { callId: "c2", tool: "wait", input: "{broken" },
            ],
          },
          { role: "tool", callId: "c1", tool: "run_command", output: '{"started":"cmd_a-b"}' },
          { role: "tool", callId: "c2", tool: "wait", output: '{"error":"no"}' },
          { role: "assistant", text: "(nothing)", calls: [] },
          { role: "user", text: "second" },
        ],
        tools: { run_command: workerTools.run_command, report: workerTools.report },
      }),
    );
    const [body = "{}"] = await requestsOf(token);
    expect(JSON.parse(body)).toEqual({
      model: "scripted",
      max_tokens: 500,
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "You are a worker." },
        { role: "user", content: `first ${token}` },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "c1", type: "function", function: { name: "run_command", arguments: '{"script":"ls"}' } },
            { id: "c2", type: "function", function: { name: "wait", arguments: '"{broken"' } },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: '{"started":"cmd_a-b"}' },
        { role: "tool", tool_call_id: "c2", content: '{"error":"no"}' },
        { role: "assistant", content: "(nothing)" },
        { role: "user", content: "second" },
      ],
      tools: [
        {
          type: "function",
          function: {
            name: "run_command",
            description: workerTools.run_command.description,
            parameters: {
              $schema: "http://json-schema.org/draft-07/schema#",
              type: "object",
              properties: {
                script: { type: "string", minLength: 1, maxLength: 32_000 },
                workspace: { type: "string", maxLength: 100 },
                cwd: { type: "string", minLength: 1, maxLength: 4096 },
                timeoutSeconds: { type: "number", minimum: 1 },
              },
              required: ["script"],
            },
          },
        },
        {
          type: "function",
          function: {
            name: "report",
            description: workerTools.report.description,
            parameters: {
              $schema: "http://json-schema.org/draft-07/schema#",
              type: "object",
              properties: {
                kind: { type: "string", enum: ["progress", "answer", "question", "blocked", "done", "failed"] },
                text: { type: "string", minLength: 1, maxLength: 20_000 },
                confidence: { type: "number", minimum: 0, maximum: 1 },
                straightforward: { type: "boolean" },
              },
              required: ["kind", "text"],
            },
          },
        },
      ],
      tool_choice: "auto",
    });
  });

  it("starts with the same bytes when the transcript grows: providers can cache it", async () => {
    const token = unique();
    await scriptModel([token], [{ text: "one" }, { text: "two" }]);
    const messages: ModelMessage[] = [{ role: "user", text: token }];
    await call(config(), request("", { messages }));
    await call(
      config(),
      request("", { messages: [...messages, { role: "assistant", text: "one", calls: [] }, { role: "user", text: "more" }] }),
    );
    const [first = "", second = ""] = await requestsOf(token);
    const shared = first.slice(0, first.indexOf(token) + token.length);
    expect(second.startsWith(shared)).toBe(true);
  });
});

describe("A request to Anthropic", () => {
  it("marks the constant head and the end of the transcript for the prompt cache, and sends no input that is not an object", async () => {
    const token = unique();
    await scriptModel([token], [{ text: "ok" }]);
    const messages: ModelMessage[] = [
      { role: "user", text: token },
      { role: "assistant", text: "", calls: [{ callId: "c1", tool: "recall", input: "{broken" }] },
      { role: "tool", callId: "c1", tool: "recall", output: '{"refused":"no"}' },
      { role: "user", text: "more" },
    ];
    await call(config({ provider: "anthropic" }), request("", { messages }));
    const [body = "{}"] = await requestsOf(token);
    const sent = JSON.parse(body) as {
      system: object[];
      messages: { role: string; content: object[] }[];
      tools: object[];
      max_tokens: number;
    };
    const cache_control = { type: "ephemeral" };
    expect(sent.system).toEqual([{ type: "text", text: "You are the router.", cache_control }]);
    expect(sent.max_tokens).toBe(500);
    expect(sent.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(sent.messages[1]?.content).toEqual([{ type: "tool_use", id: "c1", name: "recall", input: { unreadable: "{broken" } }]);
    expect(sent.messages[2]?.content.at(-1)).toEqual({ type: "text", text: "more", cache_control });
    expect(body.match(/cache_control/g)).toHaveLength(2);
  });
});
