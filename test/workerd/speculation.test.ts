// Work that nobody asked for, on the real objects: it starts by a policy, is followed to its end, and nobody hears of it.
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import { childId } from "../../src/core/ids.ts";
import { rootThreadIdOf } from "../../src/core/thread.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import { policiesInForce, savePolicy } from "../../src/storage/policies.ts";
import { guest, member, owner, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { append, decided, decisions, effects, events, modelTimeout, newLab, objects, saidIn, say, script, settled } from "./router-lab.ts";
import { allow, dispatch, ledgerOf, look, partsOf, reportOn, rowOf, setting, speculate, startOf } from "./speculation-lab.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("[SP1] off by default: a model that says `speculative` where no policy allows it is refused with a reason, and nobody is told", async () => {
  const lab = await newLab();
  const { trigger, decision } = await speculate(lab, "off", { policy: "early" });
  expect(decision.tool).toBe("record");
  await settled(lab);
  const refused = (await events(lab)).flatMap(({ event }) => (event.kind === "router.refused" ? [event.reason] : []));
  expect(refused).toEqual([expect.stringContaining("No policy that allows speculation")]);
  expect(await ledgerOf(lab)).toEqual([]);
  expect(await saidIn(trigger.threadId)).toEqual([]);
  expect((await effects(lab)).map(({ kind }) => kind)).not.toContain("start");
});

test("[SP1] public text causes no speculation, though a policy is on and the model wants it", async () => {
  const lab = await newLab();
  const policy = await allow(lab);
  for (const by of [guest, { role: "public", id: "stranger", name: "stranger" } as Principal]) {
    const { trigger, decision } = await speculate(lab, by.role, { policy }, { ...by, id: `${by.id}${lab.token}` });
    expect(decision).toMatchObject({ tool: "record", lane: "public" });
    await settled(lab);
    expect(await saidIn(trigger.threadId)).toEqual([]);
  }
  expect(await ledgerOf(lab)).toEqual([]);
});

test("[SP2][SP3] it starts by the policy, reserves its share, follows no thread, and is settled once, also after an eviction", async () => {
  const lab = await newLab();
  const policy = await allow(lab);
  const { trigger, decision } = await speculate(lab, "a", { policy });
  const taskId = decision.taskId ?? "";
  await settled(lab);
  expect(decision).toMatchObject({ tool: "dispatch", policy: { id: policy, version: 1 } });
  expect((await effects(lab)).map(({ kind }) => kind).filter((kind) => kind !== "board")).toEqual(["start"]);
  expect(await startOf(lab, taskId)).toMatchObject({ speculative: true, maxModelCalls: 5, threadId: trigger.threadId });
  expect(await rowOf(lab, taskId)).toMatchObject({ outcome: "running", reservedCalls: 5, spent: null });
  const { info } = await objects.THREAD.getByName(trigger.threadId).read({ afterSeq: 0, limit: 10 });
  expect(info.subscribers).toEqual([]);
  await evictDurableObject(lab.router as never);

  const unsure = await reportOn(lab, taskId, { confidence: 0.5, straightforward: true });
  await lab.router.report(unsure);
  await lab.router.report(unsure);
  await lab.router.report({ ...unsure, id: childId("rep", taskId, "again"), spent: { calls: 99, inputTokens: 0, outputTokens: 0 } });
  await settled(lab);
  expect(await rowOf(lab, taskId)).toMatchObject({
    outcome: "discarded",
    spent: { calls: 3 },
    why: expect.stringContaining("not sure enough"),
  });
  expect(await saidIn(trigger.threadId)).toEqual([]);
  const phases = (await events(lab)).flatMap(({ event }) => (event.kind === "router.speculation" ? [[event.phase, event.calls]] : []));
  expect(phases).toEqual([
    ["reserve", 5],
    ["settle", 3],
    ["outcome", 0],
  ]);
  expect((await decisions(lab)).filter((each) => each.tool === "record" && each.by === "code")).toHaveLength(1);
});

test("[SP3] out of its budget nothing starts, while a member's request does", async () => {
  const lab = await newLab();
  const policy = await allow(lab, { callsPerDay: 10 });
  for (const name of ["one", "two"]) expect((await speculate(lab, name, { policy, title: name })).decision.tool).toBe("dispatch");
  const third = await speculate(lab, "three", { policy, title: "three" });
  expect(third.decision.tool).toBe("record");
  expect((await events(lab)).some(({ event }) => event.kind === "router.refused" && event.reason.includes("budget"))).toBe(true);
  const asked = { name: `${lab.token}asked`, by: member, thread: `${lab.token}asked`, text: `please ${lab.token}asked` };
  const { id } = triggerOf(asked);
  await script(id, [{ calls: [{ tool: "dispatch", input: { settles: [id], title: "Do it", goal: "Do it." } }] }]);
  expect((await decided(lab, (await say(lab, asked)).id)).tool).toBe("dispatch");
  expect((await ledgerOf(lab)).map(({ outcome }) => outcome)).toEqual(["running", "running"]);
});

test("[SP4] a speculative task that would have to ask is stopped, and its question reaches nobody", async () => {
  const lab = await newLab();
  const policy = await allow(lab);
  const { trigger, decision } = await speculate(lab, "q", { policy });
  const taskId = decision.taskId ?? "";
  await settled(lab);
  const { spent: _, ...question } = await reportOn(lab, taskId, { kind: "question", status: "waiting", text: "Which browser?" });
  await lab.router.report(question);
  await settled(lab);
  expect((await effects(lab)).filter(({ kind }) => kind === "cancel")).toHaveLength(1);
  expect(await rowOf(lab, taskId)).toMatchObject({ outcome: "discarded", spent: null, why: expect.stringContaining("have had to ask") });
  expect(await saidIn(trigger.threadId)).toEqual([]);
  expect((await objects.WORKER_SESSION.getByName(taskId).describe())?.card.status).toBe("cancelled");
});

test("[SP6] when its thread is closed it is stopped, and so is one whose policy was switched off", async () => {
  const lab = await newLab();
  const policy = await allow(lab);
  const closed = await speculate(lab, "c", { policy, title: "one" });
  const kept = await speculate(lab, "k", { policy, title: "two" });
  await settled(lab);
  await look(lab);
  expect((await ledgerOf(lab)).map(({ outcome }) => outcome)).toEqual(["running", "running"]);
  const trigger = {
    ...triggerOf(partsOf(lab, "c")),
    kind: "issues.closed",
    deliveryId: `${lab.token}close`,
    text: "",
    id: `${closed.trigger.id}9`,
  };
  await objects.THREAD.getByName(closed.trigger.threadId).append({ trigger, verdict: { outcome: "record", rule: "r", reason: "r" } });
  await evictDurableObject(lab.router as never);
  await modelTimeout(lab, 2_000);
  await look(lab);
  expect(await rowOf(lab, closed.decision.taskId)).toMatchObject({ outcome: "moot", why: "it was closed meanwhile" });
  expect(await rowOf(lab, kept.decision.taskId)).toMatchObject({ outcome: "running" });
  await savePolicy(objects.DB, { id: policy, version: 1, text: "x", enabled: false, speculation: setting }, "operator", Date.now());
  await look(lab);
  expect(await rowOf(lab, kept.decision.taskId)).toMatchObject({ outcome: "moot", why: expect.stringContaining("switched off") });
  for (const { decision } of [closed, kept])
    await until(
      "it is stopped",
      async () => (await objects.WORKER_SESSION.getByName(decision.taskId ?? "").describe())?.card.status === "cancelled",
    );
  expect(await saidIn(closed.trigger.threadId)).toEqual([]);
});

test("[SP7] [Q6] a policy that wastes too much pauses itself and says so where an owner saved it, and nowhere else, until it is saved again", async () => {
  const lab = await newLab();
  const [boss, other] = [`prs_${lab.token}`, `prs_${lab.token}other`];
  const said = [];
  for (const id of [boss, other]) {
    await objects.DB.prepare("INSERT INTO people (id, name, role, created_ms) VALUES (?, 'boss', 'owner', 1)").bind(id).run();
    said.push(await append({ name: `${id}hello`, by: { role: "owner", id, name: "boss" }, text: "hello" }));
  }
  const savedIn = { triggerId: said[0]?.trigger.id ?? "", source: "web" };
  const policy = await allow(lab, { maxWastedCalls: 4, callsPerDay: 100 }, savedIn);
  for (const name of ["one", "two"]) {
    const { decision } = await speculate(lab, name, { policy, title: name });
    await settled(lab);
    await lab.router.report(await reportOn(lab, decision.taskId ?? "", { kind: "failed", status: "failed", text: name }));
  }
  await settled(lab);
  expect((await speculate(lab, "three", { policy, title: "three" })).decision.tool).toBe("record");
  expect((await saidIn(rootThreadIdOf(boss))).map(({ text }) => text)).toEqual([
    expect.stringContaining("6 model calls were spent for nothing"),
  ]);
  expect(await saidIn(rootThreadIdOf(other))).toEqual([]);
  const { figures } = await lab.router.speculation();
  expect(figures.find(({ policyId }) => policyId === policy)).toMatchObject({
    wastedCalls: 6,
    tasks: 2,
    paused: expect.stringContaining("6 model"),
  });
  await savePolicy(objects.DB, { id: policy, version: 1, text: "x", enabled: true, speculation: setting }, "operator", Date.now());
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 20_000 });
  expect((await speculate(lab, "four", { policy, title: "four" })).decision.tool).toBe("dispatch");
});

test("[SP7] [RD16] one that was saved in the console says it there alone", async () => {
  const lab = await newLab();
  const policy = await allow(lab, { maxWastedCalls: 2, callsPerDay: 100 });
  const { decision } = await speculate(lab, "one", { policy, title: "one" });
  await settled(lab);
  await lab.router.report(await reportOn(lab, decision.taskId ?? "", { kind: "failed", status: "failed", text: "one" }));
  await settled(lab);
  await evictDurableObject(lab.router as never);
  expect((await effects(lab)).filter(({ kind }) => kind !== "start" && kind !== "board")).toEqual([]);
  const { notices } = await objects.BOARD.getByName("board").snapshot();
  expect(notices.filter(({ text }) => text.includes(policy))).toMatchObject([{ kind: "fault" }]);
});

test("[SP6] [RD16] what a policy started for a place ends when the policy names that place no more", async () => {
  const lab = await newLab();
  const policy = await allow(lab);
  const { decision } = await speculate(lab, "narrow", { policy });
  await settled(lab);
  const places = [{ source: "github", place: "acme/other" }];
  await savePolicy(objects.DB, { id: policy, version: 1, text: "x", enabled: true, speculation: { ...setting, places } }, "o", Date.now());
  await evictDurableObject(lab.router as never);
  await modelTimeout(lab, 2_000);
  await look(lab);
  expect(await rowOf(lab, decision.taskId)).toMatchObject({ outcome: "moot", why: expect.stringContaining("does not name that place") });
});

test("[SP5] a member who asks for the same takes the task over: it follows their thread, and one worker does it once", async () => {
  const lab = await newLab();
  const policy = await allow(lab);
  const { trigger, decision } = await speculate(lab, "adopt", { policy });
  const taskId = decision.taskId ?? "";
  await settled(lab);
  const asked = {
    ...partsOf(lab, "adopt"),
    name: `${lab.token}asks`,
    text: `please find it ${lab.token}asks`,
    outcome: "request" as const,
    addressed: true,
  };
  const { id } = triggerOf(asked);
  await script(id, [
    { calls: [{ tool: "dispatch", input: { settles: [id], title: "Find it", goal: "Find the cause.", acknowledge: "On it." } }] },
  ]);
  const taken = await decided(lab, (await say(lab, asked)).id);
  await settled(lab);
  expect(taken).toMatchObject({ tool: "dispatch", taskId });
  expect(await rowOf(lab, taskId)).toMatchObject({ outcome: "adopted" });
  const { info } = await objects.THREAD.getByName(trigger.threadId).read({ afterSeq: 0, limit: 10 });
  expect(info.subscribers).toEqual([taskId]);
  const described = await objects.WORKER_SESSION.getByName(taskId).describe();
  expect(described?.start).toMatchObject({ threadId: trigger.threadId, quote: { triggerId: id } });
  expect(described?.start.speculative).toBeUndefined();
  expect((await saidIn(trigger.threadId)).map(({ text }) => text)).toEqual([expect.stringMatching(/^On it\./)]);
  await evictDurableObject(lab.router as never);
  // A question of it is a person's matter now, and its result is said.
  await lab.router.report(await reportOn(lab, taskId, { confidence: 0.9, text: "Found: the cookie." }));
  await settled(lab);
  expect((await saidIn(trigger.threadId)).map(({ text }) => text)).toEqual([expect.stringMatching(/^On it\./), "Found: the cookie."]);
  expect(await rowOf(lab, taskId)).toMatchObject({ outcome: "adopted", spent: { calls: 3 } });
});

test("[SP3] a crash right after the decision starts one task and reserves once", async () => {
  const lab = await newLab();
  const policy = await allow(lab);
  const parts = partsOf(lab, "crash");
  const { id } = triggerOf(parts);
  await script(id, [dispatch(id, { policy })]);
  const { decision } = await speculate(lab, "crash", { policy });
  await abortAllDurableObjects();
  await modelTimeout(lab, 2_000);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
  await runDurableObjectAlarm(lab.router as never);
  vi.useRealTimers();
  await lab.router.poke();
  await settled(lab);
  expect(await ledgerOf(lab)).toHaveLength(1);
  const taskId = decision.taskId ?? "";
  const report = await reportOn(lab, taskId, { kind: "failed", status: "failed" });
  // The router dies while it takes the report, and gets it again.
  const lost = lab.router.report(report).catch(() => undefined);
  await runInDurableObject(lab.router as never, () => undefined).catch(() => undefined);
  await abortAllDurableObjects();
  await lost;
  await lab.router.report(report);
  expect(await rowOf(lab, taskId)).toMatchObject({ outcome: "discarded", spent: { calls: 3 } });
  const phases = (await events(lab)).filter(({ event }) => event.kind === "router.speculation");
  expect(phases).toHaveLength(3);
});

test("[SP1] an owner lets it happen in the chat, by confirming what was shown; a member cannot", async () => {
  const lab = await newLab();
  const id = `c-${lab.token}`;
  const inForce = async () => (await policiesInForce(objects.DB, Date.now() + 60_000)).find((each) => each.id === id);
  const ask = async (name: string, by: Principal, text: string, input: object): Promise<string[]> => {
    const parts = { name: `${lab.token}${name}`, by: { ...by, id: `prs_${by.role}${lab.token}` }, text };
    const trigger = triggerOf(parts);
    await script(trigger.id, [{ calls: [{ tool: "set_policy", input: { settles: [trigger.id], ...input } }] }]);
    await decided(lab, (await say(lab, parts)).id);
    await settled(lab);
    return (await saidIn(trigger.threadId)).map((each) => each.text);
  };
  const change = { id, text: "Look for causes early.", speculation: setting };
  expect((await ask("m", member, "start by yourself", { change })).at(-1)).toContain("only an owner");
  expect(await inForce()).toBeUndefined();
  const shown = (await ask("o1", owner, "start by yourself", { change })).at(-1) ?? "";
  expect(shown).toContain("lets work start by itself in github acme/app, with 5 model calls a task");
  expect(await inForce()).toBeUndefined();
  const proposal = /confirm (rul_[a-z0-9]+)/.exec(shown)?.[1] ?? "";
  await evictDurableObject(lab.router as never);
  await modelTimeout(lab, 2_000);
  await ask("o2", owner, `confirm ${proposal}`, { confirm: proposal });
  const savedIn = { triggerId: triggerOf({ name: `${lab.token}o2`, by: { ...owner, id: `prs_owner${lab.token}` } }).id, source: "web" };
  expect(await inForce()).toMatchObject({ speculation: setting, savedIn });
  await ask("o3", owner, `undo ${proposal}`, { undo: proposal });
  expect(await inForce()).toBeUndefined();
});
