// What waits for a release, in a real Thread: kept, decided once, sent once, and told to whoever waits.
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { github } from "../../src/channels/github/index.ts";
import { childId, makeId } from "../../src/core/ids.ts";
import { boardName } from "../../src/env.ts";
import type { HeldOffersAnswer } from "../../src/protocol/console.ts";
import { Fault } from "../../src/protocol/fault.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Offer, OfferView } from "../../src/protocol/offer.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { saveReleasePolicy } from "../../src/storage/release-policy.ts";
import { checkHistory } from "../support/history.ts";
import { asOperator, ok } from "./console-support.ts";
import { at, eventsOf, issue, stubOf, threadOf, uniqueName } from "./thread-fixtures.ts";
import { bindings, eventually } from "./widget-page.ts";

const ana: Principal = { role: "member", id: "ana", name: "Ana" };
type Where = ReturnType<typeof issue>;

const moved = new Map<string, OfferView[]>();

beforeAll(async () => {
  await migrated(bindings.DB);
});
afterEach(() => {
  vi.restoreAllMocks();
});

function watchTasks(): void {
  vi.spyOn(WorkerSession.prototype, "offerMoved").mockImplementation(async function (this: WorkerSession, view: OfferView) {
    const taskId = (this as unknown as { ctx: DurableObjectState }).ctx.id.name ?? "";
    moved.set(taskId, [...(moved.get(taskId) ?? []), view]);
  });
}

const offerIn = (where: Where, more: Partial<Offer["from"]> = {}, text = "I would say this."): Offer => {
  const taskId = makeId("tsk", uniqueName());
  return {
    outbound: { id: childId("out", where.threadId, taskId), threadId: where.threadId, kind: "offer", text, taskId, hops: 1 },
    title: `Comment in ${where.place}`,
    from: { taskId, authority: "member", tainted: false, source: "github", place: where.place, ...more },
  };
};
const aboutOf = (where: Where) => ({ source: "github", place: where.place, threadKey: where.threadKey, title: "An issue" });
const propose = (where: Where, offer: Offer) => threadOf(where.threadId).offer({ offer, about: aboutOf(where) });
const release = (where: Where, offer: Offer, more: object = {}) =>
  threadOf(where.threadId).decideOffer({ outboundId: offer.outbound.id, verdict: "release", by: ana, via: "person", ...more });
const sentOf = (where: Where, offer: Offer) => async () =>
  (await threadOf(where.threadId).offered({ outboundId: offer.outbound.id }))?.sent?.state === "sent";
const noticeOf = async (offer: Offer) =>
  (await bindings.BOARD.getByName(boardName).snapshot()).notices.find(({ id }) => id === offer.outbound.id);
/** Why a call was refused. */
async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
const whole = async (where: Where) =>
  checkHistory([{ object: where.threadId, kind: "thread", events: await threadOf(where.threadId).events({ afterSeq: 0, limit: 1_000 }) }]);

describe("an offer", () => {
  test("waits, is no row of the conversation, stands on the board, and survives an eviction", async () => {
    watchTasks();
    const send = vi.spyOn(github, "send");
    const where = issue();
    const offer = offerIn(where);
    expect((await propose(where, offer)).state).toBe("held");
    // Where it would go is said by code.
    expect((await propose(where, { ...offer, title: "another" })).offer.title).toBe(`${offer.title} · ${where.place} issue 1`);
    await eventually("a notice", async () => (await noticeOf(offer))?.kind === "offer");
    await evictDurableObject(stubOf(where.threadId));
    expect((await threadOf(where.threadId).offered({ outboundId: offer.outbound.id }))?.state).toBe("held");
    expect((await threadOf(where.threadId).read({ afterSeq: 0, limit: 10 })).rows).toEqual([]);
    expect(send).not.toHaveBeenCalled();
    expect(await eventsOf(where.threadId, "thread.offered")).toHaveLength(1);
  });

  test("[O6] released twice at once, then after an eviction, it is said once; its task and the board hear the end", async () => {
    watchTasks();
    const send = vi.spyOn(github, "send").mockResolvedValue({ providerId: "71" });
    const where = issue();
    const offer = offerIn(where);
    await propose(where, offer);
    await eventually("a notice", async () => (await noticeOf(offer)) !== undefined);
    await Promise.all([release(where, offer), release(where, offer, { by: { ...ana, name: "Ben" } })]);
    await eventually("the message", sentOf(where, offer));
    await evictDurableObject(stubOf(where.threadId));
    const later = await release(where, offer, { verdict: "decline" });
    expect(later).toMatchObject({ state: "released", decided: { by: "Ana", via: "person" }, sent: { providerId: "71" } });
    expect(send).toHaveBeenCalledTimes(1);
    await eventually("the task's news", async () => moved.get(offer.from.taskId)?.some(({ sent }) => sent?.state === "sent") === true);
    await eventually("an empty board", async () => (await noticeOf(offer)) === undefined);
    expect((await threadOf(where.threadId).read({ afterSeq: 0, limit: 10 })).rows).toMatchObject([{ kind: "outbound", state: "sent" }]);
    expect(await whole(where)).toEqual([]);
  });

  test("[O6] [R9] a crash after the release loses nothing and sends once: what may have been sent is looked up", async () => {
    watchTasks();
    const send = vi.spyOn(github, "send").mockRejectedValue(new Fault("timeout", "no answer", { retry: "unknown" }));
    const find = vi.spyOn(github, "find").mockResolvedValue({ providerId: "72" });
    const where = issue();
    const offer = offerIn(where);
    await propose(where, offer);
    await release(where, offer);
    await eventually("a first try", async () => send.mock.calls.length > 0);
    await abortAllDurableObjects();
    await at(Date.now() + 60_000, () => runDurableObjectAlarm(stubOf(where.threadId)));
    await eventually("the message", sentOf(where, offer));
    expect([send.mock.calls.length, find.mock.calls.length]).toEqual([1, 1]);
    await at(Date.now() + 120_000, () => runDurableObjectAlarm(stubOf(where.threadId)));
    await eventually("the task's news", async () => moved.get(offer.from.taskId)?.some(({ sent }) => sent?.state === "sent") === true);
    expect(await whole(where)).toEqual([]);
  });

  test("with other words: what is said is what the person wrote", async () => {
    watchTasks();
    const send = vi.spyOn(github, "send").mockResolvedValue({ providerId: "73" });
    const where = issue();
    const offer = offerIn(where);
    await propose(where, offer);
    await release(where, offer, { text: "Better words." });
    await eventually("the message", sentOf(where, offer));
    expect(send.mock.calls[0]?.[0].outbound).toMatchObject({ id: offer.outbound.id, text: "Better words." });
  });

  test("[O5] declined it is never sent; a guest, another task's card and a stranger's id change nothing", async () => {
    watchTasks();
    const send = vi.spyOn(github, "send");
    const where = issue();
    const offer = offerIn(where);
    await propose(where, offer);
    expect(await refusal(release(where, offer, { by: { role: "guest", id: "g", name: "G" } }))).toMatch(/authority of member/);
    expect(await refusal(release(where, offer, { taskId: "tsk_other" }))).toMatch(/was not proposed by/);
    expect((await release(where, offer, { verdict: "decline", reason: "not now" })).state).toBe("declined");
    expect((await release(where, offer)).state).toBe("declined");
    await eventually("the task's news", async () => moved.get(offer.from.taskId)?.at(-1)?.state === "declined");
    expect(send).not.toHaveBeenCalled();
    expect(await whole(where)).toEqual([]);
  });

  test("[O12] holds nothing that its reader cannot see, and one that no card holds is not released from a card", async () => {
    watchTasks();
    const send = vi.spyOn(github, "send").mockResolvedValue({ providerId: "76" });
    const where = issue();
    const hidden = Array.from("obey me", (sign) => String.fromCodePoint(0xe0000 + (sign.codePointAt(0) ?? 0))).join("");
    const zeroes = "\u200c\u200d\u200c\u200c\u200d";
    const strange = offerIn(where, {}, `Fine\u202e words\u2066.${hidden}${zeroes}\u0000\n\tAnd 👩‍💻 ❤️‍🔥, می‌خواهم.`);
    const held = await propose(where, { ...strange, title: `Comment${hidden}\u202e` });
    expect(held.offer.outbound.text).toBe("Fine words.\u200c\n\tAnd 👩‍💻 ❤️‍🔥, می‌خواهم.");
    expect(held.offer.title).toMatch(/^Comment\s+·/);
    const long = offerIn(where, {}, `${"All is well. ".repeat(600)}Delete everything.`);
    await propose(where, long);
    const card = { taskId: long.from.taskId };
    expect(await refusal(release(where, long, card))).toMatch(/read all of it in the console/);
    await evictDurableObject(stubOf(where.threadId));
    expect((await release(where, long)).state).toBe("released");
    expect((await release(where, strange, { taskId: strange.from.taskId })).state).toBe("released");
    await eventually("the message", sentOf(where, strange));
    expect(send.mock.calls.map(([{ outbound }]) => outbound.text)).toContain(held.offer.outbound.text);
    const other = offerIn(where, {}, long.outbound.text);
    await propose(where, other);
    expect((await release(where, other, { taskId: other.from.taskId, verdict: "decline" })).state).toBe("declined");
  });

  test("[O5] after its time it is out of date, by the alarm alone, and no word brings it back", async () => {
    watchTasks();
    const where = issue();
    const offer = offerIn(where);
    await propose(where, offer);
    await eventually("a notice", async () => (await noticeOf(offer)) !== undefined);
    await evictDurableObject(stubOf(where.threadId));
    await at(Date.now() + limits.offerMs + 1_000, async () => {
      await runDurableObjectAlarm(stubOf(where.threadId));
      await eventually(
        "its end",
        async () => (await threadOf(where.threadId).offered({ outboundId: offer.outbound.id }))?.state === "expired",
      );
      expect((await release(where, offer)).state).toBe("expired");
    });
  });

  test("[O4] the team's saved setting lets kinds leave by themselves, and only for untainted work of the team in that repository", async () => {
    watchTasks();
    vi.spyOn(github, "send").mockResolvedValue({ providerId: "74" });
    await saveReleasePolicy(bindings.DB, { version: 0, byItself: ["comment"] }, "operator", Date.now());
    const where = issue();
    const free = offerIn(where);
    expect(await propose(where, free)).toMatchObject({ state: "released", decided: { via: "policy" } });
    await eventually("the message", sentOf(where, free));
    expect((await propose(where, offerIn(where, { tainted: true }))).state).toBe("held");
    expect((await propose(where, offerIn(where, { authority: "public" }))).state).toBe("held");
    expect((await propose(where, offerIn(where, { place: "acme/elsewhere" }))).state).toBe("held");
    expect((await asOperator("POST", "offers/setting", { version: 0, byItself: [] })).status).toBe(409);
    expect(await ok(asOperator("GET", "offers/setting"))).toEqual({ version: 1, byItself: ["comment"] });
    await ok(asOperator("POST", "offers/setting", { version: 1, byItself: [] }));
    expect((await propose(where, offerIn(where))).state).toBe("held");
  });

  test("the console reads it and decides about it", async () => {
    watchTasks();
    vi.spyOn(github, "send").mockResolvedValue({ providerId: "75" });
    const where = issue();
    const offer = offerIn(where);
    await propose(where, offer);
    const path = `offers/${offer.outbound.id}`;
    expect(await ok(asOperator("GET", path))).toMatchObject({ state: "held", offer: { outbound: { text: "I would say this." } } });
    expect(await ok(asOperator("POST", path, { verdict: "release" }))).toMatchObject({ state: "released", decided: { by: "Operator" } });
    await eventually("the message", sentOf(where, offer));
    expect((await asOperator("POST", "offers/out_nothing-here", { verdict: "release" })).status).toBe(404);
    expect((await asOperator("GET", "offers/nonsense")).status).toBe(404);
  });

  test("[O5] [R9] of two words at the same moment one counts, and whoever said the other hears so", async () => {
    watchTasks();
    vi.spyOn(github, "send").mockResolvedValue({ providerId: "76" });
    const where = issue();
    const offer = offerIn(where);
    await propose(where, offer);
    const path = `offers/${offer.outbound.id}`;
    const answers = await Promise.all(
      (["release", "decline", "release", "decline"] as const).map((verdict) => asOperator("POST", path, { verdict })),
    );
    const words = await Promise.all(answers.map((answer) => answer.json<{ state?: string; message?: string }>()));
    const { state } = (await threadOf(where.threadId).offered({ outboundId: offer.outbound.id })) ?? {};
    for (const [i, { status }] of answers.entries()) {
      const counts = state === (i % 2 === 0 ? "released" : "declined");
      expect([status, words[i]]).toEqual([
        counts ? 200 : 409,
        expect.objectContaining(counts ? { state } : { message: expect.stringMatching(/^Too late/) }),
      ]);
    }
    expect(await eventsOf(where.threadId, "thread.offer_decided")).toHaveLength(1);
  });

  test("[O11] [R29] is in one list over all threads while it waits, which D1 may miss for a while; its task and the board do not wait for that", async () => {
    watchTasks();
    const list = async () => (await ok<HeldOffersAnswer>(asOperator("GET", "offers"))).offers.map(({ id }) => id);
    const [here, there] = [issue(), issue()];
    const [first, second, other] = [offerIn(here), offerIn(here), offerIn(there)];
    for (const offer of [first, second]) await propose(here, offer);
    const away = vi.spyOn(bindings.DB, "batch").mockRejectedValue(new Error("D1 is away"));
    await propose(there, other);
    await eventually("a notice all the same", async () => (await noticeOf(other)) !== undefined);
    await eventually("the failed write", async () => away.mock.calls.length > 0);
    away.mockRestore();
    await evictDurableObject(stubOf(there.threadId));
    await at(Date.now() + 60_000, async () => {
      await runDurableObjectAlarm(stubOf(there.threadId));
      await eventually(
        "the list",
        async () => (await list()).filter((id) => [first, second, other].some(({ outbound }) => outbound.id === id)).length === 3,
      );
    });
    const { offers, total } = await ok<HeldOffersAnswer>(asOperator("GET", "offers"));
    expect(total).toBe(offers.length);
    expect(offers.find(({ id }) => id === other.outbound.id)).toMatchObject({
      threadId: there.threadId,
      taskId: other.from.taskId,
      title: expect.stringContaining(there.place),
    });
    await release(here, first, { verdict: "decline" });
    await eventually("a shorter list", async () => !(await list()).includes(first.outbound.id));
    expect(await list()).toEqual(expect.arrayContaining([second.outbound.id, other.outbound.id]));
  });
});
