import { expect, test } from "vitest";
import { audienceOf } from "../../src/core/audience.ts";
import { shippedProfiles } from "../../src/core/profiles.ts";
import type { InboxItem, KnownTask } from "../../src/core/router.ts";
import { decideStep, type TurnView } from "../../src/core/router-decide.ts";
import { guest, machineOf, member, queuedReport, queuedTrigger, reportOf, taskOf } from "../support/router-fixtures.ts";

const failed = (parts: Partial<KnownTask> = {}): KnownTask =>
  taskOf("failed", { status: "failed", endedMs: 5, machine: "laptop", ...parts });
const machines = [machineOf("laptop"), machineOf("studio")];
const viewOf = (items: readonly InboxItem[], task: KnownTask): TurnView => ({
  turn: 2,
  step: 1,
  lane: items[0]?.lane ?? "team",
  capped: false,
  nowMs: 9,
  agentName: "agent",
  items: new Map(items.map((item) => [item.id, item])),
  progress: new Map(),
  tasks: new Map([[task.id, task]]),
  machines,
  profiles: shippedProfiles,
  policies: [],
});
const resolve = (item: InboxItem, task: KnownTask, input: object) =>
  decideStep(viewOf([item], task), [{ callId: "c", tool: "resolve", input: { settles: [item.id], task: task.id, ...input } }]);
const report = (task: KnownTask) => queuedReport(reportOf({ task, kind: "failed", status: "failed" }));

test("[RD8] a failed task is tried again once, with other words, then elsewhere, then people decide", () => {
  const task = failed();
  expect(resolve(report(task), task, { how: "retry" }).refused).toMatchObject([{ reason: expect.stringContaining("rephrased") }]);
  const { decisions } = resolve(report(task), task, { how: "retry", note: "Use the lock file." });
  expect(decisions[0]?.effects.map((effect) => effect.kind)).toEqual(["reopen", "subscribe"]);
  expect(decisions[0]?.effects[0]).toMatchObject({ input: { text: "Use the lock file." } });
  expect(decisions[0]?.newTask).toMatchObject({ status: "running", endedMs: null, retries: 1 });
  const tried = failed({ retries: 1 });
  expect(resolve(report(tried), tried, { how: "retry", note: "Again." }).refused).toMatchObject([
    { reason: expect.stringContaining("reroute") },
  ]);
  const moved = resolve(report(tried), tried, { how: "reroute", machine: "studio", note: "Try there." }).decisions[0];
  expect(moved?.effects[0]).toMatchObject({ kind: "reopen", input: { endpoint: { name: "studio" } } });
  expect(resolve(report(tried), tried, { how: "reroute", machine: "laptop" }).refused).toHaveLength(1);
  const lost = failed({ retries: 1, reroutes: 2 });
  expect(resolve(report(lost), lost, { how: "reroute", machine: "studio" }).refused).toMatchObject([
    { reason: expect.stringContaining("ask_human") },
  ]);
});

test("[RD8] only a person's word opens a task again: not its own report, which would go round for ever, and not a program", () => {
  const task = failed({ status: "failed" });
  for (const how of ["reopen", "retry", "reroute"]) {
    const ci = queuedTrigger({ name: "ci", by: { role: "bot", id: "ci", name: "ci", onBehalfOf: "member" }, thread: "x" });
    const own = { ...task, threadId: ci.threadId, threads: [ci.threadId], audience: audienceOf(ci.trigger) };
    const input = { how, note: "Once more, another way.", machine: "studio" };
    expect(resolve(ci, own, input).refused, how).toMatchObject([{ reason: expect.stringContaining("Nobody asks for more of it") }]);
    expect(resolve(report(task), task, input).refused, how).toHaveLength(how === "reopen" ? 1 : 0);
  }
});

test("[RD8] [WF2] a retry says something else than before, and another profile is another path", () => {
  const task = failed({ goal: "Make the login test stable.", profile: "coder" });
  const refused = (input: object) => resolve(report(task), task, input).refused[0]?.reason ?? "";
  expect(refused({ how: "retry", note: "make the login test STABLE" })).toContain("what it was told before");
  expect(resolve(report(task), task, { how: "retry", note: "Freeze the clock in the login test." }).decisions).toHaveLength(1);
  expect(refused({ how: "reroute", profile: "wizard" })).toContain("no profile");
  expect(refused({ how: "reroute", profile: "coder", machine: "laptop" })).toContain("no other machine");
  const { decisions } = resolve(report(task), task, { how: "reroute", profile: "researcher", note: "Find out why first." });
  expect(decisions[0]?.effects[0]).toMatchObject({ kind: "reopen", input: { profile: "researcher", text: "Find out why first." } });
  expect(decisions[0]?.effects[0]).not.toMatchObject({ input: { endpoint: expect.anything() } });
  expect(decisions[0]?.newTask).toMatchObject({ profile: "researcher", machine: "laptop", reroutes: 1 });
});

test("[RD8] a reply in the task's thread reaches it as a row; words from elsewhere are handed over", () => {
  const inside = queuedTrigger({ name: "in", by: member, thread: "x" });
  const task = failed({ threadId: inside.threadId, threads: [inside.threadId], status: "done" });
  expect(resolve(inside, task, { how: "reopen" }).decisions[0]?.effects).toMatchObject([
    { kind: "reopen", input: { text: "" } },
    { kind: "subscribe", threadId: inside.threadId, input: { triggerId: inside.id } },
  ]);
  const elsewhere = queuedTrigger({ name: "out", by: member, text: "once more please" });
  const own = { ...task, audience: audienceOf(elsewhere.trigger) };
  const { effects } = resolve(elsewhere, own, { how: "reopen" }).decisions[0] ?? {};
  expect(effects).toMatchObject([
    { kind: "reopen", input: { text: "member said: once more please" } },
    { kind: "subscribe", threadId: inside.threadId },
  ]);
  expect(effects?.[1]).not.toHaveProperty("input.triggerId");
});

test("[RD8] a task is opened once in an answer, so that no words for it are lost: the second call is told that it is open", () => {
  const [first, second] = ["first", "second"].map((name) => queuedTrigger({ name, by: member, text: `${name} wish` }));
  if (first === undefined || second === undefined) throw new Error("two messages");
  const task = { ...failed({ status: "done" }), audience: audienceOf(first.trigger) };
  const call = ({ id }: InboxItem) => ({ callId: id, tool: "resolve", input: { settles: [id], task: task.id, how: "reopen" } });
  const { decisions, refused } = decideStep(viewOf([first, second], task), [call(first), call(second)]);
  expect(decisions).toMatchObject([{ settles: [first.id], taskId: task.id }]);
  expect(refused).toMatchObject([{ settles: [second.id], reason: expect.stringContaining("is still open") }]);
});

test("[RD8] an outcome is judged with the task's authority; an open task and an outsider are refused", () => {
  const item = queuedTrigger({ name: "judge", by: member });
  const task = failed({ status: "done" });
  expect(resolve(item, task, { how: "accept" }).decisions[0]?.effects).toMatchObject([
    { kind: "accept", input: { accepted: true, by: { onBehalfOf: "member" } } },
  ]);
  expect(resolve(item, failed({ status: "running", endedMs: null }), { how: "reopen", note: "x" }).refused).toHaveLength(1);
  expect(resolve(item, failed({ authority: "owner" }), { how: "accept" }).decisions).toMatchObject([{ by: "code" }]);
  const outside = queuedTrigger({ name: "outside", by: guest });
  expect(resolve(outside, task, { how: "reject" }).decisions).toMatchObject([{ by: "code" }]);
});
