import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Router } from "../../durable-objects/router.ts";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { github } from "../../src/channels/github/index.ts";
import { makeId, triggerIdOf } from "../../src/core/ids.ts";
import { countWords } from "../../src/core/manners.ts";
import { rootThreadIdOf, topicThreadIdOf } from "../../src/core/thread.ts";
import { routerName } from "../../src/env.ts";
import { Fault } from "../../src/protocol/fault.ts";
import type { ThreadRpc, WorkerSessionRpc } from "../../src/protocol/rpc.ts";
import { EventLog } from "../../src/storage/event-log.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { indexThread } from "../../src/storage/thread-index.ts";
import { checkHistory } from "../support/history.ts";
import { at, cardOf, eventsOf, intent, issue, stranger, stubOf, threadOf, triggerIn, uniqueName, verdict } from "./thread-fixtures.ts";
import { bindings, eventually } from "./widget-page.ts";

type DeliverInput = Parameters<WorkerSessionRpc["deliver"]>[0];

/** What each worker session was handed, in the order in which it took it; `down` and `hung` ones take nothing. */
const handed = new Map<string, number[]>();
const down = new Set<string>();
const hung = new Set<string>();
const moved = new Map<string, number[]>();

beforeAll(async () => {
  await migrated(bindings.DB);
});
afterEach(() => {
  vi.restoreAllMocks();
});

function watchWorkers(): void {
  vi.spyOn(WorkerSession.prototype, "deliver").mockImplementation(async function (this: WorkerSession, input: DeliverInput) {
    const taskId = (this as unknown as { ctx: DurableObjectState }).ctx.id.name ?? "";
    if (down.has(taskId)) throw new Error("this worker is down");
    if (hung.has(taskId)) await new Promise(() => {});
    const rows = input.rows.map(({ row }) => row.seq);
    handed.set(taskId, [...(handed.get(taskId) ?? []), ...rows]);
    return { throughSeq: Math.max(...rows) };
  });
}

const routerHas = async (triggerId: string): Promise<boolean> =>
  (await bindings.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 10_000, about: triggerId })).some(
    ({ event }) => event.kind === "router.inbox",
  );

/** Why a call was refused. */
async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const subscribe = (threadId: string, taskId: string, triggerId: string, decisionId = `dec_${taskId}`) =>
  threadOf(threadId).subscribe({ taskId, decisionId, triggerId });

describe("accepting", () => {
  test("[R3] the same trigger five times at once makes one row, and after an eviction still does", async () => {
    const where = issue();
    const trigger = triggerIn(where, "d1");
    const results = await Promise.all(
      Array.from({ length: 5 }, () => threadOf(where.threadId).append({ trigger, verdict: verdict("record") })),
    );
    expect(results.map((result) => result.outcome).sort()).toEqual(["accepted", "duplicate", "duplicate", "duplicate", "duplicate"]);
    expect(new Set(results.map((result) => ("seq" in result ? result.seq : 0)))).toEqual(new Set([1]));
    await evictDurableObject(stubOf(where.threadId));
    expect(await threadOf(where.threadId).append({ trigger, verdict: verdict("ignore") })).toMatchObject({ outcome: "duplicate", seq: 1 });
    expect(await eventsOf(where.threadId, "thread.accepted")).toHaveLength(1);
    expect(await eventsOf(where.threadId, "thread.duplicate")).toHaveLength(5);
  });

  test("what the gate ignores leaves no row, no table and no alarm", async () => {
    const where = issue();
    const result = await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1"), verdict: verdict("ignore") });
    expect(result).toMatchObject({ outcome: "ignored", rule: "rule.ignore" });
    await runInDurableObject(stubOf(where.threadId), async (_, state) => {
      expect(state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'").toArray()).toEqual([]);
      expect(await state.storage.getAlarm()).toBeNull();
    });
  });

  test("[T2] one more event of a quiet thread is one look and one row, and its repeat one look and one row of the log", async () => {
    const where = issue();
    const append = (deliveryId: string) =>
      threadOf(where.threadId).append({ trigger: triggerIn(where, deliveryId), verdict: verdict("record") });
    // What this thread is, who follows it and which deadlines it has is read with the first events.
    await append("d0");
    await append("d1");
    const statements = async (deliveryId: string): Promise<string[]> =>
      runInDurableObject(stubOf(where.threadId), async (instance, state) => {
        const exec = vi.spyOn(Object.getPrototypeOf(state.storage.sql) as SqlStorage, "exec");
        const set = vi.spyOn(Object.getPrototypeOf(state.storage) as DurableObjectStorage, "setAlarm");
        await (instance as unknown as ThreadRpc).append({ trigger: triggerIn(where, deliveryId), verdict: verdict("record") });
        const words = exec.mock.calls.map(([query]) => query.trim().split(" ")[0] ?? "");
        expect(set).not.toHaveBeenCalled();
        vi.restoreAllMocks();
        return words;
      });
    expect(await statements("d2")).toEqual(["SELECT", "INSERT"]);
    expect(await statements("d2")).toEqual(["SELECT", "INSERT"]);
    await evictDurableObject(stubOf(where.threadId));
    expect(await eventsOf(where.threadId, "thread.accepted")).toHaveLength(3);
    expect(await eventsOf(where.threadId, "thread.duplicate")).toHaveLength(1);
  });

  test("[R1] what a change left in memory goes with it when it is rolled back", async () => {
    const where = issue();
    const retitled = { ...triggerIn(where, "d2"), threadTitle: "Another title" };
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1"), verdict: verdict("record") });
    const broken = vi.spyOn(EventLog.prototype, "append").mockImplementationOnce(() => {
      throw new Error("the disk is full");
    });
    expect(await refusal(threadOf(where.threadId).append({ trigger: retitled, verdict: verdict("request") }))).toContain(
      "the disk is full",
    );
    broken.mockRestore();
    const title = async () => (await threadOf(where.threadId).read({ afterSeq: 0, limit: 1 })).info.title;
    expect(await title()).not.toBe("Another title");
    expect(await threadOf(where.threadId).append({ trigger: retitled, verdict: verdict("request") })).toMatchObject({
      outcome: "accepted",
    });
    await eventually("the router's inbox", () => routerHas(retitled.id));
    await evictDurableObject(stubOf(where.threadId));
    expect(await title()).toBe("Another title");
  });

  test("a trigger of another thread is refused", async () => {
    const [here, there] = [issue(), issue()];
    expect(await refusal(threadOf(here.threadId).append({ trigger: triggerIn(there, "d1"), verdict: verdict("request") }))).toMatch(
      /belongs to/,
    );
  });

  test("a request is handed to the router, a record is not", async () => {
    const where = issue();
    const [kept, asked] = [triggerIn(where, "d1"), triggerIn(where, "d2")];
    await threadOf(where.threadId).append({ trigger: kept, verdict: verdict("record") });
    await threadOf(where.threadId).append({ trigger: asked, verdict: verdict("request") });
    await eventually("the router's inbox", () => routerHas(asked.id));
    expect(await routerHas(kept.id)).toBe(false);
  });

  test("[G14] small talk is kept, and handed to the router where we spoke right before, also after an eviction", async () => {
    const where = issue();
    const talk = (deliveryId: string) =>
      threadOf(where.threadId).append({
        trigger: triggerIn(where, deliveryId, { addressed: false, text: "ok", facts: { words: "talk" } }),
        verdict: { outcome: "record", rule: "github.talk:issue_comment.created", reason: "a test" },
      });
    const [first, answer] = [await talk("d1"), triggerIn(where, "d2").id];
    await threadOf(where.threadId).post(intent(where.threadId, { text: "Shall I?" }));
    await evictDurableObject(stubOf(where.threadId));
    await talk("d2");
    await eventually("the router's inbox", () => routerHas(answer));
    expect(await routerHas(first.triggerId)).toBe(false);
  });

  test.each([
    ["was refused", () => Promise.reject(new Error("the router is down"))],
    ["was under way", () => new Promise<never>(() => {})],
  ])("[R1] a row whose hand-over %s in a crash is handed over by the alarm alone", async (_how, answer) => {
    const where = issue();
    const trigger = triggerIn(where, "d1");
    const broken = vi.spyOn(Router.prototype, "deliver").mockImplementation(answer);
    await threadOf(where.threadId).append({ trigger, verdict: verdict("request") });
    await eventually("a failed hand-over", () => broken.mock.calls.length > 0);
    vi.restoreAllMocks();
    await abortAllDurableObjects();
    await at(Date.now() + 60_000, () => runDurableObjectAlarm(stubOf(where.threadId)));
    await eventually("the router's inbox", () => routerHas(trigger.id));
  });

  test("the router gets a few earlier rows and the thread's earlier tasks along with a row", async () => {
    const where = issue();
    const taskId = makeId("tsk", uniqueName());
    watchWorkers();
    const deliver = vi.spyOn(Router.prototype, "deliver");
    for (let i = 1; i <= 7; i++) await threadOf(where.threadId).append({ trigger: triggerIn(where, `d${i}`), verdict: verdict("record") });
    await subscribe(where.threadId, taskId, triggerIn(where, "d7").id);
    await threadOf(where.threadId).unsubscribe({ taskId, reason: "done" });
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d8"), verdict: verdict("candidate") });
    await eventually("a delivery", () => deliver.mock.calls.some(([input]) => input.threadId === where.threadId));
    const input = deliver.mock.calls.map(([each]) => each).find((each) => each.threadId === where.threadId);
    expect(input?.rows.map(({ row }) => (row.kind === "trigger" ? row.trigger.deliveryId : ""))).toEqual(["d8"]);
    expect(input?.before.map((row) => (row.kind === "trigger" ? row.trigger.deliveryId : ""))).toEqual(["d3", "d4", "d5", "d6", "d7"]);
    expect(input?.tasks).toEqual([taskId]);
  });
});

describe("passing through", () => {
  test("[R5] [R6] [R7] of two subscribers one is down and one hangs: the third gets every row in order, the first after its return", async () => {
    watchWorkers();
    const where = issue();
    const tasks = ["well", "down", "hung"].map((name) => makeId("tsk", name, uniqueName()));
    const [well = "", broken = "", stuck = ""] = tasks;
    down.add(broken);
    hung.add(stuck);
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d0"), verdict: verdict("record") });
    for (const taskId of tasks) await subscribe(where.threadId, taskId, triggerIn(where, "d0").id);
    for (let i = 1; i <= 5; i++) await threadOf(where.threadId).append({ trigger: triggerIn(where, `d${i}`), verdict: verdict("ignore") });
    const seqs = (await eventsOf(where.threadId, "thread.accepted")).map(({ seq }) => seq);
    await eventually(
      "all rows at the healthy worker",
      () => handed.get(well)?.length === 6,
      () => JSON.stringify(handed.get(well)),
    );
    expect(handed.get(well)).toEqual(seqs);
    expect(handed.get(broken)).toBeUndefined();
    down.delete(broken);
    await abortAllDurableObjects();
    await at(Date.now() + 10 * 60_000, () => runDurableObjectAlarm(stubOf(where.threadId)));
    await eventually(
      "all rows at the worker that came back",
      () => handed.get(broken)?.length === 6,
      () => JSON.stringify(handed.get(broken)),
    );
    expect(handed.get(broken)).toEqual(seqs);
    hung.delete(stuck);
  });

  test("[R8] from the flip on the worker gets the rows and the router does not; after the end the router does again", async () => {
    watchWorkers();
    const where = issue();
    const taskId = makeId("tsk", uniqueName());
    const append = (id: string, outcome: "request" | "ignore" = "request") =>
      threadOf(where.threadId).append({ trigger: triggerIn(where, id), verdict: verdict(outcome) });
    await append("d1");
    await eventually("the router's inbox", () => routerHas(triggerIn(where, "d1").id));
    const flip = await subscribe(where.threadId, taskId, triggerIn(where, "d1").id);
    expect(flip).toMatchObject({ fromSeq: 1, tainted: false });
    expect(await append("d2")).toMatchObject({ outcome: "accepted" });
    expect(await append("d3", "ignore")).toMatchObject({ outcome: "accepted" });
    const triggers = (await eventsOf(where.threadId, "thread.accepted")).map(({ seq }) => seq);
    // The router may have said something in the thread meanwhile; that is handed over as context.
    const taken = () => handed.get(taskId)?.filter((seq) => triggers.includes(seq)) ?? [];
    await eventually("the worker's rows", () => taken().length === 3);
    const { atSeq } = await threadOf(where.threadId).unsubscribe({ taskId, reason: "done" });
    expect(await threadOf(where.threadId).unsubscribe({ taskId, reason: "done" })).toEqual({ atSeq });
    await append("d4");
    await eventually("the router's inbox", () => routerHas(triggerIn(where, "d4").id));
    expect(await routerHas(triggerIn(where, "d2").id)).toBe(false);
    const later = (await eventsOf(where.threadId, "thread.accepted")).at(-1)?.seq;
    expect(handed.get(taskId)).not.toContain(later);
    expect(taken()).toEqual(triggers);
    // A late repeat of the same decision does not start it again.
    expect(await subscribe(where.threadId, taskId, triggerIn(where, "d1").id)).toEqual(flip);
    expect((await threadOf(where.threadId).read({ afterSeq: 0, limit: 1 })).info.subscribers).toEqual([]);
  });

  test("public text in what is handed over taints the flip", async () => {
    watchWorkers();
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1", { principal: stranger }), verdict: verdict("record") });
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d2"), verdict: verdict("record") });
    expect(await subscribe(where.threadId, makeId("tsk", uniqueName()), triggerIn(where, "d2").id)).toMatchObject({
      fromSeq: 1,
      tainted: true,
    });
  });

  test("[A7] an answer that was made from public text taints the flip like that text", async () => {
    watchWorkers();
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1"), verdict: verdict("record") });
    await threadOf(where.threadId).post(intent(where.threadId, { tainted: true }));
    expect(await subscribe(where.threadId, makeId("tsk", uniqueName()), triggerIn(where, "d1").id)).toMatchObject({ tainted: true });
  });

  test("a subscribed thread tells the router once that it moved, for many rows", async () => {
    watchWorkers();
    vi.spyOn(Router.prototype, "moved").mockImplementation(async ({ threadId, headSeq }) => {
      moved.set(threadId, [...(moved.get(threadId) ?? []), headSeq]);
    });
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d0"), verdict: verdict("record") });
    await subscribe(where.threadId, makeId("tsk", uniqueName()), triggerIn(where, "d0").id);
    for (let i = 1; i <= 20; i++) await threadOf(where.threadId).append({ trigger: triggerIn(where, `d${i}`), verdict: verdict("ignore") });
    const headSeq = (await eventsOf(where.threadId, "thread.accepted")).at(-1)?.seq;
    await eventually(
      "the router's word",
      () => moved.get(where.threadId)?.at(-1) === headSeq,
      () => JSON.stringify(moved.get(where.threadId)),
    );
    expect(moved.get(where.threadId)?.length).toBeLessThanOrEqual(3);
  });

  test("an unknown thread, an unknown trigger and a root cannot be passed through", async () => {
    const where = issue();
    expect(await refusal(subscribe(where.threadId, "tsk_a", "trg_a"))).toMatch(/no thread/);
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1"), verdict: verdict("record") });
    expect(await refusal(subscribe(where.threadId, "tsk_a", "trg_a"))).toMatch(/no trigger/);
    const rootId = rootThreadIdOf(`gst_${uniqueName()}`);
    const root = { threadId: rootId, place: "widget", threadKey: "root:gst" };
    const asked = triggerIn(root, "d1", { source: "web", id: triggerIdOf("web", "d1", rootId) });
    await threadOf(rootId).append({ trigger: asked, verdict: verdict("record") });
    expect(await refusal(subscribe(rootId, "tsk_a", asked.id))).toMatch(/open a topic/);
  });
});

describe("saying something", () => {
  const control = async (path: string, body?: unknown): Promise<unknown> =>
    (await fetch(`http://github.test/control/${path}`, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })).json();
  const commentsOn = async (place: string) => (await control(`comments?place=${place}&number=1`)) as { id: number; body: string }[];
  const stateOf = async (threadId: string) => {
    const { rows } = await threadOf(threadId).read({ afterSeq: 0, limit: 100 });
    return rows.flatMap((row) => (row.kind === "outbound" ? [row.state] : []));
  };
  const open = async () => {
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1"), verdict: verdict("record") });
    return where;
  };

  test("[R9] a message goes out once however often it is posted, and comes back as a confirmation", async () => {
    const where = await open();
    const said = intent(where.threadId, { triggerId: triggerIn(where, "d1").id });
    const posts = await Promise.all([1, 2, 3].map(() => threadOf(where.threadId).post(said)));
    await eventually(
      "the sent state",
      async () => (await stateOf(where.threadId))[0] === "sent",
      () => JSON.stringify(posts),
    );
    await evictDurableObject(stubOf(where.threadId));
    expect(await threadOf(where.threadId).post(said)).toEqual(posts[0]);
    expect(await commentsOn(where.place)).toHaveLength(1);
    const echo = triggerIn(where, "d2", { facts: { echoOf: said.id }, externalId: "77" });
    expect(await threadOf(where.threadId).append({ trigger: echo, verdict: verdict("ignore") })).toMatchObject({
      outcome: "confirmed",
      outboundId: said.id,
    });
    expect(await threadOf(where.threadId).append({ trigger: echo, verdict: verdict("ignore") })).toMatchObject({ outcome: "confirmed" });
    expect(await stateOf(where.threadId)).toEqual(["confirmed"]);
    expect(await eventsOf(where.threadId, "thread.confirmed")).toHaveLength(1);
    const log = await threadOf(where.threadId).events({ afterSeq: 0, limit: 1000 });
    expect(checkHistory([{ object: where.threadId, kind: "thread", events: log }])).toEqual([]);
  });

  test("[R9] a message that came back before its own send was answered stays confirmed", async () => {
    const where = await open();
    let answer = (_: Error): void => {};
    vi.spyOn(github, "send").mockReturnValue(
      new Promise((_, reject) => {
        answer = reject;
      }),
    );
    const said = intent(where.threadId);
    await threadOf(where.threadId).post(said);
    const echo = triggerIn(where, "d2", { facts: { echoOf: said.id }, externalId: "77" });
    expect(await threadOf(where.threadId).append({ trigger: echo, verdict: verdict("ignore") })).toMatchObject({ outcome: "confirmed" });
    answer(new Fault("provider", "the answer was lost", { retry: "later" }));
    await threadOf(where.threadId).poke();
    expect(await stateOf(where.threadId)).toEqual(["confirmed"]);
    await eventually("no deadline for it", () =>
      runInDurableObject(
        stubOf(where.threadId),
        (_, state) => state.storage.sql.exec("SELECT 1 FROM deadline WHERE id = 'outbound'").toArray().length === 0,
      ),
    );
    expect(await eventsOf(where.threadId, "thread.unsent")).toEqual([]);
  });

  test("[R9] the provider took it and the connection broke: it is found by its marker and not sent again", async () => {
    const where = await open();
    await control("faults", { on: `POST /repos/${where.place}/`, faults: ["drop"] });
    await threadOf(where.threadId).post(intent(where.threadId));
    await eventually("the unknown state", async () => (await stateOf(where.threadId))[0] === "unknown");
    await at(Date.now() + 60_000, () => runDurableObjectAlarm(stubOf(where.threadId)));
    await at(Date.now() + 60_000, () => eventually("the sent state", async () => (await stateOf(where.threadId))[0] === "sent"));
    expect(await commentsOn(where.place)).toHaveLength(1);
    expect((await eventsOf(where.threadId, "thread.unsent")).map(({ event }) => event.state)).toEqual(["unknown"]);
  });

  test("[R10] [Q3] a passing fault is tried again, in order; one for good is shown as failed and the team is told", async () => {
    const where = await open();
    await control("faults", { on: `POST /repos/${where.place}/`, faults: ["429"], retryAfter: 1 });
    await threadOf(where.threadId).post(intent(where.threadId, { text: "first" }));
    await threadOf(where.threadId).post(intent(where.threadId, { text: "second" }));
    await eventually("both sent", async () => (await stateOf(where.threadId)).every((state) => state === "sent"), undefined, 20_000);
    expect((await commentsOn(where.place)).map(({ body }) => body.split("\n")[0])).toEqual(["first", "second"]);
    await control("faults", { on: `POST /repos/${where.place}/`, faults: ["410"] });
    const lost = intent(where.threadId, { text: "third" });
    await threadOf(where.threadId).post(lost);
    await eventually("the failed state", async () => (await stateOf(where.threadId))[2] === "failed");
    await eventually("a notice on the board", async () =>
      (await bindings.BOARD.getByName("board").snapshot()).notices.some((notice) => notice.id === `outbound:${lost.id}`),
    );
  });

  test("[H7] [Q3] what is too old after a restart is not sent but marked expired, and one notice tells the team of all of it", async () => {
    const where = await open();
    await control("faults", { on: `POST /repos/${where.place}/`, faults: ["503", "503", "503"] });
    const lost = [intent(where.threadId), intent(where.threadId), intent(where.threadId)];
    const noticesOf = async () =>
      (await bindings.BOARD.getByName("board").snapshot()).notices.filter(({ id }) => lost.some((each) => id === `outbound:${each.id}`));
    for (const each of lost) await threadOf(where.threadId).post(each);
    await eventually("a try", async () => ((await control(`requests?contains=${where.place}`)) as unknown[]).length > 0);
    await abortAllDurableObjects();
    await at(Date.now() + 30 * 60 * 60_000, async () => {
      await runDurableObjectAlarm(stubOf(where.threadId));
      await eventually("final states", async () =>
        (await stateOf(where.threadId)).every((state) => ["expired", "unknown"].includes(state)),
      );
      await eventually("a notice on the board", async () => {
        await runDurableObjectAlarm(stubOf(where.threadId));
        return (await noticesOf()).length > 0;
      });
      expect(await noticesOf()).toMatchObject([{ text: expect.stringMatching(/^3 messages for .* did not surely arrive/) }]);
    });
    expect(await commentsOn(where.place)).toHaveLength(0);
  });

  test("[H1] an answer to what was asked elsewhere is refused", async () => {
    const [where, other] = [await open(), await open()];
    expect(await refusal(threadOf(where.threadId).post(intent(where.threadId, { triggerId: triggerIn(other, "d1").id })))).toMatch(
      /not in/,
    );
    expect(await refusal(threadOf(where.threadId).post(intent(other.threadId)))).toMatch(/not in/);
    expect(await refusal(threadOf(issue().threadId).post(intent(where.threadId)))).toMatch(/no thread/);
    expect(await stateOf(where.threadId)).toEqual([]);
  });

  test("[T13] [Q6] what answers nothing here is said only of a task that the thread was given to, also after an eviction and after that task's end", async () => {
    watchWorkers();
    const [where, other] = [await open(), await open()];
    const [taskId, stranger] = [makeId("tsk", uniqueName()), makeId("tsk", uniqueName())];
    await subscribe(other.threadId, stranger, triggerIn(other, "d1").id);
    const say = (more: object) => threadOf(where.threadId).post(intent(where.threadId, more));
    const refused = [{ triggerId: undefined }, { taskId: stranger }, { taskId }];
    for (const more of refused) expect(await refusal(say(more))).toMatch(/is of no task that this thread was given to/);
    await subscribe(where.threadId, taskId, triggerIn(where, "d1").id);
    await say({ taskId });
    await threadOf(where.threadId).unsubscribe({ taskId, reason: "done" });
    await evictDurableObject(stubOf(where.threadId));
    expect(await refusal(say({ taskId: stranger }))).toMatch(/is of no task/);
    await say({ taskId });
    expect(await eventsOf(where.threadId, "thread.outbound")).toHaveLength(2);
    // An offer that nobody asked for waits where it comes from.
    const from = { taskId: stranger, authority: "member" as const, tainted: false, source: "github", place: where.place };
    const offer = (from_: typeof where) => ({
      outbound: intent(where.threadId, { kind: "offer", taskId: stranger, triggerId: triggerIn(from_, "d1").id }),
      title: "t",
      from,
      personOnly: true as const,
    });
    expect(await refusal(threadOf(where.threadId).offer({ offer: offer(other) }))).toMatch(/comes from nothing in/);
    expect(await threadOf(where.threadId).offer({ offer: offer(where) })).toMatchObject({ state: "held" });
  });

  test("what is said reaches subscribers as context, and never the router", async () => {
    watchWorkers();
    const where = await open();
    const taskId = makeId("tsk", uniqueName());
    await subscribe(where.threadId, taskId, triggerIn(where, "d1").id);
    const { seq } = await threadOf(where.threadId).post(intent(where.threadId));
    await eventually("the row at the worker", () => handed.get(taskId)?.includes(seq) === true);
    expect(await routerHas(triggerIn(where, "d1").id)).toBe(false);
  });

  test("on a chat it has at most a hundred words", async () => {
    const taskId = makeId("tsk", uniqueName());
    const topicId = topicThreadIdOf(taskId);
    const rootId = rootThreadIdOf("gst_words");
    const root = { threadId: rootId, place: "widget", threadKey: "root:gst_words" };
    const asked = triggerIn(root, "gst_words:message-1", {
      source: "web",
      kind: "message",
      id: triggerIdOf("web", "gst_words:message-1", rootId),
    });
    watchWorkers();
    await threadOf(topicId).openTopic({
      rootThreadId: rootId,
      title: "A task",
      taskId,
      decisionId: "dec_w",
      trigger: asked,
      verdict: verdict("request"),
    });
    await threadOf(topicId).post(intent(topicId, { text: "word ".repeat(500), triggerId: asked.id }));
    const said = (await threadOf(topicId).read({ afterSeq: 0, limit: 10 })).rows.at(-1);
    expect(said?.kind === "outbound" ? countWords(said.outbound.text) : 0).toBeLessThanOrEqual(100);
    expect(said).toMatchObject({ state: "sent" });
  });
});

describe("cards and the index", () => {
  test("the highest revision of a card wins, in whatever order they come", async () => {
    watchWorkers();
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1"), verdict: verdict("record") });
    for (const revision of [2, 5, 3, 5, 1]) await threadOf(where.threadId).card(cardOf("tsk_a", where.threadId, revision));
    await evictDurableObject(stubOf(where.threadId));
    expect((await threadOf(where.threadId).read({ afterSeq: 0, limit: 10 })).cards).toEqual([cardOf("tsk_a", where.threadId, 5)]);
  });

  test("[R29] the index follows each thread, and a late write does not take it back", async () => {
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d1", { threadTitle: "First" }), verdict: verdict("record") });
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "d2", { threadTitle: "Second" }), verdict: verdict("record") });
    const entry = () =>
      bindings.DB.prepare("SELECT title, head_seq AS headSeq FROM threads WHERE id = ?")
        .bind(where.threadId)
        .first<{ title: string; headSeq: number }>();
    await eventually("the index", async () => (await entry())?.headSeq === 2);
    const { info } = await threadOf(where.threadId).read({ afterSeq: 0, limit: 1 });
    await indexThread(bindings.DB, { ...info, title: "Old", headSeq: 1 }, 1);
    expect(await entry()).toEqual({ title: "Second", headSeq: 2 });

    // What more is only kept is told in its own time; a new title soon, also when more came before it.
    const toldIn = async (deliveryId: string, threadTitle: string): Promise<number> => {
      const trigger = triggerIn(where, deliveryId, { threadTitle });
      await threadOf(where.threadId).append({ trigger, verdict: verdict("record") });
      return runInDurableObject(stubOf(where.threadId), async (_, state) => ((await state.storage.getAlarm()) ?? 0) - Date.now());
    };
    expect(await toldIn("d3", "Second")).toBeGreaterThan(20_000);
    expect(await toldIn("d4", "Third")).toBeLessThan(3_000);
    await eventually("the new title", async () => (await entry())?.title === "Third");
    await toldIn("d5", "Third");
    await evictDurableObject(stubOf(where.threadId));
    expect(await toldIn("d6", "Third")).toBeLessThan(3_000);
    await eventually("the rows of both instances", async () => (await entry())?.headSeq === 6);
  });

  test("an unknown thread reads as empty", async () => {
    const { threadId } = issue();
    expect(await threadOf(threadId).read({ afterSeq: 0, limit: 10 })).toMatchObject({
      info: { threadId, headSeq: 0 },
      rows: [],
      cards: [],
    });
    expect(await threadOf(threadId).row({ triggerId: "trg_a-b" })).toBeNull();
    expect(await threadOf(threadId).events({ afterSeq: 0, limit: 10 })).toEqual([]);
    await threadOf(threadId).poke();
  });
});
