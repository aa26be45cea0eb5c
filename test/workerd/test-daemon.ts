// The test's side of a machine: a key, a socket, and the frames that came. Speaks the wire protocol, nothing of the cloud's insides.

import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { vi } from "vitest";
import { makeId } from "../../src/core/ids.ts";
import type { Env } from "../../src/env.ts";
import type { Command, CommandResult, SettledCommand } from "../../src/protocol/command.ts";
import { type CloudFrame, type DaemonFrame, daemonProtocolVersion, type HelloFrame, helloText } from "../../src/protocol/daemon-frames.ts";
import type { EndpointEvent } from "../../src/protocol/events.ts";
import { createEnrolmentCode } from "../../src/storage/enrolment.ts";
import { migrated } from "../../src/storage/migrations.ts";

export const bindings = env as unknown as Env;
export const host = "switchyard.test";

export const request = (path: string, init: RequestInit = {}, at: string = host): Promise<Response> =>
  (exports as unknown as { default: Fetcher }).default.fetch(new Request(`http://${at}${path}`, init));

const base64 = (bytes: ArrayBuffer | Uint8Array): string =>
  btoa(Array.from(new Uint8Array(bytes as ArrayBuffer), (byte) => String.fromCharCode(byte)).join(""));

export type Keys = { publicKey: string; sign(text: string): Promise<string> };

export async function newKeys(): Promise<Keys> {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  return {
    publicKey: base64((await crypto.subtle.exportKey("raw", pair.publicKey)) as ArrayBuffer),
    sign: async (text) => base64(await crypto.subtle.sign("Ed25519", pair.privateKey, new TextEncoder().encode(text))),
  };
}

export const enrol = (body: unknown): Promise<Response> => request("/api/daemon/enrol", { method: "POST", body: JSON.stringify(body) });

export type Open = HelloFrame["open"];

export class TestDaemon {
  readonly endpointId: string;
  readonly keys: Keys;
  readonly #frames: CloudFrame[] = [];
  readonly #sockets: WebSocket[] = [];
  closed: { code: number; reason: string } | null = null;
  nonce = "";

  constructor(endpointId: string, keys: Keys) {
    this.endpointId = endpointId;
    this.keys = keys;
  }

  static async enrol(name: string): Promise<TestDaemon> {
    await migrated(bindings.DB);
    const keys = await newKeys();
    const code = await createEnrolmentCode(bindings.DB, Date.now());
    const response = await enrol({ code, name, publicKey: keys.publicKey, platform: "linux" });
    const { endpointId } = await response.json<{ endpointId: string }>();
    return new TestDaemon(endpointId, keys);
  }

  get stub() {
    return bindings.ENDPOINT.getByName(this.endpointId);
  }

  /** Dials, and returns when the challenge came. */
  async dial(at: string = host): Promise<void> {
    const response = await request(`/api/daemon/connect?endpoint=${this.endpointId}`, { headers: { upgrade: "websocket" } }, at);
    const socket = response.webSocket;
    if (!socket) throw new Error(`the connection was refused: ${response.status} ${await response.text()}`);
    this.closed = null;
    socket.accept();
    socket.addEventListener("message", ({ data }) => {
      if (data !== "pong") this.#frames.push(JSON.parse(data as string) as CloudFrame);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (socket === this.#sockets.at(-1)) this.closed = { code, reason };
    });
    this.#sockets.push(socket);
    this.nonce = (await this.next("challenge")).nonce;
  }

  async hello(open: Open = [], changes: { text?: string; v?: number; endpointId?: string; workspaces?: string[] } = {}): Promise<void> {
    const v = changes.v ?? daemonProtocolVersion;
    const text = changes.text ?? helloText(v, this.endpointId, this.nonce, host);
    this.send({
      t: "hello",
      v,
      endpointId: changes.endpointId ?? this.endpointId,
      signature: await this.keys.sign(text),
      about: { version: "1.0.0", platform: "linux", sandbox: "bwrap" },
      workspaces: (changes.workspaces ?? ["app"]).map((name) => ({ name, path: `/srv/${name}` })),
      open,
    });
  }

  /** Dials and proves who it is; returns the welcome. */
  async connect(open: Open = []): Promise<Extract<CloudFrame, { t: "welcome" }>> {
    await this.dial();
    await this.hello(open);
    return this.next("welcome");
  }

  send(frame: DaemonFrame): void {
    this.raw(JSON.stringify(frame));
  }

  raw(data: string | ArrayBuffer): void {
    this.#sockets.at(-1)?.send(data);
  }

  output(commandId: string, offset: number, data: string | Uint8Array): void {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    this.send({ t: "output", commandId, offset, data: base64(bytes) });
  }

  result(commandId: string, outputBytes: number, changes: Partial<CommandResult> = {}): void {
    const result = { commandId, outcome: "exited", exitCode: 0, outputBytes, truncatedBytes: 0, startedMs: 1, endedMs: 2 } as const;
    this.send({ t: "result", result: { ...result, ...changes } });
  }

  hangUp(): void {
    this.#sockets.at(-1)?.close(1000, "bye");
  }

  /** Takes the next frame of this kind; frames before it stay. */
  async next<T extends CloudFrame["t"]>(t: T): Promise<Extract<CloudFrame, { t: T }>> {
    return vi.waitFor(() => {
      const at = this.#frames.findIndex((frame) => frame.t === t);
      if (at < 0) throw new Error(`no ${t} among ${JSON.stringify(this.#frames)}; closed: ${JSON.stringify(this.closed)}`);
      return this.#frames.splice(at, 1)[0] as Extract<CloudFrame, { t: T }>;
    }, 5_000);
  }

  /** Takes every frame that came. */
  takeAll(): CloudFrame[] {
    return this.#frames.splice(0);
  }

  /** Kinds of the frames that came and were not taken. */
  seen(): string[] {
    return this.#frames.map((frame) => frame.t);
  }

  async closing(): Promise<{ code: number; reason: string }> {
    return vi.waitFor(() => {
      if (!this.closed) throw new Error("still open");
      return this.closed;
    }, 5_000);
  }

  async events(): Promise<EndpointEvent[]> {
    return (await this.stub.events({ afterSeq: 0, limit: 1000 })).map(({ event }) => event as EndpointEvent);
  }

  /** The states that a command went through, as the event log tells them. */
  async states(commandId: string): Promise<string[]> {
    return (await this.events()).flatMap((event) =>
      event.kind === "endpoint.command" && event.commandId === commandId ? [event.state] : [],
    );
  }
}

let made = 0;

export const commandFor = (daemon: TestDaemon, taskId: string, changes: Partial<Command> = {}): Command => ({
  commandId: `cmd_${daemon.endpointId.slice(3)}-${++made}`,
  taskId,
  epoch: 1,
  spec: { kind: "shell", workspace: "app", script: "npm test" },
  authority: "member",
  tainted: false,
  timeoutMs: 1000,
  notAfterMs: Date.now() + 3_600_000,
  atMs: Date.now(),
  ...changes,
});

export const newTask = (): string => makeId("tsk", "endpoint-test", ++made);

/** What the worker sessions, the router and the board were told by an endpoint. */
export type Told = {
  settled: SettledCommand[];
  states: { taskId: string; commandId: string; state: string; machine: string; online: boolean }[];
  stopped: { taskId: string; endpointId: string; epoch: number; offline: boolean }[];
  machines: { name: string; online: boolean; revoked: boolean; revision: number; workspaces: string[] }[];
  board: unknown[];
  /** While it returns an error, worker sessions throw it. */
  workerFault: () => Error | null;
};

/** Puts recording receivers where the endpoint's other objects are. Survives eviction when it is called again after it. */
export async function listen(daemon: TestDaemon, told: Told = emptyTold()): Promise<Told> {
  const worker = (taskId: string) => {
    const check = (): void => {
      const fault = told.workerFault();
      if (fault) throw fault;
    };
    return {
      settle: async (input: SettledCommand) => {
        check();
        told.settled.push(input);
      },
      commandState: async (input: Omit<Told["states"][number], "taskId">) => {
        check();
        told.states.push({ taskId, ...input });
      },
      stopped: async (input: Omit<Told["stopped"][number], "taskId">) => {
        check();
        told.stopped.push({ taskId, ...input });
      },
    };
  };
  const fakes = {
    WORKER_SESSION: { getByName: worker },
    ROUTER: { getByName: () => ({ machine: async (input: Told["machines"][number]) => void told.machines.push(input) }) },
    BOARD: { getByName: () => ({ change: async (input: unknown[]) => void told.board.push(...input) }) },
  };
  await runInDurableObject(daemon.stub as unknown as DurableObjectStub, (instance) => {
    const { env: own } = instance as unknown as { env: Env };
    for (const [name, value] of Object.entries(fakes)) Object.defineProperty(own, name, { value, configurable: true, writable: true });
  });
  return told;
}

const emptyTold = (): Told => ({ settled: [], states: [], stopped: [], machines: [], board: [], workerFault: () => null });
