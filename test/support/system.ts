// The whole system as real processes: workerd with its objects on a folder, the shipped daemon, stand-ins on loopback; killed and restarted on demand.
import type { ChildProcess } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Miniflare } from "miniflare";
import { ConsoleClient } from "../../src/local/console-client.ts";
import { daemonCommand, startDaemon } from "../../src/local/daemon-process.ts";
import { childrenNamed } from "../../src/local/processes.ts";
import { WidgetClient } from "../../src/local/widget-client.ts";
import { startWorker } from "../../src/local/worker.ts";
import type { Logged } from "../../src/protocol/events.ts";
import type { ObjectRpc } from "../../src/protocol/rpc.ts";
import type { WidgetRow } from "../../src/protocol/widget-frames.ts";

const webhookSecret = "s3cret";
export const operatorToken = "test-operator-token-of-the-system";

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createTcpServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** Polls until `probe` gives a value; the error of a time-out says what was missing. */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 30_000,
): Promise<T> {
  const deadlineMs = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadlineMs) throw new Error(`There was no ${what} within ${timeoutMs} ms.`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Counts the fault points as they are reached, and kills workerd (-9) at the armed one. */
export class FaultPoints {
  readonly reached = new Map<string, number>();
  readonly #server: Server;
  #armed: { point: string; occurrence: number; kill: () => void } | null = null;
  #fired = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(): Promise<FaultPoints> {
    const server = createServer();
    const points = new FaultPoints(server);
    server.on("request", (request, response) => {
      const point = (request.url ?? "/").slice(1);
      const count = (points.reached.get(point) ?? 0) + 1;
      points.reached.set(point, count);
      const armed = points.#armed;
      if (armed && armed.point === point && armed.occurrence === count) {
        points.#armed = null;
        points.#fired += 1;
        armed.kill();
        request.socket.destroy();
        return;
      }
      response.end("ok");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return points;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How often a kill happened: a kill test asserts that its point was reached. */
  get fired(): number {
    return this.#fired;
  }

  arm(point: string, occurrence: number, kill: () => void): void {
    this.reached.clear();
    this.#armed = { point, occurrence, kill };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export type SystemOptions = { bindings?: Record<string, string> };

/** The settings of a Worker whose GitHub and whose model are stand-ins. */
export const standIns = (github: { url: string }, model: { url: string }): Record<string, string> => ({
  GITHUB_TOKEN: "token",
  GITHUB_API_URL: github.url,
  MODEL_PROVIDER: "openai-compatible",
  MODEL_BASE_URL: `${model.url}/v1`,
  MODEL_API_KEY: "key",
  MODEL_NAME: "scripted",
});

/** A running deployment on a scratch folder. */
export class System {
  readonly folder = mkdtempSync(path.join(tmpdir(), "switchyard-system-"));
  readonly faults: FaultPoints;
  readonly port: number;
  readonly log: string[] = [];
  readonly #bindings: Record<string, string>;
  #worker: Miniflare | null = null;
  readonly daemons: ChildProcess[] = [];

  private constructor(port: number, faults: FaultPoints, bindings: Record<string, string>) {
    this.port = port;
    this.faults = faults;
    this.#bindings = bindings;
  }

  static async start(options: SystemOptions = {}): Promise<System> {
    const faults = await FaultPoints.listen();
    const system = new System(await freePort(), faults, {
      SESSION_SECRET: "system-session-secret-of-32-bytes",
      OPERATOR_TOKEN: operatorToken,
      GITHUB_WEBHOOK_SECRET: webhookSecret,
      FAULT_URL: faults.url,
      ...options.bindings,
    });
    await system.up();
    return system;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get console(): ConsoleClient {
    return new ConsoleClient(this.origin, operatorToken);
  }

  /** Starts the Worker on this system's folder. */
  async up(): Promise<void> {
    this.#worker = await startWorker({
      port: this.port,
      statePath: path.join(this.folder, "state"),
      bindings: this.#bindings,
      onLog: (line) => this.log.push(line),
    });
  }

  async down(): Promise<void> {
    await this.#worker?.dispose();
    this.#worker = null;
  }

  /** SIGKILL to workerd; the runtime's supervisor starts it again on the same folder and port. */
  killWorkerd(): void {
    for (const { pid } of childrenNamed("workerd")) process.kill(pid, "SIGKILL");
  }

  async cron(): Promise<void> {
    const worker = await this.#worker?.getWorker();
    await worker?.scheduled({ cron: "* * * * *" });
  }

  /** Enrols and runs the shipped daemon on a folder. */
  async daemon(workspace: string, options: { home?: string; env?: Record<string, string> } = {}): Promise<ChildProcess> {
    const home = options.home ?? path.join(this.folder, "daemon");
    const child = await startDaemon(this.console, {
      home,
      origin: this.origin,
      workspace,
      workspaceName: "work",
      unsandboxed: true,
      onLine: (line) => this.log.push(`daemon: ${line}`),
      ...(options.env === undefined ? {} : { env: options.env }),
    });
    this.daemons.push(child);
    return child;
  }

  daemonCommand(args: string[]): Promise<string> {
    return daemonCommand(path.join(this.folder, "daemon"), args);
  }

  /** The owner's conversation. */
  async owner(): Promise<WidgetClient> {
    return WidgetClient.connect(await this.console.ownerLink());
  }

  /** Posts a signed delivery as GitHub does. */
  async github(event: string, payload: unknown): Promise<void> {
    const body = JSON.stringify(payload);
    const response = await fetch(`${this.origin}/hooks/github`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": randomBytes(16).toString("hex"),
        "x-hub-signature-256": `sha256=${createHmac("sha256", webhookSecret).update(body).digest("hex")}`,
      },
      body,
    });
    if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`);
  }

  /** The event log of one object, straight from it. */
  async events(binding: "THREAD" | "ROUTER" | "WORKER_SESSION" | "ENDPOINT", name: string): Promise<Logged[]> {
    const namespace = await this.#worker?.getDurableObjectNamespace(binding);
    if (!namespace) throw new Error("The Worker is down.");
    const stub = namespace.get(namespace.idFromName(name)) as unknown as ObjectRpc;
    return stub.events({ afterSeq: 0, limit: 10_000 });
  }

  /** Sends a message as the owner, as the page's outbox does: again with the same id until it is acknowledged. */
  async sendSurely(text: string): Promise<void> {
    const clientMsgId = randomBytes(12).toString("base64url");
    await eventually(
      "acknowledgement",
      async () => {
        const client = await this.owner();
        try {
          const acked = client.until((frame) => (frame.t === "ack" && frame.clientMsgId === clientMsgId ? true : undefined), 5_000, "ack");
          client.send(text, client.rootThreadId, clientMsgId);
          return await acked;
        } finally {
          client.close();
        }
      },
      60_000,
    );
  }

  /** The owner's whole conversation as a page that was just opened shows it. */
  async conversation(): Promise<{ threadId: string; seq: number; row: WidgetRow }[]> {
    const client = await this.owner();
    const rows = new Map<string, { threadId: string; seq: number; row: WidgetRow }>();
    try {
      client.listen((frame) => {
        if (frame.t === "row") rows.set(`${frame.threadId} ${frame.seq}`, frame);
      });
      await client.until((frame) => (frame.t === "caught_up" ? true : undefined), 10_000, "end of the history");
    } finally {
      client.close();
    }
    return [...rows.values()];
  }

  async stop(): Promise<void> {
    for (const child of this.daemons) if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await this.down();
    await this.faults.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
