// The router's inbox: counted in rows, found again by a fresh object, and taken over from the table of an earlier version.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test, vi } from "vitest";
import { RouterTurns } from "../../durable-objects/router-turns.ts";
import type { Logged, RouterEvent } from "../../src/protocol/events.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { RouterInbox } from "../../src/storage/router-inbox.ts";
import { guest, member, triggerOf } from "../support/router-fixtures.ts";
import { append, decided, events, type Lab, newLab, rows, say, script, settled } from "./router-lab.ts";

type Sql = DurableObjectState["storage"]["sql"];
type Instance = { alarm(): Promise<void> };
const inside = <T>(lab: Lab, what: (sql: Sql, instance: Instance, kv: SyncKvStorage) => T | Promise<T>): Promise<T> =>
  runInDurableObject(lab.router as never, (instance: never, { storage }: DurableObjectState) => what(storage.sql, instance, storage.kv));

const recordAll = { calls: [{ tool: "record", input: { settles: ["$trg"], reason: "kept" } }] };
const said = (lab: Lab, n: number) => ({ name: `${lab.token}-${n}`, by: member, thread: lab.token, text: `${n} ${lab.token}` });

/** Rows that statements of these tables write. */
async function rowsWritten(lab: Lab, tables: RegExp, work: () => Promise<unknown>): Promise<number> {
  const { cursors, stop } = await inside(lab, (sql) => {
    const exec = sql.exec.bind(sql) as Sql["exec"];
    const cursors: { rowsWritten: number }[] = [];
    sql.exec = ((query: string, ...bindings: never[]) => {
      const cursor = exec(query, ...bindings);
      if (tables.test(query)) cursors.push(cursor);
      return cursor;
    }) as Sql["exec"];
    return { cursors, stop: () => Object.assign(sql, { exec }) };
  });
  await work();
  return inside(lab, () => {
    stop();
    return cursors.reduce((sum, cursor) => sum + cursor.rowsWritten, 0);
  });
}

test("[R3] an event that waits is two rows, a known one none; what waits is found again after an eviction, in its order", async () => {
  const lab = await newLab();
  const still = vi.spyOn(RouterTurns.prototype, "kick").mockReturnValue();
  const first = await say(lab, said(lab, 0));
  const more = await Promise.all([1, 2, 3].map((n) => append(said(lab, n))));
  const deliver = async () => {
    for (const { trigger, row } of more)
      await lab.router.deliver({ threadId: trigger.threadId, rows: [{ row, alsoWith: [] }], before: [], tasks: [] });
  };
  expect(await rowsWritten(lab, /\b(item|log|log_about|inbox)\b/, deliver)).toBe(6);
  expect(await rowsWritten(lab, /\b(item|log|log_about|inbox)\b/, deliver)).toBe(0);
  expect((await lab.router.overview()).pending).toBe(4);
  await evictDurableObject(lab.router as never);
  expect((await lab.router.overview()).pending).toBe(4);
  const ids = [first.id, ...more.map(({ trigger }) => trigger.id)];
  await script(lab.token, [{ calls: [{ tool: "record", input: { settles: ids, reason: "kept" } }] }]);
  still.mockRestore();
  await lab.router.poke();
  expect((await decided(lab, more[2]?.trigger.id ?? "")).settles).toEqual(ids);
  await settled(lab);
  await evictDurableObject(lab.router as never);
  await deliver();
  expect((await events(lab)).filter(({ event }) => event.kind === "router.inbox")).toHaveLength(4);
});

test("[RI12] what names an item is found by its id: its entry, its model calls, its decision and what came after", async () => {
  const lab = await newLab();
  await script(lab.token, [recordAll, recordAll]);
  const one = await say(lab, said(lab, 1));
  await decided(lab, one.id);
  const two = await say(lab, said(lab, 2));
  await decided(lab, two.id);
  await settled(lab);
  await evictDurableObject(lab.router as never);
  const all = await events(lab);
  for (const { id } of [one, two]) {
    const naming = all.filter(({ event }) => event.kind !== "router.context" && JSON.stringify(event).includes(id));
    const found = (await lab.router.events({ afterSeq: 0, limit: 100, about: id })) as Logged<RouterEvent>[];
    expect(found.filter(({ event }) => event.kind !== "router.context")).toEqual(naming);
    expect(found.map(({ event }) => event.kind)).toContain("router.decision");
    const [start = 0] = naming.map(({ seq }) => seq);
    expect((await lab.router.events({ afterSeq: start, limit: 1, about: id })).map(({ seq }) => seq)).toEqual([naming[1]?.seq]);
  }
});

test("[RT4] neither a flood of the other lane nor a thread that is held hides what waits behind it", async () => {
  const lab = await newLab();
  const still = vi.spyOn(RouterTurns.prototype, "kick").mockReturnValue();
  const flood = Array.from({ length: 210 }, (_, i) => triggerOf({ name: `${lab.token}-f${i}`, by: guest, thread: `${lab.token}f` }));
  const verdict = { outcome: "candidate", rule: "test", reason: "said" } as const;
  const rowsOf = (triggers: readonly Trigger[]) =>
    triggers.map((trigger, i) => ({ row: { kind: "trigger" as const, seq: i + 1, atMs: 1, trigger, verdict }, alsoWith: [] }));
  const deliver = (...triggers: Trigger[]) =>
    lab.router.deliver({ threadId: triggers[0]?.threadId ?? "", rows: rowsOf(triggers), before: [], tasks: [] });
  await deliver(...flood);
  const stranger = triggerOf({ name: `${lab.token}-s`, by: guest, thread: `${lab.token}s` });
  const asked = triggerOf({ name: `${lab.token}-a`, by: member, thread: `${lab.token}a` });
  for (const one of [stranger, asked]) await deliver(one);
  await evictDurableObject(lab.router as never);
  const queued = (held: string[]) => inside(lab, (sql) => new RouterInbox(sql).queued(new Set(held)).map(({ id }) => id));
  expect(await queued([])).toContain(asked.id);
  expect(await queued([flood[0]?.threadId ?? ""])).toEqual([asked.id, stranger.id]);
  await inside(lab, (sql) => sql.exec("UPDATE item SET state = 'settled'"));
  still.mockRestore();
});

/** As an earlier version kept it. */
function makeOld(sql: Sql, _instance: Instance, kv: SyncKvStorage): void {
  sql.exec(
    "CREATE TABLE inbox (ord INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, thread_id TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, tries INTEGER NOT NULL, problem TEXT, released_by TEXT NOT NULL, body TEXT NOT NULL, at_ms INTEGER NOT NULL)",
  );
  sql.exec("CREATE INDEX inbox_queued ON inbox (ord) WHERE state = 'queued'");
  sql.exec(
    "INSERT INTO inbox (id, thread_id, seq, state, attempts, tries, problem, released_by, body, at_ms) SELECT id, thread_id, seq, state, attempts, tries, problem, released_by, body, at_ms FROM item ORDER BY ord",
  );
  for (const table of ["item", "item_mark", "log_about"]) sql.exec(`DROP TABLE ${table}`);
  kv.delete("tables");
}

test("[R28] a router whose inbox an earlier version kept goes on: what was decided is known, what waits is decided in its order", async () => {
  const lab = await newLab();
  await script(lab.token, [recordAll]);
  const old = await append(said(lab, 1));
  const deliver = ({ trigger, row }: typeof old) =>
    lab.router.deliver({ threadId: trigger.threadId, rows: [{ row, alsoWith: [] }], before: [], tasks: [] });
  await deliver(old);
  await decided(lab, old.trigger.id);
  await settled(lab);
  const still = vi.spyOn(RouterTurns.prototype, "kick").mockReturnValue();
  const waiting = [await append(said(lab, 2)), await append(said(lab, 3))];
  for (const each of waiting) await deliver(each);
  await inside(lab, makeOld);
  await evictDurableObject(lab.router as never);

  expect((await lab.router.overview()).pending).toBe(2);
  for (const each of [old, ...waiting]) await deliver(each);
  const later = await append(said(lab, 4));
  await deliver(later);
  expect((await lab.router.overview()).pending).toBe(3);
  const ids = [...waiting, later].map(({ trigger }) => trigger.id);
  await script(lab.token, [{ calls: [{ tool: "record", input: { settles: ids, reason: "kept" } }] }]);
  await evictDurableObject(lab.router as never);
  still.mockRestore();
  await lab.router.poke();
  expect((await decided(lab, later.trigger.id)).settles).toEqual(ids);
  expect(await rows(lab, "SELECT state, COUNT(*) AS n FROM item GROUP BY state")).toEqual([{ state: "settled", n: 4 }]);
  const found = (await lab.router.events({ afterSeq: 0, limit: 50, about: old.trigger.id })) as Logged<RouterEvent>[];
  expect(found.map(({ event }) => event.kind)).toContain("router.decision");
});

test("what closed items said is forgotten after its time, once; their ids stay, and nothing more is due", async () => {
  const lab = await newLab();
  await script(lab.token, [recordAll]);
  const one = await append(said(lab, 1));
  const deliver = () =>
    lab.router.deliver({ threadId: one.trigger.threadId, rows: [{ row: one.row, alsoWith: [] }], before: [], tasks: [] });
  await deliver();
  await decided(lab, one.trigger.id);
  await settled(lab);
  await inside(lab, (sql) => {
    for (const table of ["item", "log", "effect"]) sql.exec(`UPDATE ${table} SET at_ms = 1`);
    sql.exec("UPDATE deadline SET due_ms = 1 WHERE id = 'prune'");
  });
  await evictDurableObject(lab.router as never);
  await inside(lab, (_sql, instance) => instance.alarm());
  expect(await rows(lab, "SELECT id, body FROM item")).toEqual([{ id: one.trigger.id, body: "" }]);
  expect(await rows(lab, "SELECT id FROM deadline")).toEqual([]);
  await deliver();
  expect((await lab.router.overview()).pending).toBe(0);
});
