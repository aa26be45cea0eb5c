import { expect, test } from "vitest";
import { decideStep } from "../../src/core/router-decide.ts";
import { capFacts, type Fact, matchOf, renderFound, scopeOf, termsOf, usedIds } from "../../src/core/router-memory.ts";
import { guest, member, queuedReport, queuedTrigger, reportOf } from "../support/router-fixtures.ts";

const view = (items: ReturnType<typeof queuedTrigger>[], parts: { capped?: boolean } = {}) => ({
  turn: 3,
  step: 1,
  lane: "team" as const,
  capped: parts.capped ?? false,
  nowMs: Date.UTC(2026, 10, 30),
  agentName: "agent",
  items: new Map(items.map((item) => [item.id, item])),
  progress: new Map(),
  tasks: new Map(),
  machines: [],
  policies: [],
});
const rememberCall = (settles: string[], text = "The team prefers tabs.") => ({
  callId: "c",
  tool: "remember",
  input: { settles, kind: "preference", text },
});

test("[RD10] a fact carries who said it, where and when, and stands beside the dispatch of the same trigger", () => {
  const item = queuedTrigger({ name: "a", by: member, text: "use tabs, and fix the build" });
  const { decisions, refused } = decideStep(view([item]), [
    rememberCall([item.id]),
    { callId: "d", tool: "dispatch", input: { settles: [item.id], title: "Fix the build", goal: "Fix it with tabs." } },
    rememberCall([item.id], "The build is run with make."),
  ]);
  expect(refused).toEqual([]);
  expect(decisions.map((decision) => decision.tool).sort()).toEqual(["dispatch", "remember", "remember"]);
  expect(decisions[0]?.fact?.fact).toMatchObject({
    kind: "preference",
    text: "The team prefers tabs.",
    triggerId: item.id,
    by: { role: "member", id: member.id },
    atMs: Date.UTC(2026, 10, 30),
  });
});

test("[RD10] a guest, a turn that read public text, a program and a report write nothing into the team's memory", () => {
  const outside = queuedTrigger({ name: "b", by: guest });
  expect(decideStep(view([outside]), [rememberCall([outside.id])]).decisions).toMatchObject([{ by: "code", tool: "remember" }]);
  expect(decideStep(view([outside]), [rememberCall([outside.id])]).decisions[0]?.fact).toBeUndefined();
  const inside = queuedTrigger({ name: "c", by: member });
  expect(decideStep(view([inside], { capped: true }), [rememberCall([inside.id])])).toMatchObject({
    decisions: [],
    refused: [{ tool: "remember" }],
  });
  const program = queuedTrigger({ name: "d", by: { role: "agent", id: "x", name: "x", onBehalfOf: "member" } });
  expect(decideStep(view([program]), [rememberCall([program.id])]).decisions).toEqual([]);
  const report = queuedReport(reportOf());
  const items = new Map([[report.id, report]]);
  expect(decideStep({ ...view([]), items }, [rememberCall([report.id])]).decisions).toEqual([]);
});

test("[RI7] terms are words without filler, signs without spaces are pairs, and quotes cannot leave the quoting", () => {
  expect(termsOf("Please use the PostgreSQL database in /srv")).toEqual(["use", "postgresql", "database", "srv"]);
  expect(termsOf("部署脚本在 Jenkins")).toEqual(["部署", "署脚", "脚本", "本在", "jenkins"]);
  expect(matchOf(['a" OR "b', "x"], "AND")).toBe('"a  OR  b" AND "x"');
  expect(matchOf(["部署"], "OR", true)).toBe('"部  署"');
  expect(matchOf([], "OR")).toBe("");
});

test("[RI8] facts stay out of the public lane, and within their cap", () => {
  const fact = (n: number): Fact => ({
    id: `fct_${n}`,
    kind: "rule",
    text: "x".repeat(300),
    source: "web",
    place: "widget",
    threadId: "thr_a",
    triggerId: "trg_a-1",
    by: { role: "member", id: "m", name: "m" },
    atMs: 1,
  });
  const facts = [1, 2, 3, 4, 5, 6].map(fact);
  expect(capFacts("public", facts)).toEqual([]);
  expect(capFacts("team", facts)).toHaveLength(4);
});

test("[RI8] what is found of public text is an id for the team; the public lane is bound to the threads at hand", () => {
  const hit = {
    id: "thr_x",
    kind: "thread",
    lane: "public",
    audience: "",
    threadId: "thr_x",
    title: "hostile words",
    body: "github",
    tail: "",
    atMs: 1,
  } as const;
  const found = { hits: [hit], total: 11 };
  expect(renderFound({ query: "words", page: 1 }, found, "team")).not.toContain("hostile");
  expect(renderFound({ query: "words", page: 1 }, found, "public")).toContain("hostile");
  expect(JSON.parse(renderFound({ query: "words", page: 1 }, found, "team").split("\n")[0] ?? "")).toEqual({
    find: "words",
    page: 1,
    pages: 2,
    found: 11,
  });
  const item = queuedTrigger({ name: "e", by: guest });
  expect(scopeOf("public", [item], [])).toEqual({ lane: "public", threads: [item.threadId] });
  expect(scopeOf("team", [item], ["web x"])).toEqual({ lane: "team", readers: ["web x"] });
});

test("[RI9] an inlined id counts as used when a call names it, not when it is merely settled", () => {
  const calls = [{ callId: "1", tool: "reply", input: { settles: ["tsk_b"], text: "as you like it", uses: ["fct_a"] } }];
  expect(usedIds(["fct_a", "tsk_b", "ep_c"], calls)).toEqual(["fct_a"]);
});
