// How the runners of other languages write down what failed.
import { countOf, failure, firstLine, last, number, type Reader, unique } from "./reading.ts";

export const pytest: Reader = {
  runner: "pytest",
  read(lines) {
    const summary = last(
      lines,
      /^=*\s*(?:(?:\d+ (?:failed|passed|errors?|skipped|deselected|warnings?|xfailed|xpassed)(?:, )?)+|no tests ran) in [\d.]+s/,
    );
    if (summary === undefined) return null;
    const from = lines.findLastIndex((line) => /^=+ short test summary info =+$/.test(line));
    const failed = lines.slice(Math.max(0, from)).flatMap((line) => {
      const match = /^(?:FAILED|ERROR) (\S+(?:\[.*?\])?)(?: - (.*))?$/.exec(line);
      return match ? [failure(match[1] ?? "", match[2])] : [];
    });
    return {
      failed,
      failedCount: countOf(summary, /failed/) + countOf(summary, /errors?/),
      passed: countOf(summary, /passed/),
      skipped: countOf(summary, /skipped/),
    };
  },
};

export const unittest: Reader = {
  runner: "unittest",
  read(lines) {
    const ran = last(lines, /^Ran \d+ tests? in [\d.]+s/);
    const verdict = last(lines, /^(?:OK|FAILED|NO TESTS RAN)(?: \(.*\))?$/);
    if (ran === undefined || verdict === undefined) return null;
    const failed = lines.flatMap((line, i) => {
      const name = /^(?:FAIL|ERROR): (.+)$/.exec(line)?.[1];
      if (name === undefined || !/^=+$/.test(lines[i - 1] ?? "")) return [];
      const end = lines.findIndex((other, j) => j > i + 2 && /^[=-]{20,}$/.test(other));
      return [
        failure(
          name.replace(/^(\S+) \((.*)\)$/, (whole, short: string, path: string) => (path.endsWith(short) ? path : whole)),
          lines
            .slice(i + 2, end < 0 ? undefined : end)
            .findLast((each) => /^\S+(?:Error|Exception|Failure)?\b.*:?/.test(each) && !/^Traceback/.test(each)),
        ),
      ];
    });
    const failedCount = [...verdict.matchAll(/(?:failures|errors)=(\d+)/g)].reduce((sum, match) => sum + number(match[1]), 0);
    const skipped = number(/skipped=(\d+)/.exec(verdict)?.[1]);
    return { failed, failedCount, passed: Math.max(0, number(/\d+/.exec(ran)?.[0]) - failedCount - skipped), skipped };
  },
};

export const goTest: Reader = {
  runner: "go test",
  read(lines) {
    if (!lines.some((line) => /^(?:FAIL|ok {2})\t\S+/.test(line))) return null;
    const named = lines.flatMap((line, i) => {
      const name = /^\s*--- FAIL: (.+?) \([\d.]+s\)$/.exec(line)?.[1];
      return name === undefined ? [] : [failure(name, firstLine(lines, i + 1, /^\s*--- |^(?:FAIL|ok|PASS)\b/, /^\s*$|^=== /))];
    });
    const failed = named.filter((one) => !named.some((other) => other.name.startsWith(`${one.name}/`)));
    const broken = lines
      .flatMap((line) => /^FAIL\t(\S+) \[(?:build|setup) failed\]$/.exec(line)?.[1] ?? [])
      .map((name) => ({ name: `${name} (does not build)` }));
    const passed = lines.filter((line) => /^\s*--- PASS: /.test(line)).length;
    return { failed: [...failed, ...broken], failedCount: failed.length + broken.length, ...(passed > 0 ? { passed } : {}) };
  },
};

/** Names stand in the list at the end of each crate; in the lines before it, tests may print anything. */
function cargoNames(lines: readonly string[]): string[] {
  const names: string[] = [];
  lines.forEach((line, at) => {
    if (line !== "failures:") return;
    for (let i = at + 1; /^ {4}\S/.test(lines[i] ?? ""); i++) names.push((lines[i] ?? "").trim());
  });
  return names.length > 0 ? names : lines.flatMap((line) => /^test (\S+) \.\.\. FAILED$/.exec(line)?.[1] ?? []);
}

export const cargo: Reader = {
  runner: "cargo test",
  read(lines) {
    const summaries = lines.filter((line) => /^test result: (?:ok|FAILED)\. /.test(line));
    if (summaries.length === 0) return null;
    const sum = (word: RegExp) => summaries.reduce((total, line) => total + countOf(line, word), 0);
    const failed = cargoNames(lines).map((name) => {
      const at = lines.indexOf(`---- ${name} stdout ----`);
      const panic = at < 0 ? -1 : lines.findIndex((other, i) => i > at && /panicked at/.test(other));
      const said = panic < 0 ? [] : lines.slice(panic + 1, panic + 4).map((each) => each.trim());
      return failure(name, said.filter((each, i) => i === 0 || /^(?:left|right):/.test(each)).join(", "));
    });
    return { failed, failedCount: sum(/failed/), passed: sum(/passed/), skipped: sum(/ignored/) };
  },
};

export const prove: Reader = {
  runner: "prove",
  read(lines) {
    const files = last(lines, /^Files=\d+, Tests=\d+/);
    if (files === undefined || !lines.some((line) => /^Result: (?:PASS|FAIL|NOTESTS)$/.test(line))) return null;
    const failed = lines.flatMap((line, i) => {
      const name = /^#\s+Failed test '(.*)'$/.exec(line)?.[1];
      if (name === undefined) return [];
      const said = lines.slice(i + 1, i + 5).flatMap((each) => /^#\s+((?:got|expected): .*)$/.exec(each)?.[1] ?? []);
      return [failure(name, said.join(", "))];
    });
    const failedCount = lines.reduce((sum, line) => sum + number(/\(Wstat: .* Failed: (\d+)\)$/.exec(line)?.[1]), 0);
    return { failed, failedCount, passed: Math.max(0, number(/Tests=(\d+)/.exec(files)?.[1]) - failedCount) };
  },
};

export const rspec: Reader = {
  runner: "rspec",
  read(lines) {
    const summary = last(lines, /^\d+ examples?, \d+ failures?/);
    if (summary === undefined) return null;
    const failed = lines.flatMap((line) => {
      const name = /^rspec \S+ # (.+)$/.exec(line)?.[1];
      if (name === undefined) return [];
      const at = lines.findIndex((other) => /^ {2}\d+\) /.test(other) && other.endsWith(name));
      const detail = at < 0 ? undefined : firstLine(lines, at + 1, /^ {2}\d+\) /, /^\s*$/)?.replace(/^Failure\/Error: /, "");
      return [failure(name, detail)];
    });
    const failedCount = countOf(summary, /failures?/) + countOf(summary, /errors? occurred/);
    return {
      failed,
      failedCount,
      passed: countOf(summary, /examples?/) - failedCount - countOf(summary, /pending/),
      skipped: countOf(summary, /pending/),
    };
  },
};

export const phpunit: Reader = {
  runner: "phpunit",
  read(lines) {
    const ok = /^OK(?:, but .*)? ?\(?(\d+) tests?/.exec(last(lines, /^OK \(\d+ tests?/) ?? "")?.[1];
    const summary = last(lines, /^Tests: \d+, Assertions: \d+/);
    if (ok !== undefined) return { failed: [], failedCount: 0, passed: number(ok) };
    if (summary === undefined) return null;
    const failed = lines.flatMap((line, i) => {
      const name = /^\d+\) (\S+::.+)$/.exec(line)?.[1];
      return name === undefined ? [] : [failure(name, firstLine(lines, i + 1, /^\d+\) /))];
    });
    const failedCount = countOf(summary, /Failures/) + countOf(summary, /Errors/);
    return {
      failed,
      failedCount,
      passed: countOf(summary, /Tests/) - failedCount - countOf(summary, /Skipped/),
      skipped: countOf(summary, /Skipped/),
    };
  },
};

export const minitest: Reader = {
  runner: "minitest",
  read(lines) {
    const summary = last(lines, /^\d+ (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors/);
    if (summary === undefined) return null;
    const failed = lines.flatMap((line, i) => {
      if (!/^\s*\d+\) (?:Failure|Error):$/.test(line)) return [];
      const name = (lines[i + 1] ?? "").replace(/ \[.*$/, "").replace(/:$/, "");
      return [
        failure(
          name,
          lines
            .slice(i + 2, i + 4)
            .map((each) => each.trim())
            .filter(Boolean)
            .join(", "),
        ),
      ];
    });
    const failedCount = countOf(summary, /failures/) + countOf(summary, /errors/);
    return {
      failed,
      failedCount,
      passed: countOf(summary, /runs|tests/) - failedCount - countOf(summary, /skips/),
      skipped: countOf(summary, /skips/),
    };
  },
};

export const jvm: Reader = {
  runner: "Gradle or Maven",
  read(lines) {
    const gradle = last(lines, /^\d+ tests? completed, \d+ failed/);
    if (gradle !== undefined) {
      const failed = lines.flatMap((line, i) => {
        const name = /^(\S.* > .+) FAILED$/.exec(line)?.[1];
        return name === undefined ? [] : [failure(name, firstLine(lines, i + 1, /^\S/))];
      });
      return { failed, failedCount: countOf(gradle, /failed/), passed: countOf(gradle, /tests? completed/) - countOf(gradle, /failed/) };
    }
    const maven = last(lines, /Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+\s*$/);
    if (maven === undefined) return null;
    const failed = lines.flatMap((line) => {
      const match = /^\[ERROR\] {3}(\S+?)(?::\d+)?(?: » | |:)(.*)$/.exec(line);
      return match ? [failure(match[1] ?? "", match[2])] : [];
    });
    const failedCount = countOf(maven, /Failures/) + countOf(maven, /Errors/);
    return {
      failed: unique(failed),
      failedCount,
      passed: countOf(maven, /Tests run/) - failedCount - countOf(maven, /Skipped/),
      skipped: countOf(maven, /Skipped/),
    };
  },
};
