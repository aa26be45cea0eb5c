// Files that name targets: Makefile, justfile, Taskfile.
import { quoted } from "../shell.ts";
import { has, pick, type Runner } from "./runner.ts";

/** Files that name their targets at the beginning of a line. */
function targetFile(name: string, files: readonly string[], pattern: RegExp, command: string): Runner {
  return {
    name,
    reads: (paths) => files.filter((file) => paths.includes(file)).slice(0, 1),
    find(folder, purpose) {
      const file = has(folder.paths, ...files);
      const text = file === undefined ? undefined : folder.text(file);
      if (file === undefined || text === undefined) return null;
      const target = pick(purpose, targetsOf(text, pattern));
      return target === undefined ? null : { script: `${command} ${quoted(target)}`, from: file };
    },
  };
}

export const targetsOf = (text: string, pattern: RegExp): string[] =>
  text.split("\n").flatMap((line) => pattern.exec(line)?.[1]?.split(/\s+/).filter(Boolean) ?? []);

export const makeTarget = /^([A-Za-z0-9_./-]+(?:[ \t]+[A-Za-z0-9_./-]+)*)[ \t]*::?(?![=:])/;
export const makeFiles = ["GNUmakefile", "makefile", "Makefile"];
export const makefile = targetFile("Makefile", makeFiles, makeTarget, "make");
export const justRecipe = /^@?([a-zA-Z_][\w-]*)(?:[ \t]+[^:\n]*)?:(?!=)/;
export const justFiles = ["justfile", "Justfile", ".justfile"];
export const justfile = targetFile("justfile", justFiles, justRecipe, "just");
export const taskfile = targetFile("Taskfile", ["Taskfile.yml", "Taskfile.yaml"], /^ {2}([\w:-]+):\s*$/, "task");
