// What a runner is: how a kind of project is tested, built, linted and type-checked, found by reading its files.
import { recordIn } from "../../../core/json.ts";
import type { Purpose } from "../intents.ts";

/** Files of one folder of the project, by their path below it; `text` is there for those that were read. */
export type Folder = { paths: readonly string[]; text(path: string): string | undefined };

export type Found = {
  script: string;
  /** Where it was found: `package.json`. */
  from: string;
  /** The command for a part only; null when this runner cannot. */
  only?(subject: string, files: readonly string[]): string | null;
};

export type Runner = {
  name: string;
  /** Files whose text decides; read before `find` is asked. */
  reads(paths: readonly string[], purpose: Purpose): string[];
  find(folder: Folder, purpose: Purpose): Found | null;
};

export const has = (paths: readonly string[], ...names: string[]): string | undefined => names.find((name) => paths.includes(name));
export const matching = (paths: readonly string[], pattern: RegExp): string[] => paths.filter((path) => pattern.test(path));

/** Names under which people keep each purpose, best first. */
const taskNames: Record<Purpose, readonly string[]> = {
  test: ["test", "tests", "test:all", "test-all", "unit", "test:unit", "test-unit", "unittest", "spec", "check", "ci"],
  build: ["build", "compile", "bundle", "dist", "all"],
  lint: ["lint", "lint:all", "eslint", "check:lint", "lint-check", "style", "check"],
  typecheck: ["typecheck", "type-check", "types", "tsc", "check:types", "check-types", "mypy", "check"],
};

export const pick = (purpose: Purpose, known: readonly string[]): string | undefined =>
  taskNames[purpose].find((name) => known.includes(name));

export const parseJson = (text: string | undefined): Record<string, unknown> | null =>
  text === undefined ? null : recordIn(text.replace(/^\uFEFF/, ""));

/** A package.json too long to be shown whole: its scripts hold no braces of their own and are read by themselves. */
export function parsePackage(text: string | undefined): Record<string, unknown> | null {
  const whole = parseJson(text);
  if (whole !== null || text === undefined) return whole;
  const scripts = parseJson(/"scripts"\s*:\s*(\{[^{}]*\})/.exec(text)?.[1]);
  return scripts === null ? null : { scripts };
}

/** deno.json may hold comments: whole lines of them go, strings stay whole. */
export const withoutComments = (text: string | undefined): string | undefined =>
  text?.replace(/^\s*\/\/.*$/gm, "").replace(/,(\s*[}\]])/g, "$1");

export const scriptsOf = (json: Record<string, unknown> | null, key: string): Record<string, string> => {
  const scripts = json?.[key];
  if (typeof scripts !== "object" || scripts === null) return {};
  return Object.fromEntries(
    Object.entries(scripts).flatMap(([name, line]): [string, string][] =>
      typeof line === "string" ? [[name, line]] : Array.isArray(line) || typeof line === "object" ? [[name, JSON.stringify(line)]] : [],
    ),
  );
};
