import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { routerName } from "../../src/env.ts";
import type { FactAnswer, MemoryAnswer, SearchAnswer } from "../../src/protocol/console.ts";
import { member } from "../support/router-fixtures.ts";
import { asOperator, bindings, ok, request } from "./console-support.ts";
import { decided, type Lab, say, script, settled, unique } from "./router-lab.ts";

/** The deployment's own router: the console knows no other. */
const lab: Lab = {
  token: unique(),
  get router() {
    return bindings.ROUTER.getByName(routerName) as unknown as Lab["router"];
  },
};
let count = 0;

async function tell(by: typeof member, input: object, thread?: string): Promise<void> {
  const word = `tell${++count}${lab.token}`;
  await script(word, [{ calls: [{ tool: "remember", input: { settles: ["$trg"], kind: "background", ...input } }] }]);
  const trigger = await say(lab, { name: word, by, text: word, ...(thread === undefined ? {} : { thread }) });
  await decided(lab, trigger.id);
  await settled(lab);
}

const list = (query = "") => ok<MemoryAnswer>(asOperator("GET", `memory?q=${encodeURIComponent(query)}`));
const factOf = async (text: string) => {
  const fact = (await list()).facts.find((each) => each.text === text);
  if (fact === undefined) throw new Error(`There is no fact ${text}.`);
  return fact;
};

test("[RD17] [A9] the console lists what is remembered with its source, and forgets it: of others' own conversations without the words", async () => {
  const ana = { ...member, id: `prs_${lab.token}`, name: "Ana" };
  const rule = `Deploys of ${lab.token} happen on Fridays.`;
  await tell(ana, { text: rule, kind: "rule" });
  await tell(ana, { text: `The shelf of ${lab.token} is full.` }, lab.token);
  await tell(ana, { text: `My desk of ${lab.token} is upstairs.` });
  const { facts, total } = await list();
  expect(total).toBe(3);
  expect(facts.map(({ text, reach, kind }) => [text, reach, kind])).toEqual([
    [null, "own", "background"],
    [`The shelf of ${lab.token} is full.`, "place", "background"],
    [rule, "team", "rule"],
  ]);
  expect(facts[2]).toMatchObject({
    by: { role: "member", name: "Ana" },
    source: "web",
    told: { threadId: expect.stringMatching(/^thr_/) },
  });
  expect(facts[0]?.told).toBeNull();
  expect((await list(`deploy friday ${lab.token}`)).facts.map(({ text }) => text)).toEqual([rule]);
  // By words, too, nobody gets at what is another's own.
  expect(await list(`desk upstairs ${lab.token}`)).toEqual({ facts: [], total: 0 });
  expect((await ok<SearchAnswer>(asOperator("GET", `search?q=upstairs+${lab.token}`))).hits).toEqual([]);

  const { id } = await factOf(rule);
  expect(await ok<FactAnswer>(asOperator("GET", `memory/${id}`))).toMatchObject({ fact: { id, text: rule } });
  const gone = await ok<FactAnswer>(asOperator("POST", `memory/${id}/forget`));
  expect(gone).toMatchObject({ fact: { id, text: null, forgotten: { by: "Operator" } } });
  await evictDurableObject(lab.router as never);
  expect(await ok(asOperator("POST", `memory/${id}/forget`))).toEqual(gone);
  expect(await ok(asOperator("GET", `memory/${id}`))).toEqual(gone);
  expect((await list()).total).toBe(2);
  const own = facts[0]?.id ?? "";
  expect(await ok<FactAnswer>(asOperator("POST", `memory/${own}/forget`))).toMatchObject({
    fact: { text: null, forgotten: { by: "Operator" } },
  });
  expect(JSON.stringify([await list(), await ok(asOperator("GET", `memory/${own}`))])).not.toContain("upstairs");
});

test("[RD17] what is no fact is a 404, what counts no more a 409, and whoever is not signed in gets nothing", async () => {
  for (const [method, path] of [
    ["GET", "memory/fct_nothing"],
    ["GET", "memory/nonsense"],
    ["GET", "memory/tsk_a"],
    ["POST", "memory/fct_nothing/forget"],
  ] as const) {
    const response = await asOperator(method, path, method === "POST" ? {} : undefined);
    expect([path, response.status]).toEqual([path, 404]);
    expect((await response.json<{ message: string }>()).message).toMatch(/^There is no fact /);
  }
  const ana = { ...member, id: `prs_c${lab.token}`, name: "Ana" };
  await tell(ana, { text: `Lunch of ${lab.token} is at noon.`, for: "team" });
  const { id } = await factOf(`Lunch of ${lab.token} is at noon.`);
  await tell(ana, { text: `Lunch of ${lab.token} is at one.`, for: "team", replaces: id });
  const refused = await asOperator("POST", `memory/${id}/forget`, {});
  expect(refused.status).toBe(409);
  const newer = await factOf(`Lunch of ${lab.token} is at one.`);
  expect((await refused.json<{ message: string }>()).message).toContain(`${newer.id} took its place`);
  for (const [method, path] of [
    ["GET", "memory"],
    ["POST", `memory/${newer.id}/forget`],
  ] as const)
    expect((await request(`/api/console/${path}`, { method })).status).toBe(401);
  expect((await factOf(`Lunch of ${lab.token} is at one.`)).text).toContain("at one");
  // With what holds now, what it took the place of is forgotten.
  await ok(asOperator("POST", `memory/${newer.id}/forget`));
  await evictDurableObject(lab.router as never);
  expect(await ok<FactAnswer>(asOperator("GET", `memory/${id}`))).toMatchObject({ fact: { text: null, forgotten: { by: "Operator" } } });
});
