// A cloud for tests of the daemon: enrolment and the daemon's socket as the Endpoint object speaks it, with a record of everything
// that came and switches for what may go wrong. It keeps what it acknowledged, checks every offset, and counts repeats.
import { createPublicKey, type KeyObject, randomBytes, verify } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { makeId } from "../../src/core/ids.ts";
import type { Command, CommandResult, CommandSpec } from "../../src/protocol/command.ts";
import {
  type CloudFrame,
  type DaemonFrame,
  daemonClose,
  daemonFrame,
  daemonProtocolVersion,
  enrolRequest,
  type HelloFrame,
  helloText,
} from "../../src/protocol/daemon-frames.ts";
import { until } from "./until.ts";

type Ordered = { command: Command; result: CommandResult | null; results: number; output: Buffer; repeatedBytes: number; stopped: number };

export class FakeCloud {
  readonly frames: DaemonFrame[] = [];
  readonly hellos: HelloFrame[] = [];
  readonly orders = new Map<string, Ordered>();
  readonly problems: string[] = [];
  readonly closes: number[] = [];
  readonly connectTimesMs: number[] = [];
  /** Switches. */
  ackOutput = true;
  ackResults = true;
  pingMs = 30_000;
  answerPings = true;
  version = daemonProtocolVersion;
  refuseUpgrade: { status: number; headers?: Record<string, string> } | null = null;
  closeAfterHello: { code: number; reason: string } | null = null;
  /** Frames sent right behind the welcome, before anything else. */
  afterWelcome: CloudFrame[] = [];
  epoch = 0;
  pings = 0;

  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true });
  readonly #codes = new Set<string>();
  readonly #keys = new Map<string, KeyObject>();
  #current: WebSocket | null = null;
  #serial = 0;

  private constructor() {
    this.#server = createServer((request, response) => this.#http(request, response).catch(() => response.destroy()));
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => this.#upgrade(request, socket, head));
  }

  static async start(): Promise<FakeCloud> {
    const cloud = new FakeCloud();
    await new Promise<void>((resolve) => cloud.#server.listen(0, "127.0.0.1", resolve));
    return cloud;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }
  get connected(): boolean {
    return this.#current !== null;
  }

  newCode(): string {
    const code = randomBytes(6).toString("hex");
    this.#codes.add(code);
    return code;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Orders a command; it is sent now, or after the next hello. */
  order(spec: CommandSpec, more: Partial<Command> = {}): string {
    const commandId = makeId("cmd", this.port, ++this.#serial);
    const command: Command = {
      commandId,
      taskId: makeId("tsk", this.port),
      epoch: 1,
      spec,
      authority: "member",
      tainted: false,
      timeoutMs: 60_000,
      notAfterMs: Date.now() + 3_600_000,
      atMs: Date.now(),
      ...more,
    };
    this.orders.set(commandId, { command, result: null, results: 0, output: Buffer.alloc(0), repeatedBytes: 0, stopped: 0 });
    this.send({ t: "run", command });
    return commandId;
  }

  shell(script: string, more: Partial<Command> = {}): string {
    return this.order({ kind: "shell", workspace: "work", script }, more);
  }

  send(frame: CloudFrame): void {
    this.#current?.send(JSON.stringify(frame));
  }
  sendText(text: string): void {
    this.#current?.send(text);
  }

  orderOf(commandId: string): Ordered {
    const order = this.orders.get(commandId);
    if (!order) throw new Error(`${commandId} was never ordered`);
    return order;
  }

  async resultOf(commandId: string, forMs = 30_000): Promise<CommandResult> {
    return until(`a result of ${commandId}`, () => this.orderOf(commandId).result, forMs);
  }

  count(t: DaemonFrame["t"], commandId: string): number {
    return this.frames.filter((frame) => frame.t === t && "commandId" in frame && frame.commandId === commandId).length;
  }

  /** Cuts the line without a goodbye. */
  drop(): void {
    this.#current?.terminate();
  }
  closeSocket(code: number, reason: string): void {
    this.#current?.close(code, reason);
  }

  async #http(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (request.url === "/health") return answer(200, { ok: true });
    if (request.url !== "/api/daemon/enrol" || request.method !== "POST")
      return answer(404, { error: "not_found", message: "nothing here" });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = enrolRequest.parse(JSON.parse(Buffer.concat(chunks).toString()));
    if (!this.#codes.delete(body.code)) return answer(401, { error: "unauthorised", message: "unknown code" });
    const endpointId = makeId("ep", body.publicKey);
    const x = Buffer.from(body.publicKey, "base64").toString("base64url");
    this.#keys.set(endpointId, createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }));
    return answer(200, { endpointId, name: body.name });
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.connectTimesMs.push(Date.now());
    const endpointId = new URL(request.url ?? "/", "http://x").searchParams.get("endpoint") ?? "";
    const refusal = this.refuseUpgrade ?? (this.#keys.has(endpointId) ? null : { status: 404 });
    if (refusal) {
      const headers = Object.entries(refusal.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${refusal.status} Refused\r\ncontent-length: 0\r\n${headers.join("")}connection: close\r\n\r\n`);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (ws) => this.#greet(ws, endpointId, request.headers.host ?? ""));
  }

  #greet(ws: WebSocket, endpointId: string, host: string): void {
    const nonce = randomBytes(16).toString("base64");
    ws.send(JSON.stringify({ t: "challenge", v: this.version, nonce } satisfies CloudFrame));
    ws.on("error", () => undefined);
    ws.on("close", (code) => {
      this.closes.push(code);
      if (this.#current === ws) this.#current = null;
    });
    ws.on("message", (data) => {
      const text = data.toString();
      if (text === "ping") {
        this.pings++;
        if (this.answerPings) ws.send("pong");
        return;
      }
      const parsed = daemonFrame.safeParse(JSON.parse(text));
      if (!parsed.success) {
        this.problems.push(`unreadable frame: ${text.slice(0, 200)} ${parsed.error.message}`);
        return;
      }
      this.frames.push(parsed.data);
      if (parsed.data.t === "hello") this.#welcome(ws, parsed.data, endpointId, nonce, host);
      else if (ws === this.#current) this.#take(parsed.data);
    });
  }

  #welcome(ws: WebSocket, hello: HelloFrame, endpointId: string, nonce: string, host: string): void {
    const key = this.#keys.get(endpointId);
    const text = Buffer.from(helloText(hello.v, endpointId, nonce, host));
    if (!key || hello.endpointId !== endpointId || !verify(null, text, key, Buffer.from(hello.signature, "base64"))) {
      this.problems.push("wrong signature");
      ws.close(daemonClose.unauthorised, "wrong signature");
      return;
    }
    this.hellos.push(hello);
    if (this.closeAfterHello) {
      ws.close(this.closeAfterHello.code, this.closeAfterHello.reason);
      return;
    }
    this.#current?.close(daemonClose.superseded, "a newer connection");
    this.#current = ws;
    const open = [...this.orders].filter(([, order]) => order.result === null);
    const output = open.map(([commandId, order]) => ({ commandId, offset: order.output.length }));
    this.send({ t: "welcome", epoch: ++this.epoch, name: "test-machine", pingMs: this.pingMs, output });
    for (const frame of this.afterWelcome.splice(0)) this.send(frame);
    const known = new Set(hello.open.map((each) => each.commandId));
    for (const [commandId, order] of open) if (!known.has(commandId)) this.send({ t: "run", command: order.command });
  }

  #take(frame: DaemonFrame): void {
    if (frame.t === "hello") return;
    const commandId = frame.t === "result" ? frame.result.commandId : frame.commandId;
    const order = this.orders.get(commandId);
    if (!order) return;
    switch (frame.t) {
      case "accepted":
      case "started":
        return;
      case "stopped":
        order.stopped++;
        return;
      case "output": {
        const data = Buffer.from(frame.data, "base64");
        const have = order.output.length;
        if (frame.offset > have) {
          this.problems.push(`${commandId}: gap, has ${have}, got offset ${frame.offset}`);
          return;
        }
        const fresh = data.subarray(have - frame.offset);
        const overlap = data.subarray(0, have - frame.offset);
        if (!order.output.subarray(frame.offset, frame.offset + overlap.length).equals(overlap))
          this.problems.push(`${commandId}: bytes at ${frame.offset} changed`);
        if (order.result && fresh.length > 0) this.problems.push(`${commandId}: output after its result`);
        order.repeatedBytes += data.length - fresh.length;
        order.output = Buffer.concat([order.output, fresh]);
        if (this.ackOutput) this.send({ t: "output_ack", commandId, offset: order.output.length });
        return;
      }
      case "result": {
        order.results++;
        const { result } = frame;
        if (order.output.length !== result.outputBytes - result.truncatedBytes)
          this.problems.push(`${commandId}: result says ${result.outputBytes - result.truncatedBytes} bytes, ${order.output.length} came`);
        if (order.result && JSON.stringify(order.result) !== JSON.stringify(result)) this.problems.push(`${commandId}: its result changed`);
        order.result = result;
        if (this.ackResults) this.send({ t: "result_ack", commandId });
        return;
      }
    }
  }
}
