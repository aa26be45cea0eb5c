// What tests of the router need: an object of its own, rows to deliver, a scripted model, and looks into log and effects.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect } from "vitest";
import { makeId } from "../../src/core/ids.ts";
import type { EffectRow } from "../../src/core/router-plan.ts";
import { type Env, readConfig, routerName } from "../../src/env.ts";
import type { Logged, RouterEvent } from "../../src/protocol/events.ts";
import type { ObjectRpc, RouterRpc } from "../../src/protocol/rpc.ts";
import type { ThreadRow } from "../../src/protocol/thread.ts";
import type { Trigger, Verdict } from "../../src/protocol/trigger.ts";
import { checkHistory, type ObjectLog } from "../support/history.ts";
import { type TriggerParts, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";

/** The real bindings: a test may put its own in their place for the objects under test. */
export const objects: Env = { ...(env as unknown as Env) };

let count = 0;
/** A word that occurs in nothing else. */
export const unique = (): string => `word${Date.now().toString(36)}n${++count}`;

export type Lab = { token: string; readonly router: RouterRpc & { fetch(request: Request): Promise<Response> } };

const made: Lab[] = [];

// Whatever a test did, the logs of its routers must hold every rule.
afterEach(async () => {
  for (const lab of made.splice(0)) {
    const logged = await lab.router.events({ afterSeq: 0, limit: 20_000 });
    expect(checkHistory([{ object: `router-${lab.token}`, kind: "router", events: logged }])).toEqual([]);
  }
});

/** When all is at rest: the logs of these threads, of the tasks that followed them, and of the deployment's router hold every rule. */
export async function holdsAtRest(threads: Iterable<string>): Promise<void> {
  const read = async (kind: ObjectLog["kind"], object: string, from: ObjectRpc): Promise<ObjectLog> => ({
    object,
    kind,
    events: await from.events({ afterSeq: 0, limit: 20_000 }),
  });
  let found: string[] = [];
  const look = async (): Promise<boolean> => {
    const logs = await Promise.all([...threads].map((id) => read("thread", id, objects.THREAD.getByName(id))));
    const events = logs.flatMap((log) => log.events.map(({ event }) => event));
    const followers = new Set(events.flatMap((event) => (event.kind === "thread.subscribed" ? [event.taskId] : [])));
    const tasks = await Promise.all([...followers].map((id) => read("task", id, objects.WORKER_SESSION.getByName(id))));
    found = checkHistory([await read("router", routerName, objects.ROUTER.getByName(routerName)), ...logs, ...tasks]);
    return found.length === 0;
  };
  await until("a history without a violation", look, 5_000).catch(() => expect(found).toEqual([]));
}

/** A router of its own; `token` goes into the texts by which its model is scripted. Its model has two seconds for an answer. */
export async function newLab(): Promise<Lab> {
  const token = unique();
  const lab: Lab = {
    token,
    // A stub of an object that crashed stays broken: each use takes a new one.
    get router() {
      return objects.ROUTER.getByName(`router-${token}`);
    },
  };
  made.push(lab);
  await modelTimeout(lab, 2_000);
  return lab;
}

export const modelTimeout = (lab: Lab, timeoutMs: number): Promise<void> =>
  runInDurableObject(lab.router as never, (instance: never) => {
    readConfig((instance as { env: Env }).env).model.router.timeoutMs = timeoutMs;
  });

const verdictOf = (outcome: "candidate" | "request" = "request"): Verdict => ({ outcome, rule: "test", reason: "asked" });

/** Puts a trigger into its thread, kept but for nobody's decision: a thread delivers to the deployment's router, not to this lab's. */
export async function append(parts: TriggerParts): Promise<{ trigger: Trigger; row: ThreadRow }> {
  const trigger = triggerOf(parts);
  const verdict = verdictOf(parts.outcome);
  const appended = await objects.THREAD.getByName(trigger.threadId).append({ trigger, verdict: { ...verdict, outcome: "record" } });
  const seq = "seq" in appended ? appended.seq : 0;
  return { trigger, row: { kind: "trigger", seq, atMs: Date.now(), trigger, verdict } };
}

/** The thread is the task's, as a dispatch makes it. */
export const give = (threadId: string, taskId: string): Promise<unknown> =>
  objects.THREAD.getByName(threadId).subscribe({ taskId, decisionId: makeId("dec", taskId) });

/** Appends to the thread and delivers to the lab's router. */
export async function say(lab: Lab, parts: TriggerParts): Promise<Trigger> {
  const { trigger, row } = await append(parts);
  await lab.router.deliver({ threadId: trigger.threadId, rows: [{ row, alsoWith: [] }], before: [], tasks: [] });
  return trigger;
}

export type ScriptedReply = {
  text?: string;
  calls?: { tool: string; input?: object; rawInput?: string }[];
  fault?: string;
  delayMs?: number;
  retryAfter?: number;
  usage?: number | null;
};

const control = async (path: string, init?: RequestInit): Promise<Response> => fetch(`http://model.test/control/${path}`, init);

/** What any mind's model answers to requests that hold all of `when`, in order. */
export async function scriptModel(when: string[], replies: readonly object[]): Promise<void> {
  await (await control("script", { method: "POST", body: JSON.stringify({ when, replies }) })).arrayBuffer();
}

/** The same of the router's model alone. */
export const script = (when: string | string[], replies: ScriptedReply[]): Promise<void> =>
  scriptModel(["ask_human", ...(Array.isArray(when) ? when : [when])], replies);

/** The bodies of the router's requests that hold a word, oldest first. */
export async function bodies(contains: string): Promise<string[]> {
  const all = (await (await control(`requests?contains=${contains}`)).json()) as string[];
  return all.filter((body) => body.includes("ask_human"));
}

export type SentMessage = { role: string; content: string | null; tool_calls?: { id: string }[]; tool_call_id?: string };
export const messagesOf = (body: string | undefined): SentMessage[] => (JSON.parse(body ?? "{}") as { messages: SentMessage[] }).messages;

export const events = async (lab: Lab): Promise<Logged<RouterEvent>[]> =>
  (await lab.router.events({ afterSeq: 0, limit: 1000 })) as Logged<RouterEvent>[];

export async function decisions(lab: Lab) {
  return (await events(lab)).flatMap(({ event }) => (event.kind === "router.decision" ? [event] : []));
}

/** Waits until a trigger or report is settled, and returns the decision that did it. */
export const decided = (lab: Lab, id: string, forMs?: number) =>
  until(`a decision on ${id}`, async () => (await decisions(lab)).find((decision) => decision.settles.includes(id)), forMs);

/** Rows of the router's own tables. */
export const rows = <T>(lab: Lab, query: string): Promise<T[]> =>
  runInDurableObject(
    lab.router as never,
    (_instance: unknown, state: DurableObjectState) => state.storage.sql.exec(query).toArray() as T[],
  );

export async function effects(
  lab: Lab,
): Promise<{ kind: string; state: EffectRow["state"]; effect: EffectRow["effect"]; error?: string }[]> {
  const all = await rows<{ effect: string; state: EffectRow["state"] }>(lab, "SELECT effect, state FROM effect ORDER BY rowid");
  return all.map((row) => {
    const effect = JSON.parse(row.effect) as EffectRow["effect"];
    return { kind: effect.kind, state: row.state, effect };
  });
}

/** Everything decided and carried out. */
export const settled = (lab: Lab) =>
  until("all effects of the router", async () => {
    const [all, { pending }] = await Promise.all([effects(lab), lab.router.overview()]);
    return pending === 0 && all.every((effect) => effect.state !== "pending");
  });

/** What was said in a thread, in order. */
export async function saidIn(threadId: string): Promise<{ kind: string; text: string; id: string }[]> {
  const { rows: all } = await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 200 });
  return all.flatMap((row) => (row.kind === "outbound" ? [{ kind: row.outbound.kind, text: row.outbound.text, id: row.outbound.id }] : []));
}
