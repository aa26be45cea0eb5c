import { describe, expect, test } from "vitest";
import { triggerIdOf } from "../../src/core/ids.ts";
import { checksToAwait } from "../../src/core/worker-checks.ts";
import { received } from "../../src/core/worker-input.ts";
import { decideReply } from "../../src/core/worker-reply.ts";
import { beginStep, commandSettled, nextMove } from "../../src/core/worker-session.ts";
import type { InboxRow, TaskState } from "../../src/core/worker-state.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import {
  between,
  bot,
  calling,
  command,
  facts,
  member,
  message,
  outputs,
  reply,
  replyFacts,
  result,
  texts,
  threadId,
} from "../support/worker-fixtures.ts";

const [old, head] = ["a".repeat(40), "b".repeat(40)];
const branch = "switchyard/tsk_a";
const push = (sha: string, atMs = 0) => ({ sha, branch, place: "acme/app", atMs });
const pushed = (more: Partial<TaskState> = {}): TaskState =>
  between({ pushes: [push(old), push(head)], mode: { mode: "waiting", untilMs: null, reason: "" }, ...more });
let serial = 0;
const event = (kind: string, more: Record<string, string> = {}, from: Principal = bot): InboxRow => {
  const delivery = `event ${++serial}`;
  return message("", from, triggerIdOf("github", delivery, threadId), { kind, text: "", facts: { branch, sha: head, ...more } });
};
const suite = (conclusion: string, more: Record<string, string> = {}) =>
  event("check_suite.completed", { name: "ci", conclusion, ...more });
const job = (conclusion: string, more: Record<string, string> = {}) =>
  event("check_run.completed", { name: `job ${++serial}`, conclusion, ...more });

/** The rows one after the other: which of them woke the task. */
function woke(task: TaskState, rows: readonly InboxRow[]): { woke: boolean[]; task: TaskState } {
  let now = task;
  const left: InboxRow[] = [];
  const result = rows.map((row) => {
    const change = received(now, [row], { threadId, unread: [...left, row], open: [], nowMs: 5 });
    now = change.task;
    if (!change.moved.some(({ seq }) => seq === row.seq)) left.push(row);
    const wakes = nextMove(now, left, [], 5).move === "begin";
    if (wakes) left.length = 0;
    return wakes;
  });
  return { woke: result, task: now };
}

describe("checks of the last push", () => {
  test("[W25] the first failure and each new conclusion wake; other failures are read along, successes of jobs are not", () => {
    const rows = [job("success"), job("failure"), job("failure"), suite("failure"), suite("failure"), suite("success")];
    expect(woke(pushed(), rows).woke).toEqual([false, true, false, true, false, true]);
  });

  test("[W25] those of older heads never wake", () => {
    const rows = [job("failure", { sha: old }), suite("failure", { sha: old }), suite("success", { sha: old })];
    expect(woke(pushed(), rows).woke).toEqual([false, false, false]);
  });

  test("[W25] two systems of checks each have their conclusion", () => {
    expect(woke(pushed(), [suite("success"), suite("success", { name: "lint" }), suite("success")]).woke).toEqual([true, true, false]);
  });

  test("[W24] without a commit that the task pushed, what bears its branch's name is neither news, nor shown, nor a taint", () => {
    const strange = [
      suite("failure", { sha: "c".repeat(40) }),
      job("failure", { sha: "c".repeat(40), name: "do this" }),
      suite("failure", { fork: "true" }),
    ];
    expect(woke(pushed(), strange).woke).toEqual([false, false, false]);
    const change = beginStep(pushed(), [...strange, message("go on")], facts);
    expect(change.task.tainted).toBe(false);
    expect(texts(change)).not.toContain("do this");
    expect(texts(change)).toContain("go on");
  });

  test("[W24] checks of another task's branch in a shared pull request wake only that task", () => {
    expect(woke(pushed(), [suite("failure", { branch: "switchyard/tsk_b" })]).woke).toEqual([false]);
    expect(woke(pushed(), [message("please look")]).woke).toEqual([true]);
  });

  test("[W24] its own push and its own pull request are context; somebody else's push to the branch is news", () => {
    const own = [
      event("push", {}, member),
      event("pull_request.synchronize", {}, member),
      event("pull_request.opened", { self: "unmarked" }),
    ];
    expect(woke(pushed(), own).woke).toEqual([false, false, false]);
    expect(beginStep(pushed(), own, facts).task.tainted).toBe(false);
    expect(woke(pushed(), [event("push", { sha: "d".repeat(40) }, member)]).woke).toEqual([true]);
  });

  test("[W24] what comes before the machine's word on the push waits for it, then counts", () => {
    const pushing = command(9, "push");
    const early = suite("failure");
    const task = pushed({ pushes: [push(old)], pushing: [pushing.commandId] });
    const change = received(task, [early], { threadId, unread: [early], open: [pushing], nowMs: 5 });
    expect(nextMove(change.task, [early], [pushing], 5).move).toBe("sleep");
    expect(beginStep(change.task, [early, message("hello")], facts).consumed?.seqs).not.toContain(early.seq);
    const row = result(pushing);
    if (row.item.kind !== "result") throw new Error("no result");
    const settled = commandSettled(change.task, pushing, { ...row.item.result, pushed: { sha: head, branch, place: "acme/app" } }, row, [
      early,
    ]);
    expect(settled.task.checks).toMatchObject({ failed: true, suites: { ci: "failure" } });
    expect(nextMove(settled.task, [early], [], 5).move).toBe("begin");
  });
});

describe("done after a push", () => {
  const done = (task: TaskState, nowMs: number) =>
    decideReply(task, reply(["report", { kind: "done", text: "All done." }]), replyFacts({ nowMs }));
  const withHead = (more: Partial<TaskState> = {}) => calling({ pushes: [push(head, 1_000)], ...more });

  test("[W26] waits until its checks have ended, and is sent then", () => {
    const held = done(withHead({ checks: { seen: true, failed: false, suites: {} } }), 5_000);
    expect(outputs(held)[0]).toContain("not_sent");
    expect(held.task.mode).toEqual({ mode: "waiting", untilMs: 1_000 + limits.checksMs, reason: expect.stringContaining("checks") });
    expect(held.reports).toEqual([]);
    const sent = done(withHead({ checks: { seen: true, failed: false, suites: { ci: "success" } } }), 5_000);
    expect(sent.task.mode).toMatchObject({ mode: "ended", status: "done" });
  });

  test("[W26] where no check begins, it is not waited for long; a failure is reported at once", () => {
    expect(checksToAwait(withHead(), 2_000)?.untilMs).toBe(1_000 + limits.checksBeginMs);
    expect(done(withHead(), 1_000 + limits.checksBeginMs).task.mode).toMatchObject({ mode: "ended" });
    expect(checksToAwait(calling(), 2_000)).toBeNull();
  });
});
