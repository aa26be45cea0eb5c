import { expect, test } from "vitest";
import { estimateTokens } from "../../src/core/context.ts";
import { fixedTokens, learnedRate, providerTokens } from "../../src/core/token-rate.ts";
import { isLong } from "../../src/core/worker-compact.ts";
import { limits } from "../../src/protocol/limits.ts";
import { workerTools } from "../../src/protocol/worker-tools.ts";

const counted = (inputTokens: number) => ({ inputTokens, cachedTokens: 0, outputTokens: 1 });

test("[L4] a request is what its provider counted of the last one, and at the same rate what came since", () => {
  const rate = learnedRate(1, 10_000, counted(14_000));
  expect(providerTokens(10_000, rate)).toBe(14_000);
  expect(providerTokens(11_000, rate)).toBe(15_400);
  // The next count replaces it: nothing of older requests lingers.
  expect(providerTokens(11_000, learnedRate(rate, 11_000, counted(12_100)))).toBe(12_100);
});

test("[L4] who counts nothing, or what no text can have, changes nothing", () => {
  for (const usage of [null, counted(0), counted(-5), counted(Number.NaN), counted(1_000), counted(9_000_000)])
    expect(learnedRate(1.3, 50_000, usage)).toBe(1.3);
  expect(learnedRate(1.3, 0, counted(100))).toBe(1.3);
});

test("[L4] of two texts with as many characters the one is long whose tokens are more", () => {
  const chars = limits.compactWorkerTokens * 3;
  const [words, signs] = ["word ".repeat(chars / 5), "字".repeat(chars)];
  expect([words, signs].map((text) => isLong({ tokenRate: 1 }, estimateTokens(text)))).toEqual([false, true]);
  // A provider that counts more of the same words: they are long for it.
  const dense = learnedRate(1, estimateTokens(words), counted(limits.compactWorkerTokens + 1));
  expect(isLong({ tokenRate: dense }, estimateTokens(words))).toBe(true);
});

test("[L4] system prompt and tools are part of a request", () => {
  const bare = fixedTokens({ system: "", tools: {} });
  const withTools = fixedTokens({ system: "", tools: workerTools });
  expect([bare, fixedTokens({ system: "word", tools: {} })]).toEqual([0, 1]);
  expect(withTools).toBeGreaterThan(1_000);
  expect(fixedTokens({ system: "", tools: workerTools })).toBe(withTools);
});
