// Tables of objects: made once, brought up to date once, and nothing of that when an object comes back.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { Board } from "../../durable-objects/board.ts";
import { Endpoint } from "../../durable-objects/endpoint.ts";
import { Router } from "../../durable-objects/router.ts";
import { Thread } from "../../durable-objects/thread.ts";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import type { Env } from "../../src/env.ts";
import { issue, stubOf, threadOf, triggerIn, uniqueName, verdict } from "./thread-fixtures.ts";
import { newTask } from "./worker-helpers.ts";

const bindings = env as unknown as Env;

type Kept = {
  stub: DurableObjectStub;
  open: (state: DurableObjectState) => object;
  /** Statements that its constructor may ask of its rows. */
  asks: number;
  /** Tables that its first version had not. */
  later: string[];
};

/** One object of each kind that keeps something. */
const kept: Record<string, () => Promise<Kept>> = {
  Thread: async () => {
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "one"), verdict: verdict("record") });
    return { stub: stubOf(where.threadId), open: (state) => new Thread(state, bindings), asks: 0, later: ["offer", "released", "edition"] };
  },
  WorkerSession: async () => {
    const { stub } = newTask();
    await stub.tell({ id: "rep_a", text: "before it began", authority: "member", tainted: false });
    return {
      stub: stub as unknown as DurableObjectStub,
      open: (state) => new WorkerSession(state, bindings),
      asks: 1,
      later: ["note", "spilled", "inbox_mark"],
    };
  },
  Endpoint: async () => {
    const stub = bindings.ENDPOINT.getByName(`ep_${uniqueName()}`);
    await stub.asked({ taskId: "tsk_a" });
    return { stub: stub as unknown as DurableObjectStub, open: (state) => new Endpoint(state, bindings), asks: 0, later: ["log_about"] };
  },
  Router: async () => {
    const stub = bindings.ROUTER.getByName(`router-${uniqueName()}`);
    await stub.overview();
    return {
      stub: stub as unknown as DurableObjectStub,
      open: (state) => new Router(state, bindings),
      asks: 1,
      later: ["acts", "fact", "memory", "memory_text", "schedule", "schedule_run", "speculation", "log_about"],
    };
  },
  Board: async () => {
    const stub = bindings.BOARD.getByName(`board-${uniqueName()}`);
    await stub.snapshot();
    return { stub: stub as unknown as DurableObjectStub, open: (state) => new Board(state, bindings), asks: 0, later: ["ended_session"] };
  },
};

/** All our tables and indexes, as they were made. */
const tablesOf = (sql: SqlStorage): string[] =>
  sql
    .exec<{ name: string; sql: string | null }>(
      "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE '%cf\\_%' ESCAPE '\\' ORDER BY name",
    )
    .toArray()
    .map((row) => `${row.name} ${row.sql}`);

/** The statements that `work` executes. */
function statementsOf(sql: SqlStorage, work: () => void): string[] {
  const exec = sql.exec.bind(sql) as SqlStorage["exec"];
  const seen: string[] = [];
  sql.exec = ((query: string, ...bound: never[]) => {
    seen.push(query);
    return exec(query, ...bound);
  }) as SqlStorage["exec"];
  try {
    work();
  } finally {
    sql.exec = exec;
  }
  return seen;
}

test.each(Object.entries(kept))("[ST1] a %s that comes back makes no table and asks for none", async (_, make) => {
  const { stub, open, asks } = await make();
  await evictDurableObject(stub);
  await runInDurableObject(stub, (_instance, state) => {
    const statements = statementsOf(state.storage.sql, () => void open(state));
    expect(statements.filter((statement) => /CREATE|sqlite_master/i.test(statement))).toEqual([]);
    expect(statements.length).toBeLessThanOrEqual(asks);
  });
});

test.each(Object.entries(kept))(
  "[ST2] a %s of the first version gets the tables that came later, once, and keeps the others",
  async (kind, make) => {
    const { stub, later } = await make();
    const before = await runInDurableObject(stub, (_instance, { storage: { sql, kv } }) => {
      const all = tablesOf(sql);
      kv.delete("tables");
      for (const table of later) sql.exec(`DROP TABLE ${table}`);
      expect(tablesOf(sql)).not.toEqual(all);
      return all;
    });
    await evictDurableObject(stub);
    await runInDurableObject(stub, (_instance, { storage: { sql, kv } }) => {
      expect(tablesOf(sql)).toEqual(before);
      expect(String(kv.get("tables"))).toBe(pinned[kind]?.split(" ")[0]);
    });
  },
);

/** The version of each kind's tables, and a hash of their text. Whoever changes a table raises its version, and both lines here. */
const pinned: Record<string, string> = {
  Thread: "2 1f20a83da6cf",
  WorkerSession: "1 b3df8deb2b95",
  Endpoint: "1 a23948fb3db2",
  Router: "2 eb551e4461d0",
  Board: "1 2d02f76160dd",
};

test.each(Object.entries(kept))("[ST3] the tables of a %s change with their version", async (kind, make) => {
  const { stub } = await make();
  const found = await runInDurableObject(stub, async (_instance, { storage: { sql, kv } }) => {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(tablesOf(sql).join("\n")));
    return `${String(kv.get("tables"))} ${[...new Uint8Array(digest).subarray(0, 6)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  });
  expect(found).toBe(pinned[kind]);
});

test("[ST2] a log of the first version keeps its own index over all rows, and its keys", async () => {
  const where = issue();
  const thread = threadOf(where.threadId);
  const trigger = triggerIn(where, "one");
  await thread.append({ trigger, verdict: verdict("record") });
  await runInDurableObject(stubOf(where.threadId), (_, { storage: { sql, kv } }) => {
    sql.exec("ALTER TABLE log RENAME TO newer");
    sql.exec("DROP INDEX log_key");
    sql.exec("CREATE TABLE log (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT UNIQUE, body TEXT NOT NULL)");
    sql.exec("INSERT INTO log SELECT * FROM newer");
    sql.exec("DROP TABLE newer");
    kv.delete("tables");
  });
  await evictDurableObject(stubOf(where.threadId));
  expect(await thread.append({ trigger, verdict: verdict("record") })).toMatchObject({ outcome: "duplicate", seq: 1 });
  expect(await thread.append({ trigger: triggerIn(where, "two"), verdict: verdict("record") })).toMatchObject({ outcome: "accepted" });
  await runInDurableObject(stubOf(where.threadId), (_, { storage: { sql } }) => {
    expect(sql.exec("SELECT name FROM sqlite_master WHERE name = 'log_key'").toArray()).toEqual([]);
  });
});
