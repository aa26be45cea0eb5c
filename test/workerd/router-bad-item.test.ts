// One bad item: the model refuses every request that shows it, and nothing else.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { RouterMeta } from "../../src/core/router.ts";
import { probe } from "../../src/core/router-faults.ts";
import { type Env, readConfig } from "../../src/env.ts";
import { guest, member } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import {
  bodies,
  decided,
  decisions,
  events,
  type Lab,
  modelTimeout,
  newLab,
  rows,
  type ScriptedReply,
  saidIn,
  say,
  script,
  unique,
} from "./router-lab.ts";

const record = { calls: [{ tool: "record", input: { settles: ["$trg"], reason: "kept" } }] };
const times = <T>(count: number, reply: T): T[] => Array.from({ length: count }, () => reply);
const probeWords = probe.text.slice(0, 20);
/** Requests of this file's routers alone: the stand-in is that of all files, and a probe has no word of its test. */
const ourName = unique();
const healthy = (): Promise<void> => script([probeWords, ourName], times(200, { text: "yes" }));

async function named(): Promise<Lab> {
  const lab = await newLab();
  await runInDurableObject(lab.router as never, (instance: never) => {
    readConfig((instance as { env: Env }).env).agentName = ourName;
  });
  return lab;
}

const metaOf = async (lab: Lab): Promise<RouterMeta> =>
  JSON.parse((await rows<{ body: string }>(lab, "SELECT body FROM meta"))[0]?.body ?? "{}") as RouterMeta;

/** What waits apart, or for the model, has waited. */
async function patience(lab: Lab): Promise<void> {
  await runInDurableObject(lab.router as never, (_instance: unknown, state: DurableObjectState) => {
    state.storage.sql.exec("UPDATE meta SET body = json_set(body, '$.apartMs', 0, '$.retryAtMs', 0)");
  });
  await lab.router.poke();
}

/** A turn that takes half a second, and what comes meanwhile: one batch. The model settles every id that it is shown. */
async function batch(lab: Lab, bad: string, count: number) {
  await script(`warm${lab.token}`, [{ ...record, delayMs: 500 }]);
  const warm = await say(lab, { name: `${lab.token}w`, by: member, thread: `${lab.token}w`, text: `warm${lab.token}` });
  const names = Array.from({ length: count }, (_, i) => `${lab.token}n${i}`);
  const said = [];
  for (const [i, name] of names.entries())
    said.push(await say(lab, { name, by: member, thread: name, text: i === 2 ? bad : `good${lab.token}` }));
  const visitor = await say(lab, {
    name: `${lab.token}v`,
    by: { ...guest, id: lab.token },
    thread: `${lab.token}v`,
    text: `good${lab.token}`,
  });
  return { warm, poison: said[2] as (typeof said)[number], others: [...said.filter((_, i) => i !== 2), visitor] };
}

test.each<[string, ScriptedReply]>([
  ["400", { fault: "400" }],
  ["500", { fault: "500" }],
  ["garbage", { fault: "garbage" }],
  ["an answer without an end", { text: "y".repeat(200_000) }],
  ["a call that hangs", { fault: "hang" }],
])(
  "[RT7] [R6] [Q13] what the model always fails at (%s) blocks nobody: it fails alone, and after three times people get it with the reason",
  async (_fault, answer) => {
    const lab = await named();
    await healthy();
    if (answer.fault === "hang") await modelTimeout(lab, 2_000);
    const bad = `bad${lab.token}`;
    const all = { calls: [{ tool: "record", input: { settles: ["$all"], reason: "kept" } }] };
    await script(`good${lab.token}`, times(40, all));
    const { poison, others } = await batch(lab, bad, 6);
    await script(bad, times(60, answer));
    await until("a batch in halves", async () => (await metaOf(lab)).doubts?.team.width !== null && (await bodies(bad)).length > 0);
    await evictDurableObject(lab.router as never);
    await lab.router.poke();
    for (const other of others) expect((await decided(lab, other.id, 20_000)).by).toBe("model");
    for (const tries of [1, 2, 3]) {
      await until(`failure ${tries}`, async () => {
        const [row] = await rows<{ tries: number; state: string }>(lab, `SELECT tries, state FROM item WHERE id = '${poison.id}'`);
        return row?.state === "settled" || (row?.tries ?? 0) >= tries;
      });
      await patience(lab);
    }
    const decision = await decided(lab, poison.id, 20_000);
    expect(decision).toMatchObject({
      by: "code",
      tool: "ask_human",
      reason: expect.stringContaining("My model fails whenever I show it this"),
    });
    const escalated = (await events(lab)).filter(({ event }) => event.kind === "router.escalated");
    expect(escalated.map(({ event }) => event)).toMatchObject([{ ids: [poison.id] }]);
    await until("the notice", async () => (await saidIn(poison.threadId)).length > 0);
    // Nobody heard of an outage, and the model is not said to be away.
    for (const other of others) expect(await saidIn(other.threadId)).toEqual([]);
    expect(await lab.router.overview()).toMatchObject({ pending: 0, modelNote: null });
  },
  60_000,
);

test("[RT7] what the process itself dies of at each turn blocks nobody: it is alone in the end, counts its tries, and people get it", async () => {
  const lab = await named();
  await healthy();
  await modelTimeout(lab, 60_000);
  const bad = `bad${lab.token}`;
  await script(`good${lab.token}`, times(40, { calls: [{ tool: "record", input: { settles: ["$all"], reason: "kept" } }] }));
  const { poison, others } = await batch(lab, bad, 6);
  // The answer never comes: the process is gone before.
  await script(bad, times(40, { ...record, delayMs: 60_000 }));
  let deaths = 0;
  const decision = await until(
    "people to get it",
    async () => {
      const [row] = await rows<{ tries: number; state: string }>(lab, `SELECT tries, state FROM item WHERE id = '${poison.id}'`);
      if (row?.state === "settled") return (await decisions(lab)).find(({ settles }) => settles.includes(poison.id));
      const shown = (await bodies(bad)).length;
      if (shown > deaths) {
        deaths = shown;
        await runInDurableObject(lab.router as never, (_instance: unknown, state: DurableObjectState) =>
          state.abort("out of memory"),
        ).catch(() => undefined);
        await until("a new process", () =>
          modelTimeout(lab, 60_000).then(
            () => true,
            () => false,
          ),
        );
        await lab.router.poke();
      } else if ((row?.tries ?? 0) > 0) await patience(lab);
      return undefined;
    },
    50_000,
  );
  expect(decision).toMatchObject({ by: "code", tool: "ask_human", reason: expect.stringContaining("My process ends") });
  for (const other of others) expect((await decided(lab, other.id, 20_000)).by).toBe("model");
  await evictDurableObject(lab.router as never);
  expect(await rows(lab, `SELECT id FROM item WHERE (attempts > 0 OR tries > 0) AND id <> '${poison.id}'`)).toEqual([]);
  expect(await rows(lab, `SELECT tries FROM item WHERE id = '${poison.id}'`)).toEqual([{ tries: 3 }]);
  expect(await lab.router.overview()).toMatchObject({ pending: 0, modelNote: null });
  expect(await metaOf(lab)).toMatchObject({ underWay: null });
  await until("the notice", async () => (await saidIn(poison.threadId)).length > 0);
}, 60_000);

test("[RT7] what stands in the transcript and is refused later is left behind with it, and no item is to blame", async () => {
  const lab = await named();
  await healthy();
  const [odd, next] = [`odd${lab.token}`, `next${lab.token}`];
  await script(odd, [record]);
  const first = await say(lab, { name: `${lab.token}1`, by: member, thread: `${lab.token}1`, text: odd });
  await decided(lab, first.id);
  await script(next, times(4, record));
  await script(odd, times(20, { fault: "400" }));
  await evictDurableObject(lab.router as never);
  const second = await say(lab, { name: `${lab.token}2`, by: member, thread: `${lab.token}2`, text: next });
  expect((await decided(lab, second.id)).by).toBe("model");
  expect((await metaOf(lab)).segments).toEqual({ team: 2, public: 1 });
  expect(await rows(lab, "SELECT id FROM item WHERE attempts > 0 OR tries > 0")).toEqual([]);
  const probes = (await events(lab)).flatMap(({ event }) =>
    event.kind === "router.probe" ? [[event.past > 0, event.error !== undefined]] : [],
  );
  expect(probes).toEqual([
    [false, false],
    [true, true],
  ]);
});

test("[RT5][RT7] when the model answers nothing at all, nobody is to blame, people hear it once, and all are answered in the end", async () => {
  const lab = await named();
  await script([probeWords, ourName], times(50, { fault: "404" }));
  await script(lab.token, times(20, { fault: "404" }));
  const said = [];
  for (const i of [1, 2, 3])
    said.push(await say(lab, { name: `${lab.token}${i}`, by: member, thread: `${lab.token}${i}`, text: lab.token }));
  for (const { threadId } of said) await until("the notice", async () => (await saidIn(threadId)).length > 0);
  await evictDurableObject(lab.router as never);
  for (let i = 0; i < 4; i++) {
    await patience(lab);
    await until("the model's refusal", async () => (await metaOf(lab)).retryAtMs > Date.now());
  }
  expect(await rows(lab, "SELECT id FROM item WHERE attempts > 0 OR tries > 0")).toEqual([]);
  expect(await lab.router.overview()).toMatchObject({ pending: 3, modelNote: expect.stringContaining("MODEL_NAME") });
  await script(lab.token, times(6, { calls: [{ tool: "record", input: { settles: ["$all"], reason: "kept" } }] }));
  await patience(lab);
  for (const { id, threadId } of said) {
    expect((await decided(lab, id)).by).toBe("model");
    expect(await saidIn(threadId)).toHaveLength(1);
  }
});

test("[RT7] one message of which the model makes words instead of calls costs the others no attempt", async () => {
  const lab = await named();
  await healthy();
  const bad = `bad${lab.token}`;
  await script(`good${lab.token}`, times(40, { calls: [{ tool: "record", input: { settles: ["$all"], reason: "kept" } }] }));
  await script(bad, times(60, { text: "I cannot help with that." }));
  const { poison, others } = await batch(lab, bad, 6);
  for (const other of others) expect((await decided(lab, other.id, 20_000)).by).toBe("model");
  expect(await decided(lab, poison.id, 20_000)).toMatchObject({ by: "code", tool: "ask_human" });
  expect((await decisions(lab)).filter(({ by }) => by === "code")).toHaveLength(1);
}, 60_000);
