import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { mutants } from "../mutants/mutants.ts";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");

describe("the broken builds", () => {
  test("there is one for each invariant that must never be lost unnoticed", () => {
    const covered = new Set(mutants.map(({ invariant }) => invariant));
    expect(["R1", "R3", "R5", "R7", "R9", "R12", "R18"].filter((id) => !covered.has(id))).toEqual([]);
  });

  test.each(mutants)("$invariant: $does Its place is in the code, and tests carry its id", ({ invariant, file, from, to, tests }) => {
    expect(read(file).split(from)).toHaveLength(2);
    expect(to).not.toBe(from);
    expect(tests.some((each) => read(each).includes(`[${invariant}]`))).toBe(true);
  });
});
