// What the commands say to a slip of the hand: a sentence and their usage, before they build or ask anything.
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, test } from "vitest";

const file = (name: string): string => path.resolve(import.meta.dirname, "../..", name);
const run = (name: string, args: readonly string[]) => spawnSync(process.execPath, [file(name), ...args], { encoding: "utf8" });
const benchUsage = "npm run bench -- NAME [--quick] [--json] [--picture]";
const replayUsage = "npm run replay -- tsk_…|router --step K [options]";

test.each([
  [[], "Which benchmark?"],
  [["essay"], "There is no benchmark “essay”."],
  [["toString"], "There is no benchmark “toString”."],
  [["cost", "--qick"], "Unknown option '--qick'"],
  [["essay-e2e", "--seeds", "1,b"], "--seeds takes whole numbers, like 1,2, not “1,b”."],
  [["essay-e2e", "--speed", "0"], "--speed takes a number above 0, not “0”."],
])("bench %j is refused with one sentence", (args, sentence) => {
  const { status, stderr } = run("test/bench/run.ts", args);
  expect([status, stderr.split("\n").slice(0, 2)]).toEqual([2, [sentence, benchUsage]]);
});

test.each([
  [["tsk_a"], ["Which step? Say --step 1 for the first.", replayUsage]],
  [
    ["tsk_a", "--stop", "1"],
    ["Unknown option '--stop'", replayUsage],
  ],
  [["router", "--step", "one"], [replayUsage]],
])("replay %j is refused with one sentence", (args, lines) => {
  const { status, stderr } = run("src/local/replay.ts", args);
  expect([status, stderr.split("\n").slice(0, lines.length)]).toEqual([1, lines]);
});

test.each([
  ["test/bench/run.ts", benchUsage],
  ["src/local/replay.ts", replayUsage],
])("%s says how it is used when it is asked", (name, usage) => {
  const { status, stdout } = run(name, ["--help"]);
  expect([status, stdout.split("\n")[0]]).toEqual([0, usage]);
});

test("a replay where nothing listens says where it asked, not how the asking failed", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const { status, stderr } = run("src/local/replay.ts", ["router", "--step", "1", "--url", `http://127.0.0.1:${port}`, "--token", "t"]);
  expect([status, stderr]).toEqual([1, `Nothing answers at http://127.0.0.1:${port}. Does it run there?\n`]);
});
