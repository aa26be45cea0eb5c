// A model of no latency that streams its answers, the same for whoever is compared, and says what its callers had cost at each request.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Message, SimCall } from "./model-server.ts";

export type StreamRequest = { model: string; messages: Message[]; tools?: { function: object }[] };
export type StreamModelOptions = {
  /** One answer: words in as many pieces, then calls. Called as the request is there, before the answer begins. */
  answer: (request: StreamRequest) => { pieces: number; calls: SimCall[] };
};
export type StreamModel = { url: string; close(): Promise<void> };

const piecesAWrite = 10;
const charsPerToken = 4;

export async function startStreamModel({ answer }: StreamModelOptions): Promise<StreamModel> {
  let answered = 0;
  const server = createServer((request, response) => {
    void readAll(request).then((body) => {
      const { pieces, calls } = answer(JSON.parse(body) as StreamRequest);
      answered += 1;
      return stream(response, { n: answered, promptTokens: Math.ceil(body.length / charsPerToken), pieces, calls });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Answer = { n: number; promptTokens: number; pieces: number; calls: readonly SimCall[] };

async function stream(response: ServerResponse, { n, promptTokens, pieces, calls }: Answer): Promise<void> {
  response.setHeader("content-type", "text/event-stream");
  const event = (delta: object, more: object = {}): string =>
    `data: ${JSON.stringify({ id: `chatcmpl-${n}`, object: "chat.completion.chunk", created: 0, model: "simulated", choices: [{ index: 0, delta, ...more }] })}\n\n`;
  let waiting = event({ role: "assistant", content: "" });
  for (let piece = 1; piece <= pieces; piece++) {
    waiting += event({ content: `word${piece} ` });
    if (piece % piecesAWrite > 0) continue;
    response.write(waiting);
    waiting = "";
    await new Promise((resolve) => setImmediate(resolve));
  }
  calls.forEach(({ tool, input }, index) => {
    const call = { index, id: `call_${n}_${index}`, type: "function", function: { name: tool, arguments: JSON.stringify(input) } };
    waiting += event({ tool_calls: [call] });
  });
  waiting += event({}, { finish_reason: calls.length > 0 ? "tool_calls" : "stop" });
  const usage = { prompt_tokens: promptTokens, completion_tokens: pieces, total_tokens: promptTokens + pieces };
  waiting += `data: ${JSON.stringify({ id: `chatcmpl-${n}`, object: "chat.completion.chunk", created: 0, model: "simulated", choices: [], usage })}\n\n`;
  response.end(`${waiting}data: [DONE]\n\n`);
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
