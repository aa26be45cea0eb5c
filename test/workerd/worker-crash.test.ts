import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import {
  begin,
  commands,
  danglingCalls,
  deliver,
  done,
  enrol,
  events,
  newTask,
  objects,
  reports,
  requests,
  row,
  run,
  script,
  settled,
  type TestTask,
  until,
  untilCommands,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

/** What a killed process leaves behind, woken as the cron or any visitor would. */
async function crash(task: TestTask): Promise<void> {
  await abortAllDurableObjects();
  await objects.WORKER_SESSION.getByName(task.taskId).poke();
}

/** A stub made before an abort is broken; this is the same object anew. */
const again = (task: TestTask): TestTask => ({ ...task, stub: objects.WORKER_SESSION.getByName(task.taskId) });

test("[R18] a crash in mid-call repeats the call with the same bytes, and says so in the next message only", async () => {
  const before = newTask();
  await enrol(before);
  await script(before, [{ ...run("npm test"), delayMs: 60_000 }, run("npm test"), done("fine"), done("never")]);
  await begin(before);
  await untilRequests(before, 1);
  await crash(before);
  const task = again(before);
  const [command = ""] = await untilCommands(task, 1);
  await task.stub.settle(settled(task, command, "all passed"));
  await untilStatus(task, "done");
  const [first, second, third = []] = await requests(task);
  expect(JSON.stringify(second)).toBe(JSON.stringify(first));
  expect(JSON.stringify(third.slice(0, second?.length))).toBe(JSON.stringify(second));
  expect(JSON.stringify(second)).not.toContain("Restarted");
  expect(third.at(-1)?.content).toContain("Restarted: the last step was interrupted");
  expect(danglingCalls(third)).toEqual([]);
  expect((await events(task, "task.model")).map(({ phase }) => phase)).toEqual([
    "reserve",
    "failed",
    "reserve",
    "settle",
    "reserve",
    "settle",
  ]);
});

test("[R18] a model call that died with its process is made again within seconds, by the object's own alarm", async () => {
  const before = newTask();
  await script(before, [{ ...done("never"), delayMs: 60_000 }, done("fine")]);
  await begin(before);
  await untilRequests(before, 1);
  await abortAllDurableObjects();
  // Only the model server is asked: nobody touches the object.
  await until("the call again", async () => (await requests(before)).length === 2, limits.takeOverMs + 5_000);
  await untilStatus(again(before), "done");
});

test("[R18][W12] the answer of a call that was lost changes nothing when it comes after all", async () => {
  const before = newTask();
  await script(before, [
    { ...done("the lost answer"), delayMs: 1200 },
    { ...done("the second answer"), delayMs: 2000 },
  ]);
  await begin(before);
  await untilRequests(before, 1);
  await crash(before);
  const task = again(before);
  await untilStatus(task, "done");
  expect((await reports(task)).map(({ text }) => text)).toEqual(["the second answer"]);
});

test("[R18][W12] an answer is void once another has taken over the lease of its call", async () => {
  const task = newTask();
  await script(task, [{ ...done("the overtaken answer"), delayMs: 500 }]);
  await begin(task);
  await untilRequests(task, 1);
  await runInDurableObject(task.stub as never, (_object, { storage }: DurableObjectState) =>
    storage.sql.exec(
      "UPDATE state SET body = json_set(body, '$.lease.epoch', json_extract(body, '$.lease.epoch') + 1) WHERE name = 'task'",
    ),
  );
  await until("the void answer", async () => (await events(task, "task.model")).some(({ phase }) => phase === "superseded"));
  expect(await reports(task)).toEqual([]);
});

test("[R18] a crash while a command runs starts nothing again, and its result finds the task", async () => {
  const before = newTask();
  await enrol(before);
  await script(before, [run("npm test"), done("fine")]);
  await begin(before);
  const [command = ""] = await untilCommands(before, 1);
  await untilStatus(before, "waiting");
  await crash(before);
  const task = again(before);
  await task.stub.settle(settled(task, command, "all passed"));
  await untilStatus(task, "done");
  expect(await requests(task)).toHaveLength(2);
  expect(await commands(task)).toEqual([command]);
  expect((await requests(task)).at(-1)?.at(-1)?.content).not.toContain("Restarted");
});

test("[R19] a crash between a call and its result leaves one result for each call", async () => {
  const before = newTask();
  const recall = { tool: "recall", input: { id: before.taskId } };
  const progress = { tool: "report", input: { kind: "progress", text: "looking" } };
  await script(before, [{ calls: [progress, recall, { tool: "nothing", input: {} }, recall] }, done("fine"), done("fine")]);
  await begin(before);
  await until("the first step is committed", async () => (await events(before, "task.tool")).length > 0);
  await crash(before);
  const task = again(before);
  await untilStatus(task, "done");
  const last = (await requests(task)).at(-1) ?? [];
  expect(danglingCalls(last)).toEqual([]);
  expect(last.filter((message) => message.role === "tool")).toHaveLength(4);
  expect(last.filter((message) => message.content?.includes('"title":"Run the tests"'))).toHaveLength(2);
});

test("[R18] a task that is killed again and again goes on from where it was", async () => {
  const before = newTask();
  await enrol(before);
  await script(before, [run("one"), run("two"), run("three"), done("three commands")]);
  await begin(before);
  for (let n = 1; n <= 3; n++) {
    const ids = await untilCommands(again(before), n);
    await crash(before);
    await again(before).stub.settle(settled(before, ids[n - 1] ?? "", `output ${n}`));
    await crash(before);
  }
  const task = again(before);
  await untilStatus(task, "done");
  expect(await commands(task)).toHaveLength(3);
  const bodies = (await requests(task)).map((messages) => JSON.stringify(messages));
  bodies.slice(1).forEach((body, i) => {
    expect(body.startsWith((bodies[i] ?? "").slice(0, -1))).toBe(true);
  });
  const machine = await objects.ENDPOINT.getByName(task.endpointId).events({ afterSeq: 0, limit: 100 });
  expect(machine.filter(({ event }) => event.kind === "endpoint.command" && event.state === "queued")).toHaveLength(3);
});

test("[R20] [Q8] rows that arrive around a crash are in the next message, once", async () => {
  const before = newTask();
  await script(before, [{ ...done("old"), delayMs: 60_000 }, { ...done("old"), delayMs: 800 }, done("new")]);
  await begin(before);
  await untilRequests(before, 1);
  await deliver(before, row(before, 1, "remark before the crash"));
  await crash(before);
  const task = again(before);
  await deliver(task, row(task, 1, "remark before the crash"), row(task, 2, "remark after the crash"));
  await untilStatus(task, "done");
  const body = JSON.stringify((await requests(task)).at(-1));
  expect(body.match(/remark before the crash/g)).toHaveLength(1);
  expect(body.match(/remark after the crash/g)).toHaveLength(1);
});
