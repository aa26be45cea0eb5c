import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { ProfileAnswer, ProfilesAnswer, ProfileVersionsAnswer, TaskAnswer } from "../../src/protocol/console.ts";
import { member as teamMember } from "../support/router-fixtures.ts";
import { asOperator, ok } from "./console-support.ts";
import { bodies, decided, decisions, newLab, events as routerEvents, say, script as scriptRouter, unique } from "./router-lab.ts";
import {
  begin,
  card,
  deliver,
  done,
  events,
  member,
  newTask,
  objects,
  requests,
  row,
  run,
  script,
  until,
  untilStatus,
} from "./worker-helpers.ts";

const list = async () => (await ok<ProfilesAnswer>(asOperator("GET", "profiles"))).profiles;

test("the shipped profiles are listed, and a changed one is a version of its own that new tasks work under", async () => {
  expect((await list()).map(({ name, version }) => [name, version])).toEqual([
    ["coder", 0],
    ["general", 0],
    ["researcher", 0],
    ["triager", 0],
  ]);
  const triager = (await list()).find(({ name }) => name === "triager");
  if (!triager) throw new Error("no triager");
  const edited = { ...triager, prompt: "Sort it in one line.", modelCalls: 4, model: "sorter" };
  const { profile } = await ok<ProfileAnswer>(asOperator("POST", "profiles", edited));
  expect(profile.version).toBe(1);
  const again = await asOperator("POST", "profiles", edited);
  expect(again.status).toBe(409);
  const strange = await asOperator("POST", "profiles", { ...profile, tools: ["launch_rocket"] });
  expect(await strange.text()).toContain("There is no tool");
  const base = newTask();
  const task = { ...base, start: { ...base.start, profile: "triager" } };
  await script(task, [run("make"), done("sorted")]);
  await begin(task);
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);
  expect(await task.stub.describe()).toMatchObject({ profile: "triager", allowance: 4 });
  const bodies = (await (await fetch(`http://model.test/control/requests?contains=${task.token}`)).json()) as string[];
  expect(bodies.some((body) => body.includes("Sort it in one line."))).toBe(true);
  expect(bodies.some((body) => body.includes("run_command is not a tool of the profile triager"))).toBe(true);
  // Its own model is asked, and the log and a replay say so.
  const steps = bodies.filter((body) => body.includes("You are a worker session"));
  expect(steps.map((body) => (JSON.parse(body) as { model: string }).model)).toEqual(["sorter", "sorter"]);
  expect(new Set((await events(task, "task.model")).map(({ model }) => model))).toEqual(new Set(["sorter"]));
  expect((await task.stub.replay({ step: 1 }))?.bytes).toBe(steps[0]);
});

test("the console shows a task's queued messages, moves and removes one, and says when it is too late", async () => {
  const task = newTask();
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "Which?" } }] }, done("x")]);
  await begin(task);
  await untilStatus(task, "waiting");
  await deliver(task, row(task, 1, "then lint", member, { mode: "queue" }));
  const read = () => ok<TaskAnswer>(asOperator("GET", `tasks/${task.taskId}`));
  const [item] = (await read()).backlog;
  expect(item).toMatchObject({ text: "then lint", from: "member" });
  const path = `tasks/${task.taskId}/backlog/${item?.itemId}`;
  await ok(asOperator("POST", path, { change: "edit", text: "then lint all" }));
  expect((await read()).backlog[0]?.text).toBe("then lint all");
  await deliver(task, row(task, 2, "then docs", member, { mode: "queue" }));
  const { backlog, card: seen } = await read();
  const move = { change: "move", before: null, revision: seen.backlogRevision };
  const halfSaid = await asOperator("POST", path, { change: "move", before: null });
  expect([halfSaid.status, await halfSaid.text()]).toEqual([400, expect.stringContaining("backlogRevision of the card")]);
  for (let i = 0; i < 2; i++) await ok(asOperator("POST", path, move));
  expect((await read()).backlog.map(({ text }) => text)).toEqual(["then docs", "then lint all"]);
  const late = await asOperator("POST", path, { ...move, before: backlog[1]?.itemId });
  expect([late.status, await late.text()]).toEqual([409, expect.stringContaining("has changed since you looked")]);
  await ok(asOperator("POST", path, { change: "withdraw" }));
  expect((await read()).backlog).toMatchObject([{ text: "then docs" }]);
  expect((await asOperator("POST", path, { change: "now" })).status).toBe(409);
});

test("every version of a profile is kept with who saved it; going back saves the old words anew", async () => {
  const researcher = (await list()).find(({ name }) => name === "researcher");
  if (!researcher) throw new Error("no researcher");
  await ok(asOperator("POST", "profiles", { ...researcher, prompt: "Second." }));
  await ok(asOperator("POST", "profiles", { ...researcher, version: 1 }));
  const { versions } = await ok<ProfileVersionsAnswer>(asOperator("GET", "profiles/researcher"));
  expect(versions.map(({ version, prompt, savedBy }) => [version, prompt, savedBy])).toEqual([
    [2, researcher.prompt, "operator"],
    [1, "Second.", "operator"],
    [0, researcher.prompt, null],
  ]);
  expect((await asOperator("GET", "profiles/nobody")).status).toBe(404);
  const wrong = await asOperator("POST", "profiles", { ...researcher, name: "Not A Name" });
  expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("must be lower-case letters")]);
});

test("[WI8] an operator steers, queues and interrupts a task from the console, once each, over an eviction; an ended task hears nobody", async () => {
  const base = newTask();
  const thread = objects.THREAD.getByName(base.start.threadId);
  const asked = row(base, 1, `start ${base.token}`);
  if (asked.row.kind !== "trigger") throw new Error("a trigger");
  await thread.append({ trigger: asked.row.trigger, verdict: { outcome: "request", rule: "t", reason: "t" } });
  await thread.subscribe({ taskId: base.taskId, decisionId: base.start.decisionId });
  const ask = { calls: [{ tool: "report", input: { kind: "question", text: "Which?" } }] };
  await script(base, [ask, ask, { ...done("never used"), delayMs: 20_000 }, done("first"), done("second")]);
  await begin(base);
  await untilStatus(base, "waiting");
  const say = (id: string, text: string, mode?: string) =>
    asOperator("POST", `tasks/${base.taskId}/messages`, { id, text, ...(mode === undefined ? {} : { mode }) });
  await ok(say("message-1", "queued word", "queue"));
  await until("it is queued", async () => ((await base.stub.describe())?.backlog.length ?? 0) === 1);
  await evictDurableObject(base.stub as never);
  await ok(say("message-2", "steering word"));
  expect(await ok(say("message-2", "steering word"))).toMatchObject({ outcome: "duplicate" });
  await until("it asks again", async () => (await card(base)).modelCalls === 2 && (await card(base)).status === "waiting");
  await ok(say("message-3", "go on"));
  await until("a call hangs", async () => (await requests(base)).length === 3);
  await ok(say("message-4", "interrupting word", "interrupt"));
  await untilStatus(base, "done");
  const words = (await requests(base)).map((messages) => messages.at(-1)?.content ?? "");
  expect(words[1]).toContain("steering word");
  expect(words[1]).not.toContain("queued word");
  expect(words.filter((text) => text.includes("steering word"))).toHaveLength(1);
  expect(words[3]).toContain("interrupting word");
  expect(words[4]).toContain("queued word");
  expect((await events(base, "task.interrupted"))[0]?.by).toMatchObject({ role: "owner" });
  const late = await say("message-5", "too late");
  expect([late.status, await late.text()]).toEqual([409, expect.stringContaining("This task has ended")]);
  expect((await say("x", "short id")).status).toBe(400);
  expect((await asOperator("POST", "tasks/tsk_nobody/messages", { id: "message-6", text: "hello" })).status).toBe(404);
});

test("[WP2] the router hears of the profiles once, and once more when a new one is saved; an unknown one is refused; a running task keeps its version", async () => {
  const lab = await newLab();
  const words = [unique(), unique(), unique()] as const;
  const ask = async (word: string, replies: Parameters<typeof scriptRouter>[1]) => {
    await scriptRouter(word, replies);
    const asked = await say(lab, { name: word, by: { ...teamMember, id: `prs_${word}` }, text: `please ${word}` });
    await decided(lab, asked.id);
  };
  const note = [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "noted" } }] }];
  await ask(words[0], note);
  const coder = (await list()).find(({ name }) => name === "coder");
  if (!coder) throw new Error("no coder");
  const release = { ...coder, name: "release", version: 0, purpose: "Cuts releases.", prompt: "First words.", modelCalls: 5 };
  const { profile } = await ok<ProfileAnswer>(asOperator("POST", "profiles", release));
  await evictDurableObject(lab.router as never);
  const dispatch = (name: string) => ({
    calls: [{ tool: "dispatch", input: { settles: ["$trg"], title: `Release ${words[1]}`, goal: `release ${words[1]}`, profile: name } }],
  });
  await scriptRouter(words[1], [dispatch("wizard")]);
  const asked = await say(lab, { name: words[1], by: { ...teamMember, id: `prs_${words[1]}` }, text: `please ${words[1]}` });
  // It comes back in the next turn with the reason.
  await scriptRouter([words[1], "There is no profile"], [dispatch("release")]);
  await decided(lab, asked.id);
  await ask(words[2], note);

  const last = (await bodies(words[2])).at(-1) ?? "";
  const told = last.split('{\\"item\\":\\"profiles\\"').slice(1);
  expect(told).toHaveLength(2);
  expect(told[0]).not.toContain("Cuts releases.");
  expect(told[1]).toContain("Cuts releases.");
  const refusals = (await routerEvents(lab)).flatMap(({ event }) => (event.kind === "router.refused" ? [event.reason] : []));
  expect(refusals).toContainEqual(expect.stringContaining('There is no profile "wizard"; there are coder, general, release'));
  const { taskId } = (await decisions(lab)).find(({ tool }) => tool === "dispatch") ?? {};
  expect(taskId).toBeDefined();

  // A task that began under one version keeps it, and an edit reaches only those that start later.
  const base = newTask();
  const task = { ...base, start: { ...base.start, profile: "release" } };
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "Which?" } }] }, done("released")]);
  await begin(task);
  await untilStatus(task, "waiting");
  await ok(asOperator("POST", "profiles", { ...profile, prompt: "Second words." }));
  await evictDurableObject(task.stub as never);
  await deliver(task, row(task, 1, "the first", member));
  await untilStatus(task, "done");
  const seen = (await (await fetch(`http://model.test/control/requests?contains=${task.token}`)).json()) as string[];
  const steps = seen.filter((body) => body.includes("You are a worker session"));
  expect(steps.length).toBeGreaterThanOrEqual(2);
  expect(steps.every((body) => body.includes("First words.") && !body.includes("Second words."))).toBe(true);
});
