import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { defaultRules } from "../../src/core/gate.ts";
import type { Env } from "../../src/env.ts";
import type { GateRule } from "../../src/protocol/gate.ts";
import { rulesInForce, saveRules } from "../../src/storage/gate-rules.ts";
import { deliver, person } from "./github-deliveries.ts";

const { DB } = env as unknown as Env;
const rule = (id: string, more: Partial<GateRule> = {}): GateRule => ({
  id,
  outcome: "ignore",
  reason: "because the team says so",
  ...more,
});

/** The same database as another isolate sees it: nothing of this one is cached. */
const elsewhere = (broken?: () => boolean): D1Database =>
  new Proxy(DB, {
    get(db, key) {
      if (broken?.()) throw new Error("D1 is away");
      return (Reflect.get(db, key) as (...args: unknown[]) => unknown).bind(db);
    },
  });

describe("rules in D1", () => {
  test("before any was saved the defaults are in force", async () => {
    expect(await rulesInForce(DB, 1_000)).toEqual(defaultRules);
  });

  test("a saved version is in force at once here, and within ten seconds elsewhere", async () => {
    const other = elsewhere();
    const before = await rulesInForce(other, 10_000);
    const saved = await saveRules(DB, { version: before.version, rules: [rule("one")] }, "owner", 10_000);
    expect(saved).toEqual({ version: before.version + 1, rules: [rule("one")] });
    expect(await rulesInForce(DB, 10_001)).toEqual(saved);
    expect(await rulesInForce(other, 15_000)).toEqual(before);
    expect(await rulesInForce(other, 20_001)).toEqual(saved);
  });

  test("of two who edit the same version one is told to look again, and nothing of theirs is lost or written", async () => {
    const { version } = await rulesInForce(elsewhere(), 0);
    const ends = await Promise.allSettled(["a", "b", "c"].map((id) => saveRules(elsewhere(), { version, rules: [rule(id)] }, id, 1)));
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject({ name: "Fault", kind: "conflict" });
    const now = await rulesInForce(elsewhere(), 0);
    expect(now.version).toBe(version + 1);
    await expect(saveRules(DB, { version: version + 7, rules: [] }, "x", 1)).rejects.toMatchObject({ kind: "conflict" });
  });

  test("[G5] rules that were saved under wider limits stay in force", async () => {
    const db = elsewhere();
    const { version } = await rulesInForce(db, 0);
    const wide = JSON.stringify([rule("wide", { anyWord: Array.from({ length: 1_001 }, (_, i) => `w${i}`) })]);
    await DB.prepare("INSERT INTO gate_rules (version, rules, saved_by, saved_ms) VALUES (?, ?, 'x', 0)")
      .bind(version + 1, wide)
      .run();
    expect((await rulesInForce(elsewhere(), 0)).rules.map(({ id }) => id)).toEqual(["wide"]);
  });

  test.each<[string, unknown]>([
    ["an unknown outcome", [rule("x", { outcome: "explode" as never })]],
    ["an id twice", [rule("x"), rule("x")]],
    ["no id", [rule("")]],
    ["no list", {}],
    ["too many", Array.from({ length: 501 }, (_, i) => rule(`r${i}`))],
    ["[G5] more words than can be looked for", [rule("x", { anyWord: Array.from({ length: 1_001 }, (_, i) => `w${i}`) })]],
    ["[G5] a word that is a book", [rule("x", { anyWord: ["w".repeat(101)] })]],
  ])("%s is refused with a sentence, and nothing is saved", async (_name, rules) => {
    const { version } = await rulesInForce(elsewhere(), 0);
    const error: unknown = await saveRules(DB, { version, rules: rules as GateRule[] }, "owner", 1).catch((e: unknown) => e);
    expect(error).toMatchObject({ kind: "bad_input", message: expect.stringMatching(/Nothing was saved\.$/) });
    expect((await rulesInForce(elsewhere(), 0)).version).toBe(version);
  });

  test("while D1 is away the last known rules stay in force, or the defaults where none were known", async () => {
    let away = false;
    const database = elsewhere(() => away);
    const known = await rulesInForce(database, 0);
    away = true;
    expect(await rulesInForce(database, 60_000)).toEqual(known);
    expect(
      await rulesInForce(
        elsewhere(() => true),
        0,
      ),
    ).toEqual(defaultRules);
  });

  test("a stored version that cannot be read leaves the gate with the rules that it knows", async () => {
    const database = elsewhere();
    const known = await rulesInForce(database, 0);
    await DB.prepare("INSERT INTO gate_rules (version, rules, saved_by, saved_ms) VALUES (1000, '{]', 'x', 1)").run();
    expect(await rulesInForce(database, 60_000)).toEqual(known);
    await DB.prepare("DELETE FROM gate_rules WHERE version = 1000").run();
  });

  test("the door judges by the rules in force", async () => {
    const { version } = await rulesInForce(elsewhere(), 0);
    const rules = [rule("quiet", { place: "acme/quiet*" }), rule("loud", { outcome: "request", kind: "issues.opened" })];
    await saveRules(DB, { version, rules }, "owner", Date.now());
    const opened = (full_name: string) => ({
      action: "opened",
      repository: { full_name, id: 7 },
      sender: person("dev"),
      issue: { number: 1, title: "t", body: "b", user: person("dev"), author_association: "NONE" },
    });
    expect((await deliver("issues", opened("acme/quiet-one"))).answer.triggers).toMatchObject([{ outcome: "ignored", verdict: "ignore" }]);
    expect((await deliver("issues", opened("acme/other"))).answer.triggers).toMatchObject([{ outcome: "accepted", verdict: "request" }]);
  });
});
