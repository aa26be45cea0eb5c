// D1 is away: what does not need it happens all the same, and whoever needs it hears so.
import { createExecutionContext, evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { app } from "../../src/entry/app.ts";
import type { Env } from "../../src/env.ts";
import { deliveryOf } from "./github-deliveries.ts";
import { TestDaemon } from "./test-daemon.ts";
import { stubOf, uniqueName } from "./thread-fixtures.ts";
import { bindings, invite, origin, Page, session } from "./widget-page.ts";

const broken = {
  prepare(): never {
    throw new Error("D1 is away");
  },
  batch: () => Promise.reject(new Error("D1 is away")),
} as unknown as D1Database;

const without = async (request: Request): Promise<{ status: number; message: string }> => {
  const response = await app.fetch(request, { ...bindings, DB: broken } as Env, createExecutionContext());
  return { status: response.status, message: (await response.json<{ message?: string }>()).message ?? "" };
};

const operator = { authorization: "Bearer test-operator-token" };
const ask = (path: string, init: RequestInit = {}): Promise<{ status: number; message: string }> =>
  without(new Request(`${origin}/api/${path}`, { ...init, headers: { "content-type": "application/json", ...init.headers } }));

test("the page of a person who is revoked while D1 is away is closed for good, and the operator hears which part is missing", async () => {
  const { token, personId } = await invite(uniqueName());
  const page = await Page.ready(await session(token));
  const answer = await ask(`console/people/${personId}/revoke`, { method: "POST", headers: operator });
  expect(answer).toMatchObject({ status: 503, message: expect.stringMatching(/pages are closed.*record could not be changed.*again/) });
  expect((await page.untilClosed()).code).toBe(4403);
  await evictDurableObject(stubOf(page.rootThreadId));
  expect(await bindings.THREAD.getByName(page.rootThreadId).revoke({ principalId: personId })).toEqual({ closed: 0 });
});

test("the machine that is revoked while D1 is away is disconnected and refused, and the operator hears which part is missing", async () => {
  const daemon = await TestDaemon.enrol("revoke-without-d1");
  await daemon.connect();
  const answer = await ask(`console/endpoints/${daemon.endpointId}/revoke`, { method: "POST", headers: operator });
  expect(answer).toMatchObject({ status: 503, message: expect.stringContaining("connection is closed") });
  expect((await daemon.closing()).code).toBe(4410);
  await expect(daemon.dial()).rejects.toThrow(/410/);
});

const body = JSON.stringify({ code: "AAAAA-AAAAA", name: "x", publicKey: btoa("k".repeat(32)), platform: "linux" });

test.each<[string, RequestInit]>([
  ["console/people", { headers: operator }],
  ["console/tasks", { headers: operator }],
  ["console/endpoints", { headers: operator }],
  ["console/github", { headers: operator }],
  ["console/people", { method: "POST", headers: operator, body: JSON.stringify({ name: "Ana", role: "member" }) }],
  ["console/endpoints/enrolment", { method: "POST", headers: operator }],
  ["daemon/enrol", { method: "POST", body }],
  ["daemon/connect?endpoint=ep_aaaaaaaaaaaaaa", { headers: { upgrade: "websocket" } }],
])("%s is 503 with a sentence", async (path, init) => {
  expect(await ask(path, init)).toMatchObject({ status: 503, message: expect.stringMatching(/database cannot be reached/) });
});

test("a signed ping is 503 with a sentence", async () => {
  expect(await without(await deliveryOf("ping", {}))).toMatchObject({ status: 503, message: expect.stringContaining("database") });
});
