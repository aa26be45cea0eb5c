import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { webAudience } from "../../src/core/audience.ts";
import { threadIdOf } from "../../src/core/ids.ts";
import { recallObject } from "../../src/storage/recall.ts";
import { member, reportOf, type TriggerParts, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { append, bodies, decided, decisions, type Lab, messagesOf, newLab, objects, saidIn, say, script, settled } from "./router-lab.ts";

const person = (lab: Lab, name: string) => ({ ...member, id: `prs_${name}${lab.token}` });
const call = (tool: string, input: object) => ({ tool, input });

/** Ana asks for work in her own conversation, says much more, and has something remembered: all of it with `secret` in it. */
async function anasConversation(lab: Lab, secret: string) {
  const by = person(lab, "ana");
  const asked = { name: `${lab.token}a1`, by, text: `anaasks ${lab.token} about ${secret}` };
  await script(triggerOf(asked).id, [
    {
      calls: [
        call("dispatch", { settles: ["$trg"], title: `Sum up ${secret}`, goal: `Look at ${secret}`, acknowledge: `On it: ${secret}` }),
        call("remember", { settles: ["$trg"], kind: "background", text: `Ana's number is ${secret}` }),
      ],
    },
  ]);
  await say(lab, asked);
  const dispatch = await decided(lab, triggerOf(asked).id);
  await settled(lab);
  for (let n = 0; n < 25; n++) await append({ name: `${lab.token}more${n}`, by, text: `${secret} again, the ${n}th time` });
  const answered = { name: `${lab.token}a2`, by, text: `anathanks ${lab.token}` };
  await script(triggerOf(answered).id, [{ calls: [call("reply", { settles: ["$trg"], text: `You are welcome, ${secret}.` })] }]);
  await say(lab, answered);
  await decided(lab, triggerOf(answered).id);
  await settled(lab);
  const taskId = dispatch.taskId ?? "";
  const topic = dispatch.threadId ?? "";
  const facts = (await lab.router.events({ afterSeq: 0, limit: 1000 })).flatMap(({ event }) =>
    event.kind === "router.fact" ? [event.factId] : [],
  );
  const said = [...(await saidIn(topic)), ...(await saidIn(triggerOf(asked).threadId))].map(({ id }) => id);
  const made = (await decisions(lab)).map(({ decisionId }) => decisionId);
  return {
    by,
    asked: triggerOf(asked),
    taskId,
    topic,
    ids: [triggerOf(asked).id, triggerOf(asked).threadId, topic, taskId, ...facts, ...said, ...made],
  };
}

test("[A9] a hostile model that answers one person recalls and finds nothing of another's conversation, on no page and in no snippet", async () => {
  const lab = await newLab();
  const secret = `salary${lab.token}`;
  const ana = await anasConversation(lab, secret);
  expect(ana.ids.length).toBeGreaterThan(8);
  await evictDurableObject(lab.router as never);
  const evil = { name: `${lab.token}b1`, by: person(lab, "ben"), text: `benlooks ${lab.token}` };
  const own = triggerOf(evil).id;
  const reads = [
    ...ana.ids.flatMap((id) => [1, 2].map((page) => call("recall", { id, page }))),
    ...[1, 2, 3].map((page) => call("find", { query: secret, page })),
    call("find", { query: `sum up salary ${lab.token}` }),
  ];
  const steps: { calls: ReturnType<typeof call>[] }[] = [];
  for (let at = 0; at < reads.length; at += 16) steps.push({ calls: reads.slice(at, at + 16) });
  expect(steps.length).toBeLessThanOrEqual(3);
  await script(own, [...steps, { calls: [call("reply", { settles: [own], text: "I found nothing." })] }]);
  await say(lab, evil);
  await decided(lab, own);
  await settled(lab);
  const last = (await bodies("benlooks")).at(-1);
  const answers = messagesOf(last)
    .slice(-(reads.length + steps.length))
    .filter(({ role }) => role === "tool");
  expect(answers).toHaveLength(reads.length);
  for (const { content } of answers) {
    // The first line of what is found repeats the query; not even how much there is is told.
    const shown = content?.startsWith('{"find"') ? content.split("\n").slice(1).join() : content;
    expect(shown).not.toContain(secret);
    if (content?.startsWith('{"find"')) expect(content).toContain('"found":0');
  }
  expect(answers.filter(({ content }) => content?.includes("belongs to another conversation")).length).toBeGreaterThan(ana.ids.length);
  const turn = messagesOf(last).findLast(({ role }) => role === "user")?.content ?? "";
  expect(turn).toContain(ana.taskId);
  expect(turn).toContain("(of another conversation)");
  expect(turn).not.toContain(secret);
});

test("[A9] the same person finds and recalls all of it, and a schedule of theirs too", async () => {
  const lab = await newLab();
  const secret = `salary${lab.token}`;
  const ana = await anasConversation(lab, secret);
  const again = { name: `${lab.token}a3`, by: ana.by, text: `anareturns ${lab.token}` };
  const own = triggerOf(again).id;
  await script(own, [
    {
      calls: [
        ...ana.ids.map((id) => call("recall", { id })),
        call("recall", { id: ana.asked.threadId, page: 2 }),
        call("find", { query: secret }),
      ],
    },
    { calls: [call("reply", { settles: [own], text: "Here it is." })] },
  ]);
  await say(lab, again);
  await decided(lab, own);
  const answers = messagesOf((await bodies("anareturns")).at(-1))
    .slice(-(ana.ids.length + 2))
    .map(({ content }) => content ?? "");
  expect(answers.filter((content) => content.includes("belongs to another"))).toEqual([]);
  expect(answers.at(-2)).toContain(secret);
  expect(answers.at(-1)).toContain(secret);
  expect(answers[0]).toContain(secret);
});

test("[A9] in a turn of two conversations, what was read for one is not said in the other, nor is it there in the next turn", async () => {
  const lab = await newLab();
  const secret = `salary${lab.token}`;
  const ana = await anasConversation(lab, secret);
  const first: TriggerParts = { name: `${lab.token}c0`, by: person(lab, "cleo"), text: `cleowaits ${lab.token}` };
  await script(triggerOf(first).id, [{ calls: [call("record", { settles: ["$trg"], reason: "kept" })], delayMs: 700 }]);
  await say(lab, first);
  const forAna = { name: `${lab.token}d1`, by: ana.by, text: `anabatch ${lab.token}: what did I tell you?` };
  const forBen = { name: `${lab.token}d2`, by: person(lab, "ben"), text: `benbatch ${lab.token}: what is new?` };
  const [a, b] = [triggerOf(forAna).id, triggerOf(forBen).id];
  await script(
    [a, b],
    [
      { calls: [call("recall", { id: ana.asked.threadId, page: 2 })] },
      {
        calls: [
          call("reply", { settles: [a], text: `You told me ${secret}.` }),
          call("reply", { settles: [b], text: `Ana told me ${secret}.` }),
        ],
      },
    ],
  );
  await script([b, "could repeat it"], [{ calls: [call("reply", { settles: [b], text: "Nothing is new." })] }]);
  await say(lab, forAna);
  await say(lab, forBen);
  await decided(lab, b);
  await settled(lab);
  const [root, other] = [triggerOf(forAna).threadId, triggerOf(forBen).threadId];
  expect((await saidIn(root)).at(-1)?.text).toBe(`You told me ${secret}.`);
  expect((await saidIn(other)).map(({ text }) => text)).toEqual(["Nothing is new."]);
  const requests = (await bodies("benbatch")).filter((body) => body.includes(b));
  const read = requests.find((body) => messagesOf(body).at(-1)?.content?.includes("again, the"));
  expect(read).toBeDefined();
  const next = requests.at(-1);
  expect(next).toContain("was read for that turn only");
  expect(next).not.toContain("again, the 3th time");
});

test("[A9] a page of a conversation without a message of its own is its person's alone", async () => {
  const lab = await newLab();
  const ana = await anasConversation(lab, `salary${lab.token}`);
  const { info } = await objects.THREAD.getByName(ana.topic).read({ afterSeq: 0, limit: 1 });
  expect(info.viewerId).toBe(ana.by.id);
  const [said] = await until("the acknowledgement", async () => {
    const all = await saidIn(ana.topic);
    return all.length > 0 && all;
  });
  const read = (readers: string[]) => recallObject(objects, { id: said?.id ?? "", page: 1, readers });
  expect((await read([webAudience(ana.by.id)])).text).toContain("On it");
  expect((await read(["web prs_other", "github acme/app"])).text).toContain("belongs to another conversation");
  expect(threadIdOf("web", "widget", `topic:${ana.taskId}`)).toBe(ana.topic);
});

test("[A9] what was said in a task's own conversation is found by nobody else: neither beside its dispatch nor about its report", async () => {
  const lab = await newLab();
  const secret = `salary${lab.token}`;
  const by = person(lab, "ana");
  const asked = { name: `${lab.token}a1`, by, text: `anaasks ${lab.token}` };
  const id = triggerOf(asked).id;
  await script(id, [
    {
      calls: [
        call("dispatch", { settles: [id], title: "Sums", goal: "Add them up" }),
        call("reply", { settles: [id], text: `I begin with ${secret}beside.` }),
      ],
    },
  ]);
  await say(lab, asked);
  const dispatch = await decided(lab, id);
  const taskId = dispatch.taskId ?? "";
  await settled(lab);
  const report = reportOf({ taskId, threadId: dispatch.threadId ?? "", kind: "question", text: `anareport ${lab.token}` });
  const second = reportOf({ taskId, threadId: dispatch.threadId ?? "", kind: "question", text: `anasecond ${lab.token}` });
  await script(report.id, [{ calls: [call("reply", { settles: [report.id], text: `It comes to ${secret}about.` })] }]);
  await script(second.id, [{ calls: [call("ask_human", { settles: [second.id], question: `Is ${secret}asked right?` })] }]);
  await lab.router.report(report);
  await decided(lab, report.id);
  await lab.router.report(second);
  await decided(lab, second.id);
  await settled(lab);
  await evictDurableObject(lab.router as never);
  const evil = { name: `${lab.token}b1`, by: person(lab, "ben"), text: `benlooks ${lab.token}` };
  const own = triggerOf(evil).id;
  const words = [secret, `${secret}beside`, `${secret}about`, `${secret}asked`];
  await script(own, [
    { calls: words.map((query) => call("find", { query })) },
    { calls: [call("reply", { settles: [own], text: "I found nothing." })] },
  ]);
  await say(lab, evil);
  await decided(lab, own);
  const answers = messagesOf((await bodies("benlooks")).at(-1)).filter(({ content }) => content?.startsWith('{"find"'));
  expect(answers).toHaveLength(words.length);
  for (const { content } of answers) expect(content).toContain('"found":0');
});

test("[RD10] [A9] nobody makes what another person told disappear, nor the team's memory by words to themselves; who knew it may correct it", async () => {
  const lab = await newLab();
  const [ana, ben] = [person(lab, "ana"), person(lab, "ben")];
  let n = 0;
  const tell = async (by: typeof ana, input: object): Promise<string> => {
    const asked = { name: `${lab.token}f${++n}`, by, text: `remember ${lab.token} ${n}` };
    const id = triggerOf(asked).id;
    await script(id, [{ calls: [call("remember", { settles: [id], kind: "background", ...input })] }]);
    await say(lab, asked);
    const { decisionId } = await decided(lab, id);
    const told = (await lab.router.events({ afterSeq: 0, limit: 1000 })).flatMap(({ event }) =>
      event.kind === "router.fact" && event.decisionId === decisionId ? [event.factId] : [],
    );
    return told[0] ?? "";
  };
  const replacedBy = async (id: string) => JSON.parse((await lab.router.recall({ id }))?.text ?? "{}").replacedBy as string | undefined;
  const own = await tell(ana, { text: "My desk is upstairs." });
  const rule = await tell(ana, { text: "We never deploy on Fridays.", for: "team" });
  await tell(ben, { text: "There is no desk.", replaces: own });
  await tell(ben, { text: "There is no desk.", for: "team", replaces: own });
  await tell(ben, { text: "I deploy on Fridays.", replaces: rule });
  await evictDurableObject(lab.router as never);
  expect([await replacedBy(own), await replacedBy(rule)]).toEqual([undefined, undefined]);
  const moved = await tell(ana, { text: "My desk is downstairs.", replaces: own });
  const changed = await tell(ben, { text: "We never deploy at night.", for: "team", replaces: rule });
  expect([await replacedBy(own), await replacedBy(rule)]).toEqual([moved, changed]);
});
