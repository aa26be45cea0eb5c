import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { threadIdOf } from "../../src/core/ids.ts";
import { placeLimits, sourceLimit } from "../../src/core/rate-limit.ts";
import type { Env } from "../../src/env.ts";
import { admit, type Comer, limitedPlaces, shareLimits } from "../../src/storage/rate-limits.ts";
import { asOperator, ok } from "./console-support.ts";
import { commentOn, deliveryOf, person, worker } from "./github-deliveries.ts";

const { DB, THREAD } = env as unknown as Env;
const countOf = async (table: string): Promise<number> =>
  (await DB.prepare(`SELECT COUNT(*) AS n FROM ${table}`).first<{ n: number }>())?.n ?? 0;
const push = (place: string) => ({
  ref: "refs/heads/main",
  after: "a".repeat(40),
  repository: { full_name: place, id: 7 },
  sender: person("ci[bot]", "Bot"),
  commits: [],
});

/** The same database as another isolate sees it. */
const elsewhere = (broken = false): D1Database =>
  new Proxy(DB, {
    get(db, key) {
      if (broken) throw new Error("D1 is away");
      return (Reflect.get(db, key) as (...args: unknown[]) => unknown).bind(db);
    },
  });

test("[G6] [R23] ten thousand noise deliveries write a bounded number of rows and call no model; then the place may speak again", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2026-11-30T12:00:00Z") });
  const statuses = new Map<number, number>();
  let retryAfter = "";
  for (let sent = 0; sent < 10_000; sent += 50)
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const after = (sent + i).toString(16).padStart(40, "0");
        const response = await worker.fetch(await deliveryOf("push", { ...push("flood/app"), after }));
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        if (response.status === 429) retryAfter = response.headers.get("retry-after") ?? "";
        await response.arrayBuffer();
      }),
    );
  const { burst } = placeLimits.programs;
  expect([...statuses.entries()].sort()).toEqual([
    [202, burst],
    [429, 10_000 - burst],
  ]);
  expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
  const { info } = await THREAD.getByName(threadIdOf("github", "flood/app", "branch:main")).read({ afterSeq: 0, limit: 1 });
  expect(info.headSeq).toBe(burst);
  expect(await countOf("rate_limits")).toBeLessThanOrEqual(4);
  expect(await countOf("recent_triggers")).toBeLessThanOrEqual(2);
  const asked = (await (await fetch("http://model.test/control/requests?contains=flood/app")).json()) as unknown[];
  expect(asked).toEqual([]);

  // Programs fill their own bucket: a person in the same place is heard meanwhile.
  const said = await worker.fetch(await deliveryOf("issue_comment", commentOn("flood/app", { login: "renovate[bot]", body: "x" })));
  expect(said.status).toBe(429);
  const person2 = await worker.fetch(
    await deliveryOf("issues", {
      action: "labeled",
      repository: { full_name: "flood/app", id: 7 },
      sender: person("dev"),
      issue: { number: 3, title: "t", user: person("dev"), author_association: "OWNER" },
      label: { name: "bug" },
    }),
  );
  expect(person2.status).toBe(202);

  vi.setSystemTime(Date.now() + 60_000);
  expect((await worker.fetch(await deliveryOf("push", push("flood/app")))).status).toBe(202);
  await vi.waitFor(async () => {
    const { limited } = await ok<{ limited: { place: string; refused: number; sender: string }[] }>(asOperator("GET", "rules/limits"));
    expect(limited).toMatchObject([{ source: "github", place: "flood/app", sender: "programs" }]);
    expect(limited[0]?.refused).toBeGreaterThanOrEqual(10_000 - burst);
  });
  vi.useRealTimers();
}, 300_000);

describe("buckets of several isolates", () => {
  const comer = (place: string): Comer => ({ source: "other", place, sender: "people" });
  const letIn = async (db: D1Database, where: Comer, times: number, nowMs: number): Promise<number> => {
    const ends = await Promise.allSettled(Array.from({ length: times }, () => admit(db, where, nowMs)));
    for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject({ kind: "rate_limited" });
    return ends.filter(({ status }) => status === "fulfilled").length;
  };
  const nowMs = 1_900_000_000_000;

  test("a new isolate begins with what another one used up, and counts are added", async () => {
    const one = elsewhere();
    expect(await letIn(one, comer("a"), 900, nowMs)).toBe(placeLimits.people.burst);
    await shareLimits(one, nowMs);
    expect(await letIn(elsewhere(), comer("a"), 10, nowMs)).toBe(0);
    const two = elsewhere();
    await letIn(two, comer("a"), 20, nowMs + 1);
    await shareLimits(two, nowMs + 1);
    expect((await limitedPlaces(DB)).find(({ place }) => place === "a")).toMatchObject({ refused: 900 - placeLimits.people.burst + 20 });
  });

  test("a quiet place writes nothing", async () => {
    const db = elsewhere();
    const before = await countOf("rate_limits");
    await letIn(db, { ...comer("quiet"), source: "calm" }, 5, nowMs);
    await shareLimits(db, nowMs);
    expect(await countOf("rate_limits")).toBe(before);
  });

  test("a sender that names ever new places is stopped by its source's bucket", async () => {
    const db = elsewhere();
    let came = 0;
    for (let i = 0; i < 5_000; i++) came += await letIn(db, { source: "many", place: `p${i}`, sender: "people" }, 1, nowMs);
    expect(came).toBe(sourceLimit.burst);
    await shareLimits(db, nowMs);
    expect((await limitedPlaces(DB)).filter(({ source }) => source === "many")).toMatchObject([{ place: "all places together" }]);
  });

  test("[T10] guests of all pages together never use up what the team may say, and their own pages bound each of them", async () => {
    const db = elsewhere();
    const page = (name: string, sender: Comer["sender"]): Comer => ({ source: "pages", place: name, sender });
    expect(await letIn(db, page("thr_one", "guests"), 100, nowMs)).toBe(placeLimits.guests.burst);
    let came = placeLimits.guests.burst;
    for (let i = 0; i < 120; i++) came += await letIn(db, page(`thr_${i}`, "guests"), placeLimits.guests.burst + 1, nowMs);
    expect(came).toBe(sourceLimit.burst);
    expect(await letIn(db, page("thr_team", "people"), 10, nowMs)).toBe(10);
    await shareLimits(db, nowMs);
    const limited = (await limitedPlaces(DB)).filter(({ source }) => source === "pages");
    expect(limited.map(({ place, sender }) => [place, sender])).toContainEqual(["all places together", "guests"]);
    // Another isolate hears of it under the same bounds.
    expect(await letIn(elsewhere(), page("thr_new", "guests"), 5, nowMs)).toBe(0);
  });

  test("while D1 is away the door stays open, within its own count", async () => {
    const db = elsewhere(true);
    expect(await letIn(db, comer("b"), 900, nowMs)).toBe(placeLimits.people.burst);
    await shareLimits(db, nowMs);
  });
});
