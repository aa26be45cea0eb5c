import { expect, test } from "vitest";
import { frameAncestors, pagesDoor } from "../../src/entry/pages.ts";
import type { Env } from "../../src/env.ts";

const files: Record<string, string> = {
  "/demo/": "demo",
  "/console/": "console",
  "/widget/": "widget",
  "/widget.js": "loader",
  "/widget/app.js": "app",
};
const ASSETS = {
  fetch: async (request: Request) => {
    const text = files[new URL(request.url).pathname];
    return text === undefined ? new Response(null, { status: 404 }) : new Response(text, { headers: { "content-type": "text/html" } });
  },
} as unknown as Fetcher;
const get = (path: string, env: Partial<Env> = {}) => pagesDoor.request(`https://switchyard.test${path}`, {}, { ASSETS, ...env } as Env);
const policyOf = (response: Response): string => response.headers.get("content-security-policy") ?? "";

test("every page forbids inline and foreign scripts and any text that would become HTML", async () => {
  for (const path of ["/demo", "/console", "/widget/"]) {
    const policy = policyOf(await get(path));
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ])
      expect(policy).toContain(part);
    expect(policy).not.toMatch(/unsafe-/);
  }
});

test("the console and the demo page are framed by nobody, the widget by the configured pages and our own", async () => {
  expect(policyOf(await get("/console"))).toContain("frame-ancestors 'none'");
  expect((await get("/console")).headers.get("x-frame-options")).toBe("DENY");
  expect(policyOf(await get("/demo"))).toContain("frame-ancestors 'none'");
  expect(policyOf(await get("/widget/"))).toMatch(/frame-ancestors 'self'$/);
  expect(policyOf(await get("/widget/", { WIDGET_ORIGINS: "https://a.test, http://localhost:3000" }))).toMatch(
    /frame-ancestors 'self' https:\/\/a\.test http:\/\/localhost:3000$/,
  );
});

test("a setting cannot smuggle a directive into the policy", () => {
  expect(frameAncestors(["https://a.test; script-src *", "javascript:alert(1)", "https://a.test 'unsafe-inline'", "*"])).toBe("'self' *");
});

test("the loader may be loaded by any page, the console's script by none but ours", async () => {
  expect((await get("/widget.js")).headers.get("cross-origin-resource-policy")).toBe("cross-origin");
  expect((await get("/console")).headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect((await get("/widget.js")).headers.get("x-content-type-options")).toBe("nosniff");
});

test("the first address leads to the demo page", async () => {
  const response = await get("/");
  expect([response.status, response.headers.get("location")]).toEqual([302, "/demo"]);
});
