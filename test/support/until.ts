// Waits for a condition by asking again, never for a fixed time.

/** Resolves with the first value that is neither null, undefined nor false; fails with `what` after `forMs`. */
export async function until<T>(what: string, ask: () => T | Promise<T>, forMs = 15_000): Promise<NonNullable<Exclude<T, false>>> {
  const endMs = Date.now() + forMs;
  for (;;) {
    const value = await ask();
    if (value !== null && value !== undefined && value !== false) return value as NonNullable<Exclude<T, false>>;
    if (Date.now() > endMs) throw new Error(`Waited ${forMs} ms in vain for ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
