import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { sweepFailedDeliveries, sweptHooks } from "../../src/entry/redelivery.ts";
import type { Env } from "../../src/env.ts";
import { newApp } from "./github-app.ts";
import { commentOn, control, deliver } from "./github-deliveries.ts";

const bindings = env as unknown as Env;
const hourMs = 60 * 60_000;
type Attempt = { id: number; guid: string; status_code: number; redelivery: boolean };
const attemptsOf = async (hook: string): Promise<Attempt[]> => (await control(`deliveries?hook=${hook}`)).json();
const again = async (hook: string) => (await attemptsOf(hook)).filter(({ redelivery }) => redelivery).map(({ guid }) => guid);
let ids = 0;
const listed = (guid: string, hoursAgo: number, status_code = 503, event = "issue_comment") => ({
  id: ++ids,
  guid,
  delivered_at: new Date(Date.now() - hoursAgo * hourMs).toISOString(),
  status_code,
  event,
});
const hookOf = async (id: string) => (await sweptHooks(bindings.DB)).find(({ hook }) => hook.id === id);

/** A signed delivery that says which webhook it comes from. */
async function heard(hook: string, of: string, place: string): Promise<void> {
  const headers = { "x-github-hook-id": hook, "x-github-hook-installation-target-type": of };
  expect(
    (await deliver("ping", { zen: "x", repository: { full_name: place }, organization: { login: place.split("/")[0] } }, { headers }))
      .status,
  ).toBe(202);
}

test("[R2] what GitHub could not deliver within three days is asked for again, once, and the cursor remembers how far", async () => {
  await heard("71", "repository", "sweep/app");
  const attempts = [
    listed("ok", 1, 202),
    listed("fail", 2),
    listed("limited", 3, 429),
    listed("ancient", 80),
    listed("mended", 5),
    listed("mended", 4, 200),
  ];
  await control("deliveries", { hook: "71", attempts });
  await sweepFailedDeliveries(bindings, Date.now());
  expect((await again("71")).sort()).toEqual(["fail", "limited"]);
  await sweepFailedDeliveries(bindings, Date.now() + 60_000);
  expect(await again("71")).toHaveLength(2);
  await sweepFailedDeliveries(bindings, Date.now() + 6 * 60_000);
  expect(await again("71")).toHaveLength(2);
  const after = await hookOf("71");
  expect(after?.state).toMatchObject({ redelivered: 2, givenUp: 0, problem: null, scan: null });
  expect(after?.state?.throughMs).toBeGreaterThan(Date.now() - 10 * 60_000);
});

test("at most twenty a run; a list of many pages goes on where the last run ended, and none is forgotten", async () => {
  await heard("72", "repository", "sweep/many");
  await control("deliveries", {
    hook: "72",
    attempts: [
      ...Array.from({ length: 700 }, (_, i) => listed(`ok${i}`, 1 + i / 1_000, 202)),
      ...Array.from({ length: 30 }, (_, i) => listed(`fail${i}`, 20 + i / 100)),
    ],
  });
  let nowMs = Date.now();
  await sweepFailedDeliveries(bindings, nowMs);
  expect(await again("72")).toEqual([]);
  expect((await hookOf("72"))?.state?.scan).not.toBeNull();
  const counts: number[] = [];
  for (let run = 0; run < 6; run++) {
    nowMs += 6 * 60_000;
    await sweepFailedDeliveries(bindings, nowMs);
    counts.push((await again("72")).length);
  }
  expect(Math.max(...counts.map((count, i) => count - (counts[i - 1] ?? 0)))).toBeLessThanOrEqual(20);
  expect(new Set(await again("72")).size).toBe(30);
  expect(await again("72")).toHaveLength(30);
});

test("a delivery that always fails is given up, and says so", async () => {
  await heard("73", "organization", "sweep-org/app");
  await control("deliveries", { hook: "73", attempts: Array.from({ length: 6 }, (_, i) => listed("broken", 10 + i)) });
  await sweepFailedDeliveries(bindings, Date.now());
  expect(await again("73")).toEqual([]);
  expect((await hookOf("73"))?.state).toMatchObject({ givenUp: 1, redelivered: 0 });
});

test("a webhook that our token may not list is a sentence, and does not keep the others from their sweep", async () => {
  await heard("74", "integration", "sweep/denied");
  await heard("75", "repository", "sweep/after");
  await control("deliveries", { hook: "75", attempts: [listed("late", 1)] });
  await sweepFailedDeliveries(bindings, Date.now() + 60 * 60_000);
  expect((await hookOf("74"))?.state?.problem).toMatch(/GITHUB_TOKEN|App/);
  expect(await again("75")).toEqual(["late"]);
});

test("a fault of GitHub leaves the cursor where it was", async () => {
  await heard("76", "repository", "sweep/fault");
  await control("deliveries", { hook: "76", attempts: [listed("later", 1)] });
  await control("faults", { on: "/repos/sweep/fault/hooks/76/deliveries", faults: ["500"] });
  await sweepFailedDeliveries(bindings, Date.now());
  expect((await hookOf("76"))?.state).toMatchObject({ throughMs: 0, problem: null });
  await sweepFailedDeliveries(bindings, Date.now() + 6 * 60_000);
  expect(await again("76")).toEqual(["later"]);
});

test("an App lists and repeats by its own word", async () => {
  const app = await newApp({ "sweep/by-app": 5 });
  await heard("77", "integration", "sweep/by-app");
  await control("deliveries", { hook: "app", attempts: [listed("for-app", 1)] });
  const withApp = { ...bindings, GITHUB_APP_ID: app.id, GITHUB_APP_PRIVATE_KEY: app.privateKey } as Env;
  await sweepFailedDeliveries(withApp, Date.now() + 3 * 60 * 60_000);
  expect(await again("app")).toEqual(["for-app"]);
});

test("a webhook without its headers, or with a place that is no address, is not noted", async () => {
  const before = (await sweptHooks(bindings.DB)).length;
  await deliver("issue_comment", commentOn("sweep/bare", { body: "x" }));
  await deliver(
    "ping",
    { repository: { full_name: "../../x/y" } },
    { headers: { "x-github-hook-id": "99", "x-github-hook-installation-target-type": "repository" } },
  );
  expect(await sweptHooks(bindings.DB)).toHaveLength(before);
});
