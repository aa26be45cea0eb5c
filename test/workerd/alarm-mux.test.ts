import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Env } from "../../src/env.ts";
import { AlarmMux } from "../../src/storage/alarm-mux.ts";
import { EventLog, logTables } from "../../src/storage/event-log.ts";

const bindings = env as unknown as Env;
const anObject = (name: string) => bindings.ENDPOINT.getByName(`ep_${name}`) as unknown as DurableObjectStub;
const soonMs = (): number => Date.now() + 3_600_000;
const nextTurn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

const nothing = async (): Promise<undefined> => undefined;
/** Deadlines that are set here and do not come. */
const idle = { first: nothing, later: nothing, late: nothing, early: nothing, nothing };

/** The platform's methods, counted: setting an alarm is billed as a row. */
function countingAlarms(storage: DurableObjectStorage): { storage: DurableObjectStorage; set(): number } {
  let count = 0;
  const counted = new Proxy(storage, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        if (name === "setAlarm" || name === "deleteAlarm") count += 1;
        return (value as (...all: unknown[]) => unknown).apply(target, given);
      };
    },
  });
  return { storage: counted, set: () => count };
}

test("the alarm is set when the earliest deadline changes, and not at every change of a deadline", async () => {
  await runInDurableObject(anObject("alarm-count"), async (_, state) => {
    const { storage, set } = countingAlarms(state.storage);
    const alarms = new AlarmMux(storage, idle);
    const firstMs = soonMs();
    alarms.set("first", firstMs);
    await nextTurn();
    alarms.set("first", firstMs);
    alarms.set("later", firstMs + 1_000);
    alarms.setAbout("later", firstMs + 2_000);
    alarms.clear("nothing");
    expect(set()).toBe(1);
    expect(alarms.due("later")).toBe(firstMs + 1_000);
    alarms.setAbout("later", firstMs + 60_000);
    expect(alarms.due("later")).toBe(firstMs + 60_000);
    alarms.clear("first");
    await nextTurn();
    expect(await state.storage.getAlarm()).toBe(firstMs + 60_000);
    expect(set()).toBe(2);
  });
});

test("a transaction that rolls back takes its alarm along, and the next deadline sets it again", async () => {
  const stub = anObject("alarm-rollback");
  const lateMs = soonMs();
  await runInDurableObject(stub, async (_, state) => {
    const alarms = new AlarmMux(state.storage, idle);
    alarms.set("late", lateMs);
    await nextTurn();
    const fail = (): void =>
      state.storage.transactionSync(() => {
        alarms.set("early", lateMs - 1_000);
        expect(alarms.due("early")).toBe(lateMs - 1_000);
        throw new Error("no");
      });
    expect(fail).toThrow("no");
    expect(alarms.due("early")).toBeNull();
    alarms.set("early", lateMs - 1_000);
    expect(await state.storage.getAlarm()).toBe(lateMs - 1_000);
    alarms.clear("early");
    await nextTurn();
    expect(fail).toThrow("no");
    await nextTurn();
    alarms.set("early", lateMs - 1_000);
    expect(await state.storage.getAlarm()).toBe(lateMs - 1_000);
  });
  await evictDurableObject(stub);
  await runInDurableObject(stub, async (_, state) => {
    expect(await state.storage.getAlarm()).toBe(lateMs - 1_000);
    expect(new AlarmMux(state.storage, idle).nextMs()).toBe(lateMs - 1_000);
  });
});

test("a run ends what is due, and arms for what is left, also when its handler set more", async () => {
  await runInDurableObject(anObject("alarm-run"), async (_, state) => {
    const later = soonMs();
    const alarms: AlarmMux<"now" | "more"> = new AlarmMux(state.storage, {
      now: async () => {
        alarms.set("more", later);
        return undefined;
      },
      more: nothing,
    });
    alarms.set("now", Date.now() - 1);
    await alarms.run(Date.now);
    expect(alarms.due("now")).toBeNull();
    expect(await state.storage.getAlarm()).toBe(later);
  });
});

test("deadlines of one kind are told apart by their keys, and one that an older version left comes all the same", async () => {
  await runInDurableObject(anObject("alarm-keys"), async (_, state) => {
    const came: unknown[] = [];
    const alarms = new AlarmMux(state.storage, {
      held: async ({ key, payload }) => {
        came.push([key, payload]);
        return undefined;
      },
    });
    const dueMs = Date.now() - 1;
    alarms.set("held", dueMs - 2, { key: "cmd_a", payload: "one" });
    alarms.set("held", dueMs - 1, { key: "cmd_b" });
    alarms.set("held", dueMs, { key: "cmd_c" });
    alarms.clear("held", "cmd_c");
    state.storage.sql.exec(
      "INSERT INTO deadline (id, due_ms, kind, payload, attempts) VALUES ('held:cmd_old', ?, 'held', 'cmd_old', 3)",
      dueMs,
    );
    await alarms.run(Date.now);
    expect(came).toEqual([
      ["cmd_a", "one"],
      ["cmd_b", ""],
      ["cmd_old", "cmd_old"],
    ]);
    expect(alarms.nextMs()).toBeNull();
  });
});

test("an event without a key is one row of the log, one with a key is two, and a key stays unique", async () => {
  await runInDurableObject(anObject("event-rows"), (_, state) => {
    const { sql } = state.storage;
    sql.exec("DROP TABLE log");
    logTables(sql);
    const log = new EventLog(sql);
    const event = { kind: "thread.unsubscribed", taskId: "tsk_a", atSeq: 1, reason: "x" } as const;
    const insert = (key: string | null) =>
      sql.exec("INSERT INTO log (at_ms, kind, key, body) VALUES (1, ?, ?, ?)", event.kind, key, JSON.stringify(event)).rowsWritten;
    expect([insert(null), insert(null), insert("one")]).toEqual([1, 1, 2]);
    expect(() => log.append(event, 1, "one")).toThrow(/UNIQUE/);
    expect(new EventLog(sql).byKey("one")?.seq).toBe(3);
  });
});
