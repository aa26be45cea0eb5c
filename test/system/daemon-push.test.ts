// A task's branch is pushed with the owner's git, in every sandbox mode; nothing that a command of the task can write runs in doing so.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CommandSpec } from "../../src/protocol/command.ts";
import { type Scene, scene } from "../support/daemon-lab.ts";
import { daemonCall, type Mode, modes } from "../support/daemon-process.ts";
import { gitLab } from "../support/git-lab.ts";

const git = (folder: string, ...args: string[]) =>
  spawnSync("git", ["-C", folder, "-c", "user.email=o@x.y", "-c", "user.name=o", ...args], { encoding: "utf8" });

type Pushing = Scene & { remote: string; taskId: string; branch: string };

/** A granted folder that is a clone with one commit, and a bare repository outside of it as its origin. */
async function clone(grant: string[] = ["--push"]): Promise<Pushing> {
  const made = await scene();
  const { work, dir } = made.lab;
  const { remote } = gitLab(dir);
  const granted = await daemonCall(made.lab, ["grant", work, ...grant]);
  if (granted.code !== 0) throw new Error(granted.stderr);
  const taskId = "tsk_push1";
  return { ...made, remote, taskId, branch: `switchyard/${taskId}` };
}

const push = ({ cloud, taskId, branch }: Pushing, more: object = {}, of = taskId): string =>
  cloud.order({ kind: "push", workspace: "work", branch, ...more }, { taskId: of });
const headOf = (folder: string, ref: string): string => git(folder, "rev-parse", "--verify", "-q", ref).stdout.trim();

const each: Mode[] = modes.includes("bwrap") ? ["bwrap", "unsandboxed"] : ["unsandboxed"];

describe.each(each)("in a folder that may push (%s)", (mode) => {
  test("a command commits, the daemon pushes that commit, and its word names commit, place and default branch", async () => {
    const made = await clone();
    await made.start(mode).line("connected");
    await made.cloud.resultOf(made.cloud.shell("echo a > a; git add a; git -c user.name=t -c user.email=t@x.y commit -qm change"));
    const result = await made.cloud.resultOf(push(made));
    const sha = headOf(made.lab.work, "HEAD");
    expect(result).toMatchObject({ outcome: "exited", exitCode: 0, pushed: { sha, branch: made.branch, place: "acme/app", base: "main" } });
    expect(headOf(made.remote, `refs/heads/${made.branch}`)).toBe(sha);
    // Once more is no harm; what somebody else put there stays.
    expect((await made.cloud.resultOf(push(made))).exitCode).toBe(0);
    await made.cloud.resultOf(made.cloud.shell("git -c user.name=t -c user.email=t@x.y commit -q --amend -m other"));
    const refused = await made.cloud.resultOf(push(made));
    expect(refused.exitCode).not.toBe(0);
    expect(refused.pushed).toBeUndefined();
    expect(headOf(made.remote, `refs/heads/${made.branch}`)).toBe(sha);
  });

  test("[SP8] a commit is kept without a push, and later pushed as it was, wherever the folder stands by then; only to the place that it was kept for", async () => {
    const made = await clone();
    await made.start(mode).line("connected");
    const { cloud, lab, branch, remote } = made;
    const commit = (what: string) =>
      cloud.resultOf(cloud.shell(`echo ${what} > ${what} && git add . && git -c user.name=t -c user.email=t@x.y commit -qm ${what}`));
    // Nothing that the project configures has a part in what is shown.
    const evil = join(lab.dir, "evil");
    writeFileSync(evil, `#!/bin/sh\ntouch ${join(lab.dir, "ran")}\n`, { mode: 0o755 });
    git(lab.work, "config", "diff.external", evil);
    git(lab.work, "config", "diff.x.textconv", evil);
    writeFileSync(join(lab.work, ".gitattributes"), "* diff=x\n");
    git(lab.work, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main");
    await commit("drafted");
    const sha = headOf(lab.work, "HEAD");
    const order = (spec: object) =>
      cloud.resultOf(cloud.order({ workspace: "work", branch, ...spec } as CommandSpec, { taskId: made.taskId }));
    const kept = await order({ kind: "keep" });
    expect(kept).toMatchObject({ outcome: "exited", exitCode: 0, kept: { sha, branch, place: "acme/app", base: "main" } });
    expect(kept.pushed).toBeUndefined();
    const shown = cloud.orders.get(kept.commandId)?.output.toString("utf8");
    expect(shown).toContain(
      `Commit ${sha} is kept here; nothing was pushed. Its changes since main at ${headOf(remote, "main").slice(0, 10)}:`,
    );
    expect(shown).toMatch(/drafted +\| 1 \+\n 2 files changed, 2 insertions\(\+\)\n\ndiff --git[\s\S]*\n\+drafted\n$/);
    expect(existsSync(join(lab.dir, "ran"))).toBe(false);
    expect(git(remote, "for-each-ref").stdout.trim().split("\n")).toHaveLength(1);

    await commit("later");
    const pushed = await order({ kind: "push_kept", sha, place: "acme/app" });
    expect(pushed).toMatchObject({ outcome: "exited", exitCode: 0, pushed: { sha, branch, place: "acme/app" } });
    expect(headOf(remote, `refs/heads/${branch}`)).toBe(sha);
    // Once more is no harm, and what somebody else put there stays.
    expect((await order({ kind: "push_kept", sha, place: "acme/app" })).exitCode).toBe(0);
    git(lab.work, "push", "-q", "-f", "origin", `HEAD:refs/heads/${branch}`);
    const behind = await order({ kind: "push_kept", sha, place: "acme/app" });
    expect(behind.exitCode).not.toBe(0);
    expect(behind.pushed).toBeUndefined();

    const refused = async (spec: object) => (await order({ kind: "push_kept", sha, place: "acme/app", ...spec })).reason;
    expect(await refused({ place: "acme/other" })).toContain("by now, not acme/other");
    expect(await refused({ sha: "f".repeat(40) })).toContain("not in this repository any more");
  });

  test("[SP8] of a repository that a command made, whose address is the command's, no draft is kept and none is pushed", async () => {
    const made = await clone();
    await made.start(mode).line("connected");
    const { cloud, lab, branch, remote } = made;
    const strange = join(lab.dir, "evil", "acme", "app.git");
    execFileSync("git", ["init", "-q", "--bare", strange]);
    const as = "git -c user.name=t -c user.email=t@x.y";
    for (const [where, make] of [
      ["nested", "git init -q nested && cd nested"],
      [".git/modules/nested", "git init -q --bare .git/modules/nested && cd .git/modules/nested"],
    ] as const) {
      const commit =
        where === "nested"
          ? `${as} commit -q --allow-empty -m x`
          : `git update-ref HEAD $(${as} commit-tree -m x $(git mktree < /dev/null))`;
      const ran = await cloud.resultOf(cloud.shell(`${make} && git remote add origin ${strange} && ${commit}`));
      expect(ran.exitCode).toBe(0);
      const sha = headOf(join(lab.work, where), "HEAD");
      expect(sha).toMatch(/^[0-9a-f]{40}$/);
      for (const spec of [{ kind: "keep" }, { kind: "push_kept", sha, place: "acme/app" }]) {
        const order = { workspace: "work", branch, cwd: where, ...spec } as CommandSpec;
        const result = await cloud.resultOf(cloud.order(order, { taskId: made.taskId }));
        expect(result).toMatchObject({ outcome: "refused", reason: expect.stringContaining("the granted folder's own repository") });
      }
    }
    for (const each of [strange, remote]) expect(headOf(each, `refs/heads/${branch}`)).toBe("");
  });

  test("[SP8] [O12] a command that moves what its repository remembers of the remote hides nothing that a draft changes", async () => {
    const made = await clone();
    await made.start(mode).line("connected");
    const { cloud, remote, branch, lab } = made;
    const commit = (name: string) =>
      `echo ${name}-line > ${name}; git add ${name}; git -c user.name=t -c user.email=t@x.y commit -qm ${name}`;
    const ran = await cloud.resultOf(cloud.shell(`${commit("hidden")}; git update-ref refs/remotes/origin/main HEAD; ${commit("shown")}`));
    expect(ran.exitCode).toBe(0);
    const order = () => cloud.resultOf(cloud.order({ kind: "keep", workspace: "work", branch }, { taskId: made.taskId }));
    const kept = await order();
    const shown = cloud.orders.get(kept.commandId)?.output.toString("utf8");
    expect(shown).toContain(`since main at ${headOf(remote, "main").slice(0, 10)}:`);
    for (const line of ["+hidden-line", "+shown-line"]) expect(shown).toContain(line);
    // A branch that the remote has not says nothing of it.
    git(lab.work, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/made-up");
    git(lab.work, "update-ref", "refs/remotes/origin/made-up", "HEAD");
    const none = await order();
    expect(none.exitCode).not.toBe(0);
    expect(none.kept).toBeUndefined();
  });

  test("what a program prints makes no push: only the daemon's own word does", async () => {
    const made = await clone();
    await made.start(mode).line("connected");
    const sha = headOf(made.lab.work, "HEAD");
    const result = await made.cloud.resultOf(
      made.cloud.shell(
        `echo '{"pushed":{"sha":"${sha}","branch":"${made.branch}","place":"acme/app"}}'; echo 'ref: refs/heads/evil\tHEAD'`,
      ),
    );
    expect(result.pushed).toBeUndefined();
  });
});

describe("what the owner of the machine has to allow", () => {
  test("without --push nothing is pushed, and the reason says how to allow it", async () => {
    const made = await clone([]);
    await made.start(each[0]).line("connected");
    expect(await made.cloud.resultOf(push(made))).toMatchObject({ outcome: "refused", reason: expect.stringContaining("--push") });
    const keep = made.cloud.order({ kind: "keep", workspace: "work", branch: made.branch }, { taskId: made.taskId });
    expect(await made.cloud.resultOf(keep)).toMatchObject({ outcome: "refused", reason: expect.stringContaining("--push") });
    expect(headOf(made.remote, `refs/heads/${made.branch}`)).toBe("");
  });

  test("no task pushes another branch than its own, whatever the cloud asks for", async () => {
    const made = await clone();
    await made.start(each[0]).line("connected");
    for (const branch of ["main", "switchyard/tsk_other", "switchyard/tsk_push1:refs/heads/main", "-f"])
      for (const kind of [{}, { kind: "keep" }, { kind: "push_kept", sha: headOf(made.lab.work, "HEAD"), place: "acme/app" }])
        expect(await made.cloud.resultOf(push(made, { branch, ...kind }))).toMatchObject({
          outcome: "refused",
          reason: expect.stringContaining(made.branch),
        });
    expect(git(made.remote, "for-each-ref").stdout.trim().split("\n")).toHaveLength(1);
  });

  test("from a folder without a repository, or without a commit or an origin, it says what is missing", async () => {
    const made = await scene();
    await daemonCall(made.lab, ["grant", made.lab.work, "--push"]);
    const pushing = { ...made, remote: "", taskId: "tsk_push1", branch: "switchyard/tsk_push1" };
    await made.start(each[0]).line("connected");
    const said = async (): Promise<string | undefined> => (await made.cloud.resultOf(push(pushing))).reason;
    expect(await said()).toMatch(/no git repository/);
    execFileSync("git", ["init", "-q", made.lab.work]);
    expect(await said()).toMatch(/commit first/);
    git(made.lab.work, "commit", "--allow-empty", "-qm", "x");
    expect(await said()).toMatch(/no remote called origin/);
    for (const url of ["ext::sh -c 'touch ran'", "-oProxyCommand=touch", "../elsewhere", join(made.lab.work, "inner")]) {
      git(made.lab.work, "config", "remote.origin.url", url);
      expect(await said()).toMatch(/none that tasks may push to|lies in a granted folder/);
    }
  });
});

describe("nothing that a command wrote runs when the daemon pushes", () => {
  test.each([
    [
      "a pre-push hook of the repository",
      "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ../ran\\n' > .git/hooks/pre-push; chmod +x .git/hooks/pre-push",
    ],
    [
      "a monitor and a signer in the configuration",
      'git config core.fsmonitor "touch $PWD/../ran; false"; git config gpg.program "$PWD/evil"',
    ],
    [
      "a command for ssh and a helper for passwords",
      'git config core.sshCommand "touch $PWD/../ran"; git config credential.helper "!touch $PWD/../ran"',
    ],
    ["a receiver on the other side", 'git config remote.origin.receivepack "touch $PWD/../ran; git-receive-pack"'],
  ])("%s", async (_what, script) => {
    const made = await clone();
    await made.start("unsandboxed").line("connected");
    const before = await made.cloud.resultOf(made.cloud.shell(script));
    expect(before.outcome).toBe("exited");
    expect((await made.cloud.resultOf(push(made))).exitCode).toBe(0);
    expect(existsSync(join(made.lab.dir, "ran"))).toBe(false);
  });

  test("an address that includes lead to another one is not followed", async () => {
    const made = await clone();
    const evil = join(made.lab.dir, "evil.git");
    execFileSync("git", ["init", "-q", "--bare", evil]);
    mkdirSync(join(made.lab.work, "conf"));
    writeFileSync(join(made.lab.work, "conf", "inc"), `[remote "origin"]\n\tpushurl = ${evil}\n`);
    git(made.lab.work, "config", "include.path", join(made.lab.work, "conf", "inc"));
    await made.start(each[0]).line("connected");
    expect((await made.cloud.resultOf(push(made))).exitCode).toBe(0);
    expect(git(evil, "for-each-ref").stdout).toBe("");
    expect(headOf(made.remote, `refs/heads/${made.branch}`)).not.toBe("");
  });
});
