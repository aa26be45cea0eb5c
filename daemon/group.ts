// Everything that a command started, and how it is ended for certain. A signal to the process group alone leaves behind whoever
// called setsid. In order of strength:
//   bwrap   a process namespace: nothing survives, not even a SIGKILL of the daemon.
//   cgroup  a writable cgroup v2: nothing survives a stop; after a SIGKILL of the daemon its next start ends the rest.
//   scan    group, session, children seen by parent, and the environment marker: survives only what detached itself by a double
//           fork and setsid between two looks *and* cleared its environment.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isErrno } from "./home.ts";
import { isAlive, listProcesses, markedBy, processInfo, signal, startTimeOf, withDescendants } from "./processes.ts";

export interface Group {
  terminate(): void;
  kill(): void;
  alive(): boolean;
  /** Ends the watching; the processes are gone by now. */
  close(): void;
}

export type Leader = { pid: number; startTime: string };

/** `inner` is the first process of the namespace, as bwrap reports it: when it is gone, all are. */
export function bwrapGroup(outer: Leader, inner: () => Leader | null): Group {
  return {
    terminate() {
      const spared = new Set([outer.pid, inner()?.pid]);
      // bwrap itself must live on: its end kills the others without grace.
      for (const each of withDescendants(listProcesses(), new Set([outer.pid]))) if (!spared.has(each.pid)) signal(each.pid, "SIGTERM");
    },
    kill() {
      const first = inner();
      if (first && isAlive(first.pid, first.startTime)) signal(first.pid, "SIGKILL");
      if (isAlive(outer.pid, outer.startTime)) signal(outer.pid, "SIGKILL");
    },
    alive() {
      const first = inner();
      return isAlive(outer.pid, outer.startTime) || (first !== null && isAlive(first.pid, first.startTime));
    },
    close() {},
  };
}

/** Our own cgroup v2 folder where children can be made and killed, or null. */
export function writableCgroup(): string | null {
  if (process.platform !== "linux") return null;
  const mount = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((line) => line.includes(" - cgroup2 "));
  const [, , , mountRoot = "/", mountPoint = ""] = mount?.split(" ") ?? [];
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (!mount || own === undefined || !own.startsWith(mountRoot)) return null;
  const folder = join(mountPoint, own.slice(mountRoot.length));
  const trial = join(folder, `switchyard-trial-${process.pid}`);
  try {
    mkdirSync(trial);
    const usable = existsSync(join(trial, "cgroup.kill"));
    rmdirSync(trial);
    return usable ? folder : null;
  } catch {
    // No permission is the usual case, and the answer.
    return null;
  }
}

export const cgroupOf = (parent: string, commandId: string): string => join(parent, `switchyard-${commandId}`);

/** Puts the leader, which has done nothing yet, into a cgroup of its own; null when that is not allowed. */
export function enterCgroup(folder: string, pid: number): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "cgroup.procs"), String(pid));
    return true;
  } catch {
    // Delegation differs between systems: the caller falls back to looking at processes.
    return false;
  }
}

export function cgroupGroup(folder: string): Group {
  const read = (name: string): string => (existsSync(folder) ? readFileSync(join(folder, name), "utf8") : "");
  return {
    terminate() {
      for (const pid of read("cgroup.procs").split("\n").filter(Boolean)) signal(Number(pid), "SIGTERM");
    },
    kill() {
      if (existsSync(folder)) writeFileSync(join(folder, "cgroup.kill"), "1");
    },
    alive: () => /^populated 1$/m.test(read("cgroup.events")),
    close() {
      try {
        rmdirSync(folder);
      } catch (error) {
        // The kernel may still be busy with the last process; an empty folder that stays does no harm.
        if (!isErrno(error, "ENOENT", "EBUSY")) throw error;
      }
    },
  };
}

const lookEveryMs = 500;

/** Without a namespace or a cgroup: whatever can be recognised as the command's. */
export function scanGroup(leader: Leader, commandId: string): Group {
  const known = new Map<number, string>([[leader.pid, leader.startTime]]);
  const look = (): void => {
    const all = listProcesses();
    const leaderNow = all.find((each) => each.pid === leader.pid);
    // When the leader's id belongs to somebody else by now, the group and session of that number do as well.
    const isOurs = leaderNow === undefined || leaderNow.startTime === leader.startTime;
    const roots = new Set<number>();
    for (const each of all) {
      const wasSeen = known.get(each.pid) === each.startTime;
      if (wasSeen || (isOurs && (each.group === leader.pid || each.session === leader.pid))) roots.add(each.pid);
    }
    for (const each of withDescendants(all, roots)) known.set(each.pid, each.startTime);
  };
  const everyone = (): Leader[] => {
    look();
    for (const pid of markedBy(commandId)) {
      const startTime = startTimeOf(pid);
      if (startTime !== null) known.set(pid, startTime);
    }
    for (const [pid, startTime] of known) if (!isAlive(pid, startTime)) known.delete(pid);
    return [...known].map(([pid, startTime]) => ({ pid, startTime }));
  };
  const timer = setInterval(look, lookEveryMs);
  timer.unref();
  return {
    terminate() {
      for (const each of everyone()) signal(each.pid, "SIGTERM");
    },
    kill() {
      for (const each of everyone()) signal(each.pid, "SIGKILL");
    },
    alive: () => everyone().length > 0,
    close: () => clearInterval(timer),
  };
}

async function untilGone(group: Group, forMs: number): Promise<boolean> {
  const endMs = Date.now() + forMs;
  for (let waitMs = 2; group.alive(); waitMs = Math.min(100, waitMs * 2)) {
    if (Date.now() >= endMs) return false;
    await sleep(Math.min(waitMs, Math.max(1, endMs - Date.now())));
  }
  return true;
}

/** Asks politely, waits, kills, and resolves only when nothing of the group is left. `onStuck` hears of what a kill does not end. */
export async function endGroup(group: Group, graceMs: number, onStuck: () => void): Promise<void> {
  if (graceMs > 0) {
    group.terminate();
    if (await untilGone(group, graceMs)) return;
  }
  // Killing may race with a fork: repeated until nobody is left.
  for (let round = 1; ; round++) {
    group.kill();
    if (await untilGone(group, 100)) return;
    if (round % 100 === 0) onStuck();
  }
}

/** After a restart: ends what an earlier daemon's command left behind. */
export async function endLeftovers(
  mark: Leader | null,
  commandId: string,
  cgroupParent: string | null,
  onStuck: () => void,
): Promise<void> {
  const groups: Group[] = [];
  if (cgroupParent !== null && existsSync(cgroupOf(cgroupParent, commandId))) groups.push(cgroupGroup(cgroupOf(cgroupParent, commandId)));
  if (mark !== null) groups.push(scanGroup(mark, commandId));
  for (const group of groups) {
    await endGroup(group, 0, onStuck);
    group.close();
  }
}

/** The running process as a leader; null when it ended already. */
export const leaderOf = (pid: number): Leader | null => {
  const info = processInfo(pid);
  return info === null ? null : { pid, startTime: info.startTime };
};
