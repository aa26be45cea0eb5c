import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { guest, member } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import {
  bodies,
  decided,
  decisions,
  events,
  messagesOf,
  modelTimeout,
  newLab,
  objects,
  saidIn,
  say,
  script,
  settled,
} from "./router-lab.ts";

const record = { tool: "record", input: { settles: ["$trg"], reason: "kept" } };
const reply = { calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Here I am." } }] };

test.each(["429", "500", "garbage", "cut", "no_choices", "duplicate_ids", "hang"])(
  "[R21] after the fault %s of the model the message is still there, and is answered once",
  async (fault) => {
    const lab = await newLab();
    await modelTimeout(lab, fault === "hang" ? 400 : 2_000);
    await script(lab.token, [{ fault, retryAfter: 0, calls: reply.calls }, reply]);
    const trigger = await say(lab, { name: lab.token, by: member, thread: lab.token, text: lab.token });
    await until("the note", async () => (await lab.router.overview()).modelNote !== null || (await bodies(lab.token)).length === 2);
    await decided(lab, trigger.id);
    await settled(lab);
    expect((await saidIn(trigger.threadId)).map((said) => said.text)).toEqual(["Here I am."]);
    expect(await bodies(lab.token)).toHaveLength(2);
    expect((await lab.router.overview()).modelNote).toBeNull();
    const phases = (await events(lab)).flatMap(({ event }) => (event.kind === "router.model" ? [event.phase] : []));
    expect(phases).toEqual(["reserve", "failed", "reserve", "settle"]);
  },
);

test("[RT5] after the third failure in a row people of the team hear once that they have to wait, and are answered later", async () => {
  const lab = await newLab();
  await script(lab.token, [{ fault: "500" }, { fault: "500" }, { fault: "500" }, { fault: "500" }, { calls: [record] }]);
  const trigger = await say(lab, { name: lab.token, by: member, thread: lab.token, text: lab.token });
  await until("the notice", async () => (await saidIn(trigger.threadId)).length > 0);
  await evictDurableObject(lab.router as never);
  await decided(lab, trigger.id, 25_000);
  await settled(lab);
  expect(await saidIn(trigger.threadId)).toMatchObject([{ kind: "notice", text: expect.stringContaining("your message is kept") }]);
});

test("[RT5] [A11] a refused key is told at once, also to who comes later, with the setting only on a page of the team's, and nobody's message is lost", async () => {
  const lab = await newLab();
  await script(lab.token, [{ fault: "401" }, { fault: "401" }, reply, reply]);
  const first = await say(lab, { name: `${lab.token}1`, by: member, thread: `${lab.token}1`, text: lab.token });
  await until("the notice", async () => (await saidIn(first.threadId)).length > 0);
  const second = await say(lab, { name: `${lab.token}2`, by: { ...member, id: lab.token }, text: lab.token });
  await until("the second notice", async () => (await saidIn(second.threadId)).length > 0);
  const words = async ({ threadId }: Trigger) => (await saidIn(threadId)).map((said) => said.text);
  expect(await words(first)).toEqual(["I cannot answer yet. The model refuses us access. Your message is kept and I will answer."]);
  expect(await words(second)).toEqual([expect.stringContaining("MODEL_API_KEY is refused by model.test")]);
  const failures = (await events(lab)).filter(({ event }) => event.kind === "router.model" && event.phase === "failed");
  expect(JSON.stringify(failures)).toContain("MODEL_API_KEY is refused by model.test");
  expect(await lab.router.overview()).toMatchObject({ pending: 2, modelNote: expect.stringContaining("MODEL_API_KEY") });
  // The key is set; the next message finds it working, and those that wait are decided with it or after it.
  await runInDurableObject(lab.router as never, (_instance: unknown, state: DurableObjectState) => {
    state.storage.sql.exec("UPDATE meta SET body = json_set(body, '$.retryAtMs', 0)");
  });
  await lab.router.poke();
  await until("an answer", async () => (await decisions(lab)).some((decision) => decision.tool === "reply" && decision.by === "model"));
});

test("[RD3] what a turn reads of public text caps its decisions, and does not stay in the transcript", async () => {
  const lab = await newLab();
  const secret = `secret${lab.token}`;
  await script(secret, [{ calls: [record] }]);
  const visitor = await say(lab, { name: `${lab.token}v`, by: { ...guest, id: lab.token }, thread: `${lab.token}v`, text: secret });
  await decided(lab, visitor.id);
  const person = `person${lab.token}`;
  const recall = { tool: "recall", input: { id: visitor.id } };
  // The evil model: having read it, it wants to start work with the words of the public.
  const dispatch = { tool: "dispatch", input: { settles: ["$trg"], title: `do ${secret}`, goal: secret } };
  const own = { ...dispatch, input: { ...dispatch.input, title: "t", goal: "g" } };
  await script(person, [{ calls: [recall, own] }]);
  await script([person, '\\"attempt\\":2'], [{ calls: [recall] }]);
  const asked = await say(lab, { name: `${lab.token}p`, by: member, thread: `${lab.token}p`, text: `${person} see ${visitor.id}` });
  const mine = (call: typeof dispatch) => ({ ...call, input: { ...call.input, settles: [asked.id] } });
  await script(
    [person, secret],
    [
      { text: secret, calls: [mine(dispatch)] },
      { text: secret, calls: [mine(dispatch)] },
    ],
  );
  await script([person, '\\"attempt\\":3'], [{ calls: [{ tool: "reply", input: { settles: [asked.id], text: "I read it." } }] }]);
  expect((await decided(lab, asked.id)).tool).toBe("reply");
  await settled(lab);
  const sent = await bodies(person);
  const last = sent.at(-1) ?? "";
  expect(sent.some((body) => body.includes(secret))).toBe(true);
  expect(last).not.toContain(secret);
  expect(last).toContain("not kept");
  expect(last).toContain("text from outside the team");
  expect((await lab.router.overview()).tasks).toEqual([]);
  const calls = messagesOf(last).flatMap((message) => message.tool_calls?.map((call) => call.id) ?? []);
  const results = messagesOf(last).flatMap((message) => (message.tool_call_id === undefined ? [] : [message.tool_call_id]));
  expect(results).toEqual(calls);
  expect(await objects.THREAD.getByName(asked.threadId).read({ afterSeq: 0, limit: 5 })).toMatchObject({ info: { subscribers: [] } });
});
