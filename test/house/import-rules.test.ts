import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const biome = path.join(root, "node_modules/.bin/biome");

// One row a rule: the file that would break it, what it would import, and what the linter must say.
const forbidden: [file: string, specifier: string, message: string][] = [
  ["src/protocol/x.ts", "../core/ids.ts", "import only each other"],
  ["src/protocol/x.ts", "zod", "uses zod/mini"],
  ["src/core/x.ts", "../storage/event-log.ts", "Decisions (src/core) are pure"],
  ["src/core/x.ts", "cloudflare:workers", "Decisions (src/core) are pure"],
  ["src/core/x.ts", "node:fs", "Decisions (src/core) are pure"],
  ["src/channels/x.ts", "../llm/registry.ts", "Hands do not know each other"],
  ["src/llm/x.ts", "../storage/recall.ts", "Hands do not know each other"],
  ["src/tools/x.ts", "../channels/channel.ts", "Hands do not know each other"],
  ["src/storage/x.ts", "../tools/on-endpoint.ts", "Hands do not know each other"],
  ["src/storage/x.ts", "../entry/app.ts", "Hands know no Rooms"],
  ["src/llm/x.ts", "../../durable-objects/router.ts", "Hands know no Rooms"],
  ["durable-objects/x.ts", "./thread.ts", "only through its stub"],
  ["durable-objects/x.ts", "../src/entry/app.ts", "only through its stub"],
  ["durable-objects/x.ts", "../daemon/main.ts", "know no doors and no far places"],
  ["durable-objects/router.ts", "../src/tools/on-endpoint.ts", "The router has no execution"],
  ["durable-objects/router.ts", "../src/protocol/worker-tools.ts", "The router has no execution"],
  ["src/core/router.ts", "../protocol/command.ts", "The router has no execution"],
  ["src/core/router-calls.ts", "./endpoint.ts", "The router reaches other objects only through their stubs"],
  ["durable-objects/worker-session.ts", "../src/channels/registry.ts", "[R11] Workers hold no channel"],
  ["src/core/worker-session.ts", "../channels/channel.ts", "[R11] Workers hold no channel"],
  ["src/entry/x.ts", "../../durable-objects/thread.ts", "Doors reach objects only through their stubs"],
  ["daemon/x.ts", "../src/storage/artifacts.ts", "The daemon imports src/protocol and src/core only"],
  ["daemon/x.ts", "cloudflare:workers", "The daemon imports src/protocol and src/core only"],
  ["src/web/x.ts", "../storage/artifacts.ts", "The browser imports src/protocol and src/core only"],
  ["src/web/x.ts", "node:fs", "The browser imports src/protocol and src/core only"],
  ["src/local/x.ts", "../../daemon/main.ts", "from outside"],
];

const allowed: [file: string, specifier: string][] = [
  ["src/core/allowed.ts", "../protocol/limits.ts"],
  ["durable-objects/router.ts", "../src/core/router.ts"],
  ["src/core/router.ts", "./context.ts"],
  ["daemon/allowed.ts", "../src/core/authority.ts"],
];
const impure = ["Date.now()", "new Date()", "Math.random()"];

/** A copy of the house's rules over files that break them; what the linter says, by file. */
const house = mkdtempSync(path.join(tmpdir(), "switchyard-rules-"));
let said = new Map<string, string[]>();

beforeAll(() => {
  const config = JSON.parse(readFileSync(path.join(root, "biome.json"), "utf8"));
  writeFileSync(path.join(house, "biome.json"), JSON.stringify({ ...config, $schema: undefined, vcs: { enabled: false } }));
  mkdirSync(path.join(house, "test/support"), { recursive: true });
  cpSync(path.join(root, "test/support/pure.grit"), path.join(house, "test/support/pure.grit"));
  const texts = new Map<string, string>();
  const add = (file: string, line: string) => texts.set(file, `${texts.get(file) ?? ""}${line}\n`);
  [...forbidden, ...allowed].forEach(([file, specifier], i) => {
    add(file, `import { x as x${i} } from "${specifier}";\nexport const y${i} = x${i};`);
  });
  impure.forEach((call, i) => {
    add(`src/core/impure-${i}.ts`, `export const now = () => ${call};`);
    add(`src/storage/impure-${i}.ts`, `export const now = () => ${call};`);
  });
  for (const [file, text] of texts) {
    mkdirSync(path.dirname(path.join(house, file)), { recursive: true });
    writeFileSync(path.join(house, file), text);
  }
  const { stdout } = spawnSync(biome, ["lint", "--reporter=json", "--max-diagnostics=none", "."], { cwd: house, encoding: "utf8" });
  const report = JSON.parse(stdout) as {
    diagnostics: { category: string; message: unknown; advices?: unknown; location: { path: unknown } }[];
  };
  said = new Map();
  for (const diagnostic of report.diagnostics) {
    const file = JSON.stringify(diagnostic.location.path);
    const key = [...texts.keys()].find((name) => file.includes(name));
    if (key) said.set(key, [...(said.get(key) ?? []), JSON.stringify(diagnostic)]);
  }
}, 60_000);

afterAll(() => rmSync(house, { recursive: true, force: true }));

describe("each import rule fires", () => {
  test.each(forbidden)("%s may not import %s", (file, _specifier, message) => {
    expect(said.get(file)?.join("\n") ?? "nothing").toContain(message);
  });
});

test.each(allowed)("%s may import %s", (file) => {
  const complaints = (said.get(file) ?? []).filter((text) => text.includes("noRestrictedImports"));
  expect(complaints).toHaveLength(forbidden.filter(([name]) => name === file).length);
});

test.each(impure.map((call, i) => [call, i] as const))("a decision may not call %s", (_call, i) => {
  expect(said.get(`src/core/impure-${i}.ts`)?.join() ?? "nothing").toContain("Decisions are pure");
  expect(said.get(`src/storage/impure-${i}.ts`)?.join() ?? "").not.toContain("Decisions are pure");
});
