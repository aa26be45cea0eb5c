// How a project is tested, built, linted and type-checked: runners as data, found by reading its files. What the author wrote down comes first.
import type { Purpose } from "./intents.ts";
import { interpreterOf, quoted, quotedPath } from "./shell.ts";

/** Files of one folder of the project, by their path below it; `text` is there for those that were read. */
export type Folder = { paths: readonly string[]; text(path: string): string | undefined };

export type Found = {
  script: string;
  /** Where it was found: `package.json`. */
  from: string;
  /** The command for a part only; null when this runner cannot. */
  only?(subject: string, files: readonly string[]): string | null;
};

type Runner = {
  name: string;
  /** Files whose text decides; read before `find` is asked. */
  reads(paths: readonly string[], purpose: Purpose): string[];
  find(folder: Folder, purpose: Purpose): Found | null;
};

const has = (paths: readonly string[], ...names: string[]): string | undefined => names.find((name) => paths.includes(name));
const matching = (paths: readonly string[], pattern: RegExp): string[] => paths.filter((path) => pattern.test(path));

/** Names under which people keep each purpose, best first. */
const taskNames: Record<Purpose, readonly string[]> = {
  test: ["test", "tests", "test:all", "test-all", "unit", "test:unit", "test-unit", "unittest", "spec", "check", "ci"],
  build: ["build", "compile", "bundle", "dist", "all"],
  lint: ["lint", "lint:all", "eslint", "check:lint", "lint-check", "style", "check"],
  typecheck: ["typecheck", "type-check", "types", "tsc", "check:types", "check-types", "mypy", "check"],
};

const pick = (purpose: Purpose, known: readonly string[]): string | undefined => taskNames[purpose].find((name) => known.includes(name));

type PackageJson = { scripts?: Record<string, unknown>; packageManager?: unknown; dependencies?: object; devDependencies?: object };

function parseJson(text: string | undefined): Record<string, unknown> | null {
  if (text === undefined) return null;
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** deno.json may hold comments: whole lines of them go, strings stay whole. */
const withoutComments = (text: string | undefined): string | undefined => text?.replace(/^\s*\/\/.*$/gm, "").replace(/,(\s*[}\]])/g, "$1");

const scriptsOf = (json: Record<string, unknown> | null, key: string): Record<string, string> => {
  const scripts = json?.[key];
  if (typeof scripts !== "object" || scripts === null) return {};
  return Object.fromEntries(
    Object.entries(scripts).flatMap(([name, line]): [string, string][] =>
      typeof line === "string" ? [[name, line]] : Array.isArray(line) || typeof line === "object" ? [[name, JSON.stringify(line)]] : [],
    ),
  );
};

type PackageManager = "npm" | "pnpm" | "yarn" | "bun";

function packageManager(folder: Folder, json: PackageJson | null): PackageManager {
  const named = typeof json?.packageManager === "string" ? json.packageManager.split("@")[0] : "";
  if (named === "pnpm" || named === "yarn" || named === "bun" || named === "npm") return named;
  if (has(folder.paths, "pnpm-lock.yaml", "pnpm-workspace.yaml")) return "pnpm";
  if (has(folder.paths, "yarn.lock")) return "yarn";
  if (has(folder.paths, "bun.lock", "bun.lockb")) return "bun";
  return "npm";
}

const npmRun = (manager: PackageManager, name: string): string =>
  manager === "npm" && name === "test" ? "npm test" : `${manager} run ${quoted(name)}`;
const npmArgs = (manager: PackageManager, command: string, args: string): string =>
  manager === "npm" ? `${command} -- ${args}` : `${command} ${args}`;
const exec: Record<PackageManager, string> = { npm: "npx", pnpm: "pnpm exec", yarn: "yarn", bun: "bunx" };

const testFile = /(?:^|\/)(?:test|tests|__tests__|spec)\/.*\.[cm]?[jt]sx?$|\.(?:test|spec)\.[cm]?[jt]sx?$/;
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

const packageJson: Runner = {
  name: "package.json scripts (npm, pnpm, yarn, bun)",
  reads: (paths) => matching(paths, /^package\.json$/),
  find(folder, purpose) {
    const json = parseJson(folder.text("package.json"));
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

const denoJson: Runner = {
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

const targetsOf = (text: string, pattern: RegExp): string[] =>
  text.split("\n").flatMap((line) => pattern.exec(line)?.[1]?.split(/\s+/).filter(Boolean) ?? []);

const makeTarget = /^([A-Za-z0-9_./-]+(?:[ \t]+[A-Za-z0-9_./-]+)*)[ \t]*::?(?![=:])/;
const makeFiles = ["GNUmakefile", "makefile", "Makefile"];
const makefile = targetFile("Makefile targets", makeFiles, makeTarget, "make");
const justRecipe = /^@?([a-zA-Z_][\w-]*)(?:[ \t]+[^:=\n]*)?:(?!=)/;
const justFiles = ["justfile", "Justfile", ".justfile"];
const justfile = targetFile("justfile recipes", justFiles, justRecipe, "just");
const taskfile = targetFile("Taskfile", ["Taskfile.yml", "Taskfile.yaml"], /^ {2}([\w:-]+):\s*$/, "task");

const pythonTest = /(?:^|\/)(?:test_[^/]*|[^/]*_test|tests)\.py$/;
const python: Runner = {
  name: "Python (pytest, tox, nox, unittest)",
  reads: (paths, purpose) => [
    ...matching(paths, /^(?:pyproject\.toml|setup\.cfg|tox\.ini|pytest\.ini|requirements[\w.-]*\.txt)$/).slice(0, 4),
    ...(purpose === "test" ? matching(paths, pythonTest).slice(0, 1) : []),
  ],
  find(folder, purpose) {
    const { paths } = folder;
    const pyproject = folder.text("pyproject.toml") ?? "";
    const config = [
      pyproject,
      folder.text("setup.cfg") ?? "",
      ...matching(paths, /^requirements[\w.-]*\.txt$/).map((file) => folder.text(file) ?? ""),
    ].join("\n");
    const with_ = paths.includes("uv.lock")
      ? "uv run "
      : paths.includes("poetry.lock")
        ? "poetry run "
        : paths.includes("Pipfile.lock")
          ? "pipenv run "
          : "";
    const module = (name: string): string => (with_ === "" ? `python3 -m ${name}` : `${with_}${name}`);
    const tests = matching(paths, pythonTest);
    switch (purpose) {
      case "test": {
        if (paths.includes("manage.py") && !/pytest/.test(config)) return { script: `${with_}python3 manage.py test`, from: "manage.py" };
        const usesPytest =
          /\bpytest\b/.test(config) || has(paths, "pytest.ini") !== undefined || paths.some((path) => /(?:^|\/)conftest\.py$/.test(path));
        const sample = tests.map((file) => folder.text(file)).find((text) => text !== undefined) ?? "";
        if (usesPytest || (tests.length > 0 && !/\bunittest\b/.test(sample) && !paths.includes("tox.ini")))
          return {
            script: module("pytest"),
            from: usesPytest ? (has(paths, "pytest.ini", "pyproject.toml", "setup.cfg") ?? "its test files") : "its test files",
            only: (subject, files) =>
              `${module("pytest")} ${files.length > 0 ? files.map(quotedPath).join(" ") : `-k ${quoted(subject.replace(/\s+/g, " and "))}`}`,
          };
        if (paths.includes("tox.ini") || /\[tool\.tox/.test(pyproject)) return { script: "tox", from: "tox.ini" };
        if (paths.includes("noxfile.py")) return { script: "nox", from: "noxfile.py" };
        if (tests.length === 0) return null;
        const where = tests.every((path) => !path.includes("/"))
          ? ""
          : ` discover -s ${quotedPath(tests[0]?.split("/").slice(0, -1).join("/") ?? "tests")} -t .`;
        return {
          script: `${with_}python3 -m unittest${where}`,
          from: "its test files",
          only: (subject) => `${with_}python3 -m unittest${where} -k ${quoted(subject)}`,
        };
      }
      case "build":
        return /\[build-system\]/.test(pyproject) ? { script: "python3 -m build", from: "pyproject.toml" } : null;
      case "lint":
        return /\bruff\b/.test(config) || paths.includes("ruff.toml")
          ? { script: `${with_}ruff check .`, from: "pyproject.toml" }
          : /\bflake8\b/.test(config) || paths.includes(".flake8")
            ? { script: `${with_}flake8`, from: "its configuration" }
            : null;
      case "typecheck":
        return /\bmypy\b/.test(config) || paths.includes("mypy.ini")
          ? { script: `${with_}mypy .`, from: "its configuration" }
          : /\bpyright\b/.test(config)
            ? { script: `${with_}pyright`, from: "its configuration" }
            : null;
    }
  },
};

const composer: Runner = {
  name: "Composer and PHPUnit",
  reads: (paths) => matching(paths, /^composer\.json$/),
  find(folder, purpose) {
    const name = pick(purpose, Object.keys(scriptsOf(parseJson(folder.text("composer.json")), "scripts")));
    if (name !== undefined) return { script: `composer run-script ${quoted(name)}`, from: "composer.json" };
    const config = has(folder.paths, "phpunit.xml", "phpunit.xml.dist");
    if (purpose !== "test" || config === undefined) return null;
    return { script: "vendor/bin/phpunit", from: config, only: (subject) => `vendor/bin/phpunit --filter ${quoted(subject)}` };
  },
};

const ruby: Runner = {
  name: "Ruby (RSpec, Rake)",
  reads: (paths) => matching(paths, /^(?:Gemfile|Rakefile)$/),
  find(folder, purpose) {
    const { paths } = folder;
    const bundle = paths.includes("Gemfile") ? "bundle exec " : "";
    if (purpose === "test" && (paths.includes(".rspec") || paths.some((path) => /^spec\/.*_spec\.rb$/.test(path))))
      return {
        script: `${bundle}rspec`,
        from: has(paths, ".rspec") ?? "spec/",
        only: (subject, files) => `${bundle}rspec ${files.length > 0 ? files.map(quotedPath).join(" ") : `-e ${quoted(subject)}`}`,
      };
    if (purpose === "lint" && paths.includes(".rubocop.yml")) return { script: `${bundle}rubocop`, from: ".rubocop.yml" };
    const rakefile = folder.text("Rakefile");
    if (rakefile === undefined) return null;
    const tasks = [...rakefile.matchAll(/\btask[ (]+:?["']?([\w:]+)/g)].map((match) => match[1] ?? "");
    if (/Rake::TestTask/.test(rakefile)) tasks.push("test");
    const name = pick(purpose, tasks);
    return name === undefined ? null : { script: `${bundle}rake ${quoted(name)}`, from: "Rakefile" };
  },
};

type Marker = { name: string; file: RegExp; commands: Partial<Record<Purpose, string>>; only?: (subject: string) => string };

/** Ecosystems with one way to do it: the marker file is enough. */
const markers: readonly Marker[] = [
  {
    name: "Cargo",
    file: /^Cargo\.toml$/,
    commands: { test: "cargo test", build: "cargo build", lint: "cargo clippy", typecheck: "cargo check" },
    only: (subject) => `cargo test ${quoted(subject)}`,
  },
  {
    name: "Go",
    file: /^go\.mod$/,
    commands: { test: "go test ./...", build: "go build ./...", lint: "go vet ./...", typecheck: "go vet ./..." },
    only: (subject) => `go test ./... -run ${quoted(`(?i)${subject}`)}`,
  },
  {
    name: "Gradle",
    file: /^build\.gradle(?:\.kts)?$/,
    commands: { test: "gradle test", build: "gradle build", lint: "gradle check" },
    only: (subject) => `gradle test --tests ${quoted(`*${subject}*`)}`,
  },
  {
    name: "Maven",
    file: /^pom\.xml$/,
    commands: { test: "mvn test", build: "mvn package" },
    only: (subject) => `mvn test ${quoted(`-Dtest=*${subject}*`)}`,
  },
  { name: "Mix", file: /^mix\.exs$/, commands: { test: "mix test", build: "mix compile" } },
  { name: ".NET", file: /\.(?:sln|csproj|fsproj)$/, commands: { test: "dotnet test", build: "dotnet build" } },
  { name: "Swift", file: /^Package\.swift$/, commands: { test: "swift test", build: "swift build" } },
  { name: "Dart", file: /^pubspec\.yaml$/, commands: { test: "dart test", lint: "dart analyze" } },
];

const marker = (entry: Marker): Runner => ({
  name: entry.name,
  reads: () => [],
  find({ paths }, purpose) {
    const file = paths.find((path) => entry.file.test(path));
    const command = entry.commands[purpose];
    if (file === undefined || command === undefined) return null;
    const wrapped = (line: string): string =>
      line.startsWith("gradle ") && paths.includes("gradlew")
        ? `./gradlew ${line.slice(7)}`
        : line.startsWith("mvn ") && paths.includes("mvnw")
          ? `./mvnw ${line.slice(4)}`
          : line;
    const only = entry.only;
    return {
      script: wrapped(command),
      from: file,
      ...(only && purpose === "test" ? { only: (subject: string) => wrapped(only(subject)) } : {}),
    };
  },
});

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

const scripts: Runner = {
  name: "scripts such as test.sh, run-tests.sh, scripts/test",
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

const bats: Runner = {
  name: "bats and prove",
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

const looseNode: Runner = {
  name: "test files of Node",
  reads: () => [],
  find: ({ paths }, purpose) =>
    purpose === "test" && !paths.includes("package.json") && paths.some((path) => nodeTestFile.test(path)) ? nodeTest : null,
};

const documents = /^(?:README|CONTRIBUTING|DEVELOPMENT|HACKING|TESTING|BUILDING)(?:\.(?:md|txt|rst|adoc|markdown))?$/i;
const purposeWord: Record<Purpose, RegExp> = {
  test: /test|spec|check/i,
  build: /build|compile|make\b/i,
  lint: /lint|style/i,
  typecheck: /type/i,
};

const readme: Runner = {
  name: "commands in README or CONTRIBUTING",
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

/** All of them, in the order of trust: what the author named, then what the ecosystem does, then scripts and prose. */
export const runners: readonly Runner[] = [
  packageJson,
  denoJson,
  makefile,
  justfile,
  taskfile,
  composer,
  python,
  ruby,
  ...markers.map(marker),
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
  const json = parseJson(folder.text("package.json"));
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
