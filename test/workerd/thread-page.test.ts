import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Thread } from "../../durable-objects/thread.ts";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { github } from "../../src/channels/github/index.ts";
import { childId, makeId } from "../../src/core/ids.ts";
import { topicThreadIdOf } from "../../src/core/thread.ts";
import { Fault } from "../../src/protocol/fault.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { widgetClose } from "../../src/protocol/widget-frames.ts";
import { getArtifact } from "../../src/storage/artifacts.ts";
import { cardOf, eventsOf, intent, issue, stubOf, threadOf, uniqueName, verdict } from "./thread-fixtures.ts";
import { bindings, eventually, invite, Page, session } from "./widget-page.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const text = (page: Page, threadId?: string): string[] =>
  page.rows(threadId).flatMap(({ row }) => (row.kind === "topic" ? [`topic ${row.title}`] : [row.text]));

const triggerOf = async (threadId: string, clientMsgId: string): Promise<Trigger> => {
  const found = (await eventsOf(threadId, "thread.accepted")).find(({ event }) => event.trigger.externalId === clientMsgId);
  if (!found) throw new Error(`no row of ${clientMsgId}`);
  return found.event.trigger;
};

/** Workers that take every row: these tests are about the page. */
const takeAll = () =>
  vi
    .spyOn(WorkerSession.prototype, "deliver")
    .mockImplementation(async ({ rows }) => ({ throughSeq: Math.max(...rows.map(({ row }) => row.seq)) }));

/** What the router does for a dispatch: opens the topic, then attaches it to the root. */
async function dispatch(page: Page, clientMsgId: string): Promise<{ taskId: string; topicId: string; attach: () => Promise<unknown> }> {
  takeAll();
  const taskId = makeId("tsk", uniqueName());
  const topicId = topicThreadIdOf(taskId);
  const trigger = await triggerOf(page.rootThreadId, clientMsgId);
  const common = { taskId, title: "Run the tests" };
  await threadOf(topicId).openTopic({
    ...common,
    rootThreadId: page.rootThreadId,
    decisionId: `dec_${taskId}`,
    trigger,
    verdict: verdict("request"),
  });
  return {
    taskId,
    topicId,
    attach: () => threadOf(page.rootThreadId).attachTopic({ ...common, topicThreadId: topicId, triggerId: trigger.id }),
  };
}

describe("a conversation", () => {
  test("a message is acknowledged after its row, once for each time it is sent, and its row is shown once [Q1]", async () => {
    const page = await Page.ready(await session());
    page.message("message-1", "hello");
    const first = await page.acked("message-1");
    page.message("message-1", "hello");
    const second = await page.acked("message-1", 2);
    expect(second).toEqual(first);
    expect(text(page)).toEqual(["hello"]);
    expect(page.rows()[0]).toMatchObject({ seq: first.seq, row: { clientMsgId: "message-1", from: { you: true, role: "guest" } } });
    expect(await eventsOf(page.rootThreadId, "thread.accepted")).toHaveLength(1);
    expect(page.frames.findIndex((frame) => frame.t === "row")).toBeLessThan(page.frames.findIndex((frame) => frame.t === "ack"));
  });

  test("[Q1] sent on a socket that breaks before its ack, and again on the next, it is one row", async () => {
    const from = await session();
    const page = await Page.ready(from);
    page.message("message-1", "hello");
    page.close();
    const again = await Page.ready(from, page.resume());
    again.message("message-1", "hello");
    await again.acked("message-1");
    expect(await eventsOf(page.rootThreadId, "thread.accepted")).toHaveLength(1);
  });

  test("two messages typed at once keep their order", async () => {
    const page = await Page.ready(await session());
    const ids = Array.from({ length: 10 }, (_, i) => `message-${i}`);
    for (const id of ids) page.message(id, id);
    for (const id of ids) await page.acked(id);
    expect(text(page)).toEqual(ids);
  });

  test("the socket survives an eviction: the next message is acknowledged on it", async () => {
    const page = await Page.ready(await session());
    page.message("message-1", "before");
    await page.acked("message-1");
    await evictDurableObject(stubOf(page.rootThreadId));
    page.message("message-2", "after");
    await page.acked("message-2");
    expect(text(page)).toEqual(["before", "after"]);
    await evictDurableObject(stubOf(page.rootThreadId));
    page.message("message-1", "before");
    await page.acked("message-1", 2);
    expect(await eventsOf(page.rootThreadId, "thread.accepted")).toHaveLength(2);
  });

  test("[Q2] after a crash the page resumes by its cursors and has each row exactly once", async () => {
    const from = await session();
    const page = await Page.ready(from);
    page.message("message-1", "one");
    await page.acked("message-1");
    const { topicId, attach } = await dispatch(page, "message-1");
    await attach();
    await page.until("the topic's row", () => page.rows(topicId).length === 1);
    await abortAllDurableObjects();
    await threadOf(topicId).post(intent(topicId, { text: "said while away" }));
    const again = await Page.ready(from, page.resume());
    again.message("message-2", "two");
    await again.acked("message-2");
    const seen = [...page.frames, ...again.frames].flatMap((frame) => (frame.t === "row" ? [`${frame.threadId}:${frame.seq}`] : []));
    expect(new Set(seen).size).toBe(seen.length);
    expect([...text(page), ...text(again)]).toEqual(["one", "topic Run the tests", "two"]);
    expect([...text(page, topicId), ...text(again, topicId)]).toEqual(["one", "said while away"]);
    const fresh = await Page.ready(from);
    expect(text(fresh)).toEqual(["one", "topic Run the tests", "two"]);
    expect(text(fresh, topicId)).toEqual(["one", "said while away"]);
  });

  test("two pages of one person show the same", async () => {
    const { token } = await invite("Member");
    const from = await session(token);
    const [one, two] = [await Page.ready(from), await Page.ready(from)];
    one.message("message-1", "from the first page");
    // What is said to the person may follow at once: only their own rows are compared.
    const said = (page: Page) => page.rows().filter(({ row }) => row.kind === "message");
    await two.until("the row", () => said(two).length === 1);
    expect(said(two)).toEqual(said(one));
    expect(two.acks("message-1")).toEqual([]);
  });

  test("a text that a trigger cannot carry whole is kept whole in the store", async () => {
    const page = await Page.ready(await session());
    const long = "長".repeat(limits.maxMessageChars);
    page.message("message-1", long);
    await page.acked("message-1");
    const trigger = await triggerOf(page.rootThreadId, "message-1");
    expect(trigger).toMatchObject({ truncated: true });
    expect(new TextEncoder().encode(trigger.text).length).toBeLessThan(limits.maxTriggerBytes);
    const whole = (await getArtifact(bindings.STORE, trigger.rawArtifact ?? ""))?.bytes;
    expect(new TextDecoder().decode(whole ?? new Uint8Array())).toBe(long);
  });

  test("[H1] two guests who talk at once see nothing of each other, whatever the order", async () => {
    const orders = [
      ["a in", "a out", "b in", "b out"],
      ["a in", "b in", "a out", "b out"],
      ["a in", "b in", "b out", "a out"],
      ["b in", "a in", "a out", "b out"],
      ["b in", "a in", "b out", "a out"],
      ["b in", "b out", "a in", "a out"],
    ];
    for (const order of orders) {
      const pages = { a: await Page.ready(await session()), b: await Page.ready(await session()) };
      const asks = { a: "my salary is 1234, convert to EUR", b: "what time is it?" };
      const answers = { a: "1234 dollars are 1100 EUR", b: "It is noon." };
      for (const step of order) {
        const who = step.startsWith("a") ? "a" : "b";
        const page = pages[who];
        if (step.endsWith("in")) {
          page.message("message-1", asks[who]);
          await page.acked("message-1");
          continue;
        }
        const { id: triggerId } = await triggerOf(page.rootThreadId, "message-1");
        await threadOf(page.rootThreadId).post(intent(page.rootThreadId, { text: answers[who], triggerId }));
        await page.until("the answer", () => page.rows().length === 2);
      }
      expect([text(pages.a), text(pages.b)]).toEqual([
        [asks.a, answers.a],
        [asks.b, answers.b],
      ]);
      expect(JSON.stringify(pages.b.frames)).not.toContain("1234");
    }
  });
});

describe("topics on the page", () => {
  test("the topic's row comes first, then the topic's rows, each exactly once, though the topic was open before it was attached", async () => {
    const page = await Page.ready(await session());
    page.message("message-1", "run the tests");
    await page.acked("message-1");
    const { taskId, topicId, attach } = await dispatch(page, "message-1");
    const said = intent(topicId, { text: "On it.", taskId });
    await threadOf(topicId).post(said);
    await attach();
    await attach();
    await threadOf(topicId).post(said);
    await page.until("the topic's rows", () => page.rows(topicId).length === 2);
    await evictDurableObject(stubOf(topicId));
    await threadOf(topicId).post(intent(topicId, { text: "Done.", taskId }));
    await page.until("the answer", () => page.rows(topicId).length === 3);
    await threadOf(topicId).poke();
    expect(text(page)).toEqual(["run the tests", "topic Run the tests"]);
    expect(text(page, topicId)).toEqual(["run the tests", "On it.", "Done."]);
    const order = page.frames.flatMap((frame) => (frame.t === "row" ? [frame.threadId] : []));
    expect(order).toEqual([page.rootThreadId, page.rootThreadId, topicId, topicId, topicId]);
  });

  test("a message into a topic is the topic's row, acknowledged with its number; into a foreign one it is refused", async () => {
    const from = await session();
    const page = await Page.ready(from);
    page.message("message-1", "run the tests");
    await page.acked("message-1");
    const { taskId, topicId, attach } = await dispatch(page, "message-1");
    await attach();
    page.message("message-2", "only the fast ones", topicId);
    const ack = await page.acked("message-2");
    await page.until("its row", () => page.rows(topicId).some(({ seq }) => seq === ack.seq));
    expect((await eventsOf(topicId, "thread.accepted")).at(-1)?.event).toMatchObject({
      mode: "observe",
      subscribers: [taskId],
      trigger: { threadKey: `topic:${taskId}`, threadTitle: "Run the tests", addressed: true },
    });
    page.message("message-2", "only the fast ones", topicId);
    expect(await page.acked("message-2", 2)).toEqual(ack);
    const stranger = await Page.ready(await session());
    stranger.message("message-3", "let me in", topicId);
    await stranger.until("the refusal", () => stranger.frames.some((frame) => frame.t === "refused"));
    expect(await eventsOf(topicId, "thread.accepted")).toHaveLength(2);
  });

  test("cards arrive with the highest revision, live and after a reload", async () => {
    const from = await session();
    const page = await Page.ready(from);
    page.message("message-1", "run the tests");
    await page.acked("message-1");
    const { taskId, topicId, attach } = await dispatch(page, "message-1");
    await attach();
    const revisions = (of: Page) =>
      of.frames.flatMap((frame) => (frame.t === "card" && frame.threadId === topicId ? [frame.card.revision] : []));
    await threadOf(topicId).card(cardOf(taskId, topicId, 2));
    await page.until("the card", () => revisions(page).includes(2));
    await threadOf(topicId).card(cardOf(taskId, topicId, 1));
    await threadOf(topicId).card(cardOf(taskId, topicId, 3));
    await page.until("the newer card", () => revisions(page).includes(3));
    expect(revisions(page)).toEqual([2, 3]);
    const fresh = await Page.ready(from);
    expect(revisions(fresh)).toEqual([3]);
    expect(fresh.frames.at(-1)).toEqual({ t: "caught_up" });
  });

  test("[Q2] frames that a topic hands over twice are shown once, also after an eviction of the root", async () => {
    const page = await Page.ready(await session());
    page.message("message-1", "run the tests");
    await page.acked("message-1");
    const { topicId, attach } = await dispatch(page, "message-1");
    await attach();
    await page.until("the topic's row", () => page.rows(topicId).length === 1);
    const [frame] = page.rows(topicId);
    if (!frame) throw new Error("no row");
    const next = { ...frame, seq: frame.seq + 10 };
    for (const frames of [[frame], [next], [frame, next]]) {
      expect(await threadOf(page.rootThreadId).mirror({ topicThreadId: topicId, frames })).toEqual({ taken: true });
      await evictDurableObject(stubOf(page.rootThreadId));
    }
    page.message("message-2", "still here");
    await page.acked("message-2");
    expect(page.rows(topicId).map(({ seq }) => seq)).toEqual([frame.seq, next.seq]);
  });

  test("what happens while a page is brought up to date comes after what it missed, once", async () => {
    const from = await session();
    const first = await Page.ready(from);
    first.message("message-1", "run the tests");
    await first.acked("message-1");
    const { topicId, attach } = await dispatch(first, "message-1");
    await attach();
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const read = Thread.prototype.read;
    vi.spyOn(Thread.prototype, "read").mockImplementation(async function (this: Thread, input) {
      const answer = await read.call(this, input);
      if (answer.info.threadId === topicId) await gate;
      return answer;
    });
    const late = await Page.open(from);
    late.say({ t: "hello", resume: {} });
    await late.until("the root's rows", () => late.rows().length === 2);
    first.message("message-2", "meanwhile");
    await first.acked("message-2");
    await threadOf(topicId).post(intent(topicId, { text: "said meanwhile" }));
    await first.until("the live row", () => first.rows(topicId).length === 2);
    expect(late.rows()).toHaveLength(2);
    release();
    await late.until("caught up", () => late.frames.some((frame) => frame.t === "caught_up"));
    expect(text(late)).toEqual(text(first));
    expect(text(late, topicId)).toEqual(["run the tests", "said meanwhile"]);
  });

  test("a page whose catch-up died with the object is told to connect again", async () => {
    const from = await session();
    const first = await Page.ready(from);
    first.message("message-1", "run the tests");
    await first.acked("message-1");
    const { topicId, attach } = await dispatch(first, "message-1");
    await attach();
    await runInDurableObject(stubOf(first.rootThreadId), (_, state) => {
      for (const ws of state.getWebSockets()) ws.serializeAttachment({ ...(ws.deserializeAttachment() as object), phase: "catching_up" });
    });
    await evictDurableObject(stubOf(first.rootThreadId));
    await threadOf(first.rootThreadId).read({ afterSeq: 0, limit: 1 });
    expect((await first.untilClosed()).code).toBe(1012);
    expect(text(await Page.ready(from, first.resume()), topicId)).toEqual(first.rows(topicId).length > 0 ? [] : ["run the tests"]);
  });

  test("frames of a topic that the root does not know are not taken", async () => {
    const page = await Page.ready(await session());
    expect(await threadOf(page.rootThreadId).mirror({ topicThreadId: "thr_foreign", frames: [{ t: "caught_up" }] })).toEqual({
      taken: false,
    });
  });
});

describe("buttons", () => {
  const pressed = async () => {
    const page = await Page.ready(await session());
    page.message("message-1", "run the tests");
    await page.acked("message-1");
    const { taskId, topicId, attach } = await dispatch(page, "message-1");
    await attach();
    return { page, taskId, topicId };
  };

  test("Stop is durable before its ack and reaches the task once, with who pressed it", async () => {
    const { page, taskId, topicId } = await pressed();
    const cancel = vi.spyOn(WorkerSession.prototype, "cancel").mockResolvedValue({ status: "cancelling" });
    for (let i = 0; i < 2; i++) page.say({ t: "act", clientMsgId: "button-1", taskId, threadId: topicId, action: "stop" });
    await page.acked("button-1", 2);
    await eventually("the cancel", () => cancel.mock.calls.length > 0);
    await threadOf(page.rootThreadId).poke();
    expect(cancel.mock.calls).toHaveLength(1);
    expect(cancel.mock.calls[0]?.[0]).toMatchObject({ by: { role: "guest" } });
  });

  test("a task that is away hears of it when it is back", async () => {
    const { page, taskId, topicId } = await pressed();
    const resume = vi
      .spyOn(WorkerSession.prototype, "resume")
      .mockRejectedValueOnce(new Error("away"))
      .mockResolvedValue({ status: "running" });
    page.say({ t: "act", clientMsgId: "button-1", taskId, threadId: topicId, action: "continue" });
    await page.acked("button-1");
    await eventually("the second try", () => resume.mock.calls.length > 1);
  });

  test("what the task refuses for good is said on the page", async () => {
    const { page, taskId, topicId } = await pressed();
    vi.spyOn(WorkerSession.prototype, "cancel").mockImplementation(async () => {
      throw new Fault("forbidden", "Only a member may stop this.");
    });
    page.say({ t: "act", clientMsgId: "button-1", taskId, threadId: topicId, action: "stop" });
    await page.until("the refusal", () => page.frames.some((frame) => frame.t === "refused"));
    expect(page.frames.find((frame) => frame.t === "refused")).toMatchObject({
      clientMsgId: "button-1",
      message: "Only a member may stop this.",
    });
  });

  test("an accepted outcome is in the log with who accepted it", async () => {
    const { page, taskId, topicId } = await pressed();
    const accept = vi.spyOn(WorkerSession.prototype, "accept").mockResolvedValue();
    page.say({ t: "act", clientMsgId: "button-1", taskId, threadId: topicId, action: "accept" });
    await page.acked("button-1");
    await eventually("the word at the task", () => accept.mock.calls.length === 1);
    expect((await eventsOf(page.rootThreadId, "thread.accepted_outcome")).map(({ event }) => event)).toMatchObject([
      { taskId, accepted: true, by: { role: "guest" } },
    ]);
  });

  test("[O5] a proposal on a card is released by a member once; a guest's word, or one on another task's proposal, is refused", async () => {
    vi.spyOn(WorkerSession.prototype, "offerMoved").mockResolvedValue();
    const send = vi.spyOn(github, "send").mockResolvedValue({ providerId: "81" });
    const where = issue();
    const proposedBy = async (taskId: string): Promise<string> => {
      const id = childId("out", where.threadId, taskId);
      const outbound = { id, threadId: where.threadId, kind: "offer" as const, text: "Shall I say this?", taskId, hops: 1 };
      const from = { taskId, authority: "member" as const, tainted: false, source: "web", place: "widget" };
      const about = { source: "github", place: where.place, threadKey: where.threadKey, title: "An issue" };
      await threadOf(where.threadId).offer({ offer: { outbound, title: "Comment", from }, about });
      return id;
    };
    const ofGuest = await pressed();
    const offer = await proposedBy(ofGuest.taskId);
    const say = (to: typeof ofGuest, offerId: string, clientMsgId: string) =>
      to.page.say({ t: "decide", clientMsgId, taskId: to.taskId, threadId: to.topicId, offer: offerId, verdict: "release" });
    const refused = (to: typeof ofGuest, clientMsgId: string) =>
      to.page.until("the refusal", () => to.page.frames.some((frame) => frame.t === "refused" && frame.clientMsgId === clientMsgId));
    say(ofGuest, offer, "guest-says-1");
    await refused(ofGuest, "guest-says-1");

    const page = await Page.ready(await session((await invite("Ana")).token));
    page.message("message-1", "run the tests");
    await page.acked("message-1");
    const { attach, ...mine } = await dispatch(page, "message-1");
    await attach();
    const ofMember = { page, ...mine };
    say(ofMember, offer, "not-mine-1");
    await refused(ofMember, "not-mine-1");
    const own = await proposedBy(mine.taskId);
    say(ofMember, own, "release-1");
    say(ofMember, own, "release-1");
    await page.acked("release-1", 2);
    await eventually("the message", () => send.mock.calls.length > 0);
    await evictDurableObject(stubOf(page.rootThreadId));
    await threadOf(page.rootThreadId).poke();
    expect(send.mock.calls).toHaveLength(1);
    expect(await threadOf(where.threadId).offered({ outboundId: offer })).toMatchObject({ state: "held" });
    expect(await threadOf(where.threadId).offered({ outboundId: own })).toMatchObject({ state: "released", decided: { via: "person" } });
    // Whoever comes too late hears whose word counts.
    page.say({ t: "decide", clientMsgId: "decline-1", taskId: mine.taskId, threadId: mine.topicId, offer: own, verdict: "decline" });
    await refused(ofMember, "decline-1");
    expect(page.frames.findLast((frame) => frame.t === "refused")).toMatchObject({
      clientMsgId: "decline-1",
      message: "Too late to decline it: it was released by Ana.",
    });
  });

  test("a foreign task's button is refused", async () => {
    const { taskId, topicId } = await pressed();
    const cancel = vi.spyOn(WorkerSession.prototype, "cancel");
    const stranger = await Page.ready(await session());
    stranger.say({ t: "act", clientMsgId: "button-1", taskId, threadId: topicId, action: "stop" });
    await stranger.until("the refusal", () => stranger.frames.some((frame) => frame.t === "refused"));
    expect(cancel).not.toHaveBeenCalled();
  });
});

describe("frames that break the protocol", () => {
  const hello = { t: "hello", resume: {} };
  const send = (more: object) => ({ t: "send", clientMsgId: "message-1", threadId: "thr_a", text: "x", ...more });
  test.each<[string, unknown[], RegExp]>([
    ["no JSON", ["{"], /frame: is not JSON/],
    ["no object", [hello, 7], /frame/],
    ["an unknown frame", [hello, { t: "approve" }], /^protocol error: t: /],
    ["a first frame that is no hello", [send({})], /t: the first frame must be hello/],
    ["[H6] a second hello: a resumption is offered once on one socket", [hello, hello], /t: hello was said already/],
    ["an empty text", [hello, send({ text: "" })], /text: must not be empty/],
    ["a text over the limit", [hello, send({ text: "x".repeat(limits.maxMessageChars + 1) })], /text: /],
    ["a foreign kind of id", [hello, send({ threadId: "tsk_a" })], /threadId: is not a thr_ id/],
    ["an id of the page that is too short", [hello, send({ clientMsgId: "a" })], /clientMsgId: must be 8 to 64/],
    ["a resume map that is none", [{ t: "hello", resume: { thr_a: "seven" } }], /resume\.thr_a: /],
    ["a frame over the limit", [hello, send({ text: "x".repeat(limits.maxFrameBytes) })], /frame: has more than/],
  ])("%s closes the socket and names the field", async (_name, frames, reason) => {
    const page = await Page.open(await session());
    for (const frame of frames) page.say(frame);
    const closed = await page.untilClosed();
    expect(closed.code).toBe(widgetClose.protocolError);
    expect(closed.reason).toMatch(reason);
    expect(new TextEncoder().encode(closed.reason).length).toBeLessThanOrEqual(123);
  });

  test("bytes close the socket", async () => {
    const page = await Page.open(await session());
    page.sayBytes(new Uint8Array([1, 2, 3]).buffer);
    expect(await page.untilClosed()).toMatchObject({ code: widgetClose.protocolError, reason: expect.stringMatching(/must be text/) });
  });

  test("strange texts come back as they were", async () => {
    const page = await Page.ready(await session());
    const strange = [
      "\u0000\u0007",
      "</script><img src=x onerror=alert(1)>",
      "👨‍👩‍👧‍👦",
      "\u202Ertl",
      "'; DROP TABLE log; --",
      "__proto__",
      " ",
    ];
    for (const [i, each] of strange.entries()) page.message(`message-${i}`, each);
    await page.acked(`message-${strange.length - 1}`);
    expect(text(page)).toEqual(strange);
    page.say({ t: "send", clientMsgId: "message-x", threadId: page.rootThreadId, text: "half \ud83d of one" });
    await page.acked("message-x");
    expect(text(page).at(-1)?.isWellFormed()).toBe(true);
  });

  test("a resume map with nonsense is a fresh start, not an error", async () => {
    const page = await Page.open(await session());
    page.say({ t: "hello", resume: { [page.rootThreadId]: -1.5, __proto__: 3, thr_unknown: 9 } });
    await page.until("caught up", () => page.frames.some((frame) => frame.t === "caught_up"));
    expect(page.closed).toBeNull();
  });

  test("a ping is answered without a frame of ours, and a close is answered with its code", async () => {
    const page = await Page.ready(await session());
    const before = page.frames.length;
    page.say("ping");
    await page.until("the pong", () => page.pongs === 1);
    expect(page.frames).toHaveLength(before);
    page.close(1000, "bye");
    expect((await page.untilClosed()).code).toBe(1000);
  });
});
