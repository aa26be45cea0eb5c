// Git runs what its own folder says, hooks and programs of the configuration, outside the sandbox, when the owner uses it. So a command
// can write objects, refs and the index, but not those; and what it made elsewhere in the folder is reported.
import { createHash } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isErrno } from "./home.ts";
import { shown } from "./workspace-path.ts";

/** How many folders are looked into, nearest first. */
const maxFolders = 3_000;
const maxDepth = 12;
const maxHashedBytes = 1024 * 1024;

/** What a command closed or took away must not end the look, nor the daemon: it counts as `otherwise`. */
function looked<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    if (isErrno(error, "ENOENT", "EACCES", "EPERM", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EIO")) return otherwise;
    throw error;
  }
}

const statOf = (path: string) => looked(() => lstatSync(path), null);
const isFolder = (path: string): boolean => statOf(path)?.isDirectory() === true;
const isThere = (path: string): boolean => statOf(path) !== null;
const namesIn = (folder: string): string[] => looked(() => readdirSync(folder).sort(), []);

/** The parts of a git folder by which it can run something. */
const settings = ["config", "config.worktree", "commondir", "gitdir"];

/** Folders of a repository that hold others: its submodules' repositories and its linked worktrees. */
function foldersBelow(gitDir: string): string[] {
  const found: string[] = [];
  const look = (folder: string, depth: number): void => {
    if (depth > 4 || found.length > 500 || !isFolder(folder)) return;
    found.push(folder);
    const isRepository = isThere(join(folder, "HEAD"));
    for (const name of isRepository ? ["modules"] : namesIn(folder)) look(join(folder, name), depth + 1);
  };
  for (const name of ["modules", "worktrees"]) look(join(gitDir, name), 0);
  return found;
}

/** Arguments of bwrap that keep the repository of a granted folder from being turned against its owner. */
export function guardGit(root: string): string[] {
  const gitDir = join(root, ".git");
  const stat = statOf(gitDir);
  if (stat?.isFile()) return ["--ro-bind", gitDir, gitDir];
  if (!stat?.isDirectory()) return [];
  const hooks = join(gitDir, "hooks");
  if (!isThere(hooks)) mkdirSync(hooks);
  // A folder that is a mount cannot be renamed or removed: nothing can stand in for it.
  const held = [gitDir, ...foldersBelow(gitDir)];
  const kept = held.flatMap((folder) => [...settings, "hooks"].map((name) => join(folder, name))).filter((path) => existsSync(path));
  return [
    ...held.flatMap((folder) => ["--bind", folder, folder]),
    ...kept.map((path) => realpathSync(path)).flatMap((path) => ["--ro-bind", path, path]),
  ];
}

function stampOf(path: string): string {
  const stat = statOf(path);
  if (stat === null) return "";
  if (stat.isSymbolicLink()) return `link ${looked(() => readlinkSync(path), "")}`;
  if (stat.isDirectory()) return "folder";
  if (!stat.isFile() || stat.size > maxHashedBytes) return `${stat.mode} ${stat.size} ${stat.mtimeMs}`;
  const text = looked(() => readFileSync(path), null);
  return `${stat.mode} ${text === null ? "closed" : createHash("sha256").update(text).digest("hex")}`;
}

function stampOfRepository(gitDir: string): string {
  if (!isFolder(gitDir)) return stampOf(gitDir);
  const parts = [gitDir, ...foldersBelow(gitDir)].flatMap((folder) => {
    const hooks = join(folder, "hooks");
    const own = [...settings.map((name) => join(folder, name)), hooks];
    const hookFiles = namesIn(hooks).filter((name) => !name.endsWith(".sample"));
    return [...own, ...hookFiles.map((name) => join(hooks, name))].map((path) => `${path} ${stampOf(path)}`);
  });
  return parts.join("\n");
}

/** What git could run, by repository: each `.git` in the folder, and each folder that git would take for a bare one. */
export type GitState = Map<string, string>;

export function gitState(root: string): GitState {
  const state: GitState = new Map();
  const folders = [{ path: root, depth: 0 }];
  for (let looked = 0; looked < maxFolders; looked++) {
    const folder = folders.shift();
    if (!folder) break;
    const names = namesIn(folder.path);
    if (["HEAD", "objects", "refs"].every((name) => names.includes(name))) state.set(folder.path, stampOfRepository(folder.path));
    for (const name of names) {
      const path = join(folder.path, name);
      if (name.toLowerCase() === ".git") state.set(path, stampOfRepository(path));
      else if (name !== "node_modules" && folder.depth < maxDepth && isFolder(path)) folders.push({ path, depth: folder.depth + 1 });
    }
  }
  return state;
}

/** A sentence on the repositories that a command made or whose settings it changed; null when there are none. */
export function gitChanges(root: string, before: GitState): string | null {
  // A redirection cannot be kept from being made, since an empty one breaks git; a new one is never git's own work here.
  const redirection = join(root, ".git", "commondir");
  const wasThere = before.get(join(root, ".git"))?.includes(`${redirection} \n`) === false;
  const changed = [...gitState(root)].filter(([path, stamp]) => before.get(path) !== stamp).map(([path]) => shown(root, path));
  if (changed.length === 0) return null;
  const removed = before.has(join(root, ".git")) && !wasThere && isFolder(join(root, ".git")) && isThere(redirection);
  if (removed) rmSync(redirection, { recursive: true });
  const places = `${changed.slice(0, 5).join(", ")}${changed.length > 5 ? ` and ${changed.length - 5} more` : ""}`;
  const note = removed ? " Its commondir, which led git to another configuration, was removed." : "";
  return `The command made or changed what git may run by itself in ${places}: look at the config and hooks there before you use git.${note}`;
}
