import { expect, test } from "vitest";
import { webAudience } from "../../src/core/audience.ts";
import { freshMeta } from "../../src/core/router.ts";
import { decideStep } from "../../src/core/router-decide.ts";
import {
  capFacts,
  type Fact,
  factLine,
  factText,
  matchOf,
  phraseOf,
  renderFound,
  scopeOf,
  termsOf,
  usedIds,
  withoutWords,
} from "../../src/core/router-memory.ts";
import { guest, member, owner, queuedReport, queuedTrigger, reportOf } from "../support/router-fixtures.ts";

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

const known = (parts: Partial<Fact> = {}): Fact => ({
  id: "fct_a",
  kind: "preference",
  text: "Ben wants tabs.",
  source: "web",
  place: "widget",
  threadId: "thr_ben",
  triggerId: "trg_ben-1",
  by: { role: "member", id: "prs_ben", name: "Ben" },
  atMs: Date.UTC(2026, 10, 28),
  ...parts,
});
const forgetCall = (settles: string[], replaces = "fct_a") => ({ callId: "f", tool: "remember", input: { settles, replaces } });

test("[RD17] who may hear a fact has it forgotten: it is named to whoever asked, where they asked, and no decision keeps its words", () => {
  const own = known({ by: { role: "member", id: member.id, name: "member" } });
  const team = known({ for: "team" });
  const place = known({ source: "github", place: "acme/app" });
  const root = queuedTrigger({ name: "f1", by: member });
  const issue = queuedTrigger({ name: "f2", by: owner, thread: "7" });
  for (const [item, fact] of [
    [root, own],
    [root, team],
    [root, place],
    [issue, team],
    [issue, place],
  ] as const) {
    const facts = new Map([[fact.id, fact]]);
    const { decisions, refused } = decideStep({ ...view([item]), facts }, [forgetCall([item.id])]);
    expect(refused).toEqual([]);
    const [decision] = decisions;
    expect(decision).toMatchObject({
      tool: "remember",
      forgets: { id: "fct_a", by: { id: item.trigger.principal.id }, threadId: item.threadId },
    });
    expect(decision?.effects).toMatchObject([
      {
        kind: "post",
        threadId: item.threadId,
        input: { kind: "notice", triggerId: item.id, text: expect.stringContaining("“Ben wants tabs.”") },
      },
    ]);
    expect(JSON.stringify({ ...decision, effects: [] })).not.toContain("tabs");
  }
});

test("[RD17] [A9] what somebody told in a conversation of their own, or another place heard, is forgotten on nobody else's word, nor is it said to be there", () => {
  const root = queuedTrigger({ name: "f3", by: member });
  const issue = queuedTrigger({ name: "f4", by: member, thread: "7" });
  const unknown = decideStep(view([root]), [forgetCall([root.id])]).refused[0]?.reason;
  for (const [item, fact] of [
    [root, known()],
    [issue, known()],
    [issue, known({ source: "github", place: "acme/private" })],
    [issue, known({ by: { role: "member", id: member.id, name: "member" } })],
  ] as const) {
    const outcome = decideStep({ ...view([item]), facts: new Map([[fact.id, fact]]) }, [forgetCall([item.id])]);
    expect(outcome.decisions).toEqual([]);
    expect(outcome.refused[0]?.reason).toBe(unknown);
  }
});

test("[RD17] a guest, a turn that read public text, a program and a report have nothing forgotten; what is gone or counts no more is refused with the reason", () => {
  const facts = new Map([["fct_a", known({ for: "team" })]]);
  const outside = queuedTrigger({ name: "f5", by: guest });
  const told = decideStep({ ...view([outside]), facts }, [forgetCall([outside.id])]).decisions;
  expect(told).toMatchObject([{ by: "code", tool: "remember", notice: { text: expect.stringContaining("have me forget things") } }]);
  expect(told[0]?.forgets).toBeUndefined();
  const inside = queuedTrigger({ name: "f6", by: member });
  expect(decideStep({ ...view([inside], { capped: true }), facts }, [forgetCall([inside.id])]).decisions).toEqual([]);
  const program = queuedTrigger({ name: "f7", by: { role: "agent", id: "x", name: "x", onBehalfOf: "member" } });
  expect(decideStep({ ...view([program]), facts }, [forgetCall([program.id])]).decisions).toEqual([]);
  const report = queuedReport(reportOf());
  expect(decideStep({ ...view([]), items: new Map([[report.id, report]]), facts }, [forgetCall([report.id])]).decisions).toEqual([]);
  const refusal = (fact: Fact) =>
    decideStep({ ...view([inside]), facts: new Map([[fact.id, fact]]) }, [forgetCall([inside.id])]).refused[0]?.reason;
  expect(refusal(known({ for: "team", replacedBy: "fct_b" }))).toContain("fct_b took its place");
  expect(refusal(known({ for: "team", text: "", forgotten: { by: member, atMs: 1 } }))).toContain(
    "forgotten already, on the word of member",
  );
  // Twice in one answer is once.
  const twice = decideStep({ ...view([inside]), facts }, [forgetCall([inside.id]), { ...forgetCall([inside.id]), callId: "g" }]);
  expect([twice.decisions.length, twice.refused.length]).toEqual([1, 1]);
});

test("[RD10] words without a kind are kept only with one, and nothing at all is no fact", () => {
  const item = queuedTrigger({ name: "f8", by: member });
  const reason = (input: object) =>
    decideStep(view([item]), [{ callId: "c", tool: "remember", input: { settles: [item.id], ...input } }]).refused[0]?.reason;
  expect(reason({ text: "We deploy on Fridays." })).toContain("Say of which kind");
  expect(reason({ kind: "rule" })).toBe("The fact has no words.");
});

test("[RD17] a forgotten fact is recalled as one that was forgotten, by whom, when and where, and operators see the same", () => {
  const at = { atMs: Date.UTC(2026, 10, 30) };
  const gone = known({ for: "team", text: "", forgotten: { by: { role: "owner", id: "prs_o", name: "Olga" }, threadId: "thr_o", ...at } });
  expect(JSON.parse(factText(gone))).toEqual({
    fact: "fct_a",
    kind: "preference",
    from: "Ben",
    on: "2026-11-28T00:00:00.000Z",
    forgotten: { by: "Olga", on: "2026-11-30T00:00:00.000Z", in: "thr_o" },
  });
  expect(factLine(gone)).toMatchObject({ text: null, forgotten: { by: "Olga", ...at } });
});

test("[A9] operators read the facts of the team and of shared places; of others' own conversations they see that there are some", () => {
  expect(factLine(known({ for: "team", used: 2, usedMs: 9 }))).toMatchObject({
    text: "Ben wants tabs.",
    reach: "team",
    told: { threadId: "thr_ben", triggerId: "trg_ben-1" },
    used: { times: 2, lastMs: 9 },
  });
  expect(factLine(known({ source: "github", place: "acme/app" }))).toMatchObject({ text: "Ben wants tabs.", reach: "place", used: null });
  expect(factLine(known())).toMatchObject({ text: null, told: null, reach: "own", by: { role: "member", name: "Ben" } });
  expect(JSON.stringify(factLine(known()))).not.toContain(webAudience("prs_ben"));
});

test("[RD17] a repetition is known by how it begins, in scripts without spaces too; a single word is none", () => {
  expect(phraseOf('We "deploy" on Fridays, at nine in the morning.')).toBe('"We deploy on Fridays at nine in the"');
  expect(phraseOf("部署脚本")).toBe('"部 署 脚 本"');
  expect([phraseOf("tabs"), phraseOf("!?")]).toEqual(["", ""]);
  const { segments } = withoutWords({ ...freshMeta, segments: { team: 3, public: 2 } });
  // Also past a segment that a turn under way has just begun.
  expect([segments.team > 4, segments.public]).toEqual([true, 2]);
});
