import fc from "fast-check";
import { expect, test } from "vitest";
import { readPartialObject } from "../../src/core/partial-json.ts";

const read = (json: string) => Object.fromEntries(readPartialObject(json));

test("a text that is under way is there as far as it was written, with its escapes", () => {
  expect(read('{"settles":["trg_a"],"text":"Hello, \\"you')).toEqual({
    settles: { value: ["trg_a"], whole: true },
    text: { value: 'Hello, "you', whole: false },
  });
  expect(read('{"text":"a\\n\\u00e')).toEqual({ text: { value: "a\n", whole: false } });
  expect(read('{"text":"path C:\\\\')).toEqual({ text: { value: "path C:\\", whole: false } });
  expect(read('{"text":"half an emoji \\ud83c')).toEqual({ text: { value: "half an emoji ", whole: false } });
  expect(read('{"text":')).toEqual({});
  expect(read("")).toEqual({});
  expect(read("[1,2]")).toEqual({});
  expect(read('"{"')).toEqual({});
});

test("cut anywhere: what counts as whole is what the whole object has, and a text is a beginning of the real one", () => {
  const object = fc.dictionary(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }).filter((key) => key !== "__proto__"),
    fc.jsonValue(),
    {
      maxKeys: 5,
    },
  );
  fc.assert(
    fc.property(object, fc.integer({ min: 0, max: 4 }), fc.nat(), (value, space, at) => {
      const json = JSON.stringify(value, null, space);
      const whole = JSON.parse(json) as Record<string, unknown>;
      const seen = readPartialObject(json.slice(0, at % (json.length + 1)));
      for (const [key, field] of seen) {
        if (field.whole) expect(field.value).toEqual(whole[key]);
        else {
          expect(typeof field.value).toBe("string");
          expect((whole[key] as string).startsWith(field.value as string)).toBe(true);
        }
      }
      if (at % (json.length + 1) === json.length)
        expect(Object.fromEntries([...seen].map(([key, field]) => [key, field.value]))).toEqual(whole);
    }),
    { numRuns: 2_000 },
  );
});
