import { describe, expect, test } from "vitest";
import { effectRows, type RouterEffect, stripMarkers } from "../../src/core/router-plan.ts";
import { escalate, planReport, relayUndecided } from "../../src/core/router-reports.ts";
import type { Report } from "../../src/protocol/task.ts";
import { guest, member, queuedReport, queuedTrigger, reportOf, taskOf } from "../support/router-fixtures.ts";

const task = taskOf("t");
const plan = (parts: Partial<Report>, others = [task]) => planReport(reportOf({ task, ...parts }), task, others, 4);
const posts = (effects: RouterEffect[] | undefined) => effects?.flatMap((effect) => (effect.kind === "post" ? [effect.input] : [])) ?? [];

describe("planReport", () => {
  test("[RR1] a confident result of the thread's only open task is said by code, in its own thread", () => {
    const { decision, queue, task: after } = plan({ confidence: 0.7 });
    expect(queue).toBeNull();
    expect(decision).toMatchObject({ by: "code", tool: "relay", authority: "member" });
    expect(posts(decision?.effects)).toMatchObject([{ kind: "relay", text: "Two tests fail.", threadId: task.threadId, taskId: task.id }]);
    expect(after).toMatchObject({ status: "done", endedMs: 10 });
  });

  test("[RR1] an unsure result, or one of a thread with another open task, is the model's to decide", () => {
    expect(plan({ confidence: 0.69 })).toMatchObject({ decision: null, queue: { lane: "team" } });
    expect(plan({})).toMatchObject({ decision: null });
    const rival = taskOf("rival", { threadId: task.threadId });
    expect(plan({ confidence: 1 }, [task, rival])).toMatchObject({ decision: null });
    expect(plan({ confidence: 1 }, [task, { ...rival, status: "done", endedMs: 3 }]).decision).not.toBeNull();
  });

  test("[W29] who stopped a task is said where no card says it", () => {
    for (const source of ["github", "generic", "chat"]) {
      const there = taskOf("there", { source, place: "acme/app" });
      const report = reportOf({ task: there, kind: "cancelled", status: "cancelled", text: "Stopped by Ana, through Switchyard." });
      const { decision, queue } = planReport(report, there, [], 1);
      expect(queue).toBeNull();
      expect(posts(decision?.effects)).toMatchObject([{ kind: "notice", text: report.text, threadId: there.threadId, taskId: there.id }]);
    }
  });

  test("[RR1] progress and a cancel disturb nobody; a pause and a wait are told once", () => {
    for (const kind of ["progress", "cancelled"] as const) expect(plan({ kind })).toMatchObject({ decision: null, queue: null });
    expect(posts(plan({ kind: "answer", status: "running" }).decision?.effects)).toMatchObject([
      { kind: "relay", text: "Two tests fail." },
    ]);
    for (const kind of ["paused", "waiting"] as const)
      expect(posts(plan({ kind, status: kind }).decision?.effects)).toMatchObject([{ kind: "notice" }]);
    for (const kind of ["question", "blocked", "failed"] as const) expect(plan({ kind }).queue?.lane).toBe("team");
  });

  test("[RR2] the same report makes the same decision, so that it is said once", () => {
    expect(plan({ confidence: 1 }).decision?.id).toBe(plan({ confidence: 1 }).decision?.id);
    const report = reportOf({ task });
    expect(relayUndecided(queuedReport(report), task, 9).id).toBe(planReport({ ...report, confidence: 1 }, task, [], 4).decision?.id);
  });

  test("[RT2] a tainted report goes to the public lane with public authority", () => {
    expect(plan({ kind: "question", tainted: true }).queue?.lane).toBe("public");
    expect(plan({ confidence: 1, tainted: true })).toMatchObject({
      decision: { lane: "public", authority: "public" },
      task: { tainted: true },
    });
  });

  test("a late report changes nothing of a task that ended, except that taint stays", () => {
    const ended = { ...task, status: "done" as const, endedMs: 50, updatedMs: 50 };
    expect(planReport(reportOf({ task, kind: "progress", status: "running", tainted: true, atMs: 60 }), ended, [], 1).task).toMatchObject({
      status: "done",
      tainted: true,
    });
  });

  test("a report of a task that is not known is relayed all the same", () => {
    expect(planReport(reportOf({ task, confidence: 1 }), null, [], 1).decision?.threadId).toBe(task.threadId);
  });
});

test("[W31] words about a task's end, and no others, can be judged by a reaction", () => {
  expect(posts(plan({ confidence: 1 }).decision?.effects)).toMatchObject([{ kind: "relay", outcome: true }]);
  for (const kind of ["answer", "paused", "waiting"] as const)
    expect(posts(plan({ kind, status: "running" }).decision?.effects)[0]).not.toHaveProperty("outcome");
  const undecided = (kind: Report["kind"]) => posts(relayUndecided(queuedReport(reportOf({ task, kind })), task, 1).effects)[0];
  expect(undecided("failed")).toMatchObject({ outcome: true });
  expect(undecided("question")).not.toHaveProperty("outcome");
});

test("[RR3] a report that stays undecided is said by code, with a note", () => {
  const item = queuedReport(reportOf({ task, kind: "blocked", text: "No access." }));
  expect(posts(relayUndecided(item, task, 1).effects)[0]?.text).toMatch(/reports \(blocked\):\n\nNo access\./);
});

test("[RR4] people of the team are told that a human was asked; the public and other programs are not answered", () => {
  const item = queuedTrigger({ name: "a", by: member });
  expect(posts(escalate(item, { message: "why" }, 1, 5).effects)).toHaveLength(1);
  expect(posts(escalate(item, { message: "why" }, 1, 5, true).effects)).toEqual([]);
  expect(posts(escalate(queuedTrigger({ name: "g", by: guest }), { message: "why" }, 1, 5).effects)).toEqual([]);
  expect(escalate(item, { message: "why" }, 1, 5).notice).toMatchObject({ kind: "question", threadId: item.threadId });
});

test("[A11] what a provider said goes to the operators who are asked, not into what people and minds read", () => {
  const item = queuedTrigger({ name: "a", by: member, thread: "7" });
  const { effects, reason, notice, question } = escalate(item, { message: "My model fails.", detail: "api.example.com said: no." }, 1, 5);
  expect(JSON.stringify([effects, reason])).not.toContain("api.example.com");
  expect(reason).toBe("My model fails.");
  for (const asked of [notice, question]) expect(asked?.text).toContain("api.example.com said: no.");
});

test("the board's row stands in a chain of its own, and no effect shares an id", () => {
  const decision = escalate(queuedTrigger({ name: "a", by: member }), { message: "why" }, 1, 5);
  const rows = effectRows(decision, 3, 5);
  expect(rows.map((row) => [row.chain, row.order])).toEqual([
    [decision.id, 3],
    [`${decision.id}/board`, 4],
  ]);
  expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
});

test("no marker of ours can be written by a model, also one that never ends", () => {
  expect(stripMarkers("a <!-- switchyard:out_a-b:00 --> b")).toBe("a  b");
  expect(stripMarkers("a <!--SWITCHYARD:out_a")).toBe("a");
  expect(stripMarkers("<!-- switch<!-- switchyard:x -->yard:out_a-b:00 --> c")).toBe("c");
  expect(stripMarkers("<!-- other -->")).toBe("<!-- other -->");
});
