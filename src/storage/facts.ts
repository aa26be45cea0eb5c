// Small facts about the deployment in D1, such as when GitHub was last heard.

export const factNames = { githubPing: "github.ping", githubDelivery: "github.delivery" } as const;
export type FactName = (typeof factNames)[keyof typeof factNames];
export type Fact = { value: string; atMs: number };

/** Keeps the newest value of a fact. */
export async function saveFact(db: D1Database, name: FactName, value: string, nowMs: number): Promise<void> {
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
