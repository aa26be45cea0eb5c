import fc from "fast-check";
import { expect, test } from "vitest";
import { estimateTokens } from "../../src/core/context.ts";
import { ParsedRow, ParsedRows } from "../../src/storage/parsed-rows.ts";

type Row = { seq: number; body: string };
const from = (rows: readonly Row[]) => (seq: number) => rows.filter((row) => row.seq >= seq);

test("[L5] what is held is what the rows say, whatever was appended, rolled back or begun anew in between", () => {
  const act = fc.oneof(
    fc.record({ act: fc.constant("append" as const), body: fc.string({ maxLength: 5 }) }),
    /** A transaction that was rolled back takes its rows with it, also those that were read meanwhile. */
    fc.record({ act: fc.constant("rollback" as const), body: fc.string({ maxLength: 5 }), read: fc.boolean() }),
    fc.record({ act: fc.constant("range" as const) }),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
      const held = new ParsedRows((body) => ({ body }));
      let rows: Row[] = [];
      let range = 0;
      for (const [i, each] of acts.entries()) {
        const next = { seq: rows.length + 1, body: `${"body" in each ? each.body : ""}${i}` };
        if (each.act === "append") rows.push(next);
        else if (each.act === "range") [rows, range] = [[], range + 1];
        else if (each.read) held.of(`${range}`, from([...rows, next]));
        const { values, tokens } = held.of(`${range}`, from(rows));
        expect(values.map(({ body }) => body)).toEqual(rows.map(({ body }) => body));
        expect(tokens).toBe(rows.reduce((sum, { body }) => sum + estimateTokens(body), 0));
      }
    }),
  );
});

test("[L5] a row is parsed once while its object is awake, and is the same object then", () => {
  let parsed = 0;
  const held = new ParsedRows((body) => {
    parsed += 1;
    return { body };
  });
  const rows: Row[] = [];
  for (let seq = 1; seq <= 100; seq++) {
    rows.push({ seq, body: `row ${seq}` });
    held.of("all", from(rows));
  }
  expect(parsed).toBe(100);
  const before = held.of("all", from(rows)).values[0];
  rows.push({ seq: 101, body: "row 101" });
  expect(held.of("all", from(rows)).values[0]).toBe(before);
});

test("[L5] a row that did not change is not parsed again, and one that did is", () => {
  const parsed: string[] = [];
  const held = new ParsedRow((body) => {
    parsed.push(body);
    return { body };
  });
  const read = ["a", "a", "b", "b", "a"].map((body) => held.of(body).body);
  expect(read).toEqual(["a", "a", "b", "b", "a"]);
  expect(parsed).toEqual(["a", "b", "a"]);
});
