import { describe, expect, test } from "vitest";
import { triggerIdOf } from "../../src/core/ids.ts";
import { countWords } from "../../src/core/manners.ts";
import { shippedProfiles } from "../../src/core/profiles.ts";
import type { InboxItem, QueuedTrigger } from "../../src/core/router.ts";
import { readCall } from "../../src/core/router-calls.ts";
import { decideStep, type TurnView } from "../../src/core/router-decide.ts";
import { effectRows, type RouterEffect } from "../../src/core/router-plan.ts";
import { limits } from "../../src/protocol/limits.ts";
import { routerTools } from "../../src/protocol/router-tools.ts";
import { guest, machineOf, member, owner, queuedReport, queuedTrigger, reportOf, taskOf } from "../support/router-fixtures.ts";

const root = queuedTrigger({ name: "root", by: member });
const issue = queuedTrigger({ name: "issue", by: member, thread: "12" });
const visitor = queuedTrigger({ name: "visitor", by: guest });
const laptop = machineOf("laptop");

const viewOf = (items: InboxItem[], parts: Partial<TurnView> = {}): TurnView => ({
  turn: 7,
  step: 1,
  lane: items[0]?.lane ?? "team",
  capped: false,
  nowMs: 1000,
  agentName: "Switchyard",
  items: new Map(items.map((item) => [item.id, item])),
  progress: new Map(),
  tasks: new Map(),
  machines: [laptop],
  policies: [],
  profiles: shippedProfiles,
  ...parts,
});
const calls = (...list: [string, unknown][]) => list.map(([tool, input], i) => ({ callId: `c${i}`, tool, input }));
const decide = (items: InboxItem[], list: [string, unknown][], parts: Partial<TurnView> = {}) =>
  decideStep(viewOf(items, parts), calls(...list));
const kinds = (effects: RouterEffect[] | undefined) => effects?.map((effect) => effect.kind);
const posts = (effects: RouterEffect[] | undefined) => effects?.flatMap((effect) => (effect.kind === "post" ? [effect.input] : [])) ?? [];
const work = (item: InboxItem, more: object = {}): [string, unknown] => [
  "dispatch",
  { settles: [item.id], title: "Run the tests", goal: "Run them and say what fails.", ...more },
];

describe("reading calls", () => {
  test("[RD1] a tool that does not exist and an input that does not fit are refused in words, and nothing is done", () => {
    const outcome = decide(
      [root],
      [
        ["run_command", { script: "rm -rf /" }],
        ["reply", { settles: [], text: "x" }],
        ["reply", "{broken"],
      ],
    );
    expect(outcome.decisions).toEqual([]);
    expect(outcome.refused.map((each) => each.reason)).toEqual([
      expect.stringContaining('There is no tool "run_command"'),
      expect.stringContaining("The input of reply does not fit"),
      expect.stringContaining("The input of reply does not fit"),
    ]);
    expect(outcome.results.every((result) => result?.includes("refused"))).toBe(true);
  });

  test("[RD1] a page that no list can have fits no read", () => {
    for (const tool of ["find", "recall"] as const) {
      expect(readCall({ callId: "c", tool, input: { id: "dec_a", query: "x", page: 1e300 } })).toHaveProperty("problem");
      expect(readCall({ callId: "c", tool, input: { id: "dec_a", query: "x", page: 7 } })).not.toHaveProperty("problem");
    }
  });

  test("[RD1] a name inherited from Object is no tool", () => {
    for (const tool of ["constructor", "toString", "__proto__"])
      expect(readCall({ callId: "c", tool, input: {} })).toHaveProperty("problem");
  });

  test("there is no tool that executes anything", () => {
    expect(Object.keys(routerTools)).toEqual([
      "reply",
      "relay",
      "dispatch",
      "deliver",
      "record",
      "ignore",
      "cancel",
      "resolve",
      "release",
      "ask_human",
      "remember",
      "set_policy",
      "schedule",
      "recall",
      "find",
    ]);
  });
});

describe("settling", () => {
  test("[RD2] an unknown id settles nothing; a known one beside it counts", () => {
    expect(decide([root], [["record", { settles: ["trg_no-no"], reason: "r" }]]).refused[0]?.reason).toContain("trg_no-no does not wait");
    const both = decide([root], [["record", { settles: [root.id, "trg_no-no"], reason: "r" }]]);
    expect(both.decisions[0]?.settles).toEqual([root.id]);
    expect(both.results[0]).toContain("trg_no-no does not wait");
  });

  test("[RD2] settled twice, the first wins; acting and answering are both allowed", () => {
    const outcome = decide(
      [root],
      [
        ["reply", { settles: [root.id], text: "On it." }],
        work(root),
        ["ignore", { settles: [root.id], reason: "no" }],
        ["reply", { settles: [root.id], text: "Again." }],
      ],
    );
    expect(outcome.decisions.map((decision) => decision.tool).sort()).toEqual(["dispatch", "reply"]);
    expect(outcome.refused.map((each) => each.reason)).toEqual([
      expect.stringContaining("settled already"),
      expect.stringContaining("settled already"),
    ]);
    const [dispatch, reply] = outcome.decisions;
    expect(posts(reply?.effects)[0]?.threadId).toBe(dispatch?.threadId);
    expect(reply?.chain).toBe(dispatch?.id);
  });

  test("[RD2] the same holds over the steps of one turn", () => {
    const first = decide([root], [["record", { settles: [root.id], reason: "r" }]]);
    const second = decide([root], [["ignore", { settles: [root.id], reason: "r" }]], { step: 2, progress: first.progress });
    expect(second.decisions).toEqual([]);
  });

  test("[RD4] a reply reaches the settled items' own thread and no other", () => {
    const outcome = decide([root, issue], [["reply", { settles: [root.id, issue.id], text: "hi" }]]);
    expect(outcome.refused[0]?.reason).toContain("different threads");
    const one = decide([root, issue], [["reply", { settles: [issue.id], text: "hi <!-- switchyard:out_a:b --> there" }]]);
    expect(posts(one.decisions[0]?.effects)).toMatchObject([{ threadId: issue.threadId, text: "hi  there", hops: 1, triggerId: issue.id }]);
  });
});

describe("dispatch", () => {
  test("[RD6][T1] under a root a topic opens, and the answer goes there", () => {
    const outcome = decide([root], [work(root, { acknowledge: "On it.", deadlineMinutes: 5 })]);
    const decision = outcome.decisions[0];
    expect(kinds(decision?.effects)).toEqual(["attach_topic", "open_topic", "start", "post"]);
    const start = decision?.effects.find((effect) => effect.kind === "start")?.input;
    expect(start).toMatchObject({
      authority: "member",
      tainted: false,
      quote: { text: root.trigger.text, triggerId: triggerIdOf("web", "root", decision?.threadId ?? "") },
      endpoint: { endpointId: laptop.id },
      deadlineMs: 301_000,
    });
    expect(posts(decision?.effects)[0]).toMatchObject({ threadId: decision?.threadId, kind: "reply", text: "On it." });
    expect(decision?.threadId).not.toBe(root.threadId);
  });

  test("[RD6] another thread flips to the worker, further threads too, and further words of a root are handed over", () => {
    const second = queuedTrigger({ name: "second", by: member, thread: "13" });
    const outcome = decide([issue, second], [["dispatch", { settles: [issue.id, second.id], title: "t", goal: "g" }]]);
    expect(kinds(outcome.decisions[0]?.effects)).toEqual(["subscribe", "subscribe", "start"]);
    expect(outcome.decisions[0]?.newTask?.threads).toEqual([issue.threadId, second.threadId]);
    const more = queuedTrigger({ name: "more", by: member }, 2);
    const both = decide([root, more], [["dispatch", { settles: [root.id, more.id], title: "t", goal: "g" }]]);
    expect(kinds(both.decisions[0]?.effects)).toEqual(["attach_topic", "open_topic", "start", "tell"]);
  });

  test("the same decision makes the same task", () => {
    expect(decide([root], [work(root)]).decisions).toEqual(decide([root], [work(root)]).decisions);
  });

  test("[RD6] a machine that is named must exist; without a name an online one comes first", () => {
    expect(decide([root], [work(root, { machine: "mainframe" })]).refused[0]?.reason).toContain("there are laptop");
    const off = machineOf("alpha", { online: false, seenMs: 9 });
    const chosen = (machines: TurnView["machines"]) =>
      decide([root], [work(root)], { machines }).decisions[0]?.effects.find((effect) => effect.kind === "start")?.input.endpoint?.name;
    expect(chosen([off, laptop])).toBe("laptop");
    expect(chosen([off, machineOf("beta", { online: false, seenMs: 3 })])).toBe("alpha");
    expect(chosen([machineOf("gone", { revoked: true })])).toBeUndefined();
  });

  test("[RD6] work that needs a workspace goes to a machine that has it, and begins there", () => {
    const attic = machineOf("attic", { online: false, seenMs: 9, workspaces: ["site", "Docs"] });
    const cellar = machineOf("cellar", { online: false, seenMs: 3, workspaces: ["docs"] });
    const start = (input: object, machines: TurnView["machines"]) =>
      decide([root], [work(root, input)], { machines }).decisions[0]?.effects.find((effect) => effect.kind === "start")?.input.endpoint;
    expect(start({ workspace: "docs" }, [laptop, attic, cellar])).toMatchObject({ name: "attic", workspaces: ["Docs", "site"] });
    expect(start({ workspace: "docs" }, [laptop, attic, { ...cellar, online: true }])).toMatchObject({ name: "cellar" });
    expect(start({ workspace: "docs", machine: "cellar" }, [laptop, attic, cellar])).toMatchObject({ name: "cellar" });
    const refused = (input: object, machines: TurnView["machines"]) => decide([root], [work(root, input)], { machines }).refused[0]?.reason;
    expect(refused({ workspace: "docs", machine: "laptop" }, [laptop, attic])).toBe("That machine has no such workspace; attic has it.");
    expect(refused({ workspace: "kitchen" }, [laptop, attic])).toBe("No machine has that workspace; there are app, site, Docs.");
    expect(refused({ workspace: "docs" }, [laptop, { ...attic, revoked: true }])).toBe("No machine has that workspace; there are app.");
    expect(refused({ workspace: "docs" }, [])).toContain("leave `workspace` out");
  });
});

describe("authority", () => {
  test("[RD5] a guest who asks for work hears why not, the team sees it, and the trigger is settled", () => {
    const outcome = decide([visitor], [work(visitor), ["reply", { settles: [visitor.id], text: "Started!" }]]);
    expect(outcome.decisions).toHaveLength(1);
    const refusal = outcome.decisions[0];
    expect(refusal).toMatchObject({ by: "code", settles: [visitor.id], authority: "guest", notice: { kind: "refusal" } });
    expect(kinds(refusal?.effects)).toEqual(["post"]);
    expect(posts(refusal?.effects)[0]).toMatchObject({ kind: "notice", threadId: visitor.threadId });
  });

  test("[RD5] a guest cannot stop or steer a task, and does not learn whether it exists", () => {
    const task = taskOf("secret");
    const answers = [task.id, "tsk_none"].map((id) => {
      const outcome = decide([visitor], [["cancel", { settles: [visitor.id], task: id, reason: "r" }]], {
        tasks: new Map([[task.id, task]]),
      });
      return { kinds: kinds(outcome.decisions[0]?.effects), result: outcome.results[0] };
    });
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]?.kinds).toEqual(["post"]);
  });

  test("[RD5] a member cannot stop what an owner started; the owner can, with the decision's authority", () => {
    const task = taskOf("owned", { authority: "owner" });
    const tasks = new Map([[task.id, task]]);
    const boss = queuedTrigger({ name: "boss", by: owner });
    const stop = (item: InboxItem) => decide([item], [["cancel", { settles: [item.id], task: task.id, reason: "stop" }]], { tasks });
    expect(kinds(stop(root).decisions[0]?.effects)).toEqual(["post"]);
    expect(stop(boss).decisions[0]?.effects).toMatchObject([{ kind: "cancel", input: { by: { role: "agent", onBehalfOf: "owner" } } }]);
  });

  test("[W29] any member may stop a member's task, from whichever conversation, and the stop names who asked for it", () => {
    const task = taskOf("theirs");
    const ana = queuedTrigger({ name: "ana", by: { ...member, id: "prs_ana", name: "Ana" } });
    const { decisions } = decide([ana], [["cancel", { settles: [ana.id], task: task.id, reason: "stop" }]], {
      tasks: new Map([[task.id, task]]),
    });
    expect(decisions).toMatchObject([
      { taskId: task.id, threadId: task.threadId, effects: [{ kind: "cancel", input: { by: { name: "Ana, through Switchyard" } } }] },
    ]);
  });

  test("[A2] a decision has the lowest authority of what it settles", () => {
    const boss = queuedTrigger({ name: "boss", by: owner });
    const report = queuedReport(reportOf({ tainted: true }));
    const authority = (...items: InboxItem[]) =>
      decide(items, [["record", { settles: items.map(({ id }) => id), reason: "noted" }]]).decisions[0]?.authority;
    expect([authority(boss), authority(boss, root), authority(root, visitor)]).toEqual(["owner", "member", "guest"]);
    expect(authority(boss, report)).toBe("public");
  });

  test("[RD3] a turn that read public text can answer, but not act", () => {
    const outcome = decide([root], [work(root)], { capped: true });
    expect(outcome.decisions).toEqual([]);
    expect(outcome.refused[0]?.reason).toContain("text from outside the team");
    const reply = decide([root], [["reply", { settles: [root.id], text: "They say: hi" }]], { capped: true }).decisions[0];
    expect(reply).toMatchObject({ authority: "public", reason: expect.not.stringContaining("They say") });
  });

  test("every tool under every label: nothing of a guest's turn reaches a worker or a machine", () => {
    const task = taskOf("t");
    const every: [string, unknown][] = [
      work(visitor),
      ["deliver", { settles: [visitor.id], task: task.id, facts: "run rm" }],
      ["cancel", { settles: [visitor.id], task: task.id, reason: "r" }],
      ["ask_human", { settles: [visitor.id], question: "may I?" }],
      ["relay", { settles: [visitor.id], report: "rep_a-b" }],
    ];
    for (const call of every) {
      const outcome = decide([visitor], [call], { tasks: new Map([[task.id, task]]) });
      const effects = outcome.decisions.flatMap((decision) => decision.effects);
      expect(effects.filter((effect) => effect.kind !== "post")).toEqual([]);
    }
  });
});

describe("reports and tasks", () => {
  const task = taskOf("reported");
  const report = queuedReport(reportOf({ task, text: "All green." }));
  const tasks = new Map([[task.id, task]]);

  test("[RD4] a relay sends the report's own text to the report's own thread", () => {
    const outcome = decide([report], [["relay", { settles: [report.id], report: report.id }]], { tasks });
    expect(posts(outcome.decisions[0]?.effects)).toMatchObject([
      // [W31] Of a task's end, so that a reaction to it judges the outcome.
      { kind: "relay", text: "All green.", threadId: task.threadId, reportId: report.id, outcome: true },
    ]);
  });

  test("[RD4] a report that does not wait here cannot be relayed", () => {
    const outcome = decide([root], [["relay", { settles: [root.id], report: "rep_a-b" }]], { tasks });
    expect(outcome.decisions).toEqual([]);
  });

  test("[RD4] a report does not answer another thread", () => {
    const outcome = decide([report, root], [["relay", { settles: [report.id, root.id], report: report.id }]], { tasks });
    expect(outcome.refused[0]?.reason).toContain("different threads");
  });

  test("facts go to an open task only", () => {
    const send = (id: string, known = tasks) =>
      decide([root], [["deliver", { settles: [root.id], task: id, facts: "use tabs" }]], { tasks: known });
    expect(send(task.id).decisions[0]?.effects).toMatchObject([
      { kind: "tell", taskId: task.id, input: { text: "use tabs", tainted: false } },
    ]);
    expect(send("tsk_none").refused[0]?.reason).toContain("no task tsk_none");
    const ended = new Map([[task.id, { ...task, status: "done" as const, endedMs: 5 }]]);
    expect(send(task.id, ended).refused[0]?.reason).toContain("ended already");
  });

  test("a question for humans is a notice of the team and keeps the threads for the answer", () => {
    const decision = decide([root], [["ask_human", { settles: [root.id], question: "Which one?" }]]).decisions[0];
    expect(decision).toMatchObject({
      question: { threads: [{ threadId: root.threadId, triggerId: root.id }] },
      notice: { kind: "question" },
    });
  });
});

describe("[RD11] words that are too long for chat", () => {
  const long = Array.from({ length: 140 }, (_, i) => `word${i}`).join(" ");
  const say = (item: InboxItem, parts: Partial<TurnView> = {}) => decide([item], [["reply", { settles: [item.id], text: long }]], parts);

  test("come back once, to be said again shorter", () => {
    const outcome = say(root);
    expect(outcome.decisions).toEqual([]);
    expect(outcome.tooLong).toEqual([root.id]);
    expect(outcome.results[0]).toContain("140 words, and 100 fit here");
    expect(outcome.progress.size).toBe(0);
  });

  test("are cut the second time, in a later turn and in the last step, and all of it is kept beside", () => {
    for (const outcome of [
      say(root, { shortened: new Set([root.id]) }),
      say({ ...root, attempts: 1 }),
      say(root, { step: limits.maxRouterStepsPerTurn }),
    ]) {
      const [post] = posts(outcome.decisions[0]?.effects);
      expect(outcome.tooLong).toEqual([]);
      expect(countWords(post?.text ?? "")).toBeLessThanOrEqual(limits.maxInstantWords);
      expect(post?.fullText).toBe(long);
    }
  });

  test("of a report come back once as well, with the advice to reply instead", () => {
    const report = queuedReport(reportOf({ text: long }));
    const tasks = new Map([[report.report.taskId, taskOf("reported", { source: "web" })]]);
    const relay = (parts: Partial<TurnView>) =>
      decide([report], [["relay", { settles: [report.id], report: report.id }]], { tasks, ...parts });
    expect(relay({}).tooLong).toEqual([report.id]);
    expect(posts(relay({ shortened: new Set([report.id]) }).decisions[0]?.effects)[0]?.fullText).toBe(long);
  });

  const from = (source: string): QueuedTrigger => ({ ...issue, trigger: { ...issue.trigger, source } });

  test("[O13] come back in a chat behind a bridge as well, and are cut the second time", () => {
    expect(say(from("chat")).tooLong).toEqual([issue.id]);
    const [post] = posts(say(from("chat"), { shortened: new Set([issue.id]) }).decisions[0]?.effects);
    expect(countWords(post?.text ?? "")).toBeLessThanOrEqual(limits.maxInstantWords);
    expect(post?.fullText).toBe(long);
  });

  test.each(["github", "generic"])("are said as they are at %s", (source) => {
    const [post] = posts(say(from(source)).decisions[0]?.effects);
    expect(post?.text).toBe(long);
    expect(post).not.toHaveProperty("fullText");
  });
});

describe("[G9] the policy that a decision names", () => {
  const policies = [{ id: "quiet", version: 3, text: "Do not react to dependabot." }];
  const record = (more: object) => [["record", { settles: [root.id], reason: "noise", ...more }]] as [string, unknown][];

  test("is recorded with its version and why", () => {
    const [decision] = decide([root], record({ policy: "quiet", policyWhy: "It is dependabot." }), { policies }).decisions;
    expect(decision?.policy).toEqual({ id: "quiet", version: 3, why: "It is dependabot." });
  });

  test("is none when the model was shown no such policy, or named none; the decision stands", () => {
    for (const more of [{ policy: "invented" }, {}]) {
      const { decisions } = decide([root], record(more), { policies });
      expect(decisions).toHaveLength(1);
      expect(decisions[0]?.policy).toBeUndefined();
    }
  });

  test("keeps no words of the model after it read public text", () => {
    const [decision] = decide([root], record({ policy: "quiet", policyWhy: "evil words" }), { policies, capped: true }).decisions;
    expect(decision?.policy).toEqual({ id: "quiet", version: 3, why: "" });
  });

  test("is not written on a refusal by code", () => {
    const call: [string, unknown] = ["dispatch", { settles: [visitor.id], title: "x", goal: "y", policy: "quiet" }];
    const [decision] = decide([visitor], [call], { policies }).decisions;
    expect(decision).toMatchObject({ by: "code" });
    expect(decision?.policy).toBeUndefined();
  });
});

test("[WP2] a dispatch names a profile that there is, or is refused with the names of those that there are", () => {
  const started = (outcome: ReturnType<typeof decide>) =>
    outcome.decisions.flatMap(({ effects }) => effects.flatMap((effect) => (effect.kind === "start" ? [effect.input.profile] : [])));
  const profiles = [...shippedProfiles, { name: "release" }];
  expect(started(decide([root], [work(root, { profile: " Release " })], { profiles }))).toEqual(["release"]);
  expect(started(decide([root], [work(root)], { profiles }))).toEqual(["general"]);
  const refused = decide([root], [work(root, { profile: "wizard" })], { profiles });
  expect(refused.decisions).toEqual([]);
  expect(refused.refused[0]?.reason).toBe('There is no profile "wizard"; there are general, coder, researcher, triager, release.');
  expect(decide([root], [work(root, { profile: "release" })]).refused[0]?.reason).toContain('There is no profile "release"');
});

test("[RD14] a decision says when nobody had asked: neither by a request, nor by name, nor by a task that somebody wanted", () => {
  const overheard = (name: string, addressed: boolean, outcome: "candidate" | "request") => {
    const item = queuedTrigger({ name, by: member, thread: name, outcome });
    return { ...item, trigger: { ...item.trigger, addressed } };
  };
  const said = overheard("said", false, "candidate");
  const named = overheard("named", true, "candidate");
  const asked = overheard("asked", false, "request");
  const report = queuedReport(reportOf({}));
  const items = [said, named, asked, report];
  const view = {
    turn: 1,
    step: 1,
    lane: "team" as const,
    capped: false,
    nowMs: 1,
    agentName: "S",
    items: new Map(items.map((item) => [item.id, item])),
    progress: new Map(),
    tasks: new Map(),
    machines: [],
    policies: [],
  };
  const unasked = (...settled: { id: string }[]) =>
    decideStep(view, [{ callId: "1", tool: "record", input: { settles: settled.map(({ id }) => id), reason: "r" } }]).decisions[0]?.unasked;
  expect([unasked(said), unasked(named), unasked(asked), unasked(report), unasked(said, asked)]).toEqual([
    true,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  const spoken = (item: QueuedTrigger, more: object = {}) => {
    const policies = [{ id: "quiet", version: 2, text: "Be quiet." }];
    const reply = { tool: "reply" as const, input: { settles: [item.id], text: "Here I am.", ...more } };
    const { decisions } = decideStep({ ...view, policies }, [{ callId: "1", ...reply }]);
    return decisions.flatMap((decision) =>
      effectRows(decision, 0, 1).flatMap(({ effect }) => (effect.kind === "post" ? [effect.input.proactive] : [])),
    );
  };
  expect([spoken(said), spoken(asked), spoken(asked, { policy: "quiet", policyWhy: "It fits." })]).toEqual([[true], [undefined], [true]]);
});

describe("[RD15] a reply beside a call that was refused", () => {
  const reply = (item: InboxItem): [string, unknown] => ["reply", { settles: [item.id], text: "It is done." }];
  const timed = (more: object): [string, unknown] => ["schedule", { settles: [root.id], name: "n", text: "t", ...more }];

  test.each<[string, [string, unknown]]>([
    ["a schedule that never comes", timed({ cron: "0 0 30 2 *" })],
    ["a schedule beyond all calendars", timed({ everyMinutes: 1e300 })],
    ["a change of what is not there", ["schedule", { settles: [root.id], name: "gone", change: "cancel" }]],
    ["a dispatch to a machine that is not there", work(root, { machine: "nowhere" })],
    ["a dispatch that does not fit its form", ["dispatch", { settles: [root.id], title: "t" }]],
    ["a stop of what is not there", ["cancel", { settles: [root.id], task: "tsk_gone", reason: "r" }]],
  ])("%s is not said: it comes back with the reason, for another step", (_what, refused) => {
    const outcome = decide([root, issue], [reply(root), refused, reply(issue)]);
    expect(outcome.decisions.map(({ settles }) => settles)).toEqual([[issue.id]]);
    expect(outcome.again).toBe(true);
    const [first, second] = outcome.refused;
    expect(second?.reason).toBe(`Not said, because ${first?.tool} was refused: ${first?.reason} Say what is so.`);
    expect(outcome.progress.get(root.id)?.spoken ?? false).toBe(false);
  });

  test("is said where the item had its act, or the refused words were another reply", () => {
    const twice = decide([root], [work(root), ["record", { settles: [root.id], reason: "r" }], reply(root)]);
    expect(twice.decisions.map(({ tool }) => tool)).toEqual(["dispatch", "reply"]);
    const kept = decide([root], [["record", { settles: [root.id] }], reply(root)]);
    expect(kept.decisions.map(({ tool }) => tool)).toEqual(["reply"]);
    const words = decide([root], [["relay", { settles: [root.id], report: "rep_gone-a" }], reply(root)]);
    expect(words.decisions.map(({ tool }) => tool)).toEqual(["reply"]);
    expect([twice.again, words.again]).toEqual([false, false]);
  });
});
