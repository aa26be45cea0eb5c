import { expect, test } from "vitest";
import { spreadMs } from "../../src/core/alarms.ts";
import { threadIdOf } from "../../src/core/ids.ts";

test("what many objects do after the same event they do not do in the same moment: each has its own, and always the same", () => {
  const ids = Array.from({ length: 400 }, (_, n) => threadIdOf("github", "team/app", `issue:${n}`));
  const times = ids.map((id) => spreadMs(id, 10_000));
  expect(ids.map((id) => spreadMs(id, 10_000))).toEqual(times);
  expect(times.every((ms) => Number.isInteger(ms) && ms >= 0 && ms < 10_000)).toBe(true);
  const inEachSecond = Array.from({ length: 10 }, (_, second) => times.filter((ms) => Math.floor(ms / 1_000) === second).length);
  expect(Math.max(...inEachSecond)).toBeLessThan(2 * (times.length / 10));
});
