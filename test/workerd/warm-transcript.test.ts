// A transcript is held while its object is awake: what is sent is what the rows say, and how long it may be says the provider.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { member } from "../support/router-fixtures.ts";
import { bodies, decided, messagesOf, newLab, say, script as scriptRouter } from "./router-lab.ts";
import { begin, card, deliver, done, events, newTask, row, script, type TestTask, until, untilStatus } from "./worker-helpers.ts";

const recorded = async (contains: string): Promise<string[]> =>
  (await (await fetch(`http://model.test/control/requests?contains=${contains}`)).json()) as string[];

const ask = (n: number) => ({ calls: [{ tool: "report", input: { kind: "question", text: `ready for part ${n}` } }] });

/** Tells the task something and waits until it asks for the next, or has ended. */
async function tell(task: TestTask, n: number, ...texts: string[]): Promise<void> {
  const { modelCalls } = await card(task);
  await deliver(task, ...texts.map((text, k) => row(task, n * 10 + k, text)));
  await until(`part ${n} is read`, async () => {
    const seen = await card(task);
    return seen.modelCalls > modelCalls && seen.status !== "running";
  });
}

const parts = 6;

/** One conversation with a worker; the bodies of its requests, without the words that tell two such tasks apart. */
async function conversation(evicts: (n: number) => boolean): Promise<string[]> {
  const task = newTask();
  await script(task, [...Array.from({ length: parts }, (_, n) => ask(n + 1)), done("read all")]);
  await begin(task);
  await untilStatus(task, "waiting");
  for (let n = 1; n <= parts; n++) {
    if (evicts(n)) await evictDurableObject(task.stub as never);
    await tell(task, n, `part ${n}: ünïcödé 字 😀 "quoted" \\ and ${"more ".repeat(50 * n)}`);
  }
  await untilStatus(task, "done");
  const sent = await recorded(task.token);
  // Ids and calls are of the one task, or of the one server, alone.
  return sent.map((body) =>
    body
      .replaceAll(task.token, "TOKEN")
      .replaceAll(/\b(?:tsk|trg|thr|rep|dec|ep)_[a-z0-9-]+/g, "ID")
      .replaceAll(/call_\d+/g, "CALL"),
  );
}

test("[L5] put away in mid-conversation, a worker sends the same bytes as one that stayed awake", async () => {
  const [stayed, left, leftAlways] = [
    await conversation(() => false),
    await conversation((n) => n % 3 === 0),
    await conversation(() => true),
  ];
  expect(stayed).toHaveLength(parts + 1);
  expect(left).toEqual(stayed);
  expect(leftAlways).toEqual(stayed);
});

test("[L5] [RI1] put away between its turns, the router begins each request with the bytes of the one before", async () => {
  const lab = await newLab();
  const sent: string[] = [];
  for (let n = 1; n <= 6; n++) {
    const word = `${lab.token}n${n}`;
    await scriptRouter(word, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: `noted ${n}` } }] }]);
    if (n % 2 === 0) await evictDurableObject(lab.router as never);
    const { id } = await say(lab, { name: word, by: { ...member, id: `prs_${lab.token}` }, text: `hello 字 ${word}` });
    await decided(lab, id);
    sent.push((await bodies(word)).at(0) ?? "");
  }
  for (let n = 1; n < sent.length; n++) {
    const before = JSON.stringify(messagesOf(sent[n - 1]));
    expect(JSON.stringify(messagesOf(sent[n])).startsWith(before.slice(0, -1))).toBe(true);
    expect(await lab.router.replay({ step: n + 1 })).toMatchObject({ bytes: sent[n], complete: true });
  }
});

const long = "lorem ipsum ".repeat(650);

test("[L4] [WX1] a transcript is long when its provider says so, also after an eviction", async () => {
  const compacted = async (usage: number | null): Promise<number> => {
    const task = newTask();
    const replies = [...Array.from({ length: parts }, (_, n) => ask(n + 1)), done("read all")];
    const counted = replies.map((reply, n) => ({ ...reply, usage: n === parts - 1 ? usage : null }));
    await script(task, counted);
    await begin(task);
    await untilStatus(task, "waiting");
    for (let n = 1; n <= parts; n++) {
      if (n === parts) await evictDurableObject(task.stub as never);
      await tell(task, n, ...[0, 1, 2].map((k) => `part ${n}.${k} ${long}`));
    }
    await untilStatus(task, "done");
    return (await events(task, "task.compacted")).length;
  };
  // About 35,000 tokens by our own estimate: far from long, unless its provider counts more.
  expect(await compacted(null)).toBe(0);
  expect(await compacted(limits.compactWorkerTokens * 1.2)).toBe(1);
  // Nobody counts that much of so few words.
  expect(await compacted(limits.compactWorkerTokens * 10)).toBe(0);
});

test("[Q8] [WI3] [WX1] what is queued outlasts a compaction, evictions and an interrupt, and is handed over in its order, once", async () => {
  const task = newTask();
  const replies = [...Array.from({ length: parts + 1 }, (_, n) => ask(n + 1)), done("read all"), done("a is done"), done("b is done")];
  await script(
    task,
    replies.map((reply, n) => ({ ...reply, usage: n === parts ? limits.compactWorkerTokens * 1.2 : null })),
  );
  await begin(task);
  await untilStatus(task, "waiting");
  const queued = (seq: number, text: string) => row(task, seq, text, member, { mode: "queue", externalId: `ext-${seq}` });
  await deliver(task, queued(1, "afterwards a"), queued(2, "afterwards b"));
  for (let n = 1; n <= parts; n++) {
    if (n === 3) {
      const { modelCalls } = await card(task);
      await deliver(task, row(task, 29, "hold on for a moment", member, { mode: "interrupt" }));
      await until("the interrupt is read", async () => {
        const seen = await card(task);
        return seen.modelCalls > modelCalls && seen.status === "waiting";
      });
    }
    if (n === 2 || n === parts) await evictDurableObject(task.stub as never);
    expect((await card(task)).backlog).toEqual(["ext-1", "ext-2"]);
    await tell(task, n, ...[0, 1, 2].map((k) => `part ${n}.${k} ${long}`));
  }
  await untilStatus(task, "done");
  expect(await events(task, "task.compacted")).toHaveLength(1);
  const sent = (await recorded(task.token)).map((body) => messagesOf(body).at(-1)?.content ?? "");
  const holding = (text: string): number[] => sent.flatMap((message, at) => (message.includes(text) ? [at] : []));
  expect([holding("afterwards a"), holding("afterwards b")]).toEqual([[sent.length - 2], [sent.length - 1]]);
  expect((await events(task, "task.rejected")).length).toBe(0);
});

test("[L4] [RI5] the router's segment ends when its provider says that it is long, also after an eviction", async () => {
  const lab = await newLab();
  const turns = 12;
  const segments: string[] = [];
  for (let n = 1; n <= turns; n++) {
    const word = `${lab.token}n${n}`;
    const usage = n === turns - 1 ? limits.compactRouterTokens * 1.1 : null;
    await scriptRouter(word, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "noted" } }], usage }]);
    if (n === turns) await evictDurableObject(lab.router as never);
    const { id } = await say(lab, { name: word, by: { ...member, id: `prs_${lab.token}` }, thread: word, text: `${word} ${long}` });
    await decided(lab, id);
    segments.push(messagesOf((await bodies(word))[0]).length === 2 ? "new" : "goes on");
  }
  expect(segments).toEqual(["new", ...Array.from({ length: turns - 2 }, () => "goes on"), "new"]);
});
