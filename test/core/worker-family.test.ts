import fc from "fast-check";
import { expect, test } from "vitest";
import { shippedProfiles } from "../../src/core/profiles.ts";
import { cancelTask } from "../../src/core/worker-end.ts";
import { childReported } from "../../src/core/worker-family.ts";
import { reopenTask } from "../../src/core/worker-follow.ts";
import { decideReply } from "../../src/core/worker-reply.ts";
import { beginStep, nextMove, startTask } from "../../src/core/worker-session.ts";
import { type Change, inboxKey, type TaskState } from "../../src/core/worker-state.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Profile } from "../../src/protocol/profile.ts";
import type { Report, TaskStart } from "../../src/protocol/task.ts";
import {
  between,
  bot,
  calling,
  command,
  commandFor,
  facts,
  member,
  message,
  outputs,
  reply,
  replyFacts,
  start,
  texts,
} from "../support/worker-fixtures.ts";

const spawn = (goal: string, share: number, more: object = {}): [string, unknown] => ["spawn", { title: goal, goal, share, ...more }];
const childStarts = (change: Change): TaskStart[] =>
  change.effects.flatMap((effect) => (effect.effect === "start_child" ? [effect.start] : []));

let seq = 1000;
const report = (child: TaskStart, kind: Report["kind"], callsLeft: number, more: Partial<Report> = {}): Report => ({
  id: `rep_${child.taskId.slice(4)}-${++seq}`,
  taskId: child.taskId,
  kind,
  title: child.title,
  text: `${child.title}: ${kind}`,
  threadId: child.threadId,
  authority: child.authority,
  tainted: false,
  status: kind === "question" ? "waiting" : (kind as Report["status"]),
  callsLeft,
  atMs: 0,
  ...more,
});
const hear = (task: TaskState, said: Report): Change => {
  const item = { kind: "child" as const, report: said };
  return childReported(task, { seq: ++seq, key: inboxKey(item), item }, said, [], 0);
};

test("[WC1] a child takes its share out of the allowance, inherits authority and taint, and hears its parent alone", () => {
  const change = decideReply(
    calling({ start: { ...start, authority: "owner" }, tainted: true }),
    reply(spawn("read the docs", 4, { profile: "researcher" })),
    replyFacts(),
  );
  const [child] = childStarts(change);
  expect(child).toMatchObject({
    authority: "owner",
    tainted: true,
    profile: "researcher",
    maxModelCalls: 4,
    parent: { taskId: "tsk_a", depth: 1 },
  });
  expect(change.task.allowance).toBe(11);
  const begun = child && startTask(child, [], null, [], 0).task;
  expect(begun).toMatchObject({ allowance: 4, threads: [], tainted: true });
  expect(nextMove({ ...change.task, open: { kind: "none" } }, [], [], 0).move).toBe("sleep");
});

test("[WC1] a share that is not there is refused, and so is the same work twice in a row", () => {
  const refusals = (...calls: [string, unknown][]): string[] => outputs(decideReply(calling(), reply(...calls), replyFacts()));
  expect(refusals(spawn("all of it", 14))[0]).toContain("13 model calls that you may give away");
  const twice = refusals(
    spawn("Read the docs, all of them.", 2),
    spawn("read all  the docs, of them", 2),
    spawn("read all the docs, of them", 2, { profile: "researcher" }),
  );
  expect(twice[1]).toContain("has just been given the same");
  expect(twice[2]).toContain("started");
});

test("[WP2] a child, or a hand-off, to a profile that there is not is refused with the names of those that there are", () => {
  const profiles = [
    { ...shippedProfiles[0], name: "release", version: 1 },
    { ...shippedProfiles[1], version: 2 },
  ] as Profile[];
  const handOff: [string, unknown] = ["hand_off", { profile: "wizard", reason: "magic", summary: "none" }];
  for (const call of [spawn("read the docs", 2, { profile: "wizard" }), handOff]) {
    const change = decideReply(calling(), reply(call), replyFacts({ profiles }));
    expect(outputs(change)[0]).toContain('There is no profile \\"wizard\\"; there are general, coder, researcher, triager, release.');
    expect(change.effects).toEqual([]);
    expect(change.task).toMatchObject({ children: [], handOffs: 0, allowance: 15 });
  }
});

test("[WC1] a family is two deep and no more", () => {
  const child: TaskStart = { ...start, parent: { taskId: "tsk_p", depth: limits.maxFamilyDepth } };
  expect(outputs(decideReply(calling({ start: child }), reply(spawn("more", 1)), replyFacts()))[0]).toContain("refused");
});

test("[WC2] a child's end comes to its parent with what it did not spend; a question of it wakes, progress does not", () => {
  const spawned = decideReply(calling(), reply(spawn("read the docs", 5)), replyFacts());
  const [child] = childStarts(spawned);
  if (!child) throw new Error("a child");
  const progress = hear(spawned.task, report(child, "progress", 4, { status: "running" }));
  const item = (said: Report) => ({ seq: 1, key: said.id, item: { kind: "child" as const, report: said } });
  expect(nextMove(progress.task, [item(report(child, "progress", 4))], [], 0).move).toBe("sleep");
  const asked = report(child, "question", 3);
  expect(nextMove(hear(progress.task, asked).task, [item(asked)], [], 0).move).toBe("begin");
  const end = report(child, "done", 3, { confidence: 0.8 });
  const heard = hear(progress.task, end);
  expect(heard.task.allowance).toBe(13);
  expect(heard.task.children).toMatchObject([{ open: false }]);
  expect(hear(heard.task, { ...end, id: "rep_x-y" }).task.allowance).toBe(13);
  expect(texts(beginStep(heard.task, [item(end)], facts))).toContain('"item":"child"');
});

test("[WC2] done waits for children; a tainted child taints its parent before the model reads it", () => {
  const spawned = decideReply(calling(), reply(spawn("read the docs", 5)), replyFacts());
  const task: TaskState = { ...spawned.task, open: { kind: "calling", step: 2, attempts: 1, retryAtMs: null } };
  expect(outputs(decideReply(task, reply(["report", { kind: "done", text: "x" }]), replyFacts()))[0]).toContain(
    "children of yours are still at work",
  );
  const [child] = childStarts(spawned);
  if (!child) throw new Error("a child");
  const said = report(child, "done", 0, { tainted: true });
  const row = { seq: 1, key: said.id, item: { kind: "child" as const, report: said } };
  expect(beginStep(hear(spawned.task, said).task, [row], facts).task.tainted).toBe(true);
});

test("[WC4] a stop goes down to the children, and the task is stopped when all of them are", () => {
  const spawned = decideReply(calling(), reply(spawn("read the docs", 3), spawn("write the tests", 3)), replyFacts());
  const [a, b] = childStarts(spawned);
  if (!a || !b) throw new Error("two children");
  const change = cancelTask({ ...spawned.task, open: { kind: "none" } }, member, "no", [], [command(1, "run_command")], 0);
  expect(change?.effects.map((effect) => effect.effect)).toEqual(["stop_task", "cancel_child", "cancel_child"]);
  let task = change?.task ?? between();
  task = hear(task, report(a, "cancelled", 0)).task;
  expect(task.mode).toMatchObject({ mode: "cancelling", unstopped: ["ep_a", b.taskId] });
  task = { ...task, mode: task.mode.mode === "cancelling" ? { ...task.mode, unstopped: [b.taskId] } : task.mode };
  expect(hear(task, report(b, "done", 1)).task.mode).toMatchObject({ mode: "ended", status: "cancelled" });
});

test("[WC5] [Q17] a child that never reports its end counts as lost at its time, once", () => {
  const spawned = decideReply(calling(), reply(spawn("read the docs", 3, { deadlineMinutes: 10 })), replyFacts());
  const lostMs = 1000 + 10 * 60_000 + limits.childLostMs;
  expect(nextMove(spawned.task, [], [], 2000)).toEqual({ move: "sleep", untilMs: lostMs });
  const change = beginStep(spawned.task, [], { ...facts, nowMs: lostMs });
  expect(texts(change)).toContain("counts as lost");
  expect(change.task.children).toMatchObject([{ open: false }]);
  // Nobody waits for it, so it is stopped, wherever it is; that it was is no news, a result that comes after all is.
  const [child] = childStarts(spawned);
  if (!child) throw new Error("a child");
  expect(change.effects).toMatchObject([{ effect: "cancel_child", taskId: child.taskId, by: { onBehalfOf: "member" } }]);
  const asleep: TaskState = { ...change.task, open: { kind: "none" }, mode: { mode: "asking" } };
  const stopped = report(child, "cancelled", 2);
  const done = report(child, "done", 2);
  const item = (said: Report) => ({ seq: 1, key: said.id, item: { kind: "child" as const, report: said } });
  const after = hear(asleep, stopped).task;
  expect(after.allowance).toBe(asleep.allowance);
  expect(nextMove(after, [item(stopped)], [], lostMs).move).toBe("sleep");
  expect(nextMove(hear(asleep, done).task, [item(done)], [], lostMs).move).toBe("begin");
  expect(beginStep({ ...asleep, mode: { mode: "working" } }, [], { ...facts, nowMs: lostMs + 1 }).effects).toEqual([]);
});

test("[WC3] a hand-off is a record, changes the tools at once, and after four of them a person is asked", () => {
  let task = calling();
  const names = ["researcher", "coder", "triager", "coder"];
  names.forEach((profile, i) => {
    const change = decideReply(task, reply(["hand_off", { profile, reason: "why", summary: "what is known" }]), replyFacts());
    expect(change.events).toContainEqual(
      expect.objectContaining({ kind: "task.hand_off", to: profile, reason: "why", summary: "what is known", count: i + 1 }),
    );
    task = { ...change.task, open: { kind: "calling", step: i + 2, attempts: 1, retryAtMs: null } };
  });
  expect(task.notices.at(-1)).toContain("hand-off 4 of 4");
  const last = decideReply(task, reply(["hand_off", { profile: "researcher", reason: "still", summary: "known" }]), replyFacts());
  expect(last.task.mode.mode).toBe("asking");
  expect(last.reports).toMatchObject([{ kind: "blocked" }]);
});

test("[WC3] [RD8] a task that the router opens again with another profile is handed on: recorded, counted, and at its end a person decides", () => {
  const ended = calling({ mode: { mode: "ended", status: "failed", endedMs: 1 }, open: { kind: "none" } });
  const profile = shippedProfiles.find(({ name }) => name === "researcher");
  if (profile === undefined) throw new Error("no such profile ships");
  const by = { role: "agent" as const, id: "router", name: "agent", onBehalfOf: "member" as const };
  const again = { id: "dec_a", by, text: "Find out why first.", tainted: false, profile };
  const change = reopenTask(ended, again, { commandFor, nowMs: 5 });
  expect(change?.task.profile.name).toBe("researcher");
  expect(change?.events).toContainEqual(expect.objectContaining({ kind: "task.hand_off", to: "researcher", count: 1 }));
  expect(change?.task.notices.at(-1)).toContain("You are researcher from here on");
  expect(() => reopenTask({ ...ended, handOffs: limits.maxHandOffs }, again, { commandFor, nowMs: 5 })).toThrow("a person has to decide");
});

test("[WP1] a tool that is not of the profile is refused, whatever the model asks for", () => {
  const change = decideReply(
    calling({
      start: { ...start, profile: "triager" },
      profile: startTask({ ...start, profile: "triager" }, [], null, [], 0).task.profile,
    }),
    reply(["run_command", { script: "ls" }], spawn("x", 1), ["read_file", { path: "a" }]),
    replyFacts(),
  );
  expect(outputs(change)[0]).toContain("run_command is not a tool of the profile triager");
  expect(outputs(change)[1]).toContain("refused");
  expect(outputs(change)[2]).toContain("started");
  expect(change.effects.map((effect) => effect.effect)).toEqual(["submit"]);
});

test("[WF1] what failed is tried once more with the goal in other words, then the failure is told", () => {
  const failing = reply(["report", { kind: "failed", text: "no" }]);
  const task = calling({ commands: 1 });
  const first = decideReply(task, failing, replyFacts());
  expect(outputs(first)[0]).toContain("not_sent");
  expect(texts(beginStep(first.task, [], facts))).toContain("try one other way");
  const second = decideReply({ ...first.task, open: { kind: "calling", step: 2, attempts: 1, retryAtMs: null } }, failing, replyFacts());
  expect(second.task.mode).toMatchObject({ mode: "ended", status: "failed" });
  // Where nothing was tried, or nothing may run, there is nothing to try again.
  expect(decideReply(calling(), failing, replyFacts()).task.mode.mode).toBe("ended");
  expect(decideReply(calling({ commands: 1, tainted: true }), failing, replyFacts()).task.mode.mode).toBe("ended");
});

test("[WF2] the same near-identical call is made twice in a row, not a third time", () => {
  let task = calling();
  const answers = ["npm test", " npm  test", "npm test\n"].map((script) => {
    const change = decideReply(task, reply(["run_command", { script }]), replyFacts());
    task = { ...change.task, open: { kind: "calling", step: 2, attempts: 1, retryAtMs: null } };
    return outputs(change)[0] ?? "";
  });
  expect(answers[1]).toContain("started");
  expect(answers[2]).toContain("not done again");
});

test("[WF2] a circle of calls is seen too, up to three long; what came from outside is a reason to do the same again", () => {
  const again = (task: TaskState, script: string): { task: TaskState; answer: string } => {
    const change = decideReply(task, reply(["run_command", { script }]), replyFacts());
    return { task: { ...change.task, open: { kind: "calling", step: 2, attempts: 1, retryAtMs: null } }, answer: outputs(change)[0] ?? "" };
  };
  for (const circle of [
    ["a", "b"],
    ["a", "b", "c"],
  ]) {
    let task = calling();
    const answers = Array.from({ length: circle.length * 3 }, (_, i) => {
      const one = again(task, circle[i % circle.length] ?? "");
      task = one.task;
      return one.answer;
    });
    expect(answers.slice(0, -1).every((answer) => answer.includes("started"))).toBe(true);
    expect(answers.at(-1)).toContain("not done again");
    expect(again(task, circle[0] ?? "").answer).toContain("not done again");
    expect(again(task, "something else").answer).toContain("started");
    expect(task.notices.at(-1)).toContain("3 times in a row, alone or in a circle");
    const asked = beginStep({ ...task, open: { kind: "none" } }, [message("run it once more")], facts).task;
    expect(again(asked, circle.at(-1) ?? "").answer).toContain("started");
  }
});

test("[WF4] the commands of a task are counted over its life", () => {
  const change = decideReply(calling({ commands: limits.maxCommandsPerTask }), reply(["run_command", { script: "ls" }]), replyFacts());
  expect(outputs(change)[0]).toContain("that is all it may");
});

test("[WF3] the router hears of a deadline that passes, once, also while the task is paused or asks", () => {
  const late = { ...start, deadlineMs: 500 };
  for (const mode of [{ mode: "asking" }, { mode: "paused", why: "allowance" }] as const)
    expect(nextMove(between({ start: late, mode }), [], [], 600)).toEqual({ move: "overdue" });
  expect(nextMove(between({ start: late, mode: { mode: "asking" } }), [], [], 100)).toEqual({ move: "sleep", untilMs: 500 });
  expect(
    nextMove(
      between({ start: late, overdue: true, deadlineTold: true, mode: { mode: "asking" } }),
      [message("ci", bot)],
      [command(1, "run_command")],
      600,
    ).move,
  ).toBe("sleep");
});

test("[R22] [WC1] whatever a family does, the calls made and those that may still be made never exceed the cap", () => {
  const action = fc.record({
    who: fc.nat(20),
    what: fc.constantFrom("step", "spawn", "end"),
    share: fc.integer({ min: 1, max: 20 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fc.array(action, { maxLength: 120 }), (cap, actions) => {
      const family = new Map<string, TaskState>();
      const root = startTask({ ...start, maxModelCalls: cap }, [], null, [], 0).task;
      family.set(root.start.taskId, root);
      const open = (): TaskState[] => [...family.values()].filter(({ mode }) => mode.mode !== "ended");
      let n = 0;
      for (const { who, what, share } of actions) {
        const task = open()[who % Math.max(1, open().length)];
        if (!task) break;
        const { taskId, parent } = task.start;
        if (nextMove(task, [message(`wake ${++n}`)], [], 0).move !== "begin" && what !== "end") continue;
        const begun = what === "end" ? null : beginStep(task, [], facts).task;
        if (begun) {
          const calls = what === "spawn" ? reply(spawn(`goal ${n} ${taskId}`, share)) : reply(["report", { kind: "progress", text: "p" }]);
          const change = decideReply(begun, calls, replyFacts());
          family.set(taskId, change.task);
          for (const child of childStarts(change)) family.set(child.taskId, startTask(child, [], null, [], 0).task);
        } else if (parent !== undefined) {
          const up = family.get(parent.taskId);
          const ended: TaskState = { ...task, mode: { mode: "ended", status: "done", endedMs: 0 } };
          family.set(taskId, ended);
          if (up) family.set(parent.taskId, hear(up, report(task.start, "done", task.allowance - task.steps)).task);
        }
        const used = [...family.values()].reduce((sum, each) => sum + each.steps, 0);
        const left = open().reduce((sum, each) => sum + Math.max(0, each.allowance - each.steps), 0);
        if (used + left > cap) return false;
      }
      return true;
    }),
    { numRuns: 300 },
  );
});
