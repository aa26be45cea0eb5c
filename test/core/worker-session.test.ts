import { describe, expect, test } from "vitest";
import { childId } from "../../src/core/ids.ts";
import { effectAddress } from "../../src/core/worker-address.ts";
import { withCard } from "../../src/core/worker-card.ts";
import { acceptTask, cancelTask, machineStopped } from "../../src/core/worker-end.ts";
import { received } from "../../src/core/worker-input.ts";
import { decideReply, readAnswered } from "../../src/core/worker-reply.ts";
import { beginStep, callAgain, callFailed, nextMove, resumeTask, startTask } from "../../src/core/worker-session.ts";
import { changeOf, type InboxRow, type TaskState, type WorkerCommand } from "../../src/core/worker-state.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { ModelReply } from "../../src/protocol/model.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { TaskStart } from "../../src/protocol/task.ts";
import {
  asked,
  between,
  bot,
  calling,
  command,
  facts,
  fresh,
  member,
  message,
  outputs,
  reply,
  replyFacts,
  result,
  said,
  start,
  stranger,
  texts,
  threadId,
} from "../support/worker-fixtures.ts";

test("[W1] a task begins by itself, and never just stops while nothing is under way", () => {
  expect(nextMove(fresh(), [], [], 0)).toEqual({ move: "begin" });
  expect(nextMove(between(), [], [], 0)).toEqual({ move: "begin" });
  expect(nextMove(between(), [], [command(1, "run_command")], 0)).toEqual({ move: "sleep", untilMs: null });
  expect(nextMove(between({ mode: { mode: "asking" } }), [], [], 0)).toEqual({ move: "sleep", untilMs: null });
  expect(nextMove(between({ mode: { mode: "ended", status: "done", endedMs: 0 } }), [message("late")], [], 0)).toEqual({
    move: "sleep",
    untilMs: null,
  });
});

test("[W1] a planned retry sleeps until its time, then calls again", () => {
  const waiting = calling({ open: { kind: "calling", step: 1, attempts: 2, retryAtMs: 500 } });
  expect(nextMove(waiting, [message("hello")], [], 400)).toEqual({ move: "sleep", untilMs: 500 });
  expect(nextMove(waiting, [], [], 500)).toEqual({ move: "call" });
});

test("[W2] a person, a shell result and the last file result wake a step; a bot only when nothing is under way", () => {
  const shell = command(1, "run_command");
  const file = command(2, "read_file");
  const wakes = (row: InboxRow, open: WorkerCommand[], mode: TaskState["mode"] = { mode: "working" }): boolean =>
    nextMove(between({ mode }), [row], open, 0).move === "begin";
  expect(wakes(message("hello"), [shell])).toBe(true);
  expect(wakes(message("hello", stranger), [shell])).toBe(true);
  expect(wakes(result(shell), [file])).toBe(true);
  expect(wakes(result(command(3, "read_file")), [file])).toBe(false);
  expect(wakes(result(command(3, "read_file")), [shell])).toBe(true);
  expect(wakes(message("green", bot), [shell])).toBe(false);
  expect(wakes(message("green", bot), [], { mode: "waiting", untilMs: null, reason: "" })).toBe(true);
});

test("[W3] our own words and the asking row wake nobody", () => {
  for (const row of [said("on it"), message("please fix it", member, asked)])
    expect(nextMove(between({ mode: { mode: "asking" } }), [row], [], 0).move).toBe("sleep");
});

test("[W8] the allowance is looked at before a call, not after it", () => {
  expect(nextMove(between({ steps: 15 }), [message("more")], [], 0)).toEqual({ move: "pause" });
  expect(nextMove(between({ steps: 14 }), [message("more")], [], 0)).toEqual({ move: "begin" });
});

test("a wait and a deadline ring once, each with its notice", () => {
  const task = between({ mode: { mode: "waiting", untilMs: 900, reason: "" }, start: { ...start, deadlineMs: 950 } });
  expect(nextMove(task, [], [], 100)).toEqual({ move: "sleep", untilMs: 900 });
  const change = beginStep(task, [], facts);
  expect(texts(change)).toContain("is over.");
  expect(texts(change)).toContain("The deadline of this task has passed.");
  expect(nextMove({ ...change.task, overdue: true, open: { kind: "none" }, mode: { mode: "asking" } }, [], [], 2000)).toEqual({
    move: "sleep",
    untilMs: null,
  });
});

test("[W5] a step is tainted by what it takes, before the model sees it, and stays so", () => {
  const taken = beginStep(between(), [message("evil", stranger)], facts);
  expect(taken.task.tainted).toBe(true);
  expect(beginStep({ ...taken.task, open: { kind: "none" } }, [message("kind")], facts).task.tainted).toBe(true);
  expect(beginStep(between(), [message("kind")], facts).task.tainted).toBe(false);
});

test("quoted and fenced text is handed over as data", () => {
  const text = texts(beginStep(fresh(), [message("look:\n> delete everything\nplease")], facts));
  expect(text).toContain('"data":[{"kind":"quote","text":"delete everything"}]');
});

test("a step takes a bounded number of rows; the others follow", () => {
  const rows = Array.from({ length: limits.maxStepRows + 5 }, (_, i) => message(`m${i}`));
  expect(beginStep(between(), rows, facts).consumed?.seqs).toHaveLength(limits.maxStepRows);
});

test("[W6] a lost call is repeated under a new lease and noticed once; without end it pauses", () => {
  let task = calling();
  for (let n = 1; n < limits.maxModelAttempts; n++) task = callAgain(task, { lost: true, ...facts }).task;
  expect(task.notices).toHaveLength(1);
  expect(task.lease.epoch).toBe(limits.maxModelAttempts);
  const last = callAgain(task, { lost: true, ...facts });
  expect(last.task.mode).toEqual({ mode: "paused", why: "model" });
  const resumed = resumeTask(last.task, member, 5, 2000);
  expect(resumed?.task).toMatchObject({ allowance: 15, open: { attempts: 1, retryAtMs: 2000 } });
});

const failed = { ...facts, ms: 1, estimatedTokens: 1_000 };

test("[W7] a passing fault backs off and honours the provider's own time; a lasting one fails the task", () => {
  const slow = { kind: "rate_limited" as const, message: "slow down", retry: "later" as const, retryAfterMs: 60_000 };
  const later = callFailed(calling(), slow, [], [], failed);
  expect(later.task.open).toMatchObject({ attempts: 2, retryAtMs: 61_000 });
  const key = { kind: "unauthorised" as const, message: "Set a valid key.", retry: "never" as const, retryAfterMs: undefined };
  const never = callFailed(calling(), key, [message("unread")], [], failed);
  expect(never.task.mode).toMatchObject({ mode: "ended", status: "failed" });
  expect(never.reports[0]?.text).toContain("Set a valid key.");
  expect(never.effects.map((effect) => effect.effect)).toEqual(["report", "release", "unsubscribe"]);
});

test.each([
  ["fails", { kind: "unauthorised" as const, retry: "never" as const }, 1],
  ["pauses", { kind: "provider" as const, retry: "never" as const }, 1],
  ["gives up", { kind: "unavailable" as const, retry: "later" as const }, limits.maxModelAttempts],
])("[A11] what the provider said is in the log of a task that %s, and in its words only on a team's own page", (_ends, fault, attempts) => {
  const refusal = { ...fault, retryAfterMs: undefined, message: "The model said no.", detail: "api.example.com said: no key." };
  const widget = { ...start, source: "web", place: "widget" };
  for (const [asked, told] of [
    [start, false],
    [{ ...start, source: "chat", place: "team" }, false],
    [widget, true],
    [{ ...widget, authority: "guest" as const, quote: { ...start.quote, from: stranger } }, false],
  ] as const) {
    const task = calling({ start: asked, open: { kind: "calling", step: 1, attempts, retryAtMs: null } });
    const { task: after, reports, events } = callFailed(task, refusal, [], [], failed);
    expect(reports).toHaveLength(1);
    const said = JSON.stringify([after.line, reports]);
    expect(said.includes("api.example.com")).toBe(told);
    expect(said).toContain(told ? "said: no key." : "The model said no.");
    expect(events).toContainEqual(expect.objectContaining({ kind: "task.model", phase: "failed", error: refusal.detail }));
  }
});

describe("[W28] a refused request", () => {
  const fault = { kind: "provider" as const, message: "It is too long.", retry: "never" as const, retryAfterMs: undefined };

  test("is a choice for people, and Continue leaves out what came last", () => {
    const { task, reports } = callFailed(calling(), fault, [], [], failed);
    expect(task.mode).toEqual({ mode: "paused", why: "refused" });
    expect(reports).toMatchObject([
      { kind: "paused", text: expect.stringMatching(/too long\. Continue without what came last, or stop\?$/) },
    ]);
    const resumed = resumeTask(task, member, 5, 2000);
    expect(resumed?.task).toMatchObject({
      open: { kind: "none" },
      again: true,
      refused: { step: 1, leaveOut: "all", left: [1] },
      allowance: 15,
    });
    expect(resumed && nextMove(resumed.task, [], [], 2000)).toEqual({ move: "begin" });
  });

  test("of a long transcript is tried once with less of it, and then is a choice", () => {
    const first = callFailed(calling(), fault, [], [], { ...failed, estimatedTokens: 40_000 });
    expect(first.task).toMatchObject({
      mode: { mode: "working" },
      open: { kind: "none" },
      again: true,
      refused: { step: 1, leaveOut: "older", left: [] },
    });
    expect(first.reports).toEqual([]);
    const again = beginStep({ ...first.task, refused: { step: 1, leaveOut: null, left: [] } }, [], facts).task;
    expect(callFailed(again, fault, [], [], { ...failed, estimatedTokens: 40_000 }).task.mode).toEqual({ mode: "paused", why: "refused" });
  });

  test("is also what was given up twice at one step, whatever the fault", () => {
    const away = { kind: "unavailable" as const, message: "It is away.", retry: "later" as const, retryAfterMs: undefined };
    const giveUp = (task: TaskState) =>
      callFailed({ ...task, open: { kind: "calling", step: 1, attempts: limits.maxModelAttempts, retryAtMs: null } }, away, [], [], failed)
        .task;
    const once = giveUp(calling());
    expect(once.mode).toEqual({ mode: "paused", why: "model" });
    const resumed = resumeTask(once, member, 5, 2000)?.task;
    expect(resumed?.open).toMatchObject({ kind: "calling", attempts: 1 });
    expect(resumed && giveUp(resumed).mode).toEqual({ mode: "paused", why: "refused" });
  });
});

test("[W4] every call gets exactly one result, also twins, unknown ones and those after the end", () => {
  const twins: ModelReply = { ...reply(["report", { kind: "progress", text: "a" }]), calls: [] };
  const call = { callId: "same", tool: "nothing", input: {} };
  const change = decideReply(calling(), { ...twins, calls: [call, call] }, replyFacts());
  expect(change.messages.map((one) => one.role)).toEqual(["assistant", "tool"]);
  const ended = decideReply(calling(), reply(["report", { kind: "done", text: "x" }], ["recall", { id: "tsk_b" }]), replyFacts());
  expect(outputs(ended)).toEqual([`{"reported":"${childId("rep", "tsk_a", 1, "c0")}"}`, '{"refused":"the task has ended"}']);
});

test("[W4] reads keep the step open until all are answered; their taint becomes the task's", () => {
  const change = decideReply(calling(), reply(["recall", { id: "tsk_b" }], ["report", { kind: "progress", text: "p" }]), replyFacts());
  expect(change.task.open).toEqual({ kind: "reading", step: 1 });
  expect(outputs(change)).toEqual([]);
  const [first, second] = change.calls;
  if (!first || !second) throw new Error("two calls");
  const open = readAnswered(change.task, [first, second], { step: 1, callId: "c0" });
  expect(open?.task.open.kind).toBe("reading");
  const closed = readAnswered(change.task, [{ ...first, output: "text", tainting: true }, second], { step: 1, callId: "c0" });
  expect(closed?.task).toMatchObject({ open: { kind: "none" }, tainted: true });
  expect(closed && outputs(closed)).toEqual(["text", second.output]);
});

test("[W10] an end is withheld when there is new input or commands start with it; a report without confidence is half sure", () => {
  const end = reply(["report", { kind: "done", text: "x" }]);
  expect(outputs(decideReply(calling(), end, replyFacts({ pending: [message("stop!")] })))).toEqual(['{"not_sent":"new input arrived"}']);
  expect(decideReply(calling(), end, replyFacts({ pending: [said("on it")] })).task.mode.mode).toBe("ended");
  const both = decideReply(calling(), reply(["report", { kind: "done", text: "x" }], ["run_command", { script: "ls" }]), replyFacts());
  expect(outputs(both)[0]).toContain("not_sent");
  expect(outputs(both)[1]).toContain("started");
  expect(decideReply(calling(), end, replyFacts()).reports[0]).toMatchObject({ kind: "done", confidence: 0.5 });
});

test("[R19] a read that the end of its task overtakes is refused, not left open", () => {
  const change = decideReply(calling(), reply(["recall", { id: "tsk_b" }], ["report", { kind: "done", text: "x" }]), replyFacts());
  expect(outputs(change)[0]).toBe("not read: the task has ended");
  expect(change.effects.map(({ effect }) => effect)).not.toContain("read");
  expect(
    change.events.filter((event) => event.kind === "task.tool" && event.callId === "c0").map((event) => "phase" in event && event.phase),
  ).toEqual(["intent", "refused"]);
});

test("[A5] a tainted task, or one of a guest, is refused every machine tool before any command is made", () => {
  const calls = reply(
    ["run_command", { script: "id" }],
    ["read_file", { path: "a" }],
    ["write_file", { path: "a", content: "b" }],
    ["edit_file", { path: "a", old: "b", new: "c" }],
    ["list_files", {}],
    ["search_files", { query: "x" }],
  );
  for (const task of [calling({ tainted: true }), calling({ start: { ...start, authority: "guest" } })]) {
    const change = decideReply(task, calls, replyFacts());
    expect(change.commands).toEqual([]);
    expect(change.effects).toEqual([]);
    expect(outputs(change).every((output) => output.startsWith('{"refused"'))).toBe(true);
  }
  expect(decideReply(calling(), calls, replyFacts()).commands).toHaveLength(6);
});

test("[W10] what still runs at the end is stopped", () => {
  const change = decideReply(
    calling(),
    reply(["report", { kind: "failed", text: "x" }]),
    replyFacts({ open: [command(1, "run_command")] }),
  );
  expect(change.effects).toContainEqual({ effect: "stop", endpointId: "ep_a", commandId: "cmd_a-1", why: "its task has ended" });
});

test("commands of a task are bounded, also within one reply", () => {
  const many = reply(...Array.from({ length: 12 }, (_, i): [string, unknown] => ["run_command", { script: `echo ${i}` }]));
  const change = decideReply(calling(), many, replyFacts({ open: [command(1, "run_command")] }));
  expect(change.commands).toHaveLength(limits.maxOpenCommandsPerTask - 1);
  expect(change.effects.filter((effect) => effect.effect === "submit")).toHaveLength(limits.maxOpenCommandsPerTask - 1);
  expect(new Set(change.commands.map((one) => one.commandId)).size).toBe(change.commands.length);
});

test("a wait does not hide a result that the model has not seen", () => {
  const change = decideReply(calling(), reply(["nothing", {}], ["wait", { seconds: 60, reason: "x" }]), replyFacts());
  expect(change.task.mode.mode).toBe("working");
  expect(nextMove(change.task, [], [command(1, "run_command")], 1000)).toEqual({ move: "begin" });
});

test("[W9] a cancel waits for every machine that may still run something, and for the right epoch", () => {
  const running = command(1, "run_command");
  const change = cancelTask(between(), member, "no", [], [running], 0);
  expect(change?.effects).toEqual([{ effect: "stop_task", endpointId: "ep_a", epoch: 2 }]);
  const task = change?.task ?? between();
  expect(machineStopped(task, { endpointId: "ep_a", epoch: 1, offline: false }, [], [running], 0)).toBeNull();
  expect(machineStopped(task, { endpointId: "ep_b", epoch: 2, offline: false }, [], [running], 0)).toBeNull();
  const away = machineStopped(task, { endpointId: "ep_a", epoch: 2, offline: true }, [], [running], 0);
  if (away === null) throw new Error("a change");
  expect(withCard(away, [running], 0).task.card).toMatchObject({ status: "cancelling", line: "stopping, studio-laptop offline" });
  const ended = machineStopped(away.task, { endpointId: "ep_a", epoch: 2, offline: false }, [message("unread")], [running], 0);
  expect(ended?.task.mode).toMatchObject({ mode: "ended", status: "cancelled" });
  expect(ended?.effects.map((effect) => effect.effect)).toEqual(["report", "unsubscribe"]);
});

test("[W29] below the team only whoever asked may stop a task, continue or judge it; the team may those of its authority", () => {
  const people: Principal[] = (["guest", "public", "member", "owner"] as const).flatMap((role) =>
    ["a", "b"].map((id) => ({ role, id, name: id })),
  );
  for (const from of people)
    for (const by of people) {
      const authority = from.role as TaskStart["authority"];
      const task = between({ start: { ...start, authority, quote: { ...start.quote, from } } });
      const team = by.role === "owner" || by.role === "member";
      const may = team ? by.role === "owner" || authority !== "owner" : by.role === from.role && by.id === from.id;
      const ended = { ...task, mode: { mode: "ended" as const, status: "done" as const, endedMs: 0 } };
      const paused = { ...task, mode: { mode: "paused" as const, why: "allowance" as const } };
      const asked = [message("stop", by)];
      const tries = [() => cancelTask(task, by, "no", [], [], 0), () => resumeTask(paused, by, 5, 0), () => acceptTask(ended, by, false)];
      for (const attempt of tries)
        if (may) expect(attempt()).not.toBeNull();
        else expect(attempt, `${by.role} ${by.id} of ${from.role} ${from.id}`).toThrow(/^Only /);
      expect(received(paused, asked, { threadId, unread: asked, open: [], nowMs: 0 }).task.mode.mode).toBe(may ? "ended" : "paused");
    }
});

test("[W30] a merge of what a task pushed accepts its outcome, whoever may merge there, while it is open too; elsewhere it says nothing", () => {
  const owners = { ...start, authority: "owner" as const };
  const push = { sha: "a".repeat(40), branch: "switchyard/tsk_a", place: "Acme/App", atMs: 0 };
  const open = between({ start: owners, pushes: [push] });
  const merged = { place: "acme/app" };
  const accepted = acceptTask(open, member, true, merged);
  expect(accepted?.task).toMatchObject({ accepted: true, mode: open.mode });
  expect(acceptTask({ ...open, accepted: true }, member, true, merged)).toBeNull();
  expect(acceptTask({ ...open, accepted: false }, member, true, merged)?.task.accepted).toBe(true);
  expect(acceptTask(open, member, true, { place: "acme/other" })).toBeNull();
  expect(acceptTask({ ...open, pushes: [] }, member, true, merged)).toBeNull();
});

test("[W31] a reaction judges an ended task that nobody judged, by whoever may judge it; what was said meanwhile stands", () => {
  const ended = between({ mode: { mode: "ended", status: "done", endedMs: 0 } });
  for (const accepted of [true, false]) {
    const judged = acceptTask(ended, member, accepted, { sign: "👍" });
    expect(judged?.task.accepted).toBe(accepted);
    expect(judged?.why).toContain("by a reaction (👍)");
    for (const before of [true, false]) expect(acceptTask({ ...ended, accepted: before }, member, accepted, { sign: "👍" })).toBeNull();
  }
  expect(acceptTask(between({}), member, true, { sign: "👍" })).toBeNull();
  expect(() => acceptTask(ended, stranger, true, { sign: "👍" })).toThrow(/^Only /);
  expect(() => acceptTask({ ...ended, start: { ...start, authority: "owner" } }, member, true, { sign: "👍" })).toThrow(/^Only /);
});

test("a paused task takes `continue` and `stop` in words, from someone who may decide", () => {
  const paused = between({ mode: { mode: "paused", why: "allowance" }, steps: 15 });
  const say = (text: string, from: Principal): TaskState => {
    const row = message(text, from);
    return received(paused, [row], { threadId, unread: [row], open: [], nowMs: 0 }).task;
  };
  expect(say("@switchyard continue", member)).toMatchObject({ mode: { mode: "working" }, allowance: 30 });
  expect(say("Stop.", member).mode).toMatchObject({ mode: "ended", status: "cancelled" });
  expect(say("continue", stranger).mode.mode).toBe("paused");
  expect(say("please do not continue", member).mode.mode).toBe("paused");
});

test("a card gets a revision for what people would see, and none for a step that has only begun", () => {
  const started = withCard(startTask(start, [], null, [], 0), [], 0).task;
  expect(started.card).toMatchObject({ revision: 1, status: "queued" });
  const first = withCard(beginStep(started, [], facts), [], 1).task;
  expect(first.card).toMatchObject({ revision: 2, status: "running" });
  const second = withCard(beginStep({ ...first, open: { kind: "none" } }, [], facts), [], 2);
  expect(second.task.card.revision).toBe(2);
  expect(second.effects).toEqual([]);
});

test("effects of one target keep one address, and repeated ones are the same row", () => {
  expect(effectAddress({ effect: "card", to: "board" })).toEqual({ id: "card:board", target: "board" });
  const [a, b] = [1, 2].map((n) => effectAddress({ effect: "stop", endpointId: "ep_a", commandId: `cmd_a-${n}`, why: "" }));
  expect(a?.target).toBe(b?.target);
  expect(a?.id).not.toBe(b?.id);
});

test("who waits for its own command is running, and says what; who waits for nothing of its own waits", () => {
  const task = between({ mode: { mode: "waiting", untilMs: null, reason: "for the command" }, line: "waiting: for the command" });
  const running = command(1, "run_command", { what: "npm test" });
  expect(withCard(changeOf(task), [running], 1).task.card).toMatchObject({ status: "running", line: "npm test" });
  expect(withCard(changeOf(task), [{ ...running, online: false }], 1).task.card).toMatchObject({
    status: "waiting",
    waitingFor: running.machine,
  });
  expect(withCard(changeOf(task), [], 1).task.card).toMatchObject({ status: "waiting", waitingFor: "event" });
});

test("an answer beside the work is reported, and changes neither the work nor its line", () => {
  const change = decideReply(
    calling({ line: "npm test" }),
    reply(["report", { kind: "answer", text: "I am running it." }], ["wait", { reason: "x" }]),
    replyFacts(),
  );
  expect(change.reports).toMatchObject([{ kind: "answer", status: "running", text: "I am running it." }]);
  expect(change.task).toMatchObject({ line: "npm test", mode: { mode: "waiting" } });
});
