import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import {
  begin,
  card,
  commands,
  deliver,
  done,
  enrol,
  events,
  guest,
  member,
  newTask,
  refusal,
  reports,
  requests,
  row,
  run,
  script,
  settled,
  untilCommands,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

const stop = { by: member, reason: "not needed any more" };

test("[W9] a cancel before the start leaves a tombstone: the start is a no-op that everybody hears of", async () => {
  const task = newTask();
  await script(task, [done("never")]);
  await deliver(task, row(task, 1, "an early row"));
  expect(await task.stub.cancel(stop)).toEqual({ status: "cancelled" });
  await evictDurableObject(task.stub as never);
  expect(await begin(task)).toEqual({ started: false });
  expect(await begin(task)).toEqual({ started: false });
  expect(await card(task)).toMatchObject({ status: "cancelled", line: "Stopped by member." });
  expect(await requests(task)).toEqual([]);
  expect(await events(task, "task.released")).toMatchObject([{ threadSeqs: [1] }]);
});

test("[W9] a tombstone of someone with less authority than the task does not hold", async () => {
  const task = newTask({ authority: "owner" });
  await script(task, [done("owner's work")]);
  await task.stub.cancel(stop);
  expect(await begin(task)).toEqual({ started: true });
  await untilStatus(task, "done");
});

test("[W9] a cancel in mid-call voids the answer", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [{ ...run("rm -rf build"), delayMs: 700 }]);
  await begin(task);
  await untilRequests(task, 1);
  expect(await task.stub.cancel(stop)).toEqual({ status: "cancelled" });
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(await commands(task)).toEqual([]);
  expect((await events(task, "task.model")).map(({ phase }) => phase)).toEqual(["reserve", "superseded"]);
  expect(await reports(task)).toMatchObject([{ kind: "cancelled" }]);
});

test("[W9] during a command it is `cancelling` until the machine has stopped, also over an eviction", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [run("sleep 600")]);
  await begin(task);
  const [command = ""] = await untilCommands(task, 1);
  await untilStatus(task, "waiting");
  expect(await task.stub.cancel(stop)).toEqual({ status: "cancelling" });
  await evictDurableObject(task.stub as never);
  await deliver(task, row(task, 5, "and another thing"));
  const { epoch = 0 } = (await events(task, "task.cancel"))[0] ?? {};
  await task.stub.stopped({ endpointId: task.endpointId, epoch: epoch - 1, offline: false });
  await task.stub.stopped({ endpointId: task.endpointId, epoch, offline: false });
  expect(await untilStatus(task, "cancelled")).toMatchObject({ line: "Stopped by member." });
  await task.stub.settle({ ...settled(task, command, "", null), outcome: "stopped" });
  expect(await requests(task)).toHaveLength(1);
  expect(await events(task, "task.released")).toMatchObject([{ threadSeqs: [5] }]);
  expect(await task.stub.cancel(stop)).toEqual({ status: "cancelled" });
  expect((await reports(task)).filter(({ kind }) => kind === "cancelled")).toHaveLength(1);
});

test("[W9] a stop says how many queued messages are not begun, also after an eviction", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [run("sleep 600")]);
  await begin(task);
  await untilCommands(task, 1);
  for (const seq of [1, 2]) await deliver(task, row(task, seq, `then part ${seq}`, member, { mode: "queue" }));
  await evictDurableObject(task.stub as never);
  await task.stub.cancel(stop);
  const { epoch = 0 } = (await events(task, "task.cancel"))[0] ?? {};
  await task.stub.stopped({ endpointId: task.endpointId, epoch, offline: false });
  const line = "Stopped by member. 2 queued messages were not begun: say again what is still wanted.";
  expect(await untilStatus(task, "cancelled")).toMatchObject({ line });
  expect((await reports(task)).filter(({ kind }) => kind === "cancelled")).toMatchObject([{ text: line }]);
});

test("[W9] a guest may not stop a member's task, nor bury one that has not started", async () => {
  const task = newTask();
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "which?" } }] }]);
  expect(await refusal(() => task.stub.cancel({ by: guest, reason: "no" }))).toContain("member of the team");
  await begin(task);
  await untilStatus(task, "waiting");
  expect(await refusal(() => task.stub.cancel({ by: guest, reason: "no" }))).toContain("authority of a member");
  expect((await card(task)).status).toBe("waiting");
});

test("[W29] a task of a guest is stopped by that guest or by the team, not by another guest, also after an eviction", async () => {
  for (const [by, refused] of [
    [{ ...guest, id: "guest-2" }, true],
    [{ ...guest, role: "public" as const }, true],
    [guest, false],
    [member, false],
  ] as const) {
    const task = newTask({ authority: "guest" });
    await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "which?" } }] }]);
    await begin({ ...task, start: { ...task.start, quote: { ...task.start.quote, from: guest } } });
    await untilStatus(task, "waiting");
    await evictDurableObject(task.stub as never);
    if (refused) {
      expect(await refusal(() => task.stub.cancel({ by, reason: "no" }))).toMatch(/^Only /);
      expect((await card(task)).status).toBe("waiting");
    }
    await task.stub.cancel({ by: refused ? guest : by, reason: "mine" });
    expect(await untilStatus(task, "cancelled")).toMatchObject({ line: `Stopped by ${refused ? "guest" : by.name}.` });
  }
});

test("a person's word on an ended task is on its card; on an open one it counts for nothing", async () => {
  const task = newTask();
  await script(task, [{ ...done("answer"), delayMs: 400 }]);
  await begin(task);
  await task.stub.accept({ by: member, accepted: false });
  await untilStatus(task, "done");
  expect((await card(task)).accepted).toBeUndefined();
  await task.stub.accept({ by: member, accepted: true });
  expect(await card(task)).toMatchObject({ accepted: true, status: "done" });
  expect(await refusal(() => task.stub.accept({ by: guest, accepted: false }))).toContain("authority of a member");
});
