import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { type FileSpec, runFileCommand } from "../../daemon/files.ts";
import { globMatcher } from "../../daemon/glob.ts";
import { limits } from "../../src/protocol/limits.ts";
import { scratch } from "./scratch.ts";

let root: string;
let secret: string;

beforeEach(() => {
  const dir = scratch();
  root = join(dir, "work");
  mkdirSync(root);
  secret = join(dir, "secret");
  mkdirSync(secret);
  writeFileSync(join(secret, "key"), "hush\n");
});

type Loose = FileSpec extends infer T ? (T extends FileSpec ? Omit<T, "workspace"> : never) : never;
const run = (spec: Loose): Promise<string> =>
  runFileCommand(root, { workspace: "work", ...spec } as FileSpec, new AbortController().signal);

describe("paths", () => {
  test("a path that leaves the folder is refused, however it is written", async () => {
    symlinkSync(secret, join(root, "folder-link"));
    symlinkSync(join(secret, "key"), join(root, "file-link"));
    symlinkSync("../secret/key", join(root, "relative-link"));
    for (const path of [
      "../secret/key",
      join(secret, "key"),
      "folder-link/key",
      "file-link",
      "relative-link",
      "deep/../../secret/key",
      "/etc/passwd",
    ]) {
      await expect(run({ kind: "read_file", path }), path).rejects.toThrow(/leads out of the granted folder/);
      await expect(run({ kind: "write_file", path, content: "x" }), path).rejects.toThrow(/leads out of the granted folder/);
    }
    await expect(run({ kind: "write_file", path: "folder-link/new/file", content: "x" })).rejects.toThrow(/leads out/);
    await expect(run({ kind: "list_files", path: "folder-link" })).rejects.toThrow(/leads out/);
    await expect(run({ kind: "search_files", path: "folder-link", query: "hush" })).rejects.toThrow(/leads out/);
    await expect(run({ kind: "edit_file", path: "file-link", old: "hush", new: "x" })).rejects.toThrow(/leads out/);
    await expect(run({ kind: "read_file", path: "a\0b" })).rejects.toThrow(/zero character/);
    expect(readFileSync(join(secret, "key"), "utf8")).toBe("hush\n");
    expect(readdirSync(secret)).toEqual(["key"]);
  });

  test("a link that stays inside is followed; one that leads nowhere is not written through", async () => {
    writeFileSync(join(root, "real"), "one\n");
    symlinkSync("real", join(root, "alias"));
    symlinkSync(join(secret, "not-there"), join(root, "dangling"));
    await run({ kind: "edit_file", path: "alias", old: "one", new: "two" });
    expect(readFileSync(join(root, "real"), "utf8")).toBe("two\n");
    expect(statSync(join(root, "alias")).isFile()).toBe(true);
    await expect(run({ kind: "write_file", path: "dangling", content: "x" })).rejects.toThrow(/link to something that does not exist/);
    await expect(run({ kind: "write_file", path: "dangling/x", content: "x" })).rejects.toThrow(/link/);
    expect(await run({ kind: "read_file", path: join(root, "real") })).toBe("two\n");
  });

  test("a search and a list never follow links out of the folder", async () => {
    symlinkSync(secret, join(root, "out"));
    writeFileSync(join(root, "in"), "hush too\n");
    expect(await run({ kind: "search_files", query: "hush" })).toBe("in:1:hush too\n");
    expect(await run({ kind: "list_files" })).toBe(`in\nout -> ${secret}\n`);
  });

  test("what belongs to git is not written by the file commands", async () => {
    mkdirSync(join(root, ".git", "hooks"), { recursive: true });
    await expect(run({ kind: "write_file", path: ".git/hooks/pre-commit", content: "#!/bin/sh\n" })).rejects.toThrow(/belongs to git/);
    for (const path of [".GIT/config", "nested/.Git/hooks/pre-commit"])
      await expect(run({ kind: "write_file", path, content: "x" })).rejects.toThrow(/belongs to git/);
    await run({ kind: "write_file", path: ".gitignore", content: "x\n" });
  });
});

describe("read_file", () => {
  test("gives a file exactly as it is, and lines from an offset with a note of what is left", async () => {
    const text = "﻿one\r\ntwo\nthree";
    writeFileSync(join(root, "a"), text);
    writeFileSync(join(root, "empty"), "");
    expect(await run({ kind: "read_file", path: "a" })).toBe(text);
    expect(await run({ kind: "read_file", path: "empty" })).toBe("");
    expect(await run({ kind: "read_file", path: "a", offset: 3 })).toBe("three");
    expect(await run({ kind: "read_file", path: "a", offset: 1, limit: 2 })).toBe("﻿one\r\ntwo\n[lines 1 to 2 of 3; go on with offset 3]\n");
    await expect(run({ kind: "read_file", path: "a", offset: 4 })).rejects.toThrow("has only 3 lines");
  });

  test("cuts at whole lines below the limit, and names a line that is too long by itself", async () => {
    const line = `${"x".repeat(999)}\n`;
    writeFileSync(join(root, "long"), line.repeat(300));
    const text = await run({ kind: "read_file", path: "long" });
    expect(text).toMatch(/\[lines 1 to 131 of 300; go on with offset 132\]\n$/);
    writeFileSync(join(root, "wide"), "x".repeat(limits.maxFileBytes + 1));
    await expect(run({ kind: "read_file", path: "wide" })).rejects.toThrow(/Line 1 of wide alone/);
  });

  test("says what is no text, no file, or no regular file, and never hangs on a pipe", async () => {
    writeFileSync(join(root, "zero"), Buffer.from([65, 0, 66]));
    writeFileSync(join(root, "latin"), Buffer.from([0xe9, 0x20]));
    mkdirSync(join(root, "dir"));
    execFileSync("mkfifo", [join(root, "pipe")]);
    await expect(run({ kind: "read_file", path: "zero" })).rejects.toThrow("zero is not a text file (3 bytes, with zero bytes in it).");
    await expect(run({ kind: "read_file", path: "latin" })).rejects.toThrow("not a text file in UTF-8 (2 bytes)");
    await expect(run({ kind: "read_file", path: "dir" })).rejects.toThrow("dir is a folder; use list_files.");
    await expect(run({ kind: "read_file", path: "pipe" })).rejects.toThrow("not a regular file");
    await expect(run({ kind: "write_file", path: "pipe", content: "x" })).rejects.toThrow("not a regular file");
    await expect(run({ kind: "read_file", path: "nothing" })).rejects.toThrow("There is no nothing.");
  });
});

describe("write_file and edit_file", () => {
  test("a write keeps the file's mode and leaves no temporary file", async () => {
    writeFileSync(join(root, "run.sh"), "old\n");
    chmodSync(join(root, "run.sh"), 0o755);
    expect(await run({ kind: "write_file", path: "run.sh", content: "new\n" })).toBe("replaced run.sh (4 bytes)\n");
    expect(statSync(join(root, "run.sh")).mode & 0o777).toBe(0o755);
    expect(readdirSync(root)).toEqual(["run.sh"]);
    await expect(run({ kind: "write_file", path: "big", content: "é".repeat(limits.maxFileBytes) })).rejects.toThrow(
      /the most that is written/,
    );
    await expect(run({ kind: "write_file", path: ".", content: "x" })).rejects.toThrow(/is a folder/);
  });

  test("an edit needs its text once, unless all are meant, and takes the new text literally", async () => {
    writeFileSync(join(root, "a"), "x = 1; y = 1;\n");
    await expect(run({ kind: "edit_file", path: "a", old: "z", new: "q" })).rejects.toThrow(/does not occur/);
    await expect(run({ kind: "edit_file", path: "a", old: "1", new: "2" })).rejects.toThrow(/occurs 2 times/);
    expect(await run({ kind: "edit_file", path: "a", old: "1", new: "$&", all: true })).toBe("replaced 2 places in a\n");
    expect(readFileSync(join(root, "a"), "utf8")).toBe("x = $&; y = $&;\n");
  });
});

describe("list_files and search_files", () => {
  test("a list goes down to its depth, does not enter git and node_modules, and says when it is cut", async () => {
    mkdirSync(join(root, "a", "b"), { recursive: true });
    mkdirSync(join(root, "node_modules", "m"), { recursive: true });
    mkdirSync(join(root, ".git"));
    writeFileSync(join(root, "a", "b", "c.txt"), "");
    expect(await run({ kind: "list_files" })).toBe(".git/ (not listed)\na/\na/b/\na/b/c.txt\nnode_modules/ (not listed)\n");
    expect(await run({ kind: "list_files", depth: 1 })).toBe(".git/ (not listed)\na/\nnode_modules/ (not listed)\n");
    expect(await run({ kind: "list_files", path: "a", depth: 1 })).toBe("a/b/\n");
    await expect(run({ kind: "list_files", path: "a/b/c.txt" })).rejects.toThrow("is a file; use read_file");
    for (let i = 0; i < 1001; i++) writeFileSync(join(root, "a", `f${i}`), "");
    expect(await run({ kind: "list_files", path: "a" })).toMatch(/\[cut after 1000 entries; .*\]\n$/);
  });

  test("a search gives path, line and text, narrows by glob, and says no match, a cut and a wrong pattern", async () => {
    mkdirSync(join(root, "src"));
    writeFileSync(join(root, "src", "a.ts"), "const one = 1;\nconst two = 2;\n");
    writeFileSync(join(root, "notes.md"), "one\n");
    writeFileSync(join(root, "bin"), Buffer.from([0, 111, 110, 101]));
    expect(await run({ kind: "search_files", query: "\\bone\\b" })).toBe("notes.md:1:one\nsrc/a.ts:1:const one = 1;\n");
    expect(await run({ kind: "search_files", query: "one", glob: "*.md" })).toBe("notes.md:1:one\n");
    expect(await run({ kind: "search_files", query: "two", path: "src/a.ts" })).toBe("src/a.ts:2:const two = 2;\n");
    expect(await run({ kind: "search_files", query: "three" })).toBe("No match in 2 files.\n");
    await expect(run({ kind: "search_files", query: "(" })).rejects.toThrow(/not a regular expression/);
    writeFileSync(join(root, "many"), "hit\n".repeat(300));
    expect(await run({ kind: "search_files", query: "hit" })).toMatch(/many:200:hit\n\[cut after 200 matches; .*\]\n$/);
  });

  test("a glob without a slash means the name, with one the path", () => {
    const cases: [string, string, boolean][] = [
      ["*.ts", "src/a.ts", true],
      ["*.ts", "src/a.tsx", false],
      ["src/*.ts", "src/deep/a.ts", false],
      ["src/**/*.ts", "src/deep/a.ts", true],
      ["src/**/*.ts", "src/a.ts", true],
      ["**/*.{js,ts}", "a.js", true],
      ["a+b?.txt", "a+b1.txt", true],
    ];
    for (const [glob, path, matches] of cases) expect(globMatcher(glob)(path, path.split("/").at(-1) ?? ""), glob).toBe(matches);
  });
});
