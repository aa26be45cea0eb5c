import { expect, test } from "vitest";
import { answeringCode, closeReason } from "../../src/core/close-frame.ts";

const bytes = (text: string): number => new TextEncoder().encode(text).length;

test("a reason to close fits into its frame, and says so where it was cut", () => {
  expect(closeReason("a".repeat(123))).toBe("a".repeat(123));
  for (const sign of ["a", "ä", "漢", "😀"]) {
    const cut = closeReason(sign.repeat(200));
    expect(bytes(cut)).toBeLessThanOrEqual(123);
    expect(cut).toMatch(/^(.)\1*…$/u);
  }
});

test("a peer's close is answered by its own code, or by the ordinary one where that cannot be sent", () => {
  expect([1000, 1001, 1005, 1006, 1015, 4403].map(answeringCode)).toEqual([1000, 1001, 1000, 1000, 1000, 4403]);
});
