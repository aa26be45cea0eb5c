import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { member } from "../support/router-fixtures.ts";
import { bodies, decided, events, type Lab, messagesOf, newLab, rows, saidIn, say, script, settled } from "./router-lab.ts";

let count = 0;

/** A person says something, and the router's model answers it with these calls. */
async function turn(lab: Lab, by: typeof member, calls: { tool: string; input?: object }[][]) {
  const word = `turn${++count}${lab.token}`;
  await script(
    word,
    calls.map((each) => ({ calls: each.map(({ tool, input }) => ({ tool, input: { settles: ["$trg"], ...input } })) })),
  );
  const trigger = await say(lab, { name: word, by, text: word });
  const decision = await decided(lab, trigger.id);
  await settled(lab);
  return { trigger, decision, requests: await bodies(word) };
}

const remember = (text: string, more: object = {}) => ({ tool: "remember", input: { kind: "background", for: "team", text, ...more } });
const forget = (id: string) => ({ tool: "remember", input: { replaces: id } });
const newest = async (lab: Lab) => (await lab.router.facts({ query: "", limit: 1 })).facts[0]?.id ?? "";

/** Everything that the index is made of, as letters. */
async function indexed(lab: Lab): Promise<string> {
  const blocks = await rows<{ block: ArrayBuffer }>(lab, "SELECT block FROM memory_text_data");
  return blocks.map(({ block }) => new TextDecoder("latin1").decode(block)).join("\n");
}

const table = async (lab: Lab, query: string): Promise<string> => JSON.stringify(await rows(lab, query));

test("[RD17] what a member has forgotten is in no row and no index, and in no later request; its recall says by whom and when", async () => {
  const lab = await newLab();
  const by = { ...member, id: `prs_${lab.token}`, name: "Ana" };
  const vault = `zqvault${lab.token}`;
  await turn(lab, by, [[remember(`The ${vault} stands in Bergen.`)]]);
  const old = await newest(lab);
  await turn(lab, by, [[remember(`The ${vault} stands in Oslo, behind the harbour.`, { replaces: old })]]);
  const id = await newest(lab);
  // An answer repeats it, and is found by its words as well.
  await turn(lab, by, [[{ tool: "reply", input: { text: `As I know it: the ${vault} stands in Oslo, behind the harbour. Ask on.` } }]]);
  await turn(lab, by, [[{ tool: "reply", input: { text: "It is noon." } }]]);
  expect((await lab.router.search({ query: vault, limit: 9 })).hits.map(({ kind }) => kind).sort()).toEqual(["decision", "fact"]);
  expect(await indexed(lab)).toContain(vault);
  expect(await table(lab, "SELECT body FROM fact")).toContain("Bergen");

  await evictDurableObject(lab.router as never);
  const asked = await turn(lab, by, [[forget(id)]]);
  expect(asked.decision).toMatchObject({ tool: "remember", reason: `forgets ${id}`, authority: "member" });
  expect((await saidIn(asked.trigger.threadId)).at(-1)).toMatchObject({
    kind: "notice",
    text: expect.stringMatching(
      new RegExp(`^I have forgotten what Ana told me on 2.*: “The ${vault} stands in Oslo, behind the harbour.”$`),
    ),
  });
  await evictDurableObject(lab.router as never);

  for (const of of ["SELECT body FROM fact", "SELECT title, body, tail FROM memory", "SELECT title, body FROM memory_text"])
    expect(await table(lab, of)).not.toContain(vault);
  expect(await indexed(lab)).not.toContain(vault);
  expect(await lab.router.search({ query: vault, limit: 9 })).toEqual({ hits: [], total: 0 });
  expect(await lab.router.facts({ query: "", limit: 9 })).toEqual({ facts: [], total: 0 });
  for (const each of [id, old]) {
    const recalled = (await lab.router.recall({ id: each }))?.text ?? "";
    expect(JSON.parse(recalled)).toMatchObject({ fact: each, from: "Ana", forgotten: { by: "Ana", in: asked.trigger.threadId } });
    expect(recalled).not.toContain(vault);
  }
  const log = (await events(lab)).flatMap(({ event }) => (event.kind === "router.fact" || event.kind === "router.forgot" ? [event] : []));
  expect(log.at(-1)).toMatchObject({
    kind: "router.forgot",
    factId: id,
    by: { id: by.id },
    threadId: asked.trigger.threadId,
    triggerId: asked.trigger.id,
  });
  expect(JSON.stringify(log)).not.toContain(vault);

  // The next turn knows nothing of it, neither from the transcript nor from its summary, and finds nothing.
  const later = await turn(lab, by, [
    [
      { tool: "find", input: { query: `${vault} Oslo harbour` } },
      { tool: "recall", input: { id } },
    ],
    [{ tool: "reply", input: { text: "I do not know." } }],
  ]);
  expect(later.requests).toHaveLength(2);
  expect(later.requests[0]).not.toContain(vault);
  const [found, recalled] = messagesOf(later.requests[1])
    .filter(({ role }) => role === "tool")
    .map(({ content }) => content ?? "");
  expect(found).toContain('"found":0');
  expect(recalled).toContain('"forgotten":{"by":"Ana"');
  // What a mind saw before is made again from the rows that it keeps.
  expect(messagesOf(later.requests[0])).toHaveLength(2);
});

test("[RD17] a turn under way when something is forgotten keeps its own transcript, and the next one begins anew", async () => {
  const lab = await newLab();
  const by = { ...member, id: `prs_${lab.token}` };
  const word = `zqword${lab.token}`;
  await turn(lab, by, [[remember(`The word is ${word}.`)]]);
  const id = await newest(lab);
  const asked = `slow${lab.token}`;
  await script(asked, [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: `It is ${word}.` } }], delayMs: 700 }]);
  const trigger = await say(lab, { name: asked, by, text: `${asked}: which word?` });
  await expect.poll(async () => (await bodies(asked)).length).toBe(1);
  const operator = { role: "owner", id: "operator", name: "Operator" } as const;
  expect(await lab.router.forget({ id, by: operator })).toMatchObject({ fact: { id, text: null, forgotten: { by: "Operator" } } });
  await decided(lab, trigger.id);
  await evictDurableObject(lab.router as never);
  const next = await turn(lab, by, [[{ tool: "reply", input: { text: "I do not know any word." } }]]);
  expect(next.requests[0]).not.toContain(word);
  expect(await lab.router.search({ query: word, limit: 9 })).toEqual({ hits: [], total: 0 });
  // The second asking changes nothing, and names who asked first.
  expect(await lab.router.forget({ id, by: { ...operator, name: "Another" } })).toMatchObject({ fact: { forgotten: { by: "Operator" } } });
  expect((await events(lab)).filter(({ event }) => event.kind === "router.forgot")).toHaveLength(1);
  expect(await lab.router.forget({ id: "fct_nothing", by: operator })).toBeNull();
});

test("[RD17] [A9] nobody has forgotten what another person told in a conversation of their own; they themselves have", async () => {
  const lab = await newLab();
  const ana = { ...member, id: `prs_a${lab.token}`, name: "Ana" };
  const ben = { ...member, id: `prs_b${lab.token}`, name: "Ben" };
  await turn(lab, ana, [[remember(`My desk of ${lab.token} is upstairs.`, { for: "here" })]]);
  const id = await newest(lab);
  const tried = await turn(lab, ben, [[forget(id), { tool: "record", input: { reason: "kept" } }]]);
  expect(tried.decision.tool).toBe("record");
  const refusals = (await events(lab)).flatMap(({ event }) => (event.kind === "router.refused" ? [event.reason] : []));
  expect(refusals.at(-1)).toContain(`There is no fact ${id} that may be told here`);
  await evictDurableObject(lab.router as never);
  expect((await lab.router.recall({ id }))?.text).toContain("is upstairs");
  await turn(lab, ana, [[forget(id)]]);
  await evictDurableObject(lab.router as never);
  expect((await lab.router.recall({ id }))?.text).not.toContain("upstairs");
});
