import fc from "fast-check";
import { expect, test } from "vitest";
import { applyBoardChanges, boardLimits, emptyBoard } from "../../src/core/board.ts";
import type { BoardChange, BoardState, BoardTask } from "../../src/protocol/board.ts";

const task = (n: number, over: Partial<BoardTask> = {}): BoardTask => ({
  taskId: `tsk_${n}`,
  threadId: "thr_a",
  title: `Task ${n}`,
  status: "running",
  line: "",
  modelCalls: 0,
  startedMs: n,
  updatedMs: n,
  revision: 1,
  source: "web",
  place: "widget",
  askedBy: "member",
  ...over,
});
const apply = (changes: BoardChange[], state: BoardState = emptyBoard, gone = new Set<string>()) => applyBoardChanges(state, changes, gone);

test("the highest revision of a task wins in any order, and an older one changes nothing", () => {
  const newer = apply([{ kind: "task", task: task(1, { revision: 3, status: "done" }) }]).state;
  const after = apply([{ kind: "task", task: task(1, { revision: 2 }) }], newer).state;
  expect(after).toBe(newer);
  expect(after.tasks[0]?.status).toBe("done");
});

test("sixty tasks are kept, and an old open one outlives newer ended ones", () => {
  const many: BoardChange[] = Array.from({ length: 80 }, (_, n) => ({ kind: "task", task: task(n + 2, { status: "done" }) }));
  const { tasks } = apply([{ kind: "task", task: task(1) }, ...many]).state;
  expect(tasks).toHaveLength(boardLimits.tasks);
  expect(tasks.at(-1)?.taskId).toBe("tsk_1");
  expect(tasks[0]?.taskId).toBe("tsk_81");
});

test("what waits for a person's word outlives newer notices that only tell something", () => {
  const notice = (n: number, kind: "offer" | "question" | "fault"): BoardChange => ({
    kind: "notice",
    notice: { id: `n${n}`, atMs: n, kind, text: "t" },
  });
  const told = Array.from({ length: 2 * boardLimits.notices }, (_, n) => notice(n + 3, "fault"));
  const { notices } = apply([notice(1, "offer"), notice(2, "question"), ...told]).state;
  expect(notices).toHaveLength(boardLimits.notices);
  expect(notices.slice(-2).map(({ id }) => id)).toEqual(["n2", "n1"]);
  expect(notices[0]?.id).toBe(`n${told.length + 2}`);
});

test("what left does not come back by a repeated change", () => {
  const notice: BoardChange = { kind: "notice", notice: { id: "n1", atMs: 1, kind: "question", text: "Which one?" } };
  const shown = apply([notice]);
  const { state, left } = apply([{ kind: "notice_done", id: "n1" }], shown.state);
  expect(left).toEqual(["n1"]);
  expect(apply([notice], state, new Set(left)).state.notices).toEqual([]);
});

test("lists stay bounded and repeating every change gives the same board", () => {
  const change = fc.oneof(
    fc.record({
      kind: fc.constant("task" as const),
      task: fc.tuple(fc.nat(100), fc.nat(5)).map(([n, revision]) => task(n, { revision })),
    }),
    fc.record({
      kind: fc.constant("decision" as const),
      decision: fc.nat(100).map((n) => ({
        decisionId: `dec_${n}`,
        atMs: n,
        tool: "reply",
        reason: "r",
        lane: "team",
        by: "model" as const,
        settles: [],
      })),
    }),
    fc.record({
      kind: fc.constant("notice" as const),
      notice: fc.nat(60).map((n) => ({ id: `n${n}`, atMs: n, kind: "fault" as const, text: "t" })),
    }),
    fc.record({ kind: fc.constant("notice_done" as const), id: fc.nat(60).map((n) => `n${n}`) }),
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
      const once = apply(changes);
      expect(once.state.tasks.length).toBeLessThanOrEqual(boardLimits.tasks);
      expect(once.state.decisions.length).toBeLessThanOrEqual(boardLimits.decisions);
      expect(once.state.notices.length).toBeLessThanOrEqual(boardLimits.notices);
      const gone = new Set(once.left);
      for (const notice of once.state.notices) expect(gone.has(notice.id)).toBe(false);
    }),
  );
});
