// What `npm run bench` says to a slip of the hand: a sentence and its usage, before it builds anything.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

const command = path.resolve(import.meta.dirname, "../bench/run.ts");

test.each([
  [[], "Which benchmark?"],
  [["essay"], "There is no benchmark “essay”."],
  [["toString"], "There is no benchmark “toString”."],
  [["cost", "--qick"], "Unknown option '--qick'"],
  [["essay-e2e", "--seeds", "1,b"], "--seeds takes whole numbers, like 1,2, not “1,b”."],
  [["essay-e2e", "--speed", "0"], "--speed takes a number above 0, not “0”."],
])("bench %j is refused with one sentence", (args, sentence) => {
  const { status, stderr } = spawnSync(process.execPath, [command, ...args], { encoding: "utf8" });
  expect([status, stderr.split("\n").slice(0, 2)]).toEqual([2, [sentence, "npm run bench -- NAME [--quick] [--json] [--picture]"]]);
});
