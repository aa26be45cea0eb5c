// Replies are seen while they are written: by the people of their thread, for as long as their writer lives, and they are kept nowhere.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { makeId } from "../../src/core/ids.ts";
import { topicThreadIdOf } from "../../src/core/thread.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { DraftFrame } from "../../src/protocol/widget-frames.ts";
import { until } from "../support/until.ts";
import { script, unique } from "./router-lab.ts";
import { at, eventsOf, intent, issue, stubOf, threadOf, triggerIn, uniqueName, verdict } from "./thread-fixtures.ts";
import { invite, Page, session } from "./widget-page.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const draftsOf = (page: Page): DraftFrame[] => page.frames.flatMap((frame) => (frame.t === "draft" ? [frame] : []));
const repliesOf = (page: Page, threadId?: string) =>
  page.rows(threadId).flatMap(({ row }) => (row.kind === "reply" && row.replyKind === "reply" ? [row] : []));
const words = Array.from({ length: 60 }, (_, i) => `word${i}`).join(" ");
/** A reply of some four hundred characters in small pieces: about a second of writing. */
const slowly = (text: string) => ({ calls: [{ tool: "reply", input: { settles: ["$trg"], text } }], pieceChars: 12, pieceMs: 30 });

const frame = (threadId: string, rev: number, text: string, over: Partial<DraftFrame> = {}) => ({
  threadId,
  draftId: `out_${threadId}`,
  rev,
  text,
  state: "writing" as const,
  ...over,
});

async function greeted(from: string, clientMsgId = "message-1"): Promise<Page> {
  const page = await Page.ready(from);
  // Kept, and decided by nobody: these tests speak for the router.
  page.message(clientMsgId, "hello");
  await page.acked(clientMsgId);
  return page;
}

describe("a reply that the router's model writes", () => {
  test("grows on the page, becomes its row, and leaves nothing else behind; other people's pages see none of it", async () => {
    const token = unique();
    await script(token, [slowly(words)]);
    const [member, guest] = [await Page.ready(await session((await invite("Ana")).token)), await Page.ready(await session())];
    const startedMs = Date.now();
    member.message("message-1", `hello ${token}`);
    await member.until("the reply", () => repliesOf(member).length === 1);
    const drafts = draftsOf(member);
    expect(drafts.length).toBeGreaterThan(3);
    expect(drafts.length).toBeLessThanOrEqual((Date.now() - startedMs) / limits.draftEveryMs + 2);
    for (const [i, draft] of drafts.entries()) {
      expect(words.startsWith(draft.text.trimEnd())).toBe(true);
      expect(draft).toMatchObject({ threadId: member.rootThreadId, draftId: drafts[0]?.draftId, state: "writing" });
      expect(draft.rev).toBeGreaterThan(drafts[i - 1]?.rev ?? 0);
    }
    expect(repliesOf(member)[0]).toMatchObject({ id: drafts[0]?.draftId, text: words });
    expect(draftsOf(guest)).toEqual([]);
    expect((await eventsOf(member.rootThreadId, "thread.outbound")).map(({ event }) => event.outbound.id)).toEqual([drafts[0]?.draftId]);
    const left = await runInDurableObject(stubOf(member.rootThreadId), (_thread, state) =>
      state.storage.sql.exec("SELECT id FROM deadline WHERE kind = 'draft'").toArray(),
    );
    expect(left).toEqual([]);
  });

  test("[H6] a page that comes in the middle gets what is there in one frame, and the rest as it is written", async () => {
    const token = unique();
    await script(token, [slowly(words)]);
    const from = await session((await invite("Ana")).token);
    const page = await Page.ready(from);
    page.message("message-1", `hello ${token}`);
    await page.until("some words", () => draftsOf(page).length >= 3);
    const late = await Page.ready(from);
    const replay = late.frames.slice(0, late.frames.findIndex(({ t }) => t === "caught_up") + 1);
    expect(replay.length).toBeLessThanOrEqual(4);
    expect(draftsOf(late)[0]?.text.length).toBeGreaterThan(0);
    await late.until("the reply", () => repliesOf(late).length === 1);
    expect(repliesOf(late)).toHaveLength(1);
    expect(repliesOf(late)[0]?.id).toBe(draftsOf(late)[0]?.draftId);
  });

  test("[Q2] a provider that breaks off interrupts it; asked again, the same draft goes on and becomes one row", async () => {
    const token = unique();
    await script(token, [{ ...slowly(words), fault: "cut", at: "middle" }, slowly(words)] as never);
    const page = await Page.ready(await session((await invite("Ana")).token));
    page.message("message-1", `hello ${token}`);
    await page.until("the reply", () => repliesOf(page).length === 1);
    const states = draftsOf(page).map(({ state }) => state);
    expect(states).toContain("interrupted");
    expect(states.lastIndexOf("interrupted")).toBeLessThan(states.lastIndexOf("writing"));
    expect(new Set(draftsOf(page).map(({ draftId }) => draftId)).size).toBe(1);
    expect(repliesOf(page)).toMatchObject([{ text: words, id: draftsOf(page)[0]?.draftId }]);
  });

  test("[RD11] a reply that is too long is asked for once more, in the same turn and the same place; cut, it has its full text beside it", async () => {
    const token = unique();
    const long = (word: string): string => Array.from({ length: 150 }, (_, i) => `${word}${i}`).join(" ");
    await script(token, [{ ...slowly(long("long")), pieceChars: 100 }, slowly("Short.")]);
    const page = await Page.ready(await session((await invite("Ana")).token));
    page.message("message-1", `hello ${token}`);
    await page.until("the reply", () => repliesOf(page).length === 1);
    expect(repliesOf(page)[0]).toMatchObject({ text: "Short." });
    expect(repliesOf(page)[0]).not.toHaveProperty("fullText");
    const more = unique();
    await script(
      more,
      [slowly(long("first")), slowly(long("second"))].map((reply) => ({ ...reply, pieceChars: 100 })),
    );
    const other = await Page.ready(await session((await invite("Bea")).token));
    other.message("message-1", `hello ${more}`);
    await other.until("the reply", () => repliesOf(other).length === 1);
    const cut = repliesOf(other)[0];
    expect(cut?.text.split(/\s+/).length).toBeLessThanOrEqual(limits.maxInstantWords);
    expect(cut?.fullText).toBe(long("second"));
    expect(JSON.stringify(page.frames)).not.toContain("second1");
  });

  test("a reply that the rules refuse is taken back", async () => {
    const token = unique();
    const twice = { tool: "reply", input: { settles: ["$trg"], text: words } };
    await script(token, [
      { calls: [twice, { ...twice, input: { settles: ["$trg"], text: `not said ${words}` } }], pieceChars: 12, pieceMs: 30 },
    ] as never);
    const page = await Page.ready(await session((await invite("Ana")).token));
    page.message("message-1", `hello ${token}`);
    await page.until("the reply", () => repliesOf(page).length === 1);
    await page.until("taken back", () => draftsOf(page).some(({ state }) => state === "dropped"));
    expect(repliesOf(page)).toHaveLength(1);
  });
});

describe("a thread and its drafts", () => {
  test("[D2] [Q2] a draft whose writer is silent is interrupted within ten seconds, also when the thread died with it", async () => {
    for (const dies of [false, true]) {
      const page = await greeted(await session());
      const threadId = page.rootThreadId;
      const startedMs = Date.now();
      await threadOf(threadId).draft(frame(threadId, startedMs, "half an ans"));
      await page.until("the draft", () => draftsOf(page).length === 1);
      if (dies) await evictDurableObject(stubOf(threadId));
      await at(startedMs + limits.draftSilentMs + 100, async () => {
        await runDurableObjectAlarm(stubOf(threadId));
      });
      await page.until("interrupted", () => draftsOf(page).at(-1)?.state === "interrupted");
      expect(draftsOf(page).at(-1)?.rev).toBeGreaterThan(startedMs);
      expect(limits.draftSilentMs).toBeLessThan(10_000);
    }
  });

  test("a writer that gives signs of life is not interrupted, and its row ends the watch", async () => {
    const page = await greeted(await session());
    const threadId = page.rootThreadId;
    const startedMs = Date.now();
    const draft = frame(threadId, startedMs, "half");
    await threadOf(threadId).draft(draft);
    await at(startedMs + 7_000, async () => {
      await threadOf(threadId).draft({ ...draft, rev: startedMs + 7_000 });
    });
    await at(startedMs + 8_100, async () => {
      await runDurableObjectAlarm(stubOf(threadId));
    });
    await threadOf(threadId).post(intent(threadId, { id: draft.draftId, text: "half and half" }));
    await page.until("the row", () => repliesOf(page).length === 1);
    await at(startedMs + 60_000, async () => {
      await runDurableObjectAlarm(stubOf(threadId));
    });
    await threadOf(threadId).draft({ ...draft, rev: startedMs + 70_000, text: "late" });
    await page.until("nothing more", () => true);
    expect(draftsOf(page).map(({ state }) => state)).toEqual(["writing", "writing"]);
    expect((await Page.ready(await session())).frames.some(({ t }) => t === "draft")).toBe(false);
  });

  test("a draft of a task's topic is shown at its root, and only after the page knows the topic", async () => {
    vi.spyOn(WorkerSession.prototype, "deliver").mockImplementation(async ({ rows }) => ({
      throughSeq: Math.max(...rows.map(({ row }) => row.seq)),
    }));
    const page = await greeted(await session());
    const accepted = (await eventsOf(page.rootThreadId, "thread.accepted"))[0]?.event.trigger;
    if (!accepted) throw new Error("no row");
    const taskId = makeId("tsk", uniqueName());
    const topicId = topicThreadIdOf(taskId);
    const common = { taskId, title: "Run the tests" };
    await threadOf(topicId).openTopic({
      ...common,
      rootThreadId: page.rootThreadId,
      decisionId: "dec_a",
      trigger: accepted,
      verdict: verdict("request"),
    });
    expect(await threadOf(page.rootThreadId).draft(frame(topicId, 1, "early"))).toEqual({ taken: false });
    await threadOf(page.rootThreadId).attachTopic({ ...common, topicThreadId: topicId, triggerId: accepted.id });
    expect(await threadOf(topicId).draft(frame(topicId, 2, "Both pass."))).toEqual({ taken: true });
    await page.until("the draft", () => draftsOf(page).length === 1);
    expect(draftsOf(page)).toMatchObject([{ threadId: topicId, text: "Both pass.", state: "writing" }]);
  });

  test("nowhere else is a draft taken: not on an issue, not in a thread that nobody began", async () => {
    const where = issue();
    await threadOf(where.threadId).append({ trigger: triggerIn(where, "one"), verdict: verdict("record") });
    expect(await threadOf(where.threadId).draft(frame(where.threadId, 1, "text"))).toEqual({ taken: false });
    const unknown = makeId("thr", uniqueName());
    expect(await threadOf(unknown).draft(frame(unknown, 1, "text"))).toEqual({ taken: false });
  });

  test("a draft is as short as what will be said", async () => {
    const page = await greeted(await session());
    await threadOf(page.rootThreadId).draft(frame(page.rootThreadId, 1, Array.from({ length: 300 }, () => "word").join(" ")));
    await until("the draft", () => draftsOf(page)[0]);
    expect(draftsOf(page)[0]?.text.split(/\s+/).length).toBeLessThanOrEqual(limits.maxInstantWords);
  });
});
