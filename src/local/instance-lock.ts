// Nothing in the runtime refuses two servers on one state folder, and a killed parent leaves workerd serving. This lock does the first and finds the second.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { StartError } from "./settings.ts";

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/** Takes the lock of a state folder, or throws `StartError` naming the process that holds it. Returns its release. */
export function lockState(statePath: string): () => void {
  mkdirSync(statePath, { recursive: true, mode: 0o700 });
  const file = path.join(statePath, "switchyard.lock");
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      const holder = Number(readFileSync(file, "utf8"));
      if (Number.isInteger(holder) && holder > 0 && holder !== process.pid && isAlive(holder)) {
        throw new StartError(`Another Switchyard (process ${holder}) runs on ${statePath}. Stop it, or use --state DIR and --port N.`);
      }
      rmSync(file, { force: true });
    }
  }
  throw new StartError(`The lock ${file} cannot be taken; remove it if no Switchyard runs.`);
}
