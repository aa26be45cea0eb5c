// Starts one shell command behind a gate: the process exists and is journalled before it may do anything. If the daemon dies first,
// the gate closes and nothing ever ran.
import { execFile, spawn } from "node:child_process";
import { closeSync, constants, openSync, unlinkSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { constants as osConstants } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Fault } from "../src/protocol/fault.ts";
import { bwrapGroup, cgroupGroup, cgroupOf, endGroup, enterCgroup, type Group, type Leader, leaderOf, scanGroup } from "./group.ts";
import { bwrapArgs, cleanEnv, shellArgv } from "./sandbox.ts";
import { socketFilter } from "./socket-filter.ts";

const runFile = promisify(execFile);

export type ShellPlan = {
  commandId: string;
  script: string;
  root: string;
  cwd: string;
  stdin: string | null;
  mode: "bwrap" | "unsandboxed";
  daemonHome: string;
  outputFolder: string;
  cgroupParent: string | null;
  /** Beside the clean environment. */
  env?: Record<string, string>;
};

export type ShellEnd = { exitCode: number | null; signal: string | null };

export type Launched = {
  leader: Leader;
  /** Opens the gate. */
  go(): void;
  /** Resolves when nothing of the command is left and all its output was handed over. */
  end: Promise<ShellEnd>;
  /** Asks everything to end, kills it after the grace; `end` follows. */
  stop(graceMs: number): void;
};

const gate = 'read -r _ <&3 || exit 125; exec "$@" 3<&-';
/** How long output is waited for when something that survived still holds the pipe. */
const drainMs = 2_000;

/** One pipe for stdout and stderr keeps their order; a real one, since a socket cannot be opened again as /dev/stderr. */
async function makePipe(path: string): Promise<{ readFd: number; writeFd: number }> {
  await runFile("mkfifo", ["-m", "600", path]);
  try {
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return { readFd, writeFd: openSync(path, constants.O_WRONLY) };
  } finally {
    unlinkSync(path);
  }
}

/** A file without a name: a socket would make bash read the user's start files, as if it were a remote login. */
function openInput(path: string, text: string | Buffer): number {
  writeFileSync(path, text, { mode: 0o600 });
  try {
    return openSync(path, constants.O_RDONLY);
  } finally {
    unlinkSync(path);
  }
}

/** The namespace's first process, from bwrap's status lines. */
function watchInner(status: Readable): () => Leader | null {
  let text = "";
  let inner: Leader | null = null;
  status.setEncoding("utf8");
  status.on("data", (chunk: string) => {
    text += chunk;
    const pid = /"child-pid":\s*(\d+)/.exec(text)?.[1];
    if (inner === null && pid !== undefined) inner = leaderOf(Number(pid));
  });
  return () => inner;
}

/** Starts the command at its gate. `onStuck` hears when a kill leaves something alive. */
export async function launch(plan: ShellPlan, onOutput: (chunk: Buffer) => void, onStuck: () => void): Promise<Launched> {
  const inBwrap = plan.mode === "bwrap";
  const filter = inBwrap ? socketFilter(process.arch) : null;
  const wrapper = inBwrap
    ? ["bwrap", ...bwrapArgs(plan.root, plan.daemonHome), "--json-status-fd", "4", ...(filter === null ? [] : ["--seccomp", "5"])]
    : [];
  const argv = [...wrapper, ...(inBwrap ? ["--chdir", plan.cwd, "--"] : []), ...shellArgv(plan.script)];
  const pipe = await makePipe(join(plan.outputFolder, `${plan.commandId}.pipe`));
  const inputFd = plan.stdin === null ? null : openInput(join(plan.outputFolder, `${plan.commandId}.input`), plan.stdin);
  const filterFd = filter === null ? null : openInput(join(plan.outputFolder, `${plan.commandId}.filter`), filter);
  const child = spawn("/bin/sh", ["-c", gate, "gate", ...argv], {
    cwd: inBwrap ? plan.root : plan.cwd,
    env: { ...cleanEnv(process.env, plan.commandId, plan.mode), ...plan.env },
    detached: true,
    stdio: [inputFd ?? "ignore", pipe.writeFd, pipe.writeFd, "pipe", inBwrap ? "pipe" : "ignore", filterFd ?? "ignore"],
  });
  closeSync(pipe.writeFd);
  if (inputFd !== null) closeSync(inputFd);
  if (filterFd !== null) closeSync(filterFd);
  const output = new Socket({ fd: pipe.readFd, readable: true, writable: false });
  output.on("data", onOutput);
  const drained = new Promise<void>((resolve) => output.once("close", () => resolve()));
  const exited = new Promise<ShellEnd>((resolve, reject) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    child.once("error", reject);
  });
  exited.catch(() => output.destroy());
  const gateStream = child.stdio[3] as Writable;
  // A command that is ended at its gate does not read it any more.
  gateStream.on("error", () => undefined);
  const inner = inBwrap ? watchInner(child.stdio[4] as Readable) : () => null;
  if (child.pid === undefined) {
    await exited;
    throw new Fault("internal", "The command's process could not be made.");
  }
  const leader = leaderOf(child.pid);
  if (leader === null) throw new Fault("internal", "The command's process ended before it began.");

  const group = groupOf(plan, leader, inner);
  const end = exited.then(async (seen) => {
    await endGroup(group, 0, onStuck);
    await Promise.race([drained, sleep(drainMs)]);
    output.destroy();
    group.close();
    return seen;
  });
  return {
    leader,
    go: () => gateStream.end("go\n"),
    end,
    stop: (graceMs) => void endGroup(group, graceMs, onStuck),
  };
}

function groupOf(plan: ShellPlan, leader: Leader, inner: () => Leader | null): Group {
  if (plan.mode === "bwrap") return bwrapGroup(leader, inner);
  const folder = plan.cgroupParent === null ? null : cgroupOf(plan.cgroupParent, plan.commandId);
  if (folder !== null && enterCgroup(folder, leader.pid)) return cgroupGroup(folder);
  return scanGroup(leader, plan.commandId);
}

/** The end of a command that we stopped: inside bwrap a signal shows only as 128 + its number. */
export function endedBySignal(end: ShellEnd): ShellEnd {
  if (end.exitCode === null || end.exitCode <= 128) return end;
  const name = Object.entries(osConstants.signals).find(([, number]) => number === (end.exitCode ?? 0) - 128)?.[0];
  return name === undefined ? end : { exitCode: null, signal: name };
}
