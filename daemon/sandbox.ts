// What a shell command may see: the machine read-only, its folder writable, no keys, a clean environment, processes of its own.
import { execFile } from "node:child_process";
import { existsSync, realpathSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { markerName } from "./processes.ts";

const run = promisify(execFile);

export type Sandbox = { mode: "bwrap" } | { mode: "unsandboxed"; why: string } | { mode: "none"; why: string };

/** Places below the user's home that hold keys, tokens or sessions. */
const secretPlaces = [
  ".ssh",
  ".aws",
  ".azure",
  ".gnupg",
  ".kube",
  ".docker",
  ".netrc",
  ".git-credentials",
  ".npmrc",
  ".yarnrc.yml",
  ".pypirc",
  ".vault-token",
  ".terraform.d",
  ".password-store",
  ".config/gh",
  ".config/git/credentials",
  ".config/gcloud",
  ".config/op",
  ".config/rclone",
  ".config/google-chrome",
  ".config/chromium",
  ".mozilla",
  ".cargo/credentials.toml",
  ".local/share/keyrings",
  ".wrangler",
  ".config/.wrangler",
];

const realOrNull = (path: string): string | null => (existsSync(path) ? realpathSync(path) : null);

/** Covers a folder with an empty one, a file with nothing. */
const mask = (path: string): string[] => (statSync(path).isDirectory() ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path]);

/** Arguments of bwrap for one command in a granted folder; `null` for the trial run, which has no folder. */
export function bwrapArgs(root: string | null, daemonHome: string): string[] {
  const resolver = realOrNull("/etc/resolv.conf");
  const masks = [...secretPlaces.map((place) => join(homedir(), place)), daemonHome].map(realOrNull).filter((path) => path !== null);
  const args = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"];
  args.push("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp");
  // Sockets of other programs live in /run (containers, keyrings, agents): a read-only mount would not stop a connect.
  if (existsSync("/run")) {
    args.push("--tmpfs", "/run", "--ro-bind-try", "/run/current-system", "/run/current-system");
    if (resolver?.startsWith("/run/")) args.push("--ro-bind", resolver, resolver);
  }
  args.push(...masks.filter((path) => !path.startsWith("/tmp/") && !path.startsWith("/run/")).flatMap(mask));
  if (root === null) return args;
  args.push("--bind", root, root);
  // Hooks run outside the sandbox when the owner commits: a command may not plant one.
  const hooks = realOrNull(join(root, ".git", "hooks"));
  if (hooks !== null) args.push("--ro-bind", hooks, hooks);
  return args;
}

/** Finds out what works by really doing it once. */
export async function detectSandbox(allowUnsandboxed: boolean, daemonHome: string): Promise<Sandbox> {
  let why: string;
  try {
    await run("bwrap", [...bwrapArgs(null, daemonHome), "--", "/bin/sh", "-c", "exit 0"], { timeout: 10_000 });
    return { mode: "bwrap" };
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
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
  // The home is read-only inside: caches go where they can be written.
  return { ...clean, TMPDIR: "/tmp", XDG_CACHE_HOME: "/tmp/.cache", npm_config_cache: "/tmp/.npm" };
}
