// Named places where the kill tests end the daemon, as a power cut would. Without SWITCHYARD_FAULT_POINT they do nothing.
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { isErrno } from "./home.ts";

type DaemonFaultPoint = "journalled" | "spawned" | "output.sent" | "exited" | "result.sent" | "result.acked";
export type FaultPlan = (point: DaemonFaultPoint) => void;

/** Reads the plan once, at the door. One shot: where the file exists already, the point was reached in an earlier life. */
export function readFaultPlan(env: NodeJS.ProcessEnv): FaultPlan {
  const wanted = env.SWITCHYARD_FAULT_POINT;
  const file = env.SWITCHYARD_FAULT_FILE;
  if (!wanted || !file) return () => undefined;
  return (point) => {
    if (point !== wanted) return;
    let fd: number;
    try {
      fd = openSync(file, "wx");
    } catch (error) {
      if (isErrno(error, "EEXIST")) return;
      throw error;
    }
    writeSync(fd, point);
    fsyncSync(fd);
    closeSync(fd);
    process.kill(process.pid, "SIGKILL");
    // The signal may take a moment: nothing of this process may go on.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
}
