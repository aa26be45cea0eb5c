// Whether two pieces of work are near-identical: the same thing is not tried twice in a row.

/** What is left when case, spacing, punctuation and the order of words do not count. */
function wordsOf(text: string): Set<string> {
  return new Set(
    text
      .toLowerCase()
      .normalize("NFKC")
      .split(/[^\p{L}\p{N}_./-]+/u)
      // A full stop ends a sentence, a dot within a word is a file's name.
      .map((word) => word.replace(/^[./-]+|[./-]+$/g, ""))
      .filter((word) => word !== ""),
  );
}

/** Two texts with this share of words in common say the same. */
const sameShare = 0.9;

/** [WF2] Near-identical input of one profile. */
export function isSameWork(a: { profile: string; text: string }, b: { profile: string; text: string }): boolean {
  if (a.profile !== b.profile) return false;
  const left = wordsOf(a.text);
  const right = wordsOf(b.text);
  const all = new Set([...left, ...right]);
  if (all.size === 0) return true;
  const common = [...left].filter((word) => right.has(word)).length;
  return common / all.size >= sameShare;
}

/** A tool's input as a key under which near-identical ones meet: spacing and the order of fields do not count. */
export function callKey(tool: string, input: unknown): string {
  const plain = (value: unknown): unknown => {
    if (typeof value === "string") return value.trim().replace(/\s+/g, " ");
    if (Array.isArray(value)) return value.map(plain);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, inner]) => [key, plain(inner)]),
    );
  };
  return JSON.stringify([tool, plain(input)]);
}
