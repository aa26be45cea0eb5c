import { evictDurableObject } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import type { TaskStart } from "../../src/protocol/task.ts";
import {
  begin,
  card,
  done,
  enrol,
  events,
  member,
  newTask,
  objects,
  reports,
  requests,
  run,
  script,
  type TestTask,
  until,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

afterEach(() => {
  vi.useRealTimers();
});

const lastText = (messages: { content: string | null }[]): string => messages.at(-1)?.content ?? "";
const spawn = (child: TestTask, share: number) => ({
  calls: [{ tool: "spawn", input: { title: "Read the docs", goal: `Read the docs. ${child.token}`, share, profile: "researcher" } }],
});

/** A second task's token scripts the child's model; its object is the one that the parent named. */
async function childOf(parent: TestTask, token: TestTask): Promise<TestTask> {
  const [spawned] = await until("a child was started", async () => {
    const all = await events(parent, "task.spawned");
    return all.length > 0 ? all : null;
  });
  const taskId = spawned?.child ?? "";
  const stub = objects.WORKER_SESSION.getByName(taskId);
  await until("the child has started", async () => (await stub.describe()) !== null);
  return { ...token, taskId, stub };
}

test("[WC1] [WC2] a child works beside its parent, reports to it alone, and gives back what it did not spend", async () => {
  const parent = newTask();
  const token = newTask();
  await script(token, [done("the docs say so", 0.8)]);
  // The newest script wins, and the parent's requests hold the child's goal too.
  await script(parent, [spawn(token, 5), done("both know it")]);
  await begin(parent);
  const child = await childOf(parent, token);
  await untilStatus(parent, "done");
  await untilStatus(child, "done");
  expect((await child.stub.describe())?.start).toMatchObject({
    profile: "researcher",
    maxModelCalls: 5,
    parent: { taskId: parent.taskId },
  });
  const last = lastText((await requests(parent)).findLast((each) => lastText(each).includes("child")) ?? []);
  expect(last).toContain('"item":"child"');
  expect(last).toContain("the docs say so");
  expect(await events(parent, "task.child")).toMatchObject([{ child: child.taskId, returned: 4, allowance: 14 }]);
  const router = await objects.ROUTER.getByName("router").events({ afterSeq: 0, limit: 5000, about: child.taskId });
  expect(router.filter(({ event }) => event.kind === "router.report")).toEqual([]);
});

test("[WC1] the child of a profile without commands has none, whatever its model asks for, and its tools are not shown", async () => {
  const parent = newTask();
  const token = newTask();
  await enrol(parent);
  await script(token, [run("rm -r build"), done("could not")]);
  await script(parent, [spawn(token, 4), done("ok")]);
  await begin(parent);
  const child = await childOf(parent, token);
  await untilStatus(child, "done");
  expect(await events(child, "task.tool")).toContainEqual(expect.objectContaining({ tool: "run_command", phase: "refused" }));
  const bodies = (await (await fetch(`http://model.test/control/requests?contains=${token.token}`)).json()) as string[];
  const tools = bodies
    .filter((body) => body.includes("Your profile: researcher"))
    .flatMap((body) => (JSON.parse(body) as { tools: { function: { name: string } }[] }).tools.map((tool) => tool.function.name));
  expect(tools).toContain("read_file");
  expect(tools).not.toContain("run_command");
});

test("[WC4] a stop reaches the child over an eviction, and the parent is stopped only when the child is", async () => {
  const parent = newTask();
  const token = newTask();
  await script(parent, [spawn(token, 5)]);
  await script(token, [{ ...done("too late"), delayMs: 20_000 }]);
  await begin(parent);
  const child = await childOf(parent, token);
  await untilRequests(token, 1);
  await until("the parent sleeps", async () => (await card(parent)).modelCalls === 1);
  await evictDurableObject(parent.stub as never);
  await parent.stub.cancel({ by: member, reason: "enough" });
  await untilStatus(child, "cancelled");
  await untilStatus(parent, "cancelled");
  expect((await reports(child)).map(({ kind }) => kind)).toEqual(["cancelled"]);
  const parentEnd = (await parent.stub.events({ afterSeq: 0, limit: 500 })).find(
    ({ event }) => event.kind === "task.status" && event.to === "cancelled",
  );
  const childEnd = (await child.stub.events({ afterSeq: 0, limit: 500 })).find(
    ({ event }) => event.kind === "task.status" && event.to === "cancelled",
  );
  expect(childEnd?.atMs).toBeLessThanOrEqual(parentEnd?.atMs ?? 0);
});

test("[WC5] a child that is silent past its time is told to stop, over an eviction, and its parent goes on without it", async () => {
  const parent = newTask();
  const token = newTask();
  const wait = { calls: [{ tool: "wait", input: { reason: "for ever" } }] };
  const input = { title: "Read the docs", goal: `Read the docs. ${token.token}`, share: 5, deadlineMinutes: 10 };
  await script(token, [wait, wait]);
  await script(parent, [{ calls: [{ tool: "spawn", input }] }, done("without it")]);
  await begin(parent);
  const child = await childOf(parent, token);
  await untilStatus(child, "waiting");
  await evictDurableObject(parent.stub as never);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10 * 60_000 + limits.childLostMs + 1_000 });
  await parent.stub.poke();
  await untilStatus(parent, "done");
  expect(lastText((await requests(parent)).at(-1) ?? [])).toContain("counts as lost, and is stopped");
  await untilStatus(child, "cancelled");
});

test("[WC2] a child's question comes to its parent, whose answer goes down", async () => {
  const parent = newTask();
  const token = newTask();
  await script(parent, [spawn(token, 6)]);
  await script(token, [{ calls: [{ tool: "report", input: { kind: "question", text: "Which branch?" } }] }, done("main it was")]);
  await begin(parent);
  const child = await childOf(parent, token);
  await script(parent, [{ calls: [{ tool: "tell_child", input: { task: child.taskId, text: "Take main." } }] }, done("answered")]);
  await until("the parent heard both", async () => (await card(parent)).status === "done");
  await untilStatus(child, "done");
  expect(JSON.stringify(await requests(token))).toContain("From your parent task: Take main.");
});

test("a wait of ten days outlives evictions, costs no call, and ends at its time", async () => {
  const task = newTask();
  const atMs = Date.now() + 10 * 86_400_000;
  await script(task, [
    { calls: [{ tool: "wait", input: { until: new Date(atMs).toISOString(), reason: "the release" } }] },
    done("it is released"),
  ]);
  await begin(task);
  await untilStatus(task, "waiting");
  for (const days of [1, 5, 9]) {
    vi.useFakeTimers({ toFake: ["Date"], now: atMs - (10 - days) * 86_400_000 });
    await evictDurableObject(task.stub as never);
    await task.stub.poke();
  }
  expect(await requests(task)).toHaveLength(1);
  vi.setSystemTime(atMs + 1000);
  await task.stub.poke();
  await untilStatus(task, "done");
  expect(lastText((await requests(task))[1] ?? [])).toContain("is over");
});

test("[WF3] the router hears of a deadline once, over an eviction", async () => {
  const task = newTask();
  const late: TaskStart = { ...task.start, deadlineMs: Date.now() + 3600_000 };
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "Which?" } }] }, done("in the end")]);
  await task.stub.start(late);
  await untilStatus(task, "waiting");
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_700_000 });
  await evictDurableObject(task.stub as never);
  await task.stub.poke();
  await until("it was told", async () => (await reports(task)).some(({ kind }) => kind === "overdue"));
  await task.stub.poke();
  expect((await reports(task)).filter(({ kind }) => kind === "overdue")).toHaveLength(1);
});
