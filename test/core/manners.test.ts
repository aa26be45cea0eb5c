import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countWords, fitManner, mannerOf, moreNote } from "../../src/core/manners.ts";
import { limits } from "../../src/protocol/limits.ts";

const words = (count: number, word = "word"): string => Array.from({ length: count }, (_, i) => `${word}${i}`).join(" ");
const fences = (text: string): number => text.split("\n").filter((line) => /^ {0,3}(`{3,}|~{3,})/.test(line)).length;

test.each([
  ["web", "instant"],
  ["chat", "instant"],
  ["generic", "structured"],
  ["github", "structured"],
  ["", "structured"],
])("[O13] the manner of the source %j is %s", (source, manner) => {
  expect(mannerOf(source)).toBe(manner);
});

describe("the manner of instant messages", () => {
  test("a text of a hundred words is unchanged, one of a hundred and one is cut and says so", () => {
    expect(fitManner(words(100), "instant")).toBe(words(100));
    const cut = fitManner(words(101), "instant");
    expect(countWords(cut)).toBeLessThanOrEqual(limits.maxInstantWords);
    expect(cut.endsWith(moreNote)).toBe(true);
  });

  test("a structured channel gets everything", () => {
    expect(fitManner(words(5000), "structured")).toBe(words(5000));
  });

  test("the cut is at the end of a sentence where one is near", () => {
    const text = `${words(60)}. ${words(20, "more")}! ${words(80, "rest")}.`;
    expect(fitManner(text, "instant")).toBe(`${words(60)}. ${words(20, "more")}!\n\n${moreNote}`);
  });

  test("without a sentence end it breaks off between two words, with an ellipsis", () => {
    expect(fitManner(words(300), "instant")).toMatch(/^word0 .* word\d+…\n\n/);
  });

  test("an open code fence is closed, and code is cut at the end of a line", () => {
    const code = Array.from({ length: 40 }, (_, i) => `line ${i} of code;`).join("\n");
    const cut = fitManner(`Here it is:\n\`\`\`ts\n${code}\n\`\`\`\nDone.`, "instant");
    expect(fences(cut)).toBe(2);
    expect(cut).toMatch(/of code;\n```\n\n\(/);
    expect(countWords(cut)).toBeLessThanOrEqual(limits.maxInstantWords);
  });

  test("a fence that would be empty is left out", () => {
    const cut = fitManner(`${words(91)}\n\`\`\`\n${words(50)}\n\`\`\``, "instant");
    expect(fences(cut) % 2).toBe(0);
  });

  test("in a script without spaces words are counted, not pieces", () => {
    const text = "我们需要部署这个应用程序。".repeat(40);
    expect(countWords(text)).toBeGreaterThan(100);
    const cut = fitManner(text, "instant");
    expect(countWords(cut)).toBeLessThanOrEqual(limits.maxInstantWords);
    expect(cut).toMatch(/。\n\n/);
  });

  test("[H8] one endless word of emoji is cut between two of them, with no half of one", () => {
    const family = "👨‍👩‍👧‍👦";
    const cut = fitManner(family.repeat(600), "instant");
    expect(cut.length).toBeLessThanOrEqual(2_000);
    expect(cut.isWellFormed()).toBe(true);
    expect(cut.replace(/…?\n\n.*$/s, "").length % family.length).toBe(0);
    expect(cut).toContain(family);
  });

  test("whatever the text: within the limit, fitted once for all, fences balanced, the kept part is the text's own beginning", () => {
    const piece = fc.oneof(
      fc.lorem({ maxCount: 30 }),
      fc.string({ unit: "grapheme", maxLength: 300 }),
      fc.constantFrom("\n", "\n\n", "```\n", "\n```js\ncode();\n", "`inline ", "~~~\n", "。", "🎉🎉"),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (parts) => {
        const text = parts.join(" ");
        const fitted = fitManner(text, "instant");
        expect(countWords(fitted)).toBeLessThanOrEqual(limits.maxInstantWords);
        expect(fitted.length).toBeLessThanOrEqual(2_000);
        expect(fitManner(fitted, "instant")).toBe(fitted);
        if (fitted === text) return;
        expect(fitted.endsWith(moreNote)).toBe(true);
        const kept = fitted
          .slice(0, -moreNote.length)
          .trimEnd()
          .replace(/\n(`{3,}|~{3,})$/, "")
          .replace(/`?…$/, "");
        expect(text.startsWith(kept) || text.startsWith(kept.replace(/`$/, ""))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
