// The router's acts on tasks, over the real objects of the deployment: facts from elsewhere, what becomes of a failed task, a person's
// word on an outcome, and a stop.
import { evictDurableObject } from "cloudflare:test";
import { afterEach, expect, test } from "vitest";
import { boardName, routerName } from "../../src/env.ts";
import type { Logged, RouterEvent, TaskEvent } from "../../src/protocol/events.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { member, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, ok } from "./console-support.ts";
import { holdsAtRest, objects, type ScriptedReply, script, scriptModel, unique } from "./router-lab.ts";

type Call = { tool: string; input: object };
const router = () => objects.ROUTER.getByName(routerName);
const worker = (taskId: string) => objects.WORKER_SESSION.getByName(taskId);
const routerEvents = async (about: string) =>
  ((await router().events({ afterSeq: 0, limit: 2000, about })) as Logged<RouterEvent>[]).map(({ event }) => event);
const taskEvents = async (taskId: string) =>
  ((await worker(taskId).events({ afterSeq: 0, limit: 2000 })) as Logged<TaskEvent>[]).map(({ event }) => event);
const cardOf = async (taskId: string) => (await worker(taskId).describe())?.card;
const untilStatus = (taskId: string, status: string) => until(`${taskId} ${status}`, async () => (await cardOf(taskId))?.status === status);
const goalOf = (token: string): string => `Work. ${token}`;
const workerScript = (token: string, replies: ScriptedReply[]) => scriptModel([goalOf(token), "You are a worker session"], replies);
const workerBodies = async (token: string): Promise<string[]> =>
  ((await (await fetch(`http://model.test/control/requests?contains=${token}`)).json()) as string[]).filter((body) =>
    body.includes("You are a worker session"),
  );
const wait: Call = { tool: "wait", input: { reason: "for more" } };
const report = (kind: "done" | "failed", text: string): Call => ({ tool: "report", input: { kind, text, confidence: 0.9 } });

const threads = new Set<string>();
// No channel is under test: what is said stays in the ledger of a source without one.
const said = (name: string, thread: string, text: string): Trigger => ({
  ...triggerOf({ name, by: member, thread, text }),
  source: "github",
});

/** Said in a thread; the router's model answers with these calls, which settle it. */
async function say(trigger: Trigger, calls: (settles: string[]) => Call[]): Promise<void> {
  threads.add(trigger.threadId);
  await script(trigger.id, [{ calls: calls([trigger.id]) }]);
  await objects.THREAD.getByName(trigger.threadId).append({ trigger, verdict: { outcome: "request", rule: "test", reason: "asked" } });
  await until(`a decision on ${trigger.id}`, async () =>
    (await routerEvents(trigger.id)).some((event) => event.kind === "router.decision" && event.settles.includes(trigger.id)),
  );
}

/** Work is asked for in an issue of its own. */
async function dispatched(token: string): Promise<string> {
  const asked = said(`${token}-asked`, token, `please work ${token}`);
  await say(asked, (settles) => [{ tool: "dispatch", input: { settles, title: `Work ${token}`, goal: goalOf(token) } }]);
  const decision = (await routerEvents(asked.id)).find((event) => event.kind === "router.decision");
  const taskId = decision?.kind === "router.decision" ? (decision.taskId ?? "") : "";
  await until("the first step", async () => (await workerBodies(token)).length > 0);
  return taskId;
}

afterEach(() => holdsAtRest(threads));

test("[RD4] facts from another thread reach a running task at its next step, once, over evictions, and nothing else of that thread does", async () => {
  const token = unique();
  await workerScript(token, [{ calls: [wait] }, { calls: [wait] }, { calls: [report("done", "Done with 5433.")] }]);
  const taskId = await dispatched(token);
  await evictDurableObject(worker(taskId) as never);
  const elsewhere = said(`${token}-news`, `${token}b`, `by the way, the port moved to 5433, and lunch is at noon ${token}b`);
  await say(elsewhere, (settles) => [{ tool: "deliver", input: { settles, task: taskId, facts: "The port is 5433 now." } }]);
  const next = await until("the facts in a request", async () =>
    (await workerBodies(goalOf(token).replaceAll(" ", "%20"))).find((body) => body.includes("The port is 5433 now.")),
  );
  expect(next.split("The port is 5433 now.")).toHaveLength(2);
  expect(next).not.toContain("lunch");
  await evictDurableObject(router() as never);
  // The thread where it was said stays the router's.
  await say(said(`${token}-more`, `${token}b`, `never mind ${token}b`), (settles) => [
    { tool: "record", input: { settles, reason: "talk" } },
  ]);
  await objects.THREAD.getByName(said("x", token, "").threadId).append({
    trigger: said(`${token}-end`, token, `finish ${token}`),
    verdict: { outcome: "request", rule: "test", reason: "asked" },
  });
  await untilStatus(taskId, "done");
  expect((await taskEvents(taskId)).filter((event) => event.kind === "task.inbox" && event.item === "notice")).toHaveLength(1);
});

test("[RD8] [WC3] what failed is tried once more in other words, then by another profile, then a human is asked, whose answer is said", async () => {
  const token = unique();
  const failure = (n: number): string => `It broke the ${n}. time ${token}.`;
  await workerScript(token, [{ calls: [wait] }, ...[1, 2, 3].map((n) => ({ calls: [report("failed", failure(n))] }))]);
  const taskId = await dispatched(token);
  const decide = (n: number, call: Call) => script(failure(n), [{ calls: [call] }]);
  const resolve = (input: object): Call => ({ tool: "resolve", input: { settles: ["$rep"], task: taskId, ...input } });
  await decide(1, resolve({ how: "retry", note: "Start from a clean checkout this time." }));
  await decide(2, resolve({ how: "reroute", profile: "researcher", note: "Find out why it breaks." }));
  await decide(3, { tool: "ask_human", input: { settles: ["$rep"], question: `It breaks each time. What now? ${token}` } });
  const { threadId } = said("x", token, "");
  const go = { trigger: said(`${token}-go`, token, "go on"), verdict: { outcome: "request" as const, rule: "test", reason: "asked" } };
  await objects.THREAD.getByName(threadId).append(go);
  await until("the second failure", async () => (await taskEvents(taskId)).some((event) => event.kind === "task.hand_off"));
  await evictDurableObject(worker(taskId) as never);
  await evictDurableObject(router() as never);
  const notice = await until("the question", async () =>
    (await objects.BOARD.getByName(boardName).snapshot()).notices.find((each) => each.kind === "question" && each.text.includes(token)),
  );
  const bodies = await workerBodies(goalOf(token).replaceAll(" ", "%20"));
  expect(bodies).toHaveLength(4);
  expect(bodies.map((body) => body.includes("Start from a clean checkout this time."))).toEqual([false, false, true, true]);
  expect(bodies.map((body) => body.includes("Find out why it breaks."))).toEqual([false, false, false, true]);
  // Another profile has other tools.
  expect(bodies.map((body) => body.includes('"write_file"'))).toEqual([true, true, true, false]);
  expect((await taskEvents(taskId)).filter((event) => event.kind === "task.reopened")).toHaveLength(2);
  expect((await taskEvents(taskId)).flatMap((event) => (event.kind === "task.hand_off" ? [[event.from, event.to]] : []))).toEqual([
    ["general", "researcher"],
  ]);
  await ok(asOperator("POST", `notices/${notice.id}/answer`, { text: "Leave it until Monday." }));
  await until("the answer in the thread", async () =>
    (await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 100 })).rows.some(
      (row) => row.kind === "outbound" && row.outbound.text === "Leave it until Monday.",
    ),
  );
});

test("[RD8] a person's word on an outcome, and a stop that is asked for in words, reach the task by the router", async () => {
  const token = unique();
  await workerScript(token, [{ calls: [report("done", "The gate is oiled.")] }]);
  const taskId = await dispatched(token);
  await untilStatus(taskId, "done");
  await until(
    "the thread is free",
    async () =>
      (await objects.THREAD.getByName(said("x", token, "").threadId).read({ afterSeq: 0, limit: 1 })).info.subscribers.length === 0,
  );
  const verdict = (name: string, how: "accept" | "reject") =>
    say(said(`${token}-${name}`, token, `${name} ${token}`), (settles) => [{ tool: "resolve", input: { settles, task: taskId, how } }]);
  await verdict("that is not what I wanted", "reject");
  await until("rejected", async () => (await cardOf(taskId))?.accepted === false);
  await evictDurableObject(worker(taskId) as never);
  await verdict("no, it is fine after all", "accept");
  await until("accepted", async () => (await cardOf(taskId))?.accepted === true);

  const other = unique();
  await workerScript(other, [{ calls: [wait] }]);
  const running = await dispatched(other);
  await until("it waits", async () => (await cardOf(running))?.status === "waiting");
  await evictDurableObject(router() as never);
  await say(said(`${other}-stop`, `${other}b`, `stop what runs for ${other}b`), (settles) => [
    { tool: "cancel", input: { settles, task: running, reason: "asked to stop" } },
  ]);
  await untilStatus(running, "cancelled");
  expect((await taskEvents(running)).flatMap((event) => (event.kind === "task.cancel" ? [event.reason] : []))).toEqual(["asked to stop"]);
});
