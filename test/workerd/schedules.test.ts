// Schedules over the deployment's own router, threads and console.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import { webAudience } from "../../src/core/audience.ts";
import { threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import { rootThreadIdOf } from "../../src/core/thread.ts";
import { routerName } from "../../src/env.ts";
import type { Logged, RouterEvent } from "../../src/protocol/events.ts";
import type { ScheduleLine, SchedulesAnswer } from "../../src/protocol/schedule.ts";
import type { ThreadRow } from "../../src/protocol/thread.ts";
import { recallObject } from "../../src/storage/recall.ts";
import { member, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, bindings as objects, ok } from "./console-support.ts";
import { script } from "./router-lab.ts";

const router = () => objects.ROUTER.getByName(routerName);
const halfMinuteMs = 30_000;
let count = 0;
const unique = (): string => `sch${Math.floor(performance.now()).toString(36)}n${++count}`;

const lineOf = async (name: string): Promise<ScheduleLine | undefined> =>
  (await router().schedules()).schedules.find((each) => each.name === name);
const rowsIn = async (threadId: string): Promise<ThreadRow[]> =>
  (await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 200 })).rows;
const saidIn = async (threadId: string) => (await rowsIn(threadId)).flatMap((row) => (row.kind === "outbound" ? [row.outbound] : []));
const timersIn = async (threadId: string) =>
  (await rowsIn(threadId)).flatMap((row) => (row.kind === "trigger" && row.trigger.kind === "timer.due" ? [row.trigger] : []));

const control = async (path: string, body?: object): Promise<unknown> =>
  (await fetch(`http://github.test/control/${path}`, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })).json();
const askedFor = async (login: string): Promise<number> =>
  ((await control(`requests?contains=/collaborators/${login}/`)) as unknown[]).length;

/** The clock stands at a time; the alarm that is due then has rung. */
async function at(ms: number): Promise<void> {
  vi.useFakeTimers({ toFake: ["Date"], now: ms });
  await runDurableObjectAlarm(router() as never);
}
afterEach(() => {
  vi.useRealTimers();
});

/** Asks in the chat for a schedule every half minute. */
async function ask(token: string): Promise<{ threadId: string; nextMs: number; runAt: (ms: number) => string }> {
  const asked = triggerOf({ name: token, by: { ...member, id: `prs_${token}` }, text: `keep looking ${token}` });
  const calls = [
    { tool: "schedule", input: { settles: [asked.id], name: token, text: `look at it ${token}`, everyMinutes: 0.5 } },
    { tool: "reply", input: { settles: [asked.id], text: "Scheduled." } },
  ];
  await script([asked.id], [{ calls }]);
  await objects.THREAD.getByName(asked.threadId).append({ trigger: asked, verdict: { outcome: "request", rule: "t", reason: "asked" } });
  const line = await until("the schedule", () => lineOf(token));
  await until("the reply", async () => (await saidIn(asked.threadId)).length === 1);
  return {
    threadId: asked.threadId,
    nextMs: line.nextMs ?? 0,
    runAt: (ms) => triggerIdOf("web", `schedule:${line.id}:${ms}`, asked.threadId),
  };
}

test("[H4] [RS3] [RS4] a schedule survives the loss of its object and its alarm, fires on its beat, and catches up with one run", async () => {
  const token = unique();
  const { threadId, nextMs, runAt } = await ask(token);
  for (const ms of [nextMs, nextMs + halfMinuteMs, nextMs + 6 * halfMinuteMs])
    await script([runAt(ms)], [{ calls: [{ tool: "reply", input: { settles: [runAt(ms)], text: `Nothing new ${token}.` } }] }]);
  await at(nextMs);
  await until("the first run", async () => (await lineOf(token))?.runs[0]?.delivery === "sent");
  // The row survives, the alarm does not.
  await runInDurableObject(router() as never, async (_: unknown, state: DurableObjectState) => state.storage.deleteAlarm());
  await evictDurableObject(router() as never);
  vi.useFakeTimers({ toFake: ["Date"], now: nextMs + 15_000 });
  const touched = await lineOf(token);
  expect(touched?.nextMs).toBe(nextMs + halfMinuteMs);
  await until("the alarm", () =>
    runInDurableObject(router() as never, (_: unknown, state: DurableObjectState) => state.storage.getAlarm()),
  );
  await at(nextMs + halfMinuteMs);
  await until("the second run", async () => (await lineOf(token))?.runs.filter((run) => run.delivery === "sent").length === 2);
  expect((await timersIn(threadId)).map((trigger) => trigger.atMs)).toEqual([nextMs, nextMs + halfMinuteMs]);
  // Five beats pass unseen: one run, and a receipt for four.
  await evictDurableObject(router() as never);
  await at(nextMs + 6 * halfMinuteMs + 5_000);
  await until("the catch-up", async () => (await lineOf(token))?.runs.filter((run) => run.delivery === "sent").length === 3);
  const line = await lineOf(token);
  expect(line?.runs.find((run) => run.execution === "missed")).toMatchObject({ missed: 4, dueMs: nextMs + 2 * halfMinuteMs });
  expect((await timersIn(threadId)).map((trigger) => trigger.atMs)).toEqual([nextMs, nextMs + halfMinuteMs, nextMs + 6 * halfMinuteMs]);
  expect((await router().schedules()).schedules.filter((each) => each.name === token)).toHaveLength(1);
  // Rung once more at the same time: nothing happens twice.
  await at(nextMs + 6 * halfMinuteMs + 5_000);
  expect(await timersIn(threadId)).toHaveLength(3);
  expect((await timersIn(threadId))[0]?.principal).toMatchObject({ role: "agent", onBehalfOf: "member" });
  await router().changeSchedule({ id: line?.id ?? "", change: "cancel" });
});

test("[RS5] three failures in a row pause it, with one notice to its thread and one to the operators", async () => {
  const token = unique();
  const { threadId, nextMs, runAt } = await ask(token);
  for (let n = 0; n < 3; n++) {
    const ms = nextMs + n * halfMinuteMs;
    await script([runAt(ms)], [{ calls: [{ tool: "ask_human", input: { settles: [runAt(ms)], question: `What now ${token}?` } }] }]);
    await at(ms);
    await until(`failure ${n + 1}`, async () => (await lineOf(token))?.failures === n + 1);
  }
  await evictDurableObject(router() as never);
  expect(await lineOf(token)).toMatchObject({ state: "paused", why: expect.stringContaining("3 runs in a row failed") });
  const notices = async () => (await saidIn(threadId)).filter((said) => said.kind === "notice");
  await until("the notice", async () => (await notices()).length > 0);
  await at(nextMs + 10 * halfMinuteMs);
  expect(await timersIn(threadId)).toHaveLength(3);
  expect(await notices()).toMatchObject([{ text: expect.stringContaining(`resume schedule ${token}`) }]);
  const board = await until("the board", async () => {
    const { notices: all } = await objects.BOARD.getByName("board").snapshot();
    return all.some((notice) => notice.kind === "fault" && notice.text.includes(token)) && all;
  });
  expect(board.filter((notice) => notice.kind === "fault" && notice.text.includes(token))).toHaveLength(1);
});

test("[A8] [RS4] [RS5] a dispatched run is running until its task reports, and delivered when its answer is sent; none starts beside it", async () => {
  const token = unique();
  const { threadId, nextMs, runAt } = await ask(token);
  const work = {
    tool: "dispatch",
    input: { settles: [runAt(nextMs)], title: `Look ${token}`, goal: `Look. ${token}`, acknowledge: "On it." },
  };
  await script([runAt(nextMs)], [{ calls: [work] }]);
  // Its worker never answers: the report is made by hand.
  await at(nextMs);
  const running = await until("the task", async () => {
    const run = (await lineOf(token))?.runs.find((each) => each.execution === "running");
    return run?.taskId ? run : null;
  });
  expect(running).toMatchObject({ delivery: "pending" });
  await at(nextMs + halfMinuteMs);
  expect((await lineOf(token))?.runs.find((run) => run.execution === "missed")).toMatchObject({ missed: 1 });
  expect(await timersIn(threadId)).toHaveLength(1);
  const taskId = running.taskId ?? "";
  const decision = ((await router().events({ afterSeq: 0, limit: 5000, about: taskId })) as Logged<RouterEvent>[]).flatMap(({ event }) =>
    event.kind === "router.decision" && event.tool === "dispatch" ? [event] : [],
  )[0];
  expect(decision).toMatchObject({ authority: "member" });
  await until("the topic", async () => (await saidIn(decision?.threadId ?? "")).length > 0);
  // [A8] What it does is read where the person who made the schedule asks for it, and in no other conversation.
  const readBy = async (reader: string) => (await recallObject(objects, { id: taskId, page: 1, readers: [reader] })).text;
  await until("the task", async () => (await readBy(webAudience(`prs_${token}`))).includes(`Look. ${token}`));
  expect(await readBy(webAudience("prs_other"))).toContain("belongs to another conversation");
  await router().report({
    id: `rep_${taskId.slice(4)}-byhand`,
    taskId,
    kind: "done",
    title: "Look",
    text: "All is well.",
    confidence: 0.9,
    threadId: decision?.threadId ?? "",
    authority: "member",
    tainted: false,
    status: "done",
    atMs: Date.now() + 1,
  });
  await until("delivered", async () => (await lineOf(token))?.runs.some((run) => run.execution === "done" && run.delivery === "sent"));
  await router().changeSchedule({ id: (await lineOf(token))?.id ?? "", change: "cancel" });
});

test("[RS5] an answer on GitHub is on its way until GitHub has it, and one that GitHub refuses is a failed delivery of a run that went well", async () => {
  const token = unique();
  const place = `sch/${token}`;
  const opened = { ...triggerOf({ name: token, by: member, thread: "5", text: `an issue ${token}` }), place, threadKey: "issue:5" };
  const threadId = threadIdOf("github", place, "issue:5");
  const first = { ...opened, threadId, id: triggerIdOf("github", token, threadId) };
  await objects.THREAD.getByName(threadId).append({ trigger: first, verdict: { outcome: "record", rule: "t", reason: "t" } });
  const thread = { threadId, source: "github", place, threadKey: "issue:5", threadTitle: "t" };
  const by = { role: "member" as const, id: "dev", name: "dev" };
  const set = { name: token, text: `look ${token}`, thread, by, authority: "member" as const, time: { everyMinutes: 0.5 } };
  const made = await router().setSchedule(set);
  if ("problem" in made) throw new Error(made.problem);
  const nextMs = (await lineOf(token))?.nextMs ?? 0;
  const runAt = (ms: number) => triggerIdOf("github", `schedule:${made.id}:${ms}`, threadId);
  await control("permission", { place, login: by.id, permission: "write" });
  for (const ms of [nextMs, nextMs + halfMinuteMs])
    await script([runAt(ms)], [{ calls: [{ tool: "reply", input: { settles: [runAt(ms)], text: `Nothing new ${token}.` } }] }]);
  // The clock goes on slowly, below the next beat, so that what waits a second is tried again.
  const soon = () => at(Date.now() + 100);
  await at(nextMs);
  await until("the answer is at GitHub", async () => {
    await soon();
    return /^(?:sent|confirmed)$/.test((await lineOf(token))?.runs[0]?.delivery ?? "");
  });
  await evictDurableObject(router() as never);
  await control("faults", { on: `POST /repos/${place}/issues/5/comments`, faults: ["422", "422", "422"] });
  await at(nextMs + halfMinuteMs);
  await until("the refusal", async () => {
    await soon();
    const run = (await lineOf(token))?.runs[0];
    return run?.dueMs === nextMs + halfMinuteMs && run.execution === "done" && run.delivery === "failed" && run.detail !== "";
  });
  expect(await lineOf(token)).toMatchObject({ failures: 1, state: "active" });
  await router().changeSchedule({ id: made.id, change: "cancel" });
});

test("[RS6] operators list, make, pause, resume and cancel schedules; a person whose access is gone starts nothing any more", async () => {
  const token = unique();
  const { personId } = await ok<{ personId: string }>(asOperator("POST", "people", { name: `Person ${token}`, role: "member" }));
  const made = { name: token, text: `look ${token}`, personId, time: { everyMinutes: 0.5, zone: "Europe/Berlin" } };
  const { id } = await ok<{ id: string }>(asOperator("POST", "schedules", made));
  expect((await ok<{ id: string }>(asOperator("POST", "schedules", { ...made, text: `look again ${token}` }))).id).toBe(id);
  const listed = async () => (await ok<SchedulesAnswer>(asOperator("GET", "schedules"))).schedules.filter((each) => each.name === token);
  expect(await listed()).toMatchObject([{ id, text: `look again ${token}`, authority: "member", words: "every 30 s", state: "active" }]);
  expect((await asOperator("POST", "schedules", { ...made, time: { cron: "61 * * * *" } })).status).toBe(400);
  expect((await asOperator("POST", "schedules", { ...made, personId: "prs_nobody" })).status).toBe(404);
  expect((await asOperator("POST", `schedules/${id}/explode`)).status).toBe(404);
  // Two beats pass, and the third begins, before anybody is awake: pausing runs none of them, and forgets none.
  const firstMs = (await listed())[0]?.nextMs ?? 0;
  vi.useFakeTimers({ toFake: ["Date"], now: firstMs + 2 * halfMinuteMs + 1_000 });
  await ok(asOperator("POST", `schedules/${id}/pause`));
  const missed = { execution: "missed", dueMs: firstMs, missed: 3, detail: "it was changed before it ran" };
  expect(await listed()).toMatchObject([{ state: "paused", runs: [missed] }]);
  vi.useRealTimers();
  // [A9] Read by its id, it is shown to whoever made it and in no other conversation.
  const read = async (reader: string) => (await recallObject(objects, { id, page: 1, readers: [reader] })).text;
  expect(JSON.parse(await read(webAudience(personId)))).toMatchObject({
    schedule: id,
    name: token,
    when: "every 30 s",
    state: "paused",
    runs: [{ execution: "missed" }],
  });
  expect(await read(webAudience("prs_other"))).toContain("belongs to another conversation");
  await ok(asOperator("POST", `schedules/${id}/resume`));
  await evictDurableObject(router() as never);
  const nextMs = (await listed())[0]?.nextMs ?? 0;
  await ok(asOperator("POST", `people/${personId}/revoke`));
  await at(nextMs);
  const refused = await until("the refused run", async () => (await lineOf(token))?.runs.find((run) => run.execution === "failed"));
  expect(refused.detail).toContain("no access any more");
  expect(await timersIn(rootThreadIdOf(personId))).toEqual([]);
  vi.useRealTimers();
  await ok(asOperator("POST", `schedules/${id}/cancel`));
  expect((await asOperator("POST", `schedules/${id}/resume`)).status).toBe(409);
});

test("[RS4] at GitHub a schedule runs only while GitHub says that its maker may write there; when GitHub is away the run waits", async () => {
  const token = unique();
  const by = { ...member, id: `dev-${token}`.toLowerCase() };
  const grant = (permission: string) => control("permission", { place: "acme/app", login: by.id, permission });
  const asked = triggerOf({ name: token, by, thread: token, text: `keep looking ${token}` });
  const calls = [{ tool: "schedule", input: { settles: [asked.id], name: token, text: `look ${token}`, everyMinutes: 0.5 } }];
  await script([asked.id], [{ calls: [...calls, { tool: "record", input: { settles: [asked.id], reason: "set" } }] }]);
  await objects.THREAD.getByName(asked.threadId).append({ trigger: asked, verdict: { outcome: "request", rule: "t", reason: "asked" } });
  const { id, nextMs } = await until("the schedule", () => lineOf(token));
  const runAt = (ms: number): string => triggerIdOf("github", `schedule:${id}:${ms}`, asked.threadId);
  const [first, second] = [nextMs ?? 0, (nextMs ?? 0) + halfMinuteMs];
  await script([runAt(first)], [{ calls: [{ tool: "record", input: { settles: [runAt(first)], reason: "nothing new" } }] }]);

  await grant("write");
  await control("faults", { on: `/collaborators/${by.id}/`, faults: ["500"] });
  await evictDurableObject(router() as never);
  await at(first);
  await until("the question to GitHub", async () => (await askedFor(by.id)) === 1);
  expect((await lineOf(token))?.runs[0]).toMatchObject({ execution: "pending" });
  await until("the run, once GitHub answers", async () => {
    await at(Date.now() + 100);
    return (await lineOf(token))?.runs[0]?.execution === "done";
  });
  expect(await timersIn(asked.threadId)).toHaveLength(1);

  await grant("read");
  await at(second);
  await until("the refused run", async () => (await lineOf(token))?.runs[0]?.execution === "failed");
  expect((await lineOf(token))?.runs[0]?.detail).toContain("no access any more");
  expect(await timersIn(asked.threadId)).toHaveLength(1);
  await router().changeSchedule({ id, change: "cancel" });
});

/** A schedule of a thread at GitHub, beside a request there that the router's model dispatches after a moment. */
async function besideWork(token: string, delayMs: number) {
  const by = { ...member, id: `dev-${token}`.toLowerCase() };
  await control("permission", { place: "acme/app", login: by.id, permission: "write" });
  const asked = triggerOf({ name: token, by, thread: token, text: `do it ${token}` });
  const { threadId, place, source, threadKey, threadTitle } = asked;
  const dispatch = { tool: "dispatch", input: { settles: [asked.id], title: `Do ${token}`, goal: `Do it. ${token}` } };
  await script([asked.id], [{ calls: [dispatch], delayMs }]);
  const work = objects.THREAD.getByName(threadId);
  await work.append({ trigger: asked, verdict: { outcome: "request", rule: "t", reason: "asked" } });
  const thread = { threadId, source, place, threadKey, threadTitle };
  const set = { name: token, text: `look ${token}`, thread, by, authority: "member" as const, time: { everyMinutes: 0.5 } };
  const made = await router().setSchedule(set);
  if ("problem" in made) throw new Error(made.problem);
  const nextMs = (await lineOf(token))?.nextMs ?? 0;
  // Its worker never answers.
  const taskId = () => until("the task", async () => (await work.read({ afterSeq: 0, limit: 1 })).info.subscribers[0]);
  return { asked, work, id: made.id, nextMs, taskId, runAt: (ms: number) => triggerIdOf(source, `schedule:${made.id}:${ms}`, threadId) };
}

test("[RS5] what is due and waits while its thread is given to a task is that task's run", async () => {
  const token = unique();
  const { asked, id, nextMs, taskId } = await besideWork(token, 3_000);
  const asking = async () =>
    ((await (await fetch(`http://model.test/control/requests?contains=${asked.id}`)).json()) as unknown[]).length > 0;
  await until("the model is asked", asking);
  await at(nextMs);
  const follower = await taskId();
  await until("the run of the task", async () => (await lineOf(token))?.runs[0]?.taskId === follower);
  expect((await lineOf(token))?.runs).toMatchObject([{ execution: "running", delivery: "pending" }]);
  await router().changeSchedule({ id, change: "cancel" });
});

test("[RS3] [RS5] what comes due in a thread that a task follows is that task's: a run until it has reported, and the next beat runs again", async () => {
  const token = unique();
  const { asked, work, id, nextMs, taskId: given, runAt } = await besideWork(token, 0);
  const taskId = await given();
  await at(nextMs);
  await until("the task has it", async () => (await lineOf(token))?.runs[0]?.taskId === taskId);
  await evictDurableObject(router() as never);
  expect((await lineOf(token))?.runs[0]).toMatchObject({ dueMs: nextMs, execution: "running", delivery: "pending" });
  await at(nextMs + halfMinuteMs);
  expect((await lineOf(token))?.runs.find((run) => run.execution === "missed")).toMatchObject({ missed: 1 });
  const about = { taskId, title: "Do", threadId: asked.threadId, authority: "member" as const, tainted: false };
  const said = { kind: "done" as const, text: "Done.", confidence: 0.9, status: "done" as const, atMs: Date.now() + 1 };
  await router().report({ id: `rep_${taskId.slice(4)}-byhand`, ...about, ...said });
  await until("its end", async () => (await lineOf(token))?.runs.find((run) => run.dueMs === nextMs)?.execution === "done");
  await work.unsubscribe({ taskId, reason: "done" });
  const thirdMs = nextMs + 2 * halfMinuteMs;
  const third = runAt(thirdMs);
  await script([third], [{ calls: [{ tool: "record", input: { settles: [third], reason: "nothing new" } }] }]);
  await at(thirdMs);
  await until("the next run", async () => (await lineOf(token))?.runs.find((run) => run.dueMs === thirdMs)?.execution === "done");
  await router().changeSchedule({ id, change: "cancel" });
});
