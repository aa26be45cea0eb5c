// Projects whose author left a script, or a sentence in the README.
import type { Purpose } from "../intents.ts";
import { interpreterOf, quoted, quotedPath } from "../shell.ts";
import { matching, type Runner } from "./runner.ts";

const scriptNames: Record<Purpose, RegExp> = {
  test: /^(?:(?:scripts?|bin|tools?|tests?|ci)\/)?(?:(?:run[-_]?)?(?:all[-_]?)?tests?(?:[-_](?:all|unit))?|runtests?|tests?[-_]?run(?:ner)?|check|run[-_]?checks?|run[-_]?all|selftest)(?:\.(?:sh|bash|py|js|mjs|rb|pl|php))?$/i,
  build: /^(?:(?:scripts?|bin|tools?|ci)\/)?(?:build|compile|make)(?:[-_]all)?(?:\.(?:sh|bash|py|js|mjs|rb|pl))?$/i,
  lint: /^(?:(?:scripts?|bin|tools?|ci)\/)?(?:run[-_]?)?lint(?:er)?(?:\.(?:sh|bash|py|js|mjs|rb|pl))?$/i,
  typecheck: /^(?:(?:scripts?|bin|tools?|ci)\/)?type[-_]?check(?:\.(?:sh|bash|py|js|mjs))?$/i,
};

/** Nearer the root, and named for tests rather than for checks, comes first. */
const scriptRank = (path: string): number => path.split("/").length * 10 + (/test/i.test(path.split("/").at(-1) ?? "") ? 0 : 1);
const scriptCandidates = (paths: readonly string[], purpose: Purpose): string[] =>
  matching(paths, scriptNames[purpose])
    .sort((a, b) => scriptRank(a) - scriptRank(b) || a.localeCompare(b))
    .slice(0, 3);

export const scripts: Runner = {
  name: "scripts like `test.sh`",
  reads: (paths, purpose) => scriptCandidates(paths, purpose).slice(0, 2),
  find(folder, purpose) {
    for (const path of scriptCandidates(folder.paths, purpose)) {
      const text = folder.text(path);
      const interpreter = interpreterOf(path, text ?? "");
      // A file without an ending is a script only if it says so itself.
      if (!/\.\w+$/.test(path) && !text?.startsWith("#!")) continue;
      return { script: interpreter === null ? `./${quoted(path)}` : `${interpreter} ${quotedPath(path)}`, from: path };
    }
    return null;
  },
};

export const bats: Runner = {
  name: "bats",
  reads: () => [],
  find({ paths }, purpose) {
    if (purpose !== "test") return null;
    const files = matching(paths, /\.bats$/);
    if (files.length > 0) {
      const folder = files[0]?.includes("/") ? quotedPath(files[0].split("/").slice(0, -1).join("/")) : "*.bats";
      return { script: `bats ${folder}`, from: files[0] ?? "", only: (subject) => `bats -f ${quoted(subject)} ${folder}` };
    }
    return paths.some((path) => /^t\/.*\.t$/.test(path)) ? { script: "prove -r t", from: "t/" } : null;
  },
};

const documents = /^(?:README|CONTRIBUTING|DEVELOPMENT|HACKING|TESTING|BUILDING)(?:\.(?:md|txt|rst|adoc|markdown))?$/i;
const purposeWord: Record<Purpose, RegExp> = {
  test: /test|spec|check/i,
  build: /build|compile|make\b/i,
  lint: /lint|style/i,
  typecheck: /type/i,
};

export const readme: Runner = {
  name: "commands in the README",
  reads: (paths) => matching(paths, documents).slice(0, 2),
  find(folder, purpose) {
    for (const file of matching(folder.paths, documents)) {
      const script = documentedCommand(folder.text(file) ?? "", purpose);
      if (script !== null) return { script, from: file };
    }
    return null;
  },
};

/** Only a plain command of a known kind is taken from prose: no pipes, no redirections, nothing that removes or installs. */
const documented =
  /^(?:(?:npm|pnpm|yarn|bun|npx|make|just|task|cargo|go|python3?|pytest|tox|nox|uv|poetry|rake|bundle|rspec|composer|mvn|gradle|mix|dotnet|deno|bats|ctest|cmake|node|ruby|php|perl|prove|sh|bash)|\.{1,2}\/[\w./-]+)(?: [\w@%+=:,./-]+)*$/;
const documentedBad = /\b(?:install|ci|add|init|publish|deploy|push|clone|start|dev|serve|watch)\b/;

function documentedCommand(text: string, purpose: Purpose): string | null {
  let fenced = false;
  for (const raw of text.split("\n")) {
    if (/^\s*(?:```|~~~)/.test(raw)) {
      fenced = !fenced;
      continue;
    }
    const spans =
      fenced || /^(?: {4}|\t)\S/.test(raw)
        ? [raw.trim().replace(/^[$>%#] /, "")]
        : [...raw.matchAll(/`([^`]+)`/g)].map((match) => match[1]?.trim() ?? "");
    for (const span of spans) {
      const line = span.replace(/\s+#.*$/, "");
      if (
        documented.test(line) &&
        purposeWord[purpose].test(fenced ? line : `${line} ${raw}`) &&
        !documentedBad.test(line) &&
        purposeWord[purpose].test(line)
      )
        return line;
    }
  }
  return null;
}
