// Versions of one text, delivered in any order through the door: a thread, the router and a worker have them in theirs.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { makeId, threadIdOf } from "../../src/core/ids.ts";
import { routerName } from "../../src/env.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { WorkerSessionRpc } from "../../src/protocol/rpc.ts";
import { EditionStore, editionTables } from "../../src/storage/edition-store.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { checkHistory } from "../support/history.ts";
import { type Answer, control, deliver, person } from "./github-deliveries.ts";
import { at, eventsOf, stubOf, threadOf, uniqueName } from "./thread-fixtures.ts";
import { bindings, eventually } from "./widget-page.ts";

beforeAll(async () => {
  await migrated(bindings.DB);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const heard: string[] = [];
/** What workers are handed, in their order; a row that is handed over again is known by its number. */
function watchWorkers(): void {
  heard.length = 0;
  const known = new Set<number>();
  vi.spyOn(WorkerSession.prototype, "deliver").mockImplementation(async ({ rows }: Parameters<WorkerSessionRpc["deliver"]>[0]) => {
    for (const { row } of rows) {
      if (row.kind === "trigger" && !known.has(row.seq)) heard.push(`${row.trigger.kind.split(".")[1]}: ${row.trigger.text}`);
      known.add(row.seq);
    }
    return { throughSeq: Math.max(...rows.map(({ row }) => row.seq)) };
  });
}

const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
const outcomes = ({ triggers = [] }: Answer) => triggers.map(({ outcome }) => outcome);
const routerHas = async (triggerId: string): Promise<boolean> =>
  (await bindings.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 10_000, about: triggerId })).some(
    ({ event }) => event.kind === "router.inbox",
  );

/** An issue in a repository of its own, where "dev" may write; each version is made a second after the one before. */
async function issueOf() {
  const place = `editions/${uniqueName()}`;
  await (await control("permission", { place, login: "dev", permission: "write" })).arrayBuffer();
  const threadId = threadIdOf("github", place, "issue:12");
  const bornMs = Date.now();
  const base = { repository: { full_name: place, id: 7 }, sender: person("dev") };
  const version = (id: number, body: string, n: number) => ({
    id,
    body,
    html_url: null,
    user: person("dev"),
    author_association: "OWNER",
    created_at: iso(bornMs),
    updated_at: iso(bornMs + n * 1_000),
  });
  const issue = (body: string, n: number) => ({ number: 12, title: "It squeaks", ...version(1012, body, n) });
  const comment = (id: number, action: string, body: string, n = 0, before?: string) =>
    deliver("issue_comment", {
      action,
      ...base,
      ...(before === undefined ? {} : { changes: { body: { from: before } } }),
      issue: issue("", 0),
      comment: version(id, body, n),
    });
  const body = (action: string, text: string, n = 0) => deliver("issues", { action, ...base, issue: issue(text, n) });
  const said = async () =>
    (await eventsOf(threadId, "thread.accepted")).map(
      ({ event: { trigger } }) => `${trigger.kind.split(".")[1]}: ${trigger.text.replace("It squeaks\n\n", "")}`,
    );
  const whole = async () =>
    checkHistory([{ object: threadId, kind: "thread", events: await threadOf(threadId).events({ afterSeq: 0, limit: 1_000 }) }]);
  /** The time that an edit waits is over. */
  const later = () =>
    at(Date.now() + limits.originalWaitMs + 1_000, async () => {
      await runDurableObjectAlarm(stubOf(threadId));
    });
  return { threadId, comment, body, said, whole, later };
}

describe("an edit before its original", () => {
  test("[T20] [R5] of a comment waits, survives an eviction, and reaches router and worker after it, in the order in which it was made", async () => {
    watchWorkers();
    const { threadId, comment, said, whole } = await issueOf();
    const { answer } = await comment(1, "created", "the first");
    await threadOf(threadId).subscribe({ taskId: makeId("tsk", threadId), decisionId: "dec_e", triggerId: answer.triggers?.[0]?.id ?? "" });
    expect(outcomes((await comment(2, "edited", "second edit", 2)).answer)).toEqual(["held"]);
    expect(outcomes((await comment(2, "edited", "first edit", 1)).answer)).toEqual(["held"]);
    await comment(3, "created", "another is not held up");
    await evictDurableObject(stubOf(threadId));
    expect(outcomes((await comment(2, "edited", "first edit", 1)).answer)).toEqual(["held"]);
    expect(await said()).toEqual(["created: the first", "created: another is not held up"]);
    expect(outcomes((await comment(2, "created", "as it was")).answer)).toEqual(["accepted"]);
    const order = ["the first", "another is not held up", "as it was"].map((text) => `created: ${text}`);
    expect(await said()).toEqual([...order, "edited: first edit", "edited: second edit"]);
    await eventually("the rows at the worker", () => heard.length === 5);
    expect(heard).toEqual(await said());
    expect(outcomes((await comment(2, "edited", "second edit", 2)).answer)).toEqual(["duplicate"]);
    expect(await whole()).toEqual([]);
  });

  test("[R5] is a row by itself when the original does not come in time; then the late one is kept, and no worker is shown it", async () => {
    watchWorkers();
    const { threadId, comment, said, whole, later } = await issueOf();
    const { answer } = await comment(1, "created", "the first");
    await threadOf(threadId).subscribe({ taskId: makeId("tsk", threadId), decisionId: "dec_e", triggerId: answer.triggers?.[0]?.id ?? "" });
    expect(outcomes((await comment(2, "edited", "as it reads now", 1)).answer)).toEqual(["held"]);
    await evictDurableObject(stubOf(threadId));
    await later();
    await eventually("the row", async () => (await said()).length === 2);
    const late = await comment(2, "created", "@switchyard-bot as it was");
    expect(outcomes(late.answer)).toEqual(["stale"]);
    expect(outcomes((await comment(2, "created", "@switchyard-bot as it was")).answer)).toEqual(["duplicate"]);
    expect(await threadOf(threadId).row({ triggerId: late.answer.triggers?.[0]?.id ?? "" })).toBeNull();
    await eventually("the rows at the worker", () => heard.length === 2);
    expect(heard).toEqual(["created: the first", "edited: as it reads now"]);
    expect(await eventsOf(threadId, "thread.stale")).toHaveLength(1);
    expect(await whole()).toEqual([]);
  });

  test("[T20] [R1] [R5] a late original that asks us for work is judged all the same, by its newest words", async () => {
    const { threadId, comment, said, whole, later } = await issueOf();
    const [old, now] = ["@switchyard-bot please oil the gate", "@switchyard-bot please paint the gate"];
    expect(outcomes((await comment(2, "edited", now, 1, old)).answer)).toEqual(["held"]);
    await later();
    await eventually("the row", async () => (await said()).length === 1);
    const { answer } = await comment(2, "created", old);
    expect(outcomes(answer)).toEqual(["accepted"]);
    expect(await said()).toEqual([`edited: ${now}`, `created: ${now}`]);
    const triggerId = answer.triggers?.[0]?.id ?? "";
    expect(await threadOf(threadId).row({ triggerId })).toMatchObject({ trigger: { addressed: true }, verdict: { outcome: "request" } });
    await eventually("the router has it", () => routerHas(triggerId));
    expect(await whole()).toEqual([]);
  });

  test("[R5] of an issue's own words waits alike; other events of the issue do not", async () => {
    const { threadId, body, comment, said, whole } = await issueOf();
    expect(outcomes((await body("edited", "as it reads now", 1)).answer)).toEqual(["held"]);
    await comment(2, "created", "me too");
    await evictDurableObject(stubOf(threadId));
    expect(outcomes((await body("opened", "as it was")).answer)).toEqual(["accepted"]);
    expect(await said()).toEqual(["created: me too", "opened: as it was", "edited: as it reads now"]);
    expect(outcomes((await body("edited", "once more", 2)).answer)).toEqual(["accepted"]);
    expect(outcomes((await body("edited", "in between", 1)).answer)).toEqual(["stale"]);
    expect(await whole()).toEqual([]);
  });
});

test("[R5] a deletion before its original waits too; after it nothing of the text comes back, not even a request", async () => {
  const { threadId, comment, said, whole, later } = await issueOf();
  expect(outcomes((await comment(2, "deleted", "", 1)).answer)).toEqual(["held"]);
  expect(outcomes((await comment(2, "edited", "changed", 1)).answer)).toEqual(["held"]);
  await evictDurableObject(stubOf(threadId));
  await comment(2, "created", "as it was");
  expect(await said()).toEqual(["created: as it was", "edited: changed", "deleted: "]);
  await comment(3, "deleted", "", 1);
  await later();
  await eventually("the row", async () => (await said()).length === 4);
  expect(outcomes((await comment(3, "created", "@switchyard-bot please oil the gate")).answer)).toEqual(["stale"]);
  expect(outcomes((await comment(3, "edited", "@switchyard-bot please oil it", 1)).answer)).toEqual(["stale"]);
  expect(await said()).toHaveLength(4);
  expect(await whole()).toEqual([]);
});

test("however often a text was edited, its newest version and those that wait are all that is read", async () => {
  await runInDurableObject(stubOf(threadIdOf("github", `editions/${uniqueName()}`, "issue:1")), (_, { storage }) => {
    storage.sql.exec(editionTables);
    const editions = new EditionStore(storage.sql);
    const put = (n: number, what: "edit" | "deletion", seq: number | null): void =>
      editions.put({ subject: "issues:1", triggerId: `trg_${n}`, what, at: iso(n * 1_000), seq, dueMs: seq === null ? n : null });
    for (let n = 10; n < 60; n++) put(n, "edit", n);
    put(60, "edit", null);
    expect(editions.of("issues:1").map(({ triggerId }) => triggerId)).toEqual(["trg_59", "trg_60"]);
    put(5, "deletion", 61);
    expect(editions.of("issues:1").map(({ triggerId }) => triggerId)).toEqual(["trg_5", "trg_60"]);
    expect(editions.of("issues:2")).toEqual([]);
  });
});
