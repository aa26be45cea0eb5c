import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { app } from "../../src/entry/app.ts";
import type { Env } from "../../src/env.ts";
import { version } from "../../src/protocol/version.ts";
import { commentOn, deliver, worker } from "./github-deliveries.ts";

const bindings = env as unknown as Env;
type Health = {
  ok: boolean;
  status: string;
  version: string;
  missing: { name: string; purpose: string }[];
  model: { ready: boolean; note: string };
  storage: Record<string, string>;
  github: Record<string, string | null>;
};

async function health(more: Partial<Record<keyof Env, unknown>> = {}): Promise<{ status: number; text: string; body: Health }> {
  const request = new Request("https://switchyard.test/health");
  const response = await app.fetch(request, { ...bindings, ...more } as Env, createExecutionContext());
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text) as Health };
}

const settings = [
  "SESSION_SECRET",
  "OPERATOR_TOKEN",
  "GITHUB_WEBHOOK_SECRET",
  "GITHUB_TOKEN",
  "MODEL_PROVIDER",
  "MODEL_BASE_URL",
  "MODEL_API_KEY",
  "MODEL_NAME",
] as const;

test("a complete deployment is ready, and none of its values is shown", async () => {
  const response = await worker.fetch(new Request("https://switchyard.test/health"));
  expect(response.status).toBe(200);
  expect(response.headers.get("cache-control")).toBe("no-store");
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({
    ok: true,
    status: "ready",
    version,
    missing: [],
    model: { ready: true },
    storage: { d1: "reachable", r2: "reachable" },
  });
  for (const name of ["SESSION_SECRET", "OPERATOR_TOKEN", "GITHUB_WEBHOOK_SECRET", "GITHUB_TOKEN", "MODEL_API_KEY"] as const)
    expect(text).not.toContain(bindings[name] ?? "never");
});

test("without its secret both doors of the generic webhook are said to be closed", async () => {
  const { text } = await health({ GENERIC_WEBHOOK_SECRET: undefined });
  expect(text).toMatch(/Closed: set GENERIC_WEBHOOK_SECRET to open \/hooks\/chat\/PLACE and \/hooks\/generic\/PLACE/);
});

test("a fresh deployment without any secret answers 200 and says what each missing one is for", async () => {
  const { status, body } = await health(Object.fromEntries(settings.map((name) => [name, name === "OPERATOR_TOKEN" ? "  " : undefined])));
  expect(status).toBe(200);
  expect(body).toMatchObject({ ok: true, status: "incomplete", model: { ready: true } });
  expect(body.model.note).toMatch(/offline/);
  expect(body.missing.map(({ name }) => name)).toEqual(["SESSION_SECRET", "OPERATOR_TOKEN", "GITHUB_WEBHOOK_SECRET", "GITHUB_TOKEN"]);
  for (const { purpose } of body.missing) expect(purpose.length).toBeGreaterThan(20);
  expect(body.github.note).toMatch(/GITHUB_WEBHOOK_SECRET is missing/);
});

test("wrong settings of the model are one sentence", async () => {
  const unknown = await health({ MODEL_PROVIDER: "magic" });
  expect(unknown.body).toMatchObject({ status: "incomplete", model: { ready: false, note: expect.stringContaining('"magic"') } });
  const keyless = await health({ MODEL_API_KEY: undefined });
  expect(keyless.body.model).toMatchObject({ ready: false, note: expect.stringContaining("MODEL_API_KEY") });
  expect(keyless.body.missing.map(({ name }) => name)).toEqual(["MODEL_API_KEY"]);
});

test("a store that cannot be reached is 503, and the other facts are told all the same", async () => {
  const away = () => {
    throw new Error("away");
  };
  const d1 = await health({ DB: { prepare: away, batch: away } });
  expect(d1.status).toBe(503);
  expect(d1.body).toMatchObject({ ok: false, status: "failing", storage: { r2: "reachable", d1: expect.stringContaining("binding DB") } });
  const r2 = await health({ STORE: { head: () => Promise.reject(new Error("away")) } });
  expect(r2.status).toBe(503);
  expect(r2.body.storage).toMatchObject({ d1: "reachable", r2: expect.stringContaining("binding STORE") });
});

test("whether and when a signed ping and a signed delivery arrived is told; a forged one is not", async () => {
  expect((await health()).body.github).toMatchObject({
    lastPing: null,
    lastDelivery: null,
    note: expect.stringMatching(/^No signed delivery/),
  });
  expect((await deliver("ping", { zen: "x" }, { headers: { "x-hub-signature-256": `sha256=${"00".repeat(32)}` } })).status).toBe(401);
  expect((await health()).body.github.lastPing).toBeNull();
  const beforeMs = Date.now();
  expect((await deliver("ping", { zen: "x", hook_id: 1 })).status).toBe(202);
  const { github } = (await health()).body;
  expect(Date.parse(github.lastPing ?? "")).toBeGreaterThanOrEqual(beforeMs);
  expect(github.note).toBe("Signed deliveries arrive.");
  await deliver("issue_comment", commentOn("health/app", { login: "renovate[bot]", body: "x" }));
  const endMs = Date.now() + 5_000;
  while ((await health()).body.github.lastDelivery === null) if (Date.now() > endMs) throw new Error("no delivery was noted");
});
