// T3: the daemon as a real process does what it is asked, in both ways of running.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { later, scene } from "../support/daemon-lab.ts";
import { DaemonProcess, daemonCall, makeLab, modes } from "../support/daemon-process.ts";
import { FakeCloud } from "../support/fake-cloud.ts";
import { until } from "../support/until.ts";

for (const mode of modes) {
  describe(`a daemon that runs ${mode}`, () => {
    test("runs a command in its folder and gives output, exit code and times", async () => {
      const { cloud, lab, start } = await scene();
      const daemon = start(mode);
      await daemon.line("connected");
      expect(cloud.hellos[0]?.workspaces).toEqual([{ name: "work", path: lab.work }]);
      expect(cloud.hellos[0]?.about.sandbox).toBe(mode);
      const id = cloud.shell("pwd; echo out; echo err >&2; echo again > /dev/stderr; exit 3");
      const result = await cloud.resultOf(id);
      expect(result).toMatchObject({ outcome: "exited", exitCode: 3, truncatedBytes: 0 });
      expect(cloud.orderOf(id).output.toString()).toBe(`${lab.work}\nout\nerr\nagain\n`);
      expect(result.endedMs).toBeGreaterThanOrEqual(result.startedMs ?? Number.POSITIVE_INFINITY);
      expect(cloud.problems).toEqual([]);
      expect((await daemon.line("ran")).text).toBe(`ran ${id} exit 3`);
    });

    test("passes no secret of its own environment, and the marker of the command only", async () => {
      const { cloud, start } = await scene();
      await start(mode, { SECRET_TOKEN: "hush", SSH_AUTH_SOCK: "/run/agent" }).line("connected");
      const id = cloud.shell("env | cut -d= -f1 | sort");
      await cloud.resultOf(id);
      const names = cloud.orderOf(id).output.toString().trim().split("\n");
      expect(names).toEqual(expect.arrayContaining(["PATH", "HOME", "TMPDIR", "SWITCHYARD_COMMAND"]));
      expect(names.filter((name) => /SECRET|SSH|SWITCHYARD_FAULT/.test(name))).toEqual([]);
    });

    test("gives stdin to a command and ends one that is over its time", async () => {
      const { cloud, start } = await scene();
      await start(mode).line("connected");
      const reads = cloud.order({ kind: "shell", workspace: "work", script: "wc -c", stdin: "12345" });
      const sleeps = cloud.shell("echo begun; sleep 600", { timeoutMs: 300 });
      await cloud.resultOf(reads);
      expect(cloud.orderOf(reads).output.toString().trim()).toBe("5");
      expect(await cloud.resultOf(sleeps)).toMatchObject({ outcome: "timed_out", exitCode: null, signal: "SIGTERM" });
    });

    test("carries out file commands, and says in words what fails", async () => {
      const { cloud, lab, start } = await scene();
      await start(mode).line("connected");
      const say = async (id: string) => ({ code: (await cloud.resultOf(id)).exitCode, text: cloud.orderOf(id).output.toString() });
      const base = { workspace: "work" };
      expect(await say(cloud.order({ ...base, kind: "write_file", path: "a/b.txt", content: "one\ntwo\nthree\n" }))).toEqual({
        code: 0,
        text: "wrote a/b.txt (14 bytes)\n",
      });
      expect(await say(cloud.order({ ...base, kind: "read_file", path: "a/b.txt", offset: 2, limit: 1 }))).toEqual({
        code: 0,
        text: "two\n[lines 2 to 2 of 3; go on with offset 3]\n",
      });
      expect((await say(cloud.order({ ...base, kind: "edit_file", path: "a/b.txt", old: "two", new: "2" }))).code).toBe(0);
      expect(readFileSync(join(lab.work, "a/b.txt"), "utf8")).toBe("one\n2\nthree\n");
      expect(await say(cloud.order({ ...base, kind: "search_files", query: "^th.ee$" }))).toEqual({ code: 0, text: "a/b.txt:3:three\n" });
      expect(await say(cloud.order({ ...base, kind: "list_files" }))).toEqual({ code: 0, text: "a/\na/b.txt\n" });
      expect(await say(cloud.order({ ...base, kind: "read_file", path: "../secret" }))).toEqual({
        code: 1,
        text: "../secret leads out of the granted folder.\n",
      });
      expect(cloud.problems).toEqual([]);
    });
  });
}

test("a search whose pattern never ends is ended by its timeout, and the daemon goes on", async () => {
  const { cloud, lab, start } = await scene();
  await start(modes[0]).line("connected");
  writeFileSync(join(lab.work, "evil.txt"), `${"a".repeat(40)}!\n`);
  const id = cloud.order({ kind: "search_files", workspace: "work", query: "^(a+)+$" }, { timeoutMs: 500 });
  const other = cloud.shell("echo fine");
  expect(await cloud.resultOf(other)).toMatchObject({ exitCode: 0 });
  expect(await cloud.resultOf(id)).toMatchObject({ outcome: "timed_out" });
});

test("[A5] the daemon refuses by itself what the cloud should not have sent, and names the reason", async () => {
  const { cloud, lab, start } = await scene();
  const daemon = start(modes[0]);
  await daemon.line("connected");
  const touch = "touch ran";
  const cases = {
    guest: cloud.shell(touch, { authority: "guest" }),
    tainted: cloud.shell(touch, { tainted: true }),
    elsewhere: cloud.order({ kind: "shell", workspace: "other", script: touch }),
    late: cloud.shell(touch, { notAfterMs: Date.now() - 1 }),
    escape: cloud.order({ kind: "shell", workspace: "work", script: touch, cwd: "../.." }),
  };
  expect(await cloud.resultOf(cases.guest)).toMatchObject({ outcome: "refused", reason: expect.stringContaining("member of the team") });
  expect(await cloud.resultOf(cases.tainted)).toMatchObject({ outcome: "refused", reason: expect.stringContaining("outside the team") });
  expect(await cloud.resultOf(cases.elsewhere)).toMatchObject({ outcome: "refused", reason: expect.stringContaining('granted: "work"') });
  expect(await cloud.resultOf(cases.late)).toMatchObject({ outcome: "expired" });
  expect(await cloud.resultOf(cases.escape)).toMatchObject({ outcome: "refused", reason: expect.stringContaining("leads out") });
  const list = cloud.order({ kind: "list_files", workspace: "work" });
  await cloud.resultOf(list);
  expect(cloud.orderOf(list).output.toString()).toBe("(empty)\n");
  expect(existsSync(join(lab.dir, "ran"))).toBe(false);
});

test("without a sandbox a shell command is refused unless the owner allowed it, and file commands still work", async () => {
  const { cloud, lab } = await scene();
  const daemon = new DaemonProcess(lab, "unsandboxed", {}, false);
  later(() => daemon.stop());
  await daemon.line("connected");
  expect(cloud.hellos[0]?.about.sandbox).toBe("none");
  expect(await cloud.resultOf(cloud.shell("touch ran"))).toMatchObject({
    outcome: "refused",
    reason: expect.stringContaining("--unsandboxed"),
  });
  expect(await cloud.resultOf(cloud.order({ kind: "write_file", workspace: "work", path: "x", content: "y" }))).toMatchObject({
    exitCode: 0,
  });
});

test.runIf(modes.includes("bwrap"))(
  "in the sandbox the machine is read-only, keys are hidden, and other programs are not seen",
  async () => {
    const { cloud, lab, start } = await scene();
    const daemon = start("bwrap");
    await daemon.line("connected");
    const id = cloud.shell(
      [
        `cat ${join(lab.home, "identity.json")} 2>&1`,
        "touch /etc/switchyard-was-here 2>&1",
        `test -d /proc/${daemon.pid} && echo sees the daemon`,
        "ls -A /run/docker.sock 2>&1",
        "grep -c '^CapEff:.*0000000000000000' /proc/self/status",
        "echo ok > inside && cat inside",
      ].join("; "),
    );
    await cloud.resultOf(id);
    const text = cloud.orderOf(id).output.toString();
    expect(text).toContain("No such file");
    expect(text).toContain("Read-only file system");
    expect(text).not.toContain("privateKey");
    expect(text).not.toContain("sees the daemon");
    expect(text).toMatch(/1\nok\n$/);
  },
);

test("a wrong code, an address that is none, and a machine that is not enrolled each get one line that says what to do", async () => {
  const cloud = await FakeCloud.start();
  later(() => cloud.close());
  const lab = makeLab();
  later(() => lab.remove());
  const wrong = await daemonCall(lab, ["enroll", cloud.url, "not-a-code"]);
  expect(wrong).toMatchObject({ code: 1, stdout: "" });
  expect(wrong.stderr).toBe(
    "switchyard: That code is wrong, used, or older than ten minutes; make a new one in the console and run enroll again.\n",
  );
  expect((await daemonCall(lab, ["enroll", "http://example.com", "12345678"])).stderr).toContain("Use https");
  expect((await daemonCall(lab, ["enroll", "http://127.0.0.1:1", "12345678"])).stderr).toContain("cannot be reached");
  expect((await daemonCall(lab, ["run"])).stderr).toBe(
    "switchyard: This machine is not enrolled yet; make a code in the console and run: npm run daemon -- enroll URL CODE\n",
  );
  expect((await daemonCall(lab, ["grant", join(lab.dir, "nowhere")])).stderr).toContain("There is no folder");
  expect((await daemonCall(lab, ["grant", lab.dir])).stderr).toContain("grant a project folder");
  expect((await daemonCall(lab, ["fly"])).stderr).toContain('There is no "fly"');
});

test("status, log and doctor tell what is granted, what ran, and what is missing", async () => {
  const { cloud, lab, start } = await scene();
  const daemon = start(modes[0]);
  await daemon.line("connected");
  const id = cloud.shell("exit 7");
  await cloud.resultOf(id);
  const status = await daemonCall(lab, ["status"]);
  expect(status.stdout).toContain("machine    test-machine");
  expect(status.stdout).toContain("connected (test-machine)");
  expect(status.stdout).toContain(`folder     work = ${lab.work}`);
  const log = await daemonCall(lab, ["log", "--limit", "5"]);
  expect(log.stdout).toMatch(new RegExp(`exit 7 +work: shell exit 7 +\\(${id},`));
  const doctor = await daemonCall(lab, ["doctor"]);
  expect(doctor.stdout).toContain('ok    enrolled as "test-machine"');
  await daemon.stop();
  expect((await daemonCall(lab, ["status"])).stdout).toContain("daemon     not running");
});

test("a folder granted while the daemon runs is known to the cloud without a restart", async () => {
  const { cloud, lab, start } = await scene();
  const daemon = start(modes[0]);
  await daemon.line("connected");
  mkdirSync(join(lab.dir, "second"));
  await daemonCall(lab, ["grant", join(lab.dir, "second"), "--name", "two"]);
  await until("a hello with both folders", () => cloud.hellos.at(-1)?.workspaces.length === 2);
  await until("the connection", () => cloud.connected);
  const id = cloud.order({ kind: "shell", workspace: "two", script: "pwd" });
  await cloud.resultOf(id);
  expect(cloud.orderOf(id).output.toString()).toBe(`${join(lab.dir, "second")}\n`);
});
