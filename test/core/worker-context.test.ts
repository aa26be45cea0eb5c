import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cut, fitSum } from "../../src/core/worker-context.ts";

test("a text within its limit is untouched; a longer one keeps head, tail and where the rest is", () => {
  expect(cut("short", 100, "trg_x")).toBe("short");
  const long = `${"a".repeat(5000)}${"z".repeat(5000)}`;
  const shown = cut(long, 1000, "trg_x");
  expect(shown.length).toBeLessThanOrEqual(1000);
  expect(shown.startsWith("aaa")).toBe(true);
  expect(shown.endsWith("zzz")).toBe(true);
  expect(shown).toContain("recall trg_x has all of it");
});

test("a cut never leaves half a character", () => {
  void fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 300, maxLength: 900 }), fc.integer({ min: 150, max: 280 }), (text, chars) => {
      const shown = cut(text, chars, "trg_x");
      expect(shown.length).toBeLessThanOrEqual(Math.max(chars, 100));
      expect(shown.isWellFormed()).toBe(true);
    }),
  );
});

test("a sum is kept by shortening the longest; short texts stay whole", () => {
  const texts = [
    { text: "small", id: "a" },
    { text: "m".repeat(3000), id: "b" },
    { text: "l".repeat(20_000), id: "c" },
    { text: "l".repeat(30_000), id: "d" },
  ];
  const fitted = fitSum(texts, 12_000);
  expect(fitted[0]).toBe("small");
  expect(fitted[1]).toBe(texts[1]?.text);
  expect(fitted.join("").length).toBeLessThanOrEqual(12_000);
  expect(fitted[3]).toContain("recall d has all of it");
  expect(fitSum(texts, 60_000)).toEqual(texts.map(({ text }) => text));
});
