// This machine's daemon as a child process: the shipped command line, enrolled once, its lines passed on.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import type { ConsoleClient } from "./console-client.ts";
import { StartError } from "./settings.ts";
import { root } from "./worker.ts";

const mainPath = path.join(root, "daemon/main.ts");

/** Runs one daemon command to its end and returns its output; a failure is a `StartError` with the daemon's own line. */
export async function daemonCommand(home: string, args: string[]): Promise<string> {
  const { code, output, errors } = await runToEnd(home, args);
  if (code === 0) return output;
  throw new StartError(`The daemon could not ${args[0]}: ${(errors || output).trim().split("\n").at(-1)}`);
}

/** What `doctor` finds on this machine. It exits non-zero when anything is missing, which is no failure here. */
export async function daemonFindings(home: string): Promise<{ check: string; ok: boolean; text: string }[]> {
  const { output } = await runToEnd(home, ["doctor", "--json"]);
  return output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function runToEnd(home: string, args: string[]): Promise<{ code: number | null; output: string; errors: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [mainPath, ...args, "--home", home], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let errors = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output, errors }));
  });
}

export type DaemonOptions = {
  home: string;
  origin: string;
  workspace: string;
  workspaceName: string;
  unsandboxed: boolean;
  onLine: (line: string) => void;
  env?: Record<string, string>;
};

/** Enrols this machine if needed, grants the workspace, starts the daemon and resolves when it is connected. */
export async function startDaemon(console_: ConsoleClient, options: DaemonOptions): Promise<ChildProcess> {
  if (!existsSync(path.join(options.home, "identity.json"))) {
    await daemonCommand(options.home, ["enroll", options.origin, await console_.enrolmentCode()]);
  }
  await daemonCommand(options.home, ["grant", options.workspace, "--name", options.workspaceName, "--only"]);
  const args = [mainPath, "run", "--home", options.home, "--url", options.origin, ...(options.unsandboxed ? ["--unsandboxed"] : [])];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...options.env } });
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new StartError(`The daemon did not connect to ${options.origin} within 20 s. Last line: ${last}`)),
      20_000,
    );
    let last = "(none)";
    const onLine = (line: string) => {
      last = line;
      options.onLine(line);
      if (/\bconnected as\b/.test(line)) {
        clearTimeout(timer);
        resolve();
      }
    };
    createInterface({ input: child.stdout }).on("line", onLine);
    createInterface({ input: child.stderr }).on("line", onLine);
    child.once("exit", (code) => {
      clearTimeout(timer);
      reject(new StartError(`The daemon ended at once (exit ${code}): ${last}`));
    });
  });
  return child;
}
