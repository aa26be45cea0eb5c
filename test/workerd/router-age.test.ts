// A router that has lived for months: counted in rows read, not in time.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { makeId } from "../../src/core/ids.ts";
import { EventLog } from "../../src/storage/event-log.ts";
import { member, reportOf, taskOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { type Lab, newLab, rows, say, script } from "./router-lab.ts";

type Sql = DurableObjectState["storage"]["sql"];
const inside = <T>(lab: Lab, what: (sql: Sql, instance: never, state: DurableObjectState) => T | Promise<T>): Promise<T> =>
  runInDurableObject(lab.router as never, (instance: never, state: DurableObjectState) => what(state.storage.sql, instance, state));

/** Rows that the object's statements read from here on. `peek` is this test's own look, which does not count. */
function countReads(sql: Sql): { peek: Sql["exec"]; stop: () => number } {
  const peek = sql.exec.bind(sql) as Sql["exec"];
  const cursors: { rowsRead: number }[] = [];
  sql.exec = ((query: string, ...bindings: never[]) => {
    const cursor = peek(query, ...bindings);
    cursors.push(cursor);
    return cursor;
  }) as Sql["exec"];
  const stop = () => {
    sql.exec = peek;
    return cursors.reduce((sum, { rowsRead }) => sum + rowsRead, 0);
  };
  return { peek, stop };
}

/** One message from its arrival until its decision and all effects are done, as rows read by an object that has just woken. */
async function readsOfATurn(lab: Lab, n: number): Promise<number> {
  const by = { ...member, id: `prs_${lab.token}` };
  await evictDurableObject(lab.router as never);
  const counted = await inside(lab, (sql) => countReads(sql));
  const { id } = await say(lab, { name: `${lab.token}${n}`, by, text: `hello ${n} ${lab.token}` });
  const isOver = "SELECT 1 FROM item WHERE id = ? AND state = 'settled' AND NOT EXISTS (SELECT 1 FROM effect WHERE state = 'pending')";
  await until("the decision", () => inside(lab, () => counted.peek(isOver, id).toArray().length > 0));
  await lab.router.poke();
  return inside(lab, () => counted.stop());
}

/** Months of work: ten thousand events, thousands of ended tasks, threads that moved, closed inbox rows and effects. */
const age = (lab: Lab, events: number): Promise<void> =>
  inside(lab, (sql, _instance, { storage }) => {
    for (let n = 0; n < events; n++) {
      const task = makeId("tsk", lab.token, n);
      const body = { kind: "router.passed", threadId: `thr_old${n}`, triggerIds: [`trg_old${n}-a`], taskId: task };
      sql.exec("INSERT INTO log (at_ms, kind, key, body) VALUES (1, ?, NULL, ?)", body.kind, JSON.stringify(body));
      if (n % 4 !== 0) continue;
      const known = taskOf(`${lab.token}${n}`, { id: task, status: "done", updatedMs: n, endedMs: n });
      sql.exec("INSERT INTO task (id, open, updated_ms, body) VALUES (?, 0, ?, ?)", task, n, JSON.stringify(known));
      sql.exec("INSERT INTO moved (thread_id, head_seq, seen_seq) VALUES (?, 5, 5)", `thr_old${n}`);
      sql.exec(
        "INSERT INTO item (id, ord, last, thread_id, seq, state, attempts, tries, problem, released_by, body, at_ms) VALUES (?, ?, 1, ?, 1, 'settled', 0, 0, NULL, '', '', ?)",
        `trg_old${n}-a`,
        n + 1,
        `thr_old${n}`,
        Date.now(),
      );
      sql.exec(
        "INSERT INTO effect (id, decision_id, chain, ord, effect, state, attempts, due_ms, result, at_ms) VALUES (?1, ?1, ?1, 0, '{}', 'done', 0, 0, '{}', ?2)",
        `dec_old${n}`,
        Date.now(),
      );
    }
    // As on an object that was kept by an earlier version: its index is made when it wakes.
    sql.exec("DELETE FROM log_about");
    storage.kv.delete("tables");
  });

test("[RI12] after ten thousand events a wake-up and a turn read no more rows than before, and one object's events are found by an index", async () => {
  const lab = await newLab();
  await script(
    lab.token,
    Array.from({ length: 8 }, () => ({ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "kept" } }] })),
  );
  await readsOfATurn(lab, 1);
  const young = await readsOfATurn(lab, 2);
  expect(young).toBeGreaterThan(0);
  await age(lab, 10_000);
  await evictDurableObject(lab.router as never);
  expect((await lab.router.overview()).pending).toBe(0);
  const old = await readsOfATurn(lab, 3);
  // Ten ended tasks more are shown; nothing else may count.
  expect(old).toBeLessThanOrEqual(young + 60);
  expect(await rows(lab, "SELECT seq FROM log")).toHaveLength((await rows<{ n: number }>(lab, "SELECT MAX(seq) AS n FROM log"))[0]?.n ?? 0);

  const about = makeId("tsk", lab.token, 7_777);
  const reads = await inside(lab, async (sql, instance) => {
    const { stop } = countReads(sql);
    const found = await (instance as Lab["router"]).events({ afterSeq: 0, limit: 50, about });
    return { found: found.map(({ event }) => event), rows: stop() };
  });
  expect(reads.found).toMatchObject([{ kind: "router.passed", taskId: about }]);
  expect(reads.rows).toBeLessThan(10);
  const report = reportOf({ task: taskOf(lab.token), kind: "progress", status: "running", text: "half of it" });
  const counted = await inside(lab, (sql) => countReads(sql));
  await lab.router.report(report);
  expect(await inside(lab, () => counted.stop())).toBeLessThanOrEqual(100);
});

test("[RI12] an index of a log gives what reading all of it gives", async () => {
  const lab = await newLab();
  await inside(lab, (sql) => {
    const log = new EventLog<{ kind: "router.escalated"; ids: string[]; question: string }>(sql, { indexed: () => true });
    const plain = new EventLog<{ kind: "router.escalated"; ids: string[]; question: string }>(sql);
    for (let n = 0; n < 300; n++)
      log.append({ kind: "router.escalated", ids: [`trg_${n % 7}a-${n % 5}`, `tsk_${n % 11}b`], question: `of dec_${n % 3}c/0/post` }, n);
    for (const about of ["trg_3a-2", "tsk_10b", "dec_1c", "thr_none", "tsk_none"])
      for (const afterSeq of [0, 150]) expect(log.after(afterSeq, 20, [], about)).toEqual(plain.after(afterSeq, 20, [], about));
  });
});
