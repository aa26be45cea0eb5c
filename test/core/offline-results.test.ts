import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { errorLines, lastLines, missingTool, readResults } from "../../src/llm/offline/results.ts";

const fixture = (name: string): string => readFileSync(path.join(import.meta.dirname, "../fixtures/runner-output", `${name}.txt`), "utf8");
const names = (output: string, exit = 1): string[] => readResults(output, exit).failed.map((failure) => failure.name);

describe("Outputs of real runners", () => {
  const recorded: [file: string, runner: string, failed: string[], passed: number][] = [
    ["node-spec", "node:test", ["counts the edge case 7f3a"], 2],
    ["node-spec-nested", "node:test", ['fails "quoted" ünï # hash', "throws"], 1],
    ["node-tap-nested", "TAP", ['fails "quoted" ünï # hash', "throws"], 1],
    ["shell-tap", "TAP", ["counts the edge case 7f3a"], 2],
    ["vitest", "vitest", ["b.test.ts", 'calc > fails > with "quotes" ünï'], 1],
    ["jest", "jest", ['calc › fails with "quotes"', "calc › throws", "jt/b.test.js (failed to run)"], 1],
    ["mocha", "mocha", ["calc fails: with colon", "calc deep throws"], 1],
    ["pytest", "pytest", ["test_p.py::test_bad[a b - c]", "test_p.py::test_bad[d]e]", "test_p.py::test_err"], 1],
    ["unittest", "unittest", ["test_a.TestA.test_err", "test_a.TestA.test_bad"], 1],
    ["cargo", "cargo test", ["tests::bad_eq"], 1],
    ["prove", "prove", ["bad one"], 1],
  ];
  for (const [file, runner, failed, passed] of recorded) {
    it(`${file}: exactly the failing tests are named, although the tests print names of other tests`, () => {
      const results = readResults(fixture(file), 1);
      expect({ runner: results.runner, failed: results.failed.map((each) => each.name), passed: results.passed }).toEqual({
        runner,
        failed,
        passed,
      });
      expect(results.failedCount).toBe(failed.length);
      expect(results.failed.every((each) => file === "shell-tap" || (each.detail ?? "").length > 3)).toBe(true);
    });
  }

  it("the assertion is told with the name", () => {
    expect(readResults(fixture("node-spec"), 1).failed[0]?.detail).toContain("4.3 !== 4.1");
    expect(readResults(fixture("jest"), 1).failed[0]?.detail).toBe("Expected: 2, Received: 1");
    expect(readResults(fixture("cargo"), 101).failed[0]?.detail).toContain("left: 1, right: 2");
    expect(readResults(fixture("shell-tap"), 1).failed[0]?.detail).toBe("expected 2, got 1");
  });
});

describe("Forms of other runners", () => {
  it("go test: the leaf is named, not its parents, and a package that does not build is a failure", () => {
    const output = [
      "=== RUN   TestAdds",
      "=== RUN   TestAdds/two_and_two",
      "    add_test.go:8: got 5, want 4",
      "--- FAIL: TestAdds (0.00s)",
      "    --- FAIL: TestAdds/two_and_two (0.00s)",
      "        add_test.go:8: got 5, want 4",
      "--- PASS: TestSubs (0.00s)",
      "FAIL",
      "FAIL\texample.com/a\t0.002s",
      "FAIL\texample.com/b [build failed]",
      "ok  \texample.com/c\t0.003s",
    ].join("\n");
    const results = readResults(output, 1);
    expect(results.failed).toEqual([
      { name: "TestAdds/two_and_two", detail: "add_test.go:8: got 5, want 4" },
      { name: "example.com/b (does not build)" },
    ]);
    expect(results.passed).toBe(1);
  });

  it("rspec: the list at the end names them", () => {
    const output =
      "Failures:\n\n  1) Calc adds\n     Failure/Error: expect(1).to eq 2\n\n       expected: 2\n            got: 1\n\nFinished in 0.01 seconds\n2 examples, 1 failure, 1 pending\n\nFailed examples:\n\nrspec ./spec/calc_spec.rb:3 # Calc adds\n";
    expect(readResults(output, 1)).toMatchObject({
      runner: "rspec",
      failed: [{ name: "Calc adds", detail: "expect(1).to eq 2" }],
      failedCount: 1,
      passed: 0,
    });
  });

  it("phpunit: failures and errors are counted together", () => {
    const output =
      "There was 1 failure:\n\n1) Tests\\CalcTest::testAdds with data set #1\nFailed asserting that 1 matches expected 2.\n\nFAILURES!\nTests: 3, Assertions: 3, Failures: 1.\n";
    expect(readResults(output, 1)).toMatchObject({
      failed: [{ name: "Tests\\CalcTest::testAdds with data set #1", detail: "Failed asserting that 1 matches expected 2." }],
      passed: 2,
    });
    expect(readResults("OK (3 tests, 5 assertions)\n", 0)).toMatchObject({ runner: "phpunit", failedCount: 0, passed: 3 });
  });

  it("minitest, Gradle, Maven, deno and bun are read", () => {
    expect(
      names(
        "  1) Failure:\nCalcTest#test_adds [test/calc.rb:5]:\nExpected: 2\n  Actual: 1\n\n2 runs, 2 assertions, 1 failures, 0 errors, 0 skips\n",
      ),
    ).toEqual(["CalcTest#test_adds"]);
    expect(
      names(
        "CalcTest > adds() FAILED\n    org.opentest4j.AssertionFailedError: expected: <2> but was: <1>\n\n2 tests completed, 1 failed\n",
      ),
    ).toEqual(["CalcTest > adds()"]);
    expect(
      names(
        "[ERROR] Failures: \n[ERROR]   CalcTest.adds:10 expected: <2> but was: <1>\n[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n",
      ),
    ).toEqual(["CalcTest.adds"]);
    expect(
      names(
        "running 2 tests from ./a_test.ts\nadds ... ok (1ms)\nfails ... FAILED (2ms)\n\n ERRORS \n\nfails => ./a_test.ts:5:6\nerror: AssertionError: Values are not equal.\n\n FAILURES \n\nfails => ./a_test.ts:5:6\n\nFAILED | 1 passed | 1 failed (5ms)\n",
      ),
    ).toEqual(["fails"]);
    expect(
      names(
        "a.test.ts:\nerror: expect(received).toBe(expected)\n(fail) calc > adds [0.10ms]\n\n 1 pass\n 1 fail\nRan 2 tests across 1 files. [8.00ms]\n",
      ),
    ).toEqual(["calc > adds"]);
  });

  it("bats speaks TAP, with where before what", () => {
    const output =
      '1..2\nok 1 adds\nnot ok 2 handles `ticks` and $(rm -rf /)\n# (in test file t/a.bats, line 5)\n#   `[ "$x" -eq 3 ]\' failed\n';
    expect(readResults(output, 1)).toMatchObject({
      runner: "TAP",
      failed: [{ name: "handles `ticks` and $(rm -rf /)", detail: '`[ "$x" -eq 3 ]\' failed' }],
      passed: 1,
    });
  });

  it("TAP: a todo that fails is no failure, a skipped one is not passed", () => {
    expect(
      readResults("TAP version 13\nnot ok 1 - later # TODO not yet\nok 2 - other # SKIP no network\nok 3 - fine\n1..3\n", 0),
    ).toMatchObject({ failedCount: 0, passed: 1, summary: "0 failed, 1 passed, 1 skipped" });
  });
});

describe("Outputs that no runner claims", () => {
  it("a plain script's marks are read, a summary's words are not", () => {
    const output = 'PASS: adds\nFAIL: joins "a b"\n   expected 3, got 4\n✗ söüß 日本\nFAILED 2 of 3 tests\nFAILED: 2\n';
    const results = readResults(output, 1);
    expect(results.runner).toBeNull();
    expect(results.failed).toEqual([{ name: 'joins "a b"', detail: "expected 3, got 4" }, { name: "söüß 日本" }]);
    expect(results.passed).toBe(1);
  });

  it("nothing recognisable gives the exit code and no claim", () => {
    expect(readResults("Segmentation fault\n", 139)).toEqual({
      runner: null,
      failed: [],
      failedCount: 0,
      partial: false,
      summary: "exit 139",
    });
    expect(readResults("", 0)).toEqual({ runner: null, failed: [], failedCount: 0, partial: false, summary: "exit 0" });
  });

  it("colours and rewritten lines are taken away", () => {
    expect(readResults("\u001b[31mFAIL:\u001b[0m \u001b[1mbold name\u001b[22m\nprogress 1%\rprogress 100%\n", 1).failed).toEqual([
      { name: "bold name" },
    ]);
    expect(lastLines("a\rb\n\nmake: *** [Makefile:3: test] Error 1\n", 5)).toEqual(["b"]);
  });

  it("two runners in one output are read together", () => {
    const both = readResults(`${fixture("pytest")}\n${fixture("vitest")}`, 1);
    expect(both.failedCount).toBe(5);
    expect(both.runner).toBe("vitest and pytest");
  });

  it("when the recognised runner is content and the exit code is not, what else is marked is looked at", () => {
    expect(names("ℹ tests 1\nℹ suites 0\nℹ pass 1\nℹ fail 0\n1..1\nnot ok 1 - in shell\n")).toEqual(["in shell"]);
  });

  it("of a shortened output, lines that were counted are not all: it says at least", () => {
    const mark = "[… 900 characters or more are left out here; recall cmd_a-b has all of it …]";
    expect(readResults(`1..9\nok 1 - a\nnot ok 2 - b\n${mark}\nok 9 - z\n`, 1)).toMatchObject({
      partial: true,
      summary: "at least 1 failed",
    });
    expect(readResults(`FAIL: b\n${mark}\nPASS: z\n`, 1)).toMatchObject({ partial: true, summary: "at least 1 failed" });
    expect(readResults(`ok 1 - a\n${mark}\nok 9 - z\n1..9\n`, 0).passed).toBeUndefined();
    expect(readResults(`${mark}\n${fixture("pytest")}`, 1)).toMatchObject({ partial: false, passed: 1 });
  });

  it("a very long output with hostile lines is read in reasonable time", () => {
    const started = performance.now();
    readResults(`${"FAIL ".repeat(2000)}\n${"=".repeat(5000)}\n${`${"a ".repeat(500)}\n`.repeat(500)}`, 1);
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

describe("A command that could not do its work", () => {
  it("names the missing program, dependency or file", () => {
    expect(missingTool("sh: 1: vitest: not found\n", 127)).toEqual({ tool: "vitest", kind: "program" });
    expect(missingTool("bash: line 1: cargo: command not found\n", 127)).toEqual({ tool: "cargo", kind: "program" });
    expect(missingTool("/usr/bin/python3: No module named pytest\n", 1)).toEqual({ tool: "pytest", kind: "dependency" });
    expect(missingTool("Error: Cannot find package 'vitest' imported from /project/a.js\n", 1)).toEqual({
      tool: "vitest",
      kind: "dependency",
    });
    expect(missingTool("make: bats: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n", 2)).toEqual({
      tool: "bats",
      kind: "program",
    });
  });

  it("is not assumed when it ended well, or when only a file of the project is not found", () => {
    expect(missingTool("sh: 1: vitest: not found\n", 0)).toBeNull();
    expect(missingTool("Error: Cannot find module './nope'\n", 1)).toBeNull();
  });

  it("compilers' errors are found", () => {
    expect(
      errorLines(
        "src/a.ts(3,5): error TS2322: Type 'x'\nok\nmain.c:3:1: error: expected ';'\nerror[E0308]: mismatched types\n  3:5  error  no-undef\n",
      ),
    ).toHaveLength(4);
  });
});
