// The list of what needs somebody: each thing once, with what was kept and what to do.
import { expect, test } from "vitest";
import type { BoardEndpoint, BoardNotice, BoardTask } from "../../src/protocol/board.ts";
import type { ScheduleLine } from "../../src/protocol/schedule.ts";
import type { SpeculationFigures } from "../../src/protocol/speculation.ts";
import { type Incident, incidentsOf, type Known } from "../../src/web/console/incidents-model.ts";

const nowMs = 100 * 24 * 3_600_000;
const hourMs = 3_600_000;
const nothing: Known = { notices: [], endpoints: [], tasks: [], schedules: [], figures: [], hooks: [], limited: [] };
const notice = (id: string, kind: BoardNotice["kind"], text = id): BoardNotice => ({ id, kind, text, atMs: nowMs - 1, threadId: "thr_a" });
const task = (taskId: string, parts: Partial<BoardTask> = {}): BoardTask => ({
  ...{ taskId, threadId: "thr_a", title: `title of ${taskId}`, line: "exit 1", modelCalls: 1 },
  status: "failed",
  ...{ startedMs: nowMs - 2 * hourMs, updatedMs: nowMs - hourMs, endedMs: nowMs - hourMs, revision: 1 },
  ...{ source: "web", place: "widget", askedBy: "member" },
  ...parts,
});
const machine = (name: string, parts: Partial<BoardEndpoint>): BoardEndpoint => ({
  ...{ endpointId: `ep_${name}`, name, online: false, sinceMs: nowMs - 3 * hourMs, running: 0, waiting: 0, sandbox: "none", revision: 1 },
  ...parts,
});
const kinds = (known: Partial<Known>): string[] => incidentsOf({ ...nothing, ...known }, nowMs).map(({ kind }) => kind);
const only = (known: Partial<Known>): Incident => {
  const [incident, ...more] = incidentsOf({ ...nothing, ...known }, nowMs);
  if (incident === undefined || more.length > 0) throw new Error("not one incident");
  return incident;
};

test("nothing that went wrong is an empty list, and a proposal that waits is no incident", () => {
  expect(kinds({ notices: [notice("out_a-b", "offer")], endpoints: [machine("here", { online: true, waiting: 2 })] })).toEqual([]);
});

test("a fault, a refusal and what could not be decided say what was kept, what to do, and where", () => {
  const known = { notices: [notice("n_1", "question"), notice("n_2", "refusal"), notice("outbound:out_a-b", "fault")] };
  expect(kinds(known)).toEqual(["Undecided", "Refused", "Fault"]);
  for (const { kept, todo, link } of incidentsOf({ ...nothing, ...known }, nowMs))
    expect([kept.length > 10, todo.length > 10, link.href.startsWith("#/")]).toEqual([true, true, true]);
  expect(only({ notices: [notice("outbound:out_a-b", "fault")] }).kept).toContain("not sent a second time");
});

test("a task that failed is listed until somebody judged it, or a week is over", () => {
  expect(only({ tasks: [task("tsk_a")] })).toMatchObject({ what: "title of tsk_a: exit 1", link: { href: "#/task/tsk_a" } });
  const over = [
    task("tsk_b", { accepted: false }),
    task("tsk_c", { status: "done" }),
    task("tsk_d", { endedMs: nowMs - 8 * 24 * hourMs }),
    task("tsk_e", { status: "cancelled" }),
  ];
  expect(kinds({ tasks: over })).toEqual([]);
});

test("a machine that is away is an incident when work waits for it, or after days", () => {
  expect(kinds({ endpoints: [machine("asleep", {})] })).toEqual([]);
  const waited = only({ endpoints: [machine("wanted", { waiting: 1, running: 1 })] });
  expect(waited).toMatchObject({
    what: "wanted has been offline for 3 h, and 1 command waits for it.",
    kept: "Its queue, in order. 1 was running: how it ended is told when the machine is back.",
    paste: "npm run daemon -- run",
    weight: "bad",
  });
  expect(only({ endpoints: [machine("gone", { sinceMs: nowMs - 4 * 24 * hourMs })] }).weight).toBe("quiet");
});

test("what paused itself stands once, also while a notice tells of it, and what a person paused is none", () => {
  const schedule = (name: string, parts: object) =>
    ({ id: `sch_${name}`, name, why: "", state: "paused", runs: [], ...parts }) as unknown as ScheduleLine;
  const schedules = [
    schedule("nightly", { why: "3 runs in a row failed." }),
    schedule("by-hand", {}),
    schedule("fine", { state: "active" }),
  ];
  const notices = [
    notice("dec_a", "fault", "I have paused the schedule “nightly”: 3 runs in a row failed."),
    notice("dec_b", "fault", "Another."),
  ];
  expect(kinds({ schedules, notices })).toEqual(["Fault", "Schedule paused"]);
  const figures = [
    { policyId: "calm", paused: "too much waste" },
    { policyId: "fine", paused: null },
  ] as SpeculationFigures[];
  expect(only({ figures }).what).toBe("“calm” starts no more work by itself: too much waste.");
});

test("a webhook that cannot be swept, and a place that was asked to wait today, are listed, the latest first", () => {
  const hook = { of: "app", place: "acme/app", sweptMs: nowMs - hourMs, redelivered: 0, givenUp: 2 };
  const limited = [
    { source: "github", place: "acme/app", sender: "bot", refused: 1, lastMs: nowMs - 2 * hourMs },
    { source: "github", place: "acme/old", sender: "bot", refused: 9, lastMs: nowMs - 30 * hourMs },
  ];
  expect(kinds({ hooks: [{ ...hook, problem: "401" }], limited })).toEqual(["Webhook", "Asked to wait"]);
  expect(kinds({ hooks: [{ ...hook, problem: null }] })).toEqual([]);
});
