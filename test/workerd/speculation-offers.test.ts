// What becomes of a sure result that nobody asked for: its words are held for a person, once, whatever dies meanwhile.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import type { Env } from "../../src/env.ts";
import type { OfferView } from "../../src/protocol/offer.ts";
import type { Speculation } from "../../src/protocol/speculation.ts";
import { member, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, ok } from "./console-support.ts";
import {
  decided,
  decisions,
  effects,
  events,
  type Lab,
  modelTimeout,
  newLab,
  objects,
  saidIn,
  say,
  script,
  settled,
} from "./router-lab.ts";
import { allow, ledgerOf, look, partsOf, reportOn, rowOf, speculate } from "./speculation-lab.ts";

afterEach(() => {
  vi.useRealTimers();
  Object.assign(env, { THREAD: objects.THREAD });
});

const sure = { confidence: 0.9, straightforward: true };

/** A speculative task that has ended with a sure result. */
async function offered(lab: Lab, name: string): Promise<{ row: Speculation; offerId: string; threadId: string }> {
  const policy = `p-${lab.token}`;
  const { trigger, decision } = await speculate(lab, name, { policy, title: name });
  const taskId = decision.taskId ?? "";
  await settled(lab);
  await objects.WORKER_SESSION.getByName(taskId).cancel({ by: { ...member, role: "owner" }, reason: "its model is not scripted" });
  await lab.router.report(await reportOn(lab, taskId, { ...sure, text: `It is the cookie of ${name}.` }));
  await settled(lab);
  const row = await rowOf(lab, taskId);
  if (row?.offerId == null) throw new Error("nothing was offered");
  return { row, offerId: row.offerId, threadId: trigger.threadId };
}

const viewOf = (offerId: string) => ok<OfferView>(asOperator("GET", `offers/${offerId}`));

test("[SP4] a sure result is held for a person, once, though its report comes again after an eviction; nobody in the thread hears of it", async () => {
  const lab = await newLab();
  await allow(lab);
  const { row, offerId, threadId } = await offered(lab, "held");
  expect(row).toMatchObject({ outcome: "offered", closedMs: null, spent: { calls: 3 } });
  expect(await viewOf(offerId)).toMatchObject({
    state: "held",
    offer: { personOnly: true, outbound: { kind: "offer", threadId, text: "It is the cookie of held." }, from: { taskId: row.taskId } },
  });
  await evictDurableObject(lab.router as never);
  await lab.router.report(await reportOn(lab, row.taskId, { ...sure, text: "It is the cookie of held." }));
  await lab.router.report(await reportOn(lab, row.taskId, { ...sure, text: "Another end." }));
  await settled(lab);
  expect((await effects(lab)).filter(({ kind }) => kind === "offer")).toHaveLength(1);
  expect((await ledgerOf(lab)).filter(({ outcome }) => outcome === "offered")).toHaveLength(1);
  const settles = (await events(lab)).filter(({ event }) => event.kind === "router.speculation" && event.phase === "settle");
  expect(settles).toHaveLength(1);
  expect(await saidIn(threadId)).toEqual([]);
  // No model may send it: only a person.
  const router = { role: "agent", id: "router", name: "us", onBehalfOf: "owner" } as const;
  const refused = await objects.THREAD.getByName(threadId)
    .decideOffer({ outboundId: offerId, verdict: "release", by: router, via: "router" })
    .then(() => "released", String);
  expect(refused).toContain("Only a person");
});

test("[SP4] what people make of an offer is in the ledger: sent, sent in other words, declined, or left", async () => {
  const lab = await newLab();
  await allow(lab, { callsPerDay: 100 });
  const sent = await offered(lab, "sent");
  await ok(asOperator("POST", `offers/${sent.offerId}`, { verdict: "release" }));
  const edited = await offered(lab, "edited");
  await ok(asOperator("POST", `offers/${edited.offerId}`, { verdict: "release", text: "Shorter: the cookie." }));
  const declined = await offered(lab, "declined");
  await ok(asOperator("POST", `offers/${declined.offerId}`, { verdict: "decline", reason: "not now" }));
  const left = await offered(lab, "left");
  expect((await saidIn(edited.threadId)).map(({ text }) => text)).toEqual(["Shorter: the cookie."]);
  await evictDurableObject(lab.router as never);
  await modelTimeout(lab, 2_000);
  await look(lab);
  const outcome = async ({ row }: { row: Speculation }) => (await rowOf(lab, row.taskId))?.outcome;
  expect([await outcome(sent), await outcome(edited), await outcome(declined), await outcome(left)]).toEqual([
    "accepted",
    "edited",
    "rejected",
    "offered",
  ]);
  expect((await saidIn(sent.threadId)).map(({ text }) => text)).toEqual(["It is the cookie of sent."]);
  expect(await saidIn(declined.threadId)).toEqual([]);
  const accepts = (await effects(lab)).flatMap(({ effect }) => (effect.kind === "accept" ? [effect.input.accepted] : []));
  expect(accepts.sort()).toEqual([false, true, true]);
  const { figures } = await lab.router.speculation();
  const [mine] = figures.filter(({ policyId }) => policyId === `p-${lab.token}`);
  expect(mine).toMatchObject({ tasks: 4, wastedCalls: 3, acceptedShare: 2 / 3 });
  // A second look changes nothing.
  const before = (await decisions(lab)).length;
  await look(lab);
  expect((await decisions(lab)).length).toBe(before);
});

test("[SP6] an offer that nobody needs any more is taken back", async () => {
  const lab = await newLab();
  await allow(lab);
  const { row, offerId, threadId } = await offered(lab, "late");
  const origin = triggerOf(partsOf(lab, "late"));
  const trigger = { ...origin, kind: "issues.closed", deliveryId: `${lab.token}close`, text: "", id: `${origin.id}9` };
  await objects.THREAD.getByName(threadId).append({ trigger, verdict: { outcome: "record", rule: "r", reason: "r" } });
  await look(lab);
  expect(await rowOf(lab, row.taskId)).toMatchObject({ outcome: "moot", why: "it was closed meanwhile" });
  expect(await viewOf(offerId)).toMatchObject({ state: "declined" });
  expect((await asOperator("POST", `offers/${offerId}`, { verdict: "release" })).status).toBe(409);
  expect(await saidIn(threadId)).toEqual([]);
});

test("[SP5] whoever asks for what is offered already gets it, and the offer is taken back", async () => {
  const lab = await newLab();
  await allow(lab);
  const { row, offerId, threadId } = await offered(lab, "wanted");
  const asked = {
    ...partsOf(lab, "wanted"),
    name: `${lab.token}asks`,
    text: `why ${lab.token}asks?`,
    outcome: "request" as const,
    addressed: true,
  };
  const { id } = triggerOf(asked);
  await script(id, [{ calls: [{ tool: "dispatch", input: { settles: [id], title: "Find it", goal: "Find it.", adopt: row.taskId } }] }]);
  expect(await decided(lab, (await say(lab, asked)).id)).toMatchObject({ tool: "dispatch", taskId: row.taskId });
  await settled(lab);
  expect(await rowOf(lab, row.taskId)).toMatchObject({ outcome: "adopted" });
  expect((await saidIn(threadId)).map(({ text }) => text)).toEqual(["It is the cookie of wanted."]);
  expect((await viewOf(offerId)).state).toBe("declined");
  await look(lab);
  expect(await rowOf(lab, row.taskId)).toMatchObject({ outcome: "adopted" });
});

type Call = (...input: unknown[]) => unknown;

test.each(["before", "after"])("[SP4] a router that dies %s the thread has the offer makes it once", async (when) => {
  const lab = await newLab();
  await allow(lab);
  const { trigger, decision } = await speculate(lab, when, { policy: `p-${lab.token}`, title: when });
  const taskId = decision.taskId ?? "";
  await settled(lab);
  const report = await reportOn(lab, taskId, sure);
  let dead = false;
  await runInDurableObject(lab.router as never, (instance: never, state: DurableObjectState) => {
    const getByName = (name: string) =>
      new Proxy(objects.THREAD.getByName(name), {
        get:
          (target, method) =>
          async (...input: unknown[]) => {
            const go = () => (target as unknown as Record<string | symbol, Call>)[method]?.(...input);
            if (method !== "offer" || dead) return go();
            dead = true;
            if (when === "after") await go();
            await state.storage.sync();
            return state.abort("a crash of the test");
          },
      });
    Object.assign((instance as { env: Env }).env, { THREAD: { getByName } });
  });
  await lab.router.report(report).catch(() => undefined);
  await until("the router died", async () => dead);
  Object.assign(env, { THREAD: objects.THREAD });
  await until("a new router", () =>
    lab.router.overview().then(
      () => true,
      () => false,
    ),
  );
  await modelTimeout(lab, 2_000);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
  await runDurableObjectAlarm(lab.router as never);
  vi.useRealTimers();
  await lab.router.report(report);
  await lab.router.poke();
  await settled(lab);
  const row = await rowOf(lab, taskId);
  expect(row).toMatchObject({ outcome: "offered", spent: { calls: 3 } });
  const logged = await objects.THREAD.getByName(trigger.threadId).events({ afterSeq: 0, limit: 100 });
  expect(logged.filter(({ event }) => event.kind === "thread.offered")).toHaveLength(1);
  const phases = (await events(lab)).flatMap(({ event }) => (event.kind === "router.speculation" ? [event.phase] : []));
  expect(phases.sort()).toEqual(["outcome", "reserve", "settle"]);
});
