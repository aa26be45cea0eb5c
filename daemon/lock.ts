// One daemon a home. `flock` on a descriptor that we keep: released by the kernel however we end, and not inherited by children.
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { Fault } from "../src/protocol/fault.ts";
import { type Home, isErrno } from "./home.ts";
import { startTimeOf } from "./processes.ts";

export type Lock = { release(): void };

/** Takes the lock, or says which process holds it. */
export function takeLock(home: Home): Lock | { heldBy: string } {
  const fd = openSync(home.lock, "a+", 0o600);
  const locked = spawnSync("flock", ["-n", "3"], { stdio: ["ignore", "ignore", "ignore", fd] });
  if (locked.error) {
    closeSync(fd);
    return takeLockByFile(`${home.lock}.pid`);
  }
  if (locked.status !== 0) {
    const heldBy = readFileSync(home.lock, "utf8").trim();
    closeSync(fd);
    return { heldBy: heldBy || "another process" };
  }
  ftruncateSync(fd);
  writeSync(fd, `process ${process.pid}\n`);
  return { release: () => closeSync(fd) };
}

/** Without `flock`: an exclusive file with process id and start time, so that a reused id is not taken for the holder. */
export function takeLockByFile(path: string): Lock | { heldBy: string } {
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      const fd = openSync(path, "wx", 0o600);
      writeSync(fd, `${process.pid} ${startTimeOf(process.pid) ?? "unknown"}`);
      closeSync(fd);
      return { release: () => unlinkSync(path) };
    } catch (error) {
      if (!isErrno(error, "EEXIST")) throw error;
    }
    const [pid = "", ...start] = readFileSync(path, "utf8").split(" ");
    if (startTimeOf(Number(pid)) === start.join(" ")) return { heldBy: `process ${pid}` };
    unlinkSync(path);
  }
  return { heldBy: "another process" };
}

/** The lock, or a fault that says what to do. */
export function requireLock(home: Home): Lock {
  const lock = takeLock(home);
  if ("heldBy" in lock)
    throw new Fault(
      "conflict",
      `A daemon already runs on ${home.dir} (${lock.heldBy}); stop it first, or give another folder with --home.`,
    );
  return lock;
}
