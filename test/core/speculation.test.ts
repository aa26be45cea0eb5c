import { describe, expect, test } from "vitest";
import type { InboxItem, KnownTask, QueuedTrigger } from "../../src/core/router.ts";
import { decideStep, type TurnView } from "../../src/core/router-decide.ts";
import { renderTurn } from "../../src/core/router-items.ts";
import { taskEntry } from "../../src/core/router-memory.ts";
import { changed, changeWords, listWords } from "../../src/core/router-policy-words.ts";
import { callsToday, closeAs, figuresOf, mootBy, onReport, overWaste } from "../../src/core/speculation.ts";
import type { Policy } from "../../src/protocol/policy.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { Speculation, SpeculationSetting } from "../../src/protocol/speculation.ts";
import type { Report } from "../../src/protocol/task.ts";
import type { ThreadRow } from "../../src/protocol/thread.ts";
import { guest, machineOf, member, owner, queuedReport, queuedTrigger, reportOf, taskOf } from "../support/router-fixtures.ts";

const hourMs = 60 * 60_000;
const nowMs = 1_000 * hourMs;
const policy: Policy = {
  id: "fix-early",
  version: 3,
  text: "When a member of the team reports a bug, look for its cause.",
  speculation: { places: [{ source: "github", place: "Acme/App" }], callsPerTask: 6, callsPerDay: 20, maxWastedCalls: 30 },
};
const ci: Principal = { role: "bot", id: "github-actions", name: "checks", onBehalfOf: "member" };

/** What somebody said in passing, or a program did: nobody asked for anything. */
function happened(name: string, by: Principal, parts: Partial<QueuedTrigger["trigger"]> = {}): QueuedTrigger {
  const item = queuedTrigger({ name, by, thread: name, outcome: "candidate" });
  return { ...item, trigger: { ...item.trigger, addressed: false, ...parts } };
}
const bug = happened("bug", member);

const rowOf = (name: string, parts: Partial<Speculation> = {}): Speculation => ({
  taskId: taskOf(name).id,
  title: `work on ${name}`,
  policy: { id: policy.id, version: policy.version, maxWastedCalls: 30 },
  decisionId: taskOf(name).decisionId,
  threadId: `thr_${name}`,
  triggerId: `trg_${name}-1`,
  seq: 4,
  sha: null,
  source: "github",
  place: "acme/app",
  reservedCalls: 6,
  spent: null,
  dollars: null,
  outcome: "running",
  why: "",
  offerId: null,
  offerText: null,
  startedMs: nowMs - hourMs,
  settledMs: null,
  closedMs: null,
  ...parts,
});
const spent = (calls: number) => ({ calls, inputTokens: calls * 1000, outputTokens: calls * 100 });

function decide(items: InboxItem[], list: object[], parts: Partial<TurnView> = {}) {
  const view: TurnView = {
    turn: 1,
    step: 1,
    lane: "team",
    capped: false,
    nowMs,
    agentName: "Switchyard",
    items: new Map(items.map((item) => [item.id, item])),
    progress: new Map(),
    tasks: new Map(),
    machines: [machineOf("laptop")],
    policies: [policy],
    ...parts,
  };
  const calls = list.map((input, i) => ({ callId: `c${i}`, tool: "text" in input ? "reply" : "dispatch", input }));
  return decideStep(view, calls);
}
const wish = (item: InboxItem, more: object = {}) => ({
  settles: [item.id],
  title: `Look into ${item.id}`,
  goal: "Find the cause.",
  ...more,
});
const unasked = (item: InboxItem, more: object = {}) => wish(item, { speculative: true, policy: policy.id, ...more });
const refusal = (items: InboxItem[], input: object, parts: Partial<TurnView> = {}): string => {
  const { decisions, refused } = decide(items, [input], parts);
  expect(decisions).toEqual([]);
  return refused[0]?.reason ?? "";
};

describe("what may start", () => {
  test("[SP1] a policy that names the place lets work start that nobody asked for; by default nothing does", () => {
    const { decisions } = decide([bug], [unasked(bug)]);
    expect(decisions[0]).toMatchObject({ tool: "dispatch", settles: [bug.id], policy: { id: "fix-early", version: 3 } });
    expect(refusal([bug], unasked(bug), { policies: [] })).toContain("No policy");
    expect(refusal([bug], unasked(bug), { policies: [{ id: "fix-early", version: 3, text: "Fix bugs early." }] })).toContain("No policy");
    expect(refusal([bug], unasked(bug, { policy: undefined }))).toContain("No policy");
    expect(refusal([bug], unasked(bug, { policy: "another" }))).toContain("No policy");
  });

  test("[SP1] text from outside the team starts nothing, whatever the model says, and nobody there is told", () => {
    for (const by of [guest, { role: "public", id: "stranger", name: "stranger" }, { ...ci, onBehalfOf: "public" }] as Principal[]) {
      const item = happened("outside", by);
      for (const lane of ["team", "public"] as const) {
        const { decisions, refused } = decide([item], [unasked(item)], { lane });
        expect(decisions).toEqual([]);
        expect(refused[0]?.reason).toContain("outside the team");
      }
      const both = decide([item, bug], [unasked(bug, { settles: [bug.id, item.id] })]);
      expect(both.decisions).toEqual([]);
    }
    expect(refusal([bug], unasked(bug), { capped: true })).toContain("outside the team");
    const ours = happened("echo", { role: "agent", id: "router", name: "us", onBehalfOf: "owner" });
    expect(refusal([ours], unasked(ours))).toContain("what we said ourselves");
    const report = queuedReport(reportOf({ tainted: false }));
    expect(refusal([report], unasked(report))).toContain("not from a report");
  });

  test("[SP1] what somebody asked for is never speculation", () => {
    const request = queuedTrigger({ name: "please", by: member, thread: "9" });
    expect(refusal([request], unasked(request))).toContain("Somebody asked");
    const addressed = happened("hey", member, { addressed: true });
    expect(refusal([addressed], unasked(addressed))).toContain("Somebody asked");
  });

  test("[SP1] only in the places that the policy names", () => {
    const elsewhere = happened("x", member, { place: "acme/other" });
    expect(refusal([elsewhere], unasked(elsewhere))).toContain("allows no speculation for github acme/other");
    const anywhere = { ...policy, speculation: { ...policy.speculation, places: [{ source: "github", place: "*" }] } } as Policy;
    expect(decide([elsewhere], [unasked(elsewhere)], { policies: [anywhere] }).decisions).toHaveLength(1);
    const mail = happened("m", member, { source: "mail" });
    expect(refusal([mail], unasked(mail), { policies: [anywhere] })).toContain("mail");
  });

  test("[A2] a failed check of ours starts speculation where a policy allows it, and no other work", () => {
    const check = happened("check", ci, { kind: "check_run.completed", facts: { sha: "abc" } });
    expect(decide([check], [unasked(check)]).decisions[0]?.speculation).toMatchObject({ sha: "abc", outcome: "running" });
    expect(refusal([check], wish(check))).toContain("A program alone starts no work");
  });

  test("[SP3] out of its own budget there is no speculation, in one answer as over a day; people's work goes on", () => {
    const rows = [rowOf("a", { spent: spent(4), outcome: "discarded" }), rowOf("b"), rowOf("c", { startedMs: nowMs - 25 * hourMs })];
    expect(callsToday(rows, policy.id, nowMs)).toBe(10);
    expect(callsToday([rowOf("d", { outcome: "adopted", spent: spent(5) })], policy.id, nowMs)).toBe(0);
    const speculation = { rows, paused: new Map() };
    const others = [happened("one", member), happened("two", member), happened("three", member)];
    const [one, two, three] = others as [QueuedTrigger, QueuedTrigger, QueuedTrigger];
    const { decisions, refused } = decide(others, [unasked(one), unasked(two), wish(three)], { speculation });
    expect(decisions.map((each) => [each.settles[0], each.speculation !== undefined])).toEqual([
      [one.id, true],
      [three.id, false],
    ]);
    expect(refused[0]?.reason).toContain("budget of fix-early is used up: 4 of 20");
  });

  test("[SP1] a paused policy starts nothing, until it is saved again", () => {
    const speculation = { rows: [], paused: new Map([["fix-early@3", "waste"]]) };
    expect(refusal([bug], unasked(bug), { speculation })).toContain("has paused itself");
    expect(decide([bug], [unasked(bug)], { speculation, policies: [{ ...policy, version: 4 }] }).decisions).toHaveLength(1);
  });

  test("[SP1] the same is not started twice, and not too many at once", () => {
    const here = (parts: Partial<Speculation>) => ({ rows: [rowOf("same", { threadId: bug.threadId, ...parts })], paused: new Map() });
    expect(refusal([bug], unasked(bug), { speculation: here({}) })).toContain("started for this already");
    expect(refusal([bug], unasked(bug), { speculation: here({ outcome: "offered" }) })).toContain("already (offered)");
    const again = here({ outcome: "discarded", title: `look into: ${bug.id}` });
    expect(refusal([bug], unasked(bug), { speculation: again })).toContain("already (discarded)");
    expect(decide([bug], [unasked(bug)], { speculation: here({ outcome: "discarded", title: "other" }) }).decisions).toHaveLength(1);
    const many = { rows: ["a", "b", "c", "d"].map((name) => rowOf(name, { reservedCalls: 1 })), paused: new Map() };
    expect(refusal([bug], unasked(bug), { speculation: many })).toContain("run already");
  });
});

describe("what it does to people", () => {
  test("[SP1] the public lane does not know where a policy allows it", () => {
    const turn = { turn: 1, readers: [], items: [], tasks: [], machines: [], observed: [], policies: [policy], summary: [], nowMs };
    expect(renderTurn({ ...turn, lane: "team" })).toContain("callsPerDay");
    const shown = renderTurn({ ...turn, lane: "public" });
    expect(shown).toContain("look for its cause");
    expect(shown).not.toMatch(/speculation|Acme/);
  });

  test("[SP2] it begins, and nothing else: no thread passes through to it, nothing is said, its share is reserved", () => {
    const { decisions } = decide([bug], [unasked(bug, { acknowledge: "On it!", deadlineMinutes: 60_000 })]);
    const [decision] = decisions;
    expect(decision?.effects.map(({ kind }) => kind)).toEqual(["start"]);
    expect(decision?.effects[0]).toMatchObject({
      input: {
        speculative: true,
        maxModelCalls: 6,
        authority: "member",
        deadlineMs: nowMs + 2 * hourMs,
        quote: { text: bug.trigger.text },
      },
    });
    expect(decision?.newTask).toMatchObject({ speculative: true, threads: [], threadId: bug.threadId });
    expect(decision?.speculation).toMatchObject({
      reservedCalls: 6,
      spent: null,
      outcome: "running",
      policy: { id: "fix-early", version: 3 },
    });
    expect(decision?.reason).toContain("speculation by fix-early");
  });

  test("[SP2] words beside it are refused: nobody hears of what nobody asked for", () => {
    const { decisions, refused } = decide([bug], [unasked(bug), { settles: [bug.id], text: "I am looking into it." }]);
    expect(decisions.map(({ tool }) => tool)).toEqual(["dispatch"]);
    expect(refused).toHaveLength(1);
  });

  test("[SP2] people outside the team neither see nor find it", () => {
    const task = taskOf("hidden", { speculative: true, source: "github", threadId: bug.threadId, threads: [] });
    expect(taskEntry(task, "goal").threadId).toBe("");
    expect(taskEntry({ ...task, speculative: false }, "goal").threadId).toBe(bug.threadId);
  });
});

describe("what becomes of it", () => {
  const task = taskOf("s");
  const report = (parts: Partial<Report>): Report => reportOf({ task, spent: spent(3), ...parts });
  const sure = { confidence: 0.9, straightforward: true };

  test("[SP4] a confirmed and straightforward result is offered, every other one discarded with its reason", () => {
    const row = rowOf("s");
    expect(onReport(row, report(sure), null)).toMatchObject({ offer: true, stop: false, row: { outcome: "offered", closedMs: null } });
    for (const [parts, why] of [
      [{ ...sure, confidence: 0.79 }, "not sure enough"],
      [{ confidence: 0.99 }, "needs a judgement"],
      [{ straightforward: true }, "not sure enough"],
      [{ ...sure, tainted: true }, "outside the team"],
      [{ kind: "failed", status: "failed" }, "it failed"],
    ] as [Partial<Report>, string][])
      expect(onReport(row, report(parts), null)).toMatchObject({
        offer: false,
        row: { outcome: "discarded", why: expect.stringContaining(why), spent: spent(3) },
      });
  });

  test("[SP4] who would have to ask, or is out of calls or time, ends; its calls are settled by its own end", () => {
    for (const [kind, status] of [
      ["question", "waiting"],
      ["blocked", "waiting"],
      ["paused", "paused"],
      ["overdue", "running"],
    ] as const) {
      const { spent: _, ...open } = report({ kind, status });
      const step = onReport(rowOf("s"), open, null);
      expect(step).toMatchObject({ stop: true, offer: false, row: { outcome: "discarded", spent: null } });
      const end = onReport(step.row, report({ kind: "cancelled", status: "cancelled" }), null);
      expect(end).toMatchObject({ stop: false, row: { outcome: "discarded", spent: spent(3) } });
    }
    for (const kind of ["progress", "waiting", "notice", "answer"] as const)
      expect(onReport(rowOf("s"), report({ kind, status: "running" }), null).row).toEqual(rowOf("s"));
  });

  test("[SP3] a task is settled once, with what it spent; one that does not say costs what it reserved", () => {
    const price = { inputDollars: 3, outputDollars: 15 };
    const { row } = onReport(rowOf("s"), report(sure), price);
    expect(row).toMatchObject({ spent: spent(3), dollars: (3000 * 3 + 300 * 15) / 1e6 });
    expect(onReport(row, report({ ...sure, spent: spent(5) }), price).row).toEqual(row);
    const { spent: _, ...silent } = report(sure);
    expect(onReport(rowOf("s"), silent, null).row.spent).toEqual({ calls: 6, inputTokens: 0, outputTokens: 0 });
  });

  test("[SP4] what is over stays as it is", () => {
    const over = closeAs(rowOf("s"), "moot", "closed", nowMs);
    expect(closeAs(over, "accepted", "late", nowMs)).toBe(over);
    expect(onReport(over, report(sure), null)).toMatchObject({ offer: false, row: { outcome: "moot", spent: spent(3) } });
  });
});

describe("somebody asks for it meanwhile", () => {
  const asked = queuedTrigger({ name: "please", by: member, thread: "77" });
  const running = taskOf("running", { authority: "member", source: "github", speculative: true, threads: [], threadId: asked.threadId });
  const row = rowOf("running", { threadId: asked.threadId });
  const speculation = { rows: [row], paused: new Map() };
  const known = (task: KnownTask) => ({ tasks: new Map([[task.id, task]]), speculation });

  test("[SP5] the task becomes theirs: it follows the thread, hears their words, and nothing is started twice", () => {
    const { decisions } = decide([asked], [wish(asked, { acknowledge: "On it." })], known(running));
    const [decision] = decisions;
    expect(decision).toMatchObject({ taskId: row.taskId, adopted: row.taskId, chain: row.decisionId });
    expect(decision?.effects.map(({ kind }) => kind)).toEqual(["subscribe", "adopt", "tell", "post"]);
    expect(decision?.effects[1]).toMatchObject({ input: { maxModelCalls: 15, quote: { from: member } } });
    expect(decision?.effects[1]?.kind === "adopt" && decision.effects[1].input.speculative).toBeUndefined();
    expect(decision?.newTask).toMatchObject({ threads: [asked.threadId], status: "running" });
    expect(decision?.newTask?.speculative).toBeUndefined();
  });

  test("[SP5] named from the person's own conversation it gets a topic there", () => {
    const root = queuedTrigger({ name: "root", by: member });
    const { decisions } = decide([root], [wish(root, { adopt: row.taskId })], known(running));
    expect(decisions[0]?.effects.map(({ kind }) => kind)).toEqual(["attach_topic", "open_topic", "adopt", "tell"]);
    expect(decisions[0]?.newTask?.audience).toContain(member.id);
    expect(refusal([root], wish(root, { adopt: "tsk_nothing" }), known(running))).toContain("no speculative task");
  });

  test("[SP5] an owner's asking raises no authority: it holds the words of both", () => {
    const boss = queuedTrigger({ name: "boss", by: owner, thread: "77" });
    const { decisions } = decide([boss], [wish(boss)], known(running));
    expect(decisions[0]?.newTask?.authority).toBe("member");
    const high = { ...running, authority: "owner" } as KnownTask;
    expect(decide([asked], [wish(asked)], known(high)).decisions[0]?.newTask?.authority).toBe("member");
  });

  test("[SP5] people outside the team take over nothing; they are told as for any work", () => {
    const visitor = queuedTrigger({ name: "visitor", by: guest, thread: "77" });
    const { decisions } = decide([visitor], [wish(visitor, { adopt: row.taskId })], { ...known(running), lane: "public" });
    expect(decisions[0]).toMatchObject({ by: "code", tool: "dispatch" });
    expect(decisions[0]?.adopted).toBeUndefined();
  });

  test("[SP5] one that read public text, or of another conversation, ends instead, and the person gets a task of their own", () => {
    const private_ = { ...running, audience: "web prs_other" } as KnownTask;
    for (const task of [{ ...running, tainted: true }, private_]) {
      const { decisions } = decide([asked], [wish(asked)], known(task));
      expect(decisions[0]).toMatchObject({ replaced: [row.taskId] });
      expect(decisions[0]?.taskId).not.toBe(row.taskId);
      expect(decisions[0]?.effects.map(({ kind }) => kind)).toEqual(["subscribe", "start", "cancel"]);
      expect(refusal([asked], wish(asked, { adopt: row.taskId }), known(task))).toContain("leave `adopt` out");
    }
  });

  test("[SP5] facts handed to it would be heard by nobody: they are refused, a stop is not", () => {
    const items = new Map<string, InboxItem>([[asked.id, asked]]);
    const call = (tool: string, input: object) =>
      decideStep({ ...baseView, ...known(running), items }, [
        { callId: "c", tool, input: { settles: [asked.id], task: row.taskId, ...input } },
      ]);
    expect(call("deliver", { facts: "x" }).refused[0]?.reason).toContain("Nobody asked for that task");
    expect(call("resolve", { how: "reopen", note: "x" }).refused[0]?.reason).toContain("Nobody asked for that task");
    expect(call("cancel", { reason: "stop it" }).decisions).toHaveLength(1);
  });
});

const baseView: TurnView = {
  turn: 1,
  step: 1,
  lane: "team",
  capped: false,
  nowMs,
  agentName: "Switchyard",
  items: new Map(),
  progress: new Map(),
  tasks: new Map(),
  machines: [],
  policies: [],
};

describe("nobody needs it", () => {
  const later = (seq: number, kind: string, facts: Record<string, string> = {}): ThreadRow => ({
    kind: "trigger",
    seq,
    atMs: 1,
    trigger: { ...bug.trigger, kind, facts },
    verdict: { outcome: "record", rule: "r", reason: "r" },
  });

  test("[SP6] a closed thread and a newer head make it moot; what was before, and other news, does not", () => {
    const row = rowOf("m", { sha: "old" });
    expect(mootBy(row, [later(5, "issues.closed")])).toContain("closed");
    expect(mootBy(row, [later(5, "pull_request.closed")])).toContain("closed");
    expect(mootBy(row, [later(5, "pull_request.synchronize", { sha: "new" })])).toContain("newer commits");
    expect(mootBy(row, [later(5, "push", { sha: "new" })])).toContain("newer commits");
    for (const other of [
      later(4, "issues.closed"),
      later(5, "push", { sha: "old" }),
      later(5, "issue_comment.created"),
      later(5, "issues.labeled"),
    ])
      expect(mootBy(row, [other])).toBeNull();
    expect(mootBy(rowOf("m"), [later(5, "push", { sha: "new" })])).toBeNull();
  });
});

describe("the ledger of waste", () => {
  const rows = [
    rowOf("a", { outcome: "accepted", spent: spent(4), dollars: 0.04, settledMs: nowMs - hourMs + 60_000 }),
    rowOf("b", { outcome: "edited", spent: spent(2), dollars: 0.02, settledMs: nowMs - hourMs + 60_000 }),
    rowOf("c", { outcome: "rejected", spent: spent(5), dollars: 0.05 }),
    rowOf("d", { outcome: "expired", spent: spent(5), dollars: 0.05 }),
    rowOf("e", { outcome: "discarded", spent: spent(6), dollars: 0.06 }),
    rowOf("f", { outcome: "adopted", spent: spent(6), dollars: 0.06 }),
    rowOf("g", { startedMs: nowMs - 8 * 24 * hourMs, outcome: "rejected", spent: spent(90) }),
    rowOf("h"),
  ];

  test("[SP7] it says what was offered and taken, and what was spent for nothing", () => {
    const [figures, ...others] = figuresOf({ rows, paused: new Map() }, nowMs);
    expect(others).toEqual([]);
    expect(figures).toMatchObject({
      policyId: "fix-early",
      tasks: 7,
      outcomes: { accepted: 1, edited: 1, rejected: 1, expired: 1, discarded: 1, adopted: 1, running: 1 },
      acceptedShare: 0.5,
      calls: 28,
      wastedCalls: 16,
      paused: null,
    });
    expect(figures?.wastedDollars).toBeCloseTo(0.16);
    expect(figuresOf({ rows: [rowOf("x")], paused: new Map([["fix-early@3", "why"]]) }, nowMs)[0]).toMatchObject({
      acceptedShare: null,
      dollars: null,
      paused: "why",
    });
  });

  test("[SP7] past its limit of waste, counted since it was saved last, a policy pauses", () => {
    const limit = (maxWastedCalls: number, version = 3) => ({ id: "fix-early", version, maxWastedCalls });
    expect(overWaste(rows, limit(16), nowMs)).toBeNull();
    expect(overWaste(rows, limit(15), nowMs)).toContain("16 model calls");
    expect(overWaste(rows, limit(1, 4), nowMs)).toBeNull();
  });
});

describe("an owner switches it in the chat", () => {
  const known = {
    id: "early",
    version: 2,
    text: "Look early.",
    enabled: true,
    savedBy: "owner",
    savedMs: 1,
    speculation: policy.speculation as SpeculationSetting,
  };

  test("[SP1] it is shown with its places and its budget before it is saved, and kept by other changes", () => {
    const words = changeWords({ ...known, speculation: undefined } as never, { id: "early", speculation: known.speculation });
    expect(words).toContain("lets work start by itself in github Acme/App, with 6 model calls a task and 20 a day, until 30 were wasted");
    expect(changed(known, { id: "early", on: false })).toEqual({ text: "Look early.", enabled: false, speculation: known.speculation });
    expect(changed(known, { id: "early", speculation: null })).toEqual({ text: "Look early.", enabled: true });
    expect(changeWords(known, { id: "early", speculation: null })).toContain("lets nothing start by itself");
    expect(listWords([known], [])).toContain("starts work by itself");
  });
});
