// Notes of a thread's workers: each writes in its own name, the others of the thread read, and nobody else's conversation hears.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { notesIdOf } from "../../src/core/worker-notes.ts";
import type { TaskStart, ThreadNote } from "../../src/protocol/task.ts";
import { recallObject } from "../../src/storage/recall.ts";
import { begin, done, events, member, newTask, objects, requests, script, type TestTask, until, untilStatus } from "./worker-helpers.ts";

const call = (tool: string, input: object) => ({ tool, input });
const ask = call("report", { kind: "question", text: "Which?" });

/** Another worker of the same thread. */
const beside = (first: TestTask, more: Partial<TaskStart> = {}): TestTask => {
  const made = newTask();
  const { threadId, quote, source, place } = first.start;
  return { ...made, threadId: first.threadId, start: { ...made.start, threadId, quote, source, place, ...more } };
};

const noted = (task: TestTask, count: number) =>
  until(`${count} notes`, async () => {
    const all = await objects.THREAD.getByName(task.threadId).events({ afterSeq: 0, limit: 100, about: notesIdOf(task.threadId) });
    const notes = all.flatMap(({ event }) => (event.kind === "thread.note" ? [event.note] : []));
    return notes.length >= count ? notes : null;
  });

test("[W15] [W16] a worker reads what another of its thread noted, each in its own name, over evictions, and nothing is written twice", async () => {
  const first = newTask();
  await script(first, [
    {
      calls: [
        call("note", { kind: "fact", text: "the build needs node 24" }),
        call("note", { kind: "approach", text: "npm ci", outcome: "works" }),
        ask,
      ],
    },
  ]);
  await begin(first);
  await untilStatus(first, "waiting");
  const [one] = await noted(first, 2);
  await evictDurableObject(first.stub as never);
  const second = beside(first);
  const id = notesIdOf(first.threadId);
  await script(second, [
    { calls: [call("note", { kind: "question", text: "which branch", thread: first.threadId })] },
    { calls: [call("recall", { id })] },
    { calls: [call("note", { kind: "fact", text: "elsewhere", thread: "thr_notmine" })] },
    done("read them"),
  ]);
  await second.stub.start(second.start);
  await untilStatus(second, "done");
  await noted(first, 3);
  const last = JSON.stringify((await requests(second)).at(-1));
  expect(last).toContain("the build needs node 24");
  expect(last).toContain("npm ci");
  expect(last).toContain("which branch");
  expect(last).toContain(first.taskId);
  expect(last).toContain("This task does not follow that thread");
  // The same effect again, and a thread that was evicted between.
  const thread = objects.THREAD.getByName(first.threadId);
  await evictDurableObject(thread as never);
  if (one === undefined) throw new Error("a note");
  await thread.note({ ...one, text: "changed afterwards" });
  const all = await noted(first, 3);
  expect(all.map(({ taskId, n, text }) => [taskId, n, text])).toEqual([
    [first.taskId, 1, "the build needs node 24"],
    [first.taskId, 2, "npm ci"],
    [second.taskId, 1, "which branch"],
  ]);
  expect((await thread.read({ afterSeq: 0, limit: 50 })).rows.some((row) => JSON.stringify(row).includes("node 24"))).toBe(false);
});

test("[W16] [A8] notes made for another conversation are not shown, tainted ones taint, and a task that is not of the team alone reads none", async () => {
  const task = newTask();
  await script(task, [{ calls: [ask] }]);
  await begin(task);
  await untilStatus(task, "waiting");
  const id = notesIdOf(task.threadId);
  const thread = objects.THREAD.getByName(task.threadId);
  const note = (n: number, more: Partial<ThreadNote>): ThreadNote => ({
    taskId: "tsk_other",
    n,
    step: 1,
    kind: "fact",
    text: `note ${n}`,
    audience: `web ${member.id}`,
    tainted: false,
    ...more,
  });
  await thread.note(note(1, {}));
  await thread.note(note(2, { text: "from somebody else", audience: "web prs_somebody" }));
  const read = (readers?: string[]) => recallObject(objects, { id, page: 1, ...(readers === undefined ? {} : { readers }) });
  const mine = await read([`web ${member.id}`]);
  expect(mine).toMatchObject({ tainting: false });
  expect(mine.text).toContain("note 1");
  expect(mine.text).toContain('"of_other_conversations":1');
  expect(mine.text).not.toContain("from somebody else");
  expect((await read(["web prs_somebody"])).text).not.toContain("note 1");
  await thread.note(note(3, { tainted: true }));
  expect(await read([`web ${member.id}`])).toMatchObject({ tainting: true });
  const guest = beside(task, { authority: "guest" });
  await script(guest, [{ calls: [call("recall", { id })] }, done("nothing")]);
  await guest.stub.start(guest.start);
  await untilStatus(guest, "done");
  expect(JSON.stringify((await requests(guest)).at(-1))).not.toContain("note 1");
  expect((await events(guest, "task.tool")).some(({ tool, phase }) => tool === "recall" && phase === "refused")).toBe(true);
  expect((await recallObject(objects, { id: "nts_nothinghere", page: 1 })).text).toContain("There is nothing");
});
