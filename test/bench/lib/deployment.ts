// The built Worker under miniflare, reached through a socket of its own, with the rows of its objects at hand.
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Miniflare } from "miniflare";
import { makeId } from "../../../src/core/ids.ts";
import { ConsoleClient } from "../../../src/local/console-client.ts";
import { startWorker } from "../../../src/local/worker.ts";
import type { Logged } from "../../../src/protocol/events.ts";
import type { GateRule } from "../../../src/protocol/gate.ts";
import type { ObjectRpc, WorkerSessionRpc } from "../../../src/protocol/rpc.ts";
import { type GitHubServer, startGitHubServer } from "../../support/github-server.ts";
import { type Counts, countsPath } from "../worker/counts.ts";
import { cpuSecondsOf, descriptorsOf, memoryBytesOf, newestRuntime, runtimeCpuMs } from "./runtimes.ts";

export const webhookSecret = "bench-webhook-secret";
export const genericSecret = "bench-generic-secret";
const operatorToken = "bench-operator-token-of-the-run";
export const place = "team/app";
const member = "member";

const scratch = (): string => mkdtempSync(path.join(tmpdir(), "switchyard-state-"));

/** Where the group chat of the generic webhook speaks from. */
export const chatPlace = "chat";
/** The body of a generic delivery. */
export type Said = { kind: string; text: string; thread: string; principal: { id: string; name: string; role: "member" } };
type Delivered = { id: string; outcome: string; verdict: string };

export type ObjectBinding = "THREAD" | "ROUTER" | "WORKER_SESSION" | "ENDPOINT" | "BOARD";
type Answer = { status: number; body: string };
type Started = Parameters<WorkerSessionRpc["start"]>[0];

export class Deployment {
  readonly origin: string;
  readonly console: ConsoleClient;
  readonly log: string[];
  readonly #worker: Miniflare;
  readonly #gitHub: GitHubServer;
  readonly #bridge: Server;
  readonly #statePath: string;
  readonly #pid: number;
  readonly #stubs = new Map<string, ObjectRpc>();
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64, keepAliveMsecs: 1_000 });

  private constructor(
    origin: string,
    worker: Miniflare,
    servers: { gitHub: GitHubServer; bridge: Server },
    statePath: string,
    log: string[],
  ) {
    this.origin = origin;
    this.console = new ConsoleClient(origin, operatorToken);
    this.#worker = worker;
    this.#gitHub = servers.gitHub;
    this.#bridge = servers.bridge;
    this.#statePath = statePath;
    this.#pid = newestRuntime();
    this.log = log;
  }

  /** Starts what is built in `dist`. */
  static async start(options: {
    modelUrl: string;
    scriptPath?: string;
    bindings?: Record<string, string>;
    /** The state of an earlier one. */
    statePath?: string;
  }): Promise<Deployment> {
    const gitHub = await startGitHubServer();
    gitHub.permit(place, member, "write");
    // Takes each answer of ours to the group chat.
    const bridge = createServer((request, response) => request.resume().on("end", () => response.writeHead(201).end()));
    await new Promise<void>((resolve) => bridge.listen(0, "127.0.0.1", resolve));
    const log: string[] = [];
    const statePath = options.statePath ?? scratch();
    const worker = await startWorker({
      port: 0,
      direct: true,
      statePath,
      bindings: {
        SESSION_SECRET: "bench-session-secret-of-32-bytes",
        OPERATOR_TOKEN: operatorToken,
        GITHUB_WEBHOOK_SECRET: webhookSecret,
        GENERIC_WEBHOOK_SECRET: genericSecret,
        GITHUB_TOKEN: "bench-token",
        GITHUB_API_URL: gitHub.url,
        GENERIC_REPLY_URL: `http://127.0.0.1:${(bridge.address() as AddressInfo).port}/reply`,
        MODEL_PROVIDER: "openai-compatible",
        MODEL_BASE_URL: options.modelUrl,
        MODEL_API_KEY: "bench",
        MODEL_NAME: "worker",
        ROUTER_MODEL_NAME: "router",
        WORKER_MODEL_NAME: "worker",
        // The load is what is measured, not the door's limits.
        DOOR_LIMIT_FACTOR: "100000",
        ...options.bindings,
      },
      ...(options.scriptPath === undefined ? {} : { scriptPath: options.scriptPath }),
      onLog: (line) => log.push(line),
    });
    const direct = await worker.unsafeGetDirectURL();
    return new Deployment(direct.origin, worker, { gitHub, bridge }, statePath, log);
  }

  /** What the platform would bill since the last look; only of the counted Worker. */
  async counts(): Promise<Counts> {
    return JSON.parse((await this.send(`${this.origin}${countsPath}`, "GET", "", {})).body) as Counts;
  }

  /** What the platform calls each minute. */
  async cron(): Promise<void> {
    await (await this.#worker.getWorker()).scheduled({ cron: "* * * * *" });
  }

  /** Seconds of CPU that this deployment's runtime used so far. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.#pid);
  }

  /** The same, finer. */
  cpuMs(): number {
    return runtimeCpuMs(this.#pid);
  }

  /** One signed delivery of GitHub. The answer says which trigger it became. */
  async deliver(event: string, deliveryId: string, payload: object): Promise<Delivered> {
    const body = JSON.stringify(payload);
    const signature = `sha256=${createHmac("sha256", webhookSecret).update(body).digest("hex")}`;
    return this.#delivered("/hooks/github", body, {
      "x-github-event": event,
      "x-github-delivery": deliveryId,
      "x-hub-signature-256": signature,
    });
  }

  /** One signed delivery of the group chat. */
  async say(deliveryId: string, said: Said): Promise<Delivered> {
    const body = JSON.stringify(said);
    const now = String(Math.floor(Date.now() / 1_000));
    const mac = createHmac("sha256", genericSecret).update(`${now}.${deliveryId}.${body}`).digest("hex");
    return this.#delivered(`/hooks/generic/${chatPlace}`, body, {
      "x-switchyard-id": deliveryId,
      "x-switchyard-timestamp": now,
      "x-switchyard-signature": `v1=${mac}`,
    });
  }

  async #delivered(path: string, body: string, headers: Record<string, string>): Promise<Delivered> {
    const answer = await this.post(path, body, { "content-type": "application/json", ...headers });
    if (answer.status !== 202) throw new Error(`a delivery was answered ${answer.status}: ${answer.body.slice(0, 300)}`);
    const trigger = (JSON.parse(answer.body) as { triggers?: Delivered[] }).triggers?.[0];
    if (!trigger) throw new Error(`a delivery became no trigger: ${answer.body.slice(0, 300)}`);
    return trigger;
  }

  post(path: string, body: string, headers: Record<string, string>): Promise<Answer> {
    return this.send(`${this.origin}${path}`, "POST", body, headers);
  }

  /** A request on the same keep-alive sockets, to any address; once more when a socket was closed as it was reused. */
  send(url: string, method: string, body: string, headers: Record<string, string>, again = true): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(url, { method, agent: this.#agent, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }));
        response.on("error", reject);
      });
      request.on("error", (error) => {
        if (again && request.reusedSocket) resolve(this.send(url, method, body, headers, false));
        else reject(error);
      });
      request.end(body);
    });
  }

  /** One object, past every door. */
  async object<T>(binding: ObjectBinding, name: string): Promise<T> {
    const namespace = await this.#worker.getDurableObjectNamespace(binding);
    return namespace.get(namespace.idFromName(name)) as unknown as T;
  }

  async sql(statement: string): Promise<void> {
    await (await this.#worker.getD1Database("DB")).prepare(statement).run();
  }

  /** A list as the console reads it, as JSON. */
  async list(of: "tasks" | "endpoints"): Promise<string> {
    const answer = await this.send(`${this.origin}/api/console/${of}`, "GET", "", { authorization: `Bearer ${operatorToken}` });
    if (answer.status !== 200) throw new Error(`a list was answered ${answer.status}: ${answer.body.slice(0, 200)}`);
    return answer.body;
  }

  memoryBytes(): number {
    return memoryBytesOf(this.#pid);
  }

  /** Files and sockets that its runtime has open: three for each object that is awake. */
  descriptors(): number {
    return descriptorsOf(this.#pid);
  }

  /** Made once: miniflare makes a stub by a call that stops this whole process until the runtime answers. */
  async #stub(binding: ObjectBinding, name: string): Promise<ObjectRpc> {
    const known = this.#stubs.get(`${binding} ${name}`) ?? (await this.object<ObjectRpc>(binding, name));
    this.#stubs.set(`${binding} ${name}`, known);
    return known;
  }

  /** The event log of one object, straight from it. */
  async events(binding: ObjectBinding, name: string, afterSeq = 0): Promise<Logged[]> {
    const stub = await this.#stub(binding, name);
    const all: Logged[] = [];
    for (;;) {
      const page = await stub.events({ afterSeq: all.at(-1)?.seq ?? afterSeq, limit: 2_000 });
      if (page.length === 0) return all;
      all.push(...page);
    }
  }

  /** A person presses Stop. False when the task has ended. */
  async cancel(taskId: string): Promise<boolean> {
    return /"cancel/.test(await this.#asOperator(`tasks/${taskId}/cancel`, {}));
  }

  /** Instead of the shipped rules of the gate. */
  async saveRules(rules: GateRule[]): Promise<void> {
    await this.#asOperator("rules", { version: 0, rules });
  }

  async #asOperator(path: string, body: object): Promise<string> {
    const headers = { "content-type": "application/json", authorization: `Bearer ${operatorToken}` };
    const answer = await this.post(`/api/console/${path}`, JSON.stringify(body), headers);
    if (answer.status > 299) throw new Error(`${path} was answered ${answer.status}: ${answer.body.slice(0, 200)}`);
    return answer.body;
  }

  /** A task as the router starts it, for a member's words: straight at its object. */
  async startTask(
    task: Pick<Started, "taskId" | "threadId" | "goal" | "maxModelCalls"> & { triggerId: string },
  ): Promise<WorkerSessionRpc> {
    const { taskId, threadId, triggerId, goal, maxModelCalls } = task;
    const session = await this.object<WorkerSessionRpc>("WORKER_SESSION", taskId);
    await session.start({
      taskId,
      decisionId: makeId("dec", taskId),
      title: "Work",
      goal,
      quote: { triggerId, from: { role: "member", id: member, name: member }, text: "Please." },
      authority: "member",
      tainted: false,
      profile: "general",
      endpoint: null,
      threadId,
      source: "github",
      place,
      maxModelCalls,
      atMs: Date.now(),
    });
    return session;
  }

  /** A person presses Continue. */
  async resume(taskId: string): Promise<void> {
    const session = await this.object<WorkerSessionRpc>("WORKER_SESSION", taskId);
    await session.resume({ by: { role: "owner", id: "operator", name: "Operator" }, modelCalls: 15 });
  }

  get port(): number {
    return Number(new URL(this.origin).port);
  }

  /** `kill -9` of the runtime; what it had made durable stays, and `Deployment.start({ statePath })` goes on with it. */
  async kill(): Promise<string> {
    process.kill(this.#pid, "SIGKILL");
    await this.#end();
    return this.#statePath;
  }

  async stop(): Promise<void> {
    await this.#end();
    rmSync(this.#statePath, { recursive: true, force: true });
  }

  async #end(): Promise<void> {
    this.#agent.destroy();
    await this.#worker.dispose();
    await this.#gitHub.close();
    this.#bridge.close();
    this.#bridge.closeAllConnections();
  }
}

const person = (login: string) => ({ login, id: 1, type: login.endsWith("[bot]") ? "Bot" : "User" });

const issueOf = (number: number, title: string, body: string) => ({
  number,
  id: 10_000 + number,
  title,
  body,
  html_url: `https://github.com/${place}/issues/${number}`,
  user: person(member),
  author_association: "MEMBER",
});

/** A member opens an issue: a thread of its own. */
export const issueOpened = (number: number, title: string, body: string): object => ({
  action: "opened",
  repository: { full_name: place, id: 7 },
  sender: person(member),
  issue: issueOf(number, title, body),
});

/** Somebody comments on it. */
export const commented = (number: number, id: number, body: string, login = member): object => ({
  action: "created",
  repository: { full_name: place, id: 7 },
  sender: person(login),
  issue: issueOf(number, `Issue ${number}`, ""),
  comment: {
    id,
    body,
    html_url: `https://github.com/${place}/issues/${number}#issuecomment-${id}`,
    user: person(login),
    author_association: login === member ? "MEMBER" : "NONE",
  },
});
