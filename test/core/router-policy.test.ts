// What owners change in the chat: shown first, confirmed in their own words, and never so that they are not heard any more.
import { expect, test } from "vitest";
import { judge } from "../../src/core/gate.ts";
import { tryRules } from "../../src/core/gate-trial.ts";
import { decideStep } from "../../src/core/router-decide.ts";
import type { PlannedDecision } from "../../src/core/router-plan.ts";
import { type PolicyAct, type Proposal, planPolicy } from "../../src/core/router-policy.ts";
import { changeWords, listWords, ruleWords, trialWords } from "../../src/core/router-policy-words.ts";
import type { RecentTrigger } from "../../src/protocol/console.ts";
import { member, owner, queuedTrigger } from "../support/router-fixtures.ts";

const decision: PlannedDecision = {
  id: "dec_a",
  turn: 1,
  lane: "team",
  tool: "set_policy",
  by: "model",
  settles: [],
  reason: "",
  authority: "owner",
  effects: [],
};
const said = (text: string, by = owner) => queuedTrigger({ name: text, by, text });
const plan = (input: object, text = "please", proposals: Proposal[] = []) =>
  planPolicy({ nowMs: 1_000, proposals }, { settles: ["x"], ...input }, said(text), decision);
const actOf = (planned: ReturnType<typeof plan>): PolicyAct | string => {
  if ("refused" in planned) return planned.refused;
  const [effect] = planned.decision.effects;
  return effect?.kind === "policy" ? effect.input.act : "no act";
};
const mute = { outcome: "mute", source: "github", principal: "dependabot[bot]" };

test("[RD9] a proposal is saved only with the owner's own words, in its thread, within the hour, once", () => {
  const planned = plan(mute);
  const proposal = "decision" in planned ? planned.decision.proposal : undefined;
  if (proposal === undefined) throw new Error("nothing was proposed");
  const confirm = { confirm: proposal.id };
  expect(actOf(plan(confirm, "sure, do it", [proposal]))).toContain("has to answer");
  expect(actOf(plan(confirm, `confirm ${proposal.id}`, []))).toContain("no such proposal");
  expect(actOf(plan(confirm, `confirm ${proposal.id}`, [{ ...proposal, threadId: "thr_else" }]))).toContain("another thread");
  expect(actOf(plan(confirm, `confirm ${proposal.id}`, [{ ...proposal, atMs: -3_600_001 }]))).toContain("too old");
  expect(actOf(plan(confirm, `confirm ${proposal.id}`, [{ ...proposal, saved: true }]))).toContain("saved already");
  expect(actOf(plan(confirm, `CONFIRM ${proposal.id}!`, [proposal]))).toMatchObject({ do: "save", rule: { outcome: "mute" } });
  expect(actOf(plan({ undo: proposal.id }, "take it back", [proposal]))).toContain("has to answer");
  expect(actOf(plan({ undo: proposal.id }, `undo ${proposal.id}`, [proposal]))).toMatchObject({ do: "undo", ruleId: proposal.rule?.id });
  // By the rule's own name too, long after the proposal is forgotten.
  const name = proposal.rule?.id.slice("chat.".length) ?? "";
  expect(actOf(plan({ undo: name }, `undo ${name}`, []))).toMatchObject({ do: "undo", ruleId: proposal.rule?.id });
});

test("[RD9] what an owner quotes, asks about or refuses saves nothing, whatever the model makes of it", () => {
  const planned = plan(mute);
  const proposal = "decision" in planned ? planned.decision.proposal : undefined;
  if (proposal === undefined) throw new Error("nothing was proposed");
  const { id } = proposal;
  const verdict = (call: object, text: string) => actOf(plan(call, text, [proposal]));
  for (const text of [
    `do not confirm ${id}`,
    `who wants me to confirm ${id}?`,
    `undo ${id}`,
    `what is ${id}?`,
    `> confirm ${id}\n\nNo way.`,
    `\`\`\`\nconfirm ${id}\n\`\`\``,
    `confirm ${id} only if Ana agrees`,
    `confirm ${id}x`,
  ])
    expect(verdict({ confirm: id }, text), text).toContain("has to answer");
  expect(verdict({ undo: id }, `confirm ${id}`)).toContain("has to answer");
  for (const text of [`@switchyard confirm ${id}.`, `Yes, please: “confirm ${id}”`, `I have read it.\nconfirm ${id}, thanks!`])
    expect(verdict({ confirm: id }, text), text).toMatchObject({ do: "save" });
});

test("[RD9] of a policy that is to be saved an owner sees every word", () => {
  const text = `Be kind. ${"And patient. ".repeat(120)}React to nothing of the team.`;
  const known = { id: "calm", version: 2, text: "Be quiet.", enabled: true, savedBy: "o", savedMs: 1 };
  expect(changeWords(known, { id: "calm", text })).toContain("React to nothing of the team.");
  expect(changeWords(undefined, { id: "calm", text })).toContain("React to nothing of the team.");
  const act = actOf(plan({ change: { id: "calm", text: "Be\u202e kind\u200b.\u{e0041}" } }));
  expect(act).toMatchObject({ do: "propose_policy", change: { text: "Be kind." } });
});

test("[RD9] a rule that would silence the owner who asks is refused, and so is one for everything", () => {
  for (const input of [
    { outcome: "mute", source: "web" },
    { outcome: "ignore", place: "widget" },
    { outcome: "record", kind: "message" },
    { outcome: "mute", principal: owner.id },
  ])
    expect(actOf(plan(input))).toContain("narrow it");
  expect(actOf(plan({ outcome: "mute" }))).toContain("deaf");
  expect(actOf(plan({ outcome: "request", source: "web" }))).toMatchObject({ do: "propose" });
  expect(actOf(plan({ outcome: "mute", source: "web", principal: "guest-1" }))).toMatchObject({ do: "propose" });
});

test("[RD9] neither a member nor a turn that read public text changes a policy", () => {
  const item = said("switch it off", member);
  const view = {
    turn: 1,
    step: 1,
    lane: "team" as const,
    capped: false,
    nowMs: 1,
    agentName: "S",
    items: new Map([[item.id, item]]),
    progress: new Map(),
    tasks: new Map(),
    machines: [],
    policies: [],
  };
  const call = { callId: "1", tool: "set_policy", input: { settles: [item.id], change: { id: "calm", on: false } } };
  expect(decideStep(view, [call]).decisions[0]).toMatchObject({ by: "code", effects: [{ kind: "post" }] });
  const owns = said("switch it off");
  const capped = { ...view, capped: true, items: new Map([[owns.id, owns]]) };
  const asked = { ...call, input: { ...call.input, settles: [owns.id] } };
  expect(decideStep(capped, [asked]).decisions).toEqual([]);
  expect(decideStep({ ...capped, capped: false }, [asked]).decisions[0]?.effects[0]).toMatchObject({ kind: "policy" });
});

test("[G9] what is remembered, and a change of rules, say which policy they followed", () => {
  const item = said("remember that we deploy on Fridays");
  const policies = [{ id: "calm", version: 3, text: "…" }];
  const view = {
    turn: 1,
    step: 1,
    lane: "team" as const,
    capped: false,
    nowMs: 1,
    agentName: "S",
    items: new Map([[item.id, item]]),
    progress: new Map(),
    tasks: new Map(),
    machines: [],
    policies,
  };
  const by = { settles: [item.id], policy: "calm", policyWhy: "it says so" };
  for (const [tool, input] of [
    ["remember", { kind: "rule", text: "We deploy on Fridays." }],
    ["set_policy", mute],
  ] as const) {
    const { decisions } = decideStep(view, [{ callId: "1", tool, input: { ...by, ...input } }]);
    expect(decisions[0]?.policy).toEqual({ id: "calm", version: 3, why: "it says so" });
  }
});

test("[G5] a preview says how many events it fits and what would have changed, without anybody's words", () => {
  const recent = (n: number, login: string): RecentTrigger => ({
    id: `trg_a-${n}`,
    threadId: "thr_a",
    threadKey: "pull:7",
    source: "github",
    place: "acme/app",
    kind: "pull_request.opened",
    principal: { role: "bot", id: login, name: login },
    addressed: false,
    text: "secret words",
    atMs: n,
    rule: "r",
  });
  const planned = actOf(plan(mute));
  if (typeof planned === "string" || planned.do !== "propose") throw new Error("no proposal");
  const before = { version: 1, rules: [{ id: "all", outcome: "candidate" as const, reason: "x" }] };
  const after = { version: 2, rules: [planned.rule, ...before.rules] };
  const words = (list: RecentTrigger[]) => trialWords(tryRules(before, after, list), planned.rule.id);
  const list = [recent(1, "dependabot[bot]"), recent(2, "dependabot[bot]"), recent(3, "renovate[bot]")];
  expect(words(list)).toBe(
    "It fits 2 of the last 3 events and would have changed 2: 2 pull_request.opened by dependabot[bot] in acme/app (judged → muted).",
  );
  expect(words(list.slice(2))).toBe("Of the last 1 events it fits none.");
  expect(words([])).toContain("Nothing came lately");
  expect(ruleWords(planned.rule)).toBe(
    "Everything by dependabot[bot] from github is muted: no task that follows a thread hears it either.",
  );
});

test("[G15] a name that people say for a program reaches its account, and the preview says which accounts", () => {
  const planned = actOf(plan({ outcome: "mute", source: "github", principal: "renovate" }));
  if (typeof planned === "string" || planned.do !== "propose") throw new Error("no proposal");
  const by = (id: string) => ({ ...said("x").trigger, source: "github", principal: { role: "bot" as const, id, name: id } });
  const outcome = (id: string) => judge({ version: 1, rules: [planned.rule] }, by(id)).outcome;
  expect([outcome("renovate[bot]"), outcome("renovate"), outcome("dependabot[bot]")]).toEqual(["mute", "mute", "record"]);
  expect(ruleWords(planned.rule)).toContain("Everything by renovate or renovate[bot] from github is muted");
});

test("[G2] a rule may speak of one thread: by its id, its key, or its number", () => {
  const trigger = { ...said("x").trigger, source: "github", place: "acme/app", threadKey: "pull:12" };
  const outcome = (thread: string, place = "acme/app") =>
    judge({ version: 1, rules: [{ id: "r", outcome: "mute", place, thread, reason: "r" }] }, trigger).outcome;
  for (const thread of [trigger.threadId, "pull:12", "#12"]) expect(outcome(thread)).toBe("mute");
  for (const thread of ["thr_else", "issue:12", "#2", "#112", "12"]) expect(outcome(thread)).toBe("record");
  expect(outcome("#12", "acme/other")).toBe("record");
});

test("[RD9] a change of a policy is shown beside what holds, and the list says how to take a rule back", () => {
  const known = { id: "calm", version: 2, text: "Be quiet.", enabled: true, savedBy: "o", savedMs: 1 };
  expect(changeWords(known, { id: "calm", on: false })).toBe("the policy “calm” (version 2), on → off, with the same words");
  expect(changeWords(known, { id: "calm", text: "Be loud." })).toBe("the policy “calm” (version 2), on, “Be quiet.” → “Be loud.”");
  expect(changeWords(undefined, { id: "calm", on: true })).toBeNull();
  expect(listWords([known], [{ id: "chat.rul_abc", outcome: "mute", place: "acme/app", reason: "r" }])).toBe(
    "- calm (on, version 2): Be quiet.\n- rul_abc: Everything in acme/app is muted: no task that follows a thread hears it either.\nTo take a rule back, say “undo” and its rul_ name.",
  );
});
