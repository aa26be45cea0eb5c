// The runtimes that this process started, and the CPU that they used.
import { readdirSync, readFileSync } from "node:fs";

const clockTicksPerSecond = 100;

/** Fields of `/proc/PID/stat` after the name: state, parent, …; null when the process ended. */
function statOf(pid: number): { name: string; fields: string[] } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return { name: stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")")), fields: stat.slice(stat.lastIndexOf(")") + 2).split(" ") };
  } catch {
    return null;
  }
}

/** The process id of the runtime that was started last. */
export function newestRuntime(): number {
  const pids = readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      const stat = statOf(pid);
      return stat?.name.startsWith("workerd") === true && Number(stat.fields[1]) === process.pid;
    });
  return Math.max(...pids);
}

export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid)?.fields ?? [];
  return (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond;
}

const pageBytes = 4_096;

/** What the process has in memory. */
export function memoryBytesOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * pageBytes;
}

export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Milliseconds of CPU that the runtime's threads used so far, finer than the ticks above: a single turn shows. */
export function runtimeCpuMs(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`))
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  return nanoseconds / 1e6;
}
