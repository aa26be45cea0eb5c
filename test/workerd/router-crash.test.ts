import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import type { Env } from "../../src/env.ts";
import { limits } from "../../src/protocol/limits.ts";
import { member } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import {
  append,
  bodies,
  decided,
  decisions,
  effects,
  events,
  type Lab,
  modelTimeout,
  newLab,
  objects,
  rows,
  saidIn,
  say,
  script,
  settled,
} from "./router-lab.ts";

const dispatch = { tool: "dispatch", input: { settles: ["$trg"], title: "Fix it", goal: "Fix it.", acknowledge: "On it." } };

afterEach(() => {
  vi.useRealTimers();
  Object.assign(env, { THREAD: objects.THREAD, WORKER_SESSION: objects.WORKER_SESSION });
});

type Call = (...input: unknown[]) => unknown;
type Between = (method: string, go: () => unknown, state: DurableObjectState) => unknown;

/** Stands between the router and the objects that it calls. The bindings are one object for the whole file: see `afterEach`. */
const between = (lab: Lab, stand: Between): Promise<void> =>
  runInDurableObject(lab.router as never, (instance: never, state: DurableObjectState) => {
    const watched = <T extends object>(real: { getByName(name: string): T }) => ({
      getByName: (name: string): T => {
        const stub = real.getByName(name);
        return new Proxy(stub, {
          get:
            (target, method) =>
            (...input: unknown[]) =>
              stand(String(method), () => (target as Record<string | symbol, Call>)[method]?.(...input), state),
        });
      },
    });
    Object.assign((instance as { env: Env }).env, { THREAD: watched(objects.THREAD), WORKER_SESSION: watched(objects.WORKER_SESSION) });
  });

/** The process dies at the router's first call of this method, before the call reaches the other object. */
async function dieAt(lab: Lab, fatal: string): Promise<{ died: () => boolean }> {
  let dead = false;
  await between(lab, async (method, go, state) => {
    if (method !== fatal || dead) return go();
    dead = true;
    await state.storage.sync();
    return state.abort("a crash of the test");
  });
  return { died: () => dead };
}

/** Time passes and the alarm rings, as often as it takes. */
const recover = async (lab: Lab): Promise<void> => {
  await modelTimeout(lab, 2_000);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
  await runDurableObjectAlarm(lab.router as never);
  vi.useRealTimers();
  await lab.router.poke();
};

test("[R1] a model call that died with its process is made again within seconds, by the object's own alarm", async () => {
  const lab = await newLab();
  const reply = { calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Hello." } }] };
  await script(lab.token, [{ ...reply, delayMs: 60_000 }, reply]);
  const trigger = await say(lab, { name: lab.token, by: member, thread: lab.token, text: lab.token });
  await until("the call", async () => (await bodies(lab.token)).length === 1);
  await abortAllDurableObjects();
  // Only the model server is asked: nobody touches the object.
  await until("the call again", async () => (await bodies(lab.token)).length === 2, limits.takeOverMs + 5_000);
  expect((await decided(lab, trigger.id)).tool).toBe("reply");
});

test("[R1] a crash in the middle of the model call loses nothing: the message is decided once, by a new loop", async () => {
  const lab = await newLab();
  const reply = { calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Hello." } }] };
  await script(lab.token, [{ ...reply, delayMs: 1_000 }, reply]);
  const trigger = await say(lab, { name: lab.token, by: member, thread: lab.token, text: lab.token });
  await until("the call", async () => (await bodies(lab.token)).length === 1);
  const before = await rows<{ body: string }>(lab, "SELECT body FROM meta");
  await abortAllDurableObjects();
  await recover(lab);
  await decided(lab, trigger.id);
  await settled(lab);
  const after = await rows<{ body: string }>(lab, "SELECT body FROM meta");
  expect(JSON.parse(after[0]?.body ?? "{}").epoch).toBeGreaterThan(JSON.parse(before[0]?.body ?? "{}").epoch);
  expect(await saidIn(trigger.threadId)).toMatchObject([{ text: "Hello." }]);
  expect(await decisions(lab)).toHaveLength(1);
  expect(await rows(lab, "SELECT id FROM item WHERE attempts > 0 OR tries > 0")).toEqual([]);
});

test.each(["subscribe", "start", "post"])(
  "[R1] a crash before the %s of a committed dispatch: each effect happens, once",
  async (fatal) => {
    const lab = await newLab();
    await script(lab.token, [{ calls: [dispatch] }]);
    const crash = await dieAt(lab, fatal);
    const trigger = await say(lab, { name: lab.token, by: member, thread: lab.token, text: lab.token });
    await until("the crash", () => crash.died());
    await recover(lab);
    const decision = await decided(lab, trigger.id);
    await settled(lab);
    expect(await decisions(lab)).toHaveLength(1);
    expect(await bodies(lab.token)).toHaveLength(1);
    expect((await effects(lab)).map(({ kind, state }) => [kind, state])).toEqual([
      ["subscribe", "done"],
      ["start", "done"],
      ["post", "done"],
      ["board", "done"],
    ]);
    expect((await saidIn(trigger.threadId)).map((said) => said.text.split("\n")[0])).toEqual(["On it."]);
    const { info } = await objects.THREAD.getByName(trigger.threadId).read({ afterSeq: 0, limit: 1 });
    expect(info.subscribers).toEqual([decision.taskId]);
    expect((await objects.WORKER_SESSION.getByName(decision.taskId ?? "").describe())?.start.quote.triggerId).toBe(trigger.id);
  },
);

test("[R18] an answer that comes after another loop took over is void", async () => {
  const lab = await newLab();
  await script(lab.token, [
    { calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Too late." } }], delayMs: 600 },
    { calls: [{ tool: "reply", input: { settles: ["$trg"], text: "In time." } }], delayMs: 1_300 },
  ]);
  const trigger = await say(lab, { name: lab.token, by: member, thread: lab.token, text: lab.token });
  await until("the call", async () => (await bodies(lab.token)).length === 1);
  // The lease ran out: the loop hangs, whoever wakes the object takes over.
  await runInDurableObject(lab.router as never, (_instance: unknown, state: DurableObjectState) => {
    state.storage.sql.exec("UPDATE meta SET body = json_set(body, '$.leaseUntilMs', 0)");
  });
  await lab.router.poke();
  await decided(lab, trigger.id);
  await settled(lab);
  const voided = (await events(lab)).filter(({ event }) => event.kind === "router.model" && event.phase === "failed");
  expect(voided).toMatchObject([{ event: { error: "void: another loop took over" } }]);
  expect((await saidIn(trigger.threadId)).map((said) => said.text)).toEqual(["In time."]);
});

test("a thread whose dispatch cannot be applied holds back only itself, and its rows pass through afterwards", async () => {
  const lab = await newLab();
  await script(`${lab.token}a`, [{ calls: [dispatch] }]);
  let broken = true;
  await between(lab, (method, go) => (method === "subscribe" && broken ? Promise.reject(new Error("the thread cannot answer")) : go()));
  const first = await say(lab, { name: `${lab.token}1`, by: member, thread: `${lab.token}a`, text: `${lab.token}a` });
  await decided(lab, first.id);
  const followUp = await say(lab, { name: `${lab.token}2`, by: member, thread: `${lab.token}a`, text: `${lab.token}a again` });
  await script(`${lab.token}b`, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "kept" } }] }]);
  const other = await say(lab, { name: `${lab.token}3`, by: member, thread: `${lab.token}b`, text: `${lab.token}b` });
  expect((await decided(lab, other.id)).tool).toBe("record");
  expect((await lab.router.overview()).pending).toBe(1);
  broken = false;
  await settled(lab);
  expect(await rows(lab, `SELECT state FROM item WHERE id = '${followUp.id}'`)).toEqual([{ state: "passed" }]);
});

test("an effect that can never be applied is decided again, and after three times a human is asked", async () => {
  const lab = await newLab();
  const { trigger: elsewhere } = await append({ name: `${lab.token}x`, by: member, thread: `${lab.token}x` });
  const fault = Object.assign(new Error("It is broken."), { name: "Fault", kind: "bad_input", retry: "never" });
  await between(lab, (method, go) => (method === "start" ? Promise.reject(fault) : go()));
  await script(lab.token, [{ calls: [dispatch] }, { calls: [dispatch] }, { calls: [dispatch] }]);
  const trigger = await say(lab, { name: lab.token, by: member, thread: lab.token, text: lab.token });
  await until("the question", async () =>
    (await decisions(lab)).find((decision) => decision.tool === "ask_human" && decision.settles.includes(trigger.id)),
  );
  await settled(lab);
  expect((await bodies(lab.token))[1]).toContain("The work could not be started: It is broken.");
  const { info } = await objects.THREAD.getByName(trigger.threadId).read({ afterSeq: 0, limit: 1 });
  expect(info.subscribers).toEqual([]);
  expect((await saidIn(trigger.threadId)).map((said) => said.kind)).toEqual(["notice"]);
  expect(await saidIn(elsewhere.threadId)).toEqual([]);
  expect((await lab.router.overview()).tasks).toEqual([]);
});
