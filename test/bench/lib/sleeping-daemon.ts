// A machine whose commands only take time: it speaks the daemon's real protocol and starts no process. `sim-sleep 85000` ends after 85 s of virtual time.
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { WebSocket } from "ws";
import type { Command, CommandResult } from "../../../src/protocol/command.ts";
import { type CloudFrame, type DaemonFrame, daemonProtocolVersion, helloText } from "../../../src/protocol/daemon-frames.ts";
import type { Deployment } from "./deployment.ts";

const pingMs = 10_000;

type Running = { taskId: string; startedMs: number; timer: NodeJS.Timeout };

export class SleepingDaemon {
  /** When each task's commands were told to end, and when its last one did, wall clock. */
  readonly stops = new Map<string, number>();
  readonly ends = new Map<string, number>();
  readonly #socket: WebSocket;
  readonly #speed: number;
  readonly #running = new Map<string, Running>();
  readonly #pinger: NodeJS.Timeout;
  /** Why the line ended before it was closed here; a run whose machine went away measures nothing. */
  lost: string | null = null;

  private constructor(socket: WebSocket, speed: number) {
    this.#socket = socket;
    this.#speed = speed;
    // A silent line counts as a dead one.
    this.#pinger = setInterval(() => {
      if (socket.readyState === WebSocket.OPEN) socket.send("ping");
    }, pingMs);
  }

  static async connect(deployment: Deployment, speed: number): Promise<SleepingDaemon> {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64");
    const body = { code: await deployment.console.enrolmentCode(), name: "bench", publicKey: raw, platform: "linux" };
    const enrolled = await deployment.post("/api/daemon/enrol", JSON.stringify(body), { "content-type": "application/json" });
    const { endpointId } = JSON.parse(enrolled.body) as { endpointId: string };
    const address = new URL(`/api/daemon/connect?endpoint=${endpointId}`, deployment.origin);
    const socket = new WebSocket(address.href.replace("http", "ws"), { perMessageDeflate: false });
    const daemon = new SleepingDaemon(socket, speed);
    await new Promise<void>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("close", (code, reason) => {
        daemon.lost ??= `the line closed: ${code} ${reason.toString()}`;
        reject(new Error(daemon.lost));
      });
      socket.on("message", (data) => {
        const text = data.toString();
        if (text === "pong") return;
        const frame = JSON.parse(text) as CloudFrame;
        if (frame.t === "challenge") daemon.#hello(endpointId, frame.nonce, privateKey, address.host);
        else if (frame.t === "welcome") resolve();
        else daemon.#take(frame);
      });
    });
    return daemon;
  }

  close(): void {
    clearInterval(this.#pinger);
    this.lost ??= "closed here";
    for (const { timer } of this.#running.values()) clearTimeout(timer);
    this.#socket.close();
  }

  #send(frame: DaemonFrame): void {
    this.#socket.send(JSON.stringify(frame));
  }

  #hello(endpointId: string, nonce: string, key: KeyObject, host: string): void {
    const text = helloText(daemonProtocolVersion, endpointId, nonce, host);
    this.#send({
      t: "hello",
      v: daemonProtocolVersion,
      endpointId,
      signature: sign(null, Buffer.from(text, "utf8"), key).toString("base64"),
      about: { version: "0.1.0", platform: "linux", sandbox: "bwrap" },
      workspaces: [{ name: "app", path: "/srv/app" }],
      open: [],
    });
  }

  #take(frame: CloudFrame): void {
    if (frame.t === "run") this.#run(frame.command);
    else if (frame.t === "stop") this.#stop(frame.commandId);
    else if (frame.t === "stop_task") {
      this.stops.set(frame.taskId, Date.now());
      for (const [commandId, { taskId }] of this.#running) if (taskId === frame.taskId) this.#stop(commandId);
    }
  }

  #run({ commandId, taskId, spec }: Command): void {
    const virtualMs = spec.kind === "shell" ? Number(/^sim-sleep (\d+)/.exec(spec.script)?.[1] ?? 0) : 0;
    const startedMs = Date.now();
    this.#send({ t: "accepted", commandId });
    this.#send({ t: "started", commandId, atMs: startedMs });
    const timer = setTimeout(() => this.#end(commandId, { outcome: "exited", exitCode: 0 }), virtualMs / this.#speed);
    this.#running.set(commandId, { taskId, startedMs, timer });
  }

  #stop(commandId: string): void {
    this.#end(commandId, { outcome: "stopped", exitCode: null });
    this.#send({ t: "stopped", commandId });
  }

  #end(commandId: string, how: Pick<CommandResult, "outcome" | "exitCode">): void {
    const running = this.#running.get(commandId);
    if (!running) return;
    this.#running.delete(commandId);
    this.ends.set(running.taskId, Date.now());
    clearTimeout(running.timer);
    const result = { commandId, ...how, outputBytes: 0, truncatedBytes: 0, startedMs: running.startedMs, endedMs: Date.now() };
    this.#send({ t: "result", result });
  }
}
