import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { beforeAll, expect, test, vi } from "vitest";
import type { TaskStart } from "../../src/protocol/task.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { scriptModel } from "./router-lab.ts";
import { bindings, newTask, TestDaemon } from "./test-daemon.ts";

beforeAll(() => migrated(bindings.DB));

const startOf = (taskId: string, goal: string, daemon: TestDaemon, name: string): TaskStart => ({
  taskId,
  decisionId: "dec_e2e",
  title: "Run the tests",
  goal,
  quote: { triggerId: "trg_e2e-1", from: { role: "member", id: "prs_e2e", name: "member" }, text: "run the tests" },
  authority: "member",
  tainted: false,
  profile: "default",
  endpoint: { endpointId: daemon.endpointId, name, workspaces: ["app"] },
  threadId: "thr_e2e",
  source: "web",
  place: "widget",
  maxModelCalls: 15,
  atMs: Date.now(),
});

const status = async (taskId: string) => (await bindings.WORKER_SESSION.getByName(taskId).describe())?.card.status;

test("a worker session's command runs on the machine, its result wakes the next step, and crashes on the way change nothing", async () => {
  const daemon = await TestDaemon.enrol("e2e-run");
  const taskId = newTask();
  await scriptModel(
    [`goal-${taskId}`],
    [
      { calls: [{ tool: "run_command", input: { script: "npm test" } }] },
      { calls: [{ tool: "report", input: { kind: "done", text: "One test fails: adds.", confidence: 0.9 } }] },
    ],
  );
  // The machine is away: the command waits, and the card says so.
  await bindings.WORKER_SESSION.getByName(taskId).start(startOf(taskId, `goal-${taskId}`, daemon, "e2e-run"));
  await vi.waitFor(async () => expect(await daemon.stub.describe()).toMatchObject({ waiting: 1 }), 10_000);
  await abortAllDurableObjects();
  await daemon.connect();
  const { command } = await daemon.next("run");
  expect(command).toMatchObject({ taskId, spec: { kind: "shell", script: "npm test", workspace: "app" } });
  await evictDurableObject(daemon.stub as unknown as DurableObjectStub);
  daemon.send({ t: "started", commandId: command.commandId, atMs: Date.now() });
  daemon.output(command.commandId, 0, "FAIL adds\n");
  daemon.result(command.commandId, 10, { exitCode: 1 });
  await vi.waitFor(async () => expect(await status(taskId)).toBe("done"), 15_000);
  const response = await fetch(`http://model.test/control/requests?contains=goal-${taskId}`);
  const requests = (await response.json()) as string[];
  expect(requests.at(-1)).toContain("FAIL adds");
  expect((await daemon.states(command.commandId)).filter((state) => state === "settled")).toHaveLength(1);
});

test("a cancelled task is `cancelled` only after the machine answered its stop", async () => {
  const daemon = await TestDaemon.enrol("e2e-cancel");
  await daemon.connect();
  const taskId = newTask();
  await scriptModel([`goal-${taskId}`], [{ calls: [{ tool: "run_command", input: { script: "sleep 600" } }] }]);
  const worker = bindings.WORKER_SESSION.getByName(taskId);
  await worker.start(startOf(taskId, `goal-${taskId}`, daemon, "e2e-cancel"));
  const { command } = await daemon.next("run");
  daemon.send({ t: "started", commandId: command.commandId, atMs: Date.now() });
  await worker.cancel({ by: { role: "member", id: "prs_e2e", name: "member" }, reason: "not needed" });
  await daemon.next("stop_task");
  expect(await status(taskId)).toBe("cancelling");
  daemon.send({ t: "stopped", commandId: command.commandId });
  daemon.result(command.commandId, 0, { outcome: "stopped", exitCode: null });
  await vi.waitFor(async () => expect(await status(taskId)).toBe("cancelled"), 15_000);
});

test("[W9] with the machine offline the card says so, over an eviction, and the task is stopped when the machine has come back and stopped it", async () => {
  const daemon = await TestDaemon.enrol("e2e-away");
  await daemon.connect();
  const taskId = newTask();
  await scriptModel([`goal-${taskId}`], [{ calls: [{ tool: "run_command", input: { script: "sleep 600" } }] }]);
  const worker = bindings.WORKER_SESSION.getByName(taskId);
  await worker.start(startOf(taskId, `goal-${taskId}`, daemon, "e2e-away"));
  const { command } = await daemon.next("run");
  daemon.send({ t: "started", commandId: command.commandId, atMs: Date.now() });
  await vi.waitFor(async () => expect(await daemon.states(command.commandId)).toContain("started"));
  daemon.hangUp();
  await vi.waitFor(async () => expect(await daemon.stub.describe()).toMatchObject({ online: false, running: 1 }));
  await worker.cancel({ by: { role: "member", id: "prs_e2e", name: "member" }, reason: "not needed" });
  const card = async () => (await worker.describe())?.card;
  await vi.waitFor(async () => expect(await card()).toMatchObject({ status: "cancelling", line: "stopping, e2e-away offline" }), 10_000);
  await evictDurableObject(worker as unknown as DurableObjectStub);
  expect(await card()).toMatchObject({ status: "cancelling", line: "stopping, e2e-away offline" });
  await daemon.connect([{ commandId: command.commandId, state: "started", outputBytes: 0 }]);
  await vi.waitFor(() => expect(daemon.seen()[0]).toBe("stop_task"));
  daemon.send({ t: "stopped", commandId: command.commandId });
  daemon.result(command.commandId, 0, { outcome: "stopped", exitCode: null });
  await vi.waitFor(async () => expect(await status(taskId)).toBe("cancelled"), 15_000);
});
