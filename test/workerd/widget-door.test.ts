import { evictDurableObject } from "cloudflare:test";
import { describe, expect, test } from "vitest";
import { makeId } from "../../src/core/ids.ts";
import { guestTicketLimit, placeLimits } from "../../src/core/rate-limit.ts";
import { rootThreadIdOf } from "../../src/core/thread.ts";
import { app } from "../../src/entry/app.ts";
import { readConfig } from "../../src/env.ts";
import { limits } from "../../src/protocol/limits.ts";
import { widgetClose, widgetProtocol } from "../../src/protocol/widget-frames.ts";
import { listPeople, personById, redeemInvite, revokePerson } from "../../src/storage/people.ts";
import { signToken, verifyToken } from "../../src/storage/tokens.ts";
import { at, uniqueName } from "./thread-fixtures.ts";
import { bindings, fetchWorker, invite, origin, Page, post, session, ticket } from "./widget-page.ts";

const secret = readConfig(bindings).sessionSecret ?? "";

describe("sessions", () => {
  test("without an invite it is a new guest each time", async () => {
    const response = await post("/api/widget/session", { origin });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ you: { role: "guest", name: "Guest" } });
    const [one, two] = [await ticket(await session()), await ticket(await session())];
    expect(one.rootThreadId).not.toBe(two.rootThreadId);
  });

  test("an invite makes its person, once", async () => {
    const { token, personId } = await invite("Member");
    const first = await post("/api/widget/session", { origin, invite: token });
    expect(await first.json()).toMatchObject({ you: { role: "member", name: "Member" } });
    const second = await post("/api/widget/session", { origin, invite: token });
    expect(second.status).toBe(401);
    expect(await second.json()).toMatchObject({ error: "unauthorised", message: expect.stringMatching(/used already/) });
    expect(await personById(bindings.DB, personId)).toMatchObject({ role: "member", revokedMs: null });
  });

  test("of ten who use one invite at once exactly one gets in", async () => {
    const { token } = await invite("Member");
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async () => (await post("/api/widget/session", { origin, invite: token })).status),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  });

  test("an unknown and an old invite say what is wrong with them", async () => {
    const unknown = await post("/api/widget/session", { origin, invite: "nothing" });
    expect([unknown.status, (await unknown.json<{ message: string }>()).message]).toEqual([401, expect.stringMatching(/not known/)]);
    const { token } = await invite("Member");
    await expect(redeemInvite(bindings.DB, token, Date.now() + limits.inviteMs + 1)).rejects.toThrow(/too old/);
  });

  test("two invites for the same owner lead to the same person and the same root", async () => {
    const first = await invite("Owner", "owner", "prs_owner");
    const second = await invite("Owner", "owner", "prs_owner");
    expect(second.personId).toBe(first.personId);
    const roots = [await ticket(await session(first.token)), await ticket(await session(second.token))].map((each) => each.rootThreadId);
    expect(roots).toEqual([rootThreadIdOf("prs_owner"), rootThreadIdOf("prs_owner")]);
    expect((await listPeople(bindings.DB)).filter((person) => person.id === "prs_owner")).toHaveLength(1);
  });

  test("a revoked person's unused invites die, and a new one does not bring the person back", async () => {
    const { token, personId } = await invite("Member");
    await revokePerson(bindings.DB, personId, Date.now());
    expect((await post("/api/widget/session", { origin, invite: token })).status).toBe(401);
    const again = await invite("Member", "member", personId);
    expect((await post("/api/widget/session", { origin, invite: again.token })).status).toBe(403);
    await expect(revokePerson(bindings.DB, "prs_nobody", Date.now())).rejects.toThrow(/no person/);
  });

  test.each([
    ["another page", { origin: "https://evil.test" }],
    ["no page at all", {}],
    ["a sandboxed page", { origin: "null" }],
  ])("a call from %s is refused", async (_who, headers) => {
    for (const path of ["/api/widget/session", "/api/widget/ticket"]) {
      const response = await fetchWorker(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ origin }),
      });
      expect(response.status).toBe(403);
    }
  });

  test("a page that may not show the widget gets a clear refusal", async () => {
    const response = await post("/api/widget/session", { origin: "https://stranger.test" });
    expect(response.status).toBe(403);
    expect((await response.json<{ message: string }>()).message).toMatch(/stranger\.test.*WIDGET_ORIGINS/);
  });

  test("the origins of the configuration may show it, `*` allows all, and a page that is no longer allowed loses its session", async () => {
    const ask = (widgetOrigins: string | undefined, path: string, body: unknown, headers = {}) =>
      app.request(
        `${origin}${path}`,
        { method: "POST", headers: { origin, "content-type": "application/json", ...headers }, body: JSON.stringify(body) },
        { ...bindings, WIDGET_ORIGINS: widgetOrigins },
      );
    const shop = { origin: "https://shop.test" };
    const given = await ask("https://a.test, https://shop.test", "/api/widget/session", shop);
    expect(given.status).toBe(200);
    expect((await ask("*", "/api/widget/session", shop)).status).toBe(200);
    const { session: token } = await given.json<{ session: string }>();
    const authorization = { authorization: `Bearer ${token}` };
    expect((await ask("https://shop.test", "/api/widget/ticket", {}, authorization)).status).toBe(200);
    expect((await ask(undefined, "/api/widget/ticket", {}, authorization)).status).toBe(403);
  });

  test("under a name that is not among the hosts of the configuration no page is let in: it may be a stranger's that was resolved to us", async () => {
    const ask = (host: string, path: string, more: object = {}) => {
      const headers = { origin: `http://${host}`, "content-type": "application/json", authorization: "Bearer x" };
      const request = { method: "POST", headers, body: JSON.stringify({ origin: `http://${host}`, token: "x" }) };
      return app.request(`http://${host}${path}`, request, { ...bindings, ...more });
    };
    const local = { ALLOWED_HOSTS: "127.0.0.1, localhost,[::1]" };
    for (const host of ["127.0.0.1:8787", "localhost:8787", "[::1]:8787"])
      expect((await ask(host, "/api/widget/session", local)).status).toBe(200);
    for (const path of ["/api/widget/session", "/api/widget/ticket", "/api/console/session", "/api/console/tasks"]) {
      const refused = await ask("evil.test:8787", path, local);
      expect(refused.status).toBe(403);
      expect((await refused.json<{ message: string }>()).message).toMatch(/evil\.test.*ALLOWED_HOSTS/);
    }
    expect((await ask("evil.test:8787", "/api/widget/session")).status).toBe(200);
  });

  test("bad bodies are told what is wrong with them", async () => {
    const bad = async (body: string, status: number, message: RegExp) => {
      const response = await fetchWorker("/api/widget/session", {
        method: "POST",
        headers: { origin, "content-type": "application/json" },
        body,
      });
      expect([response.status, (await response.json<{ message: string }>()).message]).toEqual([status, expect.stringMatching(message)]);
    };
    await bad("{", 400, /JSON/);
    await bad("{}", 400, /^origin/);
    await bad(JSON.stringify({ origin: 7 }), 400, /^origin/);
    await bad(JSON.stringify({ origin: "x".repeat(10_000) }), 413, /KiB/);
  });

  test("without SESSION_SECRET nobody gets in, and the answer names the secret", async () => {
    const { SESSION_SECRET: _secret, ...rest } = bindings;
    const response = await app.request(`${origin}/api/widget/session`, { method: "POST", headers: { origin }, body: "{}" }, rest);
    expect([response.status, (await response.json<{ message: string }>()).message]).toEqual([
      503,
      expect.stringMatching(/SESSION_SECRET is missing/),
    ]);
  });
});

describe("tickets", () => {
  test("a forged, an old and a foreign session get no ticket", async () => {
    const nowMs = Date.now();
    const claims = { sub: "prs_owner", role: "owner", name: "Owner", origin };
    const ask = async (token: string) => (await post("/api/widget/ticket", {}, { authorization: `Bearer ${token}` })).status;
    expect(await ask("nonsense")).toBe(401);
    expect(await ask(await signToken("another-secret-of-thirty-two-by!", "widget-session", claims, nowMs + 60_000, nowMs))).toBe(401);
    expect(await ask(await signToken(secret, "widget-session", claims, nowMs - 1_000, nowMs - 60_000))).toBe(401);
    expect(await ask(await signToken(secret, "console", claims, nowMs + 60_000, nowMs))).toBe(401);
    expect((await post("/api/widget/ticket", {})).status).toBe(401);
  });

  test("an unsigned token is no token", async () => {
    const part = (value: unknown) => btoa(JSON.stringify(value)).replaceAll("=", "");
    const none = `${part({ alg: "none" })}.${part({ sub: "prs_owner", aud: "widget-session", exp: 9_999_999_999 })}.`;
    expect(await verifyToken(secret, "widget-session", none, Date.now())).toBeNull();
  });

  test("a role that the session claims counts for nothing: the list of people says who it is", async () => {
    const { personId } = await invite("Member");
    const nowMs = Date.now();
    const claims = { sub: personId, role: "owner", name: "Boss", origin };
    const page = await Page.ready(await signToken(secret, "widget-session", claims, nowMs + 60_000, nowMs));
    expect(page.frames[0]).toMatchObject({ t: "welcome", you: { role: "member", name: "Member" } });
  });

  test("when the list of people cannot be read, nobody of the team passes", async () => {
    const { token } = await invite("Member");
    const from = await session(token);
    const broken = {
      ...bindings,
      DB: new Proxy(bindings.DB, {
        get: () => () => {
          throw new Error("D1 is away");
        },
      }),
    };
    const response = await app.request(
      `${origin}/api/widget/ticket`,
      { method: "POST", headers: { origin, authorization: `Bearer ${from}` }, body: "{}" },
      broken,
    );
    expect(response.status).toBe(503);
  });
});

describe("the upgrade", () => {
  test("a good ticket opens the socket once; used again it is refused, also after an eviction", async () => {
    const given = await ticket(await session());
    const page = await Page.with(given);
    page.say({ t: "hello", resume: {} });
    await page.until("a welcome", () => page.frames.some((frame) => frame.t === "welcome"));
    expect((await (await Page.with(given)).untilClosed()).code).toBe(widgetClose.unauthorised);
    await evictDurableObject(bindings.THREAD.getByName(given.rootThreadId) as unknown as DurableObjectStub);
    expect(await (await Page.with(given)).untilClosed()).toMatchObject({
      code: widgetClose.unauthorised,
      reason: expect.stringMatching(/used before/),
    });
  });

  test.each([
    ["another origin", { origin: "https://evil.test" }],
    ["the origin null", { origin: "null" }],
    ["no origin", {}],
  ])("with %s it is closed with a reason", async (_name, headers) => {
    const page = await Page.with(await ticket(await session()), headers);
    expect(await page.untilClosed()).toMatchObject({ code: widgetClose.unauthorised, reason: expect.stringMatching(/own page/) });
  });

  test("a wrong, an old, a foreign and no ticket are refused", async () => {
    const { rootThreadId } = await ticket(await session());
    const other = await ticket(await session());
    const nowMs = Date.now();
    const claims = { sub: "gst_x", role: "guest", name: "Guest", origin, jti: "1" };
    const old = await signToken(secret, "widget-ticket", claims, nowMs - 1_000, nowMs - 60_000);
    for (const bad of ["nonsense", old, other.ticket, await session()])
      expect((await (await Page.with({ ticket: bad, rootThreadId })).untilClosed()).code).toBe(widgetClose.unauthorised);
    const none = await fetchWorker(`/api/widget/socket?thread=${rootThreadId}`, {
      headers: { Upgrade: "websocket", origin, "Sec-WebSocket-Protocol": widgetProtocol },
    });
    expect(none.status).toBe(101);
    if (none.webSocket) expect((await new Page(none.webSocket, rootThreadId).untilClosed()).code).toBe(widgetClose.unauthorised);
  });

  test("headers that pose as the Worker's own change nothing", async () => {
    const forged = encodeURIComponent(
      JSON.stringify({ principal: { role: "owner", id: "prs_owner", name: "Owner" }, ticketId: "x", expiresMs: 9e15 }),
    );
    const page = await Page.with(await ticket(await session()), { origin, "x-switchyard-grant": forged });
    page.say({ t: "hello", resume: {} });
    await page.until("a welcome", () => page.frames.some((frame) => frame.t === "welcome"));
    expect(page.frames[0]).toMatchObject({ t: "welcome", you: { role: "guest" } });
  });

  test("a plain request is told to upgrade", async () => {
    expect((await fetchWorker("/api/widget/socket", { headers: { origin } })).status).toBe(426);
  });

  test("[T10] guests of one address get a burst of sessions, then 429 with when to come back; other addresses, and invites, pass", async () => {
    const from = (address: string, more: object = {}) => post("/api/widget/session", { origin, ...more }, { "cf-connecting-ip": address });
    const statuses: number[] = [];
    for (let n = 0; n < 70; n++) statuses.push((await from("192.0.2.1")).status);
    expect(statuses.slice(0, 60).every((status) => status === 200)).toBe(true);
    const refused = await from("192.0.2.1");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await from("192.0.2.2")).status).toBe(200);
    expect((await from("192.0.2.1", { invite: (await invite(uniqueName())).token })).status).toBe(200);
  });

  test("[T10] a guest's page that connects again and again is told when to come back, and no other page is", async () => {
    const [one, other, ours] = [await session(), await session(), await session((await invite(uniqueName())).token)];
    const ask = (token: string) => post("/api/widget/ticket", {}, { authorization: `Bearer ${token}` });
    for (let n = 0; n < guestTicketLimit.burst; n++) expect((await ask(one)).status).toBe(200);
    const refused = await ask(one);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ask(other)).status).toBe(200);
    for (let n = 0; n <= guestTicketLimit.burst; n++) expect((await ask(ours)).status).toBe(200);
  });

  test("[T10] a guest's flood is refused before it is written, and a member's is not", async () => {
    const flood = async (page: Page): Promise<number> => {
      for (let n = 0; n < 40; n++) page.message(`flood-message-${n}`, `message ${n}`);
      await page.until("an answer to each", () => page.frames.filter(({ t }) => t === "ack" || t === "refused").length >= 40);
      return page.frames.filter(({ t }) => t === "refused").length;
    };
    const guest = await Page.ready(await session());
    // Buttons are no messages: they take nothing of what may be said.
    for (let n = 0; n < 40; n++)
      guest.say({ t: "act", clientMsgId: `button-${n}-x`, taskId: makeId("tsk", "x"), threadId: guest.rootThreadId, action: "stop" });
    await guest.until("an answer to each", () => guest.frames.filter(({ t }) => t === "refused").length >= 40);
    guest.frames.length = 0;
    const refused = await flood(guest);
    expect(refused).toBeGreaterThan(5);
    expect(refused).toBeLessThanOrEqual(40 - placeLimits.guests.burst);
    expect(guest.frames.find(({ t }) => t === "refused")).toMatchObject({
      message: expect.stringMatching(/^That was a lot at once, so this was not taken\. Send it again in (a second|\d+ seconds)\.$/),
    });
    expect(guest.closed).toBeNull();
    const { rows } = await bindings.THREAD.getByName(guest.rootThreadId).read({ afterSeq: 0, limit: 100 });
    expect(rows.filter(({ kind }) => kind === "trigger")).toHaveLength(40 - refused);
    expect(await flood(await Page.ready(await session((await invite(uniqueName())).token)))).toBe(0);
  });

  test("[R31] a ticket that was used is not good again after the clock went back", async () => {
    const own = await session((await invite(uniqueName())).token);
    const nowMs = Date.now();
    const given = await at(nowMs, () => ticket(own));
    expect((await at(nowMs, () => Page.with(given))).closed).toBeNull();
    // A connection that comes later looks through the old tickets.
    await at(nowMs + 3_600_000, async () => Page.with(await ticket(own)));
    expect((await (await at(nowMs, () => Page.with(given))).untilClosed()).code).toBe(widgetClose.unauthorised);
  });

  test("a revoked person's socket closes, and neither the old session nor an old ticket opens another", async () => {
    const { token, personId } = await invite("Member");
    const from = await session(token);
    const page = await Page.ready(from);
    const spare = await ticket(from);
    await revokePerson(bindings.DB, personId, Date.now());
    expect(await bindings.THREAD.getByName(page.rootThreadId).revoke({ principalId: personId })).toEqual({ closed: 1 });
    expect((await page.untilClosed()).code).toBe(widgetClose.revoked);
    expect((await post("/api/widget/ticket", {}, { authorization: `Bearer ${from}` })).status).toBe(403);
    expect((await (await Page.with(spare)).untilClosed()).code).toBe(widgetClose.revoked);
    // The object itself refuses too, should the list of people lag.
    await bindings.DB.prepare("UPDATE people SET revoked_ms = NULL WHERE id = ?").bind(personId).run();
    expect((await (await Page.open(from)).untilClosed()).code).toBe(widgetClose.revoked);
  });
});
