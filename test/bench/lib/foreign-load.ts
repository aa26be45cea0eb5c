// How much of the machine others used during a block: a figure of time that was measured beside them is none.
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

const clockTicksPerSecond = 100;

/** Seconds of CPU that the whole machine was busy since it started. */
function busySeconds(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (readFileSync("/proc/stat", "utf8").split("\n")[0] ?? "")
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / clockTicksPerSecond;
}

/** Seconds of CPU that this process has used. */
export const ownSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/** Counts from now; the answer is the share of all cores that neither this process nor what it started used, which used `started` seconds. */
export function foreignLoad(): (started: number) => number {
  const [busy, own, startMs] = [busySeconds(), ownSeconds(), performance.now()];
  return (started) => {
    const seconds = (performance.now() - startMs) / 1_000;
    return Math.max(0, (busySeconds() - busy - (ownSeconds() - own) - started) / (seconds * availableParallelism()));
  };
}
