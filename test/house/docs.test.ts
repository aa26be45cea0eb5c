import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");
const filesBelow = (folder: string): string[] =>
  readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|tsx)$/.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name));

const documents = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "src/core/SPEC.md",
  "daemon/README.md",
  "test/eval/README.md",
];

describe("every path that a document mentions exists", () => {
  test.each(documents)("%s", (document) => {
    const text = read(document);
    const mentioned = [
      ...[...text.matchAll(/`((?:src|durable-objects|daemon|migrations|test|docs)\/[\w./-]*[\w/])`/g)].map((match) => match[1] ?? ""),
      ...[...text.matchAll(/\]\((?!https?:|#)([^)#]+)\)/g)].map((match) => path.join(path.dirname(document), match[1] ?? "")),
    ];
    expect(mentioned.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  });
});

describe("rules, code and tests carry the same ids", () => {
  const idPattern = /\[((?:A|D|G|L|M|T|O|RT|RI|RD|RM|RR|RC|RS|ST|SP|WI|WC|WF|WP|WX|W|E)\d+)\]/g;
  const idsIn = (files: string[]): Set<string> =>
    new Set(files.flatMap((file) => [...readFileSync(file, "utf8").matchAll(idPattern)].map((match) => match[1] ?? "")));
  const listed = [...read("src/core/SPEC.md").matchAll(/^- \*\*([A-Z]+\d+)\*\*/gm)].map((match) => match[1] ?? "");
  const rules = new Set(listed);
  const inCode = idsIn([...filesBelow("src"), ...filesBelow("durable-objects"), ...filesBelow("daemon")]);

  test("each id in the code is a rule of SPEC.md", () => {
    expect([...inCode].filter((id) => !rules.has(id))).toEqual([]);
  });

  test("no two rules have one id", () => {
    expect(listed.filter((id, at) => listed.indexOf(id) !== at)).toEqual([]);
  });

  test("each rule of SPEC.md is named by a test", () => {
    const inTests = idsIn(["core", "workerd", "daemon", "system"].flatMap((folder) => filesBelow(`test/${folder}`)));
    expect([...rules].filter((id) => !inTests.has(id))).toEqual([]);
  });
});

test("the test build of wrangler.toml has the bindings, objects and dates of the real one", () => {
  const sections = (file: string): string[] =>
    read(file)
      .split(/\n(?=\[)/)
      .map((section) =>
        section
          .replace(/^#.*\n/gm, "")
          .replaceAll("../../", "")
          .trim(),
      );
  const real = sections("wrangler.toml").filter((section) => !/^\[(build|assets)\]/.test(section));
  expect(sections("test/support/wrangler.test.toml").sort()).toEqual(real.sort());
});
