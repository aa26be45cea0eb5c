// Every runner, one line each, in the order of trust: what the author named, then what the ecosystem does, then scripts and prose.
import type { Purpose } from "../intents.ts";
import { interpreterOf, quoted } from "../shell.ts";
import { ecosystems } from "./ecosystems.ts";
import { denoJson, looseNode, npmRun, packageJson, packageManager, testFile } from "./javascript.ts";
import { composer, python, pythonTest, ruby } from "./languages.ts";
import { type Folder, type Found, has, parseJson, parsePackage, type Runner, scriptsOf, withoutComments } from "./runner.ts";
import { bats, readme, scripts } from "./scripts.ts";
import { justFiles, justfile, justRecipe, makeFiles, makefile, makeTarget, targetsOf, taskfile } from "./targets.ts";

const runners: readonly Runner[] = [
  packageJson,
  denoJson,
  makefile,
  justfile,
  taskfile,
  composer,
  python,
  ruby,
  ...ecosystems,
  scripts,
  bats,
  looseNode,
  readme,
];

const maxReads = 8;

/** Files of a folder that must be read before `findRunner` can answer. */
export const filesToRead = (paths: readonly string[], purpose: Purpose): string[] =>
  [...new Set(runners.flatMap((runner) => runner.reads(paths, purpose)))].slice(0, maxReads);

/** How this folder does it; null when no runner knows. */
export function findRunner(folder: Folder, purpose: Purpose): Found | null {
  for (const runner of runners) {
    const found = runner.find(folder, purpose);
    if (found) return found;
  }
  return null;
}

export const runnerNames = (): string[] => runners.map((runner) => runner.name);

/** A script, target, recipe or task by its own name; the list of what there is when there is none. */
export function findNamed(folder: Folder, name: string): Found | { known: string[] } {
  const { paths } = folder;
  const json = parsePackage(folder.text("package.json"));
  const scriptsInPackage = Object.keys(scriptsOf(json, "scripts"));
  const file = has(paths, ...makeFiles);
  const targets = targetsOf((file === undefined ? undefined : folder.text(file)) ?? "", makeTarget).filter(
    (target) => !target.startsWith("."),
  );
  const just = has(paths, ...justFiles);
  const recipes = targetsOf((just === undefined ? undefined : folder.text(just)) ?? "", justRecipe);
  const tasks = Object.keys(
    scriptsOf(parseJson(withoutComments(folder.text(has(paths, "deno.json", "deno.jsonc") ?? "deno.json"))), "tasks"),
  );
  if (scriptsInPackage.includes(name)) return { script: npmRun(packageManager(folder, json), name), from: "package.json" };
  if (targets.includes(name)) return { script: `make ${quoted(name)}`, from: file ?? "Makefile" };
  if (recipes.includes(name)) return { script: `just ${quoted(name)}`, from: just ?? "justfile" };
  if (tasks.includes(name)) return { script: `deno task ${quoted(name)}`, from: "deno.json" };
  const path = paths.find(
    (each) =>
      each === name || each === `scripts/${name}` || each === `bin/${name}` || each === `${name}.sh` || each === `scripts/${name}.sh`,
  );
  if (path !== undefined) return { script: `${interpreterOf(path) ?? ""} ./${quoted(path)}`.trim(), from: path };
  return { known: [...scriptsInPackage, ...targets, ...recipes, ...tasks] };
}

export const isTestFile = (path: string): boolean =>
  testFile.test(path) || pythonTest.test(path) || /_spec\.rb$|_test\.(?:go|rb|exs?)$|\.bats$|Test\.(?:php|java|kt)$/.test(path);

/** The part of `runner.reads` that `findNamed` needs. */
export const filesForNames = (paths: readonly string[]): string[] =>
  paths.filter((path) => /^(?:package\.json|deno\.jsonc?|GNUmakefile|[Mm]akefile|\.?[Jj]ustfile)$/.test(path));
