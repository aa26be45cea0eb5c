// T3: the line between daemon and cloud breaks in every way; nothing is lost, nothing comes twice.
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, cpSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { CutProxy } from "../support/cut-proxy.ts";
import { later, scene } from "../support/daemon-lab.ts";
import { DaemonProcess, daemonCall, modes } from "../support/daemon-process.ts";
import type { FakeCloud } from "../support/fake-cloud.ts";
import { until } from "../support/until.ts";

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const mib = 1024 * 1024;

async function proxied() {
  let proxy: CutProxy | undefined;
  const made = await scene(async (cloud: FakeCloud) => {
    proxy = await CutProxy.start(cloud.port);
    return proxy.url;
  });
  if (!proxy) throw new Error("no proxy");
  const line = proxy;
  later(() => line.close());
  return { ...made, proxy: line };
}

/** A file of bytes that are no text at all, and what a command that prints it must give. */
function writeNoise(folder: string, bytes: number): Buffer {
  const noise = randomBytes(bytes);
  writeFileSync(join(folder, "noise"), noise);
  return noise;
}

test("[R13] five megabytes of bytes arrive whole and in order over a line that is cut again and again", async () => {
  const { cloud, lab, start, proxy } = await proxied();
  const noise = writeNoise(lab.work, 5 * mib);
  proxy.cutsUp = [700_001, 1_500_003, 2, 999_999, 300_007, 1_200_011];
  start(modes[0]);
  await until("the connection", () => cloud.hellos.length > 0);
  const id = cloud.shell("cat noise");
  expect(await cloud.resultOf(id, 60_000)).toMatchObject({ exitCode: 0, outputBytes: 5 * mib, truncatedBytes: 0 });
  expect(sha256(cloud.orderOf(id).output)).toBe(sha256(noise));
  expect(cloud.problems).toEqual([]);
  expect(proxy.cuts).toBeGreaterThanOrEqual(5);
});

test("[R13] frames that come twice, both ways, change nothing and start nothing again", async () => {
  const { cloud, lab, start, proxy } = await proxied();
  const noise = writeNoise(lab.work, 600_000);
  await start(modes[0]).line("connected");
  proxy.duplicate = true;
  const id = cloud.shell("echo line >> lines; cat noise");
  expect(await cloud.resultOf(id)).toMatchObject({ exitCode: 0 });
  expect(sha256(cloud.orderOf(id).output)).toBe(sha256(noise));
  expect(cloud.orderOf(id).repeatedBytes).toBeGreaterThan(0);
  const lines = cloud.shell("wc -l < lines");
  await cloud.resultOf(lines);
  expect(cloud.orderOf(lines).output.toString().trim()).toBe("1");
  expect(cloud.problems).toEqual([]);
});

test("[R13] more output than is kept is cut in the middle, and the result says by how much", async () => {
  const { cloud, lab, start } = await scene();
  await start(modes[0]).line("connected");
  const noise = writeNoise(lab.work, 20 * mib + 12_345);
  const id = cloud.shell("cat noise");
  const result = await cloud.resultOf(id, 60_000);
  const kept = limits.maxCommandOutputBytes;
  expect(result).toMatchObject({ outputBytes: noise.length, truncatedBytes: noise.length - kept });
  const whole = Buffer.concat([noise.subarray(0, kept / 2), noise.subarray(noise.length - kept / 2)]);
  expect(sha256(cloud.orderOf(id).output)).toBe(sha256(whole));
});

test("[R13] output that is not acknowledged stops at the window, and goes on when it is", async () => {
  const { cloud, lab, start } = await scene();
  cloud.ackOutput = false;
  await start(modes[0]).line("connected");
  writeNoise(lab.work, 3 * mib);
  const id = cloud.shell("cat noise");
  await until("a full window", () => cloud.orderOf(id).output.length >= limits.outputWindowBytes);
  // A command of its own is not held up by the other's full window.
  const small = cloud.shell("echo small");
  await until("its output", () => cloud.orderOf(small).output.length > 0);
  expect(cloud.orderOf(id).output.length).toBe(limits.outputWindowBytes);
  cloud.ackOutput = true;
  cloud.send({ t: "output_ack", commandId: id, offset: limits.outputWindowBytes });
  expect(await cloud.resultOf(id)).toMatchObject({ outputBytes: 3 * mib });
  expect(cloud.orderOf(id).output.length).toBe(3 * mib);
});

test("a command goes on while the line is down, and its output is whole after the reconnect", async () => {
  const { cloud, start, proxy } = await proxied();
  await start(modes[0]).line("connected");
  const id = cloud.shell("for i in 1 2 3 4 5 6 7 8 9 10; do echo tick $i; sleep 0.2; done");
  for (const wanted of [2, 5]) {
    await until(`tick ${wanted}`, () => cloud.orderOf(id).output.toString().includes(`tick ${wanted}\n`));
    proxy.cutNow();
  }
  expect(await cloud.resultOf(id)).toMatchObject({ exitCode: 0 });
  expect(cloud.orderOf(id).output.toString()).toBe(Array.from({ length: 10 }, (_, i) => `tick ${i + 1}\n`).join(""));
  expect(cloud.hellos.length).toBeGreaterThanOrEqual(2);
  expect(cloud.count("started", id)).toBe(1);
  expect(cloud.problems).toEqual([]);
});

test("a line that is dead but not closed is noticed by unanswered pings", async () => {
  const { cloud, start, proxy } = await proxied();
  cloud.pingMs = 200;
  const daemon = start(modes[0]);
  await daemon.line("connected");
  await until("some answered pings", () => cloud.pings > 3);
  expect(cloud.hellos).toHaveLength(1);
  proxy.stalled = true;
  expect((await daemon.line("disconnected")).text).toContain("no answer for");
  proxy.stalled = false;
  await until("a second connection", () => cloud.hellos.length === 2);
  expect(await cloud.resultOf(cloud.shell("echo back"))).toMatchObject({ exitCode: 0 });
});

test("[R14] a newer connection supersedes the older daemon, which says so and waits at least 30 s", async () => {
  const { cloud, lab, start } = await scene();
  const first = start(modes[0]);
  await first.line("connected");
  // The same identity on another home, as a copied disk would have it.
  const copy = { ...lab, home: join(lab.dir, "copy") };
  cpSync(lab.home, copy.home, { recursive: true });
  chmodSync(copy.home, 0o700);
  const second = new DaemonProcess(copy, modes[0] ?? "unsandboxed");
  later(() => second.stop());
  await second.line("connected");
  const said = await first.line("disconnected");
  expect(said.text).toMatch(/^another daemon connected with this machine's identity; trying again in \d+ s$/);
  expect(said.waitMs).toBeGreaterThanOrEqual(limits.supersededBackoffMs);
  expect(cloud.hellos).toHaveLength(2);
});

test("a revoked machine, and one whose key is not accepted, stop with one line that says what to do", async () => {
  const { cloud, start } = await scene();
  const revoked = start(modes[0]);
  await revoked.line("connected");
  cloud.closeSocket(4410, "revoked");
  expect((await revoked.ended()).code).toBe(1);
  expect(revoked.stderr).toBe(
    "switchyard: This machine was revoked in the console; enrol it again with: npm run daemon -- enroll URL CODE.\n",
  );
  cloud.refuseUpgrade = { status: 401 };
  const unknown = start(modes[0]);
  expect((await unknown.ended()).code).toBe(1);
  expect(unknown.stderr).toContain("does not accept this machine (401); enrol it again");
});

test("a cloud of another protocol version is named as such, and the daemon keeps trying slowly", async () => {
  const { cloud, start } = await scene();
  cloud.version = 2;
  const daemon = start(modes[0]);
  const said = await daemon.line("disconnected");
  expect(said.text).toContain("update this daemon");
  expect(said.waitMs).toBeGreaterThanOrEqual(limits.reconnectCapMs);
});

test("Retry-After of a busy cloud is honoured", async () => {
  const { cloud, start } = await scene();
  cloud.refuseUpgrade = { status: 503, headers: { "retry-after": "2" } };
  const daemon = start(modes[0]);
  expect((await daemon.line("disconnected")).waitMs).toBeGreaterThanOrEqual(2_000);
  cloud.refuseUpgrade = null;
  await daemon.line("connected");
  const [first = 0, second = 0] = cloud.connectTimesMs;
  expect(second - first).toBeGreaterThanOrEqual(2_000);
});

test("a command of a kind that this daemon does not know is refused by name; another unreadable frame closes the line with its field", async () => {
  const { cloud, start } = await scene();
  const daemon = start(modes[0]);
  await daemon.line("connected");
  const id = cloud.shell("echo known");
  await cloud.resultOf(id);
  const { command } = cloud.orderOf(id);
  cloud.sendText(
    JSON.stringify({ t: "run", command: { ...command, commandId: "cmd_new", spec: { kind: "teleport", workspace: "work" } } }),
  );
  const refused = await until("its refusal", () =>
    cloud.frames.find((frame) => frame.t === "result" && frame.result.commandId === "cmd_new"),
  );
  expect(refused).toMatchObject({ result: { outcome: "refused", reason: expect.stringContaining("command.spec.kind") } });
  cloud.sendText(JSON.stringify({ t: "stop", commandId: 7 }));
  await until("the close", () => cloud.closes.includes(4400));
  expect((await daemon.line("warning")).text).toContain("commandId");
  await until("the next connection", () => cloud.hellos.length === 2);
});

test("the daemon listens on no port", async () => {
  const { lab, start } = await scene();
  const daemon = start(modes[0]);
  await daemon.line("connected");
  const inodes = new Set(
    readdirSync(`/proc/${daemon.pid}/fd`).flatMap((fd) => {
      try {
        return [/socket:\[(\d+)\]/.exec(readlinkSync(`/proc/${daemon.pid}/fd/${fd}`))?.[1] ?? ""];
      } catch {
        return [];
      }
    }),
  );
  const listening = ["/proc/net/tcp", "/proc/net/tcp6"]
    .flatMap((path) => readFileSync(path, "utf8").split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === "0A" && inodes.has(fields[9] ?? ""));
  expect(listening).toEqual([]);
  expect((await daemonCall(lab, ["status"])).code).toBe(0);
});
