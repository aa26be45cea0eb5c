import { createExecutionContext, evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { describe, expect, test } from "vitest";
import { parseGeneric, type SignedSource, signedSources } from "../../src/channels/generic/parse.ts";
import { app } from "../../src/entry/app.ts";
import { type Env, routerName } from "../../src/env.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { getArtifact } from "../../src/storage/artifacts.ts";
import { until } from "../support/until.ts";
import { deliverGeneric } from "./generic-deliveries.ts";

const bindings = env as unknown as Env;
const threadOf = (triggerId: string) => bindings.THREAD.getByName(`thr_${triggerId.slice(4, triggerId.indexOf("-"))}`);
const model = (path: string, body?: unknown) =>
  fetch(`http://model.test/control/${path}`, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
const bridge = async (contains: string): Promise<{ id: string; body: Record<string, unknown>; headers: Record<string, string> }[]> =>
  (await fetch(`http://generic.test/control/messages?contains=${encodeURIComponent(contains)}`)).json();

async function stored(triggerId: string): Promise<Trigger> {
  const row = await threadOf(triggerId).row({ triggerId });
  if (row?.kind !== "trigger") throw new Error(`no trigger row for ${triggerId}`);
  return row.trigger;
}

async function accepted(payload: object, id: string, place = "chat"): Promise<{ trigger: Trigger; verdict: string }> {
  const { status, answer } = await deliverGeneric(payload, { id, place });
  expect(status).toBe(202);
  const [first] = answer.triggers ?? [];
  expect(first?.outcome).toBe("accepted");
  return { trigger: await stored(first?.id ?? ""), verdict: first?.verdict ?? "" };
}

test("[R4] [Q4] where only the retries arrive, the first of them is taken: a retry header drops nothing", async () => {
  const said = { kind: "message", text: "only retries came", thread: "R4", principal: { id: "U4", name: "Member", role: "member" } };
  const retry = (n: number) =>
    deliverGeneric({ ...said }, { id: "Ev4", headers: { "x-slack-retry-num": String(n), "x-slack-retry-reason": "http_timeout" } });
  const outcomes = [await retry(2), await retry(3)].map(({ answer }) => answer.triggers?.[0]?.outcome);
  expect(outcomes).toEqual(["accepted", "duplicate"]);
});

test.each(signedSources)(
  "[G7] [Q4] [H2] one mention that comes to the %s door as four retries and a second event is one trigger, one decision and one reply",
  async (source) => {
    const text = `hello h2-${source}`;
    const said = `Hello once, ${source}.`;
    await model("script", { when: text, replies: [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: said } }] }] });
    const mention = {
      kind: "app_mention",
      text,
      thread: "C1",
      messageKey: "C1:1700000000.1",
      addressed: true,
      principal: { id: "U1", name: "Member", role: "member" },
    };
    const retry = (n: number) =>
      deliverGeneric({ ...mention }, { id: "Ev1", source, headers: n === 0 ? {} : { "x-slack-retry-num": String(n) } });
    const answers = [await retry(0), ...(await Promise.all([retry(1), retry(2)])), await retry(3)];
    answers.push(await deliverGeneric({ ...mention, kind: "message" }, { id: "Ev2", source }));
    for (const { status, ms } of answers) {
      expect(status).toBe(202);
      expect(ms).toBeLessThan(1_000);
    }
    const triggerId = answers[0]?.answer.triggers?.[0]?.id ?? "";
    expect(answers.map(({ answer }) => [answer.triggers?.[0]?.id, answer.triggers?.[0]?.outcome])).toEqual([
      [triggerId, "accepted"],
      ...Array.from({ length: 4 }, () => [triggerId, "duplicate"]),
    ]);
    const thread = threadOf(triggerId);
    const replies = await until("the reply", async () => ((await bridge(said)).length > 0 ? bridge(said) : undefined));
    await evictDurableObject(thread as unknown as DurableObjectStub);
    const { rows } = await thread.read({ afterSeq: 0, limit: 100 });
    expect(rows.filter(({ kind }) => kind === "trigger")).toHaveLength(1);
    expect(rows.filter(({ kind }) => kind === "outbound")).toHaveLength(1);
    // Repeats enter the log together, a moment later.
    const duplicates = await until("the repeats in the log", async () => {
      const events = (await thread.events({ afterSeq: 0, limit: 100 })).map(({ event }) => event);
      const known = events.flatMap((event) => (event.kind === "thread.duplicate" ? [[event.deliveryId, event.of, event.by]] : []));
      return known.length >= 4 ? known : undefined;
    });
    expect(duplicates).toEqual([
      ["Ev1", "Ev1", "event id"],
      ["Ev1", "Ev1", "event id"],
      ["Ev1", "Ev1", "event id"],
      ["Ev2", "Ev1", "message key"],
    ]);
    const decided = (await bindings.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 100, about: triggerId })).filter(
      ({ event }) => event.kind === "router.decision",
    );
    expect(decided).toHaveLength(1);
    expect(replies).toHaveLength(1);
    expect(replies[0]).toMatchObject({ body: { source, place: "chat", thread: "C1", text: said, kind: "reply", triggerId } });
    expect(replies[0]?.headers["idempotency-key"]).toBe(replies[0]?.id);
  },
);

describe("[Q5] forged, stale and broken deliveries stop at the door", () => {
  const payload = { kind: "message", text: "hello" };
  const refused = async (sent: Partial<Parameters<typeof deliverGeneric>[1]>, body: unknown = payload) => {
    const { status, answer } = await deliverGeneric(body, { id: "refused", ...sent });
    expect(answer.message).toMatch(/\w+ .+\.$|\w+: /);
    return status;
  };

  test("the signature is v1= and HMAC-SHA256 over timestamp.id.body, as any language computes it", async () => {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const body = '{"kind": "message",  "text": "deploy 😊 caf\\u00e9"}';
    const mac = bytesToHex(hmac(sha256, utf8ToBytes("generic-test-secret"), utf8ToBytes(`${timestamp}.by-hand.${body}`)));
    const headers = { "x-switchyard-signature": `v1=${mac}`, "x-switchyard-timestamp": timestamp };
    const { status, answer } = await deliverGeneric(body, { id: "by-hand", headers });
    expect(status).toBe(202);
    expect((await stored(answer.triggers?.[0]?.id ?? "")).text).toBe("deploy 😊 café");
  });

  test("of a key that stands twice the last counts, as in any reader of JSON, and the bytes are what was signed", async () => {
    const body = '{"kind":"message","n":1.0,"text":"not this","text":"this \\u2028 one"}';
    const { status, answer } = await deliverGeneric(body, { id: "twice" });
    expect(status).toBe(202);
    expect((await stored(answer.triggers?.[0]?.id ?? "")).text).toBe("this \u2028 one");
    expect((await deliverGeneric(body, { id: "twice-changed", changed: body.replace("not this", "nor that") })).status).toBe(401);
  });

  test.each<[string, Partial<Parameters<typeof deliverGeneric>[1]>, number]>([
    ["no signature", { headers: { "x-switchyard-signature": null } }, 400],
    ["no timestamp", { headers: { "x-switchyard-timestamp": null } }, 400],
    ["no id", { headers: { "x-switchyard-id": null } }, 400],
    ["another scheme", { headers: { "x-switchyard-signature": `v2=${"ab".repeat(32)}` } }, 401],
    ["another secret's signature", { headers: { "x-switchyard-signature": `v1=${"ab".repeat(32)}` } }, 401],
    ["another id than was signed", { headers: { "x-switchyard-id": "other" } }, 401],
    ["another time than was signed", { headers: { "x-switchyard-timestamp": String(Math.floor(Date.now() / 1000) + 7) } }, 401],
    ["a body that was changed", { changed: '{"kind":"message","text":"hellO"}' }, 401],
    ["a copy from six minutes ago", { atMs: Date.now() - 6 * 60_000 }, 401],
    ["one from the future", { atMs: Date.now() + 6 * 60_000 }, 401],
    ["a time in milliseconds", { atMs: Date.now() * 1000 }, 401],
    ["a place with a slash in it", { place: "a%2Fb" }, 400],
    ["a place with a slash in it, of a chat", { source: "chat", place: "a%2Fb" }, 400],
    ["no place", { source: "chat", place: "" }, 404],
    ["a source that has no door", { source: "mail" as "chat" }, 404],
  ])("%s", async (_name, sent, status) => {
    expect(await refused(sent)).toBe(status);
  });

  test("four minutes of skew either way are taken", async () => {
    for (const skewMs of [-4, 4]) {
      const { status } = await deliverGeneric(payload, { id: `skew${skewMs}`, atMs: Date.now() + skewMs * 60_000 });
      expect(status).toBe(202);
    }
  });

  test.each<[string, unknown]>([
    ["no JSON", "{"],
    ["no kind", { text: "x" }],
    ["no text", { kind: "message" }],
    ["an owner's role", { ...payload, principal: { id: "U1", role: "owner" } }],
    ["our own role", { ...payload, principal: { id: "U1", role: "agent" } }],
    ["a script as its address", { ...payload, url: "javascript:alert(1)" }],
    ["a thread that is empty", { ...payload, thread: "" }],
  ])("%s is 400 with the field's name", async (_name, body) => {
    expect(await refused({}, body)).toBe(400);
  });

  test.each(signedSources)("without a secret nothing is accepted at the %s door, and GitHub's does not need it", async (source) => {
    const request = new Request(`https://switchyard.test/hooks/${source}/chat`, { method: "POST", body: "{}" });
    const answer = await app.fetch(request, { ...bindings, GENERIC_WEBHOOK_SECRET: " " } as Env, createExecutionContext());
    expect(answer.status).toBe(503);
    expect(await answer.text()).toContain("GENERIC_WEBHOOK_SECRET");
  });
});

describe("a delivery that names its address", () => {
  const named = { kind: "message", text: "for one place", source: "chat", place: "team" };

  test.each<[string, SignedSource, string, string]>([
    ["at another place", "chat", "other", "place"],
    ["at the same place in other letters", "chat", "Team", "place"],
    ["at the other door", "generic", "team", "source"],
  ])("[T15] [Q5] is refused %s, says which field is not right, and leaves no row", async (_where, source, place, field) => {
    const id = `kept-${source}-${place}`;
    const { status, answer } = await deliverGeneric(named, { id, source, place });
    expect(status).toBe(400);
    expect(answer.message).toMatch(new RegExp(`^The body's ${field} is another than that of the address, "(?:${place}|${source})"\\. `));
    const { trigger } = parseGeneric({ ...named, source, place }, { source, place, deliveryId: id, nowMs: 0 });
    expect(await bindings.THREAD.getByName(trigger.threadId).row({ triggerId: trigger.id })).toBeNull();
  });

  test("[T15] is taken there, also after it was refused elsewhere, and a copy of it there does nothing", async () => {
    const sent = { id: "named", source: "chat", place: "team" } as const;
    expect((await deliverGeneric(named, { ...sent, place: "other" })).status).toBe(400);
    expect((await deliverGeneric(named, sent)).answer.triggers).toMatchObject([{ outcome: "accepted" }]);
    expect((await deliverGeneric(named, sent)).answer.triggers).toMatchObject([{ outcome: "duplicate" }]);
  });

  test("[T15] may name the place alone; without a name the same id at two places is two deliveries, as ever", async () => {
    expect((await deliverGeneric({ ...named, source: undefined }, { id: "half", place: "team" })).status).toBe(202);
    const unnamed = { kind: "message", text: "for two places" };
    const taken = [await accepted(unnamed, "two", "one"), await accepted(unnamed, "two", "other")];
    expect(new Set(taken.map(({ trigger }) => trigger.threadId)).size).toBe(2);
  });
});

describe("what a delivery becomes", () => {
  test("whoever is not vouched for is public; a named member who asks makes a request, a bot is only kept", async () => {
    const unknown = await accepted({ kind: "message", text: "the shop is slow" }, "who1");
    expect(unknown).toMatchObject({ verdict: "candidate", trigger: { principal: { role: "public", id: "chat" }, addressed: false } });
    const asked = await accepted({ kind: "message", text: "hi", addressed: true, principal: { id: "U2", role: "member" } }, "who2");
    expect(asked).toMatchObject({ verdict: "request", trigger: { principal: { role: "member", id: "U2", name: "U2" } } });
    const bot = await accepted({ kind: "message", text: "hi", addressed: true, principal: { id: "B1", role: "bot" } }, "who3");
    expect(bot.verdict).toBe("record");
    expect((await accepted({ kind: "alert", text: "disk is full" }, "who4")).verdict).toBe("record");
  });

  test("a thread holds together what names it; without one each message stands alone", async () => {
    const one = await accepted({ kind: "message", text: "1", thread: "T9", title: "Deploys" }, "t1");
    const two = await accepted({ kind: "message", text: "2", thread: "T9" }, "t2");
    expect(two.trigger.threadId).toBe(one.trigger.threadId);
    expect(one.trigger).toMatchObject({ threadKey: "thread:T9", threadTitle: "Deploys", place: "chat" });
    const elsewhere = await accepted({ kind: "message", text: "3", thread: "T9" }, "t3", "other-chat");
    expect(elsewhere.trigger.threadId).not.toBe(one.trigger.threadId);
    const alone = [await accepted({ kind: "message", text: "4" }, "t4"), await accepted({ kind: "message", text: "5" }, "t5")];
    expect(alone[0]?.trigger.threadId).not.toBe(alone[1]?.trigger.threadId);
  });

  test("an event id is never taken for a message key, nor the other way round", async () => {
    const byKey = await accepted({ kind: "message", text: "1", thread: "T8", messageKey: "same" }, "k1");
    const byId = await accepted({ kind: "message", text: "2", thread: "T8" }, "same");
    expect(byId.trigger.id).not.toBe(byKey.trigger.id);
  });

  test("a text that is too long for a trigger is kept whole beside it", async () => {
    const text = "long 😊 ".repeat(20_000);
    const { trigger } = await accepted({ kind: "message", text }, "long");
    expect(trigger.truncated).toBe(true);
    expect(new TextEncoder().encode(JSON.stringify(trigger)).length).toBeLessThanOrEqual(limits.maxTriggerBytes);
    const raw = (await getArtifact(bindings.STORE, trigger.rawArtifact ?? ""))?.bytes;
    expect(JSON.parse(new TextDecoder().decode(raw ?? new Uint8Array()))).toMatchObject({ text });
  });
});

test("[R4] of a delivery whose first attempts never came the retries alone make the trigger", async () => {
  const headers = { "x-slack-retry-num": "3", "x-slack-retry-reason": "http_timeout", "retry-after": "5" };
  const { status, answer } = await deliverGeneric({ kind: "message", text: "only the retry came", thread: "C4" }, { id: "EvR4", headers });
  expect(status).toBe(202);
  expect(answer.triggers).toMatchObject([{ outcome: "accepted" }]);
  expect((await stored(answer.triggers?.[0]?.id ?? "")).text).toBe("only the retry came");
});

test("[R2] what the thread does not store is 503, and the next delivery completes it", async () => {
  const THREAD = { getByName: () => ({ append: () => Promise.reject(new Error("overloaded")) }) } as unknown as Env["THREAD"];
  const { signHeaders } = await import("../../src/channels/generic/sign.ts");
  const body = JSON.stringify({ kind: "message", text: "once more" });
  const headers = await signHeaders("generic-test-secret", "again", Uint8Array.from(new TextEncoder().encode(body)), Date.now());
  const request = new Request("https://switchyard.test/hooks/generic/chat", { method: "POST", headers, body });
  const answer = await app.fetch(request, { ...bindings, THREAD } as Env, createExecutionContext());
  expect(answer.status).toBe(503);
  expect((await accepted({ kind: "message", text: "once more" }, "again")).trigger.text).toBe("once more");
});
