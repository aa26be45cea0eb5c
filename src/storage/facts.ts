// Small facts about the deployment in D1, such as when GitHub was last heard.

export const factNames = { githubPing: "github.ping", githubDelivery: "github.delivery" } as const;
export type FactName = (typeof factNames)[keyof typeof factNames];
export type Fact = { value: string; atMs: number };

/** Keeps the newest value of a fact. */
export async function saveFact(db: D1Database, name: string, value: string, nowMs: number): Promise<void> {
  await db
    .prepare(
      "INSERT INTO facts (name, value, at_ms) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value, at_ms = excluded.at_ms WHERE excluded.at_ms >= facts.at_ms",
    )
    .bind(name, value, nowMs)
    .run();
}

export async function readFacts(db: D1Database): Promise<Partial<Record<FactName, Fact>>> {
  const { results } = await db.prepare("SELECT name, value, at_ms AS atMs FROM facts").all<Fact & { name: FactName }>();
  return Object.fromEntries(results.map(({ name, value, atMs }) => [name, { value, atMs }]));
}

/** Facts whose name begins with `prefix`, the oldest first. */
export async function factsNamed(db: D1Database, prefix: string, limit: number): Promise<(Fact & { name: string })[]> {
  const { results } = await db
    .prepare("SELECT name, value, at_ms AS atMs FROM facts WHERE substr(name, 1, length(?1)) = ?1 ORDER BY at_ms LIMIT ?2")
    .bind(prefix, limit)
    .all<Fact & { name: string }>();
  return results;
}
