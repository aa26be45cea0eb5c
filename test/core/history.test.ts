import { describe, expect, test } from "vitest";
import { childId, makeId, triggerIdOf } from "../../src/core/ids.ts";
import type { CommandState } from "../../src/protocol/command.ts";
import type { SwitchyardEvent } from "../../src/protocol/events.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { Report } from "../../src/protocol/task.ts";
import type { OutboundIntent } from "../../src/protocol/thread.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { checkHistory, type ObjectLog } from "../support/history.ts";

const thread = makeId("thr", "history");
const task = makeId("tsk", "history");
const endpoint = makeId("ep", "history");
const command = childId("cmd", endpoint, "1");
const out = childId("out", thread, "1");
const by: Principal = { role: "member", id: "prs_a", name: "Member" };

const trigger = (deliveryId: string): Trigger => ({
  id: triggerIdOf("github", deliveryId, thread),
  source: "github",
  deliveryId,
  threadId: thread,
  place: "acme/app",
  threadKey: "issue:1",
  threadTitle: "An issue",
  kind: "issue_comment.created",
  principal: by,
  addressed: true,
  text: "run the tests",
  atMs: 0,
  hops: 0,
});

const accepted = (deliveryId: string, mode: "decide" | "observe" = "decide"): SwitchyardEvent => ({
  kind: "thread.accepted",
  trigger: trigger(deliveryId),
  verdict: { outcome: "request", rule: "r", reason: "" },
  mode,
  subscribers: mode === "observe" ? [task] : [],
});
const said = (more: Partial<OutboundIntent> = {}): SwitchyardEvent => ({
  kind: "thread.outbound",
  outbound: { id: out, threadId: thread, kind: "reply", text: "Done.", triggerId: trigger("d1").id, decisionId: "dec_2", hops: 1, ...more },
});
const decision = (decisionId: string, settles: string[], turn = 1): SwitchyardEvent => ({
  kind: "router.decision",
  decisionId,
  turn,
  lane: "team",
  tool: "dispatch",
  settles,
  reason: "",
  authority: "member",
  by: "model",
  effects: [],
});
const end: Report = {
  id: childId("rep", task, "1"),
  taskId: task,
  kind: "done",
  title: "Run the tests",
  text: "Done.",
  threadId: thread,
  authority: "member",
  tainted: false,
  status: "done",
  atMs: 0,
};
const inbox = (itemId: string, threadSeq?: number): SwitchyardEvent => ({
  kind: "task.inbox",
  itemId,
  item: threadSeq === undefined ? "result" : "row",
  ...(threadSeq === undefined ? {} : { threadId: thread, threadSeq }),
  tainting: false,
});
const model = (step: number, phase: "reserve" | "settle", consumed: string[] = []): SwitchyardEvent => ({
  kind: "task.model",
  step,
  phase,
  model: "m",
  consumed,
});
const turnModel = (turn: number): SwitchyardEvent[] =>
  (["reserve", "settle"] as const).map((phase) => ({ kind: "router.model", turn, step: 1, lane: "team", phase, model: "m", items: [] }));
const tool = (phase: "intent" | "done", callId = "c1"): SwitchyardEvent => ({
  kind: "task.tool",
  step: 1,
  callId,
  tool: "run_command",
  phase,
  commandId: command,
  detail: "",
});
const ran = (state: CommandState): SwitchyardEvent => ({
  kind: "endpoint.command",
  commandId: command,
  taskId: task,
  state,
  what: "npm test",
});

type Histories = Record<"thread" | "router" | "task" | "endpoint", SwitchyardEvent[]>;

/** A task from its request to its answer, without a fault. */
const good = (): Histories => ({
  thread: [
    accepted("d1"),
    { kind: "thread.subscribed", taskId: task, fromSeq: 1, cutSeq: 1, decisionId: "dec_1" },
    accepted("d2", "observe"),
    said(),
    { kind: "thread.sent", outboundId: out, providerId: "77" },
    { kind: "thread.confirmed", outboundId: out, providerId: "77" },
    { kind: "thread.unsubscribed", taskId: task, atSeq: 6, reason: "done" },
  ],
  router: [
    { kind: "router.inbox", triggerId: trigger("d1").id, threadId: thread, threadSeq: 1, lane: "team" },
    ...turnModel(1),
    { ...decision("dec_1", [trigger("d1").id]), taskId: task } as SwitchyardEvent,
    { kind: "router.report", report: end },
    ...turnModel(2),
    decision("dec_2", [end.id], 2),
  ],
  task: [
    inbox("row1", 1),
    { kind: "task.status", from: "new", to: "running", why: "started" },
    model(1, "reserve", ["row1"]),
    model(1, "settle"),
    tool("intent"),
    inbox("row3", 3),
    inbox(`result:${command}`),
    tool("done"),
    model(2, "reserve", ["row3", `result:${command}`]),
    model(2, "settle"),
    { kind: "task.report", report: end },
    { kind: "task.status", from: "running", to: "done", why: "reported" },
    inbox("row4", 4),
  ],
  endpoint: [ran("queued"), ran("sent"), ran("accepted"), ran("started"), ran("settled")],
});

const objects = { thread, router: "router", task, endpoint };
const check = (change: (histories: Histories) => void): string[] => {
  const histories = good();
  change(histories);
  const logs = (Object.keys(objects) as (keyof Histories)[]).map(
    (kind): ObjectLog => ({
      object: objects[kind],
      kind,
      events: histories[kind].map((event, i) => ({ seq: i + 1, atMs: i, event })),
    }),
  );
  return checkHistory(logs);
};

const replace = (events: SwitchyardEvent[], from: (event: SwitchyardEvent) => boolean, to: SwitchyardEvent[]): void => {
  const at = events.findIndex(from);
  expect(at).toBeGreaterThanOrEqual(0);
  events.splice(at, 1, ...to);
};

describe("the history checker", () => {
  test("finds nothing in a history without a fault, nor in a part of it", () => {
    expect(check(() => {})).toEqual([]);
    expect(checkHistory([])).toEqual([]);
  });

  const broken: [invariant: string, name: string, change: (histories: Histories) => void][] = [
    ["R1", "an accepted request that nobody decided", ({ thread: log }) => log.push(accepted("d7"))],
    ["R3", "a delivery that made two rows", ({ thread: log }) => log.push(accepted("d2", "observe"))],
    ["R3", "a trigger that was decided in two turns", ({ router }) => router.push(decision("dec_3", [trigger("d1").id], 3))],
    ["R3", "a decision that was committed twice", ({ router }) => router.push(decision("dec_1", []))],
    ["R3", "a row that entered a worker twice", ({ task: log }) => log.push(inbox("row1-again", 1))],
    ["R5", "rows that reached a worker out of order", ({ task: log }) => log.push(...log.splice(0, 1))],
    [
      "R5",
      "an original that is a row after its edit",
      ({ thread: log }) => {
        const version = (name: string, kind: string): SwitchyardEvent => {
          const { trigger: of, ...rest } = accepted(name, "observe") as Extract<SwitchyardEvent, { kind: "thread.accepted" }>;
          return { ...rest, trigger: { ...of, kind, externalId: "55" } };
        };
        log.push(version("d8", "issue_comment.edited"), version("d9", "issue_comment.created"));
      },
    ],
    [
      "R5",
      "an edit that still waits for its original",
      ({ thread: log }) => {
        const { trigger: of, verdict } = accepted("d9", "observe") as Extract<SwitchyardEvent, { kind: "thread.accepted" }>;
        log.push({ kind: "thread.held", trigger: of, verdict, untilMs: 1 });
      },
    ],
    ["R7", "a row that never reached its subscriber", ({ task: log }) => log.pop()],
    ["R8", "a status that does not follow", ({ task: log }) => log.push({ kind: "task.status", from: "queued", to: "done", why: "" })],
    ["R17", "a status after the end", ({ task: log }) => log.push({ kind: "task.status", from: "done", to: "running", why: "" })],
    [
      "R9",
      "a message that was sent twice",
      ({ thread: log }) => log.splice(5, 0, { kind: "thread.sent", outboundId: out, providerId: "78" }),
    ],
    [
      "R9",
      "a confirmation of what was never said",
      ({ thread: log }) => log.push({ kind: "thread.confirmed", outboundId: "out_other-x", providerId: "79" }),
    ],
    [
      "R9",
      "a pull request of ours that was put up for a decision",
      ({ thread: log }) => {
        const { trigger: of, ...rest } = accepted("d9", "observe") as Extract<SwitchyardEvent, { kind: "thread.accepted" }>;
        log.push({ ...rest, trigger: { ...of, facts: { self: "marked" } } });
      },
    ],
    [
      "R9",
      "a message that was sent after its confirmation",
      ({ thread: log }) => log.splice(6, 0, { kind: "thread.sent", outboundId: out, providerId: "78" }),
    ],
    [
      "R10",
      "a message that was neither sent nor given up",
      ({ thread: log }) => log.splice(4, 2, accepted("d8", "observe"), accepted("d9", "observe")),
    ],
    [
      "R11",
      "a message without a decision",
      ({ thread: log }) => replace(log, (e) => e.kind === "thread.outbound", [said({ decisionId: "dec_9" })]),
    ],
    [
      "H1",
      "an answer to another thread",
      ({ thread: log }) =>
        replace(log, (e) => e.kind === "thread.outbound", [said({ triggerId: triggerIdOf("github", "d1", makeId("thr", "other")) })]),
    ],
    ["R12", "a command that was started twice", ({ endpoint: log }) => log.splice(4, 0, ran("started"))],
    ["R12", "a command that was sent again after it was started", ({ endpoint: log }) => log.splice(4, 0, ran("sent"))],
    ["R12", "a command that was sent after it was settled", ({ endpoint: log }) => log.push(ran("sent"))],
    ["R12", "a command that no call asked for", ({ task: log }) => replace(log, (e) => e.kind === "task.tool", [model(1, "reserve")])],
    [
      "R12",
      "a result that did not reach its task",
      ({ task: log }) => replace(log, (e) => e.kind === "task.inbox" && e.itemId.startsWith("result:"), [inbox("result:other")]),
    ],
    ["R18", "a step whose answer was committed twice", ({ task: log }) => log.splice(4, 0, model(1, "settle"))],
    ["R18", "a step that was called again after its answer", ({ task: log }) => log.splice(4, 0, model(1, "reserve"))],
    [
      "R18",
      "a row that two steps took",
      ({ task: log }) => replace(log, (e) => e.kind === "task.model" && e.step === 2, [model(2, "reserve", ["row1"])]),
    ],
    ["R18", "a call that was made twice", ({ task: log }) => log.splice(5, 0, tool("intent"))],
    ["R19", "a call with two results", ({ task: log }) => log.splice(8, 0, tool("done"))],
    ["R19", "a call without a result", ({ task: log }) => replace(log, (e) => e.kind === "task.tool" && e.phase === "done", [])],
    [
      "R20",
      "a row that a step passed over",
      ({ task: log }) => replace(log, (e) => e.kind === "task.model" && e.step === 2, [model(2, "reserve", [`result:${command}`])]),
    ],
    ["R21", "a tool that no committed answer called", ({ task: log }) => log.splice(3, 2, tool("intent"), model(1, "settle"))],
    [
      "R21",
      "a decision of an answer that failed",
      ({ router }) =>
        replace(router, (e) => e.kind === "router.model" && e.phase === "settle", [
          { kind: "router.model", turn: 1, step: 1, lane: "team", phase: "failed", model: "m", items: [] },
        ]),
    ],
    ["Q17", "an end that the router never heard of", ({ router }) => replace(router, (e) => e.kind === "router.report", [])],
    ["Q17", "a task that ended without a word", ({ task: log }) => replace(log, (e) => e.kind === "task.report", [])],
    ["R22", "an answer without a reservation", ({ task: log }) => replace(log, (e) => e.kind === "task.model", [])],
    ["R22", "a turn without a reservation", ({ router }) => replace(router, (e) => e.kind === "router.model", [])],
  ];
  test.each(broken)("[%s] sees %s", (invariant, _name, change) => {
    const found = check(change);
    expect(
      found.some((violation) => violation.startsWith(`${invariant}:`)),
      found.join("\n"),
    ).toBe(true);
  });

  test("[R30] sees a gap in a log", () => {
    expect(checkHistory([{ object: thread, kind: "thread", events: [{ seq: 2, atMs: 0, event: accepted("d1") }] }])[0]).toMatch(/^R30: /);
  });

  test("a trigger that a worker gave back may be decided again, once", () => {
    const again = (histories: Histories): void => {
      histories.router.push(
        { kind: "router.inbox", triggerId: trigger("d1").id, threadId: thread, threadSeq: 1, lane: "team" },
        ...turnModel(3),
        decision("dec_3", [trigger("d1").id], 3),
      );
    };
    expect(check(again)).toEqual([]);
  });

  test("what a worker released counts as with the worker", () => {
    const released: SwitchyardEvent = { kind: "task.released", threadId: thread, threadSeqs: [4] };
    expect(check(({ task: log }) => log.splice(-1, 1, released))).toEqual([]);
  });
});
