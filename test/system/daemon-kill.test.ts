// T3: the daemon is killed (-9) at each named point, and is started again on the same home.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { scene } from "../support/daemon-lab.ts";
import { countRunning, daemonCall, modes, someSleep } from "../support/daemon-process.ts";
import { until } from "../support/until.ts";

const linesOf = (path: string): string[] => (existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : []);

const points = ["journalled", "spawned", "output.sent", "exited", "result.sent", "result.acked"] as const;

for (const mode of modes) {
  describe(`[R12] a daemon that runs ${mode} and is killed`, () => {
    for (const point of points) {
      test(`at "${point}" never runs the command twice, and gives one end of it`, async () => {
        const { cloud, lab, start } = await scene();
        const faultFile = join(lab.dir, "fault");
        const fault = { SWITCHYARD_FAULT_POINT: point, SWITCHYARD_FAULT_FILE: faultFile };
        const first = start(mode, fault);
        await first.line("connected");
        const lines = join(lab.work, "lines");
        const nap = `sleep 0.3${Math.floor(Math.random() * 1e6)}`;
        const id = cloud.shell(`echo line >> lines; echo begun; ${nap}; echo over`);
        expect(await first.ended()).toEqual({ code: null, signal: "SIGKILL" });
        expect(readFileSync(faultFile, "utf8")).toBe(point);

        const second = start(mode, fault);
        await second.line("connected");
        const result = await cloud.resultOf(id);
        // The cloud may repeat anything: the answer stays the same, and nothing runs.
        cloud.send({ t: "run", command: cloud.orderOf(id).command });
        await until("the result, once more", () => cloud.count("result", id) === 0 && cloud.orderOf(id).results > 1);
        const count = linesOf(lines).length;
        const unknown = result.outcome === "outcome_unknown";
        expect(unknown ? count <= 1 : count === 1).toBe(true);
        expect(unknown).toBe(["spawned", "output.sent", "exited"].includes(point));
        if (!unknown) expect(cloud.orderOf(id).output.toString()).toBe("begun\nover\n");
        expect(cloud.problems).toEqual([]);
        // Nothing of the first life goes on behind the answer.
        expect(countRunning(nap)).toBe(0);
        const next = cloud.shell("echo next");
        expect(await cloud.resultOf(next)).toMatchObject({ exitCode: 0 });
        // Also a repeat after the acknowledgement, which came before the next command's end.
        const results = cloud.orderOf(id).results;
        cloud.send({ t: "run", command: cloud.orderOf(id).command });
        await until("the result, after its acknowledgement", () => cloud.orderOf(id).results > results);
        expect(linesOf(lines).length).toBe(count);
      });
    }

    test("leaves nothing of a long command running once it is back", async () => {
      const { cloud, start } = await scene();
      const first = start(mode);
      await first.line("connected");
      const nap = someSleep();
      const id = cloud.shell(`setsid sh -c '${nap}' & ${nap}`);
      await until("the sleepers", () => countRunning(nap) === 2);
      first.kill();
      await first.ended();
      const second = start(mode);
      await second.line("connected");
      expect(await cloud.resultOf(id)).toMatchObject({ outcome: "outcome_unknown", exitCode: null });
      await until("their end", () => countRunning(nap) === 0);
    });
  });
}

test("[R12] an acknowledged command is not run again by a repeat that comes after a restart", async () => {
  const { cloud, lab, start } = await scene();
  const first = start(modes[0]);
  await first.line("connected");
  const id = cloud.shell("echo line >> lines");
  await cloud.resultOf(id);
  await first.stop();
  const second = start(modes[0]);
  await second.line("connected");
  cloud.send({ t: "run", command: cloud.orderOf(id).command });
  await until("its result, once more", () => cloud.orderOf(id).results === 2);
  await cloud.resultOf(cloud.shell("true"));
  expect(linesOf(join(lab.work, "lines"))).toEqual(["line"]);
  expect(cloud.problems).toEqual([]);
});

test("a result that was finished while the line was down is given once the daemon is back, also after its restart", async () => {
  const { cloud, lab, start } = await scene();
  const first = start(modes[0]);
  await first.line("connected");
  const id = cloud.shell("echo begun; sleep 0.5; echo done; exit 3");
  await until("its first output", () => cloud.orderOf(id).output.length > 0);
  cloud.refuseUpgrade = { status: 503 };
  cloud.drop();
  await until("its end on the machine", async () => /exit 3 +work/.test((await daemonCall(lab, ["log"])).stdout));
  await first.stop();
  cloud.refuseUpgrade = null;
  const second = start(modes[0]);
  await second.line("connected");
  expect(await cloud.resultOf(id)).toMatchObject({ outcome: "exited", exitCode: 3 });
  expect(cloud.orderOf(id).output.toString()).toBe("begun\ndone\n");
  expect(cloud.problems).toEqual([]);
});

test("what was accepted and cancelled meanwhile is not started by the next life", async () => {
  const { cloud, lab, start } = await scene();
  const fault = { SWITCHYARD_FAULT_POINT: "journalled", SWITCHYARD_FAULT_FILE: join(lab.dir, "fault") };
  const first = start(modes[0], fault);
  await first.line("connected");
  const id = cloud.shell("touch ran");
  await first.ended();
  cloud.afterWelcome.push({ t: "stop_task", taskId: cloud.orderOf(id).command.taskId, beforeEpoch: 2, graceMs: 100 });
  start(modes[0], fault);
  expect(await cloud.resultOf(id)).toMatchObject({ outcome: "stopped", startedMs: null });
  await until("the answer", () => cloud.orderOf(id).stopped === 1);
  expect(existsSync(join(lab.work, "ran"))).toBe(false);
});

test("a torn last line of the journal is cut, and a damaged one in the middle keeps the daemon from starting", async () => {
  const { cloud, lab, start } = await scene();
  const first = start(modes[0]);
  await first.line("connected");
  await cloud.resultOf(cloud.shell("echo one"));
  await cloud.resultOf(cloud.shell("echo two"));
  await first.stop();
  const journal = join(lab.home, "journal");
  appendFileSync(journal, '0123456789abcdef {"k":"accep');
  const second = start(modes[0]);
  expect((await second.line("recovered")).text).toContain("cut off by a crash");
  await second.line("connected");
  const third = cloud.shell("echo three");
  expect(await cloud.resultOf(third)).toMatchObject({ exitCode: 0 });
  await second.stop();

  const text = readFileSync(journal, "utf8");
  writeFileSync(journal, text.replace('"k":"kept"', '"k":"lost"'));
  const damaged = start(modes[0]);
  expect((await damaged.ended()).code).toBe(1);
  expect(damaged.stderr).toMatch(/^switchyard: The journal .* is damaged at line \d+, .*enrol this machine again.*\n$/);
  expect(readFileSync(journal, "utf8")).toContain('"k":"lost"');
});

test("a second daemon on the same home is refused, and the first goes on", async () => {
  const { cloud, start } = await scene();
  const first = start(modes[0]);
  await first.line("connected");
  const second = start(modes[0]);
  expect((await second.ended()).code).toBe(1);
  expect(second.stderr).toMatch(/^switchyard: A daemon already runs on .* \(process \d+\); stop it first/);
  expect(await cloud.resultOf(cloud.shell("echo fine"))).toMatchObject({ exitCode: 0 });
});

test("a polite end stops what runs, says so to the cloud, and is no crash", async () => {
  const { cloud, start } = await scene();
  const daemon = start(modes[0]);
  await daemon.line("connected");
  const id = cloud.shell("echo begun; sleep 600");
  await until("its output", () => cloud.orderOf(id).output.length > 0);
  await daemon.stop();
  expect(daemon.exit).toEqual({ code: 0, signal: null });
  expect(await cloud.resultOf(id)).toMatchObject({ outcome: "stopped", reason: expect.stringContaining("daemon was ended") });
});
