// Two doors of one wire: what is asked in a chat is answered as in a chat, what comes otherwise is answered in full.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { SignedSource } from "../../src/channels/generic/parse.ts";
import { countWords, moreNote } from "../../src/core/manners.ts";
import { limits } from "../../src/protocol/limits.ts";
import { until } from "../support/until.ts";
import { deliverGeneric } from "./generic-deliveries.ts";
import { holdsAtRest, objects, unique } from "./router-lab.ts";

type Said = { source: string; thread: string; kind: string; text: string; fullText?: string; triggerId?: string };

const long = (word: string): string => `${Array.from({ length: 149 }, (_, i) => `${word}${i}`).join(" ")}.`;
const minds = { router: "who coordinates the work", worker: "You are a worker session" } as const;

const control = (path: string, body?: object) =>
  fetch(`http://model.test/control/${path}`, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
const script = (token: string, mind: keyof typeof minds, calls: { tool: string; input: object }[]) =>
  control("script", { when: [token, minds[mind]], replies: calls.map((call) => ({ calls: [call] })) });
const asked = async (token: string, mind: keyof typeof minds): Promise<number> =>
  ((await (await control(`requests?contains=${token}`)).json()) as string[]).filter((body) => body.includes(minds[mind])).length;

/** A member asks at a door, in a thread of its own. */
async function ask(source: SignedSource, token: string): Promise<string> {
  const principal = { id: "U1", name: "Member", role: "member" };
  const message = { kind: "message", text: `please ${token}`, thread: token, addressed: true, principal };
  const { status, answer } = await deliverGeneric(message, { id: `asked-${token}`, source });
  expect(status).toBe(202);
  return threadIdOf(answer.triggers?.[0]?.id);
}

const threadIdOf = (triggerId = ""): string => `thr_${triggerId.slice(4, triggerId.indexOf("-"))}`;

/** What the bridge has of a kind in the thread that is named after the token. */
const heard = (token: string, kind: string): Promise<Said[]> =>
  until(`a ${kind} at the bridge`, async () => {
    const answer = await fetch(`http://generic.test/control/messages?contains=${token}`);
    const said = ((await answer.json()) as { body: Said }[]).map(({ body }) => body).filter((each) => each.kind === kind);
    return said.length > 0 ? said : undefined;
  });

/** It is short, says so, and all of it is beside it: for the bridge, and in the thread's own row after an eviction. */
async function isCut(said: Said | undefined, threadId: string, whole: string): Promise<void> {
  expect(countWords(said?.text ?? "")).toBeLessThanOrEqual(limits.maxInstantWords);
  expect(said?.text.endsWith(moreNote)).toBe(true);
  expect(said?.fullText).toBe(whole);
  const thread = objects.THREAD.getByName(threadId);
  await evictDurableObject(thread as never);
  const { rows } = await thread.read({ afterSeq: 0, limit: 50 });
  expect(rows.flatMap((row) => (row.kind === "outbound" ? [row.outbound.fullText] : []))).toContain(whole);
}

const reply = (text: string) => ({ tool: "reply", input: { settles: ["$trg"], text } });
const done = (text: string) => ({ tool: "report", input: { kind: "done", text, confidence: 0.9 } });
const dispatch = { tool: "dispatch", input: { settles: ["$trg"], title: "Look", goal: "Look at it." } };

test("[O13] [RD11] a long answer of the router is written once more for a chat, and then cut with all of it beside", async () => {
  const token = unique();
  await script(token, "router", [reply(long("first")), reply(long("second"))]);
  const threadId = await ask("chat", token);
  const [said, ...others] = await heard(token, "reply");
  expect(others).toEqual([]);
  expect(said).toMatchObject({ source: "chat", thread: token });
  await isCut(said, threadId, long("second"));
  expect(await asked(token, "router")).toBe(2);

  const more = unique();
  await script(more, "router", [reply(long("first")), reply("Short.")]);
  const other = await ask("chat", more);
  const [short] = await heard(more, "reply");
  expect(short?.text).toBe("Short.");
  expect(short).not.toHaveProperty("fullText");
  await holdsAtRest([threadId, other]);
});

test("[O13] [W14] a long result of a task is written once more for a chat, and then cut with all of it beside", async () => {
  const token = unique();
  await script(token, "router", [dispatch]);
  await script(token, "worker", [done(long("first")), done(long("second"))]);
  const threadId = await ask("chat", token);
  const [said, ...others] = await heard(token, "relay");
  expect(others).toEqual([]);
  expect(said).toMatchObject({ source: "chat", thread: token });
  await isCut(said, threadId, long("second"));
  expect(await asked(token, "worker")).toBe(2);
  expect(await asked(token, "router")).toBe(1);
  await holdsAtRest([threadId]);
});

test("[O13] at the generic door neither is asked for again nor cut", async () => {
  const threads: string[] = [];
  for (const [kind, mind] of [
    ["reply", "router"],
    ["relay", "worker"],
  ] as const) {
    const token = unique();
    await script(token, "router", [mind === "router" ? reply(long("whole")) : dispatch]);
    await script(token, "worker", [done(long("whole"))]);
    threads.push(await ask("generic", token));
    const [said] = await heard(token, kind);
    expect(said).toMatchObject({ source: "generic", thread: token });
    expect(said?.text).toContain(long("whole"));
    expect(said).not.toHaveProperty("fullText");
    expect(await asked(token, mind)).toBe(1);
  }
  await holdsAtRest(threads);
});

test("[O13] [G7] the same keys at both doors are two threads, each with its own repeats", async () => {
  const token = unique();
  const said = { kind: "note", text: token, thread: token, messageKey: `${token}:1` };
  const triggers: (string | undefined)[] = [];
  for (const source of ["chat", "generic"] as const) {
    const first = (await deliverGeneric(said, { id: `both-${token}`, source })).answer.triggers?.[0];
    expect(first).toMatchObject({ outcome: "accepted", verdict: "record" });
    for (const id of [`both-${token}`, `pair-${token}`])
      expect((await deliverGeneric(said, { id, source })).answer.triggers).toMatchObject([{ id: first?.id, outcome: "duplicate" }]);
    const thread = objects.THREAD.getByName(threadIdOf(first?.id));
    await evictDurableObject(thread as never);
    const { info, rows } = await thread.read({ afterSeq: 0, limit: 10 });
    expect(info).toMatchObject({ source, place: "chat", threadKey: `thread:${token}` });
    expect(rows.flatMap((row) => (row.kind === "trigger" ? [row.trigger.id] : []))).toEqual([first?.id]);
    triggers.push(first?.id);
  }
  expect(new Set(triggers.map(threadIdOf)).size).toBe(2);
});
