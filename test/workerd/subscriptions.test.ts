// Threads and workers, many to many, over the real objects of the deployment.
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { defaultRules, judge } from "../../src/core/gate.ts";
import { makeId, triggerIdOf } from "../../src/core/ids.ts";
import { type Env, routerName } from "../../src/env.ts";
import type { Logged, RouterEvent, TaskEvent, ThreadEvent } from "../../src/protocol/events.ts";
import type { TaskStart } from "../../src/protocol/task.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { member, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { holdsAtRest, scriptModel } from "./router-lab.ts";

const objects = env as unknown as Env;
let count = 0;
const unique = (): string => `sub${Date.now().toString(36)}n${++count}`;
type Call = { tool: string; input: object };

const workerScript = (token: string, replies: { calls: Call[]; delayMs?: number }[]) =>
  scriptModel(["run_command", `Work. ${token}`], replies);
const routerScript = (token: string, replies: { calls: Call[] }[]) => scriptModel(["ask_human", token], replies);
const requests = async (tool: string, token: string): Promise<string[]> =>
  ((await (await fetch(`http://model.test/control/requests?contains=${encodeURIComponent(token)}`)).json()) as string[]).filter((body) =>
    body.includes(`"${tool}"`),
  );
const wait: Call = { tool: "wait", input: { reason: "" } };
const done = (text: string): Call => ({ tool: "report", input: { kind: "done", text, confidence: 0.9 } });

const issueTrigger = (name: string, thread: string, text: string): Trigger => ({
  ...triggerOf({ name, by: member, thread, text }),
  // No channel is under test: what is said here stays in the ledger of the web.
  source: "github",
});
const touched = new Set<string>();
async function append(trigger: Trigger, outcome: "request" | "candidate" | "record" = "request") {
  touched.add(trigger.threadId);
  return objects.THREAD.getByName(trigger.threadId).append({ trigger, verdict: { outcome, rule: "test", reason: "asked" } });
}

afterEach(() => holdsAtRest(touched));

/** A task that follows a thread of its own and answers there. */
async function startTask(token: string, thread: string): Promise<{ taskId: string; threadId: string; asked: Trigger }> {
  const asked = issueTrigger(`${token}-asked`, thread, `please work ${token}`);
  await append(asked, "record");
  const taskId = makeId("tsk", token);
  const decisionId = makeId("dec", token);
  const start: TaskStart = {
    taskId,
    decisionId,
    title: `Work ${token}`,
    goal: `Work. ${token}`,
    quote: { triggerId: asked.id, from: member, text: asked.text },
    authority: "member",
    tainted: false,
    profile: "general",
    endpoint: null,
    threadId: asked.threadId,
    source: "github",
    place: asked.place,
    maxModelCalls: 15,
    atMs: 1,
  };
  await objects.THREAD.getByName(asked.threadId).subscribe({ taskId, decisionId, triggerId: asked.id });
  await objects.WORKER_SESSION.getByName(taskId).start(start);
  return { taskId, threadId: asked.threadId, asked };
}

const taskEvents = async (taskId: string): Promise<TaskEvent[]> =>
  ((await objects.WORKER_SESSION.getByName(taskId).events({ afterSeq: 0, limit: 2000 })) as Logged<TaskEvent>[]).map(({ event }) => event);
const threadEvents = async (threadId: string): Promise<ThreadEvent[]> =>
  ((await objects.THREAD.getByName(threadId).events({ afterSeq: 0, limit: 2000 })) as Logged<ThreadEvent>[]).map(({ event }) => event);
const decisionsOn = async (id: string) =>
  ((await objects.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 5000, about: id })) as Logged<RouterEvent>[]).flatMap(
    ({ event }) => (event.kind === "router.decision" && event.settles.includes(id) ? [event] : []),
  );
const status = async (taskId: string) => (await objects.WORKER_SESSION.getByName(taskId).describe())?.card.status;
const untilStatus = (taskId: string, wanted: string) => until(`${taskId} ${wanted}`, async () => (await status(taskId)) === wanted);
/** The last message of the newest request of a worker, as items. */
const itemsOf = (body: string | undefined): Record<string, unknown>[] =>
  (((JSON.parse(body ?? "{}") as { messages?: { content: string }[] }).messages ?? []).at(-1)?.content ?? "")
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("[W20] [R7] a thread shared by two workers reaches both at once, each row names the other, and the end of both leaves it", async () => {
  const [a, b] = [unique(), unique()];
  await workerScript(a, [{ calls: [wait] }, { calls: [wait] }, { calls: [done("a is done")] }]);
  const one = await startTask(a, a);
  await workerScript(b, [
    { calls: [{ tool: "subscribe", input: { thread: one.threadId, reason: "the same matter" } }] },
    { calls: [wait] },
    { calls: [{ tool: "unsubscribe", input: { thread: one.threadId, reason: "no longer needed" } }, wait] },
    { calls: [done("b is done")] },
  ]);
  const two = await startTask(b, b);
  await until("b follows", async () =>
    (await threadEvents(one.threadId)).some((event) => event.kind === "thread.subscribed" && event.taskId === two.taskId),
  );
  await until("b waits", async () => (await requests("run_command", `Work. ${b}`)).length >= 2);
  await evictDurableObject(objects.THREAD.getByName(one.threadId) as never);
  await evictDurableObject(objects.WORKER_SESSION.getByName(two.taskId) as never);
  const shared = issueTrigger(`${a}-shared`, a, `both of you ${a}`);
  await append(shared);
  for (const [token, other] of [
    [a, two.taskId],
    [b, one.taskId],
  ] as const) {
    const body = await until(`the row at ${token}`, async () =>
      (await requests("run_command", `Work. ${token}`)).find((each) => each.includes("both of you")),
    );
    const row = itemsOf(body).find((item) => item.item === "row");
    expect(row).toMatchObject({
      text: `both of you ${a}`,
      alsoWith: [{ task: other, status: expect.stringMatching(/^(?:waiting|running)$/) }],
    });
  }
  expect(await decisionsOn(shared.id)).toEqual([]);
  await until("b left", async () =>
    (await threadEvents(one.threadId)).some((event) => event.kind === "thread.unsubscribed" && event.taskId === two.taskId),
  );
  await append(issueTrigger(`${a}-later`, a, `only one of you ${a}`));
  await append(issueTrigger(`${b}-later`, b, `finish ${b}`));
  await untilStatus(one.taskId, "done");
  await untilStatus(two.taskId, "done");
  expect((await requests("run_command", `Work. ${b}`)).some((body) => body.includes("only one of you"))).toBe(false);
});

test("[W21] what two workers hand back reaches the router once, when the second has released it", async () => {
  const [a, b] = [unique(), unique()];
  const shared = issueTrigger(`${a}-odd`, a, `what about lunch ${a} ${b}`);
  const back: Call = { tool: "hand_back", input: { trigger: shared.id, reason: "lunch is not my task" } };
  // The row itself says by which id it is handed back.
  const shown: Call = { ...back, input: { ...back.input, trigger: "$trg" } };
  await workerScript(a, [{ calls: [wait] }, { calls: [shown, wait] }, { calls: [back, wait] }, { calls: [done("a")] }]);
  const one = await startTask(a, a);
  await workerScript(b, [
    { calls: [{ tool: "subscribe", input: { thread: one.threadId, reason: "x" } }] },
    { calls: [wait] },
    { calls: [wait] },
    { calls: [back, wait] },
  ]);
  const two = await startTask(b, b);
  await until("b waits", async () => (await requests("run_command", `Work. ${b}`)).length >= 2);
  await routerScript(shared.id, [{ calls: [{ tool: "record", input: { settles: [shared.id], reason: "lunch" } }] }]);
  await append(shared);
  const released = async () => (await threadEvents(one.threadId)).flatMap((event) => (event.kind === "thread.released" ? [event] : []));
  await until("a handed it back", async () => (await released()).length === 1);
  expect(await released()).toMatchObject([{ taskId: one.taskId, free: [] }]);
  expect(await decisionsOn(shared.id)).toEqual([]);
  await evictDurableObject(objects.THREAD.getByName(one.threadId) as never);
  await append(issueTrigger(`${b}-more`, b, `what do you say to that ${b}`));
  await until("the router decided", async () => (await decisionsOn(shared.id)).length > 0);
  expect(await released()).toMatchObject([
    { taskId: one.taskId, free: [] },
    { taskId: two.taskId, free: [expect.any(Number)] },
  ]);
  // Handed back once more: nobody hears of it twice.
  await append(issueTrigger(`${a}-more`, a, `again ${a}`));
  await until("a third step of a", async () => (await requests("run_command", `Work. ${a}`)).length >= 3);
  expect(await decisionsOn(shared.id)).toHaveLength(1);
  const problem = (await requests("ask_human", shared.id)).at(-1) ?? "";
  expect(problem).toContain("lunch is not my task");
});

test("[RD8] [W22] a reply in a finished topic opens the task again: it knows what it did, and gets what follows", async () => {
  const a = unique();
  await routerScript(a, [{ calls: [{ tool: "dispatch", input: { settles: ["$trg"], title: `Work ${a}`, goal: `Work. ${a}` } }] }]);
  await workerScript(a, [{ calls: [done(`first result ${a}`)] }]);
  const asked = issueTrigger(a, a, `do it ${a}`);
  await append(asked);
  const decision = await until("the dispatch", async () => (await decisionsOn(asked.id))[0]);
  const taskId = decision.taskId ?? "";
  await untilStatus(taskId, "done");
  await evictDurableObject(objects.WORKER_SESSION.getByName(taskId) as never);
  const reply = issueTrigger(`${a}-reply`, a, `and the other half too ${a}`);
  await routerScript(reply.id, [{ calls: [{ tool: "resolve", input: { settles: [reply.id], task: taskId, how: "reopen" } }] }]);
  await scriptModel(["run_command", `Work. ${a}`, "and the other half too"], [{ calls: [wait] }, { calls: [done(`second result ${a}`)] }]);
  await until("the thread is the router's again", async () =>
    (await threadEvents(asked.threadId)).some((event) => event.kind === "thread.unsubscribed"),
  );
  await append(reply);
  await until("the reopening", async () => (await taskEvents(taskId)).some((event) => event.kind === "task.reopened"));
  const again = await until("its next step", async () =>
    (await requests("run_command", `Work. ${a}`)).find((body) => body.includes("and the other half too")),
  );
  expect(again).toContain(`first result ${a}`);
  expect(await decisionsOn(reply.id)).toMatchObject([{ tool: "resolve", taskId }]);
  // What follows passes through, without the router.
  const follow = issueTrigger(`${a}-follow`, a, `with tabs ${a}`);
  await append(follow);
  await until("the second end", async () => (await taskEvents(taskId)).filter((event) => event.kind === "task.report").length === 2);
  await untilStatus(taskId, "done");
  expect(await decisionsOn(follow.id)).toEqual([]);
  const card = (await objects.WORKER_SESSION.getByName(taskId).describe())?.card;
  expect(card?.endedMs).toBeGreaterThan(0);
  expect((await taskEvents(taskId)).filter((event) => event.kind === "task.reopened")).toHaveLength(1);
});

test("[W20] plan A, asked for in the widget, becomes plan B by a comment in the pull request, and the worker adjusts", async () => {
  const a = unique();
  const pull = issueTrigger(`${a}-opened`, `pull${a}`, `the pull request ${a}`);
  await append(pull, "record");
  const by = { ...member, id: `prs_${a}` };
  const asked = triggerOf({ name: `${a}-asked`, by, text: `do it by plan A in the pull request ${a}` });
  await routerScript(asked.id, [
    { calls: [{ tool: "dispatch", input: { settles: [asked.id], title: `Plan ${a}`, goal: `Work. ${a} Carry out plan A.` } }] },
  ]);
  await workerScript(a, [
    { calls: [{ tool: "subscribe", input: { thread: pull.threadId, reason: "the work goes on there" } }] },
    { calls: [{ tool: "wait", input: { reason: "plan A is under way" } }] },
    { calls: [done(`Done by plan B ${a}.`)] },
  ]);
  await append(asked);
  const decision = await until("the dispatch", async () => (await decisionsOn(asked.id))[0]);
  const taskId = decision.taskId ?? "";
  await until("plan A is under way", async () => (await requests("run_command", `Work. ${a}`)).length >= 2);
  await evictDurableObject(objects.WORKER_SESSION.getByName(taskId) as never);
  const comment = issueTrigger(`${a}-comment`, `pull${a}`, `please take plan B instead ${a}`);
  await append(comment, "candidate");
  await untilStatus(taskId, "done");
  // The same task, with plan A still in its context, and no decision of the router in between.
  const last = (await requests("run_command", `Work. ${a}`)).at(-1) ?? "";
  expect(last).toContain("plan A");
  expect(itemsOf(last)).toMatchObject([{ item: "row", thread: pull.threadId, text: `please take plan B instead ${a}`, kind: "message" }]);
  expect(await decisionsOn(comment.id)).toEqual([]);
  // The answer goes where it was asked: into the widget's topic.
  const topic = decision.threadId ?? "";
  await until("the answer", async () =>
    (await objects.THREAD.getByName(topic).read({ afterSeq: 0, limit: 50 })).rows.some(
      (row) => row.kind === "outbound" && row.outbound.text.includes("plan B"),
    ),
  );
  expect(
    (await objects.THREAD.getByName(pull.threadId).read({ afterSeq: 0, limit: 50 })).rows.every((row) => row.kind !== "outbound"),
  ).toBe(true);
});

test("[Q7] the subscriptions decide: who follows a thread gets what is said there without a mention, elsewhere the gate decides, and the end gives the thread back", async () => {
  const [a, b] = [unique(), unique()];
  await workerScript(a, [{ calls: [wait] }, { calls: [wait] }, { calls: [wait] }, { calls: [done("finished")] }]);
  const one = await startTask(a, a);
  await until("it waits", async () => (await status(one.taskId)) === "waiting");
  /** A comment that names nobody, judged as the door does. */
  const comment = async (name: string, thread: string, text: string, ignored = false) => {
    const trigger = { ...issueTrigger(name, thread, text), kind: "issue_comment.created", addressed: false };
    const judged = judge(defaultRules, trigger);
    const verdict = ignored ? { ...judged, outcome: "ignore" as const } : judged;
    return { trigger, verdict, appended: await objects.THREAD.getByName(trigger.threadId).append({ trigger, verdict }) };
  };
  await evictDurableObject(objects.THREAD.getByName(one.threadId) as never);
  const followed = await comment(`${a}-1`, a, `use the other branch ${a}`);
  const ignored = await comment(`${a}-2`, a, `noise for the gate ${a}`, true);
  for (const word of ["use the other branch", "noise for the gate"])
    await until(`${word} at the worker`, async () => (await requests("run_command", `Work. ${a}`)).some((body) => body.includes(word)));
  expect([followed.verdict.outcome, followed.appended.outcome, ignored.appended.outcome]).toEqual(["candidate", "accepted", "accepted"]);

  await routerScript(b, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "between people" } }] }]);
  const free = await comment(`${b}-1`, b, `use the other branch ${b}`);
  expect((await until("the router's word", async () => (await decisionsOn(free.trigger.id))[0])).tool).toBe("record");
  expect((await comment(`${b}-2`, b, `noise for the gate ${b}`, true)).appended.outcome).toBe("ignored");

  await comment(`${a}-3`, a, `that is all ${a}`);
  await untilStatus(one.taskId, "done");
  await until("the thread is free", async () => (await threadEvents(one.threadId)).some((event) => event.kind === "thread.unsubscribed"));
  await evictDurableObject(objects.WORKER_SESSION.getByName(one.taskId) as never);
  for (const { trigger } of [followed, ignored]) expect(await decisionsOn(trigger.id)).toEqual([]);
  await routerScript(`late ${a}`, [{ calls: [{ tool: "record", input: { settles: ["$all"], reason: "between people" } }] }]);
  const late = await comment(`${a}-4`, a, `late ${a}`);
  expect((await until("the router's word", async () => (await decisionsOn(late.trigger.id))[0])).tool).toBe("record");
  expect((await requests("run_command", `Work. ${a}`)).some((body) => body.includes(`late ${a}`))).toBe(false);
});

test("[H3] messages that come while the worker is busy are all in its next input, in order", async () => {
  const a = unique();
  await workerScript(a, [{ calls: [wait], delayMs: 600 }, { calls: [done("all of them")] }]);
  const { threadId, taskId } = await startTask(a, a);
  await until("the busy call", async () => (await requests("run_command", `Work. ${a}`)).length === 1);
  for (const name of ["m2", "m3", "m4", "m5"]) await append(issueTrigger(`${a}-${name}`, a, `${name} ${a}`));
  await untilStatus(taskId, "done");
  const shown = itemsOf((await requests("run_command", `Work. ${a}`))[1]).map((item) => item.text);
  expect(shown).toEqual(["m2", "m3", "m4", "m5"].map((name) => `${name} ${a}`));
  expect((await threadEvents(threadId)).filter((event) => event.kind === "thread.accepted")).toHaveLength(5);
});

test("[W20] [A9] [W27] a hostile worker follows, reads and speaks in no conversation of another person, in whatever order it tries", async () => {
  const [a, b] = [unique(), unique()];
  const ana = { ...member, id: `prs_ana${a}` };
  const asked = triggerOf({ name: `${a}-asked`, by: ana, text: `anaasks ${a} secret${a}` });
  await routerScript(asked.id, [{ calls: [{ tool: "dispatch", input: { settles: [asked.id], title: `Ana ${a}`, goal: `Work. ${a}` } }] }]);
  await workerScript(a, [{ calls: [wait] }]);
  await append(asked);
  const topic = (await until("the dispatch", async () => (await decisionsOn(asked.id))[0])).threadId ?? "";
  await until("ana's worker waits", async () => (await requests("run_command", `Work. ${a}`)).length === 1);
  const said = { ...asked, id: triggerIdOf("web", `${a}-more`, topic), deliveryId: `${a}-more`, threadId: topic, text: `more secret${a}` };
  await append({ ...said, threadKey: (await objects.THREAD.getByName(topic).read({ afterSeq: 0, limit: 1 })).info.threadKey });
  const follow = (thread: string): Call => ({ tool: "subscribe", input: { thread, reason: "the same matter" } });
  const recall = (id: string): Call => ({ tool: "recall", input: { id } });
  const speak = (thread: string): Call => ({
    tool: "propose",
    input: { what: "comment", thread, text: `said in the name of the agent ${b}` },
  });
  await workerScript(b, [
    {
      calls: [
        follow(topic),
        recall(topic),
        recall(said.id),
        speak(topic),
        follow(asked.threadId),
        recall(asked.threadId),
        recall(asked.id),
      ],
    },
    { calls: [recall(topic), recall(said.id), recall(asked.threadId), { tool: "wait", input: { reason: "", seconds: 3600 } }] },
  ]);
  const ben = { ...member, id: `prs_ben${b}` };
  const evil = triggerOf({ name: `${b}-asked`, by: ben, text: `benasks ${b}` });
  await routerScript(evil.id, [{ calls: [{ tool: "dispatch", input: { settles: [evil.id], title: `Ben ${b}`, goal: `Work. ${b}` } }] }]);
  await append(evil);
  const taskId = (await until("the dispatch", async () => (await decisionsOn(evil.id))[0])).taskId ?? "";
  const last = await until("a step after the reads", async () => (await requests("run_command", `Work. ${b}`))[2]);
  expect(last).toContain("belongs to another conversation");
  expect(last).not.toContain(`secret${a}`);
  await evictDurableObject(objects.THREAD.getByName(topic) as never);
  expect((await threadEvents(topic)).filter(({ kind }) => kind === "thread.subscribed" || kind === "thread.offered")).toHaveLength(1);
  expect((await objects.WORKER_SESSION.getByName(taskId).describe())?.card.offers ?? []).toEqual([]);
});
