// The folder that this machine's daemon works in: a fresh copy of a sample, or the person's own.
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { StartError } from "./settings.ts";

const samplesPath = path.join(import.meta.dirname, "samples");
const failingTestMark = "@@FAILING@@";
const maxCopyBytes = 200 * 1024 * 1024;

/** Copies a sample to `target` and gives its failing test a name that no earlier run had; returns that name. */
export function copySample(sample: string, target: string): { failingTest: string } {
  const source = path.join(samplesPath, sample);
  const known = readdirSync(samplesPath);
  if (!known.includes(sample)) throw new StartError(`There is no sample "${sample}"; there are ${known.join(" and ")}.`);
  rmSync(target, { recursive: true, force: true });
  cpSync(source, target, { recursive: true });
  const failingTest = `counts the edge case ${randomBytes(4).toString("hex")}`;
  for (const file of filesBelow(target)) {
    const text = readFileSync(file, "utf8");
    if (text.includes(failingTestMark)) writeFileSync(file, text.replaceAll(failingTestMark, failingTest));
  }
  makeRepository(target);
  return { failingTest };
}

/** A history of two commits, so that one can ask what changed. Without git on this machine the sample has none. */
function makeRepository(folder: string): void {
  const identity = ["-c", "user.name=Sample", "-c", "user.email=sample@localhost", "-c", "commit.gpgsign=false", "-c", "core.hooksPath="];
  const git = (...args: string[]) => spawnSync("git", [...identity, ...args], { cwd: folder, stdio: "ignore" }).status === 0;
  if (!git("init", "--quiet", "--initial-branch=main")) return;
  git("add", "README.md");
  git("commit", "--quiet", "--message", "docs: what this sample is");
  git("add", ".");
  git("commit", "--quiet", "--message", "feat: the code and its tests");
}

/** Copies a folder of the person's own, for the case that commands cannot be kept inside it. */
export function copyFolder(source: string, target: string): void {
  const bytes = filesBelow(source).reduce((sum, file) => sum + statSync(file).size, 0);
  if (bytes > maxCopyBytes) {
    throw new StartError(
      `${source} is too large for a scratch copy (${Math.round(bytes / 1e6)} MB). Install bubblewrap, or add --unsandboxed to let commands run in the folder itself.`,
    );
  }
  rmSync(target, { recursive: true, force: true });
  if (existsSync(source)) cpSync(source, target, { recursive: true, verbatimSymlinks: true });
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}
