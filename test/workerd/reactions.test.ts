// What people made of an outcome, found by looking at the reactions to the comment in which it was told.
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { github } from "../../src/channels/github/index.ts";
import { makeId, threadIdOf } from "../../src/core/ids.ts";
import { type Env, readConfig } from "../../src/env.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Deed, OutboundIntent } from "../../src/protocol/thread.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { until } from "../support/until.ts";
import { control } from "./github-deliveries.ts";
import { at, cardOf, eventsOf, intent, stubOf, threadOf, triggerIn, uniqueName, verdict } from "./thread-fixtures.ts";
import { bindings } from "./widget-page.ts";
import { done, member, newTask, script, untilStatus } from "./worker-helpers.ts";

beforeAll(async () => {
  await migrated(bindings.DB);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const minuteMs = 60_000;
const config = readConfig(env as unknown as Env);
/** A look that is due by then, and a moment. */
const [first, second, third, fourth, last] = limits.reactionLooksMs.map((ms) => ms + 1_000) as [number, number, number, number, number];

type Said = { accepted: boolean; by: { id: string; role: string }; reacted?: { sign: string } };
/** What tasks hear; each is one that is there. */
function hearing(): Said[] {
  const heard: Said[] = [];
  vi.spyOn(WorkerSession.prototype, "describe").mockResolvedValue({} as never);
  vi.spyOn(WorkerSession.prototype, "accept").mockImplementation(async (word) => {
    heard.push(word);
  });
  return heard;
}

/** An issue of a repository of its own, given to a task. */
async function given(threadKey = "issue:1") {
  const place = `${uniqueName()}/app`;
  const where = { threadId: threadIdOf("github", place, threadKey), place, threadKey };
  const asked = triggerIn(where, uniqueName());
  await threadOf(where.threadId).append({ trigger: asked, verdict: verdict("record") });
  const follow = (taskId: string) => threadOf(where.threadId).subscribe({ taskId, decisionId: makeId("dec", taskId), triggerId: asked.id });
  return { ...where, asked, follow, number: threadKey.split(":")[1] ?? "" };
}
type Issue = Awaited<ReturnType<typeof given>>;

const commentsOf = async ({ place }: Pick<Issue, "place">, number: string): Promise<{ id: number }[]> =>
  (await control(`comments?place=${place}&number=${number}`)).json();

/** Tells there how a task ended, and waits until GitHub has it. */
async function tell(where: Issue, more: Partial<OutboundIntent> = {}, number = where.number) {
  const { threadId } = where;
  const taskId = more.taskId ?? makeId("tsk", uniqueName());
  await where.follow(taskId);
  await threadOf(threadId).card({ ...cardOf(taskId, threadId, 1), status: "done" });
  const outbound = intent(threadId, { taskId, kind: "relay", text: "It is done.", outcome: true, ...more });
  await threadOf(threadId).post(outbound);
  await until("the comment", async () => {
    const row = await threadOf(threadId).row({ triggerId: outbound.id });
    return row?.kind === "outbound" && row.state === "sent";
  });
  const saidMs = (await eventsOf(threadId, "thread.outbound")).find(({ event }) => event.outbound.id === outbound.id)?.atMs ?? 0;
  const comment = (await commentsOf(where, number)).at(-1)?.id ?? 0;
  return { ...where, taskId, outbound, saidMs, comment };
}
type Told = Awaited<ReturnType<typeof tell>>;

const react = (
  { place, comment }: Pick<Told, "place" | "comment">,
  ...reactions: { login: string | null; content: string; at?: string; type?: string }[]
) => control("reactions", { place, comment, reactions });
const permit = ({ place }: Pick<Told, "place">, login: string) => control("permission", { place, login, permission: "write" });
const misbehave = (on: string, faults: string[], retryAfter?: number) =>
  control("faults", { on, faults, ...(retryAfter === undefined ? {} : { retryAfter }) });
type Request = { path: string; headers: Record<string, string> };
const looksAt = async ({ place }: Pick<Told, "place">): Promise<Request[]> =>
  ((await (await control(`requests?contains=${place}`)).json()) as Request[]).filter(({ path }) => path.includes("/reactions?"));

/** So long after the outcome was told. */
const lookAt = ({ threadId, saidMs }: Told, afterMs: number): Promise<unknown> =>
  at(saidMs + afterMs, () => runDurableObjectAlarm(stubOf(threadId)));
/** When the next look is due, in minutes after the outcome was told; null when there is none. */
const nextLook = ({ threadId, saidMs }: Told): Promise<number | null> =>
  runInDurableObject(stubOf(threadId), (_, { storage: { sql } }) => {
    const [row] = sql.exec<{ due_ms: number }>("SELECT due_ms FROM deadline WHERE kind = 'reactions'").toArray();
    return row === undefined ? null : Math.round((row.due_ms - saidMs) / minuteMs);
  });
const outcomes = async ({ threadId }: Told) => (await eventsOf(threadId, "thread.accepted_outcome")).map(({ event }) => event);

describe("a reaction to an outcome", () => {
  test("[W31] from the worker's last words to its card: a thumb of a person of the team accepts, and nothing is looked for any more", async () => {
    const where = await given();
    const quote = { triggerId: where.asked.id, from: member, text: "run the tests" };
    const task = newTask({ threadId: where.threadId, source: "github", place: where.place, quote });
    await where.follow(task.taskId);
    await script(task, [done("All of it is green.")]);
    await task.stub.start(task.start);
    await untilStatus(task, "done");
    const comment = await until("the comment", async () => (await commentsOf(where, "1"))[0]?.id);
    const told = await until("the row", async () => {
      const [row] = await eventsOf(where.threadId, "thread.sent");
      const said = (await eventsOf(where.threadId, "thread.outbound"))[0];
      return row && said && { ...where, taskId: task.taskId, outbound: said.event.outbound, saidMs: said.atMs, comment };
    });
    await until("the last card", async () =>
      (await threadOf(where.threadId).read({ afterSeq: 0, limit: 1 })).cards.some(({ status }) => status === "done"),
    );
    await permit(told, "maintainer");
    await react(told, { login: "Maintainer", content: "+1" });
    await evictDurableObject(stubOf(told.threadId));
    await lookAt(told, first);
    await until("the accepted outcome", async () => (await task.stub.describe())?.card.accepted === true);
    expect(await outcomes(told)).toEqual([
      {
        kind: "thread.accepted_outcome",
        taskId: task.taskId,
        accepted: true,
        by: { role: "member", id: "maintainer", name: "Maintainer" },
        reaction: { sign: "👍", to: told.outbound.id },
      },
    ]);
    expect(await nextLook(told)).toBeNull();
  });

  test("[W31] a crash between the look and its record repeats harmlessly, and so does one after it", async () => {
    const heard = hearing();
    const told = await tell(await given());
    await permit(told, "maintainer");
    await react(told, { login: "maintainer", content: "confused" });
    await misbehave(`/repos/${told.place}/collaborators/`, ["hang"]);
    const cut = lookAt(told, first).catch(() => "cut off");
    await until(
      "the question who it is",
      async () => ((await (await control(`requests?contains=/repos/${told.place}/collaborators/`)).json()) as Request[]).length > 0,
    );
    await abortAllDurableObjects();
    await cut;
    expect(heard).toEqual([]);
    // The platform runs again what it did not see ending.
    await at(told.saidMs + first, () => threadOf(told.threadId).poke());
    await until("the word at the task", async () => heard.length === 1);
    expect(heard).toMatchObject([{ accepted: false, by: { role: "member", id: "maintainer" }, reacted: { sign: "😕" } }]);
    // As if it had died before its next look was written.
    await runInDurableObject(stubOf(told.threadId), async (_, { storage }) => {
      storage.sql.exec("INSERT OR REPLACE INTO deadline (id, due_ms, kind, payload, attempts) VALUES ('reactions', 0, 'reactions', '', 0)");
      await storage.setAlarm(Date.now() + minuteMs);
    });
    await evictDurableObject(stubOf(told.threadId));
    await lookAt(told, first + 2_000);
    expect(await looksAt(told)).toHaveLength(3);
    await threadOf(told.threadId).poke();
    expect(await outcomes(told)).toHaveLength(1);
    expect(heard).toHaveLength(1);
  });

  test("[W31] strangers, programs, ourselves, who is gone, and signs that say nothing change nothing, and leave no row", async () => {
    const heard = hearing();
    const told = await tell(await given());
    await permit(told, "maintainer");
    await permit(told, "helper[bot]");
    await permit(told, "switchyard-bot");
    await react(
      told,
      { login: "stranger", content: "+1" },
      { login: "helper[bot]", content: "+1", type: "Bot" },
      { login: "Switchyard-Bot", content: "heart" },
      { login: null, content: "-1" },
      { login: "maintainer", content: "eyes" },
      { login: "maintainer", content: "laugh" },
    );
    const rows = async () => (await threadOf(told.threadId).events({ afterSeq: 0, limit: 100 })).length;
    const before = await rows();
    await lookAt(told, first);
    expect(await rows()).toBe(before);
    expect([heard, await outcomes(told), await nextLook(told)]).toEqual([[], [], 60]);
    // Who is of the team by the next look is heard then.
    await permit(told, "stranger");
    await lookAt(told, second);
    await until("the word at the task", async () => heard.length === 1);
    expect(heard).toMatchObject([{ accepted: true, by: { id: "stranger" } }]);
  });

  test("[W31] of several the newest counts, whoever of the team it is of", async () => {
    const heard = hearing();
    const told = await tell(await given());
    await permit(told, "ana");
    await permit(told, "bo");
    await react(
      told,
      { login: "ana", content: "-1", at: "2026-11-30T10:00:02Z" },
      { login: "bo", content: "rocket", at: "2026-11-30T10:00:01Z" },
      { login: "stranger", content: "+1", at: "2026-11-30T10:00:03Z" },
    );
    await lookAt(told, first);
    await until("the word at the task", async () => heard.length === 1);
    expect(heard).toMatchObject([{ accepted: false, by: { id: "ana" } }]);
  });

  test("[W31] is its person's by our own records: one whose access was withdrawn says nothing any more", async () => {
    const heard = hearing();
    const told = await tell(await given());
    const [known, gone] = [uniqueName(), uniqueName()];
    for (const [login, revokedMs] of [
      [known, null],
      [gone, 1],
    ] as const) {
      await permit(told, login);
      const { DB } = bindings;
      await DB.prepare("INSERT INTO people (id, name, role, created_ms, revoked_ms) VALUES (?, ?, 'owner', 0, ?)")
        .bind(`prs_${login}`, login, revokedMs)
        .run();
      await DB.prepare("INSERT INTO accounts (source, login, person_id) VALUES ('github', ?, ?)").bind(login, `prs_${login}`).run();
    }
    await react(
      told,
      { login: known, content: "hooray", at: "2026-11-30T10:00:01Z" },
      { login: gone, content: "-1", at: "2026-11-30T10:00:02Z" },
    );
    await lookAt(told, first);
    await until("the word at the task", async () => heard.length === 1);
    expect(heard).toMatchObject([{ accepted: true, by: { role: "member", id: `prs_${known}` } }]);
  });

  test("[O8] [W31] to an answer in a review is read there, and where the thread was gone, at the comment", async () => {
    const heard = hearing();
    const deed: Deed = { do: "comment", inReplyTo: "77" };
    const inReview = await tell(await given("pull:4"), { deed }, "review:4");
    const outside = await given("pull:5");
    await misbehave(`/repos/${outside.place}/pulls/5/comments/77/replies`, ["404"]);
    const beside = await tell(outside, { deed }, "5");
    for (const told of [inReview, beside]) {
      await permit(told, "maintainer");
      await react(told, { login: "maintainer", content: "+1" });
      await lookAt(told, first);
    }
    await until("both words", async () => heard.length === 2);
    expect((await looksAt(inReview)).map(({ path }) => path.split("/comments/")[0])).toEqual([`/repos/${inReview.place}/pulls`]);
  });

  test("[W31] is found on a later page", async () => {
    const heard = hearing();
    const told = await tell(await given());
    await react(told, ...Array.from({ length: 120 }, (_, n) => ({ login: `fan${n}`, content: n % 2 ? "eyes" : "laugh" })));
    await permit(told, "maintainer");
    await lookAt(told, first);
    await react(told, { login: "maintainer", content: "+1" });
    // The first page is as it was: it says nothing of the second.
    await lookAt(told, second);
    await until("the word at the task", async () => heard.length === 1);
    expect((await looksAt(told)).map(({ path }) => /page=(\d)$/.exec(path)?.[1])).toEqual(["1", "2", "1", "2"]);
  });

  test("[W31] of many strangers some are asked about, the newest, and the look ends", async () => {
    const heard = hearing();
    const told = await tell(await given());
    await react(
      told,
      ...Array.from({ length: 40 }, (_, n) => ({ login: `stranger${n}`, content: "+1", at: `2026-11-30T10:00:${10 + n}Z` })),
    );
    await lookAt(told, first);
    const asked = (await (await control(`requests?contains=/repos/${told.place}/collaborators/`)).json()) as Request[];
    expect(asked.map(({ path }) => /stranger\d+/.exec(path)?.[0])).toEqual(["39", "38", "37", "36", "35"].map((n) => `stranger${n}`));
    expect([heard, await nextLook(told)]).toEqual([[], 60]);
  });
});

describe("the looks of a thread", () => {
  test("[T14] are five in three days, over evictions; what has not changed is not read again, and nobody else has to wake it", async () => {
    hearing();
    const told = await tell(await given());
    const next: (number | null)[] = [await nextLook(told)];
    for (const look of [first, second, third, fourth, last]) {
      await evictDurableObject(stubOf(told.threadId));
      await lookAt(told, look);
      next.push(await nextLook(told));
      const listed = await bindings.DB.prepare("SELECT 1 FROM wake_list WHERE object_id = ?").bind(told.threadId).all();
      expect(listed.results).toEqual([]);
    }
    expect(next).toEqual([5, 60, 360, 1_440, 4_320, null]);
    const made = await looksAt(told);
    expect(made.map(({ headers }) => headers["if-none-match"] !== undefined)).toEqual([false, true, true, true, true]);
  });

  test("[T14] find what changed since the last one", async () => {
    const heard = hearing();
    const told = await tell(await given());
    await permit(told, "maintainer");
    await lookAt(told, first);
    await react(told, { login: "maintainer", content: "heart" });
    await lookAt(told, second);
    await until("the word at the task", async () => heard.length === 1);
  });

  test("[T14] are not made where somebody has judged, while the task goes on, or of what is no outcome", async () => {
    const heard = hearing();
    const told = await tell(await given());
    const card = { ...cardOf(told.taskId, told.threadId, 2), status: "running" as const };
    await permit(told, "maintainer");
    await react(told, { login: "maintainer", content: "+1" });
    await threadOf(told.threadId).card(card);
    await lookAt(told, first);
    await threadOf(told.threadId).card({ ...card, revision: 3, status: "done", accepted: false });
    await lookAt(told, second);
    expect([heard, await looksAt(told), await nextLook(told)]).toEqual([[], [], null]);
    await threadOf(told.threadId).post(intent(told.threadId, { taskId: told.taskId, kind: "relay", text: "By the way." }));
    expect(await nextLook(told)).toBeNull();
  });

  test("[T14] are of a task's newest outcome, and of the newest five of a thread", async () => {
    hearing();
    const where = await given();
    const taskId = makeId("tsk", uniqueName());
    const earlier = await tell(where, { taskId });
    const told = [await tell(where, { taskId })];
    for (let n = 0; n < 5; n++) told.unshift(await tell(where));
    await lookAt(told[0] as Told, first);
    const looked = (await looksAt(where)).map(({ path }) => Number(/comments\/(\d+)/.exec(path)?.[1]));
    expect(looked).toEqual(told.slice(0, 5).map(({ comment }) => comment));
    expect(looked).not.toContain(earlier.comment);
  });

  test("[T14] a comment that is gone is not looked at again", async () => {
    hearing();
    const where = await given();
    const gone = await tell(where);
    const there = await tell(where);
    await control("delete-comment", { place: where.place, id: gone.comment });
    await lookAt(there, first);
    await lookAt(there, second);
    const looked = (await looksAt(where)).map(({ path }) => Number(/comments\/(\d+)/.exec(path)?.[1]));
    expect(looked).toEqual([there.comment, gone.comment, there.comment]);
  });

  test.each(["500", "502", "html", "lost"])("[T14] after %s it is looked again, with growing waits, and then found", async (fault) => {
    const heard = hearing();
    const told = await tell(await given());
    await permit(told, "maintainer");
    await react(told, { login: "maintainer", content: "+1" });
    await misbehave(`/repos/${told.place}/issues/comments/`, [fault, fault]);
    await lookAt(told, 5 * minuteMs);
    expect(await nextLook(told)).toBe(8);
    await evictDurableObject(stubOf(told.threadId));
    await lookAt(told, 10 * minuteMs);
    expect([heard, await nextLook(told)]).toEqual([[], 15]);
    await lookAt(told, 15 * minuteMs);
    await until("the word at the task", async () => heard.length === 1);
    expect(await outcomes(told)).toHaveLength(1);
  });

  test.each(["primary_limit", "429"])(
    "[R10] [T14] where GitHub asks us to wait (%s), no thread of its owner looks before",
    async (fault) => {
      const heard = hearing();
      const told = await tell(await given());
      const place = told.place.replace("/app", "/other");
      const threadId = threadIdOf("github", place, "issue:1");
      const asked = triggerIn({ threadId, place, threadKey: "issue:1" }, uniqueName());
      await threadOf(threadId).append({ trigger: asked, verdict: verdict("record") });
      const follow = (taskId: string) => threadOf(threadId).subscribe({ taskId, decisionId: makeId("dec", taskId), triggerId: asked.id });
      const other = await tell({ threadId, place, threadKey: "issue:1", asked, follow, number: "1" });
      for (const each of [told, other]) {
        await permit(each, "maintainer");
        await react(each, { login: "maintainer", content: "+1" });
      }
      await misbehave(`/repos/${told.place}/issues/comments/`, [fault], 1_800);
      await lookAt(told, first);
      const waits = await nextLook(told);
      expect(waits).toBeGreaterThanOrEqual(fault === "429" ? 35 : 20);
      await lookAt({ ...other, saidMs: told.saidMs }, first + minuteMs);
      expect(await looksAt(other)).toEqual([]);
      expect(heard).toEqual([]);
      await lookAt(told, (waits ?? 0) * minuteMs + minuteMs);
      await lookAt({ ...other, saidMs: told.saidMs }, (waits ?? 0) * minuteMs + minuteMs);
      await until("both words", async () => heard.length === 2);
    },
  );

  test("[T14] a person of whom GitHub does not say whether they are of the team is asked about again", async () => {
    const heard = hearing();
    const told = await tell(await given());
    await permit(told, "maintainer");
    await react(told, { login: "maintainer", content: "+1" });
    await misbehave(`/repos/${told.place}/collaborators/`, ["503"]);
    await lookAt(told, last);
    expect([heard, await nextLook(told)]).toEqual([[], 5_040]);
    await lookAt(told, 5_041 * minuteMs);
    await until("the word at the task", async () => heard.length === 1);
  });

  test("[T14] without a credential nobody looks", () => {
    const bare = { ...config, github: { ...config.github, token: null, app: null } };
    expect(github.reactions?.(bare, async () => null)).toBeNull();
    expect(github.reactions?.(config, async () => null)).not.toBeNull();
  });
});
