import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { DeliveredRow } from "../../src/protocol/thread.ts";
import type { Amendment, MoveTo, Trigger } from "../../src/protocol/trigger.ts";
import {
  begin,
  card,
  danglingCalls,
  deliver,
  done,
  enrol,
  events,
  guest,
  member,
  newTask,
  reports,
  requests,
  row,
  run,
  script,
  type TestTask,
  until,
  untilCommands,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

const lastText = (messages: { content: string | null }[]): string => messages.at(-1)?.content ?? "";
const say = (task: TestTask, seq: number, text: string, mode: NonNullable<Trigger["mode"]>, from = member): DeliveredRow =>
  row(task, seq, text, from, { mode, externalId: `ext-${seq}` });
const idOf = ({ row: one }: DeliveredRow): string => (one.kind === "trigger" ? one.trigger.id : "");
const amend = (task: TestTask, seq: number, of: DeliveredRow, change: Amendment, text = "", to: MoveTo = {}): DeliveredRow =>
  row(task, seq, text, member, { kind: "message.amended", amends: { triggerId: idOf(of), change, ...to } });

test("[WI3] [WI5] queued messages survive an eviction, come one by one after each report, in their order", async () => {
  const task = newTask();
  await script(task, [{ ...done("tests pass"), delayMs: 900 }, done("lint is clean"), done("docs are written")]);
  await begin(task);
  await untilRequests(task, 1);
  await deliver(task, say(task, 1, "then run lint", "queue"), say(task, 2, "then write docs", "queue"));
  expect((await card(task)).backlog).toEqual(["ext-1", "ext-2"]);
  expect((await task.stub.describe())?.backlog.map(({ text }) => text)).toEqual(["then run lint", "then write docs"]);
  await evictDurableObject(task.stub as never);
  await untilStatus(task, "done");
  const all = await requests(task);
  const tails = all.slice(-2).map(lastText);
  expect(tails[0]).toContain("then run lint");
  expect(tails[0]).not.toContain("then write docs");
  expect(tails[1]).toContain("then write docs");
  expect(danglingCalls(all.at(-1) ?? [])).toEqual([]);
  expect((await reports(task)).map(({ text, status }) => [text, status])).toEqual([
    ["tests pass", "running"],
    ["lint is clean", "running"],
    ["docs are written", "done"],
  ]);
});

test("[H3] four messages while a worker is busy for long are all in its next input, in order, and counted", async () => {
  const task = newTask();
  await script(task, [{ ...done("too early"), delayMs: 1200 }, done("seen all")]);
  await begin(task);
  await untilRequests(task, 1);
  for (const n of [2, 3, 4, 5]) await deliver(task, row(task, n, `m${n} of four`));
  await untilStatus(task, "done");
  const seen = [...lastText((await requests(task))[1] ?? []).matchAll(/m(\d) of four/g)].map((match) => match[1]);
  expect(seen).toEqual(["2", "3", "4", "5"]);
  const came = (await events(task, "task.inbox")).filter(({ item }) => item === "row");
  expect(came.length + (await events(task, "task.rejected")).length).toBe(4);
});

test("[WI4] a queued message is changed, taken back and handed over by rows of its thread, over an eviction", async () => {
  const task = newTask();
  await script(task, [
    { calls: [{ tool: "report", input: { kind: "question", text: "Which one?" } }] },
    done("it is c"),
    done("a, changed"),
  ]);
  await begin(task);
  await untilStatus(task, "waiting");
  const [a, b, c] = ["first a", "then b", "then c"].map((text, i) => say(task, i + 1, text, "queue"));
  if (!a || !b || !c) throw new Error("three messages");
  await deliver(task, a, b, c);
  await deliver(task, amend(task, 4, a, "edit", "first a, changed"), amend(task, 5, b, "withdraw"));
  await evictDurableObject(task.stub as never);
  await deliver(task, amend(task, 4, a, "edit", "first a, changed"), amend(task, 6, c, "now"));
  await untilStatus(task, "done");
  const all = await requests(task);
  expect(lastText(all[1] ?? [])).toContain("then c");
  expect(lastText(all[2] ?? [])).toContain("first a, changed");
  expect(JSON.stringify(all.at(-1))).not.toContain("then b");
  expect((await events(task, "task.backlog")).map(({ change }) => change)).toEqual([
    "hold",
    "hold",
    "hold",
    "edit",
    "withdraw",
    "now",
    "next",
  ]);
});

test("[WI9] queued messages are handed over in the order that they were moved to, over an eviction; who saw an older list is told so once", async () => {
  const task = newTask();
  await script(task, [
    { calls: [{ tool: "report", input: { kind: "question", text: "Which one?" } }] },
    done("one"),
    done("two"),
    done("three"),
  ]);
  await begin(task);
  await untilStatus(task, "waiting");
  const [a, b] = [say(task, 1, "first a", "queue"), say(task, 2, "then b", "queue")];
  await deliver(task, a, b);
  const revision = (await card(task)).backlogRevision;
  const up = amend(task, 3, b, "move", "", { before: idOf(a), revision });
  await deliver(task, up);
  expect((await card(task)).backlog).toEqual(["ext-2", "ext-1"]);
  await evictDurableObject(task.stub as never);
  await deliver(task, up, amend(task, 4, a, "move", "", { before: idOf(b), revision }));
  await evictDurableObject(task.stub as never);
  expect((await task.stub.describe())?.backlog.map(({ text }) => text)).toEqual(["then b", "first a"]);
  expect((await reports(task)).filter(({ kind }) => kind === "notice")).toMatchObject([
    { text: expect.stringContaining("left the order as it is") },
  ]);
  await deliver(task, row(task, 5, "go on"));
  await untilStatus(task, "done");
  const tails = (await requests(task)).slice(1).map(lastText);
  expect(tails.map((text) => ["go on", "then b", "first a"].filter((words) => text.includes(words)))).toEqual([
    ["go on"],
    ["then b"],
    ["first a"],
  ]);
});

test("[WI6] an interrupt frees the worker from a call that hangs, stops its commands, and is what the next request says", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [
    run("sleep 600"),
    { ...done("never used"), delayMs: 20_000 },
    ...Array.from({ length: 3 }, () => done("did what was said")),
  ]);
  await begin(task);
  const [command = ""] = await untilCommands(task, 1);
  await deliver(task, row(task, 1, "how far are you"));
  await untilRequests(task, 2);
  await deliver(task, say(task, 2, "drop it, list the files", "interrupt"));
  const third = (await untilRequests(task, 3))[2] ?? [];
  expect(lastText(third)).toContain("drop it, list the files");
  expect(lastText(third)).toContain("interrupted you");
  expect(danglingCalls(third)).toEqual([]);
  await until("the machine is asked to stop", async () => (await events(task, "task.interrupted")).length === 1);
  expect(await events(task, "task.interrupted")).toMatchObject([{ step: 2, commands: [command] }]);
  // The machine was never there: its ledger ends the command by itself, before or after the answer.
  await untilStatus(task, "done");
  expect((await reports(task)).map(({ text }) => text)).not.toContain("never used");
  expect((await events(task, "task.model")).map(({ phase }) => phase)).toContain("superseded");
});

test("[WI6] somebody who may not stop the task may not interrupt it either: the words wait for the next step", async () => {
  const task = newTask();
  await script(task, [{ ...done("first"), delayMs: 700 }, done("second")]);
  await begin(task);
  await untilRequests(task, 1);
  await deliver(task, say(task, 1, "stop all of it", "interrupt", guest));
  await untilStatus(task, "done");
  expect(await events(task, "task.interrupted")).toEqual([]);
  expect(lastText((await requests(task))[1] ?? [])).toContain("stop all of it");
});
