// Pushes a task's own branch with the owner's git: their keys and credential helpers, which no command in the sandbox can reach. So
// nothing that a command can write decides what runs here. The push is made from an empty repository of the daemon's, to which the
// task's objects are only lent; of the project's configuration one thing is read, as text: the address of `origin`.
import { execFile } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { CommandResult } from "../src/protocol/command.ts";
import { Fault } from "../src/protocol/fault.ts";
import { type Home, isErrno } from "./home.ts";
import { isInside } from "./workspace-path.ts";

const run = promisify(execFile);

/** Nothing that a repository configures may run, and nobody is asked for a password. */
const quiet = [
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "push.recurseSubmodules=no",
  "-c",
  "push.gpgSign=false",
];
const asksNobody = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "/bin/false",
  SSH_ASKPASS: "/bin/false",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
};
/** What reaches the owner's agents and keyrings. */
const ownersAccess = ["SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "GIT_SSH_COMMAND", "GIT_SSH"];

async function git(args: string[], cwd: string): Promise<string | null> {
  try {
    const { stdout } = await run("git", [...quiet, ...args], {
      cwd,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...asksNobody },
      timeout: 20_000,
    });
    return stdout.trim();
  } catch (error) {
    if (isErrno(error, "ENOENT")) throw new Fault("unavailable", "This machine has no git.");
    return null;
  }
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** The address that tasks push to. A repository in a granted folder could bring hooks of a command's making: it is none. */
function checkedAddress(url: string, granted: readonly string[]): string {
  const local = url.startsWith("file://") ? fileURLToPath(url) : url.startsWith("/") ? url : null;
  if (local === null) {
    if (/^(?:https?|ssh):\/\/[^-]/.test(url) || /^(?:[\w.-]+@)?\w[\w.-]*:(?!:)/.test(url)) return url;
    throw new Fault("forbidden", "The address of origin is none that tasks may push to: https, ssh, or an absolute path.");
  }
  const real = existsSync(local) ? realpathSync(local) : local;
  if (granted.some((folder) => isInside(folder, real)))
    throw new Fault("forbidden", "origin lies in a granted folder, where a command could change its hooks: nothing is pushed there.");
  return url;
}

/** `owner/name` of an address. */
function placeOf(url: string): string {
  const [, owner = "", name = ""] = /[/:]([^/:]+)\/([^/]+?)(?:\.git)?\/?$/.exec(url) ?? [];
  return owner === "" ? "" : `${owner}/${name}`.slice(0, 300);
}

/** The commit that a folder's repository stands on, or a named one of it; and where its tasks push to. */
async function commitIn(
  home: Home,
  { folder, root, granted, sha: named, held = false }: Where & { sha?: string; held?: boolean },
): Promise<{ sha: string; common: string; url: string }> {
  const common = await git(["rev-parse", "--path-format=absolute", "--git-common-dir"], folder);
  if (common === null || !isInside(root, realpathSync(common)))
    throw new Fault("bad_input", "There is no git repository in this folder, or it lies outside the granted folder.");
  // Of any other repository a command can change the address (see git-guard.ts), and whoever releases a draft reads only its place.
  if (held && realpathSync(common) !== join(realpathSync(root), ".git"))
    throw new Fault("forbidden", "A draft is kept only of the granted folder's own repository: grant the folder of this one itself.");
  const sha = await git(["rev-parse", "--verify", `${named ?? "HEAD"}^{commit}`], folder);
  if (sha === null || !/^[0-9a-f]{40,64}$/.test(sha))
    throw new Fault(
      "bad_input",
      named === undefined ? "There is no commit to push yet: commit first." : `The commit ${named} is not in this repository any more.`,
    );
  const remote = async (name: string): Promise<string | null> =>
    git(["config", "--file", join(common, "config"), "--no-includes", "--get", `remote.origin.${name}`], home.dir);
  const url = (await remote("pushurl")) ?? (await remote("url"));
  if (url === null || url === "") throw new Fault("bad_input", "The repository has no remote called origin.");
  return { sha, common, url: checkedAddress(url, granted) };
}

/** `granted`: every granted folder of this machine. */
type Where = { folder: string; root: string; granted: readonly string[] };

/** An empty repository of the daemon's, to which the objects of another are lent: nothing that the other configures counts. */
async function lent(home: Home, common: string): Promise<{ call: string; env: Record<string, string> }> {
  const lender = join(home.dir, "push.git");
  if (!existsSync(lender)) await run("git", ["init", "-q", "--bare", "--template=", lender]);
  const objects = join(common, "objects");
  const shallow = join(common, "shallow");
  return {
    call: ["git", "--git-dir", lender, ...quiet].map(quoted).join(" "),
    env: {
      ...asksNobody,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: /[":\\]/.test(objects) ? JSON.stringify(objects) : objects,
      ...(existsSync(shallow) ? { GIT_SHALLOW_FILE: shallow } : {}),
    },
  };
}

type Script = { script: string; env: Record<string, string> };

/** The same, with what reaches the owner's agents and keyrings: for a script that asks the remote. */
async function reaching(home: Home, common: string): Promise<Awaited<ReturnType<typeof lent>>> {
  const { call, env } = await lent(home, common);
  const access = ownersAccess.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
  return { call, env: { ...env, GIT_ALLOW_PROTOCOL: "https:http:ssh:file", ...Object.fromEntries(access) } };
}

/**
 * What a push from here would push, and a script that prints its changes since the remote's own branch. The remote is asked: what the
 * project's repository remembers of it a command can write, and could hide by it what it changes.
 */
export async function planKeep(home: Home, where: Where, branch: string): Promise<Script & { kept: NonNullable<CommandResult["kept"]> }> {
  const { sha, common, url } = await commitIn(home, { ...where, held: true });
  const ref = async (name: string): Promise<string | null> => git(["rev-parse", "--verify", "--symbolic-full-name", name], where.folder);
  const head =
    (await ref("refs/remotes/origin/HEAD")) ?? (await ref("refs/remotes/origin/main")) ?? (await ref("refs/remotes/origin/master"));
  const base = /^refs\/remotes\/origin\/(\S{1,300})$/.exec(head ?? "")?.[1];
  if (base === undefined)
    throw new Fault(
      "bad_input",
      "This machine does not know what the remote has, so it cannot say what a push would change: git fetch origin first.",
    );
  const { call, env } = await reaching(home, common);
  const known = quoted(`refs/kept/${branch}`);
  const changes = "diff-tree -r --patch-with-stat --no-color --no-ext-diff --no-textconv";
  const script = [
    `${call} fetch -q --no-tags --no-write-fetch-head --no-auto-gc ${quoted(url)} ${quoted(`+refs/heads/${base}:refs/kept/${branch}`)} || exit`,
    `from=$(${call} merge-base ${sha} ${known}) || { echo ${quoted(`It has nothing in common with ${base} of the remote.`)}; exit 1; }`,
    `${call} update-ref -d ${known}`,
    `echo ${quoted(`Commit ${sha} is kept here; nothing was pushed. Its changes since ${base} at`)} "$(printf %.10s "$from"):"`,
    `${call} ${changes} "$from" ${sha}`,
  ].join("\n");
  return { script, env, kept: { sha, branch, place: placeOf(url), base } };
}

/** What is pushed, and the script that does it: from where the folder stands now, or (`only`) that commit to that place. */
export async function planPush(
  home: Home,
  where: Where,
  branch: string,
  only?: { sha: string; place: string },
): Promise<Script & { pushed: NonNullable<CommandResult["pushed"]> }> {
  const { sha, common, url } = await commitIn(home, { ...where, ...(only === undefined ? {} : { sha: only.sha, held: true }) });
  const place = placeOf(url);
  if (only !== undefined && only.place !== place)
    throw new Fault(
      "forbidden",
      `origin is ${place || "no repository with an owner and a name"} by now, not ${only.place}: nothing is pushed.`,
    );
  const { call, env } = await reaching(home, common);
  const to = quoted(url);
  return {
    // No force: what somebody else put on the branch stays.
    script: `${call} push ${to} ${sha}:refs/heads/${branch} || exit; ${call} ls-remote --symref ${to} HEAD 2>/dev/null | grep ^ref: || exit 0`,
    env,
    pushed: { sha, branch, place },
  };
}

/** The remote's default branch, from what it was asked last. */
export const baseIn = (output: string): { base?: string } => {
  const base = /^ref: refs\/heads\/(\S{1,300})\s+HEAD$/m.exec(output.slice(output.lastIndexOf("\nref: ") + 1))?.[1];
  return base === undefined ? {} : { base };
};
