import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultRules, judge } from "../../src/core/gate.ts";
import { isMadeInChat } from "../../src/core/router-policy-words.ts";
import { type GateRule, gateRule } from "../../src/protocol/gate.ts";
import type { Role } from "../../src/protocol/principal.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";

const trigger = (more: Partial<Trigger> = {}, role: Role = "member"): Trigger => ({
  id: "trg_a-b",
  source: "github",
  deliveryId: "d1",
  threadId: "thr_a",
  place: "acme/app",
  threadKey: "issue:1",
  threadTitle: "t",
  kind: "issue_comment.created",
  principal: { role, id: "someone", name: "someone" },
  addressed: false,
  text: "hello",
  atMs: 0,
  hops: 0,
  ...more,
});
const rule = (more: Partial<GateRule> = {}): GateRule => ({ id: "r", outcome: "request", reason: "because", ...more });
const outcomeOf = (more: Partial<GateRule>, of: Trigger): string => judge({ version: 1, rules: [rule(more)] }, of).outcome;
const byDefault = (more: Partial<Trigger>, role: Role = "member") => judge(defaultRules, trigger(more, role));

describe("a rule", () => {
  test("[G1] a trigger that no rule matches is recorded with a reason", () => {
    expect(judge({ version: 1, rules: [] }, trigger({ source: "mail" }))).toEqual({
      outcome: "record",
      rule: "default",
      reason: expect.stringMatching(/./),
    });
  });

  test("[G2] the first rule that matches wins, and the verdict names it", () => {
    const rules = [rule({ id: "no", kind: "push" }), rule({ id: "first", outcome: "ignore" }), rule({ id: "second" })];
    expect(judge({ version: 3, rules }, trigger())).toEqual({ outcome: "ignore", rule: "first", reason: "because" });
  });

  test.each<[Partial<GateRule>, Partial<Trigger>, Role, boolean]>([
    [{ source: "github" }, {}, "member", true],
    [{ source: "web" }, {}, "member", false],
    [{ place: "acme/app" }, {}, "member", true],
    [{ place: "Acme/App" }, {}, "member", true],
    [{ place: "acme/*" }, {}, "member", true],
    [{ place: "acme/ap" }, {}, "member", false],
    [{ place: "other/*" }, {}, "member", false],
    [{ kind: "issue_comment.*" }, {}, "member", true],
    [{ kind: "issue_comment" }, {}, "member", false],
    [{ roles: ["owner", "member"] }, {}, "member", true],
    [{ roles: ["owner", "member"] }, {}, "public", false],
    [{ roles: [] }, {}, "member", false],
    [{ principalId: "SomeOne" }, {}, "member", true],
    [{ principalId: "other" }, {}, "member", false],
    [{ addressed: true }, {}, "member", false],
    [{ addressed: true }, { addressed: true }, "member", true],
    [{ facts: { conclusion: "failure" } }, {}, "member", false],
    [{ facts: { conclusion: "failure" } }, { facts: { conclusion: "failure", sha: "x" } }, "member", true],
    [{ facts: { conclusion: "failure", branch: "main" } }, { facts: { conclusion: "failure" } }, "member", false],
    [{ source: "github", kind: "push" }, {}, "member", false],
  ])("%j for %j by a %s: every condition that is present must hold", (conditions, of, role, expected) => {
    expect(outcomeOf(conditions, trigger(of, role))).toBe(expected ? "request" : "record");
  });

  test.each<[string, string, string, boolean]>([
    ["renovate", "github", "Renovate[bot]", true],
    ["renovate", "github", "renovate", true],
    ["renovate", "github", "renovate-too[bot]", false],
    ["renovate", "github", "not-renovate[bot]", false],
    ["renovate[bot]", "github", "renovate", false],
    ["renovate[bot]", "github", "renovate[bot]", true],
    ["renovate", "generic", "renovate[bot]", false],
    ["prs_ana", "github", "prs_ana[bot]", false],
    ["kim", "github", "\u212aim", false],
    ["renovate", "github", "ren\u043evate", false],
  ])("[G15] a rule that names %s at %s means the account %s: %s", (principalId, source, id, expected) => {
    const by = { source, principal: { role: "bot" as const, id, name: id } };
    expect(outcomeOf({ principalId, source }, trigger(by))).toBe(expected ? "request" : "record");
  });

  test("[G15] a rule of no source means a program by its twin at GitHub only: elsewhere somebody else may have that name", () => {
    const of = (source: string) => trigger({ source, principal: { role: "bot", id: "renovate[bot]", name: "r" } });
    expect(outcomeOf({ principalId: "renovate" }, of("github"))).toBe("request");
    expect(outcomeOf({ principalId: "renovate" }, of("generic"))).toBe("record");
  });

  test.each([
    ["test", "run the TEST now", true],
    ["test", "the latest news", false],
    ["test", "tests", false],
    ["c++", "we use C++ here", true],
    ["a.b", "aXb", false],
    ["deploy", "请deploy一下", true],
    ["部署", "请部署一下", true],
    ["배포", "지금 배포해줘", true],
    ["café", "at the cafe\u0301 now", true],
    ["straße", "die Straße", true],
    ["(", "a ( b", true],
    [" ", "a b", false],
    ["на", "она", false],
  ])("the word %s in %j: %s", (word, text, expected) => {
    expect(outcomeOf({ anyWord: ["never-there", word] }, trigger({ text }))).toBe(expected ? "request" : "record");
  });
});

test("[G2] words of one rule are found together as each is found alone", () => {
  const sign = fc.constantFrom("a", "b", "B", "é", "e\u0301", "_", "1", "部", "ん", "(", "+", " ", "-", "🎉");
  const string = fc.string({ unit: sign, maxLength: 6 });
  fc.assert(
    fc.property(fc.array(string, { maxLength: 5 }), fc.string({ unit: sign, maxLength: 20 }), (anyWord, text) => {
      const alone = anyWord.some((word) => outcomeOf({ anyWord: [word] }, trigger({ text })) === "request");
      expect(outcomeOf({ anyWord }, trigger({ text }))).toBe(alone ? "request" : "record");
    }),
  );
});

describe("the default rules", () => {
  test("have version 0, valid form, and no id twice", () => {
    expect(defaultRules.version).toBe(0);
    for (const each of defaultRules.rules) expect(gateRule.safeParse(each).error).toBeUndefined();
    expect(new Set(defaultRules.rules.map((each) => each.id)).size).toBe(defaultRules.rules.length);
  });

  test("a message in the widget is a request, from a guest as well", () => {
    for (const role of ["owner", "member", "guest"] as const)
      expect(byDefault({ source: "web", kind: "message" }, role).outcome).toBe("request");
  });

  test.each<[string, Partial<Trigger>, Role, string]>([
    ["our own output", {}, "agent", "ignore"],
    ["our own output that mentions us", { addressed: true }, "agent", "ignore"],
    ["a comment", {}, "member", "candidate"],
    ["a comment of a stranger", {}, "public", "candidate"],
    ["a mention", { addressed: true }, "member", "request"],
    ["a mention by a stranger", { addressed: true }, "public", "request"],
    ["an assignment to us", { kind: "issues.assigned", addressed: true }, "member", "request"],
    ["an assignment to another", { kind: "issues.assigned" }, "member", "record"],
    ["a new issue", { kind: "issues.opened" }, "public", "candidate"],
    ["a new pull request", { kind: "pull_request.opened" }, "public", "candidate"],
    ["a review with words", { kind: "pull_request_review.submitted" }, "member", "candidate"],
    ["a review without words", { kind: "pull_request_review.submitted", facts: { words: "none" } }, "member", "record"],
    ["a label", { kind: "issues.labeled" }, "member", "record"],
    ["an edit", { kind: "issue_comment.edited" }, "member", "record"],
    ["an edit that now mentions us", { kind: "issue_comment.edited", addressed: true }, "member", "request"],
    ["a push", { kind: "push" }, "bot", "record"],
    ["a bot's comment", {}, "bot", "ignore"],
    ["a bot that mentions us", { addressed: true }, "bot", "ignore"],
    ["our account without our mark", { facts: { self: "unmarked" } }, "bot", "record"],
    ["a failed check", { kind: "check_run.completed", facts: { conclusion: "failure" } }, "bot", "record"],
    ["a check that timed out", { kind: "check_suite.completed", facts: { conclusion: "timed_out" } }, "bot", "record"],
    ["a green check", { kind: "check_run.completed", facts: { conclusion: "success" } }, "bot", "ignore"],
    ["a check that began", { kind: "workflow_run.in_progress" }, "bot", "ignore"],
    ["a milestone", { kind: "issues.milestoned" }, "member", "ignore"],
  ])("%s", (_name, of, role, outcome) => {
    const verdict = byDefault(of, role);
    expect(verdict.outcome).toBe(outcome);
    expect(verdict.rule).not.toBe("default");
    expect(verdict.reason.length).toBeGreaterThan(10);
  });

  test.each<[string, Partial<Trigger>, Role, string]>([
    ["said to us", { addressed: true }, "member", "request"],
    ["said to us by a stranger", { addressed: true }, "public", "request"],
    ["a mention that is no message", { addressed: true, kind: "app_mention" }, "guest", "request"],
    ["said to others", {}, "member", "candidate"],
    ["said to others by a stranger", {}, "public", "candidate"],
    ["small talk", { facts: { words: "talk" } }, "member", "record"],
    ["small talk that is said to us", { addressed: true, facts: { words: "talk" } }, "member", "request"],
    ["a program's message", {}, "bot", "record"],
    ["a program that mentions us", { addressed: true }, "bot", "record"],
    ["something that nobody said", { kind: "alert" }, "member", "record"],
  ])("%s, in a chat and at the generic door", (_name, of, role, outcome) => {
    for (const source of ["chat", "generic"]) {
      const verdict = byDefault({ source, kind: "message", ...of }, role);
      expect(verdict.outcome).toBe(outcome);
      expect(verdict.rule.startsWith(`${source}.`)).toBe(true);
    }
  });

  test("[RD9] none of those that ship is taken for one that was made in the chat", () => {
    expect(defaultRules.rules.filter(isMadeInChat)).toEqual([]);
    expect(isMadeInChat({ id: "chat.rul_abc" })).toBe(true);
  });
});
