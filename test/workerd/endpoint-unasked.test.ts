import { evictDurableObject } from "cloudflare:test";
import { beforeAll, expect, test, vi } from "vitest";
import { migrated } from "../../src/storage/migrations.ts";
import { bindings, commandFor, listen, newTask, TestDaemon } from "./test-daemon.ts";

beforeAll(() => migrated(bindings.DB));

test("[E14] a command that nobody asked for waits for an idle machine, also across an eviction, and goes at once when a person takes its task over", async () => {
  const daemon = await TestDaemon.enrol("people first");
  await listen(daemon);
  await daemon.connect();
  const asked = commandFor(daemon, newTask());
  const waits = { ...commandFor(daemon, newTask()), speculative: true };
  const adopted = { ...commandFor(daemon, newTask()), speculative: true };
  await daemon.stub.submit(asked);
  expect((await daemon.next("run")).command).toEqual(asked);
  for (const command of [waits, adopted]) expect(await daemon.stub.submit(command)).toEqual({ state: "queued" });
  expect(daemon.seen()).not.toContain("run");
  await evictDurableObject(daemon.stub as unknown as DurableObjectStub);

  const run = daemon.next("run");
  await daemon.stub.asked({ taskId: adopted.taskId });
  expect((await run).command).toEqual({ ...adopted, speculative: undefined });
  // Two that were asked for are open now: the other one still waits.
  daemon.result(asked.commandId, 0);
  await vi.waitFor(async () => expect(await daemon.states(asked.commandId)).toContain("settled"));
  expect(await daemon.states(waits.commandId)).toEqual(["queued"]);
  daemon.result(adopted.commandId, 0);
  expect((await daemon.next("run")).command.commandId).toBe(waits.commandId);
  await daemon.stub.submit(waits);
  expect(await daemon.states(waits.commandId)).toEqual(["queued", "sent"]);
});
