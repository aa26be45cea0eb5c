import { expect, test } from "vitest";
import { jitterMs, nextStep } from "../../daemon/backoff.ts";
import { limits } from "../../src/protocol/limits.ts";

test("the wait is anything between zero and a doubling cap", () => {
  expect(jitterMs(0, 0)).toBe(0);
  expect(jitterMs(0, 1)).toBe(limits.reconnectBaseMs);
  expect(jitterMs(3, 0.5)).toBe(4 * limits.reconnectBaseMs);
  expect(jitterMs(1_000, 1)).toBe(limits.reconnectCapMs);
});

test("a daemon that is asked to wait waits that long, and as ever where it is told no time", () => {
  expect(nextStep({ kind: "status", status: 503, retryAfter: "soon" }, 0, 0, 0)).toMatchObject({ kind: "retry", waitMs: 0 });
  expect(nextStep({ kind: "status", status: 503, retryAfter: "9" }, 0, 0, 0)).toMatchObject({ kind: "retry", waitMs: 9_000 });
});

test("a superseded daemon waits at least 30 s, one of another version a minute, and a lost line is tried soon", () => {
  expect(nextStep({ kind: "closed", code: 4409, reason: "" }, 0, 0, 0)).toMatchObject({
    kind: "retry",
    waitMs: limits.supersededBackoffMs,
  });
  expect(nextStep({ kind: "closed", code: 4426, reason: "" }, 0, 0, 0)).toMatchObject({ kind: "retry", waitMs: limits.reconnectCapMs });
  expect(nextStep({ kind: "status", status: 426, retryAfter: null }, 0, 0, 0)).toMatchObject({
    kind: "retry",
    waitMs: limits.reconnectCapMs,
  });
  expect(nextStep({ kind: "lost", reason: "x" }, 0, 0.5, 0)).toMatchObject({ kind: "retry", waitMs: limits.reconnectBaseMs / 2 });
  expect(nextStep({ kind: "asked", reason: "x" }, 5, 1, 0)).toMatchObject({ kind: "retry", waitMs: 0 });
  expect(nextStep({ kind: "closed", code: 1001, reason: "deploy" }, 0, 0, 0)).toMatchObject({
    kind: "retry",
    say: expect.stringContaining("1001 deploy"),
  });
});

test("revoked, unknown and unauthorised end it, with what to do", () => {
  const ends = [
    { kind: "closed", code: 4410, reason: "" },
    { kind: "closed", code: 4401, reason: "" },
    { kind: "status", status: 401, retryAfter: null },
    { kind: "status", status: 404, retryAfter: null },
    { kind: "status", status: 410, retryAfter: null },
  ] as const;
  for (const end of ends) expect(nextStep(end, 0, 0, 0)).toMatchObject({ kind: "stop", say: expect.stringContaining("enroll URL CODE") });
});
