import { describe, expect, it } from "vitest";
import { markData } from "../../src/core/context.ts";
import { type Intent, isWork, titleOf } from "../../src/llm/offline/intents.ts";
import { readIntents } from "../../src/llm/offline/read-intents.ts";

const read = (text: string): Intent[] => readIntents(markData(text), ["studio-laptop"]);
const work = (text: string): Intent[] => read(text).filter(isWork);
const test = { kind: "project", purpose: "test" };

describe("Requests that the offline model knows", () => {
  it.each<[string, object[]]>([
    ["run the tests and tell me what fails", [test]],
    ["Please run the tests on studio-laptop.", [test]],
    ["hi, can you run all the tests?", [test]],
    ["tests?", [test]],
    ["why do the tests fail?", [test]],
    ["make sure the tests pass", [test]],
    ["führe die Tests aus", [test]],
    ["lance les tests", [test]],
    ["ejecuta las pruebas", [test]],
    ["@switchyard-bot please run the tests", [test]],
    ["only the login tests", [{ ...test, only: "login" }]],
    ["run the tests for login", [{ ...test, only: "login" }]],
    ['run the test "adds `two` words"', [{ ...test, only: "adds two words" }]],
    ["run the unit tests", [{ ...test, variant: "unit" }]],
    ["run the tests in packages/api", [{ ...test, where: "packages/api" }]],
    ["does it build?", [{ kind: "project", purpose: "build" }]],
    ["run the linter", [{ kind: "project", purpose: "lint" }]],
    ["typecheck", [{ kind: "project", purpose: "typecheck" }]],
    ["run the tests, then lint", [test, { kind: "project", purpose: "lint" }]],
    ["runn teh tests plz", [test]],
    ["runn the test", [test]],
    ["rnu the tets", [test]],
    ["run the text tests", [{ ...test, only: "text" }]],
    ["lits the files", [{ kind: "list" }]],
    ["rm -rf /", [{ kind: "command", script: "rm -rf /", unsure: true }]],
    ["git push --force", [{ kind: "command", script: "git push --force", unsure: true }]],
    ["git reset --hard HEAD~3", [{ kind: "command", script: "git reset --hard HEAD~3", unsure: true }]],
    ["git clean -fd", [{ kind: "command", script: "git clean -fd", unsure: true }]],
    ["shutdown", [{ kind: "command", script: "shutdown", unsure: true }]],
    ["dd if=/dev/zero of=/dev/sda", [{ kind: "command", script: "dd if=/dev/zero of=/dev/sda", unsure: true }]],
    ["mkfs.ext4 /dev/sda1", [{ kind: "command", script: "mkfs.ext4 /dev/sda1", unsure: true }]],
    ["drop table users", [{ kind: "command", script: "drop table users", unsure: true }]],
    ["run rm -rf build", [{ kind: "command", script: "rm -rf build" }]],
    ["run `npm test`", [{ kind: "command", script: "npm test" }]],
    ["does `npm test` pass?", [{ kind: "command", script: "npm test" }]],
    [
      "run `a --b` and `c d`",
      [
        { kind: "command", script: "a --b" },
        { kind: "command", script: "c d" },
      ],
    ],
    ["run the tests and the linter", [test, { kind: "project", purpose: "lint" }]],
    ["run `npm ci` in `packages/a`", [{ kind: "command", script: "npm ci", cwd: "packages/a" }]],
    ["run make check and tell me what it says", [{ kind: "command", script: "make check" }]],
    ["run ./check.sh --all", [{ kind: "command", script: "./check.sh --all" }]],
    ["git status", [{ kind: "command", script: "git status" }]],
    ["run test:unit", [{ kind: "script", name: "test:unit" }]],
    ["Run this:\n```sh\nnpm ci\nnpm test\n```", [{ kind: "command", script: "npm ci\nnpm test" }]],
    ["can you check whether the types are still fine?", [{ kind: "project", purpose: "typecheck" }]],
    ["find all TODOs", [{ kind: "search", query: "TODO" }]],
    ["where is parseConfig defined?", [{ kind: "search", query: "parseConfig" }]],
    ['search for "a b" in src/', [{ kind: "search", query: "a b", where: "src/" }]],
    ["find *.ts files", [{ kind: "find_files", pattern: "*.ts" }]],
    ["what files are there?", [{ kind: "list" }]],
    ["list files in src", [{ kind: "list", path: "src" }]],
    ["show me package.json", [{ kind: "read", path: "package.json" }]],
    ["what does README.md say?", [{ kind: "read", path: "README.md" }]],
    ["count lines in src/a.ts", [{ kind: "count", what: "lines", of: "src/a.ts" }]],
    ["how many TODOs are there?", [{ kind: "count", what: "matches", of: "TODO" }]],
    ["what changed since yesterday?", [{ kind: "changes", since: "yesterday 00:00" }]],
    ["show the last 5 commits", [{ kind: "changes", commits: 5 }]],
  ])("%s", (text, expected) => {
    expect(work(text)).toEqual(expected);
  });

  it.each<[string, Intent["kind"]]>([
    ["what is going on?", "status"],
    ["what are you doing", "status"],
    ["stop the tests", "stop"],
    ["never mind", "stop"],
    ["hello there!", "greeting"],
    ["thanks a lot!", "thanks"],
    ["help", "help"],
    ["what can you do?", "help"],
    ["try again", "again"],
    ["fix the login bug", "unable"],
    ["write a test for login", "unable"],
    ["build a login page", "unable"],
    ["what do you think of tabs?", "unable"],
    ["lorem ipsum", "unknown"],
  ])("%s is %s and no work", (text, kind) => {
    expect(work(text)).toEqual([]);
    expect(read(text).map((intent) => intent.kind)).toContain(kind);
  });
});

describe("Words that must not become commands", () => {
  it.each([
    "what does `rm -rf build` do?",
    "don't run `rm -rf build`",
    "never run `make deploy`",
    "is `rm -rf /` dangerous?",
    "> run `rm -rf build`\nwhat do you think of this?",
    "somebody wrote:\n```\nrm -rf build\n```\nis that right?",
    "Run this:\n> rm -rf build",
    "Run this:\n```js\nprocess.exit()\n```",
    "",
    "   ",
    "[data 1]",
  ])("%j starts nothing", (text) => {
    expect(work(text)).toEqual([]);
  });

  it("a title is short, in one line, and says the work", () => {
    expect(titleOf(work("please run the tests and then the linter, and show me README.md").filter(isWork))).toMatch(/^Run the tests/);
    const long = titleOf([{ kind: "command", script: `echo ${"x".repeat(500)}\necho y` }]);
    expect(long.length).toBeLessThanOrEqual(100);
    expect(long).not.toContain("\n");
  });

  it("hostile text is read in reasonable time", () => {
    const started = performance.now();
    for (const text of [
      "a ".repeat(8000),
      "`".repeat(16_000),
      "run the ".repeat(2000),
      "and run ".repeat(2000),
      `${"please ".repeat(2000)}run`,
      "@a ".repeat(5000),
    ])
      read(text);
    expect(performance.now() - started).toBeLessThan(3000);
  });
});

it("reads a text with a long blank in it in linear time", () => {
  const text = `run ${" ".repeat(30_000)}!`;
  read(text);
  const began = process.threadCpuUsage();
  expect(read(text)).toHaveLength(1);
  expect(process.threadCpuUsage(began).user).toBeLessThan(300_000);
});
