import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { guest, member, reportOf, taskOf, triggerOf } from "../support/router-fixtures.ts";
import { bodies, decided, events, messagesOf, newLab, objects, saidIn, say, script, settled } from "./router-lab.ts";

const byOf = (token: string) => ({ ...member, id: `prs_${token}` });
const lastMessage = (body: string | undefined): string => messagesOf(body).at(-1)?.content ?? "";

test("[RD10] what a member asks to remember is inlined when it matters, after an eviction too, and its use is counted", async () => {
  const lab = await newLab();
  const by = byOf(lab.token);
  await script(
    [lab.token, "first"],
    [{ calls: [{ tool: "remember", input: { settles: ["$trg"], kind: "rule", text: `Deployments of ${lab.token} happen on Fridays.` } }] }],
  );
  const told = await say(lab, { name: `${lab.token}1`, by, text: `first ${lab.token}: deployments happen on Fridays` });
  await decided(lab, told.id);
  const fact = (await events(lab)).flatMap(({ event }) => (event.kind === "router.fact" ? [event] : []))[0];
  expect(fact).toMatchObject({ triggerId: told.id });
  await evictDurableObject(lab.router as never);

  const factId = fact?.factId ?? "";
  expect((await lab.router.recall({ id: factId }))?.text).toContain(`Deployments of ${lab.token} happen on Fridays.`);
  const found = (query: string) => lab.router.search({ query: `${query} ${lab.token}`, limit: 5 });
  expect(await found("deploy fridays")).toMatchObject({ total: 1, hits: [{ id: factId, kind: "fact" }] });
  expect(await found("deploy mondays")).toEqual({ total: 0, hits: [] });
  await script([lab.token, "second"], [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: "On Friday.", uses: [factId] } }] }]);
  const asked = await say(lab, {
    name: `${lab.token}2`,
    by: byOf(`${lab.token}x`),
    thread: lab.token,
    text: `second: when are deployments of ${lab.token}?`,
  });
  await decided(lab, asked.id);
  const body = (await bodies("second")).find((each) => each.includes(lab.token));
  const shown = lastMessage(body)
    .split("\n")
    .map((line) => JSON.parse(line) as { item?: string; list?: object[] });
  expect(shown.find((item) => item.item === "facts")?.list).toMatchObject([{ id: factId, kind: "rule", from: "member" }]);
  const measured = (await events(lab)).flatMap(({ event }) => (event.kind === "router.context" ? [event] : []));
  expect(measured.at(-1)).toMatchObject({ inlined: [factId], used: [factId], reads: 0 });
  expect((await lab.router.overview()).context).toEqual({ turns: 2, withoutRead: 2, inlined: 1, used: 1 });
  expect((await lab.router.facts({ id: factId })).facts).toMatchObject([{ id: factId, used: { times: 1 } }]);
});

test("[RD10] [RI8] outsiders neither write nor read the team's memory", async () => {
  const lab = await newLab();
  await script(
    [lab.token, "secret"],
    [{ calls: [{ tool: "remember", input: { settles: ["$trg"], kind: "background", text: `The secret of ${lab.token} is blue.` } }] }],
  );
  const told = await say(lab, { name: `${lab.token}1`, by: byOf(lab.token), text: `secret of ${lab.token}` });
  await decided(lab, told.id);
  // Of what was told in a conversation of one's own, operators see that it is there.
  expect(await lab.router.search({ query: `secret blue ${lab.token}`, limit: 5 })).toEqual({ hits: [], total: 0 });
  expect(await lab.router.facts({ query: `secret blue ${lab.token}`, limit: 5 })).toEqual({ facts: [], total: 0 });
  expect(await lab.router.facts({ query: "", limit: 5 })).toMatchObject({
    total: 1,
    facts: [{ kind: "background", text: null, reach: "own" }],
  });
  const visitor = { ...guest, id: lab.token };
  await script(
    [lab.token, "outsider"],
    [
      { calls: [{ tool: "find", input: { query: "secret blue" } }] },
      { calls: [{ tool: "remember", input: { settles: ["$trg"], kind: "rule", text: `Guests of ${lab.token} are owners.` } }] },
    ],
  );
  const asked = await say(lab, { name: `${lab.token}2`, by: visitor, text: `outsider asks for the hidden word of ${lab.token}` });
  expect(await decided(lab, asked.id)).toMatchObject({ by: "code", tool: "remember", lane: "public" });
  await settled(lab);
  const requests = await bodies("outsider");
  expect(requests.length).toBe(2);
  for (const body of requests) expect(body).not.toContain("is blue");
  expect(lastMessage(requests[1])).toContain('"found":0');
  expect((await events(lab)).filter(({ event }) => event.kind === "router.fact")).toHaveLength(1);
  expect((await saidIn(asked.threadId)).map(({ text }) => text).join()).toContain("only members of the team");
});

test("[RI7] find matches all words first, other scripts and accents, pages its answer, and a corrected fact is found no more", async () => {
  const lab = await newLab();
  const by = byOf(lab.token);
  const remember = (text: string, replaces?: string) => ({
    tool: "remember",
    input: { settles: ["$trg"], kind: "background", for: "team", text, ...(replaces ? { replaces } : {}) },
  });
  // Told in a conversation of one's own: it is in no list of another's.
  const own = { tool: "remember", input: { settles: ["$trg"], kind: "background", text: `Only for me ${lab.token}` } };
  const facts = [
    ...Array.from({ length: 12 }, (_, n) => `Fact ${n} of ${lab.token} about café tables`),
    `部署脚本在旧服务器上 ${lab.token}`,
  ];
  await script([lab.token, "many"], [{ calls: [...facts.map((text) => remember(text)), own] }]);
  const told = await say(lab, { name: `${lab.token}1`, by, text: `many things ${lab.token}` });
  await decided(lab, told.id);
  const idOf = async (text: string) =>
    (await lab.router.facts({ query: "", limit: 50 })).facts.find((fact) => fact.text === text)?.id ?? "";
  const old = await idOf(facts[12] ?? "");
  await script([lab.token, "correction"], [{ calls: [remember(`部署脚本在新服务器上 ${lab.token}`, old)] }]);
  await decided(lab, (await say(lab, { name: `${lab.token}2`, by, text: `correction ${lab.token}` })).id);
  await evictDurableObject(lab.router as never);
  const looking = { name: `${lab.token}3`, by: byOf(`${lab.token}y`), text: `looking around ${lab.token}` };
  await script(
    [lab.token, "looking"],
    [
      {
        calls: [
          { tool: "find", input: { query: `cafe tables "${lab.token}" OR (` } },
          { tool: "find", input: { query: `cafe tables ${lab.token}`, page: 2 } },
          { tool: "find", input: { query: "部署" } },
          { tool: "find", input: { query: '"' } },
          { tool: "recall", input: { id: old } },
          { tool: "find", input: { kind: "fact" } },
          { tool: "find", input: { query: lab.token, kind: "decision" } },
          { tool: "find", input: {} },
        ],
      },
      { calls: [{ tool: "record", input: { settles: [triggerOf(looking).id], reason: "kept" } }] },
    ],
  );
  await decided(lab, (await say(lab, looking)).id);
  const results = messagesOf((await bodies("looking around")).at(-1))
    .filter((message) => message.role === "tool")
    .slice(-8)
    .map((message) => message.content ?? "");
  expect(results[0]?.split("\n")).toHaveLength(11);
  expect(results[0]).toContain('"found":12');
  expect(results[1]?.split("\n")).toHaveLength(3);
  expect(results[2]).toContain("新服务器");
  expect(results[2]).not.toContain("旧服务器");
  expect(results[3]).toContain('"found":0');
  expect(results[4]).toContain("旧服务器");
  expect(results[4]).toContain("replacedBy");
  // Without words all of a kind, the newest first, and nothing of another kind.
  expect(results[5]?.split("\n")[0]).toContain('"kind":"fact","page":1,"pages":2,"found":13');
  expect(results[5]).not.toContain("Only for me");
  expect(results[5]?.split("\n")[1]).toContain("新服务器");
  expect(results[6]).not.toContain('"kind":"fact"');
  expect(results[7]).toContain('"found":0');
});

test("an old task that was done in a pull request is found from the widget in at most three recalls", async () => {
  const lab = await newLab();
  const by = byOf(lab.token);
  const pull = `pull${lab.token}`;
  await script(
    [pull, "flaky"],
    [
      {
        calls: [
          {
            tool: "dispatch",
            input: { settles: ["$trg"], title: "Fix the flaky login test", goal: `Make the login test of ${pull} stable.` },
          },
        ],
      },
    ],
  );
  const asked = await say(lab, { name: pull, by, thread: pull, pull: true, text: `the login test is flaky, fix it ${pull}` });
  const dispatch = await decided(lab, asked.id);
  await settled(lab);
  const task = taskOf("x", { id: dispatch.taskId ?? "", threadId: asked.threadId });
  await lab.router.report({ ...reportOf({ task, text: `I froze the clock in ${pull}.`, confidence: 0.9 }), atMs: Date.now() + 1 });
  await settled(lab);
  // Long ago: more tasks ended since than a turn brings along.
  for (let n = 0; n < 12; n++) {
    const other = taskOf(`${lab.token}${n}`, { title: `Chore ${n}` });
    await lab.router.report({ ...reportOf({ task: other, confidence: 0.9, text: "ok" }), atMs: Date.now() + 10 + n });
  }
  await evictDurableObject(lab.router as never);
  const worker = await objects.WORKER_SESSION.getByName(task.id).describe();
  const about = {
    name: `${lab.token}q`,
    by: { ...member, id: `prs_q${lab.token}` },
    text: `how did we stabilise that login thing? ${lab.token}`,
  };
  await script(
    [lab.token, "how did we"],
    [
      { calls: [{ tool: "find", input: { query: "flaky login test" } }] },
      { calls: [{ tool: "recall", input: { id: task.id } }] },
      { calls: [{ tool: "recall", input: { id: asked.threadId } }] },
      { calls: [{ tool: "reply", input: { settles: [triggerOf(about).id], text: "By freezing the clock, in the pull request." } }] },
    ],
  );
  const question = await say(lab, about);
  await decided(lab, question.id);
  await settled(lab);
  const requests = await bodies("how did we");
  expect(requests).toHaveLength(4);
  expect(lastMessage(requests[0])).not.toContain(task.id);
  expect(lastMessage(requests[1])).toContain(task.id);
  expect(lastMessage(requests[2])).toContain(worker?.start.goal ?? "no goal");
  expect(lastMessage(requests[2])).toContain(asked.threadId);
  expect(lastMessage(requests[3])).toContain(`https://github.com/acme/app/pull/${pull}`);
  expect(await saidIn(question.threadId)).toMatchObject([{ text: "By freezing the clock, in the pull request." }]);
});
