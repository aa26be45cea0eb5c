// What runs on this machine: parents, groups, sessions and start times; a process id alone may have been reused.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { isErrno } from "./home.ts";

export type ProcessInfo = { pid: number; ppid: number; group: number; session: number; zombie: boolean; startTime: string };

/** A command's processes carry its id here, whoever their parent is. */
export const markerName = "SWITCHYARD_COMMAND";

const hasProc = process.platform === "linux";
const bootId = hasProc ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() : "";

/** One line of `/proc/PID/stat`; the name in parentheses may itself hold spaces and parentheses. */
export function parseStat(line: string): ProcessInfo | null {
  const end = line.lastIndexOf(")");
  const fields = line.slice(end + 2).split(" ");
  const [state, ppid, group, session] = fields;
  const start = fields[19];
  if (end < 0 || start === undefined) return null;
  return {
    pid: Number.parseInt(line, 10),
    ppid: Number(ppid),
    group: Number(group),
    session: Number(session),
    zombie: state === "Z" || state === "X",
    startTime: `${bootId}/${start}`,
  };
}

/** One line of `ps -o pid=,ppid=,pgid=,sess=,stat=,lstart=`. */
export function parsePs(line: string): ProcessInfo | null {
  const [pid, ppid, group, session, state, ...start] = line.trim().split(/\s+/);
  if (state === undefined || start.length === 0) return null;
  // Where `ps` has no numeric session, the group stands for it.
  const sessionId = Number(session) || Number(group);
  return {
    pid: Number(pid),
    ppid: Number(ppid),
    group: Number(group),
    session: sessionId,
    zombie: state.startsWith("Z"),
    startTime: start.join(" "),
  };
}

/** A process that ends while we look is not an error. */
const readGone = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
};

const byPs = (args: string[]): ProcessInfo[] =>
  spawnSync("ps", [...args, "-o", "pid=,ppid=,pgid=,sess=,stat=,lstart="], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, LC_ALL: "C" },
  })
    .stdout.split("\n")
    .map(parsePs)
    .filter((info) => info !== null);

const procIds = (): string[] => readdirSync("/proc").filter((name) => /^\d+$/.test(name));

export function listProcesses(): ProcessInfo[] {
  if (!hasProc) return byPs(["-A"]);
  return procIds()
    .map((pid) => readGone(`/proc/${pid}/stat`))
    .map((line) => (line === null ? null : parseStat(line)))
    .filter((info) => info !== null);
}

export function processInfo(pid: number): ProcessInfo | null {
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (!hasProc) return byPs(["-p", String(pid)])[0] ?? null;
  const line = readGone(`/proc/${pid}/stat`);
  return line === null ? null : parseStat(line);
}

export const startTimeOf = (pid: number): string | null => processInfo(pid)?.startTime ?? null;

/** The same process, and not merely its id, still runs. */
export function isAlive(pid: number, startTime: string): boolean {
  const info = processInfo(pid);
  return info !== null && !info.zombie && info.startTime === startTime;
}

/** Everything below the roots by parent, the roots included. */
export function withDescendants(all: readonly ProcessInfo[], roots: ReadonlySet<number>): ProcessInfo[] {
  const found = new Set(all.filter((each) => roots.has(each.pid)).map((each) => each.pid));
  for (let grew = true; grew; ) {
    grew = false;
    for (const each of all) {
      if (!found.has(each.pid) && (found.has(each.ppid) || roots.has(each.ppid))) {
        found.add(each.pid);
        grew = true;
      }
    }
  }
  return all.filter((each) => found.has(each.pid));
}

/** Processes whose environment carries the command's marker; only Linux shows it. */
export function markedBy(commandId: string): number[] {
  if (!hasProc) return [];
  const marker = `${markerName}=${commandId}`;
  return procIds()
    .filter((pid) => readGone(`/proc/${pid}/environ`)?.split("\0").includes(marker) === true)
    .map(Number);
}

/** A signal to a process that is gone, or that is another user's by now, does nothing; whoever waits for its end still sees it. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!isErrno(error, "ESRCH", "EPERM")) throw error;
  }
}
