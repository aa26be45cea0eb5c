// What one person wrote in a conversation of their own must not be handed to a task, or an answer, that others read.
import { expect, test } from "vitest";
import { audienceOf, mayFlow } from "../../src/core/audience.ts";
import type { KnownTask } from "../../src/core/router.ts";
import { decideStep } from "../../src/core/router-decide.ts";
import { member, queuedTrigger, taskOf } from "../support/router-fixtures.ts";

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
