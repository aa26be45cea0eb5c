// What a shell command may see: the machine read-only, its folder writable, nothing of the home but tools, a clean environment, processes of its own.
import { execFile } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { promisify } from "node:util";
import { guardGit } from "./git-guard.ts";
import { isErrno, realIfThere } from "./home.ts";
import { coverHomes, keepGitIdentity, mask } from "./home-cover.ts";
import { markerName } from "./processes.ts";

const run = promisify(execFile);

export type Sandbox = { mode: "bwrap" } | { mode: "unsandboxed"; why: string } | { mode: "none"; why: string };

/** Arguments of bwrap for one command in a granted folder; `null` for the trial run, which has no folder. */
export function bwrapArgs(root: string | null, daemonHome: string): string[] {
  const resolver = realIfThere("/etc/resolv.conf");
  const args = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"];
  args.push("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp");
  // Sockets of other programs live in /run (containers, keyrings, agents): a read-only mount would not stop a connect.
  if (existsSync("/run")) {
    args.push("--tmpfs", "/run", "--ro-bind-try", "/run/current-system", "/run/current-system");
    if (resolver?.startsWith("/run/")) args.push("--ro-bind", resolver, resolver);
  }
  args.push(...coverHomes(ownPath(process.env.PATH ?? ""), daemonHome), ...mask(realpathSync(daemonHome)));
  return root === null ? args : [...args, "--bind", root, root, ...guardGit(root)];
}

/** Finds out what works by really doing it once. */
export async function detectSandbox(allowUnsandboxed: boolean, daemonHome: string): Promise<Sandbox> {
  let why: string;
  await keepGitIdentity(daemonHome);
  try {
    await run("bwrap", [...bwrapArgs(null, daemonHome), "--", "/bin/sh", "-c", "exit 0"], { timeout: 10_000 });
    return { mode: "bwrap" };
  } catch (error) {
    const missing = isErrno(error, "ENOENT");
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim().split("\n")[0] : String(error);
    why = missing
      ? "bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)"
      : `bubblewrap does not work here (${said}); some distributions forbid user namespaces, see doctor`;
  }
  return { mode: allowUnsandboxed ? "unsandboxed" : "none", why };
}

const shellPath = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
export const shellArgv = (script: string): string[] => [shellPath, "-c", script];

/** Folders that `npm run` puts in front belong to this program, not to the user's own PATH. */
export const ownPath = (path: string): string =>
  path
    .split(":")
    .filter((each) => !/\/node_modules\/\.bin\/?$|\/node-gyp-bin\/?$/.test(each))
    .join(":");

/** The whole environment of a command: nothing else is passed on. */
export function cleanEnv(env: NodeJS.ProcessEnv, commandId: string, mode: "bwrap" | "unsandboxed"): Record<string, string> {
  const clean: Record<string, string> = {
    PATH: ownPath(env.PATH ?? "/usr/local/bin:/usr/bin:/bin"),
    HOME: homedir(),
    TERM: "dumb",
    [markerName]: commandId,
  };
  for (const name of ["LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME"]) {
    const value = env[name];
    if (value !== undefined) clean[name] = value;
  }
  if (mode === "unsandboxed") return { ...clean, TMPDIR: tmpdir() };
  // Caches go where they can be written.
  return { ...clean, TMPDIR: "/tmp", XDG_CACHE_HOME: "/tmp/.cache", npm_config_cache: "/tmp/.npm" };
}
