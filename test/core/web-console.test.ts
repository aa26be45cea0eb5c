import { expect, test } from "vitest";
import { applyBoardChanges, emptyBoard } from "../../src/core/board.ts";
import { defaultRules } from "../../src/core/gate.ts";
import { grantable, shippedProfiles } from "../../src/core/profiles.ts";
import { mergeTimeline } from "../../src/core/timeline.ts";
import { type BoardTask, refusedByCode } from "../../src/protocol/board.ts";
import type { TimelineEntry, TimelineLane } from "../../src/protocol/console.ts";
import type { GateRule } from "../../src/protocol/gate.ts";
import { routerTools } from "../../src/protocol/router-tools.ts";
import { taskStatuses } from "../../src/protocol/task.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { workerTools } from "../../src/protocol/worker-tools.ts";
import { describeEvent } from "../../src/web/console/describe.ts";
import { filterTasks, isWhole, linkOf, mergeTasks, parseRoute, searchLink, sortTasks, waitingOf } from "../../src/web/console/model.ts";
import { emptyForm, fromProfileForm, toProfileForm } from "../../src/web/console/profiles-model.ts";
import { conditionsOf, familiesOf, findRules, fromForm, moved, sectionsOf, toForm } from "../../src/web/console/rules-model.ts";
import { findSetUps } from "../../src/web/console/search-model.ts";
import { figureWords, placesOf, placesText } from "../../src/web/console/speculation-model.ts";
import { asTitle, decisionWords, toolWords } from "../../src/web/console/tool-words.ts";
import { actionsOf, statusView } from "../../src/web/shared/status.ts";
import { ago, duration, offset } from "../../src/web/shared/time.ts";

const task = (taskId: string, over: Partial<BoardTask> = {}): BoardTask => ({
  taskId,
  threadId: "thr_a",
  title: taskId,
  status: "running",
  line: "",
  modelCalls: 2,
  startedMs: 1000,
  updatedMs: 1000,
  revision: 1,
  source: "web",
  place: "widget",
  askedBy: "member",
  ...over,
});

test("[O12] a proposal that the first screen has not whole is decided about on its own page", () => {
  const notice = { id: "out_a-b", atMs: 1, kind: "offer" as const, text: `Comment\n\n${"x".repeat(5_000)}` };
  const [cut] = applyBoardChanges(emptyBoard, [{ kind: "notice", notice }], new Set()).state.notices;
  expect([cut, { ...notice, text: "Comment\n\nFine." }].map((each) => each && isWhole(each))).toEqual([false, true]);
});

test("every address of the console leads to its page, and a strange one to a sentence", () => {
  expect(parseRoute("")).toEqual({ page: "now" });
  expect(parseRoute("#/machines")).toEqual({ page: "machines" });
  expect(parseRoute("#/task/tsk_ab-c2")).toEqual({ page: "task", id: "tsk_ab-c2" });
  expect([parseRoute("#/memory"), parseRoute("#/fact/fct_a")]).toEqual([{ page: "memory" }, { page: "fact", id: "fct_a" }]);
  for (const words of ["acme/app 100 %", "#12 & more", "größer", ""])
    expect(parseRoute(searchLink(words))).toEqual({ page: "search", words });
  expect(parseRoute("#/search/%E0%A4%A")).toEqual({ page: "search", words: "" });
  for (const hash of ["#/task/", "#/task/<img>", "#/nothing", "#/task/../x"]) expect(parseRoute(hash).page).toBe("unknown");
});

test("an id leads to what it names, or to its owner", () => {
  expect(linkOf("tsk_a")).toBe("#/task/tsk_a");
  expect(linkOf("rep_a-b")).toBe("#/task/tsk_a");
  expect(linkOf("out_a-b")).toBe("#/thread/thr_a");
  expect(linkOf("trg_a-b")).toBe("#/trigger/trg_a-b");
  expect(linkOf("fct_a")).toBe("#/fact/fct_a");
  expect(linkOf("cmd_a-b")).toBeNull();
  expect(linkOf("hello")).toBeNull();
});

test("what waits for a person is on top, ended tasks are below, and a search holds every word", () => {
  const tasks = [
    task("tsk_done", { status: "done", startedMs: 9 }),
    task("tsk_run", { startedMs: 5 }),
    task("tsk_ask", { status: "waiting", waitingFor: "you", startedMs: 1, title: "Delete old folders" }),
  ];
  expect(sortTasks(tasks).map((each) => each.taskId)).toEqual(["tsk_ask", "tsk_run", "tsk_done"]);
  expect(filterTasks(tasks, "old waiting").map((each) => each.taskId)).toEqual(["tsk_ask"]);
  expect(filterTasks(tasks, "  ")).toHaveLength(3);
});

test("what waits for a person stands once: a task with a question beside its proposals, one that only has proposals as these", () => {
  const offer = { id: "out_a-b", title: "Comment", text: "Fine." };
  const asks = task("tsk_ask", { status: "waiting", waitingFor: "you", offers: [offer] });
  const held = task("tsk_held", { status: "waiting", waitingFor: "release", offers: [offer] });
  const notice = { id: offer.id, atMs: 1, kind: "offer" as const, text: "Comment\n\nFine.", taskId: "tsk_held" };
  const waits = (notices: (typeof notice)[]) =>
    waitingOf({ ...emptyBoard, tasks: [asks, held], notices }).map((each) => (each.kind === "task" ? each.task.taskId : each.notice.id));
  expect(waits([notice])).toEqual([offer.id, "tsk_ask"]);
  // A notice that the board had no room for takes nothing out of sight.
  expect(waits([])).toEqual(["tsk_ask", "tsk_held"]);
  expect(statusView(held)).toEqual(statusView(asks));
});

test("faults that say the same of one thread stand once, the newest, and are dismissed together", () => {
  const fault = (id: string, threadId: string) => ({ id, atMs: 1, kind: "fault" as const, text: "It could not be sent.", threadId });
  const notices = [fault("n_3", "thr_a"), fault("n_2", "thr_b"), fault("n_1", "thr_a")];
  expect(waitingOf({ ...emptyBoard, notices }).map((each) => (each.kind === "notice" ? each.ids : []))).toEqual([["n_3", "n_1"], ["n_2"]]);
});

test("what is set up is found by words of what it is and says, and leads to its page", () => {
  const known = { rules: defaultRules.rules, profiles: [...shippedProfiles] };
  expect(findSetUps(known, "rule widget message").map(({ title, href }) => [title, href])).toEqual([["web.message", "#/rules"]]);
  expect(findSetUps(known, "profile researcher").map(({ href }) => href)).toEqual(["#/profiles"]);
  expect(findSetUps({}, "rule")).toEqual([]);
});

test("of the live and the stored state of a task the higher revision is shown", () => {
  const merged = mergeTasks(
    [task("tsk_a", { revision: 2, status: "done" })],
    [task("tsk_a", { revision: 3, status: "failed" }), task("tsk_b")],
  );
  expect(merged.map((each) => [each.taskId, each.status])).toEqual([
    ["tsk_a", "failed"],
    ["tsk_b", "running"],
  ]);
});

test("every status has a word and a shape of its own, and only open tasks can be stopped", () => {
  const views = taskStatuses.map((status) => statusView({ status }));
  expect(new Set(views.map((view) => view.shape)).size).toBe(views.length);
  expect(new Set(views.map((view) => view.word)).size).toBe(views.length);
  for (const status of taskStatuses) {
    const actions = actionsOf({ status });
    expect(actions.includes("stop")).toBe(statusView({ status }).open && status !== "cancelling");
    expect(actions.includes("accept")).toBe(status === "done");
    expect(actions.includes("again")).toBe(status === "failed");
    // What has come of it, well or badly, is judged; what a person stopped is not.
    expect(actions.includes("reject")).toBe(status === "done" || status === "failed");
  }
  expect(statusView({ status: "waiting", waitingFor: "event" }).word).toBe("waiting");
  expect(statusView({ status: "done", line: "Exit 128: `git log` on studio failed" })).toMatchObject({
    word: "done, exit 128",
    tone: "quiet",
  });
  expect(statusView({ status: "done", line: "`npm test` on studio: 1 failed (exit 1)." })).toMatchObject({ word: "done", tone: "quiet" });
  expect(statusView({ status: "done", line: "All 2 tests pass: `npm test` on studio (exit 0)." })).toMatchObject({
    word: "done",
    tone: "good",
  });
  expect(statusView({ status: "waiting", waitingFor: "you" }).shape).not.toBe(
    statusView({ status: "waiting", waitingFor: "laptop" }).shape,
  );
});

test("times are short, and clocks that differ make none negative", () => {
  expect([duration(8000), duration(250_000), duration(7_500_000), duration(7_200_000), duration(4 * 86_400_000), duration(-5)]).toEqual([
    "0:08",
    "4:10",
    "2 h 5 min",
    "2 h",
    "4 d",
    "0:00",
  ]);
  expect([ago(0, 10_000), ago(0, 180_000), ago(0, 7_200_000), ago(5000, 0)]).toEqual(["just now", "3 min ago", "2 h ago", "just now"]);
  expect([offset(300), offset(72_000), offset(-300)]).toEqual(["+0.3 s", "+1:12", "−0.3 s"]);
});

const entry = (lane: TimelineLane, object: string, seq: number, atMs: number): TimelineEntry => ({
  lane,
  object,
  seq,
  atMs,
  event: { kind: "thread.duplicate", triggerId: "trg_a-b" },
});

test("[R31] a clock that went back moves no event before its predecessor of the same object", () => {
  const merged = mergeTimeline([
    [entry("worker", "tsk_a", 1, 100), entry("worker", "tsk_a", 2, 40), entry("worker", "tsk_a", 3, 110)],
    [entry("thread", "thr_a", 1, 50), entry("thread", "thr_a", 2, 105)],
  ]);
  expect(merged.map(({ object, seq }) => `${object}:${seq}`)).toEqual(["thr_a:1", "tsk_a:1", "tsk_a:2", "thr_a:2", "tsk_a:3"]);
});

test("an event that two reads found stands once, and at the same moment the road's order holds", () => {
  const merged = mergeTimeline([
    [entry("machine", "ep_a", 1, 5), entry("worker", "tsk_a", 1, 5)],
    [entry("router", "router", 1, 5), entry("worker", "tsk_a", 1, 5), entry("thread", "thr_a", 1, 5)],
  ]);
  expect(merged.map(({ lane }) => lane)).toEqual(["thread", "router", "worker", "machine"]);
});

test("a failed command, a refusal and a model fault are told as such, and what is tried again does not stand red", () => {
  const result = {
    commandId: "cmd_a-b",
    outcome: "outcome_unknown" as const,
    exitCode: null,
    outputBytes: 0,
    truncatedBytes: 0,
    startedMs: 0,
    endedMs: 3000,
  };
  expect(
    describeEvent({ kind: "endpoint.command", commandId: "cmd_a-b", taskId: "tsk_a", state: "settled", what: "npm test", result }),
  ).toMatchObject({
    text: "Ended: outcome unknown after 0:03",
    tone: "wait",
  });
  const trigger: Trigger = {
    ...{
      id: "trg_a-b",
      source: "web",
      deliveryId: "d",
      threadId: "thr_a",
      threadKey: "root:a",
      threadTitle: "",
      place: "widget",
      kind: "message",
    },
    ...{ principal: { role: "member", id: "prs_a", name: "Ana" }, addressed: true, text: "hello", atMs: 0, hops: 0 },
  };
  // What the gate said is called what the page of its rules calls it.
  const verdict = { outcome: "record" as const, rule: "small-talk", reason: "" };
  expect(describeEvent({ kind: "thread.accepted", trigger, verdict, mode: "decide", subscribers: [] }).text).toBe(
    "Ana (member), message — gate: keep (small-talk)",
  );
  const word = {
    kind: "thread.accepted_outcome" as const,
    taskId: "tsk_a",
    accepted: true,
    by: { role: "member" as const, id: "ana", name: "Ana" },
  };
  expect(describeEvent(word)).toMatchObject({ text: "Ana accepted the result", ids: ["tsk_a"] });
  // [W31] One that was found as a reaction says so.
  expect(describeEvent({ ...word, reaction: { sign: "👍", to: "out_a-b" } })).toMatchObject({
    text: "Ana accepted the result by a reaction (👍)",
    ids: ["tsk_a", "out_a-b"],
  });
  expect(describeEvent({ kind: "router.refused", turn: 1, tool: "dispatch", settles: ["trg_a-b"], reason: "A guest." })).toMatchObject({
    tone: "wait",
    detail: "A guest.",
  });
  expect(describeEvent({ kind: "task.model", step: 1, phase: "failed", model: "m", consumed: [], error: "429" })).toMatchObject({
    tone: "wait",
    detail: "429",
  });
  expect(describeEvent({ kind: "task.status", from: "running", to: "failed", why: "429" })).toMatchObject({ tone: "bad" });
});

test("a rule is the same after it went through the form, and a wrong form is a sentence", () => {
  for (const rule of defaultRules.rules) expect(fromForm(toForm(rule), [])).toEqual(rule);
  const form = toForm({ id: "a", outcome: "ignore", reason: "because", anyWord: ["one", "two words"], facts: { url: "a=b" } });
  const mute = { id: "m", outcome: "mute" as const, place: "acme/app", thread: "#12", reason: "because" };
  expect(fromForm(toForm(mute), [])).toEqual(mute);
  expect(conditionsOf(mute)).toBe("acme/app · thread #12");
  expect(fromForm(form, [])).toEqual({
    id: "a",
    outcome: "ignore",
    reason: "because",
    anyWord: ["one", "two words"],
    facts: { url: "a=b" },
  });
  for (const wrong of [{ id: " " }, { reason: "" }, { facts: "conclusion" }, { id: "taken" }, { reason: "x".repeat(400) }])
    expect(typeof fromForm({ ...form, ...wrong }, ["taken"])).toBe("string");
});

test("a profile is the same after it went through the form, and a wrong form is a sentence that says what to do", () => {
  for (const each of shippedProfiles) {
    const back = fromProfileForm(toProfileForm(each), each.version, []);
    expect(back).toEqual({ ...each, tools: [...grantable.map(({ name }) => name)].filter((name) => each.tools.includes(name)) });
  }
  const form = { ...emptyForm, name: "release-notes", purpose: "Writes them.", tools: ["read_file", "launch_rocket"], modelCalls: " 7 " };
  expect(fromProfileForm(form, 3, [])).toEqual({
    name: "release-notes",
    version: 3,
    purpose: "Writes them.",
    tools: ["read_file"],
    prompt: "",
    model: null,
    modelCalls: 7,
  });
  const wrong: [object, string][] = [
    [{ name: "" }, "Give the profile a short name"],
    [{ name: "Release Notes" }, "lower-case letters"],
    [{ name: "taken" }, "There is a profile taken already"],
    [{ purpose: " " }, "when it should be chosen"],
    [{ modelCalls: "many" }, "a whole number from 1 to 60"],
    [{ modelCalls: "61" }, "a whole number from 1 to 60"],
    [{ purpose: "x".repeat(301) }, "purpose:"],
  ];
  for (const [part, sentence] of wrong) expect(fromProfileForm({ ...form, ...part }, 0, ["taken"])).toContain(sentence);
});

test("a rule is found by any of its words, keeps its place in the list, and moves within it", () => {
  const rules = defaultRules.rules.slice(0, 3);
  expect(findRules(rules, "widget asked").map(({ at }) => at)).toEqual([1]);
  expect(conditionsOf({ id: "x", outcome: "ignore", reason: "y" })).toBe("everything");
  expect(conditionsOf({ id: "x", outcome: "ignore", principalId: "renovate", reason: "y" })).toBe("by renovate or renovate[bot]");
  expect(moved(rules, 1, -1).map(({ id }) => id)).toEqual(["web.message", "own", rules[2]?.id]);
  expect(moved(rules, 2, 1)).toEqual(rules);
});

test("rules stand source by source and move past what an event could meet; what differs in its kind of event only is one line", () => {
  const rule = (id: string, more: Partial<GateRule> = {}): GateRule => ({ id, outcome: "record", reason: "kept", ...more });
  const [w1, g1, g2, w2, all, g3] = [
    rule("w1", { source: "web", kind: "message" }),
    rule("g1", { source: "github", kind: "push" }),
    rule("g2", { source: "github", kind: "issues.closed" }),
    rule("w2", { source: "web", kind: "hello", reason: "another" }),
    rule("all", { roles: ["bot"] }),
    rule("g3", { source: "github", kind: "issues.opened" }),
  ];
  const rules = [w1, g1, g2, w2, all, g3] as GateRule[];
  const ids = (list: readonly { rule: GateRule }[]) => list.map((each) => each.rule.id);
  const sections = sectionsOf(findRules(rules, ""));
  expect(sections.map(({ source, rules: of }) => [source, ids(of)])).toEqual([
    ["web", ["w1", "w2"]],
    ["github", ["g1", "g2"]],
    [null, ["all"]],
    ["github", ["g3"]],
  ]);
  expect(sections.map(({ rules: of }) => familiesOf(of).map(ids))).toEqual([[["w1"], ["w2"]], [["g1", "g2"]], [["all"]], [["g3"]]]);
  expect(findRules(rules, "issues", "ignore")).toEqual([]);
  expect(ids(findRules(rules, "issues", "record"))).toEqual(["g2", "g3"]);
  // Up past its own source's rule, not into the place of one that it never meets.
  expect(moved(rules, 3, -1).map(({ id }) => id)).toEqual(["w2", "w1", "g1", "g2", "all", "g3"]);
  expect(moved(rules, 0, 1).map(({ id }) => id)).toEqual(["g1", "g2", "w2", "w1", "all", "g3"]);
  expect(moved(rules, 2, 1).map(({ id }) => id)).toEqual(["w1", "g1", "w2", "all", "g2", "g3"]);
  expect(moved(rules, 0, -1)).toEqual(rules);
  // Of the shipped list a reader meets a handful of lines a source.
  const shipped = sectionsOf(findRules(defaultRules.rules, ""));
  expect(shipped.map(({ source }) => source)).toEqual([null, "web", "github", "generic", "chat"]);
  expect(Math.max(...shipped.map(({ rules: of }) => familiesOf(of).length))).toBeLessThanOrEqual(15);
});

test("the console says of each policy what was taken of its speculation, and what was spent for nothing", () => {
  const figures = {
    policyId: "early",
    tasks: 3,
    outcomes: { accepted: 1, rejected: 1, running: 1 },
    acceptedShare: 0.5,
    calls: 9,
    wastedCalls: 4,
    workMs: 1,
    dollars: 0.3,
    wastedDollars: 0.1,
    callsToday: 12,
    paused: null,
  };
  expect(figureWords(figures)).toBe(
    "3 tasks; 1 of 2 offers accepted (50 %); 4 of 9 model calls ($0.100 of $0.300) spent for nothing; 12 model calls of the last 24 hours",
  );
  expect(figureWords({ ...figures, tasks: 1, outcomes: {}, acceptedShare: null, dollars: null })).toContain("no offer answered yet");
});

test("places of a policy are one a line, and read back as they were written", () => {
  const places = placesOf(" github acme/app\n\ngeneric   all alerts \ngithub *");
  expect(places).toEqual([
    { source: "github", place: "acme/app" },
    { source: "generic", place: "all alerts" },
    { source: "github", place: "*" },
  ]);
  expect(placesOf(placesText(places))).toEqual(places);
});

test("every tool of a mind has words for people, each its own, and a strange name stays as it is", () => {
  const tools = [...new Set([...Object.keys(routerTools), ...Object.keys(workerTools)])];
  const words = tools.map(toolWords);
  expect(words.filter((said, at) => said === tools[at])).toEqual(["report", "wait"]);
  expect(new Set(words).size).toBe(tools.length);
  const refused = { tool: "dispatch", reason: `${refusedByCode}only the team can start work` };
  expect([asTitle(decisionWords({ tool: "dispatch", reason: "r" })), decisionWords(refused)]).toEqual([
    "Start a task",
    "refuse to start a task",
  ]);
  expect([toolWords("hand_back"), toolWords("constructor")]).toEqual(["hand a message back to the router", "constructor"]);
});
