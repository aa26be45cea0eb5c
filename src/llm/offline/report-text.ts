// Reports of the offline worker: Markdown that is ready to show, about a hundred words, and nothing that the output did not show.
import { excerpt } from "../../core/context.ts";
import type { Purpose } from "./intents.ts";
import { errorLines, lastLines, missingTool, plainLines, readResults, type TestResults } from "./results.ts";
import type { Result } from "./worker-state.ts";

export type JobAnswer = { outcome: "done" | "failed" | "blocked"; text: string; confidence: number };

/** A command that ended. */
export type Run = { script: string; cwd?: string; result: Result; output: string; notes: string[]; only?: string };

const maxNames = 10;
const maxWords = 90;
const maxDetailChars = 160;

const words = (text: string): number => text.split(/\s+/).filter(Boolean).length;

/** Text as a code span, whatever it holds: names of tests and files are not Markdown. */
export function code(text: string): string {
  const line = text.replace(/\s*\n\s*/g, " ⏎ ").trim();
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map((ticks) => ticks[0].length));
  const fence = "`".repeat(longest + 1);
  const pad = line.startsWith("`") || line.endsWith("`") ? " " : "";
  return line === "" ? "` `" : `${fence}${pad}${line}${pad}${fence}`;
}

/** Lines as a fenced block within the room for words; the last ones are kept. */
function block(lines: readonly string[], room = maxWords - 30): string {
  const kept: string[] = [];
  let used = 0;
  for (const line of lines.toReversed()) {
    const short = excerpt(line, 200);
    used += words(short);
    if (kept.length > 0 && used > room) break;
    kept.unshift(short);
  }
  const longest = Math.max(2, ...kept.flatMap((line) => [...line.matchAll(/`+/g)].map((ticks) => ticks[0].length)));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${kept.join("\n")}\n${fence}`;
}

const shownScript = (run: Run): string => {
  const [first = "", ...more] = run.script.split("\n");
  return `${code(excerpt(first, 120))}${more.length > 0 ? ` (and ${more.length} more lines)` : ""}${run.cwd ? ` in ${code(run.cwd)}` : ""}`;
};

const answer = (outcome: JobAnswer["outcome"], confidence: number, ...parts: string[]): JobAnswer => ({
  outcome,
  confidence,
  text: parts.filter((part) => part !== "").join("\n\n"),
});

const exitWords = (result: Result): string => (result.exit === null ? (result.reason ?? "a signal ended it") : `exit ${result.exit}`);

/** Anything but an ordinary end, said as it is; null for an ordinary end. */
export function unusualEnd(run: Run): JobAnswer | null {
  const { result } = run;
  const what = shownScript(run);
  const reason = result.reason ? ` ${result.reason}` : "";
  const soFar = run.output.trim() === "" ? "It had written nothing." : `Its last lines:\n${block(lastLines(run.output, 6), 40)}`;
  switch (result.outcome) {
    case "exited":
      return null;
    case "stopped":
      return answer("failed", 0.9, `${what} was stopped before its end, so its outcome is not known.${reason}`, soFar);
    case "timed_out":
      return answer("failed", 0.9, `${what} did not end within its time and was stopped.`, soFar);
    case "refused":
      return answer("blocked", 0.9, `${what} was refused on the machine:${reason || " no reason was given."}`);
    case "expired":
      return answer("failed", 0.9, `${what} did not run: the machine was offline for too long.${reason}`);
    case "void":
      return answer("failed", 0.9, `${what} did not run: it belonged to something that was stopped.${reason}`);
    case "outcome_unknown":
      return answer(
        "failed",
        0.9,
        `${what} was started, but nobody saw its end: it may have had its effect. I did not run it again.${reason}`,
        soFar,
      );
    default:
      return answer("failed", 0.5, `${what} ended as “${result.outcome}”.${reason}`);
  }
}

/** What a run of tests showed. */
export function testAnswer(run: Run, machine: string): JobAnswer {
  const unusual = unusualEnd(run);
  if (unusual) return unusual;
  const results = readResults(run.output, run.result.exit);
  const what = shownScript(run);
  const where = ` on ${machine}`;
  if (results.failed.length === 0) {
    const missing = results.runner === null || results.failedCount === 0 ? missingAnswer(run) : null;
    if (missing && !results.passed) return missing;
  }
  const end = exitWords(run.result);
  if (run.result.exit === 0 && results.failedCount === 0) {
    // A filter that fits nothing ends well everywhere; nothing was tested.
    const ranNone = results.passed === 0 || (results.passed === undefined && results.summary.includes("skipped"));
    if (ranNone && run.only)
      return answer(
        "failed",
        0.9,
        `No test matches “${run.only}”: ${what}${where} ran none (${end}). Did you mean *run the tests*?`,
        ...run.notes,
      );
    if (ranNone) return answer("failed", 0.8, `No tests ran: ${what}${where} ended well (${end}), but ran none.`, ...run.notes);
    if (results.passed !== undefined)
      return answer(
        "done",
        0.9,
        `${results.passed === 1 ? "The one test passes" : `All ${results.passed} tests pass`}: ${what}${where} (${end}${skippedOf(results.summary)}).`,
        ...run.notes,
      );
    return answer(
      "done",
      0.9,
      `${what}${where} passed (${end}). It names no counts; its last lines:`,
      block(lastLines(run.output, 6), 40),
      ...run.notes,
    );
  }
  if (results.failedCount === 0)
    return answer(
      "done",
      0.8,
      `${what}${where} failed (${end}), but its output names no failing test. Its last lines:`,
      block(lastLines(run.output, 10)),
      ...run.notes,
    );
  const counted = results.summary;
  const head = `${what}${where}: ${counted} (${end}).`;
  if (results.failed.length === 0)
    return answer("done", 0.8, `${head} The output names none of them; its last lines:`, block(lastLines(run.output, 10)), ...run.notes);
  return answer(
    "done",
    0.9,
    head,
    failures(results, maxWords - words(head) - run.notes.reduce((sum, note) => sum + words(note), 0)),
    ...run.notes,
  );
}

const skippedOf = (summary: string): string => /(, \d+ skipped)/.exec(summary)?.[1] ?? "";

/** Names first: details give way to names when there is no room for both. */
function failures(results: TestResults, room: number): string {
  const shown = results.failed.slice(0, maxNames);
  const names = shown.map((failure) => `- ${code(excerpt(failure.name, 200))}`);
  let left = room - names.reduce((sum, line) => sum + words(line), 0);
  const lines = shown.map((failure, i) => {
    const detail = failure.detail ? `: ${code(excerpt(failure.detail, maxDetailChars))}` : "";
    left -= words(detail);
    return left >= 0 ? `${names[i]}${detail}` : (names[i] ?? "");
  });
  const more = Math.max(results.failedCount, results.failed.length) - shown.length;
  return [...lines, ...(more > 0 ? [`- and ${results.partial ? "at least " : ""}${more} more`] : [])].join("\n");
}

const installHints: [pattern: RegExp, hint: string][] = [
  [
    /^(?:npm|npx|node|pnpm|yarn|bun|deno|cargo|go|make|just|task|git|docker|php|ruby|java|mvn|gradle|python3?)$/,
    "It has to be installed on the machine, and be on the PATH of the daemon.",
  ],
  [
    /^(?:vitest|jest|mocha|ava|eslint|tsc|prettier|biome|webpack|vite|rollup|esbuild|turbo|nx|tsx|ts-node|c8|nyc|tap)$/,
    "The project's dependencies are missing: run `npm ci` (or `npm install`) in the workspace first.",
  ],
  [
    /^(?:pytest|tox|nox|mypy|ruff|flake8)$/,
    "Install it on the machine, for example `python3 -m pip install -r requirements.txt` or `pip install pytest`.",
  ],
  [/^(?:rspec|rake|rubocop|bundler|minitest)$/, "The gems are missing: run `bundle install` first."],
  [/phpunit/, "The packages are missing: run `composer install` first."],
];

/** The runner itself is not there: that is no result of the tests. */
function missingAnswer(run: Run): JobAnswer | null {
  const missing = missingTool(run.output, run.result.exit);
  if (missing === null) return null;
  const python = /No module named|ModuleNotFoundError/.test(run.output);
  const hint =
    installHints.find(([pattern]) => pattern.test(missing.tool))?.[1] ??
    (missing.kind === "dependency"
      ? python
        ? "Install the project's Python dependencies first."
        : "The project's dependencies are missing: run `npm ci` (or `npm install`) in the workspace first."
      : "It has to be there on the machine before this can work.");
  const name = missing.tool === "the command" ? "a program" : code(missing.tool);
  return answer(
    "failed",
    0.9,
    `${shownScript(run)} could not do its work (${exitWords(run.result)}): ${name} is missing. ${hint}`,
    block(lastLines(run.output, 4), 30),
  );
}

const purposeDone: Record<Exclude<Purpose, "test">, [good: string, bad: string]> = {
  build: ["The build succeeds", "The build fails"],
  lint: ["The linter finds nothing wrong", "The linter complains"],
  typecheck: ["The types are right", "The type check fails"],
};

/** What a build, a linter or a type check showed. */
export function checkAnswer(run: Run, machine: string, purpose: Exclude<Purpose, "test">): JobAnswer {
  const unusual = unusualEnd(run) ?? (run.result.exit === 0 ? null : missingAnswer(run));
  if (unusual) return unusual;
  const [good, bad] = purposeDone[purpose];
  const what = `${shownScript(run)} on ${machine} (${exitWords(run.result)})`;
  if (run.result.exit === 0) return answer("done", 0.9, `${good}: ${what}.`, ...run.notes);
  const errors = errorLines(run.output);
  const shown = errors.length > 0 ? errors.slice(0, maxNames) : lastLines(run.output, 12);
  const more = errors.length > shown.length ? `And ${errors.length - shown.length} more.` : "";
  return answer("done", 0.9, `${bad}: ${what}.`, shown.length > 0 ? block(shown) : "It wrote nothing.", more, ...run.notes);
}

/** What a command that a person spelled out printed. When it was a test runner, its results are read. */
export function commandAnswer(run: Run, machine: string): JobAnswer {
  const unusual = unusualEnd(run);
  if (unusual) return unusual;
  const results = readResults(run.output, run.result.exit);
  if (results.runner !== null) return testAnswer(run, machine);
  if (run.result.exit !== 0) {
    const missing = run.result.exit === 127 ? missingAnswer(run) : null;
    if (missing) return missing;
  }
  const what = `${shownScript(run)} on ${machine}`;
  // What went wrong is said in the first words: they are the card's line.
  const end = exitWords(run.result);
  const head = run.result.exit === 0 ? `${what} ended with ${end}` : `${end.charAt(0).toUpperCase()}${end.slice(1)}: ${what} failed`;
  const lines = plainLines(run.output).filter((line) => line.trim() !== "");
  if (lines.length === 0) return answer("done", 0.9, `${head} and printed nothing.`, ...run.notes);
  if (run.result.exit !== 0 && results.failed.length > 0)
    return answer("done", 0.9, `${head}. What it marks as failed:`, failures(results, maxWords - words(head)), ...run.notes);
  const shown = run.result.exit === 0 ? lines.slice(-20) : lastLines(run.output, 12);
  return answer(
    "done",
    0.9,
    `${head}${lines.length > shown.length ? `; ${lines.length} lines, the last:` : ":"}`,
    block(shown),
    ...run.notes,
  );
}

/** Lines that are the answer themselves: matches, files, commits. */
export function linesAnswer(head: string, lines: readonly string[], limit: number, room = maxWords): JobAnswer {
  const kept: string[] = [];
  let used = words(head);
  for (const line of lines.slice(0, limit)) {
    const short = excerpt(line, 160);
    used += words(short);
    if (kept.length > 0 && used > room) break;
    kept.push(short);
  }
  const more = lines.length - kept.length;
  return answer(
    "done",
    0.9,
    head,
    kept.length > 0 ? block(kept, room) : "",
    more > 0 ? `And ${more} more ${more === 1 ? "line" : "lines"}.` : "",
  );
}

export const blocked = (text: string): JobAnswer => answer("blocked", 0.9, text);
export const failed = (text: string): JobAnswer => answer("failed", 0.9, text);
export const done = (...parts: string[]): JobAnswer => answer("done", 0.9, ...parts);
