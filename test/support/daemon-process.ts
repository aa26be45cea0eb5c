// The shipped command line of the daemon as a real process, on a home and a workspace of its own.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { listProcesses } from "../../daemon/processes.ts";
import { until } from "./until.ts";

const main = fileURLToPath(new URL("../../daemon/main.ts", import.meta.url));

export type Mode = "bwrap" | "unsandboxed";

/** Both ways of running, where this machine has them. */
export const modes: Mode[] =
  spawnSync("bwrap", ["--ro-bind", "/", "/", "--unshare-pid", "true"]).status === 0 ? ["bwrap", "unsandboxed"] : ["unsandboxed"];

export type Lab = { dir: string; home: string; work: string; remove(): void };

/** A scratch folder with a daemon's home and a workspace. */
export function makeLab(): Lab {
  const dir = mkdtempSync(join(tmpdir(), "switchyard-daemon-"));
  const lab = { dir, home: join(dir, "home"), work: join(dir, "work"), remove: () => rmSync(dir, { recursive: true, force: true }) };
  mkdirSync(lab.work);
  // A bwrap that fails stands for a machine without one.
  mkdirSync(join(dir, "no-bwrap"));
  writeFileSync(join(dir, "no-bwrap", "bwrap"), "#!/bin/sh\necho 'bwrap: not permitted' >&2\nexit 1\n");
  chmodSync(join(dir, "no-bwrap", "bwrap"), 0o755);
  return lab;
}

const envFor = (lab: Lab, mode: Mode, more: Record<string, string>): NodeJS.ProcessEnv => ({
  ...process.env,
  ...(mode === "bwrap" ? {} : { PATH: `${join(lab.dir, "no-bwrap")}:${process.env.PATH}` }),
  ...more,
});

/** One call of the command line, to its end. */
export async function daemonCall(
  lab: Lab,
  args: string[],
  mode: Mode = "bwrap",
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [main, ...args, "--home", lab.home], {
    env: envFor(lab, mode, {}),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

/** Live processes whose whole command line is this; shells that only carry it as an argument do not count. */
export const countRunning = (commandLine: string): number =>
  listProcesses().filter((each) => {
    try {
      return !each.zombie && readFileSync(`/proc/${each.pid}/cmdline`, "utf8").split("\0").join(" ").trim() === commandLine;
    } catch {
      return false;
    }
  }).length;

/** A duration that no other process sleeps: the mark by which a test finds it. */
export const someSleep = (): string => `sleep ${600 + Math.floor(Math.random() * 1e6) / 1e4}1`;

export type Line = { event: string; text: string; [field: string]: unknown };

export class DaemonProcess {
  readonly lines: Line[] = [];
  stderr = "";
  exit: { code: number | null; signal: string | null } | null = null;
  readonly #child: ChildProcess;

  constructor(lab: Lab, mode: Mode, env: Record<string, string> = {}, allowUnsandboxed = mode === "unsandboxed") {
    const args = [main, "run", "--json", "--home", lab.home, ...(allowUnsandboxed ? ["--unsandboxed"] : [])];
    this.#child = spawn(process.execPath, args, { env: envFor(lab, mode, env), stdio: ["ignore", "pipe", "pipe"] });
    let rest = "";
    this.#child.stdout?.on("data", (chunk) => {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) this.lines.push(JSON.parse(part));
    });
    this.#child.stderr?.on("data", (chunk) => (this.stderr += chunk));
    this.#child.once("close", (code, signal) => (this.exit = { code, signal }));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  line(event: string, forMs = 15_000): Promise<Line> {
    return until(
      `the daemon's line "${event}"`,
      () => {
        const found = this.lines.find((line) => line.event === event);
        if (!found && this.exit) throw new Error(`The daemon ended without "${event}": ${this.stderr}`);
        return found;
      },
      forMs,
    );
  }

  ended(forMs = 20_000): Promise<{ code: number | null; signal: string | null }> {
    return until("the daemon's end", () => this.exit, forMs);
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): void {
    this.#child.kill(signal);
  }

  async stop(): Promise<void> {
    if (this.exit === null) this.kill("SIGTERM");
    await this.ended();
  }
}
