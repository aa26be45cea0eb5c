import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { expect, test } from "vitest";
import { makeId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import { boardName } from "../../src/env.ts";
import type { BoardDecision } from "../../src/protocol/board.ts";
import type {
  EnrolmentAnswer,
  InviteAnswer,
  PeopleAnswer,
  TaskAnswer,
  TasksAnswer,
  ThreadAnswer,
  ThreadsAnswer,
  WhyAnswer,
} from "../../src/protocol/console.ts";
import type { TaskStart } from "../../src/protocol/task.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { until } from "../support/until.ts";
import { asOperator, bindings, ok, origin, request } from "./console-support.ts";

const member = { role: "member" as const, id: "prs_member", name: "member" };

function triggerOf(name: string, over: Partial<Trigger> = {}): Trigger {
  const threadId = threadIdOf("web", "widget", `root:${name}`);
  return {
    id: triggerIdOf("web", name, threadId),
    source: "web",
    deliveryId: name,
    threadId,
    place: "widget",
    threadKey: `root:${name}`,
    threadTitle: `Conversation of ${name}`,
    kind: "message",
    principal: member,
    addressed: true,
    text: `please look at ${name}`,
    atMs: 1000,
    hops: 0,
    ...over,
  };
}

test("what is not there is a 404 with a sentence, whatever its id looks like", async () => {
  const paths = [
    ["GET", "tasks/tsk_nobody"],
    ["GET", "tasks/nonsense"],
    ["POST", "tasks/tsk_nobody/cancel"],
    ["POST", "tasks/tsk_nobody/again"],
    ["POST", "tasks/tsk_nobody/continue"],
    ["GET", "threads/thr_nobody"],
    ["GET", "decisions/dec_nobody"],
    ["GET", "triggers/trg_nobody-nothing/why"],
    ["GET", "triggers/trg_nobody/why"],
    ["POST", "endpoints/ep_nobody/revoke"],
    ["POST", "people/prs_nobody/revoke"],
    ["POST", "notices/nobody/answer"],
    ["GET", "nothing"],
  ] as const;
  for (const [method, path] of paths) {
    const response = await asOperator(method, path, method === "POST" ? {} : undefined);
    expect([path, response.status]).toEqual([path, 404]);
    expect((await response.json<{ message: string }>()).message).toMatch(/^(There is|No trigger)/);
  }
});

test("a request that does not parse is a 400 that names the field", async () => {
  const cases: [string, string, string][] = [
    ["people", "{", "JSON"],
    ["people", '{"name":"","role":"member"}', "name"],
    ["people", '{"name":"A","role":"king"}', "role"],
    ["people", '{"name":"A","role":"member","personId":"tsk_a"}', "personId"],
  ];
  for (const [path, body, names] of cases) {
    const response = await request(`/api/console/${path}`, {
      method: "POST",
      headers: { authorization: "Bearer test-operator-token" },
      body,
    });
    expect(response.status).toBe(400);
    expect((await response.json<{ message: string }>()).message).toContain(names);
  }
  expect((await asOperator("GET", "tasks?limit=0")).status).toBe(400);
  expect((await asOperator("GET", "tasks?limit=many")).status).toBe(400);
});

test("a personal link opens the widget as that person, once, and its revocation ends it", async () => {
  const { link, personId } = await ok<InviteAnswer>(asOperator("POST", "people", { name: "Member", role: "member" }));
  const url = new URL(link);
  expect(url.pathname).toBe("/demo");
  const invite = new URLSearchParams(url.hash.slice(1)).get("invite");
  const open = () =>
    request("/api/widget/session", {
      method: "POST",
      headers: { origin, "content-type": "application/json" },
      body: JSON.stringify({ invite, origin }),
    });
  const { session } = await ok<{ session: string }>(open());
  expect((await open()).status).toBe(401);
  const ticket = () =>
    request("/api/widget/ticket", { method: "POST", headers: { origin, authorization: `Bearer ${session}` }, body: "{}" });
  expect((await ticket()).status).toBe(200);
  await ok(asOperator("POST", `people/${personId}/revoke`, {}));
  expect((await ticket()).status).toBe(403);
  const { people } = await ok<PeopleAnswer>(asOperator("GET", "people"));
  expect(people.find((person) => person.personId === personId)?.revokedMs).toBeGreaterThan(0);
  expect((await asOperator("POST", "people", { name: "Member", role: "member", personId })).status).toBe(409);
});

test("[A10] a login at GitHub is of one person, who has one; taken away it is free, and a withdrawn person keeps it", async () => {
  const invited = async (name: string) => (await ok<InviteAnswer>(asOperator("POST", "people", { name, role: "member" }))).personId;
  const [one, two] = [await invited("One"), await invited("Two")];
  const link = (personId: string, login: string) => asOperator("POST", `people/${personId}/github`, { login });
  const loginOf = async (personId: string) =>
    (await ok<PeopleAnswer>(asOperator("GET", "people"))).people.find((person) => person.personId === personId)?.login;
  expect(await loginOf(one)).toBeNull();
  expect(await ok(link(one, " @One-Old "))).toEqual({ login: "one-old" });
  expect(await ok(link(one, "one-new"))).toEqual({ login: "one-new" });
  expect(await loginOf(one)).toBe("one-new");
  expect(await ok(link(two, "one-old"))).toEqual({ login: "one-old" });
  const taken = await link(two, "ONE-NEW");
  expect([taken.status, await taken.text()]).toEqual([409, expect.stringContaining("the login of One already")]);
  expect(await loginOf(two)).toBe("one-old");
  expect(await ok(link(one, ""))).toEqual({ login: null });
  expect(await ok(link(two, "one-new"))).toEqual({ login: "one-new" });
  for (const wrong of ["two words", "-dash", "https://github.com/two", "two\u200b"]) expect((await link(two, wrong)).status).toBe(400);
  expect((await link("prs_nobody", "x")).status).toBe(404);
  await ok(asOperator("POST", `people/${two}/revoke`, {}));
  expect((await link(two, "")).status).toBe(409);
  expect((await link(one, "one-new")).status).toBe(409);
  expect(await loginOf(two)).toBe("one-new");
});

test("what the router keeps is searched with words, and without them nothing is", async () => {
  for (const path of ["search", "search?q=", "search?q=%20", "search?q=%22%20OR%20*"])
    expect(await ok(asOperator("GET", path))).toEqual({ hits: [], total: 0 });
});

test("two links for the owner lead to the same person", async () => {
  const make = () => ok<InviteAnswer>(asOperator("POST", "people", { name: "Owner", role: "owner", personId: "prs_owner" }));
  const [first, second] = [await make(), await make()];
  expect([first.personId, second.personId]).toEqual(["prs_owner", "prs_owner"]);
  expect(first.link).not.toBe(second.link);
});

test("connecting a machine gives a code and the lines to paste", async () => {
  const answer = await ok<EnrolmentAnswer>(asOperator("POST", "endpoints/enrolment", {}));
  expect(answer.commands).toEqual([
    `npm run daemon -- enroll ${origin} ${answer.code}`,
    "npm run daemon -- grant DIR",
    "npm run daemon -- run",
  ]);
  expect(answer.expiresMs).toBeGreaterThan(Date.now());
});

test("why a trigger was recorded is told from its thread, also after an eviction", async () => {
  const trigger = triggerOf("recorded");
  const thread = bindings.THREAD.getByName(trigger.threadId);
  await thread.append({ trigger, verdict: { outcome: "record", rule: "thanks", reason: "Said thanks." } });
  await evictDurableObject(thread as unknown as DurableObjectStub);
  const why = await ok<WhyAnswer>(asOperator("GET", `triggers/${trigger.id}/why`));
  expect(why).toMatchObject({ verdict: { rule: "thanks" }, subscribers: [], decisions: [], replies: [], escalated: null });
  const page = await ok<ThreadAnswer>(asOperator("GET", `threads/${trigger.threadId}`));
  expect(page.rows.map((row) => row.kind)).toEqual(["trigger"]);
});

test("the threads that heard something are a list, the last first, and each leads to its thread, also after an eviction", async () => {
  const [first, second] = [triggerOf("heard-first"), triggerOf("heard-second")];
  const heard = async () => {
    const { threads, more } = await ok<ThreadsAnswer>(asOperator("GET", "threads"));
    expect(more).toBe(false);
    return threads.filter(({ id }) => id === first.threadId || id === second.threadId);
  };
  for (const trigger of [first, second]) {
    const thread = bindings.THREAD.getByName(trigger.threadId);
    await thread.append({ trigger, verdict: { outcome: "record", rule: "r", reason: "r" } });
    const stub = thread as unknown as DurableObjectStub;
    await evictDurableObject(stub);
    await until("its line in the list", async () => {
      await runDurableObjectAlarm(stub);
      return (await heard()).some(({ id }) => id === trigger.threadId);
    });
  }
  const [latest, before] = await heard();
  expect([latest?.title, before?.title]).toEqual(["Conversation of heard-second", "Conversation of heard-first"]);
  expect((await ok<ThreadAnswer>(asOperator("GET", `threads/${latest?.id}`))).info.threadKey).toBe("root:heard-second");
});

test("a task's page tells its events in order with their lanes, and the list finds it", async () => {
  const trigger = triggerOf("timeline");
  const taskId = makeId("tsk", "console-timeline");
  const decisionId = makeId("dec", "console-timeline");
  const thread = bindings.THREAD.getByName(trigger.threadId);
  await thread.append({ trigger, verdict: { outcome: "record", rule: "r", reason: "r" } });
  const start: TaskStart = {
    taskId,
    decisionId,
    title: "Look at it",
    goal: "Look at it and say what is there.",
    quote: { triggerId: trigger.id, from: member, text: trigger.text },
    authority: "member",
    tainted: false,
    profile: "default",
    endpoint: null,
    threadId: trigger.threadId,
    source: "web",
    place: "widget",
    maxModelCalls: 15,
    atMs: Date.now(),
  };
  await bindings.WORKER_SESSION.getByName(taskId).start(start);
  const page = await ok<TaskAnswer>(asOperator("GET", `tasks/${taskId}`));
  expect(page.start.title).toBe("Look at it");
  const kinds = page.timeline.map(({ lane, event }) => `${lane} ${event.kind}`);
  expect(kinds).toContain("worker task.started");
  expect(kinds[0]).toBe("thread thread.accepted");
  expect(new Set(page.timeline.map(({ object, seq }) => `${object}:${seq}`)).size).toBe(page.timeline.length);

  await expect
    .poll(async () => (await ok<TasksAnswer>(asOperator("GET", "tasks?limit=500"))).tasks.map((task) => task.taskId))
    .toContain(taskId);

  const stopped = await ok<{ status: string }>(asOperator("POST", `tasks/${taskId}/cancel`, {}));
  expect(["cancelling", "cancelled"]).toContain(stopped.status);
});

test("a notice is dismissed once, and a question that the router does not know is not answered", async () => {
  const board = bindings.BOARD.getByName(boardName);
  await board.change([{ kind: "notice", notice: { id: "fault-1", atMs: 1, kind: "fault", text: "The model cannot be reached." } }]);
  expect((await asOperator("POST", "notices/fault-1/answer", { text: "I see" })).status).toBe(404);
  expect((await asOperator("POST", "notices/fault-1/answer", {})).status).toBe(200);
  expect((await board.snapshot()).notices).toEqual([]);
  expect((await asOperator("POST", "notices/fault-1/answer", {})).status).toBe(404);
});

test("the router's decisions are listed with their reasons", async () => {
  const decision: BoardDecision = {
    decisionId: "dec_listed",
    atMs: 5,
    tool: "record",
    reason: "Nothing to do.",
    lane: "team",
    by: "model",
    settles: ["trg_a-b"],
  };
  await bindings.BOARD.getByName(boardName).change([{ kind: "decision", decision }]);
  const { decisions } = await ok<{ decisions: BoardDecision[] }>(asOperator("GET", "decisions"));
  expect(decisions).toContainEqual(decision);
});
