// Real git in a folder of a test: a working copy, and a bare repository as its remote.
import { execFileSync, spawnSync } from "node:child_process";
import path from "node:path";

/** What a git command prints; an empty text where it fails. */
export const git = (folder: string, ...args: string[]): string =>
  spawnSync("git", ["-C", folder, "-c", "user.email=o@x.y", "-c", "user.name=o", ...args], { encoding: "utf8" }).stdout.trim();

/** `acme/app` with one commit on `main`, and a working copy of it. */
export function gitLab(folder: string): { remote: string; work: string } {
  const remote = path.join(folder, "acme", "app.git");
  const work = path.join(folder, "work");
  execFileSync("git", ["init", "-q", "--bare", "-b", "main", remote]);
  execFileSync("git", ["init", "-q", "-b", "main", work]);
  git(work, "remote", "add", "origin", remote);
  git(work, "commit", "--allow-empty", "-qm", "start");
  git(work, "push", "-q", "origin", "main");
  return { remote, work };
}
