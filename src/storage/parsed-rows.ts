// Rows of an append-only table, parsed once while their object is awake. The rows stay the truth.
import { estimateTokens } from "../core/context.ts";

type Row = { seq: number; body: string };
type Holding<T> = { range: string; values: T[]; tokens: number; last: Row | null };

/** What is held of one range of rows, oldest first. `tokens`: estimated, of their bodies. */
export type Held<T> = { readonly range: string; readonly values: readonly T[]; readonly tokens: number };

/**
 * Holds what was read, and reads only what came after it. The last row is read again with that: where it is not as it was, because a
 * transaction was rolled back, or where another range is asked for, everything is read anew.
 */
export class ParsedRows<T> {
  readonly #parse: (body: string) => T;
  #held: Holding<T> | null = null;

  constructor(parse: (body: string) => T) {
    this.#parse = parse;
  }

  /** `read` gives the rows of the range from one number on, oldest first. */
  of(range: string, read: (fromSeq: number) => Row[]): Held<T> {
    const held = this.#held?.range === range ? this.#held : null;
    if (held?.last) {
      const [again, ...fresh] = read(held.last.seq);
      if (again?.seq === held.last.seq && again.body === held.last.body) return this.#add(held, fresh);
    }
    return this.#add({ range, values: [], tokens: 0, last: null }, read(0));
  }

  #add(held: Holding<T>, rows: readonly Row[]): Held<T> {
    for (const row of rows) {
      held.values.push(this.#parse(row.body));
      held.tokens += estimateTokens(row.body);
    }
    held.last = rows.at(-1) ?? held.last;
    this.#held = held;
    return held;
  }
}

/** A row that is read far more often than it is written: parsed when its text is another than before. Nobody changes in place what it gives. */
export class ParsedRow<T> {
  readonly #parse: (body: string) => T;
  #held: { body: string; value: T } | null = null;

  constructor(parse: (body: string) => T) {
    this.#parse = parse;
  }

  of(body: string): T {
    if (this.#held?.body !== body) this.#held = { body, value: this.#parse(body) };
    return this.#held.value;
  }
}
