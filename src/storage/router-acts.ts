// How often the router acted, a row a day: because somebody had asked, and by itself.

const dayMs = 24 * 60 * 60_000;
/** Days that are summed up, and after which a row goes. */
export const actsDays = 30;

export const actsTables = "CREATE TABLE IF NOT EXISTS acts (day INTEGER PRIMARY KEY, asked INTEGER NOT NULL, unasked INTEGER NOT NULL)";

export class RouterActs {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  count(unasked: boolean, nowMs: number): void {
    const day = Math.floor(nowMs / dayMs);
    this.#sql.exec(
      "INSERT INTO acts (day, asked, unasked) VALUES (?1, ?2, ?3) ON CONFLICT (day) DO UPDATE SET asked = asked + ?2, unasked = unasked + ?3",
      day,
      unasked ? 0 : 1,
      unasked ? 1 : 0,
    );
    this.#sql.exec("DELETE FROM acts WHERE day <= ?", day - actsDays);
  }

  sum(nowMs: number): { asked: number; unasked: number } {
    const since = Math.floor(nowMs / dayMs) - actsDays;
    return this.#sql
      .exec<{ asked: number; unasked: number }>(
        "SELECT IFNULL(SUM(asked), 0) AS asked, IFNULL(SUM(unasked), 0) AS unasked FROM acts WHERE day > ?",
        since,
      )
      .one();
  }
}
