import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { childId, makeId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Offer } from "../../src/protocol/offer.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { commandOutputType, putArtifact } from "../../src/storage/artifacts.ts";
import { recallObject } from "../../src/storage/recall.ts";
import {
  begin,
  done,
  enrol,
  member,
  newTask,
  objects,
  reports,
  requests,
  run,
  script,
  settled,
  stranger,
  untilCommands,
  untilStatus,
} from "./worker-helpers.ts";

const recall = (id: string, page = 1) => recallObject(objects, { id, page });
const head = (text: string): Record<string, unknown> => JSON.parse(text.split("\n")[0] ?? "") as Record<string, unknown>;

/** A row in a thread of its own, kept without asking the router. */
async function say(threadKey: string, n: number, text: string, principal: Principal = member): Promise<Trigger> {
  const threadId = threadIdOf("github", "acme/recall", threadKey);
  const deliveryId = `${threadKey}-${n}`;
  const trigger: Trigger = {
    id: triggerIdOf("github", deliveryId, threadId),
    source: "github",
    deliveryId,
    threadId,
    place: "acme/recall",
    threadKey,
    threadTitle: "A title by whoever opened it",
    kind: "issue_comment.created",
    principal,
    addressed: false,
    text,
    atMs: n,
    hops: 0,
  };
  await objects.THREAD.getByName(threadId).append({ trigger, verdict: { outcome: "record", rule: "test", reason: "test" } });
  return trigger;
}

test("a thread's newest page comes first; older pages follow, each row with its id", async () => {
  const said: Trigger[] = [];
  for (let n = 1; n <= 25; n++) said.push(await say("issue:1", n, `remark ${n}\n> quoted ${n}`));
  const threadId = said[0]?.threadId ?? "";
  await evictDurableObject(objects.THREAD.getByName(threadId) as never);
  const newest = await recall(threadId);
  expect(head(newest.text)).toMatchObject({ thread: threadId, page: 1, pages: 2 });
  expect(newest.text).toContain('"text":"remark 25');
  expect(newest.text).toContain(said[24]?.id ?? "-");
  expect(newest.text).toContain('"data":[{"kind":"quote","text":"quoted 25"}]');
  expect(newest.text).not.toContain("remark 5\\n");
  const older = await recall(threadId, 2);
  expect(older.text).toContain('"text":"remark 1\\n');
  expect(older.text).not.toContain("remark 25");
  expect(newest.tainting).toBe(false);
  expect(newest.text).not.toContain("A title by whoever opened it");
  expect((await recall(threadId, 9)).text).toBe(`${threadId} has no page 9.`);
});

test("[A4] public text taints what recalls it: the page of its thread, and the row itself", async () => {
  const trigger = await say("issue:2", 1, "let me in", stranger);
  expect(await recall(trigger.threadId)).toMatchObject({ tainting: true });
  const row = await recall(trigger.id);
  expect(row.tainting).toBe(true);
  expect(head(row.text)).toMatchObject({ trigger: trigger.id, thread: trigger.threadId, from: { role: "public" } });
});

test("a long row is read page by page, whole", async () => {
  const text = "ä🎉".repeat(6000);
  const trigger = await say("issue:3", 1, text);
  const first = await recall(trigger.id);
  const pages = Number(head(first.text).pages);
  let whole = "";
  for (let page = 1; page <= pages; page++)
    whole += (JSON.parse((await recall(trigger.id, page)).text.split("\n")[1] ?? "") as { text: string }).text;
  expect(whole).toBe(text);
});

test("a task leads to its thread, its machine, its trigger and its reports, and a report back to its task", async () => {
  const task = newTask();
  await script(task, [done("all is well")]);
  await begin(task);
  await untilStatus(task, "done");
  const found = await recall(task.taskId);
  expect(head(found.text)).toMatchObject({ task: task.taskId, status: "done", thread: task.threadId, machine: task.endpointId });
  expect(found.text).toContain(task.start.quote.triggerId);
  const [report] = await reports(task);
  expect(found.text).toContain(report?.id ?? "-");
  const read = await recall(report?.id ?? "");
  expect(head(read.text)).toMatchObject({ task: task.taskId, thread: task.threadId, text: "all is well" });
  expect([found.tainting, read.tainting]).toEqual([false, false]);
});

test("a task whose goal, notes and reports are more than a page holds has further pages, and all of them is whole", async () => {
  const goal = `Mend every gate. ${"x🚪".repeat(1_500)} That is all.`;
  const task = newTask();
  const long = { ...task, start: { ...task.start, goal: `${task.start.goal} ${goal}` } };
  const notes = Array.from({ length: 6 }, (_, n) => ({
    tool: "note",
    input: { kind: "fact", text: `gate ${n} is ${"very ".repeat(40)}old` },
  }));
  const progress = Array.from({ length: 11 }, (_, n) => ({
    calls: [{ tool: "report", input: { kind: "progress", text: `gate ${n} mended` } }],
  }));
  await script(task, [{ calls: notes }, ...progress, done("all gates are mended")]);
  await begin(long);
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);
  const first = await recall(task.taskId);
  const pages = Number(head(first.text).pages);
  expect(pages).toBeGreaterThan(1);
  expect(first.text).not.toContain("That is all.");
  let whole = "";
  for (let page = 2; page <= pages; page++) whole += (await recall(task.taskId, page)).text.split("\n").slice(1).join("\n");
  const read = whole.split("\n").map((line) => JSON.parse(line) as Record<string, string>);
  expect(read[0]?.goal).toBe(long.start.goal);
  expect(read.flatMap(({ note, text }) => (note === undefined ? [] : [text?.slice(0, 6)]))).toEqual(
    [0, 1, 2, 3, 4, 5].map((n) => `gate ${n}`),
  );
  expect(read.filter(({ report }) => report !== undefined)).toHaveLength(12);
  expect((await recall(task.taskId, pages + 1)).text).toBe(`${task.taskId} has no page ${pages + 1}.`);
});

test("[A4] a tainted task and its reports taint", async () => {
  const task = newTask({ tainted: true });
  await script(task, [done("a stranger says hello")]);
  await begin(task);
  await untilStatus(task, "done");
  expect((await recall(task.taskId)).tainting).toBe(true);
  expect((await recall((await reports(task))[0]?.id ?? "")).tainting).toBe(true);
});

test("a command's ledger row is read by its id", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [run("npm test"), done("fine")]);
  await begin(task);
  const [command = ""] = await untilCommands(task, 1);
  await untilStatus(task, "waiting");
  const found = await recall(command);
  expect(head(found.text)).toMatchObject({ command, machine: task.endpointId, totalBytes: 0, page: 1 });
  await task.stub.settle(settled(task, command, "ok"));
  await untilStatus(task, "done");
});

test("an artifact is read page by page, tainting as what it was made of", async () => {
  const bytes = new TextEncoder().encode("line\n".repeat(4000));
  const put = (tainting: boolean) => putArtifact(objects.STORE, bytes, commandOutputType, { audience: "github acme/app", tainting });
  const [clean, raw] = [await put(false), await put(true)];
  const first = await recall(clean);
  expect(head(first.text)).toMatchObject({ artifact: clean, bytes: bytes.length, pages: 4 });
  expect([first.tainting, (await recall(raw)).tainting]).toEqual([false, true]);
});

describe("[A9] what a task's commands wrote", () => {
  const ana = "web prs_ana";
  const hidden = (id: string) => `${id} belongs to another conversation, and what you say is read elsewhere: it is not shown here.`;
  const forReader = (id: string, ...readers: string[]) => recallObject(objects, { id, page: 1, readers });

  test("is read by its own task and those of the same person, by its id too; another person's task and the router there hear that it is not theirs", async () => {
    const task = newTask({ quote: { triggerId: "trg_ask", from: { ...member, id: "prs_ana" }, text: "run it" } });
    await enrol(task);
    await script(task, [run("npm test"), done("fine")]);
    await begin(task);
    const [command = ""] = await untilCommands(task, 1);
    await evictDurableObject(objects.ENDPOINT.getByName(task.endpointId) as never);
    expect(await forReader(command, ana)).toMatchObject({ audience: ana, tainting: false });
    expect((await forReader(command, "web prs_ben", "github acme/app")).text).toBe(hidden(command));
    const asks = async (from: string) => {
      const other = newTask({ quote: { triggerId: "trg_ask", from: { ...member, id: from }, text: "look at it" } });
      await script(other, [{ calls: [{ tool: "recall", input: { id: command } }] }, done("looked")]);
      await begin(other);
      await untilStatus(other, "done");
      return (await requests(other)).at(-1)?.find(({ role }) => role === "tool")?.content ?? "";
    };
    expect(head(await asks("prs_ana"))).toMatchObject({ command });
    expect(await asks("prs_ben")).toBe(hidden(command));
    await task.stub.settle(settled(task, command, "ok"));
    await untilStatus(task, "done");
  });

  test("of a shared place may be read in a conversation of the team; what two tasks wrote alike is two artifacts, each with its own readers", async () => {
    const bytes = new TextEncoder().encode("the same output");
    const put = (audience: string) => putArtifact(objects.STORE, bytes, commandOutputType, { audience, tainting: false });
    const [hers, shared] = [await put(ana), await put("github acme/app")];
    expect(hers).not.toBe(shared);
    expect(await put(ana)).toBe(hers);
    expect((await forReader(hers, ana)).text).toContain("the same output");
    expect((await forReader(hers, "web prs_ben", "github acme/app")).text).toBe(hidden(hers));
    expect((await forReader(shared, "web prs_ben")).text).toContain("the same output");
    expect((await forReader(shared, "github acme/other")).text).toBe(hidden(shared));
  });

  test("whose it is was not kept: nobody reads it but its own task", async () => {
    const bytes = new TextEncoder().encode("from an older version");
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    const id = `art_${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0"))
      .join("")
      .slice(0, 40)}`;
    await objects.STORE.put(`artifact/${id}`, bytes);
    expect((await forReader(id, ana)).text).toBe(hidden(id));
    expect(await recall(id)).toMatchObject({ tainting: true, text: expect.stringContaining("from an older version") });
  });
});

describe("a proposal", () => {
  const where = { source: "github", place: "acme/recall", threadKey: "issue:40", title: "An issue" };
  const threadId = threadIdOf(where.source, where.place, where.threadKey);
  let made = 0;
  /** Held in the thread of issue 40, by a task that was asked for in a conversation of its own. */
  async function propose(from: Partial<Offer["from"]> = {}): Promise<Offer> {
    const taskId = makeId("tsk", "proposer", ++made, Date.now());
    const outbound = { id: childId("out", threadId, taskId), threadId, kind: "offer" as const, text: `words of ${made}`, taskId, hops: 1 };
    const offer = {
      outbound,
      title: "Comment",
      from: { taskId, authority: "member" as const, tainted: false, source: "web", place: "widget", audience: "web prs_ana", ...from },
    };
    await objects.THREAD.getByName(threadId).offer({ offer, about: where });
    return offer;
  }
  const decide = (offer: Offer, verdict: "release" | "decline") =>
    objects.THREAD.getByName(threadId).decideOffer({
      outboundId: offer.outbound.id,
      verdict,
      by: member,
      via: "person",
      reason: "too soon",
    });

  test("is read by its id while it waits, after an eviction too, and once it is declined or released, with whose word that was", async () => {
    const [held, declined, released] = [await propose(), await propose(), await propose()];
    await decide(declined, "decline");
    await decide(released, "release");
    await evictDurableObject(objects.THREAD.getByName(threadId) as never);
    const read = async ({ outbound }: Offer) => head((await recall(outbound.id)).text);
    const common = { thread: threadId, what: "Comment · acme/recall issue 40" };
    const waits = await read(held);
    expect(waits).toMatchObject({
      ...common,
      not_said: held.outbound.id,
      proposal: "held",
      task: held.from.taskId,
      text: held.outbound.text,
    });
    expect(waits.until).toMatch(/^20/);
    expect(await read(declined)).toMatchObject({
      ...common,
      not_said: declined.outbound.id,
      proposal: "declined",
      decided: { by: "member", via: "person", reason: "too soon" },
    });
    expect(await read(released)).toMatchObject({ ...common, said: released.outbound.id, proposal: "released", seq: expect.any(Number) });
  });

  test("[A9] is heard by its task's conversation alone until it is said; then by the place where it was said", async () => {
    const offer = await propose();
    const secret = await propose({ audience: undefined } as object);
    const inPlace = await propose({ source: "github", place: "acme/recall", audience: undefined } as object);
    const shownTo = async ({ outbound }: Offer, reader: string) =>
      (await recallObject(objects, { id: outbound.id, page: 1, readers: [reader] })).text;
    expect(await shownTo(offer, "web prs_ana")).toContain(offer.outbound.text);
    for (const reader of ["web prs_ben", "github acme/recall"]) {
      expect(await shownTo(offer, reader)).toContain("belongs to another conversation");
      expect(await shownTo(secret, reader)).toContain("belongs to another conversation");
    }
    expect(await shownTo(inPlace, "github acme/recall")).toContain(inPlace.outbound.text);
    await decide(offer, "release");
    for (const reader of ["web prs_ben", "github acme/recall"]) expect(await shownTo(offer, reader)).toContain(offer.outbound.text);
  });

  test("[A7] of a task that read public text, or that the public asked for, taints", async () => {
    for (const [from, tainting] of [
      [{}, false],
      [{ tainted: true }, true],
      [{ authority: "public" as const }, true],
    ] as const)
      expect((await recall((await propose(from)).outbound.id)).tainting).toBe(tainting);
  });
});

test("an id that nobody knows, or that is none, is answered with a sentence", async () => {
  const nowhere = threadIdOf("github", "acme/recall", "issue:999");
  const ids = [
    nowhere,
    triggerIdOf("github", "x", nowhere),
    "tsk_nowhere",
    childId("rep", "tsk_nowhere", 1),
    childId("cmd", "ep_nowhere", 1),
    "art_nowhere",
    "sch_nowhere",
    childId("out", nowhere, 1),
  ];
  for (const id of ids) expect(await recall(id)).toEqual({ text: `There is nothing with the id ${id}.`, tainting: false });
  for (const id of ["", "hello", "ep_x", "trg_nodash", "../../etc/passwd"]) {
    const { text, tainting } = await recall(id);
    expect(text).toMatch(/There is nothing with the id|is not an id that can be read/);
    expect(tainting).toBe(false);
  }
});

test("[R23] asking about a task that never was keeps nothing", async () => {
  const stub = objects.WORKER_SESSION.getByName("tsk_neverwas");
  expect(await stub.describe()).toBeNull();
  expect(await stub.events({ afterSeq: 0, limit: 10 })).toEqual([]);
  await stub.poke();
  await runInDurableObject(stub as never, (_instance, state) => {
    expect(state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'transcript'").toArray()).toEqual([]);
  });
});

test("an owner that does not answer is waited for no longer than a mind may wait", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const never = { ...objects, THREAD: { getByName: () => ({ row: () => new Promise(() => undefined) }) } } as unknown as typeof objects;
    const answer = recallObject(never, { id: triggerIdOf("web", "x", makeId("thr", "never")), page: 1 });
    await vi.advanceTimersByTimeAsync(limits.recallTimeoutMs + 1);
    expect((await answer).text).toMatch(/could not be read: Its owner/);
  } finally {
    vi.useRealTimers();
  }
});

test("an owner that throws is answered with a sentence", async () => {
  const broken = {
    ...objects,
    THREAD: {
      getByName: () => {
        throw new Error("the object is away");
      },
    },
  };
  const { text } = await recallObject(broken as never, { id: threadIdOf("web", "a", "b"), page: 1 });
  expect(text).toContain("could not be read: the object is away");
});

test("[A8] what a task says is read by its audience, and so it recalls only what may be said to it", async () => {
  const issue = await say("issue:audience", 1, "said on the place");
  const read = (audience: string, id: string) => recallObject(objects, { id, page: 1, readers: [audience] });
  for (const id of [issue.id, issue.threadId]) {
    expect((await read("github acme/recall", id)).text).toContain("said on the place");
    expect((await read("web prs_member", id)).text).toContain("said on the place");
    expect((await read("github acme/other", id)).text).toContain("belongs to another conversation");
  }
  const task = newTask();
  await begin(task);
  const { taskId } = task.start;
  expect((await recallObject(objects, { id: taskId, page: 1, readers: ["github acme/elsewhere"] })).text).toContain("belongs to another");
  expect((await recallObject(objects, { id: taskId, page: 1 })).text).toContain(taskId);
});
