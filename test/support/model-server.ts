// A stand-in of an OpenAI-compatible model server: it speaks the real wire protocol, is scripted through `/control`, and can misbehave.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

type ModelFault = "400" | "429" | "500" | "401" | "404" | "hang" | "garbage" | "cut" | "no_choices" | "duplicate_ids";

type ScriptedCall = {
  tool: string;
  /** The strings `$trg`, `$rep` and `$cmd` in it become the last such id of the request, `$all` each trg_ id of its last message of a user. */
  input?: unknown;
  /** The raw text of the arguments instead of `input`: for arguments that are no JSON. */
  rawInput?: string;
};

type ScriptedReply = {
  text?: string;
  calls?: ScriptedCall[];
  fault?: ModelFault;
  delayMs?: number;
  /** Seconds of the `Retry-After` header of a 429; 1 by default. */
  retryAfter?: number;
  /** How many tokens of the request the provider counted; null: it does not say. */
  usage?: number | null;
  /** The fault happens inside of the stream: at its first, middle or last event. */
  at?: "first" | "middle" | "last";
  /** Answer whole though a stream was asked for. */
  whole?: boolean;
  /** Words and arguments in pieces of this size, with a pause before each. */
  pieceChars?: number;
  pieceMs?: number;
};

/** Used in order. `when`: a text, or several that must all occur in the request's body; the newest matching script answers. */
type ModelScript = { when: string | string[]; replies: ScriptedReply[] };

const hangMs = 5 * 60_000;
const keptRequests = 5_000;

type ChatRequest = {
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  tools?: { name?: string; function?: { name: string } }[];
};
/** `chat`: OpenAI's chat completions. `messages`: Anthropic's. */
type Wire = "chat" | "messages";
type WireCall = { id: string; name: string; arguments: string };

/** One server's state and its request handler. */
function modelServer(): {
  handle(request: Request): Promise<Response>;
  script(script: ModelScript): void;
  requests(contains?: string): string[];
} {
  const scripts: (ModelScript & { used: number })[] = [];
  const bodies: string[] = [];
  let answered = 0;

  const script = (added: ModelScript): void => {
    scripts.unshift({ ...added, used: 0 });
  };
  const requests = (contains = ""): string[] => bodies.filter((body) => body.includes(contains));

  async function handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname === "/control/script" && request.method === "POST") {
      script((await request.json()) as ModelScript);
      return Response.json({ ok: true });
    }
    if (url.pathname === "/control/requests") return Response.json(requests(url.searchParams.get("contains") ?? ""));
    const wire: Wire | null = url.pathname.endsWith("/chat/completions") ? "chat" : url.pathname.endsWith("/messages") ? "messages" : null;
    if (wire === null || request.method !== "POST") return failure(404, `nothing at ${url.pathname}`);

    const body = await request.text();
    bodies.push(body);
    if (bodies.length > keptRequests) bodies.shift();
    const match = scripts.find(({ when }) => (Array.isArray(when) ? when : [when]).every((part) => body.includes(part)));
    if (!match) return failure(500, "no script matches this request");
    const reply = match.replies[match.used++];
    if (!reply) return failure(500, "script is used up");
    if (reply.delayMs !== undefined) await pause(reply.delayMs);
    answered += 1;
    return answer(wire, reply, body, answered);
  }

  return { handle, script, requests };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

const failure = (status: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ error: { message, type: "stand_in", code: status } }, { status, headers });

/** The last `trg_`, `rep_` and `cmd_` ids of the request stand for the placeholders of a scripted input. */
function fillPlaceholders(input: unknown, body: string): string {
  const shown = (): string[] => [...new Set(body.slice(body.lastIndexOf('"role":"user"')).match(/trg_[a-z0-9]+(?:-[a-z0-9]+)?/g))];
  const text = JSON.stringify(input ?? {}).replace(/"\$all"/, () => JSON.stringify(shown()).slice(1, -1));
  return text.replace(/\$(trg|rep|cmd)\b/g, (whole, prefix: string) => {
    const ids = body.match(new RegExp(`${prefix}_[a-z0-9]+(?:-[a-z0-9]+)?`, "g"));
    return ids?.at(-1) ?? whole;
  });
}

async function answer(wire: Wire, reply: ScriptedReply, body: string, n: number): Promise<Response> {
  const request = JSON.parse(body) as ChatRequest;
  if (reply.at === undefined)
    switch (reply.fault) {
      case "429":
        return failure(429, "slow down", { "retry-after": String(reply.retryAfter ?? 1) });
      case "500":
        return failure(500, "the model server has a fault");
      case "400":
        return failure(400, "the request was rejected by our content policy");
      case "401":
        return failure(401, "invalid api key");
      case "404":
        return failure(404, "the model does not exist");
      case "hang":
        await pause(hangMs);
        return failure(504, "hung");
      case "garbage":
        return new Response("<html><body>bad gateway, truly</body></html>", { headers: { "content-type": "application/json" } });
      case "no_choices":
        if (wire === "chat")
          return Response.json({ id: `chatcmpl-${n}`, object: "chat.completion", created: 0, model: "scripted", choices: [] });
        break;
      case "cut":
      case "duplicate_ids":
      case undefined:
    }
  const calls = wireCalls(reply, request, body, n);
  if (wire === "chat" && (!request.stream || reply.whole)) {
    const whole = JSON.stringify(completion(reply, calls, n));
    const headers = { "content-type": "application/json" };
    return new Response(reply.fault === "cut" ? streamed([whole.slice(0, whole.length / 2)], { broken: true }) : whole, { headers });
  }
  const events = wire === "chat" ? sse(reply, calls, request, n) : messageEvents(reply, calls, n);
  return new Response(misbehave(wire, reply, events), { headers: { "content-type": "text/event-stream" } });
}

/** The events of an answer, with the fault of the script where it says. */
function misbehave(wire: Wire, reply: ScriptedReply, events: string[]): ReadableStream<Uint8Array> {
  const ms = reply.pieceMs ?? 0;
  if (reply.fault === "no_choices" && wire === "messages") return streamed([messageEvent({ type: "message_stop" })], {});
  if (reply.fault === "cut" && reply.at === undefined) {
    const whole = events.join("");
    return streamed([whole.slice(0, Math.floor(whole.length / 2))], { broken: true });
  }
  if (reply.at === undefined) return streamed(events, { ms });
  const at = { first: 0, middle: Math.floor(events.length / 2), last: events.length - 1 }[reply.at];
  const before = events.slice(0, at);
  const { fault } = reply;
  switch (fault) {
    case "hang":
      return streamed(before, { ms, hang: true });
    case "cut":
      return streamed(before, { ms, broken: true });
    case "garbage":
      return streamed([...before, "data: <html>bad gateway</html>\n\n"], {});
    case "no_choices":
      return streamed([...before, wire === "chat" ? 'data: {"choices":[]}\n\n' : ""], {});
    case "429":
    case "500": {
      const type = fault === "429" ? "rate_limit_error" : "overloaded_error";
      const error = { type, message: fault === "429" ? "rate limit reached" : "overloaded", code: Number(fault) };
      return streamed([...before, wire === "chat" ? `data: ${JSON.stringify({ error })}\n\n` : messageEvent({ type: "error", error })], {});
    }
    default:
      return streamed(events, { ms });
  }
}

function wireCalls(reply: ScriptedReply, request: ChatRequest, body: string, n: number): WireCall[] {
  let calls = reply.calls ?? [];
  const duplicate = reply.fault === "duplicate_ids";
  if (duplicate && calls.length === 0)
    calls = [{ tool: request.tools?.[0]?.function?.name ?? request.tools?.[0]?.name ?? "none", input: {} }];
  if (duplicate && calls.length === 1) calls = [...calls, ...calls];
  return calls.map((call, i) => ({
    id: duplicate ? `call_${n}_same` : `call_${n}_${i}`,
    name: call.tool,
    arguments: call.rawInput ?? fillPlaceholders(call.input, body),
  }));
}

function usageOf({ usage: prompt = 100 }: ScriptedReply): { usage?: object } {
  if (prompt === null) return {};
  const prompt_tokens_details = { cached_tokens: 60 };
  return { usage: { prompt_tokens: prompt, completion_tokens: 20, total_tokens: prompt + 20, prompt_tokens_details } };
}

const toolCall = (call: WireCall): object => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } });

const completion = (reply: ScriptedReply, calls: WireCall[], n: number): object => ({
  id: `chatcmpl-${n}`,
  object: "chat.completion",
  created: 1_700_000_000,
  model: "scripted",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: reply.text ?? null, ...(calls.length > 0 ? { tool_calls: calls.map(toolCall) } : {}) },
      finish_reason: calls.length > 0 ? "tool_calls" : "stop",
    },
  ],
  ...usageOf(reply),
});

/** A text in pieces: two halves, unless the script says how long they are. */
function inPieces(text: string, reply: ScriptedReply): string[] {
  const size = reply.pieceChars ?? Math.ceil(text.length / 2);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  return pieces;
}

/** The same answer as server-sent events. */
function sse(reply: ScriptedReply, calls: WireCall[], request: ChatRequest, n: number): string[] {
  const chunk = (delta: object, finish: string | null = null): object => ({
    id: `chatcmpl-${n}`,
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "scripted",
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const chunks: object[] = [chunk({ role: "assistant", content: "" })];
  for (const piece of inPieces(reply.text ?? "", reply)) chunks.push(chunk({ content: piece }));
  calls.forEach((call, index) => {
    const [first = "", ...others] = inPieces(call.arguments, reply);
    chunks.push(chunk({ tool_calls: [{ index, ...toolCall({ ...call, arguments: first }) }] }));
    for (const piece of others) chunks.push(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }));
  });
  chunks.push(chunk({}, calls.length > 0 ? "tool_calls" : "stop"));
  if (request.stream_options?.include_usage) chunks.push({ ...chunk({}), choices: [], ...usageOf(reply) });
  return [...chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`), "data: [DONE]\n\n"];
}

const messageEvent = (event: { type: string } & Record<string, unknown>): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** The answer as Anthropic's Messages API streams it. */
function messageEvents(reply: ScriptedReply, calls: WireCall[], n: number): string[] {
  const counted = reply.usage === null ? {} : { input_tokens: 40, cache_read_input_tokens: 60, cache_creation_input_tokens: 0 };
  const message = {
    id: `msg_${n}`,
    type: "message",
    role: "assistant",
    model: "scripted",
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  const events = [messageEvent({ type: "message_start", message: { ...message, usage: { ...counted, output_tokens: 1 } } })];
  const block = (index: number, content_block: object, deltas: object[]): void => {
    events.push(messageEvent({ type: "content_block_start", index, content_block }));
    for (const delta of deltas) events.push(messageEvent({ type: "content_block_delta", index, delta }));
    events.push(messageEvent({ type: "content_block_stop", index }));
  };
  const text = reply.text ?? "";
  const words = text === "" ? 0 : 1;
  if (words === 1)
    block(
      0,
      { type: "text", text: "" },
      inPieces(text, reply).map((piece) => ({ type: "text_delta", text: piece })),
    );
  calls.forEach((call, i) => {
    const start = { type: "tool_use", id: call.id, name: call.name, input: {} };
    block(
      words + i,
      start,
      inPieces(call.arguments, reply).map((piece) => ({ type: "input_json_delta", partial_json: piece })),
    );
  });
  const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
  events.push(messageEvent({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } }));
  return [...events, messageEvent({ type: "message_stop" })];
}

/** A body in pieces; at its end it closes, breaks, or says nothing more. */
function streamed(pieces: string[], end: { ms?: number; broken?: boolean; hang?: boolean }): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next = 0;
  return new ReadableStream({
    async pull(controller) {
      const piece = pieces[next++];
      if (piece !== undefined) {
        if (end.ms) await pause(end.ms);
        controller.enqueue(encoder.encode(piece));
      } else if (end.broken) controller.error(new Error("cut by the stand-in"));
      else if (end.hang) await pause(hangMs);
      else controller.close();
    },
  });
}

const trapped = modelServer();

/** The stand-in behind http://model.test of the workerd tests. */
export const handleModel = (request: Request): Promise<Response> => trapped.handle(request);

export type ModelServer = {
  /** Without `/v1`: that is part of MODEL_BASE_URL, as with a real provider. */
  url: string;
  script(script: ModelScript): void;
  requests(contains?: string): string[];
  close(): Promise<void>;
};

/** The same stand-in as a real HTTP server on loopback; `port` lets a test bring it back at the same address. */
export async function startModelServer(port = 0): Promise<ModelServer> {
  const model = modelServer();
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const bodyless = incoming.method === "GET" || incoming.method === "HEAD";
      const request = new Request(`http://127.0.0.1${incoming.url ?? "/"}`, {
        method: incoming.method ?? "GET",
        body: bodyless ? null : Buffer.concat(chunks),
      });
      const response = await model.handle(request);
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      if (response.body) for await (const piece of response.body) await new Promise((resolve) => outgoing.write(piece, resolve));
      outgoing.end();
    })().catch((error: unknown) => outgoing.destroy(error instanceof Error ? error : new Error(String(error))));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script: model.script,
    requests: model.requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
