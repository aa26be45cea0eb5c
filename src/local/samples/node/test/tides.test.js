import assert from "node:assert/strict";
import { test } from "node:test";
import { nextHighWater, parseTides } from "../tides.js";

const tides = parseTides(`
  00:05 low 0.9
  06:12 high 4.1
  12:31 low 0.8
  18:44 high 4.3
`);

test("parses a tide table", () => {
  assert.equal(tides.length, 4);
  assert.deepEqual(tides[1], { minutes: 372, kind: "high", metres: 4.1 });
});

test("finds the next high water", () => {
  assert.equal(nextHighWater(tides, 400).metres, 4.3);
});

test("@@FAILING@@", () => {
  assert.equal(nextHighWater(tides, 372)?.metres, 4.1, "06:12 itself is the next high water at 06:12");
});
