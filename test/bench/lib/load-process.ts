// The load generator's own process: raw keep-alive connections, bodies signed before the clock starts.
import { createHmac } from "node:crypto";
import { connect, type Socket } from "node:net";
import type { Load, Loaded, Workload } from "./load.ts";
import { exponential, seeded } from "./statistics.ts";

type Request = { n: number; bytes: Buffer };

const place = "team/app";
const words = "The dialog of the settings page closes when one clicks into the field for the time zone, at least in my browser. ";
const hmac = (secret: string, text: string): string => createHmac("sha256", secret).update(text).digest("hex");

function raw(pathOf: string, headers: Record<string, string>, body: string): Buffer {
  const lines = Object.entries({ host: "bench", "content-type": "application/json", ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return Buffer.from(`POST ${pathOf} HTTP/1.1\r\n${lines.join("\r\n")}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** About 1 KB as GitHub sends it: an issue got a label. The gate keeps it and asks nobody, so that taking it in is all that is measured. */
function gitHubRequest(n: number, thread: number, secret: string): Buffer {
  const number = 1 + thread;
  const user = { login: "member", id: 1, type: "User" };
  const body = JSON.stringify({
    action: "labeled",
    label: { name: `label ${n}` },
    repository: { full_name: place, id: 7 },
    sender: user,
    issue: {
      number,
      id: 10_000 + number,
      title: `Issue ${number}`,
      body: words.repeat(5),
      html_url: `https://github.com/${place}/issues/${number}`,
      user,
      author_association: "MEMBER",
    },
  });
  const headers = { "x-github-event": "issues", "x-github-delivery": `bench-${n}`, "x-hub-signature-256": `sha256=${hmac(secret, body)}` };
  return raw("/hooks/github", headers, body);
}

/** About 1 KB as a chat's bridge sends it. */
function chatRequest(n: number, thread: number, secret: string): Buffer {
  const body = JSON.stringify({
    kind: "message.posted",
    thread: `room-${thread}`,
    title: `Room ${thread}`,
    text: `${words.repeat(7)}Message ${n}.`,
    principal: { id: `bridge-${n % 50}`, name: "Bridge", role: "bot" },
  });
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const id = `chat-${n}`;
  const headers = {
    "x-switchyard-id": id,
    "x-switchyard-timestamp": timestamp,
    "x-switchyard-signature": `v1=${hmac(secret, `${timestamp}.${id}.${body}`)}`,
  };
  return raw("/hooks/generic/chat", headers, body);
}

function requestsOf(workload: Workload): Request[] {
  if (workload.what === "bare") return [{ n: 0, bytes: raw(workload.keeps ? "/row" : "/", {}, JSON.stringify({ text: words.repeat(9) })) }];
  const { from, count, threads, firstThread, repeatEvery } = workload;
  const requests: Request[] = [];
  for (let n = from; n < from + count; n++) {
    const thread = firstThread + (n % threads);
    const bytes = thread % 2 === 0 ? gitHubRequest(n, thread, workload.gitHubSecret) : chatRequest(n, thread, workload.genericSecret);
    requests.push({ n, bytes });
    const earlier = requests.at(-10);
    if (repeatEvery > 0 && n % repeatEvery === 0 && earlier) requests.push(earlier);
  }
  return requests;
}

/** One connection, one request at a time. */
class Line {
  #socket: Socket | null = null;
  #answer = "";
  #done: ((answer: { status: number; body: string } | null) => void) | null = null;
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Connected before the clock starts: what is measured is the request. */
  connect(): Promise<void> {
    const socket = this.#open();
    this.#socket = socket;
    return new Promise((resolve) => {
      socket.once("connect", resolve);
      socket.once("close", () => resolve());
    });
  }

  /** Null when the connection broke. */
  send(bytes: Buffer): Promise<{ status: number; body: string } | null> {
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#answer = "";
      this.#socket ??= this.#open();
      this.#socket.write(bytes);
    });
  }

  #open(): Socket {
    const socket = connect(this.#port, "127.0.0.1").setNoDelay(true).setEncoding("latin1");
    const broken = (): void => {
      if (this.#socket === socket) this.#socket = null;
      this.#finish(null);
    };
    socket.on("data", (text: string) => {
      this.#answer += text;
      const body = wholeBody(this.#answer);
      if (body !== null) this.#finish({ status: Number(this.#answer.slice(9, 12)), body });
    });
    socket.on("error", broken);
    socket.on("close", broken);
    return socket;
  }

  #finish(answer: { status: number; body: string } | null): void {
    const done = this.#done;
    this.#done = null;
    done?.(answer);
  }

  close(): void {
    this.#socket?.destroy();
  }
}

/** The body when all of the answer has come; null before. */
function wholeBody(answer: string): string | null {
  const head = answer.indexOf("\r\n\r\n");
  if (head < 0) return null;
  const length = /\r\ncontent-length: (\d+)/i.exec(answer.slice(0, head))?.[1];
  const rest = answer.slice(head + 4);
  if (length === undefined) return rest.endsWith("0\r\n\r\n") ? rest : null;
  return rest.length >= Number(length) ? rest : null;
}

async function run(load: Load): Promise<Loaded> {
  const requests = requestsOf(load.workload);
  const endless = load.workload.what === "bare";
  const lines = Array.from({ length: load.connections }, () => new Line(load.port));
  const idle = [...lines];
  const loaded: Loaded = { latencies: [], accepted: 0, refused: 0, broken: 0, seconds: 0, acknowledged: [], sent: 0 };
  await Promise.all(lines.map((line) => line.connect()));
  process.send?.("started");
  const startMs = performance.now();
  const endMs = startMs + load.seconds * 1_000;
  let next = 0;
  const take = (): Request | undefined => (endless ? requests[0] : requests[next++]);
  const ask = async (line: Line, request: Request, scheduledMs: number): Promise<boolean> => {
    loaded.sent += 1;
    const answer = await line.send(request.bytes);
    if (answer === null) {
      loaded.broken += 1;
      return false;
    }
    if (answer.status !== 202) {
      loaded.refused += 1;
      return true;
    }
    loaded.accepted += 1;
    loaded.latencies.push(performance.now() - scheduledMs);
    if (load.keepIds) loaded.acknowledged.push({ n: request.n, id: /"id":"([^"]+)"/.exec(answer.body)?.[1] ?? "" });
    return true;
  };
  if (load.perSecond === null) {
    await Promise.all(
      lines.map(async (line) => {
        for (let request = take(); request !== undefined && performance.now() < endMs; request = take())
          if (!(await ask(line, request, performance.now()))) return;
      }),
    );
  } else await offer(load.perSecond, endMs, { idle, take, ask });
  loaded.seconds = (performance.now() - startMs) / 1_000;
  for (const line of lines) line.close();
  return loaded;
}

type Hands = {
  idle: Line[];
  take: () => Request | undefined;
  ask: (line: Line, request: Request, scheduledMs: number) => Promise<boolean>;
};

/** Arrivals at random times of one rate. What finds no idle connection waits here, and its time runs. */
function offer(perSecond: number, endMs: number, { idle, take, ask }: Hands): Promise<void> {
  const random = seeded(perSecond);
  const waiting: { request: Request; scheduledMs: number }[] = [];
  let underWay = 0;
  let nextMs = performance.now();
  let isOver = false;
  return new Promise((resolve) => {
    const go = (): void => {
      for (let line = idle.pop(); line !== undefined; line = idle.pop()) {
        const each = waiting.shift();
        if (each === undefined) {
          idle.push(line);
          return;
        }
        const used = line;
        underWay += 1;
        void ask(used, each.request, each.scheduledMs).then(() => {
          underWay -= 1;
          idle.push(used);
          go();
        });
      }
    };
    const tick = (): void => {
      const nowMs = performance.now();
      for (; nextMs <= nowMs && nextMs < endMs; nextMs += exponential(random, 1_000 / perSecond)) {
        const request = take();
        if (request) waiting.push({ request, scheduledMs: nextMs });
        else isOver = true;
      }
      go();
      if ((isOver || nowMs >= endMs) && underWay === 0 && waiting.length === 0) resolve();
      else setTimeout(tick, 1);
    };
    tick();
  });
}

process.on("message", (load: Load) => {
  void run(load).then((loaded) => process.send?.(loaded));
});
process.on("disconnect", () => process.exit(0));
