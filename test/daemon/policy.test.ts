import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { type Home, openHome } from "../../daemon/home.ts";
import { cloudAddress } from "../../daemon/identity.ts";
import { takeLock, takeLockByFile } from "../../daemon/lock.ts";
import { grantFolder, judge, readPolicy, withdrawFolder } from "../../daemon/policy.ts";
import { cleanEnv, ownPath } from "../../daemon/sandbox.ts";
import { daemonVersion } from "../../daemon/version.ts";
import { isInside } from "../../daemon/workspace-path.ts";
import type { Command } from "../../src/protocol/command.ts";
import { limits } from "../../src/protocol/limits.ts";
import { scratch } from "./scratch.ts";

let dir: string;
let home: Home;

beforeEach(() => {
  dir = scratch();
  home = openHome(join(dir, "home"));
});

test("a grant keeps the real path under a name, and a name never changes its folder", () => {
  mkdirSync(join(dir, "work"));
  mkdirSync(join(dir, "other"));
  symlinkSync(join(dir, "work"), join(dir, "alias"));
  expect(grantFolder(home, join(dir, "alias"), "work", false)).toEqual({ grant: { name: "work", path: join(dir, "work") }, isNew: true });
  expect(grantFolder(home, join(dir, "work"), null, false).isNew).toBe(false);
  expect(() => grantFolder(home, join(dir, "other"), "work", false)).toThrow(/give another with --name/);
  expect(readPolicy(home).workspaces).toEqual([{ name: "work", path: join(dir, "work") }]);
});

test("[E16] no more folders are granted than a machine may name, and granting one again is no more", () => {
  const work = (n: number): string => join(dir, `work${n}`);
  for (let n = 0; n <= limits.maxWorkspaces; n++) mkdirSync(work(n));
  for (let n = 0; n < limits.maxWorkspaces; n++) grantFolder(home, work(n), null, false);
  expect(() => grantFolder(home, work(limits.maxWorkspaces), null, false)).toThrow(/withdraw one first/);
  expect(grantFolder(home, work(0), null, false).isNew).toBe(false);
});

test("a grant may replace all others, and can be withdrawn", () => {
  mkdirSync(join(dir, "work"));
  mkdirSync(join(dir, "other"));
  grantFolder(home, join(dir, "work"), "work", false);
  expect(grantFolder(home, join(dir, "other"), "work", true).isNew).toBe(true);
  expect(readPolicy(home).workspaces).toEqual([{ name: "work", path: join(dir, "other") }]);
  withdrawFolder(home, "work");
  expect(readPolicy(home).workspaces).toEqual([]);
  expect(() => withdrawFolder(home, "work")).toThrow(/No granted folder is called "work"/);
});

test("pushing is allowed for a folder on its own, stays when the folder is granted once more, and goes with it", () => {
  mkdirSync(join(dir, "work"));
  const folder = { name: "work", path: join(dir, "work") };
  grantFolder(home, folder.path, null, false);
  expect(grantFolder(home, folder.path, null, false, true)).toEqual({ grant: { ...folder, push: true }, isNew: true });
  expect(grantFolder(home, folder.path, null, true)).toEqual({ grant: { ...folder, push: true }, isNew: false });
  expect(readPolicy(home).workspaces).toEqual([{ ...folder, push: true }]);
  withdrawFolder(home, "work");
  grantFolder(home, folder.path, null, false);
  expect(readPolicy(home).workspaces).toEqual([folder]);
});

test("a folder with keys in or above it, a file, and a bad name are not granted", () => {
  writeFileSync(join(dir, "file"), "");
  mkdirSync(join(home.dir, "inner"));
  for (const path of ["/", homedir(), dirname(homedir()), dir, home.dir, join(home.dir, "inner")])
    expect(() => grantFolder(home, path, "x", false), path).toThrow(/grant a project folder/);
  expect(() => grantFolder(home, join(dir, "file"), null, false)).toThrow(/not a folder/);
  expect(() => grantFolder(home, join(dir, "none"), null, false)).toThrow(/There is no folder/);
  mkdirSync(join(dir, "work"));
  expect(() => grantFolder(home, join(dir, "work"), "../x", false)).toThrow(/name is 1 to 100/);
});

test("inside means the folder or below it, not a longer name", () => {
  expect(isInside("/a/b", "/a/b")).toBe(true);
  expect(isInside("/a/b", "/a/b/..c")).toBe(true);
  expect(isInside("/a/b", "/a/bc")).toBe(false);
  expect(isInside("/a/b", "/a")).toBe(false);
  expect(isInside("/", "/a")).toBe(true);
});

const command: Command = {
  commandId: "cmd_a",
  taskId: "tsk_a",
  epoch: 1,
  spec: { kind: "shell", workspace: "work", script: "true" },
  authority: "member",
  tainted: false,
  timeoutMs: 1000,
  notAfterMs: 100,
  atMs: 0,
};
const policy = { v: 1 as const, workspaces: [{ name: "work", path: "/srv/work" }] };

test("[A5] the daemon judges for itself: authority, taint, age, folder, sandbox", () => {
  expect(judge(command, policy, "bwrap", 100)).toEqual({ ok: true, root: "/srv/work" });
  expect(judge(command, policy, "unsandboxed", 100)).toMatchObject({ ok: true });
  expect(judge(command, policy, "none", 100)).toMatchObject({ ok: false, outcome: "refused", reason: expect.stringContaining("bwrap") });
  expect(judge({ ...command, spec: { kind: "list_files", workspace: "work" } }, policy, "none", 100)).toMatchObject({ ok: true });
  expect(judge(command, policy, "bwrap", 101)).toMatchObject({ ok: false, outcome: "expired" });
  for (const authority of ["guest", "public"] as const)
    expect(judge({ ...command, authority }, policy, "bwrap", 0)).toMatchObject({ ok: false, outcome: "refused" });
  expect(judge({ ...command, tainted: true }, policy, "bwrap", 0)).toMatchObject({ ok: false, outcome: "refused" });
  const elsewhere: Command = { ...command, spec: { kind: "shell", workspace: "home", script: "true" } };
  expect(judge(elsewhere, policy, "bwrap", 0)).toMatchObject({ ok: false, reason: expect.stringContaining('"home" is not granted') });
});

test("a policy that cannot be read grants nothing and says which file", () => {
  writeFileSync(home.policy, "{");
  expect(() => readPolicy(home)).toThrow(home.policy);
});

test("a command's environment is a short list, without this program's own folders in PATH", () => {
  const env = cleanEnv({ PATH: "/repo/node_modules/.bin:/usr/bin", SECRET: "x", LANG: "C.UTF-8", HOME: "/evil" }, "cmd_a", "bwrap");
  expect(env).toEqual({
    PATH: "/usr/bin",
    HOME: homedir(),
    TERM: "dumb",
    LANG: "C.UTF-8",
    SWITCHYARD_COMMAND: "cmd_a",
    TMPDIR: "/tmp",
    XDG_CACHE_HOME: "/tmp/.cache",
    npm_config_cache: "/tmp/.npm",
  });
  expect(ownPath("/a/node_modules/.bin:/x/node-gyp-bin:/usr/local/bin")).toBe("/usr/local/bin");
});

test("http is for this machine only", () => {
  expect(cloudAddress("https://switchyard.example.com")).toBe("https://switchyard.example.com");
  expect(() => cloudAddress("https://switchyard.example.com/demo")).toThrow(/Give only the address.*https:\/\/switchyard.example.com$/);
  expect(cloudAddress("http://127.0.0.1:8787/")).toBe("http://127.0.0.1:8787");
  expect(() => cloudAddress("http://switchyard.example.com")).toThrow(/Use https/);
  expect(() => cloudAddress("ftp://x")).toThrow(/not an address/);
  expect(() => cloudAddress("switchyard")).toThrow(/not an address/);
});

test("one home has one holder, by flock or by file; a file of a process that is gone does not hold", () => {
  const first = takeLock(home);
  expect(first).toHaveProperty("release");
  expect(takeLock(home)).toEqual({ heldBy: `process ${process.pid}` });
  if ("release" in first) first.release();
  const again = takeLock(home);
  expect(again).toHaveProperty("release");
  if ("release" in again) again.release();

  const path = join(dir, "lock.pid");
  const held = takeLockByFile(path);
  expect(takeLockByFile(path)).toEqual({ heldBy: `process ${process.pid}` });
  if ("release" in held) held.release();
  writeFileSync(path, `${process.pid} some-other-start`);
  expect(takeLockByFile(path)).toHaveProperty("release");
});

test("a home that others can read is refused", () => {
  mkdirSync(join(dir, "open"), { mode: 0o755 });
  expect(() => openHome(join(dir, "open"))).toThrow(/chmod 700/);
});

test("the daemon names the package's version", () => {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  expect(JSON.parse(text).version).toBe(daemonVersion);
});
