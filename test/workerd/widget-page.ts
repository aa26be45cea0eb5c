// A widget's page as the tests drive it: the real doors, the real socket, and what it has shown so far.
import { env, exports } from "cloudflare:workers";
import type { Env } from "../../src/env.ts";
import { type WidgetServerFrame, widgetProtocol } from "../../src/protocol/widget-frames.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { createInvite } from "../../src/storage/people.ts";

export const bindings = env as unknown as Env;
export const origin = "https://switchyard.test";

export const fetchWorker = (path: string, init: RequestInit = {}): Promise<Response> =>
  (exports as unknown as { default: Fetcher }).default.fetch(`${origin}${path}`, init);

export const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetchWorker(path, { method: "POST", headers: { origin, "content-type": "application/json", ...headers }, body: JSON.stringify(body) });

export async function invite(
  name: string,
  role: "owner" | "member" = "member",
  personId?: string,
): Promise<{ token: string; personId: string }> {
  await migrated(bindings.DB);
  return createInvite(bindings.DB, { name, role, ...(personId === undefined ? {} : { personId }) }, Date.now());
}

export async function session(token?: string): Promise<string> {
  const response = await post("/api/widget/session", { origin, ...(token === undefined ? {} : { invite: token }) });
  if (response.status !== 200) throw new Error(`session: ${response.status} ${await response.text()}`);
  return (await response.json<{ session: string }>()).session;
}

export async function ticket(from: string): Promise<{ ticket: string; rootThreadId: string }> {
  const response = await post("/api/widget/ticket", {}, { authorization: `Bearer ${from}` });
  if (response.status !== 200) throw new Error(`ticket: ${response.status} ${await response.text()}`);
  return response.json();
}

export class Page {
  readonly frames: WidgetServerFrame[] = [];
  readonly #socket: WebSocket;
  readonly rootThreadId: string;
  closed: { code: number; reason: string } | null = null;
  pongs = 0;

  constructor(socket: WebSocket, rootThreadId: string) {
    this.#socket = socket;
    this.rootThreadId = rootThreadId;
    socket.addEventListener("message", (event) => {
      if (event.data === "pong") this.pongs += 1;
      else this.frames.push(JSON.parse(String(event.data)) as WidgetServerFrame);
    });
    socket.addEventListener("close", (event) => {
      this.closed = { code: event.code, reason: event.reason };
    });
    socket.accept();
  }

  /** Opens a socket with a ticket of the signed-in person; `hello` is the caller's. */
  static async open(from: string, headers: Record<string, string> = { origin }): Promise<Page> {
    return Page.with(await ticket(from), headers);
  }

  static async with(given: { ticket: string; rootThreadId: string }, headers: Record<string, string> = { origin }): Promise<Page> {
    const response = await fetchWorker(`/api/widget/socket?thread=${given.rootThreadId}`, {
      headers: { Upgrade: "websocket", "Sec-WebSocket-Protocol": `${widgetProtocol}, ${given.ticket}`, ...headers },
    });
    if (!response.webSocket) throw new Error(`no socket: ${response.status} ${await response.text()}`);
    return new Page(response.webSocket, given.rootThreadId);
  }

  /** A page that is up to date. */
  static async ready(from: string, resume: Record<string, number> = {}): Promise<Page> {
    const page = await Page.open(from);
    page.say({ t: "hello", resume });
    await page.until("caught up", () => page.frames.some((frame) => frame.t === "caught_up"));
    return page;
  }

  say(frame: unknown): void {
    this.#socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  sayBytes(bytes: ArrayBuffer): void {
    this.#socket.send(bytes);
  }

  message(clientMsgId: string, text: string, threadId: string = this.rootThreadId): void {
    this.say({ t: "send", clientMsgId, threadId, text });
  }

  close(code = 1000, reason = "bye"): void {
    this.#socket.close(code, reason);
  }

  /** Rows shown, as `thread:seq`, in the order in which they came. */
  rows(threadId: string = this.rootThreadId): Extract<WidgetServerFrame, { t: "row" }>[] {
    return this.frames.flatMap((frame) => (frame.t === "row" && frame.threadId === threadId ? [frame] : []));
  }

  /** What a page tells the server when it comes back. */
  resume(): Record<string, number> {
    const map: Record<string, number> = {};
    for (const frame of this.frames) if (frame.t === "row") map[frame.threadId] = Math.max(map[frame.threadId] ?? 0, frame.seq);
    return map;
  }

  acks(clientMsgId: string): Extract<WidgetServerFrame, { t: "ack" }>[] {
    return this.frames.flatMap((frame) => (frame.t === "ack" && frame.clientMsgId === clientMsgId ? [frame] : []));
  }

  async acked(clientMsgId: string, times = 1): Promise<Extract<WidgetServerFrame, { t: "ack" }>> {
    await this.until(`the ack of ${clientMsgId}`, () => this.acks(clientMsgId).length >= times);
    const ack = this.acks(clientMsgId).at(-1);
    if (!ack) throw new Error("no ack");
    return ack;
  }

  until(what: string, hold: () => boolean): Promise<void> {
    return eventually(
      what,
      () => hold() || this.closed !== null,
      () => `closed: ${JSON.stringify(this.closed)}; frames: ${JSON.stringify(this.frames)}`,
    );
  }

  async untilClosed(): Promise<{ code: number; reason: string }> {
    await eventually(
      "the close of the socket",
      () => this.closed !== null,
      () => JSON.stringify(this.frames),
    );
    if (!this.closed) throw new Error("not closed");
    return this.closed;
  }
}

/** Polls until the condition holds; fails with what was seen instead. */
export async function eventually(
  what: string,
  hold: () => boolean | Promise<boolean>,
  seen: () => string = () => "nothing",
  timeoutMs = 10_000,
): Promise<void> {
  for (const endMs = Date.now() + timeoutMs; Date.now() < endMs; ) {
    if (await hold()) return;
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  throw new Error(`Waited ${timeoutMs} ms for ${what}; saw ${seen()}`);
}
