// How the runners of JavaScript write down what failed.
import { countOf, type Failure, failure, firstLine, indentOf, last, number, type Reader, saidLine, unique } from "./reading.ts";

const durationMark = /\s+\([\d.]+m?s\)(?:\s+#.*)?$/;

export const nodeSpec: Reader = {
  runner: "node:test",
  read(lines) {
    const tests = lines.findLastIndex((line) => /^ℹ tests \d+$/.test(line));
    if (tests < 0) return null;
    const count = (word: string) =>
      number(
        last(lines.slice(tests), new RegExp(`^ℹ ${word} \\d+$`))
          ?.split(" ")
          .at(-1),
      );
    const heading = lines.findLastIndex((line) => /^✖ failing tests:$/.test(line));
    const failed: Failure[] = [];
    for (let i = heading < 0 ? 0 : heading + 1; i < (heading < 0 ? tests : lines.length); i++) {
      const name = /^\s*✖ (.+)$/.exec(lines[i] ?? "")?.[1];
      // Without the list at the end (cut output), a suite is a ✖ line of its own: it follows its tests, less indented.
      if (name === undefined || (heading < 0 && closesSuite(lines, i))) continue;
      failed.push(failure(name.replace(durationMark, ""), heading < 0 ? undefined : nodeDetail(lines, i + 1)));
    }
    return { failed: unique(failed), failedCount: count("fail") + count("cancelled"), passed: count("pass"), skipped: count("skipped") };
  },
};

/** With a message of the test's own, what was compared stands below it. */
function nodeDetail(lines: readonly string[], from: number): string | undefined {
  const said = saidLine(lines, from, /^(?:test at |✖ )/);
  const compared = lines
    .slice(from + 1, from + 6)
    .find((line) => /^ {2}\S.* !== \S/.test(line))
    ?.trim();
  return said === undefined || compared === undefined || said.includes(compared) ? said : `${said} (${compared})`;
}

function closesSuite(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? "";
  const title = line.trim().replace(/^✖ /, "").replace(durationMark, "");
  return lines.slice(0, at).some((before) => indentOf(before) === indentOf(line) && before.trim() === `▶ ${title}`);
}

export const vitest: Reader = {
  runner: "vitest",
  read(lines) {
    const summary = last(lines, /^\s+Tests\s+.*\(\d+\)/) ?? last(lines, /^\s*Test Files\s+.*\(\d+\)/);
    if (summary === undefined) return null;
    const failed: Failure[] = [];
    lines.forEach((line, i) => {
      const name = /^\s*FAIL\s+(?:\|[^|]+\| )?(.+)$/.exec(line)?.[1];
      if (name === undefined) return;
      const [file = "", ...path] = name.split(" > ");
      failed.push(
        failure(path.length > 0 ? path.join(" > ") : file.replace(/ \[ .* \]$/, ""), firstLine(lines, i + 1, /^⎯/, /^\s*(?:$|FAIL\s)/)),
      );
    });
    const files = last(lines, /^\s*Test Files\s+/) ?? "";
    return {
      failed: unique(failed),
      failedCount: countOf(summary, /failed/) || countOf(files, /failed/),
      passed: countOf(summary, /passed/),
      skipped: countOf(summary, /skipped/),
    };
  },
};

export const jest: Reader = {
  runner: "jest",
  read(lines) {
    const summary = last(lines, /^Tests:\s+.*\d+ total/) ?? last(lines, /^Test Suites:\s+.*\d+ total/);
    if (summary === undefined) return null;
    const failed: Failure[] = [];
    let file = "";
    lines.forEach((line, i) => {
      file = /^FAIL\s+(?:\S+ )?(\S+)/.exec(line)?.[1] ?? file;
      const name = /^ {2}● (.+)$/.exec(line)?.[1];
      if (name === undefined || name === "Console") return;
      const end = lines.findIndex((other, j) => j > i && /^ {2}● |^(?:PASS|FAIL) |^Test Suites:/.test(other));
      const block = lines.slice(i + 1, end < 0 ? undefined : end).map((each) => each.trim());
      const compared = block
        .filter((each) => /^(?:Expected|Received)\b.*:/.test(each))
        .slice(0, 2)
        .join(", ");
      failed.push(
        failure(name === "Test suite failed to run" ? `${file} (failed to run)` : name, compared || block.find((each) => each !== "")),
      );
    });
    return {
      failed: unique(failed),
      failedCount: countOf(summary, /failed/),
      passed: countOf(summary, /passed/),
      skipped: countOf(summary, /skipped/),
    };
  },
};

export const mocha: Reader = {
  runner: "mocha",
  read(lines) {
    const at = lines.findLastIndex((line) => /^\s+\d+ passing \(/.test(line));
    if (at < 0) return null;
    const tail = lines.slice(at);
    const failed: Failure[] = [];
    tail.forEach((line, i) => {
      const start = /^ {2}\d+\) (.+)$/.exec(line)?.[1];
      if (start === undefined) return;
      const title = [start];
      let next = i + 1;
      while (!title.at(-1)?.endsWith(":") && next < i + 12 && (tail[next] ?? "").trim() !== "") title.push((tail[next++] ?? "").trim());
      failed.push(failure(title.join(" ").replace(/:$/, ""), saidLine(tail, next, /^ {2}\d+\) /)));
    });
    return {
      failed,
      failedCount: countOf(last(tail, /\d+ failing/) ?? "", /failing/),
      passed: countOf(tail[0] ?? "", /passing/),
      skipped: countOf(last(tail, /\d+ pending/) ?? "", /pending/),
    };
  },
};

export const deno: Reader = {
  runner: "deno test",
  read(lines) {
    const summary = last(lines, /^(?:ok|FAILED) \| \d+ passed/);
    if (summary === undefined) return null;
    const from = lines.findIndex((line) => /^\s*ERRORS\s*$/.test(line));
    const failed = lines.flatMap((line, i) => {
      const name = from >= 0 && i > from ? /^(.+) => \S+:\d+:\d+$/.exec(line)?.[1] : undefined;
      return name === undefined ? [] : [failure(name, firstLine(lines, i + 1, /=> \S+:\d+:\d+$|^\s*FAILURES/)?.replace(/^error: /, ""))];
    });
    return {
      failed: unique(failed),
      failedCount: countOf(summary, /failed/),
      passed: countOf(summary, /passed/),
      skipped: countOf(summary, /ignored/),
    };
  },
};

export const bun: Reader = {
  runner: "bun test",
  read(lines) {
    const ran = last(lines, /^Ran \d+ tests? across \d+ files?/);
    if (ran === undefined) return null;
    const failed = lines.flatMap((line, i) => {
      const name = /^(?:\(fail\)|✗) (.+)$/.exec(line)?.[1];
      if (name === undefined) return [];
      const error = lines.slice(Math.max(0, i - 25), i).findLast((each) => /^error: /.test(each));
      return [failure(name.replace(/ \[[\d.]+m?s\]$/, ""), error?.replace(/^error: /, ""))];
    });
    return {
      failed,
      failedCount: countOf(last(lines, /^\s*\d+ fail$/) ?? "", /fail/),
      passed: countOf(last(lines, /^\s*\d+ pass$/) ?? "", /pass/),
    };
  },
};
