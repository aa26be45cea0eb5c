import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { createEnrolmentCode } from "../../src/storage/enrolment.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { bindings, enrol, newKeys, request, TestDaemon } from "./test-daemon.ts";

beforeAll(() => migrated(bindings.DB));
afterEach(() => void vi.useRealTimers());

const bodyOf = async (name: string, code?: string) => ({
  code: code ?? (await createEnrolmentCode(bindings.DB, Date.now())),
  name,
  publicKey: (await newKeys()).publicKey,
  platform: "linux",
});

test("a code enrols one machine, which the object and D1 know by the same id", async () => {
  const body = await bodyOf("door-laptop");
  const response = await enrol(body);
  expect(response.status).toBe(200);
  const { endpointId, name } = await response.json<{ endpointId: string; name: string }>();
  expect(name).toBe("door-laptop");
  await evictDurableObject(bindings.ENDPOINT.getByName(endpointId) as unknown as DurableObjectStub);
  expect(await bindings.ENDPOINT.getByName(endpointId).describe()).toMatchObject({ endpointId, name, online: false, revoked: false });
  const row = await bindings.DB.prepare("SELECT name, platform FROM endpoints WHERE id = ?").bind(endpointId).first();
  expect(row).toEqual({ name: "door-laptop", platform: "linux" });
});

test("a code is good for one key; the same machine may ask again when the answer was lost, also in another spelling", async () => {
  const body = await bodyOf("door-once");
  const first = await (await enrol(body)).json();
  const again = await enrol({ ...body, code: body.code.toLowerCase().replaceAll("-", " ") });
  expect(await again.json()).toEqual(first);
  const other = await enrol({ ...(await bodyOf("door-twice", body.code)) });
  expect(other.status).toBe(401);
  expect((await other.json<{ message: string }>()).message).toMatch(/used/);
});

test("of two machines that race with one code exactly one is enrolled", async () => {
  const code = await createEnrolmentCode(bindings.DB, Date.now());
  const bodies = await Promise.all(["a", "b", "c"].map((name) => bodyOf(`door-race-${name}`, code)));
  const statuses = (await Promise.all(bodies.map(enrol))).map((response) => response.status);
  expect(statuses.toSorted()).toEqual([200, 401, 401]);
  const { results } = await bindings.DB.prepare("SELECT id FROM endpoints WHERE name LIKE 'door-race-%'").all();
  expect(results).toHaveLength(1);
});

test("a code is refused after ten minutes, and only its hash is stored", async () => {
  const body = await bodyOf("door-late");
  const { results } = await bindings.DB.prepare("SELECT * FROM grants").all();
  expect(JSON.stringify(results)).not.toContain(body.code);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.enrolmentCodeMs + 1 });
  expect((await enrol(body)).status).toBe(401);
});

test("a second machine of the same name gets a name of its own", async () => {
  await enrol(await bodyOf("door-twin"));
  expect(await (await enrol(await bodyOf("door-twin"))).json()).toMatchObject({ name: "door-twin-2" });
});

test("an enrolment that does not parse names the field, one that is no JSON or too large is refused", async () => {
  const body = await bodyOf("door-bad");
  const named = await enrol({ ...body, publicKey: "short" });
  expect(named.status).toBe(400);
  expect((await named.json<{ message: string }>()).message).toMatch(/^publicKey: /);
  expect((await request("/api/daemon/enrol", { method: "POST", body: "{" })).status).toBe(400);
  expect((await request("/api/daemon/enrol", { method: "POST", body: "x".repeat(9_000) })).status).toBe(413);
  expect((await enrol({ ...body, code: "AAAAA-AAAAA-AAAAA" })).status).toBe(401);
});

test("[E12] a key under which anybody could sign is not enrolled, and uses no code", async () => {
  const body = await bodyOf("door-weak");
  const order8 = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
  const weak = ["00".repeat(32), `01${"00".repeat(31)}`, `${"00".repeat(31)}80`, `ec${"ff".repeat(31)}`, `ee${"ff".repeat(30)}7f`, order8];
  for (const hex of weak) {
    const publicKey = btoa(String.fromCharCode(...(hex.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16))));
    const response = await enrol({ ...body, publicKey });
    expect([hex, response.status, await response.text()]).toEqual([hex, 400, expect.stringContaining("publicKey")]);
  }
  expect((await enrol(body)).status).toBe(200);
});

test("[E13] of connections that have not said hello, those that waited longest are closed, not the one that just came", async () => {
  const daemon = await TestDaemon.enrol("door-strangers");
  const closed: number[] = [];
  for (let n = 0; n < 12; n++) {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 1 });
    const response = await bindings.ENDPOINT.getByName(daemon.endpointId).fetch(
      new Request(`https://switchyard.test/api/daemon/connect?endpoint=${daemon.endpointId}`, { headers: { upgrade: "websocket" } }),
    );
    response.webSocket?.addEventListener("close", () => closed.push(n));
    response.webSocket?.accept();
    // A closed socket leaves the list when its peer has answered.
    if (n >= 8) await vi.waitFor(() => expect(closed).toContain(n - 8));
  }
  expect(closed.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
});

test("an unknown or malformed endpoint is 404, a revoked one 410 with a sentence, a plain request 426, a web page 403", async () => {
  const dial = (id: string, headers: Record<string, string> = {}) =>
    request(`/api/daemon/connect?endpoint=${id}`, { headers: { upgrade: "websocket", ...headers } });
  expect((await dial("ep_nobody")).status).toBe(404);
  expect((await dial("../router")).status).toBe(404);
  const daemon = await TestDaemon.enrol("door-revoked");
  expect((await request(`/api/daemon/connect?endpoint=${daemon.endpointId}`)).status).toBe(426);
  expect((await dial(daemon.endpointId, { origin: "http://evil.test" })).status).toBe(403);
  // The object refuses by itself, also while D1 lags.
  await daemon.stub.revoke({ by: "owner" });
  expect((await dial(daemon.endpointId)).status).toBe(410);
  await bindings.DB.prepare("UPDATE endpoints SET revoked_ms = 1 WHERE id = ?").bind(daemon.endpointId).run();
  const gone = await dial(daemon.endpointId);
  expect([gone.status, (await gone.json<{ message: string }>()).message]).toEqual([
    410,
    "door-revoked was revoked. Enrol it again with a code from the console.",
  ]);
});
