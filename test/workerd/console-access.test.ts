import { createExecutionContext, evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { app } from "../../src/entry/app.ts";
import { boardName, type Env } from "../../src/env.ts";
import { asBrowser, asOperator, bindings, ok, openBoard, origin, request, signIn } from "./console-support.ts";

const withEnv = (changes: Partial<Env>, path: string, init: RequestInit = {}): Promise<Response> =>
  Promise.resolve(app.fetch(new Request(`${origin}${path}`, init), { ...bindings, ...changes }, createExecutionContext()));

const ticketOf = async (answer: Promise<Response>): Promise<string> => (await ok<{ ticket: string }>(answer)).ticket;

test("without a session, or with a wrong token, nothing is read and the answer says what to do", async () => {
  const none = await request("/api/console/tasks");
  expect(none.status).toBe(401);
  expect(await none.json()).toMatchObject({ message: "Sign in with the operator token first." });
  expect((await request("/api/console/tasks", { headers: { authorization: "Bearer wrong" } })).status).toBe(401);
  const wrong = await request("/api/console/session", { method: "POST", headers: { origin }, body: '{"token":"wrong"}' });
  expect(wrong.status).toBe(401);
  expect(wrong.headers.get("set-cookie")).toBeNull();
});

test("a console without its operator token is closed with a 503 that names it", async () => {
  for (const OPERATOR_TOKEN of ["", "  "]) {
    const response = await withEnv({ OPERATOR_TOKEN }, "/api/console/tasks", { headers: { authorization: "Bearer test-operator-token" } });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ message: expect.stringContaining("OPERATOR_TOKEN is missing") });
  }
});

test("the token is exchanged for a cookie that no script reads and no other site sends", async () => {
  const response = await request("/api/console/session", {
    method: "POST",
    headers: { origin },
    body: JSON.stringify({ token: "test-operator-token" }),
  });
  const cookie = response.headers.get("set-cookie") ?? "";
  for (const part of ["HttpOnly", "SameSite=Strict", "Secure", "Path=/api/console", "Max-Age=43200"]) expect(cookie).toContain(part);
  expect(cookie).not.toContain("test-operator-token");
  expect(response.headers.get("cache-control")).toBe("no-store");
});

test("a change with the cookie needs our own origin; a read does not", async () => {
  const cookie = await signIn();
  expect((await asBrowser(cookie, "GET", "tasks", {})).status).toBe(200);
  for (const headers of [{}, { origin: "null" }, { origin: "https://evil.test" }, { origin: "https://switchyard.test.evil.test" }])
    expect((await asBrowser(cookie, "POST", "ticket", headers)).status).toBe(403);
  expect((await asBrowser(cookie, "POST", "ticket")).status).toBe(200);
});

test("a bearer token works without an origin, and not from another page", async () => {
  expect((await asOperator("POST", "ticket")).status).toBe(200);
  const evil = await request("/api/console/ticket", {
    method: "POST",
    headers: { authorization: "Bearer test-operator-token", origin: "https://evil.test" },
  });
  expect(evil.status).toBe(403);
});

test("a ticket opens the board once, and only from our own page", async () => {
  const cookie = await signIn();
  const ticket = await ticketOf(asBrowser(cookie, "POST", "ticket"));
  for (const headers of [{}, { origin: "null" }, { origin: "https://evil.test" }])
    expect(await (await openBoard(ticket, headers as Record<string, string>)).first).toEqual({ closed: 4401 });
  const board = await openBoard(ticket);
  expect(await board.first).toMatchObject({ state: { tasks: expect.anything() } });
  await evictDurableObject(bindings.BOARD.getByName(boardName) as unknown as DurableObjectStub);
  expect(await (await openBoard(ticket)).first).toEqual({ closed: 4401 });
  expect(await (await openBoard("forged")).first).toEqual({ closed: 4401 });
});

test("a session token is not a ticket and a ticket is not a session", async () => {
  const cookie = await signIn();
  const ticket = await ticketOf(asBrowser(cookie, "POST", "ticket"));
  expect(await (await openBoard(cookie.split("=")[1] ?? "")).first).toEqual({ closed: 4401 });
  expect((await asBrowser(`switchyard_console=${ticket}`, "GET", "tasks")).status).toBe(401);
});

test("signing out ends the session for good: its cookie, its sockets and its tickets", async () => {
  const cookie = await signIn();
  const board = await openBoard(await ticketOf(asBrowser(cookie, "POST", "ticket")));
  const spare = await ticketOf(asBrowser(cookie, "POST", "ticket"));
  await board.first;
  expect((await asBrowser(cookie, "POST", "session/end")).status).toBe(200);
  expect(await board.closed).toBe(4403);
  await evictDurableObject(bindings.BOARD.getByName(boardName) as unknown as DurableObjectStub);
  expect((await asBrowser(cookie, "GET", "tasks")).status).toBe(401);
  expect(await (await openBoard(spare)).first).toEqual({ closed: 4401 });
  expect((await asBrowser(await signIn(), "GET", "tasks")).status).toBe(200);
});

test("another operator token ends every session at once", async () => {
  const cookie = await signIn();
  const response = await withEnv({ OPERATOR_TOKEN: "rotated" }, "/api/console/tasks", { headers: { cookie } });
  expect(response.status).toBe(401);
});

test("whether there is a session is asked without being refused: none yet, one that ended, one that is open, no console at all", async () => {
  const look = (cookie: string) => ok(asBrowser(cookie, "GET", "session", {}));
  expect(await ok(request("/api/console/session"))).toEqual({ open: false, message: null });
  const cookie = await signIn();
  expect(await look(cookie)).toEqual({ open: true, message: null });
  expect((await asBrowser(cookie, "POST", "session/end")).status).toBe(200);
  await evictDurableObject(bindings.BOARD.getByName(boardName) as unknown as DurableObjectStub);
  expect(await look(cookie)).toEqual({ open: false, message: "This session has ended. Sign in again." });
  const closed = await withEnv({ OPERATOR_TOKEN: "" }, "/api/console/session");
  expect(await closed.json()).toMatchObject({ open: false, message: expect.stringContaining("OPERATOR_TOKEN is missing") });
});
