import { expect, test } from "vitest";
import { retryAfterMs } from "../../src/core/retry-after.ts";

test("Retry-After is read in seconds and as a date, and never as more than an hour", () => {
  expect(retryAfterMs("7", 0)).toBe(7_000);
  expect(retryAfterMs(" 0.5 ", 0)).toBe(500);
  expect(retryAfterMs(new Date(90_000).toUTCString(), 60_000)).toBe(30_000);
  expect(retryAfterMs(new Date(0).toUTCString(), 60_000)).toBe(0);
  expect(retryAfterMs("999999999", 0)).toBe(3_600_000);
});

test("what is neither seconds nor a date asks for no wait", () => {
  for (const header of ["soon", "-5", "", "1.5.2", null, undefined]) expect(retryAfterMs(header, 0)).toBeUndefined();
});
