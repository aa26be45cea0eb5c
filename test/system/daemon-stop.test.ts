// T3: a stop ends everything that a command started, and is answered only then.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { scene } from "../support/daemon-lab.ts";
import { countRunning, modes, someSleep } from "../support/daemon-process.ts";
import { until } from "../support/until.ts";

for (const mode of modes) {
  describe(`a daemon that runs ${mode}`, () => {
    test("[H15] [R17] a stop ends the shell and the grandchild that was given to another parent, before it says stopped", async () => {
      const { cloud, lab, start } = await scene();
      await start(mode).line("connected");
      const nap = someSleep();
      const id = cloud.shell(`sh -c 'sh -c "${nap} & echo $! > gc.pid; exit 0"; ${nap}'`);
      await until("both sleepers", () => countRunning(nap) >= 2 && existsSync(join(lab.work, "gc.pid")));
      await sleep(200);
      const { taskId } = cloud.orderOf(id).command;
      cloud.send({ t: "stop_task", taskId, beforeEpoch: 2, graceMs: 5_000 });
      await until("the answer", () => cloud.orderOf(id).stopped === 1);
      expect(countRunning(nap)).toBe(0);
      const frames = cloud.frames.length;
      expect(await cloud.resultOf(id)).toMatchObject({ outcome: "stopped", exitCode: null });
      const next = cloud.shell("echo next", { epoch: 2 });
      expect(await cloud.resultOf(next)).toMatchObject({ exitCode: 0 });
      const late = cloud.frames.slice(frames).filter((frame) => frame.t === "output" && frame.commandId === id);
      expect(late).toEqual([]);
      expect(cloud.problems).toEqual([]);
    });

    test("[R17] ends what ignores the polite signal, left its session and cleared its environment", async () => {
      const { cloud, start } = await scene();
      await start(mode).line("connected");
      const nap = someSleep();
      const id = cloud.shell(`trap '' TERM; setsid env -i sh -c "trap '' TERM; ${nap} & wait" & echo ready; ${nap} & wait; ${nap}`);
      await until("its output", () => cloud.orderOf(id).output.toString() === "ready\n" && countRunning(nap) >= 2);
      cloud.send({ t: "stop", commandId: id, graceMs: 300 });
      await until("the answer", () => cloud.orderOf(id).stopped === 1);
      expect(countRunning(nap)).toBe(0);
      expect(await cloud.resultOf(id)).toMatchObject({ outcome: "stopped", signal: "SIGKILL" });
    });

    test("lets a command end in order within the grace", async () => {
      const { cloud, start } = await scene();
      await start(mode).line("connected");
      const id = cloud.shell("trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
      await until("its output", () => cloud.orderOf(id).output.length > 0);
      cloud.send({ t: "stop", commandId: id, graceMs: 10_000 });
      await until("the answer", () => cloud.orderOf(id).stopped === 1);
      expect(cloud.orderOf(id).output.toString()).toMatch(/^ready\n(.*Terminated.*\n)?tidied\n$/);
      expect(await cloud.resultOf(id)).toMatchObject({ outcome: "stopped" });
    });

    test("leaves nothing behind of a command that ended by itself", async () => {
      const { cloud, start } = await scene();
      await start(mode).line("connected");
      const nap = someSleep();
      const id = cloud.shell(`setsid ${nap} > /dev/null 2>&1 & ${nap} & echo over`);
      expect(await cloud.resultOf(id)).toMatchObject({ outcome: "exited", exitCode: 0 });
      expect(countRunning(nap)).toBe(0);
      expect(cloud.orderOf(id).output.toString()).toBe("over\n");
    });
  });
}

test("a stop for what is over, or never came, is answered; should it come later, it is void", async () => {
  const { cloud, start } = await scene();
  await start(modes[0]).line("connected");
  const over = cloud.shell("echo over");
  await cloud.resultOf(over);
  cloud.send({ t: "stop", commandId: over, graceMs: 100 });
  await until("the answer", () => cloud.orderOf(over).stopped === 1);

  const { command } = cloud.orderOf(over);
  const never = { ...command, commandId: "cmd_never" };
  cloud.send({ t: "stop", commandId: never.commandId, graceMs: 100 });
  cloud.send({ t: "stop_task", taskId: "tsk_gone", beforeEpoch: 3, graceMs: 100 });
  await until("the answer", () => cloud.count("stopped", never.commandId) === 1);
  cloud.send({ t: "run", command: never });
  cloud.send({ t: "run", command: { ...command, commandId: "cmd_old", taskId: "tsk_gone", epoch: 2 } });
  const outcomeOf = (id: string) => cloud.frames.find((frame) => frame.t === "result" && frame.result.commandId === id);
  expect(await until("its end", () => outcomeOf(never.commandId))).toMatchObject({ result: { outcome: "void" } });
  expect(await until("its end", () => outcomeOf("cmd_old"))).toMatchObject({ result: { outcome: "void" } });
});
