import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { guest, machineOf, member, reportOf, taskOf, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import {
  bodies,
  decided,
  decisions,
  effects,
  events,
  give,
  messagesOf,
  newLab,
  objects,
  saidIn,
  say,
  script,
  settled,
} from "./router-lab.ts";

const byOf = (token: string) => ({ ...member, id: `prs_${token}` });
const record = { tool: "record", input: { settles: ["$trg"], reason: "kept" } };

test("[R3] a message is answered in its own thread, once, however often it is delivered", async () => {
  const lab = await newLab();
  await script(lab.token, [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Hello there." } }] }]);
  const parts = { name: lab.token, by: byOf(lab.token), text: `hello ${lab.token}` };
  const trigger = await say(lab, parts);
  await Promise.all([say(lab, parts), say(lab, parts)]);
  await decided(lab, trigger.id);
  await settled(lab);
  await evictDurableObject(lab.router as never);
  await say(lab, parts);
  await settled(lab);
  expect(await saidIn(trigger.threadId)).toMatchObject([{ kind: "reply", text: "Hello there." }]);
  expect(await decisions(lab)).toHaveLength(1);
  expect(await bodies(lab.token)).toHaveLength(1);
});

test("what queues while the model thinks comes together in the next turn, in order", async () => {
  const lab = await newLab();
  const by = byOf(lab.token);
  await script([lab.token, "fourth"], [{ calls: [record] }, { calls: [record] }, { calls: [record] }]);
  await script([lab.token, "first"], [{ calls: [record], delayMs: 400 }]);
  const first = await say(lab, { name: `${lab.token}1`, by, text: `first ${lab.token}` });
  await until("the first call", async () => (await bodies(lab.token)).length === 1);
  for (const word of ["second", "third", "fourth"]) await say(lab, { name: `${lab.token}${word}`, by, text: `${word} ${lab.token}` });
  await decided(lab, first.id);
  const second = await until("the second call", async () => (await bodies(lab.token))[1]);
  const last = messagesOf(second).at(-1)?.content ?? "";
  expect(last.indexOf("second")).toBeGreaterThan(0);
  expect(last.indexOf("third")).toBeGreaterThan(last.indexOf("second"));
  expect(last.indexOf("fourth")).toBeGreaterThan(last.indexOf("third"));
  expect((await bodies(lab.token)).length).toBeLessThanOrEqual(4);
});

test("[RT6] what comes while a turn reads joins its next step, is settled by its short name, and can be replayed", async () => {
  const lab = await newLab();
  const by = byOf(lab.token);
  await script(lab.token, [
    { calls: [{ tool: "recall", input: { id: "1.1" } }], delayMs: 400 },
    { calls: [{ tool: "record", input: { settles: ["1.2", "1.1"], reason: "kept" } }] },
  ]);
  const first = await say(lab, { name: `${lab.token}1`, by, text: `first ${lab.token}` });
  await until("the first call", async () => (await bodies(lab.token)).length === 1);
  const second = await say(lab, { name: `${lab.token}2`, by, text: `second ${lab.token}` });
  await decided(lab, second.id);
  await settled(lab);
  await evictDurableObject(lab.router as never);
  expect(await decisions(lab)).toMatchObject([{ turn: 1, settles: [second.id, first.id] }]);
  const sent = await bodies(lab.token);
  expect(sent).toHaveLength(2);
  const read = messagesOf(sent[1]).find(({ role }) => role === "tool")?.content ?? "";
  expect(read).toContain(`first ${lab.token}`);
  expect(messagesOf(sent[1]).map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "user"]);
  const replayed = [await lab.router.replay({ step: 1 }), await lab.router.replay({ step: 2 })];
  expect(replayed.map((step) => step?.bytes)).toEqual(sent);
});

test("[RI11] whoever joins a turn brings along the schedules that they may hear of, and nothing is listed twice", async () => {
  const lab = await newLab();
  const [by, other] = [byOf(lab.token), { ...member, id: `prs_${lab.token}other`, name: "other" }];
  const { threadId, source, place, threadKey, threadTitle } = triggerOf({ name: "any", by: other });
  const thread = { threadId, source, place, threadKey, threadTitle };
  const owned = { thread, by: other, authority: "member" as const, text: "look", time: { cron: "0 9 1 1 *" } };
  expect(await lab.router.setSchedule({ ...owned, name: `nightly-${lab.token}` })).toMatchObject({ id: expect.any(String) });
  await evictDurableObject(lab.router as never);
  const read = { calls: [{ tool: "recall", input: { id: "1.1" } }], delayMs: 400 };
  await script(lab.token, [read, read, { calls: [{ tool: "record", input: { settles: ["1.1", "1.2", "1.3"], reason: "kept" } }] }]);
  for (const [i, who] of [by, other, by].entries()) {
    await until(`call ${i}`, async () => (await bodies(lab.token)).length === i);
    const said = await say(lab, { name: `${lab.token}${i}`, by: who, text: `say ${i} ${lab.token}` });
    if (i === 2) await decided(lab, said.id);
  }
  const texts = (await bodies(lab.token)).map((body) => messagesOf(body).at(-1)?.content ?? "");
  expect(texts.map((text) => [text.includes('"item":"schedules"'), text.includes(`nightly-${lab.token}`)])).toEqual([
    [true, false],
    [true, true],
    [false, false],
  ]);
});

test("a member's request opens a topic, starts a worker, and is acknowledged there", async () => {
  const lab = await newLab();
  const laptop = machineOf(`laptop-${lab.token}`);
  await lab.router.machine({ endpointId: laptop.id, name: laptop.name, online: true, workspaces: ["app"], revoked: false, revision: 1 });
  await script(lab.token, [
    {
      calls: [
        { tool: "dispatch", input: { settles: ["$trg"], title: "Run the tests", goal: "Run them.", acknowledge: "On it." } },
        { tool: "reply", input: { settles: ["$trg"], text: "I will tell you what fails." } },
      ],
    },
  ]);
  const trigger = await say(lab, { name: lab.token, by: byOf(lab.token), text: `run the tests ${lab.token}` });
  await decided(lab, trigger.id);
  await settled(lab);
  const [dispatch] = await decisions(lab);
  expect(dispatch).toMatchObject({ tool: "dispatch", authority: "member", by: "model" });
  const { rows } = await objects.THREAD.getByName(dispatch?.threadId ?? "").read({ afterSeq: 0, limit: 50 });
  expect(rows.map((row) => row.kind)).toEqual(["trigger", "outbound", "outbound"]);
  expect((await saidIn(dispatch?.threadId ?? "")).map((said) => said.text)).toEqual(["On it.", "I will tell you what fails."]);
  expect(await saidIn(trigger.threadId)).toEqual([]);
  const worker = await objects.WORKER_SESSION.getByName(dispatch?.taskId ?? "").describe();
  expect(worker?.start).toMatchObject({
    authority: "member",
    tainted: false,
    endpoint: { endpointId: laptop.id },
    quote: { text: trigger.text },
  });
  expect((await lab.router.overview()).tasks).toEqual([dispatch?.taskId]);
});

test("[R8] rows that queued while their thread was dispatched pass through to the worker and are not decided again", async () => {
  const lab = await newLab();
  const issue = lab.token;
  await script(lab.token, [
    { calls: [{ tool: "dispatch", input: { settles: ["$trg"], title: "Fix it", goal: "Fix it." } }], delayMs: 400 },
  ]);
  const first = await say(lab, { name: `${lab.token}a`, by: member, thread: issue, text: `fix this ${lab.token}` });
  await until("the call", async () => (await bodies(lab.token)).length === 1);
  const second = await say(lab, { name: `${lab.token}b`, by: member, thread: issue, text: `with tabs please ${lab.token}` });
  const decision = await decided(lab, first.id);
  await settled(lab);
  const passed = (await events(lab)).flatMap(({ event }) => (event.kind === "router.passed" ? [event] : []));
  expect(passed).toMatchObject([{ triggerIds: [second.id], taskId: decision.taskId }]);
  expect(await bodies(lab.token)).toHaveLength(1);
  // A repeated delivery of the passed row stays passed; given back by the task's end, it is decided.
  const { rows } = await objects.THREAD.getByName(first.threadId).read({ afterSeq: 0, limit: 50 });
  const row = rows.find((each) => each.kind === "trigger" && each.trigger.id === second.id);
  if (!row) throw new Error("the second row is missing");
  const delivery = { threadId: first.threadId, rows: [{ row, alsoWith: [] }], before: [], tasks: [] };
  await lab.router.deliver(delivery);
  expect((await lab.router.overview()).pending).toBe(0);
  await script([lab.token, "with tabs"], [{ calls: [record] }]);
  await lab.router.deliver({ ...delivery, releasedBy: decision.taskId ?? "" });
  expect((await decided(lab, second.id)).tool).toBe("record");
  await evictDurableObject(lab.router as never);
  await lab.router.deliver({ ...delivery, releasedBy: decision.taskId ?? "" });
  expect((await lab.router.overview()).pending).toBe(0);
});

test("[RD5] a guest who asks for work gets a friendly refusal, the board shows it, and nothing starts", async () => {
  const lab = await newLab();
  await script(lab.token, [{ calls: [{ tool: "dispatch", input: { settles: ["$trg"], title: "Wipe", goal: "Wipe it." } }] }]);
  const trigger = await say(lab, { name: lab.token, by: { ...guest, id: lab.token }, text: `wipe the disk ${lab.token}` });
  const decision = await decided(lab, trigger.id);
  await settled(lab);
  expect(decision).toMatchObject({ by: "code", authority: "guest", lane: "public" });
  expect(await saidIn(trigger.threadId)).toMatchObject([{ kind: "notice", text: expect.stringContaining("only members of the team") }]);
  expect((await effects(lab)).map((effect) => effect.kind)).toEqual(["post", "board"]);
  const board = await objects.BOARD.getByName("board").snapshot();
  expect(board.notices.some((notice) => notice.kind === "refusal" && notice.text.includes(lab.token))).toBe(true);
  expect((await lab.router.overview()).tasks).toEqual([]);
});

test("[RT1] no text of the public lane stands in any request of the team's lane", async () => {
  const lab = await newLab();
  const [open, inner] = [`public${lab.token}`, `team${lab.token}`];
  await script(open, [{ calls: [record] }, { calls: [record] }]);
  await script(inner, [{ calls: [record] }, { calls: [record] }]);
  for (const round of [1, 2]) {
    const visitor = await say(lab, { name: `${open}${round}`, by: { role: "public", id: open, name: open }, thread: open, text: open });
    const person = await say(lab, { name: `${inner}${round}`, by: member, thread: inner, text: inner });
    await lab.router.moved({ threadId: visitor.threadId, headSeq: round });
    await Promise.all([decided(lab, visitor.id), decided(lab, person.id)]);
  }
  const team = await bodies(inner);
  expect(team).toHaveLength(2);
  expect(team.filter((body) => body.includes(open))).toEqual([]);
  expect(team[1]).toContain("observed");
  expect((await bodies(open)).filter((body) => body.includes(inner))).toEqual([]);
});

test("[RM3] an item that stays undecided three times goes to a human, with the reason of each turn in the next", async () => {
  const lab = await newLab();
  await script(lab.token, [
    { calls: [{ tool: "run_command", input: { script: "ls" } }] },
    { calls: [{ tool: "reply", rawInput: '{"settles": [' }] },
    { text: "I would say hello." },
  ]);
  const trigger = await say(lab, { name: lab.token, by: byOf(lab.token), text: `do something ${lab.token}` });
  const decision = await decided(lab, trigger.id);
  await settled(lab);
  expect(decision).toMatchObject({ tool: "ask_human", by: "code" });
  const sent = await bodies(lab.token);
  expect(sent).toHaveLength(3);
  expect(sent[1]).toContain("There is no tool");
  expect(sent[2]).toContain("The input of reply does not fit");
  expect(messagesOf(sent[2]).at(-1)?.content).toContain('"attempt":3');
  expect((await events(lab)).filter(({ event }) => event.kind === "router.escalated")).toHaveLength(1);
  expect(await saidIn(trigger.threadId)).toMatchObject([{ kind: "notice", text: expect.stringContaining("could not decide") }]);
  // The answer of a console reaches the person, once.
  const answer = { id: decision.decisionId, by: { ...member, name: "operator" }, text: "Please say it again." };
  expect(await lab.router.answer({ ...answer, by: guest })).toEqual({ ok: false });
  expect(await lab.router.answer(answer)).toEqual({ ok: true });
  expect(await lab.router.answer(answer)).toEqual({ ok: true });
  // [RC1] Nobody is told that words were said which were not.
  expect(await lab.router.answer({ ...answer, text: "Never mind." })).toEqual({ ok: false });
  await settled(lab);
  expect((await saidIn(trigger.threadId)).map((said) => said.text)).toEqual([expect.any(String), "Please say it again."]);
});

test("[R19] each tool call in a request has exactly one result, and requests of a lane share their prefix", async () => {
  const lab = await newLab();
  const by = byOf(lab.token);
  await script(lab.token, [
    {
      calls: [
        // What is read of a conversation stays in its turn, and does not lengthen the prefix of others: see A9.
        { tool: "recall", input: { id: "thr_nothinghere" } },
        { tool: "nothing", input: {} },
      ],
    },
    { calls: [record] },
    { calls: [record, record] },
    { calls: [record] },
  ]);
  for (const round of [1, 2, 3]) {
    const trigger = await say(lab, { name: `${lab.token}${round}`, by, text: `${lab.token} ${"words of some length ".repeat(20)}` });
    await decided(lab, trigger.id);
  }
  const sent = await bodies(lab.token);
  expect(sent).toHaveLength(4);
  for (const body of sent) {
    const messages = messagesOf(body);
    const calls = messages.flatMap((message) => message.tool_calls?.map((call) => call.id) ?? []);
    const results = messages.flatMap((message) => (message.tool_call_id === undefined ? [] : [message.tool_call_id]));
    expect(results).toEqual(calls);
  }
  const prefixes = sent.map((body) => JSON.stringify(messagesOf(body)).slice(0, -1));
  for (let i = 1; i < prefixes.length; i++) expect(prefixes[i]?.startsWith(prefixes[i - 1] ?? "never")).toBe(true);
});

test("a confident result of the thread's only task is relayed by code exactly once; others are the model's to decide", async () => {
  const lab = await newLab();
  const topic = await say(lab, {
    name: `${lab.token}t`,
    by: byOf(lab.token),
    thread: `${lab.token}t`,
    text: `${lab.token} hi`,
    outcome: "candidate",
  });
  const task = taskOf(lab.token, { threadId: topic.threadId, source: "github" });
  await script(lab.token, [{ calls: [record] }]);
  await decided(lab, topic.id);
  for (const name of [lab.token, `${lab.token}2`]) await give(topic.threadId, taskOf(name).id);
  const done = reportOf({ task, text: `Seven pass ${lab.token}.`, confidence: 0.9 });
  await Promise.all([lab.router.report(done), lab.router.report(done)]);
  await settled(lab);
  await evictDurableObject(lab.router as never);
  await lab.router.report(done);
  await settled(lab);
  expect(await saidIn(topic.threadId)).toMatchObject([{ kind: "relay", text: `Seven pass ${lab.token}.` }]);

  const unsure = reportOf({ task: taskOf(`${lab.token}2`, { threadId: topic.threadId }), text: `Perhaps ${lab.token}.`, confidence: 0.4 });
  await script(`Perhaps ${lab.token}`, [{ calls: [{ tool: "relay", input: { settles: ["$rep"], report: "$rep" } }] }]);
  await lab.router.report(unsure);
  expect(await decided(lab, unsure.id)).toMatchObject({ tool: "relay", by: "model" });
  await lab.router.report(reportOf({ task, kind: "progress", status: "running", text: "half" }));
  await settled(lab);
  expect((await saidIn(topic.threadId)).map((said) => said.text)).toEqual([`Seven pass ${lab.token}.`, `Perhaps ${lab.token}.`]);
});

test("[RT2] a report of a tainted task stays out of the team's transcript", async () => {
  const lab = await newLab();
  const secret = `poison${lab.token}`;
  const person = await say(lab, { name: lab.token, by: member, thread: lab.token, text: `${lab.token} start`, outcome: "candidate" });
  await script(lab.token, [{ calls: [record] }, { calls: [record] }]);
  await decided(lab, person.id);
  const task = taskOf(lab.token, { threadId: person.threadId, tainted: true });
  const report = reportOf({ task, kind: "question", status: "waiting", text: secret });
  await script(secret, [{ calls: [{ tool: "relay", input: { settles: ["$rep"], report: "$rep" } }] }]);
  await lab.router.report(report);
  expect(await decided(lab, report.id)).toMatchObject({ lane: "public", authority: "public" });
  const again = await say(lab, { name: `${lab.token}2`, by: member, thread: lab.token, text: `${lab.token} more`, outcome: "candidate" });
  await decided(lab, again.id);
  const team = (await bodies(lab.token)).filter((body) => !body.includes("This lane\\nThese messages are from people outside"));
  expect(team.filter((body) => body.includes(secret))).toEqual([]);
  expect(team.length).toBeGreaterThanOrEqual(2);
});
