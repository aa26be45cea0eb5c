import fc from "fast-check";
import { expect, test } from "vitest";
import { type Bucket, placeLimits, senderOf, take } from "../../src/core/rate-limit.ts";

const limit = { burst: 10, perSecond: 2 };

/** Knocks at these times; returns when it was let in. */
function letIn(timesMs: readonly number[]): number[] {
  let bucket: Bucket | null = null;
  return timesMs.filter((nowMs) => {
    const taken = take(bucket, limit, nowMs);
    bucket = taken.bucket;
    return taken.ok;
  });
}

test("[G6] ten thousand at once are the burst, and then what time gives", () => {
  expect(letIn(Array.from({ length: 10_000 }, () => 5))).toHaveLength(10);
  expect(letIn(Array.from({ length: 10_000 }, (_, i) => i))).toHaveLength(10 + 19);
});

test("[G6] in any stretch of time no more come through than the burst and the rate allow", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(60_000), { maxLength: 400 }), (times) => {
      const came = letIn([...times].sort((a, b) => a - b));
      for (const [i, from] of came.entries())
        for (const [j, to] of came.entries())
          if (j >= i) expect(j - i + 1).toBeLessThanOrEqual(limit.burst + ((to - from) / 1000) * limit.perSecond + 1e-6);
    }),
    { numRuns: 30 },
  );
});

test("[G6] whoever waits as long as was asked comes in", () => {
  let bucket: Bucket | null = null;
  for (let i = 0; i < 10; i++) bucket = take(bucket, limit, 1_000).bucket;
  const refused = take(bucket, limit, 1_000);
  if (refused.ok) throw new Error("it was let in");
  expect(refused.retryAfterMs).toBe(500);
  expect(take(refused.bucket, limit, 1_000 + refused.retryAfterMs - 1).ok).toBe(false);
  expect(take(refused.bucket, limit, 1_000 + refused.retryAfterMs).ok).toBe(true);
});

test("[R31] a clock that goes back an hour neither opens the door nor closes it for good", () => {
  let bucket: Bucket | null = null;
  for (let i = 0; i < 10; i++) bucket = take(bucket, limit, 3_600_000).bucket;
  const back = take(bucket, limit, 0);
  expect(back.ok).toBe(false);
  expect(take(back.bucket, limit, 3_600_500).ok).toBe(true);
});

test("[T10] bots are programs, guests are guests, everybody else is people; a stranger has less room than the team, a program more", () => {
  expect(senderOf("bot")).toBe("programs");
  expect(senderOf("guest")).toBe("guests");
  for (const role of ["owner", "member", "public", "agent"] as const) expect(senderOf(role)).toBe("people");
  expect(placeLimits.programs.burst).toBeGreaterThan(placeLimits.people.burst);
  expect(placeLimits.guests.burst).toBeLessThan(placeLimits.people.burst);
});
