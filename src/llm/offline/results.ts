// Reads the output of a command: what failed by name, how much passed, and what is worth showing when no test runner is recognised.
import type { Failure, Reading } from "./readers/reading.ts";
import { readers } from "./readers/registry.ts";
import { tap } from "./readers/tap.ts";

export type TestResults = {
  /** Null when no runner was recognised; then `failed` holds lines that look like failures. */
  runner: string | null;
  failed: Failure[];
  /** What the runner counted; it may be more than were named. */
  failedCount: number;
  passed?: number;
  /** Counted line by line in an output that was shortened: there may be more. */
  partial: boolean;
  /** `1 failed, 2 passed`, or the exit code when nothing was counted. */
  summary: string;
};

const ansi = new RegExp(
  `${String.fromCharCode(27)}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${String.fromCharCode(7)}]*(?:${String.fromCharCode(7)})|[()][A-Z0-9]|[=>])`,
  "g",
);

/** Output as lines of plain text: no colours, and only the last state of a line that was rewritten. */
export const plainLines = (output: string): string[] =>
  output
    .replace(ansi, "")
    .replace(/\r\n/g, "\n")
    .split("\n")
    .map((line) => line.slice(line.lastIndexOf("\r") + 1).trimEnd());

/** Where a long output was shortened for the model. */
export const cutMark = /\n\[… .*? left out here; recall \S+ has all of it …\]\n/;

/** What a test run's output says. It claims nothing that the output does not show; the exit code stays the truth. */
export function readResults(output: string, exitCode: number | null): TestResults {
  const lines = plainLines(output);
  const readings = readers.flatMap((reader) => {
    const found = reader.read(lines);
    return found ? [{ runner: reader.runner, ...found }] : [];
  });
  if ((exitCode !== 0 && readings.every((reading) => reading.failedCount === 0 && reading.failed.length === 0)) || readings.length === 0) {
    const found = tap.read(lines);
    if (found && (found.failed.length > 0 || readings.length === 0)) readings.push({ runner: tap.runner, ...found });
  }
  // Runners count for themselves at the end; TAP and plain marks are counted here, by the lines that are shown.
  const partial = cutMark.test(output) && readings.every((reading) => reading.runner === tap.runner);
  if (readings.length > 0) return merged(readings, partial);
  const marked = markedLines(lines);
  const passed = marked.passed > 0 && !partial ? marked.passed : undefined;
  return {
    runner: null,
    failed: marked.failed,
    failedCount: marked.failed.length,
    ...(passed === undefined ? {} : { passed }),
    partial,
    summary: summaryOf(marked.failed.length, passed, 0, exitCode, partial),
  };
}

function merged(readings: Reading[], partial: boolean): TestResults {
  const failed = readings.flatMap((reading) => reading.failed);
  const failedCount = Math.max(
    failed.length,
    readings.reduce((sum, reading) => sum + reading.failedCount, 0),
  );
  const known = readings.filter((reading) => reading.passed !== undefined);
  const passed = known.length === 0 || partial ? undefined : known.reduce((sum, reading) => sum + (reading.passed ?? 0), 0);
  const skipped = readings.reduce((sum, reading) => sum + (reading.skipped ?? 0), 0);
  return {
    runner: readings.map((reading) => reading.runner).join(" and "),
    failed,
    failedCount,
    ...(passed === undefined ? {} : { passed }),
    partial,
    summary: summaryOf(failedCount, passed, partial ? 0 : skipped, null, partial),
  };
}

function summaryOf(failed: number, passed: number | undefined, skipped: number, exitCode: number | null, partial: boolean): string {
  const parts = [
    ...(failed > 0 || passed !== undefined ? [`${partial ? "at least " : ""}${failed} failed`] : []),
    ...(passed === undefined ? [] : [`${passed} passed`]),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ];
  return parts.length > 0 ? parts.join(", ") : exitCode === null ? "no counts" : `exit ${exitCode}`;
}

const failMark = /^\s*(?:not ok\b(?:\s+\d+)?(?:\s*-)?|\[?FAIL(?:ED|URE)?\b\]?\s*[:\-–—]?|(?:✗|✘|✖|×|❌)\s)\s*(.+)$/u;
const passMark = /^\s*(?:ok\b(?:\s+\d+)?(?:\s*-)?|\[?(?:PASS(?:ED)?|OK)\b\]?\s*[:\-–—]?|(?:✓|✔|✅)\s)\s*(.+)$/u;

/** Plain scripts: `FAIL: name`, `not ok name`, `✗ name`. Of a summary (`FAILED 2 of 3`) the words count as none. */
function markedLines(lines: readonly string[]): { failed: Failure[]; passed: number } {
  const failed: Failure[] = [];
  let passed = 0;
  lines.forEach((line, i) => {
    const name = failMark.exec(line)?.[1];
    if (name !== undefined && !/^\(?(?:\d+\s*(?:$|of|\/|tests?|failures?|errors?)|tests?$|\W*$|failures?=)/i.test(name)) {
      const next = lines[i + 1] ?? "";
      const indented = next.length - next.trimStart().length > line.length - line.trimStart().length;
      const detail = indented ? next.trim().replace(/^#\s*/, "") : "";
      failed.push(detail ? { name: name.trim(), detail } : { name: name.trim() });
    } else if (passMark.test(line)) passed += 1;
  });
  return { failed, passed };
}

/** The last lines that hold anything, for people: what `make` says about itself is left out where more was said. */
export function lastLines(output: string, count: number): string[] {
  const lines = plainLines(output).filter((line) => line.trim() !== "");
  const own = lines.filter(
    (line) =>
      !/^make(?:\[\d+\])?: (?:\*\*\*|Entering|Leaving)|^npm (?:ERR!|error) (?:Lifecycle|A complete log|code|path|command)|^error Command failed|^info Visit /.test(
        line,
      ),
  );
  return (own.length > 0 ? own : lines).slice(-count);
}

/** Lines of a compiler or linter that are errors. */
export const errorLines = (output: string): string[] =>
  plainLines(output).filter((line) =>
    /\berror(?:\[\w+\])?:|\berror TS\d+:|^\s*\d+:\d+\s+error\s|: fatal error|^\s*(?:Syntax|Type|Reference|Module\w*)Error:|^E\s{2,}/i.test(
      line,
    ),
  );

export type Missing = { tool: string; kind: "program" | "dependency" | "file" };

/** The command could not do its work because something is not installed; null when it ran. */
export function missingTool(output: string, exitCode: number | null): Missing | null {
  if (exitCode === 0) return null;
  const text = plainLines(output).join("\n");
  const module =
    /(?:Cannot find (?:module|package) ['"]([^'"./][^'"]*)['"])|(?:No module named ['"]?([\w.]+)['"]?)|(?:cannot load such file -- ([\w/-]+))|(?:Could not find (?:gem )?['"]([\w-]+)['"])/.exec(
      text,
    );
  const program =
    /(?:^|\n)(?:[^\n:]*(?:sh|bash|zsh|dash)(?:\.exe)?: )?(?:(?:line )?\d+: )?([\w./@+-]+): (?:command )?not found/.exec(text) ??
    /(?:^|\n)(?:make(?:\[\d+\])?|env|nohup|exec): ['‘“]?([\w./@+-]+)['’”]?: No such file or directory/.exec(text) ??
    /error: command (\S+) not found/i.exec(text);
  const tool = program?.[1] ?? module?.slice(1).find((part) => part !== undefined);
  if (tool === undefined) return exitCode === 127 ? { tool: "the command", kind: "program" } : null;
  if (program === null) return { tool, kind: "dependency" };
  return { tool, kind: tool.includes("/") ? "file" : "program" };
}
