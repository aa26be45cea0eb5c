// How the project is tested, built, linted, type-checked: listed, read, chosen, run.
import type { WorkIntent } from "./intents.ts";
import { blocked, checkAnswer, code, commandAnswer, type JobAnswer, testAnswer } from "./report-text.ts";
import { filesForNames, filesToRead, findNamed, findRunner, isTestFile, runnerNames } from "./runners/registry.ts";
import type { Folder, Found } from "./runners/runner.ts";
import type { Job, WorkerState } from "./worker-state.ts";
import { ensure, listCalls, notRead, ok, type Planned, pathsOf, readCall, runStep, type Step } from "./worker-steps.ts";

/** The files of one folder, with the text of those that were read. */
function folderOf(base: string, paths: readonly string[], state: WorkerState): Folder {
  const prefix = base === "" ? "" : `${base}/`;
  return {
    paths: paths.filter((path) => path.startsWith(prefix) && !path.endsWith("/")).map((path) => path.slice(prefix.length)),
    text: (path) => {
      const read = state.all.findLast((one) => one.tool === "read_file" && one.input.path === `${prefix}${path}`);
      return read && ok(read) ? read.result?.output : undefined;
    },
  };
}

/** Lists the workspace, then reads what decides; the runner's own files of the root first, then of folders below it. */
export function projectStep(job: Job, state: WorkerState, intent: Extract<WorkIntent, { kind: "project" }>): Step {
  const listed = ensure(listCalls(state), state.all);
  if ("step" in listed) return listed.step;
  const unread = listed.results.map(notRead).find((each) => each !== null);
  if (unread) return { answer: unread };
  const paths = pathsOf(listed.results);
  const folders = foldersFor(intent, paths);
  const readPaths: string[] = [];
  for (const level of [folders.slice(0, 1), folders.slice(1)]) {
    const wanted = level.flatMap((base) =>
      filesToRead(folderOf(base, paths, state).paths, intent.purpose).map((path) => (base === "" ? path : `${base}/${path}`)),
    );
    const reads = ensure(
      wanted.slice(0, 7).map((path) => readCall(path, state)),
      state.all,
    );
    if ("step" in reads) return reads.step;
    readPaths.push(...wanted);
    const plans = level
      .flatMap((base) => plan(base, folderOf(base, paths, state), intent, base === "" ? folders.slice(1) : []))
      .slice(0, 3);
    const only = intent.only === undefined ? {} : { only: intent.only };
    if (plans.length > 0)
      return runStep(job, state, plans, (run, machine) =>
        intent.purpose === "test" ? testAnswer({ ...run, ...only }, machine) : checkAnswer(run, machine, intent.purpose),
      );
  }
  return { answer: nothingFound(intent, paths, readPaths) };
}

/** Where to look: the named folder, else the root and then the folders that look like projects of their own. */
function foldersFor(intent: Extract<WorkIntent, { kind: "project" }>, paths: readonly string[]): string[] {
  if (intent.where && paths.includes(`${intent.where}/`)) return [intent.where];
  const below = paths
    .filter((path) => path.endsWith("/") && path.split("/").length <= 3)
    .map((path) => path.slice(0, -1))
    .filter((base) => paths.some((path) => path.startsWith(`${base}/`) && markerFile.test(path.slice(base.length + 1))));
  return ["", ...below.slice(0, 3)];
}

const markerFile =
  /^(?:package\.json|deno\.jsonc?|[Mm]akefile|GNUmakefile|[Jj]ustfile|pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|pytest\.ini|Cargo\.toml|go\.mod|composer\.json|Gemfile|Rakefile|build\.gradle(?:\.kts)?|pom\.xml|mix\.exs|(?:run[-_]?)?tests?\.sh)$/;

/** The command for one folder, narrowed when only a part was asked for. */
function plan(base: string, folder: Folder, intent: Extract<WorkIntent, { kind: "project" }>, others: readonly string[]): Planned[] {
  const cwd = base === "" ? {} : { cwd: base };
  if (intent.variant) {
    const { variant, purpose } = intent;
    for (const name of [`${purpose}:${variant}`, `${purpose}-${variant}`, variant]) {
      const found = findNamed(folder, name);
      if ("script" in found) return [narrowed(found, intent, folder, cwd)];
    }
  }
  // Test files of a project below are that project's: they do not make this one a runner.
  const own = { ...folder, paths: folder.paths.filter((path) => !others.some((other) => path.startsWith(`${other}/`))) };
  const found = findRunner(own, intent.purpose);
  return found ? [narrowed(found, intent, folder, cwd)] : [];
}

function narrowed(found: Found, intent: Extract<WorkIntent, { kind: "project" }>, folder: Folder, cwd: { cwd?: string }): Planned {
  const named = cwd.cwd !== undefined && cwd.cwd === intent.where;
  const subject = intent.only ?? (named ? undefined : intent.where);
  if (subject === undefined) return { script: found.script, from: found.from, ...cwd };
  const wanted = subject
    .toLowerCase()
    .split(/[\s_-]+/)
    .join("[\\s_-]*")
    .replace(/[.+^${}()|]/g, "\\$&");
  const files = folder.paths.filter((path) => isTestFile(path) && new RegExp(wanted).test(path.toLowerCase())).slice(0, 5);
  const script = found.only?.(subject, files) ?? null;
  return script === null
    ? { script: found.script, from: found.from, ...cwd, notes: [`This runner cannot be limited to “${subject}”, so all of it ran.`] }
    : { script, from: found.from, ...cwd };
}

const purposeQuestion = {
  test: "how the tests are run",
  build: "how the project is built",
  lint: "how it is linted",
  typecheck: "how its types are checked",
} as const;

function nothingFound(intent: Extract<WorkIntent, { kind: "project" }>, paths: readonly string[], read: readonly string[]): JobAnswer {
  const files = paths.filter((path) => !path.endsWith("/"));
  if (files.length === 0) return blocked("The workspace is empty: there is nothing to run in it.");
  const seen =
    read.length > 0
      ? `I listed ${files.length} files and read ${read.slice(0, 6).map(code).join(", ")}`
      : `I listed ${files.length} files (${files.slice(0, 5).map(code).join(", ")})`;
  return blocked(
    `Tell me the command in backticks, for example \`make ${intent.purpose}\`: I did not find out ${purposeQuestion[intent.purpose]}. ${seen}. I know ${runnerNames().slice(0, 4).join(", ")} and more.`,
  );
}

/** A script, target or recipe by its name. */
export function namedStep(job: Job, state: WorkerState, name: string): Step {
  const listed = ensure(listCalls(state), state.all);
  if ("step" in listed) return listed.step;
  const unread = listed.results.map(notRead).find((each) => each !== null);
  if (unread) return { answer: unread };
  const paths = pathsOf(listed.results);
  const folder = folderOf("", paths, state);
  const reads = ensure(
    filesForNames(folder.paths).map((path) => readCall(path, state)),
    state.all,
  );
  if ("step" in reads) return reads.step;
  const found = findNamed(folder, name);
  if ("script" in found) return runStep(job, state, [found], commandAnswer);
  const known = found.known.slice(0, 12).map(code).join(", ");
  return {
    answer: blocked(
      `There is no script or target named ${code(name)} here. ${known ? `There are: ${known}.` : "I found none at all."} Name one of them, or spell the command out in backticks.`,
    ),
  };
}
