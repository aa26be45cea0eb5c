import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cut, fitSum } from "../../src/core/worker-context.ts";
import { beginStep } from "../../src/core/worker-session.ts";
import { limits } from "../../src/protocol/limits.ts";
import { between, facts, member, message, said, texts } from "../support/worker-fixtures.ts";

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

test("a step that takes as many rows as it may keeps the cap of the sum, and every one says where its rest is", () => {
  const rows = Array.from({ length: limits.maxStepRows }, (_, i) => message(`${i} ${"word ".repeat(400)}`));
  const items = texts(beginStep(between(), rows, facts))
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line) as { id: string; text: string });
  expect(items).toHaveLength(limits.maxStepRows);
  expect(items.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(limits.inlineStepChars);
  for (const { id, text } of items) expect(text).toContain(`recall ${id} has all of it`);
});

test("[W21] a row says by which id it is handed back, answered or read, and the id of what it answers", () => {
  const answer = message("that one", member, undefined, {
    replyTo: { id: "out_a-b", author: "somebody", text: "words of nobody knows whom" },
  });
  const ours = said("Which one?");
  const [, first, second] = texts(beginStep(between(), [ours, answer], facts)).split("\n");
  expect(JSON.parse(first ?? "")).toMatchObject({ kind: "said", id: ours.key });
  expect(JSON.parse(second ?? "")).toMatchObject({ kind: "message", id: answer.key, replyTo: "out_a-b", text: "that one" });
  expect(second).not.toContain("words of nobody");
});
