import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { encodeRecord, Journal, parseJournal } from "../../daemon/journal.ts";
import type { JournalRecord } from "../../daemon/ledger.ts";
import { scratch } from "./scratch.ts";

const record = (n: number): JournalRecord => ({ k: "acked", commandId: `cmd_a${n}`, atMs: n });

test("records that were appended together are there after a reopen, in order", async () => {
  const path = join(scratch(), "journal");
  const { journal } = await Journal.open(path);
  await Promise.all([journal.append(record(1)), journal.append(record(2), record(3)), journal.append(record(4))]);
  await journal.close();
  const again = await Journal.open(path);
  expect(again).toMatchObject({ records: [1, 2, 3, 4].map(record), torn: false });
  await again.journal.close();
});

test("an append is on the disk before it resolves", async () => {
  const path = join(scratch(), "journal");
  const { journal } = await Journal.open(path);
  await journal.append(record(1));
  expect(parseJournal(readFileSync(path, "utf8"), path).records).toEqual([record(1)]);
  await journal.close();
});

test("cut at any byte, the journal gives the records before the cut, and appending goes on from there", async () => {
  const dir = scratch();
  const whole = [1, 2, 3].map((n) => encodeRecord(record(n))).join("");
  for (let bytes = 0; bytes <= whole.length; bytes++) {
    const path = join(dir, `journal-${bytes}`);
    writeFileSync(path, whole);
    truncateSync(path, bytes);
    const { journal, records } = await Journal.open(path);
    const complete = whole.slice(0, bytes).split("\n").length - 1;
    expect(records).toEqual([1, 2, 3].slice(0, complete).map(record));
    await journal.append(record(9));
    await journal.close();
    expect(parseJournal(readFileSync(path, "utf8"), path)).toMatchObject({ records: [...records, record(9)], torn: false });
  }
});

test("a changed byte in any complete line is damage: it is named, and nothing is cut", () => {
  const whole = [1, 2, 3].map((n) => encodeRecord(record(n))).join("");
  void fc.assert(
    fc.property(fc.integer({ min: 0, max: whole.length - 2 }), fc.constantFrom("x", "0", " ", "\0"), (at, to) => {
      const changed = whole.slice(0, at) + to + whole.slice(at + 1);
      fc.pre(changed !== whole);
      expect(() => parseJournal(changed, "journal")).toThrow(/damaged at line [123]/);
    }),
  );
});

test("a record of a newer daemon is refused by name instead of being skipped", () => {
  const line = encodeRecord({ k: "teleported" } as unknown as JournalRecord);
  expect(() => parseJournal(line, "journal")).toThrow(/newer daemon/);
});

test("a rewrite replaces the file in one step, and what is appended meanwhile follows it", async () => {
  const path = join(scratch(), "journal");
  const { journal } = await Journal.open(path);
  await journal.append(record(1), record(2));
  await Promise.all([journal.rewrite([record(7)]), journal.append(record(8))]);
  await journal.append(record(9));
  await journal.close();
  expect(parseJournal(readFileSync(path, "utf8"), path).records).toEqual([record(7), record(8), record(9)]);
});

test("a journal that could not be written promises nothing any more", async () => {
  const path = join(scratch(), "journal");
  const { journal } = await Journal.open(path);
  await journal.close();
  appendFileSync(path, "");
  await expect(journal.append(record(1))).rejects.toThrow(/cannot be written/);
  await expect(journal.append(record(2))).rejects.toThrow(/cannot be written/);
});
