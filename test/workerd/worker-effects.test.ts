import { expect, test } from "vitest";
import { boardName, routerName } from "../../src/env.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { indexTask } from "../../src/storage/task-index.ts";
import {
  begin,
  card,
  deliver,
  done,
  enrol,
  newTask,
  objects,
  reports,
  requests,
  row,
  run,
  script,
  until,
  untilCommands,
  untilStatus,
} from "./worker-helpers.ts";

type Indexed = { card: string; revision: number };
const indexed = (taskId: string) => objects.DB.prepare("SELECT card, revision FROM tasks WHERE id = ?").bind(taskId).first<Indexed>();

test("router, thread, board and index hear of a task, each with its last card", async () => {
  const task = newTask();
  await script(task, [done("all is well")]);
  await begin(task);
  const { revision } = await untilStatus(task, "done");
  const heard = await until("the router has the report", async () => {
    const events = await objects.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 1000, about: task.taskId });
    return events.find(({ event }) => event.kind === "router.report");
  });
  expect(heard.event).toMatchObject({ report: { id: (await reports(task))[0]?.id, kind: "done" } });
  await until("the board shows it", async () => {
    const { tasks } = await objects.BOARD.getByName(boardName).snapshot();
    return tasks.some((one) => one.taskId === task.taskId && one.status === "done" && one.askedBy === "member");
  });
  await until("the thread has the card", async () => {
    const { cards } = await objects.THREAD.getByName(task.threadId).read({ afterSeq: 0, limit: 1 });
    return cards.some((one) => one.taskId === task.taskId && one.revision === revision);
  });
  await until("the index has it", async () => (await indexed(task.taskId))?.revision === revision);
});

test("the index keeps the highest revision, in whatever order they come", async () => {
  await migrated(objects.DB);
  const { start } = newTask();
  const base = {
    taskId: start.taskId,
    threadId: start.threadId,
    title: "t",
    status: "running" as const,
    modelCalls: 1,
    startedMs: 1,
    updatedMs: 1,
  };
  for (const revision of [1, 3, 2, 3]) await indexTask(objects.DB, start, { ...base, line: `revision ${revision}`, revision });
  const found = await indexed(start.taskId);
  expect(found?.revision).toBe(3);
  expect(JSON.parse(found?.card ?? "{}")).toMatchObject({ line: "revision 3" });
});

test("an idle task stands on no wake list, and a busy one does", async () => {
  const listed = async (taskId: string) =>
    (await objects.DB.prepare("SELECT 1 AS one FROM wake_list WHERE object_id = ?").bind(taskId).first()) !== null;
  const task = newTask();
  await script(task, [{ ...done("slow"), delayMs: 1500 }]);
  await begin(task);
  await until("it is listed", () => listed(task.taskId));
  await untilStatus(task, "done");
  await until("it is listed no more", async () => !(await listed(task.taskId)));
});

test("more of a command's output, a stop, and what belongs to another task", async () => {
  const task = newTask();
  await enrol(task);
  const other = "cmd_elsewhere-1";
  const call = (tool: string, input: object) => ({ tool, input });
  await script(task, [
    run("npm test"),
    {
      calls: [
        call("read_output", { command: "$cmd", offset: 0 }),
        call("stop_command", { command: "$cmd" }),
        call("read_output", { command: other, offset: 0 }),
      ],
    },
    done("stopped it"),
    done("stopped it"),
  ]);
  await begin(task);
  const [command = ""] = await untilCommands(task, 1);
  await untilStatus(task, "waiting");
  await deliver(task, row(task, 1, "stop that"));
  await untilStatus(task, "done");
  const results = ((await requests(task)).at(-1) ?? []).filter((message) => message.role === "tool").map(({ content }) => content ?? "");
  expect(JSON.parse(results[1] ?? "{}")).toMatchObject({ command, totalBytes: 0 });
  expect(results[2]).toBe(`{"stopping":"${command}"}`);
  expect(results[3]).toContain("is no command of this task");
  const machine = await objects.ENDPOINT.getByName(task.endpointId).events({ afterSeq: 0, limit: 100, about: command });
  expect(machine.some(({ event }) => event.kind === "endpoint.stop")).toBe(true);
  expect((await card(task)).line).toBe("stopped it");
});
