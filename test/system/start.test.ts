import { spawn, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isSameProcess } from "../../src/local/processes.ts";
import { eventually } from "../support/system.ts";

const root = path.resolve(import.meta.dirname, "../..");
let scratch: string;
let port = 18_800;

beforeAll(() => {
  scratch = mkdtempSync(path.join(tmpdir(), "switchyard-start-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs the local start as a person would and resolves with what it printed. */
function start(args: string[], env: Record<string, string> = {}): Promise<{ code: number | null; stdout: string; stderr: string }> {
  port += 1;
  const child = spawn(process.execPath, ["src/local/start.ts", "--port", String(port), ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  return new Promise((resolve) => child.once("exit", (code) => resolve({ code, stdout, stderr })));
}

const state = (name: string) => ["--state", path.join(scratch, "states", name)];
const hopsOf = (stdout: string) =>
  stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { hop: string; ms: number; text?: string });

test.each(["node", "shell"])(
  "the %s sample is tested on this machine and the answer names the test that fails this time",
  async (sample) => {
    const first = await start(["--once", "--json", "--sample", sample, ...state(sample)]);
    expect(first.stderr).toContain("failing test is");
    expect(first.code, first.stderr).toBe(0);
    const hops = hopsOf(first.stdout);
    for (const hop of ["gate", "thread", "router", "worker", "machine", "reply"]) expect(hops.map((entry) => entry.hop)).toContain(hop);
    const failingTest = /failing test is "([^"]+)"/.exec(first.stderr)?.[1] ?? "(none)";
    expect(hops.at(-1)?.text).toContain(failingTest);
  },
);

test("a second start on the same state gives another failing test and finds the machine enrolled", async () => {
  const second = await start(["--once", "--json", "--sample", "node", ...state("node")]);
  expect(second.code, second.stderr).toBe(0);
  const failingTest = /failing test is "([^"]+)"/.exec(second.stderr)?.[1] ?? "(none)";
  expect(hopsOf(second.stdout).at(-1)?.text).toContain(failingTest);
});

test("a workspace that nobody here has seen works: a Makefile that calls a shell script", async () => {
  const folder = path.join(scratch, "unseen");
  mkdirSync(path.join(folder, "ci"), { recursive: true });
  writeFileSync(path.join(folder, "Makefile"), ".PHONY: test\ntest:\n\t./ci/verify.sh\n");
  writeFileSync(
    path.join(folder, "ci/verify.sh"),
    '#!/bin/sh\necho "ok 1 - the kettle boils"\necho "not ok 2 - the tea is warm-4711"\nexit 1\n',
  );
  chmodSync(path.join(folder, "ci/verify.sh"), 0o755);
  const run = await start(["--once", "--json", "--workspace", folder, ...state("unseen")]);
  expect(run.code, run.stderr).toBe(0);
  expect(hopsOf(run.stdout).at(-1)?.text).toContain("the tea is warm-4711");
});

test("a workspace that holds the state itself works, and the daemon's key stays outside it", async () => {
  const folder = path.join(scratch, "whole");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "run-tests.sh"), 'echo "not ok 1 - whole-815"\nexit 1\n');
  const home = path.join(scratch, "home");
  mkdirSync(home);
  const run = await start(["--once", "--json", "--workspace", folder, "--state", path.join(folder, ".wrangler/state")], { HOME: home });
  expect(run.code, run.stderr).toBe(0);
  expect(hopsOf(run.stdout).at(-1)?.text).toContain("whole-815");
  expect(readdirSync(path.join(home, ".switchyard"))).toHaveLength(1);
});

test("a folder without any tests is answered with what was read", async () => {
  const folder = path.join(scratch, "bare");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "notes.txt"), "nothing to run here\n");
  const run = await start(["--once", "--json", "--workspace", folder, ...state("bare")]);
  expect(run.code, run.stderr).toBe(0);
  expect(hopsOf(run.stdout).at(-1)?.text).toContain("notes.txt");
});

test("a port in use is one line that says what to do", async () => {
  const server = createServer().listen(port + 1, "127.0.0.1");
  const run = await start(["--once", ...state("port")]);
  server.close();
  expect(run.code).toBe(1);
  expect(run.stderr.trim().split("\n").at(-1)).toMatch(/Port \d+ is in use\. Stop what uses it, or start with --port N\./);
});

test("a missing folder, an unknown sample and an unknown option are one line each", async () => {
  const folder = await start(["--once", "--workspace", path.join(scratch, "nowhere"), ...state("bad")]);
  expect(folder.code).toBe(1);
  expect(folder.stderr).toContain("There is no folder");
  const sample = await start(["--once", "--sample", "cobol", ...state("bad")]);
  expect(sample.code).toBe(1);
  expect(sample.stderr).toContain('There is no sample "cobol"');
  const option = await start(["--twice", ...state("bad")]);
  expect(option.code).toBe(1);
  expect(option.stderr).toContain("--once");
});

/** A start that keeps serving; resolves when it does, with a way to wait for its end. */
async function serve(args: string[]): Promise<{ pid: number; said: () => string; ended: Promise<number | null> }> {
  port += 1;
  const child = spawn(process.execPath, ["src/local/start.ts", "--port", String(port), ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await eventually("a served system", () => output.includes("Serving"), 60_000);
  return { pid: child.pid ?? 0, said: () => output, ended };
}

const lockedBy = (name: string) =>
  JSON.parse(readFileSync(path.join(scratch, "states", name, "switchyard.lock"), "utf8")) as {
    children: { pid: number; started: string }[];
  };

test("Ctrl-C stops everything that was started, and says so", async () => {
  const served = await serve(state("stopped"));
  const { children } = lockedBy("stopped");
  expect(children).toHaveLength(2);
  process.kill(served.pid, "SIGINT");
  expect(await served.ended).toBe(0);
  expect(served.said()).toContain("Stopped.");
  expect(children.filter(isSameProcess)).toEqual([]);
  expect(existsSync(path.join(scratch, "states", "stopped", "switchyard.lock"))).toBe(false);
});

test("what a killed start left behind is ended by the next one, which works on the same port", async () => {
  const served = await serve(state("killed"));
  const { children } = lockedBy("killed");
  process.kill(served.pid, "SIGKILL");
  await served.ended;
  expect(children.filter(isSameProcess)).not.toEqual([]);
  port -= 1;
  const next = await start(["--once", ...state("killed")]);
  expect(next.code, next.stderr).toBe(0);
  expect(next.stdout).toContain("The last run was killed");
  expect(children.filter(isSameProcess)).toEqual([]);
});

test("without installed packages every script is one line that says what to do", () => {
  const bare = path.join(scratch, "bare-clone/src/local");
  mkdirSync(bare, { recursive: true });
  cpSync(path.join(root, "src/local/launch.mjs"), path.join(bare, "launch.mjs"));
  const run = spawnSync(process.execPath, [path.join(bare, "launch.mjs"), "src/local/start.ts"], { encoding: "utf8" });
  expect(run.status).toBe(1);
  expect(run.stderr.trim()).toBe('Its packages are not installed yet. Run "npm ci" first.');
});
