import { describe, expect, test } from "vitest";
import { whyNotCall } from "../../src/core/worker-calls.ts";
import { adoptTask } from "../../src/core/worker-follow.ts";
import { newTask, type WorkerCommand } from "../../src/core/worker-state.ts";
import type { TaskStart } from "../../src/protocol/task.ts";
import type { WorkerCall } from "../../src/protocol/worker-tools.ts";
import { Book, commandOf, now, resultOf } from "../support/command-book.ts";
import { start as asked } from "../support/worker-fixtures.ts";

const startOf = (parts: Partial<TaskStart> = {}): TaskStart => ({ ...asked, ...parts });

const unasked = (n: number) => ({ ...commandOf(n, { taskId: "tsk_spec" }), speculative: true });
const sent = (frames: readonly { t: string }[]) =>
  frames.flatMap((frame) => ("command" in frame ? [(frame.command as { commandId: string }).commandId] : []));

describe("people's work has the machine first", () => {
  test("[E14] a command that nobody asked for waits while an asked one is open, and goes when the machine is idle", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    expect(book.apply({ kind: "submit", command: unasked(2) }).frames).toEqual([]);
    expect(book.apply({ kind: "submit", command: unasked(3) }).frames).toEqual([]);
    const settled = book.apply({ kind: "result", result: resultOf("cmd_a-1") });
    expect(sent(settled.frames)).toEqual(["cmd_a-2"]);
    // The machine learns nothing of it: the frame is that of any command.
    expect(JSON.stringify(settled.frames)).not.toContain("speculative");
    expect(book.state("cmd_a-3")).toBe("queued");
    // Asked work does not wait for it.
    expect(sent(book.apply({ kind: "submit", command: commandOf(4) }).frames)).toEqual(["cmd_a-4"]);
    expect(book.apply({ kind: "result", result: resultOf("cmd_a-2") }).frames.map(({ t }) => t)).toEqual(["result_ack"]);
    expect(sent(book.apply({ kind: "result", result: resultOf("cmd_a-4") }).frames)).toEqual(["cmd_a-3"]);
  });

  test("[E14] after a hello the asked ones go first", () => {
    const book = new Book().enrol();
    book.apply({ kind: "submit", command: unasked(1) });
    book.apply({ kind: "submit", command: commandOf(2) });
    expect(sent(book.hello().frames)).toEqual(["cmd_a-2"]);
    book.apply({ kind: "started", commandId: "cmd_a-2", atMs: now });
    expect(sent(book.apply({ kind: "result", result: resultOf("cmd_a-2") }).frames)).toEqual(["cmd_a-1"]);
  });

  test("[E14] taken over by a person it waits no longer, and a repeat sends nothing twice", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "submit", command: unasked(2) });
    expect(sent(book.apply({ kind: "asked", taskId: "tsk_spec" }).frames)).toEqual(["cmd_a-2"]);
    expect(sent(book.apply({ kind: "asked", taskId: "tsk_spec" }).frames)).toEqual([]);
  });

  test("[E14] a stop ends one that waits", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "submit", command: unasked(2) });
    book.apply({ kind: "stop_task", taskId: "tsk_spec", epoch: 2 });
    expect(book.outcome("cmd_a-2")).toBe("void");
  });
});

describe("its worker", () => {
  const start = startOf({ speculative: true, maxModelCalls: 6 });
  const task = newTask(start, [], now);
  const call = (tool: string, input: object) => ({ callId: "c", tool, input }) as WorkerCall;

  test("[SP2] cannot ask or answer people, nor follow a thread; a child of it speaks to it", () => {
    for (const kind of ["question", "blocked", "answer"])
      expect(whyNotCall(task, call("report", { kind, text: "x" }), false)).toContain("Nobody asked");
    for (const kind of ["progress", "done", "failed"]) expect(whyNotCall(task, call("report", { kind, text: "x" }), false)).toBeNull();
    expect(whyNotCall(task, call("subscribe", { thread: "thr_a", reason: "x" }), false)).toContain("follows no thread");
    expect(whyNotCall(task, call("propose", { what: "comment", text: "x" }), false)).toContain("nothing of it leaves by itself");
    const child = newTask({ ...start, parent: { taskId: "tsk_p", depth: 1 } }, [], now);
    expect(whyNotCall(child, call("report", { kind: "question", text: "x" }), false)).toBeNull();
    const asking = newTask(startOf(), [], now);
    expect(whyNotCall(asking, call("report", { kind: "question", text: "x" }), false)).toBeNull();
  });

  test("[SP2] shows its card in no thread, and keeps to its share", () => {
    expect(task.threads).toEqual([]);
    expect(task.allowance).toBe(6);
    expect(task.card.speculative).toBe(true);
  });

  test("[SP5] taken over it has the person's thread, an asked task's allowance, and its own machine, goal and taint; twice is once", () => {
    const wish = startOf({ threadId: "thr_asker", goal: "their goal", maxModelCalls: 15, authority: "member" });
    const open = [{ endpointId: "ep_a", open: true }] as WorkerCommand[];
    const change = adoptTask({ ...task, tainted: true, steps: 4 }, wish, open);
    expect(change?.task).toMatchObject({ threads: ["thr_asker"], allowance: 15, steps: 4, tainted: true });
    expect(change?.task.start).toMatchObject({ threadId: "thr_asker", goal: start.goal, endpoint: start.endpoint });
    expect(change?.task.card.speculative).toBeUndefined();
    expect(change?.effects).toEqual([{ effect: "asked", endpointId: "ep_a" }]);
    expect(change && adoptTask(change.task, wish, open)).toBeNull();
  });

  test("[SP5] one that has ended leaves the thread again", () => {
    const ended = { ...task, mode: { mode: "ended", status: "done", endedMs: now } } as typeof task;
    const change = adoptTask(ended, startOf({ threadId: "thr_asker" }), []);
    expect(change?.effects).toEqual([{ effect: "unsubscribe", threadId: "thr_asker", reason: "the task has ended" }]);
  });
});
