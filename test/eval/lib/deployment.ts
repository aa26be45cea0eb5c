// One deployment of the built Worker in workerd, with the doors that people and programs come through, and the rows of its objects.
import { createHmac, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Miniflare } from "miniflare";
import { childId, ownerOf, threadIdOf, triggerIdOf } from "../../../src/core/ids.ts";
import { routerName } from "../../../src/env.ts";
import { WidgetClient } from "../../../src/local/widget-client.ts";
import { startWorker } from "../../../src/local/worker.ts";
import type { Logged } from "../../../src/protocol/events.ts";
import type { ObjectRpc, RouterRpc, ThreadRpc } from "../../../src/protocol/rpc.ts";
import { type GitHubServer, startGitHubServer } from "../../support/github-server.ts";
import { until } from "../../support/until.ts";
import type { Labelled } from "./labelled.ts";
import { agentLogin, doorOf, earlierOf, payloadOf, roleOf, roleOfHandle } from "./road.ts";

const secrets = {
  SESSION_SECRET: "eval-session-secret-of-32-bytes!",
  OPERATOR_TOKEN: "eval-operator-token-of-the-run",
  GITHUB_WEBHOOK_SECRET: "eval-github-secret",
  GENERIC_WEBHOOK_SECRET: "eval-generic-secret",
};
type Objects = { THREAD: ThreadRpc; ROUTER: RouterRpc; WORKER_SESSION: ObjectRpc };

/** What a door made of a message. `kept` is false where the gate left no trace of it. */
export type Delivered = { triggerId: string; threadId: string; kept: boolean };

export class EvalDeployment {
  readonly #worker: Miniflare;
  readonly #origin: string;
  readonly #gitHub: GitHubServer;
  readonly #forget: () => void;
  #lastNumber = 0;

  private constructor(worker: Miniflare, origin: string, gitHub: GitHubServer, forget: () => void) {
    this.#worker = worker;
    this.#origin = origin;
    this.#gitHub = gitHub;
    this.#forget = forget;
  }

  /** Starts what is built in `dist`. `model`: the variables that name a model. */
  static async start(model: Record<string, string>, onLog: (line: string) => void = () => {}): Promise<EvalDeployment> {
    const gitHub = await startGitHubServer({ login: agentLogin });
    const { statePath, forget } = scratch();
    try {
      const worker = await startWorker({
        port: 0,
        direct: true,
        statePath,
        bindings: {
          ...model,
          ...secrets,
          GITHUB_TOKEN: "eval-token",
          GITHUB_API_URL: gitHub.url,
          GITHUB_LOGIN: agentLogin,
          // Decisions are what is measured: what a task would do costs nothing.
          WORKER_MODEL_PROVIDER: "offline",
          DOOR_LIMIT_FACTOR: "1000",
        },
        onLog,
      });
      const { origin } = await worker.unsafeGetDirectURL();
      return new EvalDeployment(worker, origin, gitHub, forget);
    } catch (error) {
      await gitHub.close();
      forget();
      throw error;
    }
  }

  async object<K extends keyof Objects>(binding: K, name: string): Promise<Objects[K]> {
    const namespace = await this.#worker.getDurableObjectNamespace(binding);
    return namespace.get(namespace.idFromName(name)) as unknown as Objects[K];
  }

  async events(binding: keyof Objects, name: string, afterSeq = 0): Promise<Logged[]> {
    const object: ObjectRpc = await this.object(binding, name);
    return object.events({ afterSeq, limit: 2_000 });
  }

  /** A call of the console's API, as its operator. */
  async console<T>(method: "GET" | "POST" | "PUT", what: string, body?: unknown): Promise<T> {
    return this.#post<T>(method, `/api/console/${what}`, body === undefined ? null : JSON.stringify(body), {
      authorization: `Bearer ${secrets.OPERATOR_TOKEN}`,
    });
  }

  /** Rules and policies as they are to be tried, and a machine with nothing behind it: what is started waits. */
  async prepare({ rules, policies }: { rules: readonly object[] | null; policies: readonly object[] | null }): Promise<void> {
    if (rules !== null) await this.console("POST", "rules", { version: 0, rules });
    for (const policy of policies ?? []) {
      const { id, text, enabled = true } = policy as { id: string; text: string; enabled?: boolean };
      if (enabled) await this.console("POST", "policies", { id, version: 0, text, enabled });
    }
    const router = await this.object("ROUTER", routerName);
    await router.machine({ endpointId: "ep_eval", name: "build-01", online: true, workspaces: ["main"], revoked: false, revision: 1 });
  }

  /** What a message started ends with it, so that the next one meets an idle team. */
  async cancel(taskId: string): Promise<void> {
    await until(`an end of ${taskId}`, () =>
      this.console("POST", `tasks/${taskId}/cancel`, {}).then(
        () => true,
        () => false,
      ),
    );
  }

  /** The message with its earlier lines, in a thread of its own, through the door that its source has. */
  async deliver(one: Labelled): Promise<Delivered> {
    this.#lastNumber += 1;
    switch (doorOf(one)) {
      case "page":
        return this.#page(one);
      case "github":
        return this.#webhook(one, this.#lastNumber);
      case "generic":
        return this.#bridge(one, this.#lastNumber);
    }
  }

  async #page(one: Labelled): Promise<Delivered> {
    const { handle: name, role } = one.who;
    const { link, personId } =
      role === "guest"
        ? { link: `${this.#origin}/`, personId: "guest" }
        : await this.console<{ link: string; personId: string }>("POST", "people", { name, role });
    const page = await WidgetClient.connect(link);
    try {
      const threadId = page.rootThreadId;
      await this.#earlier(one, { threadId, source: "web", place: "widget", threadKey: `root:${personId}` });
      const clientMsgId = page.send(one.text);
      const triggerId = await until("the message in its thread", async () =>
        (await this.events("THREAD", threadId))
          .map(({ event }) => (event.kind === "thread.accepted" && event.trigger.externalId === clientMsgId ? event.trigger.id : undefined))
          .find((id) => id !== undefined),
      );
      return { triggerId, threadId, kept: true };
    } finally {
      page.close();
    }
  }

  async #webhook(one: Labelled, number: number): Promise<Delivered> {
    const place = one.repository ?? "";
    for (let n = 1; n < 10; n++) this.#gitHub.permit(place, `dev${n}`, "write");
    const { event, payload } = payloadOf(one, number);
    const noun = /^(?:pull|review)/.test(one.kind) ? "pull" : "issue";
    const threadKey = `${noun}:${number}`;
    await this.#earlier(one, { threadId: threadIdOf("github", place, threadKey), source: "github", place, threadKey });
    const body = JSON.stringify(payload);
    return this.#hook("/hooks/github", body, {
      "x-github-event": event,
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": `sha256=${hmac(secrets.GITHUB_WEBHOOK_SECRET, body)}`,
    });
  }

  async #bridge(one: Labelled, number: number): Promise<Delivered> {
    const place = one.kind === "message" ? "chat" : one.kind;
    const thread = `talk-${number}`;
    const threadKey = `thread:${thread}`;
    await this.#earlier(one, { threadId: threadIdOf("generic", place, threadKey), source: "generic", place, threadKey });
    const { handle: id } = one.who;
    const body = JSON.stringify({
      kind: one.kind,
      text: one.text,
      thread,
      addressed: one.addressed,
      principal: { id, name: id, role: roleOf(one) },
    });
    const event = randomUUID();
    const timestamp = String(Math.floor(Date.now() / 1000));
    return this.#hook(`/hooks/generic/${place}`, body, {
      "x-switchyard-id": event,
      "x-switchyard-timestamp": timestamp,
      "x-switchyard-signature": `v1=${hmac(secrets.GENERIC_WEBHOOK_SECRET, `${timestamp}.${event}.${body}`)}`,
    });
  }

  /** What was said before is there as rows that nobody has to decide: people's as kept messages, ours as what was sent. */
  async #earlier(one: Labelled, at: { threadId: string; source: string; place: string; threadKey: string }): Promise<void> {
    const earlier = earlierOf(one);
    if (earlier.length === 0) return;
    const thread = await this.object("THREAD", at.threadId);
    const verdict = { outcome: "record" as const, rule: "earlier", reason: "Said before." };
    const said = async (who: string, text: string, kind: string, n: number): Promise<void> => {
      const deliveryId = `earlier-${n}`;
      await thread.append({
        verdict,
        trigger: {
          ...at,
          id: triggerIdOf(at.source, deliveryId, at.threadId),
          deliveryId,
          threadTitle: at.threadKey,
          kind,
          principal: { role: roleOfHandle(who), id: who, name: who },
          addressed: false,
          text,
          atMs: Date.now(),
          hops: 0,
        },
      });
    };
    for (const [n, { who, text }] of earlier.entries()) {
      if (who !== agentLogin) await said(who, text, "message", n);
      else {
        // Nothing can be said in a thread in which nothing has happened.
        if (n === 0) await said("dev1", "", "opened", earlier.length);
        const asked = { triggerId: childId("trg", at.threadId, n) };
        await thread.post({ id: `out_${at.threadId.slice(4)}-${n}`, threadId: at.threadId, ...asked, kind: "reply", text, hops: 0 });
      }
    }
  }

  async #hook(where: string, body: string, headers: Record<string, string>): Promise<Delivered> {
    const answer = await this.#post<{ triggers?: { id: string; outcome: string }[] }>("POST", where, body, headers);
    const trigger = answer.triggers?.[0];
    if (!trigger) throw new Error(`A delivery became no trigger: ${JSON.stringify(answer).slice(0, 300)}`);
    const { id } = trigger;
    return { triggerId: id, threadId: ownerOf(id, "thr") ?? "", kept: trigger.outcome === "accepted" };
  }

  async #post<T>(method: string, where: string, body: string | null, headers: Record<string, string>): Promise<T> {
    const response = await fetch(`${this.#origin}${where}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      body,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${where} was answered ${response.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text) as T;
  }

  async stop(): Promise<void> {
    try {
      await this.#worker.dispose();
    } finally {
      await this.#gitHub.close();
      this.#forget();
    }
  }
}

/** A folder that is gone at the latest when this process ends, also by Ctrl-C: then the runtime's own handlers stop it first. */
function scratch(): { statePath: string; forget: () => void } {
  const statePath = mkdtempSync(path.join(tmpdir(), "switchyard-eval-"));
  const remove = () => rmSync(statePath, { recursive: true, force: true });
  process.on("exit", remove);
  return {
    statePath,
    forget: () => {
      process.off("exit", remove);
      remove();
    },
  };
}

const hmac = (secret: string, text: string): string => createHmac("sha256", secret).update(text).digest("hex");
