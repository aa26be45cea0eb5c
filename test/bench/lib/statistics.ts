// Numbers of a benchmark: seeded randomness, quantiles, and the bootstrap interval of a median.

/** Uniform numbers in [0, 1) from a seed (mulberry32): the same seed is the same workload. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export const exponential = (random: () => number, mean: number): number => -mean * Math.log(1 - random());

const normal = (random: () => number): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Gamma by mean and coefficient of variation (Marsaglia and Tsang); needs a shape of at least one, that is cv ≤ 1. */
export function gamma(random: () => number, mean: number, cv: number): number {
  const shape = 1 / (cv * cv);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(random);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - random()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return (mean * d * v) / shape;
  }
}

/** A key of `weights`, which sum to 1. */
export function choose<K extends string | number>(random: () => number, weights: readonly (readonly [K, number])[]): K {
  let left = random();
  for (const [key, weight] of weights) {
    left -= weight;
    if (left < 0) return key;
  }
  const last = weights.at(-1);
  if (last === undefined) throw new Error("There is nothing to choose from.");
  return last[0];
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
export const mean = (values: readonly number[]): number => (values.length === 0 ? Number.NaN : sum(values) / values.length);

/** Quantile with interpolation between neighbours; NaN of nothing. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? low;
  return low + (high - low) * (at - Math.floor(at));
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** The median with its bootstrap 90 % interval. */
export function medianInterval(values: readonly number[], draws = 1_000): { median: number; low: number; high: number } {
  const random = seeded(values.length);
  const medians = Array.from({ length: draws }, () => median(values.map(() => values[Math.floor(random() * values.length)] ?? Number.NaN)));
  return { median: median(values), low: quantile(medians, 0.05), high: quantile(medians, 0.95) };
}

/** Least squares by the normal equations: the coefficients of `rows · x ≈ values`. */
export function leastSquares(rows: readonly (readonly number[])[], values: readonly number[]): number[] {
  const n = rows[0]?.length ?? 0;
  // A little of the identity keeps a feature that never changes from making this unsolvable.
  const m: number[][] = Array.from({ length: n }, (_, i) => Array.from({ length: n + 1 }, (_, j) => (i === j ? 1e-6 : 0)));
  rows.forEach((row, k) => {
    for (let i = 0; i < n; i++) {
      const line = m[i] ?? [];
      for (let j = 0; j < n; j++) line[j] = (line[j] ?? 0) + (row[i] ?? 0) * (row[j] ?? 0);
      line[n] = (line[n] ?? 0) + (row[i] ?? 0) * (values[k] ?? 0);
    }
  });
  for (let i = 0; i < n; i++) {
    const pivotRow = m[i] ?? [];
    const pivot = pivotRow[i] ?? 1;
    for (let k = 0; k < n; k++) {
      if (k === i) continue;
      const line = m[k] ?? [];
      const factor = (line[i] ?? 0) / pivot;
      for (let j = i; j <= n; j++) line[j] = (line[j] ?? 0) - factor * (pivotRow[j] ?? 0);
    }
  }
  return m.map((line, i) => (line[n] ?? 0) / (line[i] ?? 1));
}
