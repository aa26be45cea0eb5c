// What the owner of this machine allows: the granted folders. Kept here, read before each command; the cloud cannot edit it.
import { realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, resolve } from "node:path";
import * as z from "zod/mini";
import { refuseCommand } from "../src/core/authority.ts";
import { branchOf } from "../src/core/branch.ts";
import { type Command, isPush } from "../src/protocol/command.ts";
import { workspaceGrant, workspaceName } from "../src/protocol/daemon-frames.ts";
import { Fault } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import { type Home, readIfThere, writeWhole } from "./home.ts";
import { isInside } from "./workspace-path.ts";

const policySchema = z.object({ v: z.literal(1), workspaces: z.array(workspaceGrant) });
export type Policy = z.infer<typeof policySchema>;
export type Grant = z.infer<typeof workspaceGrant>;

export function readPolicy(home: Home): Policy {
  const text = readIfThere(home.policy);
  if (text === null) return { v: 1, workspaces: [] };
  try {
    return policySchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new Fault("bad_input", `${home.policy} cannot be read; correct it, or remove it and grant the folders again.`, { cause });
  }
}

/** Grants a folder, beside the others or (`only`) instead of them. Not one that holds the daemon's own home or the user's: keys would lie in it. */
export function grantFolder(home: Home, dir: string, name: string | null, only: boolean, push = false): { grant: Grant; isNew: boolean } {
  let path: string;
  try {
    path = realpathSync(resolve(dir));
  } catch (cause) {
    throw new Fault("not_found", `There is no folder ${resolve(dir)}; make it first, or check the spelling.`, { cause });
  }
  if (!statSync(path).isDirectory()) throw new Fault("bad_input", `${path} is not a folder; grant the folder that it is in.`);
  const homePath = realpathSync(home.dir);
  if (isInside(path, homePath) || isInside(homePath, path))
    throw new Fault("forbidden", `${path} and the daemon's own folder lie in one another; grant a project folder.`);
  if (isInside(path, realpathSync(homedir())))
    throw new Fault("forbidden", `${path} holds your home folder with its keys; grant a project folder.`);
  const wanted = name ?? basename(path);
  // A folder that may push still may when it is granted once more: only withdrawing it takes that back.
  const pushes = push || readPolicy(home).workspaces.some((each) => each.name === wanted && each.path === path && each.push === true);
  const grant: Grant = { name: wanted, path, ...(pushes ? { push: true } : {}) };
  if (!workspaceName.safeParse(grant.name).success)
    throw new Fault("bad_input", "A folder's name is 1 to 100 letters, digits, spaces, dots or dashes; give one with --name.");
  const { workspaces } = readPolicy(home);
  const known = workspaces.find((each) => each.name === grant.name);
  const isNew = known?.path !== grant.path || (push && known.push !== true);
  if (known && known.path !== grant.path && !only)
    throw new Fault("conflict", `The name "${grant.name}" stands for ${known.path}; give another with --name.`);
  if (!only && known === undefined && workspaces.length >= limits.maxWorkspaces)
    throw new Fault(
      "conflict",
      `${limits.maxWorkspaces} folders are granted already; withdraw one first, or grant a folder that they are in.`,
    );
  if (only) writeGrants(home, [grant]);
  else if (isNew) writeGrants(home, [...workspaces.filter((each) => each.name !== grant.name), grant]);
  return { grant, isNew };
}

/** Withdraws a grant: commands that come for the folder are refused from then on, those under way go on. */
export function withdrawFolder(home: Home, name: string): void {
  const { workspaces } = readPolicy(home);
  const left = workspaces.filter((each) => each.name !== name);
  if (left.length === workspaces.length)
    throw new Fault("not_found", `No granted folder is called "${name}"; npm run daemon -- status lists them.`);
  writeGrants(home, left);
}

const writeGrants = (home: Home, workspaces: Grant[]): void =>
  writeWhole(home.policy, `${JSON.stringify({ v: 1, workspaces }, null, 2)}\n`);

export type Judgement = { ok: true; root: string } | { ok: false; outcome: "refused" | "expired" | "void"; reason: string };

/** The daemon's own word on a command, whatever the cloud thinks: authority, age, folder, sandbox. */
export function judge(command: Command, policy: Policy, sandbox: "bwrap" | "unsandboxed" | "none", nowMs: number): Judgement {
  const refused = refuseCommand(command);
  if (refused !== null) return { ok: false, outcome: "refused", reason: refused };
  if (nowMs > command.notAfterMs)
    return {
      ok: false,
      outcome: "expired",
      reason: "It waited longer for this machine than it was meant to; ask again if it is still wanted.",
    };
  const grant = policy.workspaces.find((each) => each.name === command.spec.workspace);
  if (!grant) {
    const names = policy.workspaces.map((each) => `"${each.name}"`).join(", ") || "none";
    return {
      ok: false,
      outcome: "refused",
      reason: `The folder "${command.spec.workspace}" is not granted on this machine (granted: ${names}).`,
    };
  }
  if (isPush(command.spec)) {
    const own = branchOf(command.taskId);
    if (command.spec.branch !== own)
      return { ok: false, outcome: "refused", reason: `A task pushes its own branch only: ${own}, not ${command.spec.branch}.` };
    if (grant.push !== true)
      return {
        ok: false,
        outcome: "refused",
        reason: `Pushing from "${grant.name}" is not allowed on this machine. Its owner allows it with: npm run daemon -- grant ${grant.path} --push`,
      };
  }
  if (command.spec.kind === "shell" && sandbox === "none")
    return {
      ok: false,
      outcome: "refused",
      reason: "This machine has no working bubblewrap sandbox; its owner can install bwrap, or start the daemon with --unsandboxed.",
    };
  return { ok: true, root: grant.path };
}
