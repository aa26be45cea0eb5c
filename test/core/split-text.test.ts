import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fitBytes, splitPieces, splitText, type Unit } from "../../src/core/split-text.ts";

const size = (text: string, unit: Unit): number => (unit === "utf16" ? text.length : new TextEncoder().encode(text).length);
const bodies = (text: string, limit: number, unit?: Unit): string =>
  splitPieces(text, limit, unit)
    .map(({ body }) => body)
    .join("");
/** Lines that open or close code, as a chat platform counts them. */
const fences = (text: string): number => text.match(/^ {0,3}(`{3,}|~{3,})/gm)?.length ?? 0;

/** Whether code is open at the end, read line by line. */
function openAtEnd(text: string): boolean {
  let open = "";
  for (const line of text.split("\n")) {
    const marks = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    if (open === "") open = marks;
    else if (marks.startsWith(open)) open = "";
  }
  return open !== "";
}

describe("[H8] characters", () => {
  test("no emoji is cut in half", () => {
    const text = `x${"🎉".repeat(300)}`;
    expect(splitText(text, 500).map((chunk) => chunk.length)).toEqual([499, 102]);
    expect(splitText(text, 500).every((chunk) => chunk.isWellFormed())).toBe(true);
    expect(splitText(text, 500).join("")).toBe(text);
    expect(splitText(`${"x".repeat(3999)}🎉 done`, 4000).map((chunk) => chunk.length)).toEqual([3999, 7]);
  });

  test("no family is parted", () => {
    const family = "👨‍👩‍👧‍👦";
    const chunks = splitText(family.repeat(40), 50);
    expect(chunks.every((chunk) => chunk.length % family.length === 0 && chunk.length <= 50)).toBe(true);
    expect(chunks.join("")).toBe(family.repeat(40));
  });

  test("a limit below one character ends all the same", () => {
    expect(splitText("🎉", 1)).toEqual(["🎉"]);
    expect(splitText("a🎉b", 1)).toEqual(["a", "🎉", "b"]);
    expect(splitText("", 10)).toEqual([]);
  });
});

describe("[H9] code fences", () => {
  test("a text behind a closing fence fits exactly, whatever its length", () => {
    for (let length = 1990; length <= 2000; length++) {
      const text = `\`\`\`\nx = 1\n\`\`\` ${"t".repeat(length)}`;
      const chunks = splitText(text, 2000);
      expect(chunks.every((chunk) => chunk.length <= 2000 && fences(chunk) % 2 === 0)).toBe(true);
      expect(chunks[0]).toContain("x = 1\n```");
      expect(bodies(text, 2000)).toBe(text);
    }
  });

  test("a first line that is as long as a message is not repeated", () => {
    const lines = Array.from({ length: 50 }, (_, i) => `${i}`.padStart(80, "-")).join("\n");
    const text = `\`\`\`${"a".repeat(1990)}\n${lines}\n\`\`\``;
    const chunks = splitText(text, 2000);
    expect(chunks.length).toBeLessThanOrEqual(10);
    expect(chunks.every((chunk) => chunk.length <= 2000 && fences(chunk) === 2)).toBe(true);
    expect(bodies(text, 2000)).toBe(text);
    // Between the fences stands all of it, in order.
    const code = chunks.flatMap((chunk) => chunk.split("\n").filter((line) => line.startsWith("-"))).join("\n");
    expect(code).toBe(lines);
  });

  test("a block goes on in the next message with the name of its language, and is cut at the end of a line", () => {
    const text = `Look:\n\`\`\`ts\n${"const a = 1;\n".repeat(20)}\`\`\`\nThat is it.`;
    const chunks = splitText(text, 120);
    expect(chunks.slice(1, -1).every((chunk) => chunk.startsWith("```ts\nconst") && chunk.endsWith("1;\n```"))).toBe(true);
    expect(chunks.at(-1)).toMatch(/^```ts\nconst a = 1;\n(const a = 1;\n)*```\nThat is it\.$/);
  });
});

test("[H9] a first line that goes on with marks is not repeated as if it were a language", () => {
  const text = `\n\`\`\`${" ".repeat(50)}\`inline `;
  const chunks = splitText(text, 60);
  expect(chunks.every((chunk) => !openAtEnd(chunk))).toBe(true);
  expect(bodies(text, 60)).toBe(text);
});

test("prose breaks where a reader would pause", () => {
  expect(splitText("One sentence is here. Another one follows, and it is longer.", 40)).toEqual([
    "One sentence is here. ",
    "Another one follows, and it is longer.",
  ]);
  expect(splitText(`${"word ".repeat(9)}word`, 24)).toEqual(["word word word word ", "word word word word ", "word word"]);
});

test("[L3] [Q14] whatever the text: each piece within the limit of the unit, no character parted, fences balanced, the bodies are the text", () => {
  const piece = fc.oneof(
    fc.lorem({ maxCount: 20 }),
    fc.string({ unit: "grapheme", maxLength: 200 }),
    fc.constantFrom(
      "\n",
      "\n\n",
      "\r\n",
      "```\n",
      "\n```js\ncode();\n",
      "\n```",
      "`inline ",
      "\n~~~~\n",
      "。",
      "🎉🎉",
      "👨‍👩‍👧‍👦",
      "e\u0301",
      " ".repeat(50),
    ),
  );
  const segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 30 }),
      fc.integer({ min: 60, max: 400 }),
      fc.constantFrom<Unit>("utf16", "utf8"),
      (parts, limit, unit) => {
        const text = parts.join("");
        const pieces = splitPieces(text, limit, unit);
        expect(pieces.map(({ body }) => body).join("")).toBe(text);
        const ends = new Set(Array.from(segmenter.segment(text), ({ index }) => index));
        let at = 0;
        for (const { head, body, tail } of pieces) {
          expect(body.length).toBeGreaterThan(0);
          expect(size(head + body + tail, unit)).toBeLessThanOrEqual(limit);
          expect(ends.has(at)).toBe(true);
          at += body.length;
          if (pieces.length > 1) expect(openAtEnd(head + body + tail)).toBe(false);
        }
      },
    ),
    { numRuns: 1_500 },
  );
});

test("a small limit gives up the fences rather than the text or the limit", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("a", " ", "\n", "`", "~"), maxLength: 200 }),
      fc.integer({ min: 1, max: 20 }),
      (text, limit) => {
        expect(splitText(text, limit).every((chunk) => chunk.length <= limit)).toBe(true);
        expect(bodies(text, limit)).toBe(text);
      },
    ),
  );
});

test("the beginning that fits is the longest one of so many bytes, and ends between two code points", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), fc.integer({ min: 0, max: 120 }), (text, bytes) => {
      const fitting = fitBytes(text, bytes);
      expect(text.startsWith(fitting)).toBe(true);
      expect(size(fitting, "utf8")).toBeLessThanOrEqual(bytes);
      const next = [...text.slice(fitting.length)][0] ?? "";
      expect(next === "" || size(fitting + next, "utf8") > bytes).toBe(true);
    }),
  );
  expect(fitBytes("a\ud83d\ude00b", 4)).toBe("a");
  expect(fitBytes("anything", -1)).toBe("");
});
