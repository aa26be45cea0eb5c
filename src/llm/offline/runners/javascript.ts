// Projects of npm, pnpm, yarn, bun and deno.
import type { Purpose } from "../intents.ts";
import { quoted, quotedPath } from "../shell.ts";
import {
  type Folder,
  type Found,
  has,
  matching,
  parseJson,
  parsePackage,
  pick,
  type Runner,
  scriptsOf,
  withoutComments,
} from "./runner.ts";

type PackageJson = { scripts?: Record<string, unknown>; packageManager?: unknown; dependencies?: object; devDependencies?: object };

type PackageManager = "npm" | "pnpm" | "yarn" | "bun";

export function packageManager(folder: Folder, json: PackageJson | null): PackageManager {
  const named = typeof json?.packageManager === "string" ? json.packageManager.split("@")[0] : "";
  if (named === "pnpm" || named === "yarn" || named === "bun" || named === "npm") return named;
  if (has(folder.paths, "pnpm-lock.yaml", "pnpm-workspace.yaml")) return "pnpm";
  if (has(folder.paths, "yarn.lock")) return "yarn";
  if (has(folder.paths, "bun.lock", "bun.lockb")) return "bun";
  return "npm";
}

export const npmRun = (manager: PackageManager, name: string): string =>
  manager === "npm" && name === "test" ? "npm test" : `${manager} run ${quoted(name)}`;
const npmArgs = (manager: PackageManager, command: string, args: string): string =>
  manager === "npm" ? `${command} -- ${args}` : `${command} ${args}`;
const exec: Record<PackageManager, string> = { npm: "npx", pnpm: "pnpm exec", yarn: "yarn", bun: "bunx" };

export const testFile = /(?:^|\/)(?:test|tests|__tests__|spec)\/.*\.[cm]?[jt]sx?$|\.(?:test|spec)\.[cm]?[jt]sx?$/;
const nodeTestFile = /(?:^|\/)test\/.*\.[cm]?js$|(?:\.|-|_)test\.[cm]?js$|(?:^|\/)test(?:-.*)?\.[cm]?js$/;

function onlyOfNpm(manager: PackageManager, command: string, line: string): NonNullable<Found["only"]> {
  return (subject, files) => {
    const paths = files.map(quotedPath).join(" ");
    if (/\bvitest\b/.test(line)) return npmArgs(manager, command, files.length > 0 ? paths : `-t ${quoted(subject)}`);
    if (/\bjest\b|react-scripts test/.test(line)) return npmArgs(manager, command, files.length > 0 ? paths : `-t ${quoted(subject)}`);
    if (/\bmocha\b/.test(line)) return npmArgs(manager, command, `--grep ${quoted(subject)}`);
    if (/^node\s+(?:\S+\s+)*--test\b/.test(line))
      return files.length > 0 ? `node --test ${paths}` : `${line} --test-name-pattern=${quoted(subject)}`;
    if (/^bun test/.test(line)) return files.length > 0 ? `bun test ${paths}` : `bun test -t ${quoted(subject)}`;
    return null;
  };
}

export const packageJson: Runner = {
  name: "package.json",
  reads: (paths) => matching(paths, /^package\.json$/),
  find(folder, purpose) {
    const json = parsePackage(folder.text("package.json"));
    if (json === null) return null;
    const manager = packageManager(folder, json);
    const scripts = scriptsOf(json, "scripts");
    const usable = Object.keys(scripts).filter((name) => !/no test specified/.test(scripts[name] ?? ""));
    const name = pick(purpose, usable);
    if (name !== undefined) {
      const line = scripts[name] ?? "";
      const command = npmRun(manager, name);
      // These watch for ever unless they are told that nobody is there.
      const once = /react-scripts test|--watch\b|\bng test\b/.test(line) ? `CI=true ${command}` : command;
      return { script: once, from: "package.json", only: onlyOfNpm(manager, once, line) };
    }
    const packages = { ...(json.dependencies as object | undefined), ...(json.devDependencies as object | undefined) };
    const direct = (tool: string, line: string): Found | null =>
      tool in packages ? { script: `${exec[manager]} ${line}`, from: `package.json (${tool})` } : null;
    switch (purpose) {
      case "test": {
        const found = direct("vitest", "vitest run") ?? direct("jest", "jest") ?? direct("mocha", "mocha");
        if (found)
          return {
            ...found,
            only: (subject, files) =>
              `${found.script} ${files.length > 0 ? files.map(quotedPath).join(" ") : `${/mocha/.test(found.script) ? "--grep" : "-t"} ${quoted(subject)}`}`,
          };
        return matching(folder.paths, nodeTestFile).length > 0 ? nodeTest : null;
      }
      case "build":
        return direct("vite", "vite build");
      case "lint":
        return direct("eslint", "eslint .") ?? direct("@biomejs/biome", "biome check");
      case "typecheck":
        return folder.paths.includes("tsconfig.json") ? direct("typescript", "tsc --noEmit") : null;
    }
  },
};

const nodeTest: Found = {
  script: "node --test",
  from: "its test files",
  only: (subject, files) =>
    files.length > 0 ? `node --test ${files.map(quotedPath).join(" ")}` : `node --test --test-name-pattern=${quoted(subject)}`,
};

export const denoJson: Runner = {
  name: "deno.json",
  reads: (paths) => matching(paths, /^deno\.jsonc?$/),
  find(folder, purpose) {
    const file = has(folder.paths, "deno.json", "deno.jsonc");
    if (file === undefined) return null;
    const name = pick(purpose, Object.keys(scriptsOf(parseJson(withoutComments(folder.text(file))), "tasks")));
    if (name !== undefined) return { script: `deno task ${quoted(name)}`, from: file };
    const own: Record<Purpose, string | null> = { test: "deno test", build: null, lint: "deno lint", typecheck: "deno check ." };
    const script = own[purpose];
    return script === null
      ? null
      : { script, from: file, only: (subject) => (purpose === "test" ? `deno test --filter ${quoted(subject)}` : null) };
  },
};

export const looseNode: Runner = {
  name: "Node test files",
  reads: () => [],
  find: ({ paths }, purpose) =>
    purpose === "test" && !paths.includes("package.json") && paths.some((path) => nodeTestFile.test(path)) ? nodeTest : null,
};
