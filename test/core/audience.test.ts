// What one person wrote in a conversation of their own must not be handed to a task, or an answer, that others read.
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { audienceOf, mayFlow, nobody, operatorId, teamAudience } from "../../src/core/audience.ts";
import { operatorTrigger } from "../../src/core/operator-message.ts";
import { asLater } from "../../src/core/replay.ts";
import type { KnownTask } from "../../src/core/router.ts";
import { decideStep } from "../../src/core/router-decide.ts";
import { renderTurn } from "../../src/core/router-items.ts";
import { factAudience } from "../../src/core/router-memory.ts";
import { schedulesItem } from "../../src/core/router-schedule.ts";
import { stepMessages } from "../../src/core/router-turn.ts";
import type { Schedule } from "../../src/protocol/schedule.ts";
import { member, owner, queuedTrigger, taskOf } from "../support/router-fixtures.ts";

const ben = { role: "member" as const, id: "prs_ben", name: "ben" };
const view = (items: ReturnType<typeof queuedTrigger>[], tasks: KnownTask[] = []) => ({
  turn: 1,
  step: 1,
  lane: "team" as const,
  capped: false,
  nowMs: 1,
  agentName: "Switchyard",
  items: new Map(items.map((item) => [item.id, item])),
  progress: new Map(),
  tasks: new Map(tasks.map((task) => [task.id, task])),
  machines: [],
  policies: [],
});
const call = (tool: string, input: unknown, callId = "1") => ({ callId, tool, input });
const secret = queuedTrigger({ name: "b", by: ben, text: "my salary is 1234" });
const question = queuedTrigger({ name: "a", by: member, text: "what time is it?" });
const issue = queuedTrigger({ name: "c", by: member, thread: "7", text: "run the tests" });

test("[A8] words flow within their audience, and from a shared place into a conversation of one person", () => {
  expect(audienceOf(secret.trigger)).not.toBe(audienceOf(question.trigger));
  expect(mayFlow("web prs_a", "web prs_a")).toBe(true);
  expect(mayFlow("web prs_a", "web prs_b")).toBe(false);
  expect(mayFlow("web prs_a", "github acme/app")).toBe(false);
  expect(mayFlow("github acme/app", "web prs_a")).toBe(true);
  expect(mayFlow("github acme/private", "github acme/app")).toBe(false);
  // Of what it is not known who may hear it, and what is one thread's alone, nobody else hears.
  for (const from of [nobody, "thr_a"]) expect(mayFlow(from, "web prs_a") || mayFlow(from, "github acme/app")).toBe(false);
});

test.each([
  ["another person's topic", question],
  ["a public issue", issue],
])("[A8][H1] one dispatch does not carry the words of one person into %s", (_where, other) => {
  const outcome = decideStep(view([other, secret]), [call("dispatch", { settles: [other.id, secret.id], title: "t", goal: "both" })]);
  expect(JSON.stringify(outcome.decisions)).not.toContain("1234");
  expect(outcome.refused[0]?.reason).toMatch(/different conversations/);
});

test("[A8][H1] a question to the operators is of one conversation, so that its answer reaches nobody else", () => {
  const outcome = decideStep(view([question, secret]), [call("ask_human", { settles: [question.id, secret.id], question: "?" })]);
  expect(outcome.decisions).toEqual([]);
});

test.each([
  ["remember", { kind: "background", text: "The code is 1234.", for: "team" }],
  ["schedule", { name: "s", text: "say 1234", everyMinutes: 5 }],
])("[A8] one call of %s keeps nothing of two conversations as one person's", (tool, input) => {
  const outcome = decideStep(view([question, secret]), [call(tool, { settles: [question.id, secret.id], ...input })]);
  expect(outcome.decisions).toEqual([]);
  expect(outcome.refused[0]?.reason).toMatch(/different conversations/);
  expect(decideStep(view([secret]), [call(tool, { settles: [secret.id], ...input })]).decisions).toHaveLength(1);
});

test("[A8] facts are not delivered to a task that answers in another conversation; those of a shared place may come to one", () => {
  const theirs = taskOf("theirs");
  const deliver = (item: ReturnType<typeof queuedTrigger>) =>
    decideStep(view([item], [theirs]), [call("deliver", { settles: [item.id], task: theirs.id, facts: "f" })]);
  expect(deliver(secret).refused[0]?.reason).toMatch(/another/);
  expect(deliver(question).decisions).toHaveLength(1);
  expect(deliver(issue).decisions).toHaveLength(1);
});

test("[RD7] a dispatch flips its thread: a later row of it in the same turn makes no second task that does the same again", () => {
  const later = queuedTrigger({ name: "d", by: member, thread: "7", text: "run b" }, 2);
  const outcome = decideStep(view([issue, later]), [
    call("dispatch", { settles: [issue.id], title: "one", goal: "one" }),
    call("dispatch", { settles: [later.id], title: "two", goal: "two" }, "2"),
  ]);
  const tasks = outcome.decisions.flatMap(({ newTask }) => newTask ?? []);
  expect(tasks).toHaveLength(1);
  expect(outcome.refused[0]?.reason).toContain(tasks[0]?.id);
});

test("[RD7] two requests in one root are two tasks", () => {
  const second = queuedTrigger({ name: "e", by: member, text: "and this" }, 2);
  const outcome = decideStep(view([question, second]), [
    call("dispatch", { settles: [question.id], title: "one", goal: "one" }),
    call("dispatch", { settles: [second.id], title: "two", goal: "two" }, "2"),
  ]);
  expect(outcome.decisions.flatMap(({ newTask }) => newTask ?? [])).toHaveLength(2);
});

const audiences = ["web prs_member", "web prs_ben", "github acme/app", "github acme/private", teamAudience];
const scheduleOf = (audience: string, text: string): Schedule => {
  const [source = "", place = ""] = audience.split(" ");
  return {
    id: `sch_${text}`,
    name: text,
    text,
    when: { kind: "every", everyMs: 60_000, anchorMs: 0 },
    zone: "UTC",
    thread: { threadId: "thr_s", source, place: source === "web" ? "widget" : place, threadKey: "k", threadTitle: "t" },
    by: { role: "member", id: source === "web" ? place : "prs_x", name: "x" },
    authority: "member",
    state: "active",
    why: "",
    nextMs: 1,
    failures: 0,
    createdMs: 1,
  };
};

test("[A9] whatever tasks and schedules there are, a turn shows words of those alone that one of its conversations may hear", () => {
  const some = fc.array(fc.constantFrom(...audiences.filter((each) => each !== teamAudience)), { minLength: 1, maxLength: 8 });
  void fc.assert(
    fc.property(some, fc.subarray([secret, question, issue], { minLength: 1 }), (held, items) => {
      const readers = items.map((item) => audienceOf(item.trigger));
      const tasks = held.map((audience, n) => taskOf(`t${n}`, { audience, title: `titleof${n}.`, line: `lineof${n}.` }));
      const list = held.map((audience, n) => scheduleOf(audience, `dueof${n}.`));
      const about = { turn: 1, lane: "team" as const, machines: [], observed: [], policies: null, summary: [], nowMs: 1 };
      const schedules = schedulesItem(list, "UTC", 1, readers);
      const text = renderTurn({ ...about, items, readers, tasks, schedules });
      held.forEach((audience, n) => {
        const shown = readers.some((reader) => reader === audience || (reader.startsWith("web ") && audience.startsWith("github ")));
        for (const words of [`titleof${n}.`, `lineof${n}.`, `dueof${n}.`]) expect(text.includes(words), `${words} ${audience}`).toBe(shown);
        expect(text).toContain(tasks[n]?.id);
      });
    }),
  );
});

test("[A9] what a turn read for one conversation it says in no other: those words are refused, and no reason keeps them", () => {
  void fc.assert(
    fc.property(fc.subarray(audiences), fc.constantFrom(secret, question, issue), (heard, item) => {
      const over = heard.some((from) => !mayFlow(from, audienceOf(item.trigger)));
      const decide = (tool: string, input: object) =>
        decideStep({ ...view([item]), heard }, [call(tool, { settles: [item.id], ...input })]);
      for (const [tool, input] of [
        ["reply", { text: "overheard" }],
        ["dispatch", { title: "overheard", goal: "overheard" }],
        ["ask_human", { question: "overheard" }],
        ["remember", { kind: "background", text: "overheard" }],
        ["schedule", { name: "overheard", text: "overheard", afterMinutes: 5 }],
      ] as const) {
        const { decisions, refused } = decide(tool, input);
        expect(decisions.length, tool).toBe(over ? 0 : 1);
        expect(JSON.stringify(refused)).not.toContain("overheard");
      }
      const { decisions } = decide("record", { reason: "overheard" });
      expect(JSON.stringify(decisions).includes("overheard")).toBe(!over);
    }),
  );
});

test("[A9] what was read of a conversation is in no later turn; what is everybody's stays", () => {
  const reply = {
    text: "",
    calls: [call("recall", { id: "thr_x" }), call("find", { query: "q" }, "2")],
    usage: null,
    finish: "tools" as const,
  };
  const read = (text: string, heard: string[]) => ({ text, tainting: false, heard });
  const options = { team: true, tainted: false, known: new Set<string>(), keptId: "k" };
  const later = (heard: string[]) => {
    const reads = new Map([0, 1].map((n) => [n, read(`private words ${n}`, heard)]));
    const { sent, kept } = stepMessages(reply, { results: [null, null], refused: [] }, reads, options);
    expect(JSON.stringify(sent)).toContain("private words");
    return JSON.stringify(kept.map(asLater));
  };
  expect(later(["web prs_ben"])).not.toContain("private words");
  expect(later(["web prs_ben"])).toContain("thr_x was read for that turn only");
  expect(later([teamAudience])).toContain("private words");
});

test("[A9] a fact of somebody's own conversation stays there unless it is told to the team; a rule is the team's by itself", () => {
  const told = { source: "web", place: "widget", by: { role: "member" as const, id: "prs_a", name: "a" } };
  expect(factAudience({ ...told, kind: "background" })).toBe("web prs_a");
  expect(factAudience({ ...told, kind: "preference" })).toBe("web prs_a");
  expect(factAudience({ ...told, kind: "background", for: "team" })).toBe(teamAudience);
  expect(factAudience({ ...told, kind: "rule" })).toBe(teamAudience);
  expect(factAudience({ ...told, kind: "rule", for: "here" })).toBe("web prs_a");
  expect(factAudience({ ...told, kind: "background", source: "github", place: "acme/app" })).toBe("github acme/app");
});

test("[WI8] [A9] an operator who asks a failed task to try again says it in the conversation that the task answers in, and nobody else can", () => {
  const console = { role: "owner" as const, id: operatorId, name: "Operator" };
  const topic = { threadId: "thr_topic", source: "web", place: "widget", threadKey: "topic:tsk_a", title: "t", viewerId: "prs_ben" };
  const info = { ...topic, headSeq: 1, subscribers: [] };
  const said = operatorTrigger(info, console, { id: "again-tsk_a-7", text: "Try again." }, 1);
  expect(audienceOf(said)).toBe("web prs_ben");
  expect(operatorTrigger(info, console, { id: "again-tsk_a-7", text: "Try again." }, 2).id).toBe(said.id);
  expect(audienceOf({ ...said, principal: member })).toBe(`web ${member.id}`);
  const { viewerId: _, ...nobodys } = info;
  const shared = { ...nobodys, source: "github", place: "acme/app", threadKey: "issue:7" };
  expect(operatorTrigger(shared, console, { id: "again-tsk_b-7", text: "Try again." }, 1).facts).toBeUndefined();
  const failed = taskOf("a", { threadId: "thr_topic", audience: "web prs_ben", status: "failed", endedMs: 1 });
  const item = { ...queuedTrigger({ name: "again", by: owner }), id: said.id, threadId: "thr_topic", trigger: said };
  const { decisions } = decideStep(view([item], [failed]), [call("resolve", { settles: [said.id], task: failed.id, how: "reopen" })]);
  expect(decisions).toMatchObject([{ tool: "resolve", taskId: failed.id, authority: "owner" }]);
});
