// The one socket to the cloud: dials out, proves who this machine is, notices a dead line, dials again. Listens on nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { closeReason } from "../src/core/close-frame.ts";
import {
  type CloudFrame,
  cloudFrame,
  type DaemonFrame,
  daemonClose,
  daemonProtocolVersion,
  type HelloFrame,
} from "../src/protocol/daemon-frames.ts";
import { firstIssue } from "../src/protocol/issue.ts";
import { limits } from "../src/protocol/limits.ts";
import { type ConnectionEnd, nextStep } from "./backoff.ts";
import { type Identity, signHello } from "./identity.ts";
import type { Log } from "./log.ts";
import type { Link } from "./outbox.ts";
import { daemonVersion } from "./version.ts";

type Welcome = Extract<CloudFrame, { t: "welcome" }>;

export type ConnectionHandlers = {
  /** What a hello says, asked for at each connect. */
  hello(): Pick<HelloFrame, "about" | "workspaces" | "open">;
  onWelcome(welcome: Welcome, link: Link): void;
  onFrame(frame: CloudFrame): void;
  /** A `run` that this version cannot read; returns false when it is no such frame. */
  onUnreadable(frame: unknown, problem: string): boolean;
  onDown(): void;
  onState(state: "connecting" | "connected" | "waiting" | "stopped", detail: string): void;
};

const answerMs = 15_000;
/** A connection that lived this long, or did work, was a good one: the next failure counts from the start. */
const soundMs = 10_000;
/** Far above `maxFrameBytes`: a frame that is too large is refused by name instead of breaking each connection anew. */
const maxPayload = 16 * limits.maxFrameBytes;

export class Connection {
  readonly #identity: Identity;
  readonly #handlers: ConnectionHandlers;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  #socket: WebSocket | null = null;
  #asked: string | null = null;

  constructor(identity: Identity, handlers: ConnectionHandlers, log: Log) {
    this.#identity = identity;
    this.#handlers = handlers;
    this.#log = log;
  }

  /** Connects, again and again, until `stop` or until the cloud says that it is no use; then returns why. */
  async run(): Promise<string | null> {
    let attempt = 0;
    let lastSaid = "";
    while (!this.#stopping.signal.aborted) {
      this.#handlers.onState("connecting", this.#identity.url);
      const { end, sound } = await this.#once();
      if (this.#stopping.signal.aborted) break;
      if (sound) attempt = 0;
      const next = nextStep(end, attempt, Math.random(), Date.now());
      if (next.kind === "stop") {
        this.#handlers.onState("stopped", next.say);
        return next.say;
      }
      attempt += end.kind === "asked" ? 0 : 1;
      // While the cloud is away for long, the same reason is said once, not each minute.
      const reason = next.say.split("; trying again")[0] ?? next.say;
      if (sound || reason !== lastSaid) this.#log({ event: "disconnected", text: next.say, waitMs: Math.round(next.waitMs) });
      lastSaid = reason;
      this.#handlers.onState("waiting", next.say);
      await sleep(next.waitMs, null, { signal: this.#stopping.signal }).catch(() => undefined);
    }
    this.#handlers.onState("stopped", "ended on this machine");
    return null;
  }

  /** Connects anew, so that the cloud sees what changed here. */
  reconnect(why: string): void {
    this.#asked = why;
    this.#socket?.close(1000, "reconnect");
  }

  stop(): void {
    this.#stopping.abort();
    this.#socket?.close(1000, "daemon stopped");
    const socket = this.#socket;
    setTimeout(() => socket?.terminate(), 500).unref();
  }

  #once(): Promise<{ end: ConnectionEnd; sound: boolean }> {
    const address = new URL(`/api/daemon/connect?endpoint=${this.#identity.endpointId}`, this.#identity.url);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address, {
      handshakeTimeout: answerMs,
      perMessageDeflate: false,
      maxPayload,
      headers: { "user-agent": `switchyard-daemon/${daemonVersion}` },
    });
    this.#socket = socket;
    this.#asked = null;
    const { promise, resolve } = Promise.withResolvers<ConnectionEnd>();
    let heardMs = Date.now();
    let welcomedMs: number | null = null;
    let worked = false;
    let pinger: NodeJS.Timeout | undefined;
    const lose = (reason: string): void => {
      resolve({ kind: "lost", reason });
      socket.terminate();
    };
    const patience = setTimeout(() => lose("the cloud did not finish its greeting"), answerMs * 2);

    socket.on("unexpected-response", (request, response) => {
      resolve({ kind: "status", status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] ?? null });
      response.resume();
      request.destroy();
    });
    socket.on("error", (error) => resolve({ kind: "lost", reason: error.message || String(error) }));
    socket.on("close", (code, reason) => {
      if (this.#asked !== null) resolve({ kind: "asked", reason: this.#asked });
      else if (code === 1006) resolve({ kind: "lost", reason: "the line broke" });
      else resolve({ kind: "closed", code, reason: reason.toString() });
    });
    socket.on("message", (data, isBinary) => {
      heardMs = Date.now();
      const text = isBinary ? "" : data.toString();
      if (text === "pong") return;
      const frame = this.#read(socket, text);
      if (frame === null) return;
      if (frame.t === "challenge") {
        this.#answer(socket, frame);
      } else if (frame.t === "welcome") {
        welcomedMs = Date.now();
        clearTimeout(patience);
        const pingMs = Math.min(10 * limits.daemonPingMs, Math.max(100, frame.pingMs));
        pinger = setInterval(() => {
          if (Date.now() - heardMs > 2 * pingMs) lose(`no answer for ${Math.round((2 * pingMs) / 1000)} s`);
          else socket.send("ping");
        }, pingMs);
        this.#handlers.onState("connected", frame.name);
        this.#log({ event: "connected", text: `connected as "${frame.name}"`, endpointId: this.#identity.endpointId, epoch: frame.epoch });
        this.#handlers.onWelcome(frame, this.#link(socket));
      } else if (welcomedMs !== null) {
        worked = true;
        this.#handlers.onFrame(frame);
      }
    });

    return promise.then((end) => {
      clearTimeout(patience);
      clearInterval(pinger);
      if (this.#socket === socket) this.#socket = null;
      socket.removeAllListeners("message");
      if (welcomedMs !== null) this.#handlers.onDown();
      return { end, sound: worked || (welcomedMs !== null && Date.now() - welcomedMs > soundMs) };
    });
  }

  #link(socket: WebSocket): Link {
    return {
      send: (frame, onWritten) => {
        // A send on a socket that just closed is repeated after the reconnect.
        if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame), (error) => (error ? undefined : onWritten()));
      },
      bufferedBytes: () => socket.bufferedAmount,
    };
  }

  #answer(socket: WebSocket, challenge: Extract<CloudFrame, { t: "challenge" }>): void {
    if (challenge.v !== daemonProtocolVersion) {
      socket.close(daemonClose.version, `this daemon speaks version ${daemonProtocolVersion}`);
      return;
    }
    const hello: DaemonFrame = {
      t: "hello",
      v: daemonProtocolVersion,
      endpointId: this.#identity.endpointId,
      signature: signHello(this.#identity, challenge.nonce),
      ...this.#handlers.hello(),
    };
    socket.send(JSON.stringify(hello));
  }

  /** A frame, or null when it could not be read; then the socket is closed with the field's name, unless it is a `run`, which is refused. */
  #read(socket: WebSocket, text: string): CloudFrame | null {
    let raw: unknown;
    let problem = "the frame is not JSON";
    try {
      raw = JSON.parse(text);
      const parsed = cloudFrame.safeParse(raw);
      const tooLarge = Buffer.byteLength(text) > limits.maxFrameBytes;
      if (parsed.success && !tooLarge) return parsed.data;
      problem = parsed.success || tooLarge ? `the frame is larger than ${limits.maxFrameBytes} bytes` : firstIssue(parsed.error, "frame");
      if (this.#handlers.onUnreadable(raw, problem)) return null;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    this.#log({ event: "warning", text: `the cloud sent a frame that this daemon cannot read (${problem}): update the daemon` });
    socket.close(daemonClose.protocolError, closeReason(problem));
    return null;
  }
}
