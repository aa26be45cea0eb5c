// The router's memory in its own SQLite: facts as rows, and one full-text index over facts, tasks, decisions and titles.
import { mayReachAny, operatorAudience } from "../core/audience.ts";
import {
  type Fact,
  type FindQuery,
  type FindScope,
  type Forgotten,
  factAudience,
  hitsPerPage,
  type MemoryEntry,
  matchOf,
  maxFacts,
  phraseOf,
  spaced,
  termsOf,
} from "../core/router-memory.ts";

export const memoryTables = [
  "CREATE TABLE IF NOT EXISTS fact (id TEXT PRIMARY KEY, by_id TEXT NOT NULL, current INTEGER NOT NULL, at_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS memory (ord INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, lane TEXT NOT NULL, audience TEXT NOT NULL, thread_id TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL, tail TEXT NOT NULL, at_ms INTEGER NOT NULL)",
  'CREATE VIRTUAL TABLE IF NOT EXISTS memory_text USING fts5 (title, body, tokenize = "unicode61 remove_diacritics 2")',
];

/** [A9] `mayReachAny` of core/audience.ts, for a query: one conversation of the turn at least may hear it. Only facts are told to the whole team. */
const audible =
  "((memory.audience = '' AND memory.kind = 'fact') OR EXISTS (SELECT 1 FROM json_each(?) AS reader WHERE reader.value = memory.audience OR (reader.value LIKE 'web %' AND memory.audience LIKE '% %' AND memory.audience NOT LIKE 'web %')))";

type MemoryRow = {
  ord: number;
  id: string;
  kind: MemoryEntry["kind"];
  lane: MemoryEntry["lane"];
  audience: string;
  thread_id: string;
  title: string;
  body: string;
  tail: string;
  at_ms: number;
};

export class RouterMemory {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** Enters or changes what can be found; a `body` of null keeps the one there is. */
  put(entry: Omit<MemoryEntry, "body"> & { body: string | null }): void {
    const known = this.#row(entry.id);
    const body = entry.body ?? known?.body ?? "";
    const same =
      known?.title === entry.title &&
      known.body === body &&
      known.tail === entry.tail &&
      known.lane === entry.lane &&
      known.audience === entry.audience;
    if (known !== undefined && same) return;
    const { ord } = this.#sql
      .exec<{ ord: number }>(
        "INSERT INTO memory (id, kind, lane, audience, thread_id, title, body, tail, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET lane = excluded.lane, audience = excluded.audience, thread_id = excluded.thread_id, title = excluded.title, body = excluded.body, tail = excluded.tail, at_ms = excluded.at_ms RETURNING ord",
        entry.id,
        entry.kind,
        entry.lane,
        entry.audience,
        entry.threadId,
        entry.title,
        body,
        entry.tail,
        entry.atMs,
      )
      .one();
    this.#sql.exec("DELETE FROM memory_text WHERE rowid = ?", ord);
    this.#sql.exec(
      "INSERT INTO memory_text (rowid, title, body) VALUES (?, ?, ?)",
      ord,
      spaced(entry.title),
      spaced(`${body}\n${entry.tail}`),
    );
  }

  /** Keeps a fact; the one that it replaces stays readable by its id, and is found no more. */
  remember(fact: Fact, replaces: string | null): void {
    const old = replaces === null ? null : this.fact(replaces);
    if (old !== null) {
      this.#setPast({ ...old, replacedBy: fact.id });
      this.#erase([old.id]);
    }
    this.#sql.exec(
      "INSERT OR IGNORE INTO fact (id, by_id, current, at_ms, body) VALUES (?, ?, 1, ?, ?)",
      fact.id,
      fact.by.id,
      fact.atMs,
      JSON.stringify(fact),
    );
    const { id, kind, text, threadId, atMs, by } = fact;
    this.put({ id, kind: "fact", lane: "team", audience: factAudience(fact), threadId, title: kind, body: text, tail: by.name, atMs });
  }

  /** [RD17] The words of a fact go, and those of what it had taken the place of. False when there is nothing to forget. */
  forget(id: string, forgotten: Forgotten): boolean {
    const fact = this.fact(id);
    if (fact === null || fact.forgotten !== undefined) return false;
    for (const each of this.#family(fact)) {
      this.#setPast({ ...each, text: "", forgotten });
      this.#erase([each.id, ...this.#repeatedIn(each.text)]);
    }
    return true;
  }

  /** A decision rested on it. */
  used(id: string, nowMs: number): void {
    const fact = this.fact(id);
    if (fact === null || fact.forgotten !== undefined) return;
    const body = JSON.stringify({ ...fact, used: (fact.used ?? 0) + 1, usedMs: nowMs });
    this.#sql.exec("UPDATE fact SET body = ? WHERE id = ?", body, id);
  }

  /** For operators: what holds, by all of the words, or without words the newest first. */
  list(query: string, limit: number): { facts: Fact[]; total: number } {
    if (query === "") {
      const { total } = this.#sql.exec<{ total: number }>("SELECT COUNT(*) AS total FROM fact WHERE current = 1").one();
      return { facts: this.facts(limit), total };
    }
    const { hits, total } = this.find({ query, kind: "fact", page: 1 }, { lane: "all" }, limit);
    return { facts: hits.flatMap(({ id }) => this.fact(id) ?? []), total };
  }

  fact(id: string): Fact | null {
    return this.#facts("SELECT body FROM fact WHERE id = ?", id)[0] ?? null;
  }

  /** Facts that hold, the newest first. */
  facts(limit: number): Fact[] {
    return this.#facts("SELECT body FROM fact WHERE current = 1 ORDER BY at_ms DESC, id LIMIT ?", limit);
  }

  /** Facts that share words with a turn, best first, then what its people said of their preferences last. */
  relevant(terms: readonly string[], people: readonly string[], readers: readonly string[]): Fact[] {
    const match = matchOf(terms, "OR");
    const byWords =
      match === ""
        ? []
        : this.#facts(
            `SELECT fact.body FROM memory_text JOIN memory ON memory.ord = memory_text.rowid JOIN fact ON fact.id = memory.id WHERE memory_text MATCH ? AND memory.kind = 'fact' AND ${audible} ORDER BY bm25(memory_text), fact.id LIMIT ?`,
            match,
            JSON.stringify(readers),
            maxFacts,
          );
    const own = [...new Set(people)].flatMap((id) =>
      this.#facts("SELECT body FROM fact WHERE current = 1 AND by_id = ? ORDER BY at_ms DESC, id LIMIT 6", id).filter(
        (fact) => fact.kind === "preference" && mayReachAny(factAudience(fact), readers),
      ),
    );
    return [...new Map([...byWords, ...own].map((fact) => [fact.id, fact])).values()];
  }

  /** Entries that hold all words, or when there is none any of them; a page of them, and how many there are. Without words all of a kind. */
  find(query: FindQuery, scope: FindScope, limit = hitsPerPage): { hits: MemoryEntry[]; total: number } {
    const terms = termsOf(query.query);
    if (query.query === "" && query.kind !== undefined) return this.#find(null, query, scope, limit);
    if (terms.length === 0) return { hits: [], total: 0 };
    const all = this.#find(matchOf(terms, "AND", true), query, scope, limit);
    // Who types on narrows it down: an operator's search never means "any of them".
    return all.total > 0 || terms.length === 1 || scope.lane === "all" ? all : this.#find(matchOf(terms, "OR", true), query, scope, limit);
  }

  #find(match: string | null, { kind, page }: FindQuery, scope: FindScope, limit: number): { hits: MemoryEntry[]; total: number } {
    const matching = "FROM memory_text JOIN memory ON memory.ord = memory_text.rowid WHERE memory_text MATCH ?";
    const from = `${match === null ? "FROM memory WHERE TRUE" : matching}${kind === undefined ? "" : " AND kind = ?"}`;
    const order = match === null ? "at_ms DESC" : "bm25(memory_text, 2.0, 1.0), at_ms DESC";
    // Of the public lane: titles of tasks in its own threads, and what was decided there in that lane.
    const filter =
      scope.lane === "all"
        ? ` AND (memory.kind <> 'fact' OR ${audible})`
        : scope.lane === "team"
          ? ` AND ${audible}`
          : ` AND thread_id IN (SELECT value FROM json_each(?)) AND (kind = 'task' OR (kind IN ('decision', 'thread') AND lane = 'public'))`;
    const may = scope.lane === "all" ? [operatorAudience] : scope.lane === "team" ? scope.readers : scope.threads;
    const values = [...(match === null ? [] : [match]), ...(kind === undefined ? [] : [kind]), JSON.stringify(may)];
    const { total } = this.#sql.exec<{ total: number }>(`SELECT COUNT(*) AS total ${from}${filter}`, ...values).one();
    const hits = this.#sql
      .exec<MemoryRow>(
        `SELECT memory.* ${from}${filter} ORDER BY ${order}, memory.id LIMIT ? OFFSET ?`,
        ...values,
        limit,
        (page - 1) * limit,
      )
      .toArray()
      .map(({ ord: _, thread_id: threadId, at_ms: atMs, ...row }) => ({ ...row, threadId, atMs }));
    return { hits, total };
  }

  /** Who could read what was said in a thread; empty when the thread is not known. */
  audienceOf(threadId: string): string {
    return this.#row(threadId)?.audience ?? "";
  }

  #row(id: string): MemoryRow | undefined {
    return this.#sql.exec<MemoryRow>("SELECT * FROM memory WHERE id = ?", id).toArray()[0];
  }

  #setPast(fact: Fact): void {
    this.#sql.exec("UPDATE fact SET current = 0, body = ? WHERE id = ?", JSON.stringify(fact), fact.id);
  }

  /** A fact, and all that it took the place of. */
  #family(fact: Fact): Fact[] {
    const before = this.#facts("SELECT body FROM fact WHERE current = 0 AND json_extract(body, '$.replacedBy') = ?", fact.id);
    return [fact, ...before.flatMap((each) => this.#family(each))];
  }

  /** Answers that repeated its sentence: by them it would be found again. */
  #repeatedIn(text: string): string[] {
    const phrase = phraseOf(text);
    if (phrase === "") return [];
    const query =
      "SELECT memory.id FROM memory_text JOIN memory ON memory.ord = memory_text.rowid WHERE memory_text MATCH ? AND memory.kind = 'decision'";
    return this.#sql
      .exec<{ id: string }>(query, phrase)
      .toArray()
      .map(({ id }) => id);
  }

  /** Takes entries out of the index. Their words go with them, and do not wait in it until it is merged. */
  #erase(ids: readonly string[]): void {
    const secure = (on: 0 | 1) => this.#sql.exec(`INSERT INTO memory_text (memory_text, rank) VALUES ('secure-delete', ${on})`);
    secure(1);
    for (const id of ids) {
      const known = this.#row(id);
      if (known === undefined) continue;
      this.#sql.exec("DELETE FROM memory_text WHERE rowid = ?", known.ord);
      this.#sql.exec("DELETE FROM memory WHERE ord = ?", known.ord);
    }
    secure(0);
  }

  #facts(query: string, ...bindings: (string | number)[]): Fact[] {
    return this.#sql
      .exec<{ body: string }>(query, ...bindings)
      .toArray()
      .map((row) => JSON.parse(row.body) as Fact);
  }
}
