// Ending everything that a command started, in each way that this machine has.
import { type ChildProcess, spawn } from "node:child_process";
import { expect, test } from "vitest";
import {
  cgroupGroup,
  cgroupOf,
  endGroup,
  endLeftovers,
  enterCgroup,
  type Group,
  type Leader,
  leaderOf,
  scanGroup,
  writableCgroup,
} from "../../daemon/group.ts";
import { listProcesses, markerName, parsePs, parseStat, processInfo, withDescendants } from "../../daemon/processes.ts";
import { countRunning, someSleep } from "../support/daemon-process.ts";
import { until } from "../support/until.ts";

const neverStuck = (): void => {
  throw new Error("something could not be ended");
};

/** Starts a script in a session of its own, as the runner does. */
function begin(script: string, id: string): { child: ChildProcess; leader: Leader } {
  const child = spawn("/bin/sh", ["-c", `read -r _; ${script}`], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: process.env.PATH, [markerName]: id },
  });
  const leader = child.pid === undefined ? null : leaderOf(child.pid);
  if (!leader) throw new Error("no process");
  return { child, leader };
}

async function ended(group: Group, child: ChildProcess, nap: string, count: number, graceMs: number): Promise<void> {
  child.stdin?.end("go\n");
  await until("the sleepers", () => countRunning(nap) === count);
  await endGroup(group, graceMs, neverStuck);
  expect(countRunning(nap)).toBe(0);
  expect(group.alive()).toBe(false);
  group.close();
}

test("by looking at processes: the group, another session, an adopted grandchild with the marker, and who ignores SIGTERM", async () => {
  const nap = someSleep();
  const script = `trap '' TERM; setsid ${nap} & sh -c '(setsid ${nap} &) ; exit 0'; ${nap} & wait; wait`;
  const { child, leader } = begin(script, "cmd_scan");
  await ended(scanGroup(leader, "cmd_scan"), child, nap, 3, 200);
});

test("by looking at processes: a detached one without the marker is remembered from an earlier look", async () => {
  const nap = someSleep();
  const { child, leader } = begin(`setsid env -i ${nap} & sleep 1; exit 0`, "cmd_seen");
  const group = scanGroup(leader, "cmd_seen");
  child.stdin?.end("go\n");
  await until("the sleeper", () => countRunning(nap) === 1);
  expect(group.alive()).toBe(true);
  await until("the leader's end", () => processInfo(leader.pid) === null);
  await endGroup(group, 0, neverStuck);
  expect(countRunning(nap)).toBe(0);
  group.close();
});

const cgroup = writableCgroup();

test.runIf(cgroup !== null)("by cgroup: also a grandchild that left its session and cleared its environment", async () => {
  const nap = someSleep();
  const { child, leader } = begin(`(setsid env -i sh -c "trap '' TERM; ${nap} & wait; wait" &) ; ${nap}`, "cmd_cgroup");
  const folder = cgroupOf(cgroup ?? "", "cmd_cgroup");
  expect(enterCgroup(folder, leader.pid)).toBe(true);
  await ended(cgroupGroup(folder), child, nap, 2, 100);
});

test("after a restart what was left is found by process id and start time, by group, and by the marker", async () => {
  const nap = someSleep();
  const { child, leader } = begin(`setsid ${nap} & ${nap} & exit 0`, "cmd_left");
  child.stdin?.end("go\n");
  await until("the sleepers", () => countRunning(nap) === 2 && processInfo(leader.pid) === null);
  await endLeftovers(leader, "cmd_left", null, neverStuck);
  expect(countRunning(nap)).toBe(0);
});

test("a process id that was reused is nobody's leftover", async () => {
  const nap = someSleep();
  const { child, leader } = begin(nap, "cmd_other");
  child.stdin?.end("go\n");
  await until("the sleeper", () => countRunning(nap) === 1);
  await endLeftovers({ pid: leader.pid, startTime: "another boot/1" }, "cmd_gone", null, neverStuck);
  expect(countRunning(nap)).toBe(1);
  await endGroup(scanGroup(leader, "cmd_other"), 0, neverStuck);
  expect(countRunning(nap)).toBe(0);
});

test("a stat line is read past a name with spaces and parentheses, and a ps line with its start as one text", () => {
  const stat = `42 (a) b (c) S 7 42 41 ${Array(15).fill("0").join(" ")} 987 0`;
  expect(parseStat(stat)).toMatchObject({
    pid: 42,
    ppid: 7,
    group: 42,
    session: 41,
    zombie: false,
    startTime: expect.stringMatching(/\/987$/),
  });
  expect(parseStat("nonsense")).toBeNull();
  expect(parsePs("   42     7    42    0 Z+   Mon Nov 30 01:02:03 2026")).toEqual({
    pid: 42,
    ppid: 7,
    group: 42,
    session: 42,
    zombie: true,
    startTime: "Mon Nov 30 01:02:03 2026",
  });
});

test("descendants are found at any depth, with children of a root that is gone", () => {
  const of = (pid: number, ppid: number) => ({ pid, ppid, group: 1, session: 1, zombie: false, startTime: "" });
  const all = [of(5, 4), of(3, 2), of(4, 3), of(9, 1)];
  expect(withDescendants(all, new Set([2])).map((each) => each.pid)).toEqual([5, 3, 4]);
  expect(listProcesses().some((each) => each.pid === process.pid)).toBe(true);
});
