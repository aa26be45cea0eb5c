import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Env } from "../../src/env.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { overdueObjects, WakeList } from "../../src/storage/wake-list.ts";

const { DB } = env as unknown as Env;

test("twenty isolates that migrate at once leave each migration applied once", async () => {
  await Promise.all(
    Array.from({ length: 20 }, () => migrated(new Proxy(DB, { get: (db, key) => Reflect.get(db, key).bind(db) }) as D1Database)),
  );
  const { results } = await DB.prepare("SELECT name FROM d1_migrations").all();
  expect(results).toEqual([
    { name: "0000_init.sql" },
    { name: "0001_gate.sql" },
    { name: "0002_profiles.sql" },
    { name: "0003_release.sql" },
    { name: "0004_speculation.sql" },
    { name: "0005_marks.sql" },
    { name: "0006_held-offers.sql" },
    { name: "0007_saved-in.sql" },
  ]);
});

test("a request that goes away while it migrates holds up no other", async () => {
  let gone = true;
  const never = { run: () => new Promise(() => {}) };
  const db = new Proxy(DB, {
    get: (target, key) => (gone ? () => never : Reflect.get(target, key).bind(target)),
  });
  void migrated(db);
  gone = false;
  await migrated(db);
});

test("an object stands on the wake list while it is busy, and is handed to the cron once when it is overdue", async () => {
  await migrated(DB);
  const list = new WakeList(DB, "worker", "tsk_wake");
  await list.report(1000);
  expect(await overdueObjects(DB, 50_000)).toEqual([]);
  expect((await overdueObjects(DB, 200_000)).map((entry) => entry.objectId)).toEqual(["tsk_wake"]);
  expect(await overdueObjects(DB, 200_000)).toEqual([]);
  await list.report(null);
  expect(await overdueObjects(DB, 9_000_000)).toEqual([]);
});

test("an object whose time is far away is listed with it, and with its next deadline while it is at work", async () => {
  const list = new WakeList(DB, "worker", "tsk_far");
  const overdueAt = async (nowMs: number) => (await overdueObjects(DB, nowMs)).map(({ objectId }) => objectId);
  await list.report(9_000_000, true);
  expect(await overdueAt(200_000)).toEqual([]);
  await list.report(100_000);
  expect(await overdueAt(200_000)).toEqual(["tsk_far"]);
  await list.report(9_000_000, true);
  expect(await overdueAt(400_000)).toEqual([]);
  await list.report(1_000_000, true);
  expect(await overdueAt(2_000_000)).toEqual(["tsk_far"]);
  await list.report(null);
  expect(await overdueAt(99_000_000)).toEqual([]);
});
