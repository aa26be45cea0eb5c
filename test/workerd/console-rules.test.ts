import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { defaultRules } from "../../src/core/gate.ts";
import type { Env } from "../../src/env.ts";
import type { GitHubSetUpAnswer, RulesAnswer, RulesTrial } from "../../src/protocol/console.ts";
import type { GateRule, GateRules } from "../../src/protocol/gate.ts";
import { recentTriggers } from "../../src/storage/recent-triggers.ts";
import { asOperator, ok, request } from "./console-support.ts";
import { commentOn, deliver } from "./github-deliveries.ts";

const { DB } = env as unknown as Env;
const rules = () => ok<RulesAnswer>(asOperator("GET", "rules"));
const hush: GateRule = { id: "hush", outcome: "ignore", place: "try/loud", reason: "The team asked for quiet there." };
const rowsOf = async (table: string): Promise<number> =>
  (await DB.prepare(`SELECT COUNT(*) AS n FROM ${table}`).first<{ n: number }>())?.n ?? 0;

test("nobody reads or changes rules without the operator's token", async () => {
  for (const [method, path] of [
    ["GET", "rules"],
    ["GET", "rules/0"],
    ["POST", "rules"],
    ["POST", "rules/try"],
    ["POST", "rules/revert"],
  ] as const)
    expect((await request(`/api/console/${path}`, { method, ...(method === "POST" ? { body: "{}" } : {}) })).status).toBe(401);
});

test("before anything was saved the rules that ship are in force, as version 0", async () => {
  expect(await rules()).toEqual({
    inForce: defaultRules,
    versions: [{ version: 0, rules: defaultRules.rules.length, savedBy: null, savedMs: null }],
  });
});

test("[G5] rules are tried on what came lately, also on what was ignored, and nothing is saved by it", async () => {
  await deliver("issue_comment", commentOn("try/loud", { body: "the build is red" }));
  await deliver("issue_comment", commentOn("try/loud", { login: "renovate[bot]", body: "Update" }));
  await deliver("issue_comment", commentOn("try/other", { body: "the build is slow" }));
  // On a slow machine the last of them may miss the first write, and is in the next one.
  await vi.waitFor(async () => expect(await recentTriggers(DB)).toHaveLength(3), { timeout: 20_000, interval: 50 });
  expect(await rowsOf("recent_triggers")).toBeLessThan(3);
  const trial = await ok<RulesTrial>(asOperator("POST", "rules/try", { rules: [hush, ...defaultRules.rules] }));
  expect(trial).toMatchObject({ tried: 3, before: { candidate: 2, ignore: 1 }, after: { candidate: 1, ignore: 2 }, matched: { hush: 2 } });
  expect(trial.changed).toMatchObject([
    {
      trigger: { place: "try/loud", text: "the build is red" },
      before: { outcome: "candidate" },
      after: { outcome: "ignore", rule: "hush" },
    },
  ]);
  expect((await rules()).inForce.version).toBe(0);
}, 30_000);

test("rules are saved as the next version, are in force at once, and an older version can come back", async () => {
  const first = await ok<GateRules>(asOperator("POST", "rules", { version: 0, rules: [hush, ...defaultRules.rules] }));
  expect(first.version).toBe(1);
  const { answer } = await deliver("issue_comment", commentOn("try/loud", { body: "still red" }));
  expect(answer.triggers).toMatchObject([{ outcome: "ignored", reason: hush.reason }]);
  const back = await ok<GateRules>(asOperator("POST", "rules/revert", { version: 1, to: 0 }));
  expect(back).toEqual({ version: 2, rules: defaultRules.rules });
  expect((await rules()).versions.map(({ version, savedBy }) => [version, savedBy])).toEqual([
    [2, "operator"],
    [1, "operator"],
    [0, null],
  ]);
  expect(await ok(asOperator("GET", "rules/1"))).toEqual(first);
});

test("whoever edited an older version is told so, and nothing is lost", async () => {
  const answer = await asOperator("POST", "rules", { version: 1, rules: [] });
  expect(answer.status).toBe(409);
  expect((await answer.json<{ message: string }>()).message).toMatch(/newest version/);
  expect((await asOperator("POST", "rules/revert", { version: 1, to: 0 })).status).toBe(409);
  expect((await rules()).inForce.version).toBe(2);
});

test.each<[string, unknown, RegExp]>([
  ["no list", { version: 2, rules: {} }, /list of rules/],
  ["a wrong outcome", { version: 2, rules: [{ ...hush, outcome: "explode" }] }, /Rule 1, outcome/],
  ["an id twice", { version: 2, rules: [hush, hush] }, /twice/],
  ["no version", { rules: [] }, /version/],
])("%s is refused with a sentence, by save and by try", async (_name, body, sentence) => {
  for (const path of ["rules", "rules/try"]) {
    const answer = await asOperator("POST", path, body);
    if (path === "rules/try" && answer.ok) continue;
    expect(answer.status).toBe(400);
    expect((await answer.json<{ message: string }>()).message).toMatch(sentence);
  }
  expect((await rules()).inForce.version).toBe(2);
});

test("a version that is none is not found", async () => {
  for (const path of ["rules/99", "rules/x", "rules/-1"]) expect((await asOperator("GET", path)).status).toBe(404);
  expect((await asOperator("POST", "rules/revert", { version: 2, to: 99 })).status).toBe(404);
});

test("the steps of GitHub's set-up are told without any value of a setting", async () => {
  const answer = await asOperator("GET", "github");
  const text = await answer.text();
  const { steps } = JSON.parse(text) as GitHubSetUpAnswer;
  expect(steps.slice(0, 2).map(({ done }) => done)).toEqual([true, true]);
  for (const value of ["s3cret", "test-github-token"]) expect(text).not.toContain(value);
});
