// Nothing in the runtime refuses two servers on one state folder, and a killed parent leaves workerd and the daemon running.
// The lock does the first, and by the processes that stand in it the next start finds and ends the second.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { isSameProcess, type ProcessRef, processRef } from "./processes.ts";
import { StartError } from "./settings.ts";

type Held = { holder: ProcessRef; children: ProcessRef[] };

export type StateLock = {
  /** Processes of the killed start before this one that were ended now. */
  ended: number[];
  /** Puts processes of this start into the lock. */
  adopt(children: ProcessRef[]): void;
  /** Ends the adopted processes at once and removes the lock: also for `exit`, where nothing can be waited for. */
  release(): void;
};

/** Takes the lock of a state folder, or throws `StartError` naming the process that holds it. */
export function lockState(statePath: string): StateLock {
  mkdirSync(statePath, { recursive: true, mode: 0o700 });
  const file = path.join(statePath, "switchyard.lock");
  const holder = processRef(process.pid);
  if (holder === null) throw new StartError("This process cannot be found in the list of processes; the state cannot be locked.");
  const before = readLock(file);
  if (before !== null && isSameProcess(before.holder)) {
    throw new StartError(
      `Another Switchyard (process ${before.holder.pid}) runs on ${statePath}. Stop it, or use --state DIR and --port N.`,
    );
  }
  const ended = (before?.children ?? []).filter(isSameProcess).map(({ pid }) => pid);
  for (const pid of ended) process.kill(pid, "SIGKILL");
  rmSync(file, { force: true });
  const held: Held = { holder, children: [] };
  try {
    writeFileSync(file, JSON.stringify(held), { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new StartError(`The lock ${file} cannot be taken (${(error as NodeJS.ErrnoException).code}): another start may be under way.`);
  }
  return {
    ended,
    adopt(children) {
      held.children.push(...children);
      writeFileSync(`${file}.new`, JSON.stringify(held), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
    release() {
      for (const child of held.children.splice(0)) if (isSameProcess(child)) process.kill(child.pid, "SIGKILL");
      rmSync(file, { force: true });
    },
  };
}

/** What stands in the lock; null when there is none, or one that no start of ours wrote. */
function readLock(file: string): Held | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    const { holder, children } = JSON.parse(text) as Held;
    return typeof holder?.pid === "number" && Array.isArray(children) ? { holder, children } : null;
  } catch {
    // Cut off by a crash in the middle of the first write: nothing was started under it.
    return null;
  }
}
