// The inbox of a worker session is its log: counted in rows, and taken over from the tables of an earlier version.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { TaskEvent } from "../../src/protocol/events.ts";
import { EventLog } from "../../src/storage/event-log.ts";
import { WorkerInbox } from "../../src/storage/worker-inbox.ts";
import { begin, card, deliver, done, events, newTask, requests, row, script, type TestTask, until, untilStatus } from "./worker-helpers.ts";

type Sql = DurableObjectState["storage"]["sql"];
const inside = <T>(task: TestTask, what: (sql: Sql, kv: SyncKvStorage) => T): Promise<T> =>
  runInDurableObject(task.stub as never, (_instance: never, { storage: { sql, kv } }: DurableObjectState) => what(sql, kv));

const asking = { calls: [{ tool: "report", input: { kind: "question", text: "Which one?" } }] };
const queued = (task: TestTask, seq: number, text: string) => row(task, seq, text, undefined, { mode: "queue", externalId: `ext-${seq}` });
const agent = { role: "agent", id: "tsk_other", name: "another task" } as const;

test("[Q8] a row that waits is two rows of the log, a known one is none, and a step that reads many marks it once", async () => {
  const task = newTask();
  await script(task, [asking, done("seen all")]);
  await begin(task);
  await untilStatus(task, "waiting");
  const written = (count: () => Promise<unknown>): Promise<number> =>
    inside(task, (sql) => {
      const exec = sql.exec.bind(sql) as Sql["exec"];
      const cursors: { rowsWritten: number }[] = [];
      sql.exec = ((query: string, ...bindings: never[]) => {
        const cursor = exec(query, ...bindings);
        cursors.push(cursor);
        return cursor;
      }) as Sql["exec"];
      return { exec, cursors, sql };
    }).then(async ({ exec, cursors, sql }) => {
      await count();
      sql.exec = exec;
      return cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
    });
  // What another task said wakes nothing.
  const rows = [1, 2, 3, 4].map((seq) => row(task, seq, `m${seq}`, agent));
  expect(await written(() => deliver(task, ...rows))).toBe(8);
  expect(await written(() => deliver(task, ...rows))).toBe(0);
  await evictDurableObject(task.stub as never);
  expect(await written(() => deliver(task, ...rows.slice(2)))).toBe(0);
  await deliver(task, row(task, 5, "go on"));
  await untilStatus(task, "done");
  expect((await requests(task))[1]?.at(-1)?.content).toMatch(/m1[\s\S]*m2[\s\S]*m3[\s\S]*m4[\s\S]*go on/);
  expect(await inside(task, (sql) => sql.exec("SELECT body FROM inbox_mark").toArray())).toHaveLength(1);
});

test("a long work that hears nothing new looks through a bounded part of its log, and keeps what is queued", async () => {
  const task = newTask({ maxModelCalls: 60 });
  const noted = Array.from({ length: 50 }, (_, n) => ({ calls: [{ tool: "note", input: { kind: "fact", text: `found ${n}` } }] }));
  await script(task, [asking, ...noted, asking, done("all"), done("the queued one as well")]);
  await begin(task);
  await untilStatus(task, "waiting");
  await deliver(task, queued(task, 1, "and then this"));
  await deliver(task, row(task, 2, "go on"));
  await until("it asks again", async () => {
    const { status, modelCalls } = await card(task);
    return status === "waiting" && modelCalls === 52;
  });
  await evictDurableObject(task.stub as never);
  const { head, mark } = await inside(task, (sql) => ({
    head: sql.exec<{ head: number }>("SELECT MAX(seq) AS head FROM log").one().head,
    mark: JSON.parse(sql.exec<{ body: string }>("SELECT body FROM inbox_mark").one().body) as { throughSeq: number; held: number[] },
  }));
  expect(head).toBeGreaterThan(150);
  expect(head - mark.throughSeq).toBeLessThan(110);
  expect(mark.held).toHaveLength(1);
  await deliver(task, row(task, 3, "thanks, go on"));
  await untilStatus(task, "done");
  expect((await requests(task)).at(-1)?.at(-1)?.content).toContain("and then this");
});

test("what a decision that was rolled back has read is read again", async () => {
  const task = newTask();
  await script(task, [asking]);
  await begin(task);
  await untilStatus(task, "waiting");
  await runInDurableObject(task.stub as never, (_instance: never, { storage }: DurableObjectState) => {
    const log = new EventLog<TaskEvent>(storage.sql);
    const inbox = new WorkerInbox(storage.sql, log);
    const told = (text: string) => ({ kind: "tell" as const, id: "dec_told", text, authority: "member" as const, tainted: false });
    const decide = (text: string, ends: () => void) =>
      storage.transactionSync(() => {
        inbox.receive([told(text)]);
        inbox.enter([], Date.now());
        expect(inbox.pending().at(-1)?.item).toMatchObject({ text });
        ends();
      });
    expect(() =>
      decide("the first word", () => {
        throw new Error("rolled back");
      }),
    ).toThrow("rolled back");
    inbox.rolledBack();
    expect(inbox.pending()).toEqual([]);
    decide("the second word", () => undefined);
    expect(inbox.pending().map(({ item }) => item)).toEqual([told("the second word")]);
    // What the test did to the log is undone: the task never heard of it.
    storage.sql.exec("DELETE FROM log WHERE key = (SELECT key FROM log ORDER BY seq DESC LIMIT 1)");
  });
});

/** As an earlier version kept it: the items in a table of their own, each with the step that took it, and the log without them. */
function makeOld(sql: Sql, kv: SyncKvStorage): void {
  const mark = JSON.parse(sql.exec<{ body: string }>("SELECT body FROM inbox_mark").one().body) as Record<string, number[]>;
  const items = sql.exec<{ seq: number; key: string; item: string }>("SELECT seq, key, item FROM log WHERE item IS NOT NULL").toArray();
  sql.exec("CREATE TABLE inbox (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL, step INTEGER)");
  sql.exec("CREATE INDEX inbox_pending ON inbox (seq) WHERE step IS NULL");
  for (const { seq, key, item } of items) {
    const waits = seq > Number(mark.throughSeq) || mark.waiting?.includes(seq);
    sql.exec("INSERT INTO inbox (key, body, step) VALUES (?, ?, ?)", key, item, waits ? null : mark.held?.includes(seq) ? -2 : 1);
  }
  sql.exec("UPDATE log SET key = NULL WHERE key IS NOT NULL");
  sql.exec("ALTER TABLE log DROP COLUMN item");
  sql.exec("DROP TABLE inbox_mark");
  kv.delete("tables");
}

test("[R28] a task whose inbox an earlier version kept goes on: what was read is known, what waits is read, the backlog is kept", async () => {
  const task = newTask();
  await script(task, [asking, asking, done("first"), done("then the queued one")]);
  await begin(task);
  await untilStatus(task, "waiting");
  await deliver(task, row(task, 1, "this one"));
  await deliver(task, queued(task, 2, "queued for later"));
  await untilStatus(task, "waiting");
  await deliver(task, row(task, 3, "said by another", agent));
  await inside(task, makeOld);
  await evictDurableObject(task.stub as never);

  expect((await card(task)).backlog).toEqual(["ext-2"]);
  await deliver(task, row(task, 1, "this one"), queued(task, 2, "queued for later"), row(task, 3, "said by another", agent));
  expect((await events(task, "task.inbox")).filter(({ item }) => item === "row")).toHaveLength(3);
  expect((await task.stub.describe())?.backlog.map(({ text }) => text)).toEqual(["queued for later"]);
  await deliver(task, row(task, 4, "now finish"));
  await untilStatus(task, "done");
  const last = (await requests(task)).slice(-2).map((messages) => messages.at(-1)?.content ?? "");
  expect(last[0]).toMatch(/said by another[\s\S]*now finish/);
  expect(last[0]).not.toContain("this one");
  expect(last[1]).toContain("queued for later");
  await evictDurableObject(task.stub as never);
  expect(await inside(task, (sql) => sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'inbox'").toArray())).toEqual([]);
});
