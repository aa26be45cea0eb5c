// What a sandboxed command leaves in the repository's own folder must not run later, outside the sandbox, when the owner uses git.
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Scene, scene } from "../support/daemon-lab.ts";
import { modes } from "../support/daemon-process.ts";

const hook = (folder: string): string =>
  `printf '#!/bin/sh\\ntouch %s\\n' "$PWD/../ran" > ${folder}/pre-commit; chmod +x ${folder}/pre-commit`;
const evil = `printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = touch %s; false\\n' "$PWD/../ran"`;

const planted: [string, string][] = [
  ["a hook", hook(".git/hooks")],
  [
    "a hook in a folder that stands in for the protected one",
    `mv .git .git-old && mkdir .git && cp -r .git-old/. .git/; mkdir -p .git/hooks; ${hook(".git/hooks")}`,
  ],
  ["a monitor in the configuration", 'git config core.fsmonitor "touch $PWD/../ran; false"'],
  ["a configuration in place of the other", `${evil} > c; mv -f c .git/config; rm -f .git/config; cp c .git/config`],
  ["a folder of hooks in the configuration", `mkdir h; ${hook("h")}; git config core.hooksPath "$PWD/h"`],
  ["an include in the configuration", `${evil} > inc; git config include.path "$PWD/inc"`],
  ["a configuration elsewhere", `cp -r .git other; rm -f other/config; ${evil} > other/config; echo ../other > .git/commondir`],
  [
    "a submodule's configuration",
    `${evil} > c; cp c .git/modules/sub/config; mv .git/modules m; mv .git/modules/sub m; cp -r m .git/modules`,
  ],
];

const git = (folder: string, ...args: string[]) =>
  spawnSync("git", ["-C", folder, "-c", "user.email=o@x.y", "-c", "user.name=o", ...args], { encoding: "utf8" });

/** A granted folder that is a repository with one commit and a submodule. */
async function repository(): Promise<Scene> {
  const made = await scene();
  const { work, dir } = made.lab;
  execFileSync("git", ["init", "-q", "-b", "main", work]);
  const other = join(dir, "other");
  execFileSync("git", ["init", "-q", "-b", "main", other]);
  git(other, "commit", "--allow-empty", "-qm", "x");
  git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "sub");
  git(work, "commit", "-qm", "start");
  expect(existsSync(join(work, ".git", "modules", "sub", "config"))).toBe(true);
  return made;
}

describe.skipIf(!modes.includes("bwrap"))("git in a granted folder", () => {
  test.each(planted)("%s of a command does not run when the owner uses git", async (_name, script) => {
    const { cloud, lab, start } = await repository();
    await start("bwrap").line("connected");
    await cloud.resultOf(cloud.shell(script));
    git(lab.work, "status");
    git(lab.work, "commit", "--allow-empty", "-qm", "x");
    git(join(lab.work, "sub"), "status");
    expect(existsSync(join(lab.dir, "ran"))).toBe(false);
    expect(git(lab.work, "log", "--oneline").stdout.trim().split("\n")).toHaveLength(2);
  });

  test("a task branches, commits with the owner's name, merges and pushes, and nothing is reported", async () => {
    const { cloud, lab, start } = await repository();
    const remote = join(lab.work, "remote");
    execFileSync("git", ["init", "-q", "--bare", remote]);
    git(lab.work, "remote", "add", "origin", remote);
    const home = join(lab.dir, "owner");
    mkdirSync(home);
    writeFileSync(join(home, ".gitconfig"), '[user]\n\tname = "The Owner"\n\temail = o@example.com\n[http]\n\textraheader = CANARY\n');
    const daemon = start("bwrap", { HOME: home });
    await daemon.line("connected");
    const id = cloud.shell(
      "set -e; git checkout -q -b topic; echo a > a; git add a; git commit -qm one; git checkout -q main; git merge -q --no-ff -m two topic; git push -q origin main topic; git gc -q; git stash list; git log -1 --format='%an <%ae>'; git config --list",
    );
    const result = await cloud.resultOf(id);
    const output = cloud.orderOf(id).output.toString();
    expect([result.exitCode, result.reason, output]).toEqual([0, undefined, expect.stringContaining("The Owner <o@example.com>")]);
    expect(output).not.toContain("CANARY");
    expect(git(remote, "log", "--oneline", "main").stdout.trim().split("\n")).toHaveLength(3);
    expect(daemon.lines.filter((line) => line.event === "warning")).toEqual([]);
  });

  test.each([
    ["a new repository", "git init -q made", "made/.git"],
    ["a folder that git takes for a repository", "mkdir bare && git init -q --bare bare/x", "bare/x"],
    ["a repository written in other letters", "mkdir -p a/.Git && echo x > a/.Git/config", "a/.Git"],
    ["the configuration of a nested repository", "git -C nested config core.fsmonitor ./x", "nested/.git"],
    ["a hook of a nested repository", "mkdir -p nested/.git/hooks; echo x > nested/.git/hooks/pre-push", "nested/.git"],
  ])("%s is reported to the machine's owner and with the result", async (_name, script, place) => {
    const { cloud, lab, start } = await scene();
    execFileSync("git", ["init", "-q", join(lab.work, "nested")]);
    appendFileSync(join(lab.work, "file"), "x");
    const daemon = start("bwrap");
    await daemon.line("connected");
    const result = await cloud.resultOf(cloud.shell(script));
    expect(result).toMatchObject({ outcome: "exited", exitCode: 0, reason: expect.stringContaining(` in ${place}: look at`) });
    expect((await daemon.line("warning")).text).toContain(place);
    const quiet = await cloud.resultOf(cloud.shell("git -C nested add -A && echo more >> file"));
    expect([quiet.exitCode, quiet.reason]).toEqual([0, undefined]);
  });
});
