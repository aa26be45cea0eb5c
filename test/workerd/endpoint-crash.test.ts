import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { migrated } from "../../src/storage/migrations.ts";
import { bindings, commandFor, listen, newTask, type Open, TestDaemon } from "./test-daemon.ts";

beforeAll(() => migrated(bindings.DB));
afterEach(() => void vi.useRealTimers());

const stubOf = (daemon: TestDaemon) => daemon.stub as unknown as DurableObjectStub;

/** The process dies: sockets are gone without a word, memory too; committed rows stay. */
async function crash(daemon: TestDaemon, told: Awaited<ReturnType<typeof listen>>): Promise<void> {
  await runInDurableObject(stubOf(daemon), (_, state) => state.storage.sync());
  await abortAllDurableObjects();
  await listen(daemon, told);
}

const phases = ["queued", "sent", "accepted", "started", "output", "finished"] as const;

test.each(phases)(
  "[R12] after a crash with a command that is %s, the machine reconnects and the command ends once, run once",
  async (phase) => {
    const daemon = await TestDaemon.enrol(`crash-${phase}`);
    const told = await listen(daemon);
    const command = commandFor(daemon, newTask());
    const { commandId } = command;
    const reached = (wanted: (typeof phases)[number]): boolean => phases.indexOf(phase) >= phases.indexOf(wanted);

    if (phase !== "queued") await daemon.connect();
    await daemon.stub.submit(command);
    if (reached("accepted")) {
      await daemon.next("run");
      daemon.send({ t: "accepted", commandId });
    }
    if (reached("started")) daemon.send({ t: "started", commandId, atMs: 1 });
    if (reached("output")) daemon.output(commandId, 0, "one ");
    const known = { queued: "queued", sent: "sent", accepted: "accepted" } as Record<string, string>;
    await vi.waitFor(async () => expect((await daemon.states(commandId)).at(-1)).toBe(known[phase] ?? "started"));
    if (reached("output")) await daemon.next("output_ack");

    await crash(daemon, told);
    expect(await daemon.stub.describe()).toMatchObject({ online: false, running: phase === "queued" ? 0 : 1 });

    const there = { accepted: "accepted", started: "started", output: "started", finished: "finished" } as Record<
      string,
      Open[number]["state"]
    >;
    const state = there[phase];
    daemon.takeAll();
    const welcome = await daemon.connect(state ? [{ commandId, state, outputBytes: reached("output") ? 8 : 0 }] : []);
    if (!state) expect((await daemon.next("run")).command).toEqual(command);
    const from = reached("output") ? 4 : 0;
    if (state) expect(welcome.output).toEqual([{ commandId, offset: from }]);
    if (!reached("output")) daemon.output(commandId, 0, "one two\n");
    else daemon.output(commandId, from, "two\n");
    daemon.result(commandId, 8);
    await daemon.next("result_ack");
    await vi.waitFor(() => expect(told.settled).toMatchObject([{ commandId, output: { text: "one two\n" } }]));
    expect(daemon.takeAll().some((frame) => frame.t === "run")).toBe(false);
    expect((await daemon.states(commandId)).filter((each) => each === "settled")).toHaveLength(1);
  },
);

test("[R1] a result that is committed and not handed over survives a crash, and its alarm hands it over without a request", async () => {
  const daemon = await TestDaemon.enrol("crash-settled");
  const told = await listen(daemon);
  let down = true;
  told.workerFault = () => (down ? new Error("the worker session is down") : null);
  await daemon.connect();
  const command = commandFor(daemon, newTask());
  await daemon.stub.submit(command);
  daemon.output(command.commandId, 0, "done");
  daemon.result(command.commandId, 4);
  await daemon.next("result_ack");
  expect(told.settled).toEqual([]);
  // Nothing else may wake the object: the daemon is gone, and nobody calls.
  daemon.hangUp();
  await vi.waitFor(async () => expect(await daemon.stub.describe()).toMatchObject({ online: false }));
  await crash(daemon, told);
  down = false;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10 * 60_000 });
  await runDurableObjectAlarm(stubOf(daemon));
  await vi.waitFor(() => expect(told.settled).toMatchObject([{ commandId: command.commandId, output: { text: "done" } }]));
});

test("one worker session that fails does not keep the others from their results", async () => {
  const daemon = await TestDaemon.enrol("crash-others");
  const told = await listen(daemon);
  await daemon.connect();
  const [bad, good] = [commandFor(daemon, newTask()), commandFor(daemon, newTask())];
  let calls = 0;
  told.workerFault = () => (calls++ === 0 ? new Error("the first is down") : null);
  for (const { commandId } of [bad, good]) {
    await daemon.stub.submit(commandId === bad.commandId ? bad : good);
    daemon.result(commandId, 0);
  }
  await vi.waitFor(() => expect(told.settled.length).toBeGreaterThan(0));
  await daemon.stub.poke();
  await vi.waitFor(() =>
    expect(told.settled.map(({ commandId }) => commandId).toSorted()).toEqual([bad.commandId, good.commandId].toSorted()),
  );
});

test("[R17] a cancel survives a crash: the stop is the first frame after the next welcome, and its answer comes once", async () => {
  const daemon = await TestDaemon.enrol("crash-cancel");
  const told = await listen(daemon);
  await daemon.connect();
  const taskId = newTask();
  const command = commandFor(daemon, taskId);
  await daemon.stub.submit(command);
  daemon.send({ t: "started", commandId: command.commandId, atMs: 1 });
  await vi.waitFor(async () => expect(await daemon.states(command.commandId)).toContain("started"));
  await daemon.stub.stopTask({ taskId, epoch: 2 });
  await crash(daemon, told);
  daemon.takeAll();
  await daemon.dial();
  await daemon.hello([{ commandId: command.commandId, state: "started", outputBytes: 0 }]);
  await vi.waitFor(() => expect(daemon.seen()).toEqual(["welcome", "stop_task"]));
  daemon.result(command.commandId, 0, { outcome: "stopped" });
  await vi.waitFor(() =>
    expect(told.stopped.filter(({ offline }) => !offline)).toEqual([{ taskId, endpointId: daemon.endpointId, epoch: 2, offline: false }]),
  );
  const late = commandFor(daemon, taskId);
  await crash(daemon, told);
  await daemon.stub.submit(late);
  await vi.waitFor(() => expect(told.settled.at(-1)).toMatchObject({ commandId: late.commandId, outcome: "void" }));
});

test("[R12] after a crash a machine that lost its journal does not make a started command run again", async () => {
  const daemon = await TestDaemon.enrol("crash-journal");
  const told = await listen(daemon);
  await daemon.connect();
  const command = commandFor(daemon, newTask());
  await daemon.stub.submit(command);
  daemon.send({ t: "started", commandId: command.commandId, atMs: 1 });
  daemon.output(command.commandId, 0, "half");
  await daemon.next("output_ack");
  await crash(daemon, told);
  daemon.takeAll();
  await daemon.connect();
  await vi.waitFor(() => expect(told.settled).toMatchObject([{ outcome: "outcome_unknown", output: { text: "half" } }]));
  expect(daemon.takeAll()).toEqual([]);
});

test("an endpoint with work that waits stands on the wake list until it is idle, and a poke at any time is harmless", async () => {
  const daemon = await TestDaemon.enrol("wake");
  const told = await listen(daemon);
  const listed = async () => {
    const row = await bindings.DB.prepare("SELECT kind FROM wake_list WHERE object_id = ?").bind(daemon.endpointId).first();
    return row !== null;
  };
  await daemon.stub.submit(commandFor(daemon, newTask()));
  await vi.waitFor(async () => expect(await listed()).toBe(true));
  await crash(daemon, told);
  await daemon.stub.poke();
  await daemon.stub.poke();
  await daemon.connect();
  daemon.result((await daemon.next("run")).command.commandId, 0);
  await vi.waitFor(() => expect(told.settled).toHaveLength(1));
  await vi.waitFor(async () => expect(await listed()).toBe(false));
});
