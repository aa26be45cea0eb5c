import { expect, test } from "vitest";
import { placeLimits, scaled, sourceLimit } from "../../src/core/rate-limit.ts";

test("[G6] a larger team turns burst and rate up by one factor, and a source has more room than one of its places", () => {
  expect(scaled({ burst: 10, perSecond: 2 }, 3)).toEqual({ burst: 30, perSecond: 6 });
  expect(sourceLimit.burst).toBeGreaterThan(placeLimits.programs.burst);
});
