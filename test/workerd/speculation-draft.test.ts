// The draft of a pull request that nobody asked for, all the way on the deployment's own objects: nothing leaves before a person released
// it, then its task pushes and proposes it, and nobody is asked twice.
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { github } from "../../src/channels/github/index.ts";
import { branchKeyOf, branchOf } from "../../src/core/branch.ts";
import { makeId, threadIdOf } from "../../src/core/ids.ts";
import { type Env, routerName } from "../../src/env.ts";
import type { SettledCommand } from "../../src/protocol/command.ts";
import type { OfferView } from "../../src/protocol/offer.ts";
import type { Speculation, SpeculationAnswer } from "../../src/protocol/speculation.ts";
import { policiesInForce } from "../../src/storage/policies.ts";
import { checkHistory } from "../support/history.ts";
import { member, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { asOperator, ok } from "./console-support.ts";
import { decided, type Lab, type ScriptedReply, saidIn, say, scriptModel, unique } from "./router-lab.ts";
import { partsOf } from "./speculation-lab.ts";
import { events, settled, type TestTask } from "./worker-helpers.ts";

const objects = env as unknown as Env;
const router = () => objects.ROUTER.getByName(routerName);
const place = "acme/app";
const endpointId = makeId("ep", "draft-machine");

beforeAll(async () => {
  const speculation = { places: [{ source: "github", place }], callsPerTask: 4, callsPerDay: 20, maxWastedCalls: 50 };
  await ok(asOperator("POST", "policies", { id: "early", version: 0, text: "Mend early.", enabled: true, speculation }));
  await policiesInForce(objects.DB, Date.now() + 60_000);
  // Nothing leaves by itself: what leaves here does so by the release of its draft.
  await ok(asOperator("POST", "offers/setting", { version: 0, byItself: [] }));
  const machine = { endpointId, name: "studio-laptop", publicKey: btoa("k".repeat(32)), platform: "linux", by: "test" };
  await objects.ENDPOINT.getByName(endpointId).enrol(machine);
  await router().machine({ endpointId, name: "studio-laptop", online: true, workspaces: ["app"], revoked: false, revision: 99 });
});
afterEach(() => {
  vi.restoreAllMocks();
});

const pull = { what: "pull_request", title: "Mend the gate", summary: "It squeaked.", changes: ["Oiled it"], base: "main" };
const done = { tool: "report", input: { kind: "done", text: "It is mended.", confidence: 0.95, straightforward: true } };
const ledgerRow = async (taskId: string): Promise<Speculation | undefined> =>
  (await ok<SpeculationAnswer>(asOperator("GET", "speculation"))).recent.find((row) => row.taskId === taskId);
const viewOf = (offerId: string) => ok<OfferView>(asOperator("GET", `offers/${offerId}`));

const sha = "a".repeat(40);
/** The daemon's word on the newest push of a task, whatever kind of push it was. */
async function machineSays(task: TestTask, nth: number, more: Partial<SettledCommand>): Promise<void> {
  const command = await until("its push", async () => {
    const intents = (await events(task, "task.tool")).filter(({ tool, phase }) => tool === "push" && phase === "intent");
    return intents[nth - 1];
  });
  await task.stub.settle({ ...settled(task, command.commandId ?? "", "+ oil\u202e"), ...more });
}
/** What the machine was asked for, in the ledger of the machine. */
async function askedOf(taskId: string): Promise<string[]> {
  const logged = await objects.ENDPOINT.getByName(endpointId).events({ afterSeq: 0, limit: 999 });
  return logged.flatMap(({ event }) =>
    event.kind === "endpoint.command" && event.taskId === taskId && event.state === "queued" ? [event.what ?? ""] : [],
  );
}

/** A speculative task that has drafted a pull request, and ended; `after`: what its model does once it goes on. */
async function drafted(after: ScriptedReply[]) {
  const token = unique();
  const lab: Lab = { token, router: router() };
  const parts = { ...partsOf(lab, ""), text: `the gate squeaks ${token}` };
  const { id, threadId } = triggerOf(parts);
  const input = { settles: [id], title: `Mend ${token}`, goal: `Mend it. ${token}worker`, speculative: true, policy: "early" };
  await scriptModel(["ask_human", id], [{ calls: [{ tool: "dispatch", input }] }]);
  const mind = ["You are a worker session", `${token}worker`];
  await scriptModel(mind, [{ calls: [{ tool: "push", input: {} }] }, { calls: [{ tool: "propose", input: pull }, done] }, ...after]);
  await say(lab, parts);
  const { taskId = "" } = await decided(lab, id);
  const task: TestTask = { token, taskId, threadId, endpointId, start: {} as never, stub: objects.WORKER_SESSION.getByName(taskId) };
  await machineSays(task, 1, { kept: { sha, branch: branchOf(taskId), place } });
  const row = await until("the offer", async () => {
    const found = await ledgerRow(taskId);
    return found?.outcome === "offered" && found.offerId !== null ? found : undefined;
  });
  const offerId = row.offerId ?? "";
  await until("the held offer", async () => (await asOperator("GET", `offers/${offerId}`)).status === 200);
  return { lab, task, taskId, threadId, offerId, branch: threadIdOf("github", place, branchKeyOf(taskId)) };
}

const pullsOf = (send: { mock: { calls: Parameters<typeof github.send>[] } }, taskId: string) =>
  send.mock.calls.map(([{ outbound }]) => outbound).filter((each) => each.taskId === taskId && each.deed?.do === "pull_request");

test("[SP8] released by a person, its very commit is pushed and its pull request opened once, and nobody is asked again; an eviction and a second release change nothing", async () => {
  const send = vi.spyOn(github, "send").mockResolvedValue({ providerId: "41" });
  const after: ScriptedReply[] = [
    {
      calls: [
        { tool: "report", input: { kind: "answer", text: "It is proposed." } },
        { tool: "wait", input: { reason: "for its checks" } },
      ],
    },
  ];
  const { task, taskId, threadId, offerId, branch } = await drafted(after);
  // Nothing of it has left: no branch, no word, no pull request.
  expect(send).not.toHaveBeenCalled();
  expect(await askedOf(taskId)).toEqual(["keep the commit"]);
  const held = await viewOf(offerId);
  expect(held).toMatchObject({ state: "held", offer: { draft: true, personOnly: true, outbound: { deed: { head: branchOf(taskId) } } } });
  expect(held.offer.changes).toBe("+ oil‹U+202E›");
  expect(held.offer.title).toContain("Draft of a pull request: Mend the gate (into main, commit aaaaaaaaaa)");
  expect(await saidIn(threadId)).toEqual([]);
  expect((await objects.THREAD.getByName(branch).read({ afterSeq: 0, limit: 9 })).rows).toEqual([]);
  expect((await asOperator("POST", `offers/${offerId}`, { verdict: "release", text: "Other words." })).status).toBe(400);

  await evictDurableObject(router() as never);
  await evictDurableObject(task.stub as never);
  await evictDurableObject(objects.THREAD.getByName(threadId) as never);
  await ok(asOperator("POST", `offers/${offerId}`, { verdict: "release" }));
  await until("the push", async () => (await askedOf(taskId)).length > 1);
  expect(await ledgerRow(taskId)).toMatchObject({ outcome: "accepted", why: "a person released it", spent: { calls: 2 } });
  await ok(asOperator("POST", `offers/${offerId}`, { verdict: "release" }));
  expect(pullsOf(send, taskId)).toEqual([]);
  await evictDurableObject(task.stub as never);
  await machineSays(task, 2, { pushed: { sha, branch: branchOf(taskId), place, base: "develop" } });

  await until("the pull request", async () => pullsOf(send, taskId).length > 0);
  // From here on it speaks to people as any task does.
  await until("its word to people", async () => (await saidIn(threadId)).some(({ text }) => text === "It is proposed."));
  expect(pullsOf(send, taskId)[0]).toMatchObject({
    threadId: branch,
    text: held.offer.outbound.text,
    deed: { do: "pull_request", head: branchOf(taskId), base: "main", title: "Mend the gate" },
  });
  const words = (await objects.THREAD.getByName(branch).events({ afterSeq: 0, limit: 99 })).flatMap(({ event }) =>
    event.kind === "thread.offer_decided" ? [event] : [],
  );
  expect(words).toMatchObject([{ state: "released", via: "person", by: { name: "Operator" }, reason: `released as the draft ${offerId}` }]);
  await objects.WORKER_SESSION.getByName(taskId).poke();
  await router().poke();
  expect((await events(task, "task.reopened")).length).toBe(1);
  expect(await askedOf(taskId)).toEqual(["keep the commit", `push aaaaaaaaaa to ${branchOf(taskId)}`]);
  const { info } = await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 1 });
  expect(info.subscribers).toEqual([taskId]);
  expect(pullsOf(send, taskId)).toHaveLength(1);
  for (const object of [threadId, branch]) {
    const logged = await objects.THREAD.getByName(object).events({ afterSeq: 0, limit: 99 });
    expect(checkHistory([{ object, kind: "thread", events: logged }])).toEqual([]);
  }
  const logged = await task.stub.events({ afterSeq: 0, limit: 999 });
  expect(checkHistory([{ object: taskId, kind: "task", events: logged }])).toEqual([]);
});

test("[SP8] where the released commit cannot be pushed no pull request is opened, people are asked anew, and their second word opens what they saw then", async () => {
  const send = vi.spyOn(github, "send").mockResolvedValue({ providerId: "43" });
  const other = "b".repeat(40);
  const wait = { calls: [{ tool: "wait", input: { reason: "for people" } }] };
  const after: ScriptedReply[] = [
    { calls: [{ tool: "push", input: {} }] },
    { calls: [{ tool: "propose", input: pull }] },
    wait,
    wait,
    wait,
  ];
  const { task, taskId, threadId, offerId } = await drafted(after);
  await scriptModel(
    ["ask_human", taskId, "commit bbbbbbbbbb"],
    [{ calls: [{ tool: "record", input: { settles: ["$rep"], reason: "people" } }] }],
  );
  await ok(asOperator("POST", `offers/${offerId}`, { verdict: "release" }));
  await machineSays(task, 2, { exitCode: 1 });
  await machineSays(task, 3, { kept: { sha: other, branch: branchOf(taskId), place } });
  await until("its second draft", async () =>
    (await task.stub.describe())?.card.offers?.some(({ title }) => title.includes("commit bbbbbbbbbb")),
  );
  await evictDurableObject(task.stub as never);
  const { offers = [] } = (await task.stub.describe())?.card ?? {};
  expect(offers).toHaveLength(1);
  const asked = offers[0]?.id ?? "";
  expect(await viewOf(asked)).toMatchObject({ state: "held", offer: { draft: true, personOnly: true } });
  expect(pullsOf(send, taskId)).toEqual([]);
  // [O12] Its card shows all of it, or it is released elsewhere.
  expect(offers[0]?.text).toMatch(/\+ oil‹U\+202E›$/);
  await ok(asOperator("POST", `offers/${asked}`, { verdict: "release" }));
  await machineSays(task, 4, { pushed: { sha: other, branch: branchOf(taskId), place } });
  await until("the pull request", async () => pullsOf(send, taskId).length > 0);
  expect(await askedOf(taskId)).toEqual([
    "keep the commit",
    `push aaaaaaaaaa to ${branchOf(taskId)}`,
    "keep the commit",
    `push bbbbbbbbbb to ${branchOf(taskId)}`,
  ]);
  expect(pullsOf(send, taskId)).toHaveLength(1);
  const logged = await objects.THREAD.getByName(threadId).events({ afterSeq: 0, limit: 99 });
  expect(checkHistory([{ object: threadId, kind: "thread", events: logged }])).toEqual([]);
});

test("[SP5] asked for from another conversation, the draft's task goes on as that person's: nothing is started, and its pull request goes the way of any task's", async () => {
  const send = vi.spyOn(github, "send").mockResolvedValue({ providerId: "42" });
  const after: ScriptedReply[] = [
    { calls: [{ tool: "push", input: {} }] },
    { calls: [{ tool: "propose", input: pull }] },
    { calls: [{ tool: "wait", input: { reason: "for people" } }] },
  ];
  const { lab, task, taskId, threadId, offerId, branch } = await drafted(after);
  const asked = {
    ...{ name: `${lab.token}asks`, by: member, thread: `${lab.token}other` },
    ...{ text: `please mend ${lab.token}`, outcome: "request" as const, addressed: true },
  };
  const { id, threadId: other } = triggerOf(asked);
  // The model does not know of it: these are the words that it was started for.
  await scriptModel(
    ["ask_human", id],
    [{ calls: [{ tool: "dispatch", input: { settles: [id], title: `Mend ${lab.token}`, goal: "Mend it." } }] }],
  );
  await say(lab, asked);
  expect(await decided(lab, id)).toMatchObject({ tool: "dispatch", taskId });
  await machineSays(task, 2, { pushed: { sha, branch: branchOf(taskId), place } });
  await evictDurableObject(task.stub as never);
  await until("its proposal", async () => (await task.stub.describe())?.card.offers?.length === 1);
  expect(await askedOf(taskId)).toEqual(["keep the commit", `push ${branchOf(taskId)}`]);
  expect(await viewOf(offerId)).toMatchObject({ state: "declined", decided: { via: "router" } });
  expect(await ledgerRow(taskId)).toMatchObject({ outcome: "adopted" });
  // The team's setting decides, as always: here it lets nothing leave by itself.
  expect(pullsOf(send, taskId)).toEqual([]);
  const { info } = await objects.THREAD.getByName(other).read({ afterSeq: 0, limit: 1 });
  expect(info.subscribers).toEqual([taskId]);
  expect((await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 1 })).info.subscribers).toEqual([]);
  const [waits] = (await task.stub.describe())?.card.offers ?? [];
  await ok(asOperator("POST", `offers/${waits?.id}`, { verdict: "release" }));
  await until("the pull request", async () => pullsOf(send, taskId).length === 1);
  const logs = await Promise.all(
    [branch, other].map(async (object) => ({
      object,
      kind: "thread" as const,
      events: await objects.THREAD.getByName(object).events({ afterSeq: 0, limit: 99 }),
    })),
  );
  const logged = await task.stub.events({ afterSeq: 0, limit: 999 });
  expect(checkHistory([...logs, { object: taskId, kind: "task", events: logged }])).toEqual([]);
});

test("[SP8] declined, nothing of it ever left: no branch, no word; the ledger has it as waste", async () => {
  const send = vi.spyOn(github, "send");
  const { task, taskId, threadId, offerId, branch } = await drafted([]);
  await ok(asOperator("POST", `offers/${offerId}`, { verdict: "decline", reason: "not now" }));
  await until("its end in the ledger", async () => (await ledgerRow(taskId))?.outcome === "rejected");
  await evictDurableObject(task.stub as never);
  expect((await asOperator("POST", `offers/${offerId}`, { verdict: "release" })).status).toBe(409);
  await router().poke();
  expect(await viewOf(offerId)).toMatchObject({ state: "declined" });
  expect((await task.stub.describe())?.card).toMatchObject({ status: "done", speculative: true });
  expect(await events(task, "task.reopened")).toEqual([]);
  expect(await askedOf(taskId)).toEqual(["keep the commit"]);
  expect(await saidIn(threadId)).toEqual([]);
  expect((await objects.THREAD.getByName(branch).read({ afterSeq: 0, limit: 9 })).rows).toEqual([]);
  expect(send.mock.calls.filter(([{ outbound }]) => outbound.taskId === taskId)).toEqual([]);
});
