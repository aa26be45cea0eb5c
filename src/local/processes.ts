// Processes of this machine: which there are, and whether a process id still means the same process.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** A process that cannot be mistaken for a later one with the same id. */
export type ProcessRef = { pid: number; started: string };

type ProcessLine = ProcessRef & { parent: number; name: string };

/** Name, parent and start time of field 22, in clock ticks since boot; null when it ended meanwhile. */
function fromProc(pid: number): ProcessLine | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid, name, parent: Number(fields[1]), started: fields[19] ?? "" };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
}

function allProcesses(): ProcessLine[] {
  if (existsSync("/proc/self/stat")) {
    return readdirSync("/proc")
      .filter((entry) => /^\d+$/.test(entry))
      .flatMap((entry) => fromProc(Number(entry)) ?? []);
  }
  // macOS: `lstart` is five words.
  const { stdout } = spawnSync("ps", ["-axo", "pid=,ppid=,lstart=,comm="], { encoding: "utf8" });
  return stdout.split("\n").flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/.exec(line);
    return match ? [{ pid: Number(match[1]), parent: Number(match[2]), started: match[3] ?? "", name: match[4] ?? "" }] : [];
  });
}

/** The process with this id as it is now, or null. */
export function processRef(pid: number): ProcessRef | null {
  const found = existsSync("/proc/self/stat") ? fromProc(pid) : allProcesses().find((line) => line.pid === pid);
  return found ? { pid, started: found.started } : null;
}

export const isSameProcess = (ref: ProcessRef): boolean => processRef(ref.pid)?.started === ref.started;

/** Children of this process whose program has this name. */
export const childrenNamed = (name: string): ProcessRef[] =>
  allProcesses()
    .filter((line) => line.parent === process.pid && line.name.includes(name))
    .map(({ pid, started }) => ({ pid, started }));
