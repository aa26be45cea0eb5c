// An object's tables are made once, and brought up to date once after a change of them: an object that was put away and comes back reads
// one number, whatever it keeps.

/** Statements, or a function, that make the tables of one part of an object, or what is missing of them. Repeated they change nothing. */
export type Part = string | ((sql: SqlStorage) => void);

export type Tables = {
  /** Higher with each change of a part. */
  version: number;
  parts: readonly Part[];
};

/** In the platform's own key-value rows, which are there without any table of ours. */
const versionKey = "tables";

/** Whether this object keeps anything. `table`: one that it has had from the first version on, which kept no number. */
export const keepsTables = (storage: DurableObjectStorage, table: string): boolean =>
  storage.kv.get(versionKey) !== undefined || hasTable(storage.sql, table);

export const hasTable = (sql: SqlStorage, table: string): boolean =>
  sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table).toArray().length > 0;

/** [ST1] [ST2] The whole of what a constructor does about tables. */
export function openTables(storage: DurableObjectStorage, { version, parts }: Tables): void {
  if (storage.kv.get(versionKey) === version) return;
  storage.transactionSync(() => {
    for (const part of parts)
      if (typeof part === "string") storage.sql.exec(part);
      else part(storage.sql);
    storage.kv.put(versionKey, version);
  });
}

/** The values of rows that keep them as JSON in `body`. */
export const bodiesOf = <T>(sql: SqlStorage, query: string, ...bindings: (string | number)[]): T[] =>
  sql
    .exec<{ body: string }>(query, ...bindings)
    .toArray()
    .map(({ body }) => JSON.parse(body) as T);
