// A model server on loopback with a law of latency in scaled time. It counts tokens (4 characters each) and what a provider's
// prefix cache would have: the common prefix with the previous request of the same conversation.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type SimCall = { tool: string; input: object };
export type Message = { role: string; content: string; tool_calls?: { function: { name: string; arguments: string } }[] };
export type SimRequest = { model: string; messages: Message[] };
/** What a simulated mind answers; the server only adds time and counts. */
export type Script = (request: SimRequest) => {
  calls: SimCall[];
  text?: string;
  /** Virtual; instead of the law. */
  latencyMs?: number;
  /** Exactly so many of its tokens are cached, as if the context had that size. */
  cached?: number;
};

export type Tokens = { cached: number; uncached: number; output: number };
export type Served = Tokens & { conversation: string; atMs: number; latencyMs: number };

/** Virtual milliseconds of one call. */
export type Law = (tokens: Tokens) => number;

/** 0.9 s + 0.2 ms an uncached token + 0.005 ms a cached one + 16.7 ms an output token. */
export const measuredLaw: Law = ({ cached, uncached, output }) => 900 + 0.2 * uncached + 0.005 * cached + 16.7 * output;

const charsPerToken = 4;
const callFrameTokens = 4;

export type ModelServerOptions = {
  /** Virtual time passes this often faster than real time. */
  speed: number;
  script: Script;
  law?: Law;
  /** A conversation has at least this many cached tokens, as if it had lived for long: the same context for every policy that is compared. */
  prefixTokens?: (conversation: string, step: number) => number;
};

export type ModelServer = { url: string; served: Served[]; speed: number; close(): Promise<void> };

export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const previous = new Map<string, string[]>();
  const served: Served[] = [];
  const law = options.law ?? measuredLaw;
  let answered = 0;

  async function answer(body: string, arrivedMs: number): Promise<object> {
    const request = JSON.parse(body) as SimRequest & { tools?: unknown; declared?: Tokens & { conversation: string } };
    if (request.declared) return take(request.declared, request.declared.conversation, arrivedMs);
    const conversation = conversationOf(request);
    const parts = [JSON.stringify(request.tools ?? []), ...request.messages.map((message) => JSON.stringify(message))];
    const whole = parts.reduce((chars, part) => chars + part.length, 0);
    const known = Math.floor(commonPrefix(previous.get(conversation) ?? [], parts) / charsPerToken);
    previous.set(conversation, parts);
    const { calls, text = "", latencyMs, cached } = options.script(request);
    const wire = calls.map((call) => ({ name: call.tool, arguments: JSON.stringify(call.input) }));
    const step = request.messages.filter((message) => message.role === "assistant").length;
    const tokens = {
      cached: cached ?? Math.max(known, options.prefixTokens?.(conversation, step) ?? 0),
      uncached: Math.ceil(whole / charsPerToken) - known,
      output: Math.ceil(
        text.length / charsPerToken +
          wire.reduce((count, call) => count + callFrameTokens + (call.name.length + call.arguments.length) / charsPerToken, 0),
      ),
    };
    await take(tokens, conversation, arrivedMs, latencyMs);
    answered += 1;
    return completion(answered, text, wire, tokens);
  }

  async function take(tokens: Tokens, conversation: string, arrivedMs: number, latencyMs = law(tokens)): Promise<Served> {
    const entry = { ...tokens, conversation, atMs: arrivedMs, latencyMs };
    served.push(entry);
    const leftMs = latencyMs / options.speed - (performance.timeOrigin + performance.now() - arrivedMs);
    if (leftMs > 0) await sleep(leftMs);
    return entry;
  }

  const server = createServer((request, response) => {
    const arrivedMs = performance.timeOrigin + performance.now();
    void readAll(request)
      .then((body) => answer(body, arrivedMs))
      .then(
        (value) => response.setHeader("content-type", "application/json").end(JSON.stringify(value)),
        (error: unknown) => {
          response.statusCode = 500;
          response.end(JSON.stringify({ error: { message: String(error) } }));
        },
      );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    served,
    speed: options.speed,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A call whose sizes are declared instead of sent: how the replicas of other policies use the same server. */
export async function declaredCall(url: string, conversation: string, tokens: Tokens): Promise<Served> {
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ declared: { ...tokens, conversation } }) });
  return (await response.json()) as Served;
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

/** One task is one conversation; the router has one a lane, which its system prompt names. */
function conversationOf(request: SimRequest): string {
  const task = request.model === "worker" ? /tsk_[a-z0-9]+/.exec(request.messages[1]?.content ?? "")?.[0] : undefined;
  return task ?? `${request.model}:${request.messages[0]?.content.slice(-80)}`;
}

/** Characters that two lists of parts have in common from their beginning. */
function commonPrefix(before: readonly string[], now: readonly string[]): number {
  let chars = 0;
  for (let i = 0; i < now.length; i++) {
    const a = before[i] ?? "";
    const b = now[i] ?? "";
    if (a === b) {
      chars += b.length;
      continue;
    }
    let same = 0;
    while (same < a.length && a.charCodeAt(same) === b.charCodeAt(same)) same++;
    return chars + same;
  }
  return chars;
}

function completion(n: number, text: string, calls: { name: string; arguments: string }[], tokens: Tokens): object {
  return {
    id: `chatcmpl-${n}`,
    object: "chat.completion",
    created: 0,
    model: "simulated",
    choices: [
      {
        index: 0,
        finish_reason: calls.length > 0 ? "tool_calls" : "stop",
        message: {
          role: "assistant",
          content: text || null,
          tool_calls: calls.map((call, i) => ({ id: `call_${n}_${i}`, type: "function", function: call })),
        },
      },
    ],
    usage: {
      prompt_tokens: tokens.cached + tokens.uncached,
      completion_tokens: tokens.output,
      total_tokens: tokens.cached + tokens.uncached + tokens.output,
      prompt_tokens_details: { cached_tokens: tokens.cached },
    },
  };
}
