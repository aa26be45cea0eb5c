// What tests of a worker session need: a task, rows of its thread, a scripted model and the machine's answers.
import { env } from "cloudflare:workers";
import { afterEach, expect } from "vitest";
import { childId, makeId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import type { Env } from "../../src/env.ts";
import type { SettledCommand } from "../../src/protocol/command.ts";
import type { Logged, TaskEvent } from "../../src/protocol/events.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { WorkerSessionRpc } from "../../src/protocol/rpc.ts";
import type { TaskCard, TaskStart } from "../../src/protocol/task.ts";
import type { DeliveredRow } from "../../src/protocol/thread.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { checkHistory } from "../support/history.ts";

export const objects = env as unknown as Env;

export const member: Principal = { role: "member", id: "prs_member", name: "member" };
export const guest: Principal = { role: "guest", id: "guest-1", name: "guest" };
export const stranger: Principal = { role: "public", id: "stranger", name: "stranger" };

let count = 0;
/** A word that occurs in nothing else. */
const unique = (): string => `token${Date.now().toString(36)}x${++count}x${Math.floor(Math.random() * 1e9).toString(36)}`;

export type TestTask = {
  token: string;
  taskId: string;
  threadId: string;
  endpointId: string;
  start: TaskStart;
  stub: WorkerSessionRpc & { fetch(request: Request): Promise<Response> };
};

const made: string[] = [];

// Whatever a test did, the logs of its tasks must hold every rule.
afterEach(async () => {
  for (const taskId of made.splice(0)) {
    const logged = await objects.WORKER_SESSION.getByName(taskId).events({ afterSeq: 0, limit: 5000 });
    expect(checkHistory([{ object: taskId, kind: "task", events: logged }])).toEqual([]);
  }
});

/** A task whose goal holds a word of its own, by which its model is scripted. */
export function newTask(overrides: Partial<TaskStart> = {}): TestTask {
  const token = unique();
  const taskId = makeId("tsk", token);
  const threadId = threadIdOf("web", "widget", `topic:${taskId}`);
  const endpointId = makeId("ep", token);
  const start: TaskStart = {
    taskId,
    decisionId: makeId("dec", token),
    title: "Run the tests",
    goal: `Run the tests and say what fails. ${token}`,
    quote: { triggerId: triggerIdOf("web", `${token}-asked`, threadId), from: member, text: "run the tests" },
    authority: "member",
    tainted: false,
    profile: "default",
    endpoint: { endpointId, name: "studio-laptop", workspaces: ["app"] },
    threadId,
    source: "web",
    place: "widget",
    maxModelCalls: 15,
    atMs: Date.now(),
    ...overrides,
  };
  made.push(taskId);
  return { token, taskId, threadId, endpointId, start, stub: objects.WORKER_SESSION.getByName(taskId) };
}

export type ScriptedReply = {
  text?: string;
  calls?: { tool: string; input: object }[];
  fault?: string;
  delayMs?: number;
  retryAfter?: number;
  usage?: number | null;
};

/** What the model of this task answers, in order. */
export async function script(task: TestTask, replies: ScriptedReply[]): Promise<void> {
  const response = await fetch("http://model.test/control/script", {
    method: "POST",
    body: JSON.stringify({ when: [task.token, "You are a worker session"], replies }),
  });
  await response.arrayBuffer();
}

export type SentMessage = {
  role: string;
  content: string | null;
  tool_calls?: { id: string; function: { name: string } }[];
  tool_call_id?: string;
};

/** The messages of each request that the task's model got, oldest first. */
export async function requests(task: TestTask): Promise<SentMessage[][]> {
  const response = await fetch(`http://model.test/control/requests?contains=${task.token}`);
  const bodies = (await response.json()) as string[];
  // A crash may cut a request on its way: the stand-in keeps what came of it.
  return bodies.filter((body) => body.includes("You are a worker session")).flatMap(messagesOf);
}

function messagesOf(body: string): SentMessage[][] {
  try {
    return [(JSON.parse(body) as { messages: SentMessage[] }).messages];
  } catch {
    return [];
  }
}

/** Polls until `check` gives something. */
export async function until<T>(what: string, check: () => Promise<T | null | undefined | false>, timeoutMs = 15_000): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (performance.now() > endMs) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export const untilRequests = (task: TestTask, n: number): Promise<SentMessage[][]> =>
  until(`the model got ${n} requests`, async () => {
    const all = await requests(task);
    return all.length >= n ? all : null;
  });

export async function card(task: TestTask): Promise<TaskCard> {
  const described = await task.stub.describe();
  if (described === null) throw new Error("the task has not started");
  return described.card;
}

export const untilStatus = (task: TestTask, status: TaskCard["status"]): Promise<TaskCard> =>
  until(`the task is ${status}`, async () => {
    const now = await card(task);
    return now.status === status ? now : null;
  });

export const reports = async (task: TestTask) => (await task.stub.describe())?.reports ?? [];

export async function events<K extends TaskEvent["kind"]>(task: TestTask, kind: K): Promise<Extract<TaskEvent, { kind: K }>[]> {
  const all = (await task.stub.events({ afterSeq: 0, limit: 2000 })) as Logged<TaskEvent>[];
  return all.map(({ event }) => event).filter((event): event is Extract<TaskEvent, { kind: K }> => event.kind === kind);
}

/** The id of the command that a call of a step became; the stand-in names its calls itself. */
export async function commands(task: TestTask): Promise<string[]> {
  return (await events(task, "task.tool")).flatMap((event) => (event.phase === "intent" && event.commandId ? [event.commandId] : []));
}

export const untilCommands = (task: TestTask, n: number): Promise<string[]> =>
  until(`${n} commands were started`, async () => {
    const ids = await commands(task);
    return ids.length >= n ? ids : null;
  });

/** A row of the task's thread. */
export function row(task: TestTask, seq: number, text: string, from: Principal = member, more: Partial<Trigger> = {}): DeliveredRow {
  const deliveryId = `${task.token}-${seq}`;
  const trigger: Trigger = {
    id: triggerIdOf("web", deliveryId, task.threadId),
    source: "web",
    deliveryId,
    threadId: task.threadId,
    place: "widget",
    threadKey: `topic:${task.taskId}`,
    threadTitle: "Run the tests",
    kind: "message",
    principal: from,
    addressed: true,
    text,
    atMs: seq,
    hops: 0,
    ...more,
  };
  return {
    row: { kind: "trigger", seq, atMs: seq, trigger, verdict: { outcome: "request", rule: "test", reason: "test" } },
    alsoWith: [],
  };
}

/** Starts the task as the router does: its thread is there and holds what was asked. */
export async function begin(task: TestTask): Promise<{ started: boolean }> {
  const { row: asked } = row(task, 0, task.start.quote.text, task.start.quote.from, { id: task.start.quote.triggerId });
  if (asked.kind === "trigger")
    await objects.THREAD.getByName(task.threadId).append({
      trigger: asked.trigger,
      verdict: { outcome: "record", rule: "test", reason: "test" },
    });
  return task.stub.start(task.start);
}

/** Something that was said by us in the task's thread. */
export function said(task: TestTask, seq: number, text: string): DeliveredRow {
  const outbound = { id: childId("out", task.threadId, seq), threadId: task.threadId, kind: "reply" as const, text, hops: 0 };
  return { row: { kind: "outbound", seq, atMs: seq, outbound, state: "sent" }, alsoWith: [] };
}

export const deliver = (task: TestTask, ...rows: DeliveredRow[]): Promise<{ throughSeq: number }> =>
  task.stub.deliver({ threadId: task.threadId, rows });

/** How the machine's side of a command ends. */
export function settled(task: TestTask, commandId: string, text: string, exitCode: number | null = 0): SettledCommand {
  return {
    commandId,
    outcome: "exited",
    exitCode,
    outputBytes: text.length,
    truncatedBytes: 0,
    startedMs: 1000,
    endedMs: 1500,
    taskId: task.taskId,
    endpointId: task.endpointId,
    output: { text, spilled: false },
  };
}

/** A machine that is known and offline: it takes commands and runs none. */
export const enrol = (task: TestTask): Promise<void> =>
  objects.ENDPOINT.getByName(task.endpointId).enrol({
    endpointId: task.endpointId,
    name: "studio-laptop",
    publicKey: btoa("k".repeat(32)),
    platform: "linux",
  });

export const done = (text: string, confidence = 0.9) => ({ calls: [{ tool: "report", input: { kind: "done", text, confidence } }] });
export const run = (cmd: string) => ({ calls: [{ tool: "run_command", input: { script: cmd } }] });

/** Every tool call of a request has exactly one result, right after the message that made it. */
export function danglingCalls(messages: readonly SentMessage[]): string[] {
  const wrong: string[] = [];
  messages.forEach((message, i) => {
    const ids = (message.tool_calls ?? []).map((call) => call.id);
    const results = messages.slice(i + 1, i + 1 + ids.length).map((next) => next.tool_call_id);
    if (ids.join() !== results.join()) wrong.push(...ids);
  });
  return wrong;
}

/** The message of the error that a call ends with; empty when it ends well. A matcher on the call itself would touch the answer's proxy. */
export async function refusal(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
