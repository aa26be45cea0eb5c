import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import {
  begin,
  card,
  commands,
  danglingCalls,
  deliver,
  done,
  enrol,
  events,
  guest,
  member,
  newTask,
  objects,
  refusal,
  reports,
  requests,
  row,
  run,
  said,
  script,
  settled,
  until,
  untilCommands,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

const lastText = (messages: { content: string | null }[]): string => messages.at(-1)?.content ?? "";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("a task runs a command, reads its result and reports it with the confidence that it gave", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [run("npm test"), done("login.test.ts fails")]);
  expect(await begin(task)).toEqual({ started: true });
  const [command = ""] = await untilCommands(task, 1);
  const waiting = await untilStatus(task, "waiting");
  expect(waiting).toMatchObject({ waitingFor: "studio-laptop", line: "npm test" });
  await evictDurableObject(task.stub as never);
  await task.stub.settle(settled(task, command, "1 failed: login.test.ts", 1));
  await task.stub.settle(settled(task, command, "1 failed: login.test.ts", 1));
  const ended = await untilStatus(task, "done");
  expect(ended.line).toBe("login.test.ts fails");
  const [, second = []] = await requests(task);
  expect(lastText(second)).toContain("1 failed: login.test.ts");
  expect(danglingCalls(second)).toEqual([]);
  expect(await reports(task)).toMatchObject([
    { kind: "waiting", text: "Waiting for studio-laptop; I start as soon as it is back." },
    { kind: "done", text: "login.test.ts fails", confidence: 0.9, status: "done" },
  ]);
  expect(await begin(task)).toEqual({ started: true });
  expect(await requests(task)).toHaveLength(2);
  const machine = await objects.ENDPOINT.getByName(task.endpointId).events({ afterSeq: 0, limit: 100, about: command });
  expect(machine.filter(({ event }) => event.kind === "endpoint.command" && event.state === "queued")).toHaveLength(1);
});

test("rows that come before the start are in the first request, behind the goal, and the asking row is not repeated", async () => {
  const task = newTask();
  await script(task, [done("seen")]);
  const asked = row(task, 1, "run the tests", member, { id: task.start.quote.triggerId });
  expect(await deliver(task, asked, row(task, 2, "only the login ones"))).toEqual({ throughSeq: 2 });
  await evictDurableObject(task.stub as never);
  expect(await task.stub.describe()).toBeNull();
  await begin(task);
  await untilStatus(task, "done");
  const [first = []] = await requests(task);
  const items = lastText(first)
    .split("\n")
    .map((line) => JSON.parse(line) as { item?: string; seq?: number; text?: string });
  expect(items.map(({ item }) => item)).toEqual([undefined, "goal", "row"]);
  expect(items[2]).toMatchObject({ seq: 2, text: "only the login ones" });
});

test("[R20][H3] fifty rows in mid-call are all in the next request, once and in order", async () => {
  const task = newTask();
  await script(task, [{ ...done("too early"), delayMs: 1500 }, done("now I know all")]);
  await begin(task);
  await untilRequests(task, 1);
  const rows = Array.from({ length: 50 }, (_, i) => row(task, i + 1, `message number ${i + 1}`));
  await Promise.all([0, 10, 20, 30, 40].map((from) => deliver(task, ...rows.slice(from, from + 10))));
  await deliver(task, ...rows.slice(5, 15));
  const ended = await untilStatus(task, "done");
  expect(ended.line).toBe("now I know all");
  const all = await requests(task);
  expect(all).toHaveLength(2);
  const seen = [...lastText(all[1] ?? []).matchAll(/message number (\d+)/g)].map((match) => Number(match[1]));
  expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
});

test("a final report is withheld when new input arrived since its request, and the model is told so", async () => {
  const task = newTask();
  await script(task, [{ ...done("old answer"), delayMs: 800 }, done("new answer")]);
  await begin(task);
  await untilRequests(task, 1);
  await deliver(task, row(task, 1, "wait, also run lint"));
  await untilStatus(task, "done");
  const [, second = []] = await requests(task);
  expect(second.find((message) => message.role === "tool")?.content).toBe('{"not_sent":"new input arrived"}');
  expect((await reports(task)).map(({ text }) => text)).toEqual(["new answer"]);
});

test("our own words in the thread are context: they wake nobody and withhold no report", async () => {
  const task = newTask();
  await script(task, [{ ...done("answer"), delayMs: 600 }]);
  await begin(task);
  await untilRequests(task, 1);
  await deliver(task, said(task, 1, "On it."));
  await untilStatus(task, "done");
  expect(await requests(task)).toHaveLength(1);
});

test("a requirement that changes while a command runs is in the next request, and nothing restarts", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [run("npm test"), { calls: [{ tool: "wait", input: { reason: "the command runs" } }] }, done("both")]);
  await begin(task);
  const [command = ""] = await untilCommands(task, 1);
  await deliver(task, row(task, 1, "name the slowest test as well"));
  const [, second = []] = await untilRequests(task, 2);
  expect(lastText(second)).toContain("name the slowest test as well");
  await untilStatus(task, "waiting");
  await task.stub.settle(settled(task, command, "all passed"));
  await untilStatus(task, "done");
  expect(await commands(task)).toEqual([command]);
});

test("several commands are open at once; the last open file result wakes the step, a shell's at once", async () => {
  const task = newTask();
  await enrol(task);
  const read = (path: string) => ({ tool: "read_file", input: { path } });
  const wait = { calls: [{ tool: "wait", input: { reason: "the shell still runs" } }] };
  await script(task, [
    { calls: [read("a.txt"), read("b.txt"), { tool: "run_command", input: { script: "make" } }] },
    wait,
    done("all three"),
  ]);
  await begin(task);
  const [a = "", b = "", make = ""] = await untilCommands(task, 3);
  await task.stub.settle(settled(task, a, "content of a"));
  await pause(300);
  expect(await requests(task)).toHaveLength(1);
  await task.stub.settle(settled(task, b, "content of b"));
  const [, second = []] = await untilRequests(task, 2);
  expect(lastText(second)).toMatch(/content of a.*content of b/s);
  await task.stub.settle(settled(task, make, "made"));
  await untilStatus(task, "done");
});

test("a machine that comes back is seen on the card", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [run("npm test")]);
  await begin(task);
  const [commandId = ""] = await untilCommands(task, 1);
  await untilStatus(task, "waiting");
  await task.stub.commandState({ commandId, state: "sent", machine: "studio-laptop", online: true });
  expect(await untilStatus(task, "running")).toMatchObject({ line: "npm test" });
  await task.stub.commandState({ commandId, state: "queued", machine: "studio-laptop", online: false });
  await untilStatus(task, "waiting");
  expect((await reports(task)).filter(({ kind }) => kind === "waiting")).toHaveLength(1);
});

test("[R22] after its allowance of model calls a task pauses and asks; it goes on with what a member grants, once a click", async () => {
  const task = newTask({ maxModelCalls: 3 });
  const progress = { calls: [{ tool: "report", input: { kind: "progress", text: "still at it" } }] };
  await script(task, [progress, progress, progress, progress, done("finished")]);
  await begin(task);
  await untilStatus(task, "paused");
  expect(await requests(task)).toHaveLength(3);
  expect((await reports(task)).at(-1)).toMatchObject({ kind: "paused", text: "I have used my allowance of 3 steps. Continue or stop?" });
  await evictDurableObject(task.stub as never);
  expect(await refusal(() => task.stub.resume({ by: guest, modelCalls: 5 }))).toContain("authority of a member");
  await Promise.all([task.stub.resume({ by: member, modelCalls: 1 }), task.stub.resume({ by: member, modelCalls: 1 })]);
  await until("it pauses again", async () => (await requests(task)).length === 4 && (await card(task)).status === "paused");
  await deliver(task, row(task, 1, "@switchyard continue"));
  await untilStatus(task, "done");
  expect(await requests(task)).toHaveLength(5);
});

test("[R22] a model that never ends is called fifteen times and no more", async () => {
  const task = newTask();
  const progress = { calls: [{ tool: "report", input: { kind: "progress", text: "still at it" } }] };
  await script(
    task,
    Array.from({ length: 20 }, () => progress),
  );
  await begin(task);
  await untilStatus(task, "paused");
  await task.stub.poke();
  expect(await requests(task)).toHaveLength(15);
});

test("a reply without a call is a hint twice; the third time the task fails, said by code", async () => {
  const task = newTask();
  await script(task, [{ text: "hello" }, { text: "is anybody there" }, { text: "hm" }]);
  await begin(task);
  await untilStatus(task, "failed");
  const all = await requests(task);
  expect(all).toHaveLength(3);
  expect(lastText(all[1] ?? [])).toContain("Use `report` to say something; nothing was sent.");
  expect(await reports(task)).toMatchObject([{ kind: "failed" }]);
});

test("unknown tools and invalid input are told to the model; the same call three times is noticed", async () => {
  const task = newTask();
  const bad = { calls: [{ tool: "launch_rocket", input: {} }] };
  const invalid = { calls: [{ tool: "run_command", input: { script: 7 } }] };
  await script(task, [bad, invalid, invalid, invalid, done("gave up")]);
  await begin(task);
  await untilStatus(task, "done");
  const last = (await requests(task)).at(-1) ?? [];
  expect(danglingCalls(last)).toEqual([]);
  const tools = last.filter((message) => message.role === "tool").map((message) => message.content ?? "");
  expect(tools[0]).toContain('There is no tool \\"launch_rocket\\"');
  expect(tools[1]).toContain("script:");
  expect(lastText(last)).toContain("has just been done 3 times in a row");
  expect((await events(task, "task.tool")).filter(({ phase }) => phase === "refused")).toHaveLength(4);
});

test("a question waits for an answer, sleeping without a call, and the answer wakes it", async () => {
  const task = newTask();
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "Which branch?" } }] }, done("main it is")]);
  await begin(task);
  expect(await untilStatus(task, "waiting")).toMatchObject({ waitingFor: "you", line: "Which branch?" });
  await evictDurableObject(task.stub as never);
  await task.stub.poke();
  await pause(300);
  expect(await requests(task)).toHaveLength(1);
  await deliver(task, row(task, 1, "main"));
  await untilStatus(task, "done");
});

test("a wait ends by itself, and the model is told", async () => {
  const task = newTask();
  await script(task, [{ calls: [{ tool: "wait", input: { seconds: 1, reason: "a build elsewhere" } }] }, done("waited")]);
  await begin(task);
  await untilStatus(task, "waiting");
  await untilStatus(task, "done");
  expect(lastText((await requests(task))[1] ?? [])).toContain("The time that you asked to wait for is over.");
});

test("[R8] rows that come after the end go back to the router", async () => {
  const task = newTask();
  await script(task, [done("finished")]);
  await begin(task);
  await untilStatus(task, "done");
  await deliver(task, row(task, 7, "one more thing"));
  await deliver(task, row(task, 7, "one more thing"));
  expect(await events(task, "task.released")).toEqual([{ kind: "task.released", threadId: task.threadId, threadSeqs: [7] }]);
  expect(await requests(task)).toHaveLength(1);
});

test("long texts of one step are shortened until their sum fits, and say where the rest is", async () => {
  const task = newTask();
  await script(task, [done("read")]);
  const rows = Array.from({ length: 8 }, (_, i) => row(task, i + 1, `${i + 1} `.repeat(4000)));
  await deliver(task, ...rows);
  await begin(task);
  await untilStatus(task, "done");
  const [first = []] = await requests(task);
  expect(lastText(first).length).toBeLessThan(28_000);
  expect(lastText(first)).toContain(`recall ${rows[3]?.row.kind === "trigger" ? rows[3].row.trigger.id : ""} has all of it`);
});

test("a deadline beyond every calendar does not stop the task", async () => {
  const task = newTask({ deadlineMs: Date.now() + 1e15 * 60_000 });
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "go?" } }] }, done("never")]);
  await begin(task);
  await until("it waits", async () => (await card(task)).status === "waiting");
});

test("[WX1] a long transcript is put aside once past its limit; in between requests only grow, and recall reads what was put aside", async () => {
  const task = newTask({ maxModelCalls: 40 });
  const steps = 22;
  const note = { calls: [{ tool: "note", input: { kind: "approach", text: "the first way", outcome: "did not work" } }] };
  await script(task, [
    note,
    ...Array.from({ length: steps - 2 }, (_, i) => ({
      calls: [{ tool: "report", input: { kind: "question", text: `ready for part ${i}` } }],
    })),
    done("read all"),
  ]);
  await begin(task);
  for (let n = 1; n < steps - 1; n++) {
    await until(`it waits for part ${n}`, async () => {
      const { status, modelCalls } = await card(task);
      return status === "waiting" && modelCalls === n + 1;
    });
    if (n === 9) await evictDurableObject(task.stub as never);
    await deliver(task, ...[0, 1, 2].map((k) => row(task, n * 10 + k, `part ${n}.${k} ${"lorem ipsum ".repeat(650)}`)));
  }
  await untilStatus(task, "done");
  const compacted = await events(task, "task.compacted");
  expect(compacted.length).toBeGreaterThanOrEqual(1);
  const all = (await requests(task)).map((messages) => JSON.stringify(messages));
  let prefixed = 0;
  for (let i = 1; i < all.length; i++) {
    const last = all[i - 1]?.slice(0, -1) ?? "";
    if (all[i]?.startsWith(last)) prefixed += 1;
    expect(all[i]?.length).toBeLessThan(480_000);
  }
  expect(prefixed).toBe(all.length - 1 - compacted.length);
  expect(all.at(-1)).toContain("did not work");
  const read = await task.stub.segment({ id: compacted[0]?.segment ?? "" });
  expect(read?.text).toContain("part 1.0");
  expect(danglingCalls((await requests(task)).at(-1) ?? [])).toEqual([]);
});
