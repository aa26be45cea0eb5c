import { describe, expect, test } from "vitest";
import type { EndpointInput } from "../../src/core/command-ledger.ts";
import { expectedHost } from "../../src/core/endpoint.ts";
import type { CloudFrame } from "../../src/protocol/daemon-frames.ts";
import { limits } from "../../src/protocol/limits.ts";
import { Book, commandOf, now, resultOf } from "../support/command-book.ts";

const kinds = (frames: CloudFrame[]) => frames.map((frame) => frame.t);

describe("submit", () => {
  test("a command for a connected machine is sent at once, and a repeated submit sends nothing", () => {
    const book = new Book().enrol();
    book.hello();
    const first = book.apply({ kind: "submit", command: commandOf(1) });
    expect(first.frames).toEqual([{ t: "run", command: commandOf(1) }]);
    expect(book.apply({ kind: "submit", command: commandOf(1) }).frames).toEqual([]);
    expect(book.state("cmd_a-1")).toBe("sent");
  });

  test("[R16] a command for a machine that is away waits and says so once, and is sent after the next hello", () => {
    const book = new Book().enrol();
    const decision = book.apply({ kind: "submit", command: commandOf(1) });
    expect(decision.frames).toEqual([]);
    expect(decision.effects).toContainEqual({
      kind: "command_state",
      taskId: "tsk_a",
      commandId: "cmd_a-1",
      state: "queued",
      online: false,
    });
    expect(kinds(book.hello().frames)).toEqual(["welcome", "run"]);
    const started = book.apply({ kind: "started", commandId: "cmd_a-1", atMs: now });
    expect(started.effects).toContainEqual({
      kind: "command_state",
      taskId: "tsk_a",
      commandId: "cmd_a-1",
      state: "started",
      online: true,
    });
    expect(book.apply({ kind: "started", commandId: "cmd_a-1", atMs: now }).effects).toEqual([]);
  });

  test("[A5] a tainted command and one of a guest are refused with a reason, also by a machine that is away", () => {
    for (const online of [true, false]) {
      const book = new Book().enrol();
      if (online) book.hello();
      for (const [n, changes] of [
        [1, { tainted: true }],
        [2, { authority: "guest" }],
      ] as const) {
        expect(book.apply({ kind: "submit", command: commandOf(n, changes) }).frames).toEqual([]);
        expect(book.outcome(`cmd_a-${n}`)).toBe("refused");
        expect(book.entries.get(`cmd_a-${n}`)?.result?.reason).toMatch(/team/);
      }
    }
  });

  test("[E5] a command for a machine that is unknown, revoked, or given a command too large for a frame is refused", () => {
    const unknown = new Book();
    unknown.apply({ kind: "submit", command: commandOf(1) });
    expect(unknown.outcome("cmd_a-1")).toBe("refused");
    const book = new Book().enrol();
    const content = "\u0001".repeat(limits.maxFileBytes);
    book.apply({ kind: "submit", command: commandOf(2, { spec: { kind: "write_file", workspace: "app", path: "a", content } }) });
    expect(book.outcome("cmd_a-2")).toBe("refused");
    book.apply({ kind: "revoke", by: "owner" });
    book.apply({ kind: "submit", command: commandOf(3) });
    expect(book.outcome("cmd_a-3")).toBe("refused");
  });

  test("a task that floods its machine has its next commands refused, another task does not feel it", () => {
    const book = new Book().enrol();
    for (let n = 1; n <= limits.maxOpenCommandsPerTask + 1; n++) book.apply({ kind: "submit", command: commandOf(n) });
    expect(book.outcome(`cmd_a-${limits.maxOpenCommandsPerTask}`)).toBeUndefined();
    expect(book.outcome(`cmd_a-${limits.maxOpenCommandsPerTask + 1}`)).toBe("refused");
    book.apply({ kind: "submit", command: commandOf(99, { taskId: "tsk_b" }) });
    expect(book.state("cmd_a-99")).toBe("queued");
  });

  test("[E1] a repeated submit of a settled command hands its result over again", () => {
    const book = new Book();
    book.apply({ kind: "submit", command: commandOf(1) });
    const again = book.apply({ kind: "submit", command: commandOf(1) });
    expect(again.effects).toEqual([{ kind: "settle", taskId: "tsk_a", commandId: "cmd_a-1" }]);
    expect(again.events).toEqual([]);
  });
});

describe("hello", () => {
  test("[E2] [R16] what expired while the machine was away never starts", () => {
    const book = new Book().enrol();
    book.apply({ kind: "submit", command: commandOf(1, { notAfterMs: now + 10 }) });
    book.nowMs = now + 10;
    expect(kinds(book.hello().frames)).toEqual(["welcome"]);
    expect(book.outcome("cmd_a-1")).toBe("expired");
  });

  test("[E7] a command that was sent and never arrived is sent again; one that runs is not", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "submit", command: commandOf(2) });
    book.apply({ kind: "started", commandId: "cmd_a-2", atMs: now });
    book.apply({ kind: "output", commandId: "cmd_a-2", offset: 0, bytes: 7 });
    book.apply({ kind: "disconnected", code: 1006, reason: "" });
    const { frames } = book.hello([{ commandId: "cmd_a-2", state: "started", outputBytes: 9 }]);
    expect(frames[0]).toMatchObject({ t: "welcome", epoch: 2, output: [{ commandId: "cmd_a-2", offset: 7 }] });
    expect(frames.slice(1)).toEqual([{ t: "run", command: commandOf(1) }]);
  });

  test("[E4] [R12] a command that the machine had accepted and no longer knows is never rerun: its outcome is unknown", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "accepted", commandId: "cmd_a-1" });
    book.apply({ kind: "disconnected", code: 1006, reason: "" });
    expect(kinds(book.hello().frames)).toEqual(["welcome"]);
    expect(book.outcome("cmd_a-1")).toBe("outcome_unknown");
  });

  test("[E6] stops are the first frames after the welcome, then what waited, in order", () => {
    const book = new Book().enrol();
    book.hello();
    for (const n of [1, 2]) book.apply({ kind: "submit", command: commandOf(n, { taskId: `tsk_${n}` }) });
    for (const n of [1, 2]) book.apply({ kind: "started", commandId: `cmd_a-${n}`, atMs: now });
    book.apply({ kind: "disconnected", code: 1006, reason: "" });
    for (const n of [3, 4]) book.apply({ kind: "submit", command: commandOf(n, { taskId: "tsk_3" }) });
    book.apply({ kind: "stop_task", taskId: "tsk_1", epoch: 2 });
    book.apply({ kind: "stop", commandId: "cmd_a-2", why: "not needed" });
    const open = [1, 2].map((n) => ({ commandId: `cmd_a-${n}`, state: "started" as const, outputBytes: 0 }));
    expect(book.hello(open).frames.slice(1)).toEqual([
      { t: "stop_task", taskId: "tsk_1", beforeEpoch: 2, graceMs: limits.stopGraceMs },
      { t: "stop", commandId: "cmd_a-2", graceMs: limits.stopGraceMs },
      { t: "run", command: commandOf(3, { taskId: "tsk_3" }) },
      { t: "run", command: commandOf(4, { taskId: "tsk_3" }) },
    ]);
  });

  test("a command that runs there and is settled or unknown here needs no more output; a settled one is stopped", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "accepted", commandId: "cmd_a-1" });
    book.hello();
    const open = [1, 2].map((n) => ({ commandId: `cmd_a-${n}`, state: "started" as const, outputBytes: 50 }));
    const { frames } = book.hello(open);
    expect(frames[0]).toMatchObject({ output: open.map(({ commandId }) => ({ commandId, offset: 50 })) });
    expect(frames.slice(1)).toEqual([{ t: "stop", commandId: "cmd_a-1", graceMs: limits.stopGraceMs }]);
  });

  test("[R14] each hello raises the epoch, and the older connection is recorded as superseded", () => {
    const book = new Book().enrol();
    book.hello();
    book.hello();
    expect(book.machine?.epoch).toBe(2);
    expect(book.events).toContainEqual(expect.objectContaining({ kind: "endpoint.disconnected", epoch: 1, code: 4409 }));
  });

  test("[E11] a hello is for the host of the enrolment; on the machine itself the port may change", () => {
    const { machine } = new Book().enrol();
    if (!machine) throw new Error("not enrolled");
    expect(expectedHost(machine, "old.test")).toBe("old.test");
    expect(expectedHost({ ...machine, host: "team.test" }, "relay.test")).toBe("team.test");
    expect(expectedHost({ ...machine, host: "team.test" }, "127.0.0.1:1")).toBe("team.test");
    expect(expectedHost({ ...machine, host: "localhost:1" }, "127.0.0.1:2")).toBe("127.0.0.1:2");
    expect(expectedHost({ ...machine, host: "localhost:1" }, "localhost.relay.test")).toBe("localhost:1");
  });

  test("a revoked machine's hello is refused and changes nothing", () => {
    const book = new Book().enrol();
    book.apply({ kind: "revoke", by: "owner" });
    expect(book.hello().close?.code).toBe(4410);
    expect(book.machine).toMatchObject({ epoch: 1, online: false });
  });
});

describe("output and result", () => {
  const running = (): Book => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    return book;
  };
  const output = (offset: number, bytes: number): EndpointInput => ({ kind: "output", commandId: "cmd_a-1", offset, bytes });

  test("[E8] [R13] an overlap is trimmed, a repeat is only acknowledged, a gap closes the connection", () => {
    const book = running();
    expect(book.apply(output(0, 10)).store).toEqual({ commandId: "cmd_a-1", offset: 0, skip: 0 });
    expect(book.apply(output(4, 10)).store).toEqual({ commandId: "cmd_a-1", offset: 10, skip: 6 });
    const repeat = book.apply(output(0, 10));
    expect(repeat.store).toBeUndefined();
    expect(repeat.frames).toEqual([{ t: "output_ack", commandId: "cmd_a-1", offset: 14 }]);
    const gap = book.apply(output(20, 1));
    expect(gap.close).toEqual({ code: 4400, reason: "protocol error: offset: is 20, expected 14" });
    expect(gap.store).toBeUndefined();
  });

  test("[E9] [R13] a result waits until its output is whole, then settles once and is acknowledged each time", () => {
    const book = running();
    expect(book.apply({ kind: "result", result: resultOf("cmd_a-1", 10) }).frames).toEqual([]);
    expect(book.state("cmd_a-1")).not.toBe("settled");
    expect(kinds(book.apply(output(0, 10)).frames)).toEqual(["output_ack", "result_ack"]);
    const again = book.apply({ kind: "result", result: resultOf("cmd_a-1", 10, { exitCode: 7 }) });
    expect(again.frames).toEqual([{ t: "result_ack", commandId: "cmd_a-1" }]);
    expect(again.effects).toEqual([]);
    expect(book.entries.get("cmd_a-1")?.result?.exitCode).toBe(0);
  });

  test.each<[string, number | null, number, object]>([
    ["a clock a year ahead", now + 1e10, now + 1e10 + 500, { startedMs: now + 1_500, endedMs: now + 2_000 }],
    ["a clock an hour behind", now - 3_600_000, now - 3_599_500, { startedMs: now + 1_500, endedMs: now + 2_000 }],
    ["no calendar at all", -1e308, 1e307, { startedMs: now, endedMs: now + 2_000 }],
    ["an end before the start", now + 900, now + 100, { startedMs: now + 2_000, endedMs: now + 2_000 }],
    ["nothing that started", null, 1e308, { startedMs: null, endedMs: now + 2_000 }],
    ["times that can be", now + 100, now + 900, { startedMs: now + 100, endedMs: now + 900 }],
  ])("[E15] [R31] of a machine with %s the cloud keeps what can be, and what the command took", (_clock, startedMs, endedMs, kept) => {
    const book = running();
    book.nowMs = now + 2_000;
    book.apply({ kind: "result", result: resultOf("cmd_a-1", 0, { startedMs, endedMs }) });
    expect(book.entries.get("cmd_a-1")?.result).toMatchObject(kept);
  });

  test("output that was cut on the machine is not waited for, output that never comes is said to be missing", () => {
    const cut = running();
    cut.apply(output(0, 4));
    cut.apply({ kind: "result", result: resultOf("cmd_a-1", 10, { truncatedBytes: 6 }) });
    expect(cut.state("cmd_a-1")).toBe("settled");
    const lost = running();
    lost.apply(output(0, 4));
    lost.apply({ kind: "result", result: resultOf("cmd_a-1", 10) });
    lost.apply({ kind: "output_missing", commandId: "cmd_a-1" });
    expect(lost.entries.get("cmd_a-1")?.result).toMatchObject({
      truncatedBytes: 6,
      reason: "The last 6 bytes of its output did not arrive.",
    });
  });

  test("the result of a command long forgotten is acknowledged, its other frames are ignored", () => {
    const book = running();
    expect(book.apply({ kind: "result", result: resultOf("cmd_a-9") }).frames).toEqual([{ t: "result_ack", commandId: "cmd_a-9" }]);
    for (const input of [
      { kind: "accepted", commandId: "cmd_a-9" },
      { kind: "started", commandId: "cmd_a-9", atMs: 1 },
      { kind: "output", commandId: "cmd_a-9", offset: 5, bytes: 5 },
      { kind: "stopped", commandId: "cmd_a-9" },
    ] as const)
      expect(book.apply(input)).toMatchObject({ frames: [], effects: [], events: [] });
  });
});

describe("stop and cancel", () => {
  test("a waiting command is void at once; a sent one is stopped on the machine and settled by its result", () => {
    const book = new Book().enrol();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "stop", commandId: "cmd_a-1", why: "not needed" });
    expect(book.entries.get("cmd_a-1")?.result).toMatchObject({ outcome: "void", reason: "not needed" });
    book.hello();
    book.apply({ kind: "submit", command: commandOf(2) });
    expect(kinds(book.apply({ kind: "stop", commandId: "cmd_a-2", why: "not needed" }).frames)).toEqual(["stop"]);
    expect(book.state("cmd_a-2")).toBe("sent");
    book.apply({ kind: "result", result: resultOf("cmd_a-2", 0, { outcome: "stopped", exitCode: null }) });
    expect(book.outcome("cmd_a-2")).toBe("stopped");
  });

  test("[E3] [R17] a cancel is answered only when nothing below its epoch is open, and leaves a tombstone", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "submit", command: commandOf(2, { epoch: 2 }) });
    const cancel = book.apply({ kind: "stop_task", taskId: "tsk_a", epoch: 2 });
    expect(cancel.frames).toEqual([{ t: "stop_task", taskId: "tsk_a", beforeEpoch: 2, graceMs: limits.stopGraceMs }]);
    expect(cancel.effects.filter(({ kind }) => kind === "stopped")).toEqual([]);
    const end = book.apply({ kind: "result", result: resultOf("cmd_a-1", 0, { outcome: "stopped" }) });
    expect(end.effects).toContainEqual({ kind: "stopped", taskId: "tsk_a", epoch: 2, offline: false });
    book.apply({ kind: "submit", command: commandOf(3) });
    expect(book.outcome("cmd_a-3")).toBe("void");
    expect(book.state("cmd_a-2")).toBe("sent");
  });

  test("while the machine is away the worker hears so once, and the cancel is answered after the machine is back", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "started", commandId: "cmd_a-1", atMs: now });
    book.apply({ kind: "disconnected", code: 1006, reason: "" });
    book.apply({ kind: "stop_task", taskId: "tsk_a", epoch: 2 });
    book.apply({ kind: "stop_task", taskId: "tsk_a", epoch: 2 });
    book.hello([{ commandId: "cmd_a-1", state: "started", outputBytes: 0 }]);
    book.apply({ kind: "disconnected", code: 1006, reason: "" });
    expect(book.effects.filter((effect) => effect.kind === "stopped")).toEqual([
      { kind: "stopped", taskId: "tsk_a", epoch: 2, offline: true },
    ]);
    book.hello([{ commandId: "cmd_a-1", state: "finished", outputBytes: 0 }]);
    book.apply({ kind: "result", result: resultOf("cmd_a-1", 0, { outcome: "stopped" }) });
    expect(book.effects.filter((effect) => effect.kind === "stopped").at(-1)).toMatchObject({ offline: false });
  });

  test("a cancel with nothing open is answered at once, and again when it is repeated", () => {
    const book = new Book();
    for (const _ of [1, 2])
      expect(book.apply({ kind: "stop_task", taskId: "tsk_a", epoch: 2 }).effects).toEqual([
        { kind: "stopped", taskId: "tsk_a", epoch: 2, offline: false },
      ]);
  });

  test("a stopped command that never reached the machine is void after the next hello", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "disconnected", code: 1006, reason: "" });
    book.apply({ kind: "stop_task", taskId: "tsk_a", epoch: 2 });
    expect(kinds(book.hello().frames)).toEqual(["welcome"]);
    expect(book.outcome("cmd_a-1")).toBe("void");
    expect(book.effects).toContainEqual({ kind: "stopped", taskId: "tsk_a", epoch: 2, offline: false });
  });

  test("a revoke refuses what waits, and says of what ran that its outcome is unknown", () => {
    const book = new Book().enrol();
    book.hello();
    book.apply({ kind: "submit", command: commandOf(1) });
    book.apply({ kind: "started", commandId: "cmd_a-1", atMs: now });
    book.apply({ kind: "disconnected", code: 1006, reason: "" });
    book.apply({ kind: "submit", command: commandOf(2) });
    book.apply({ kind: "revoke", by: "owner" });
    expect([book.outcome("cmd_a-1"), book.outcome("cmd_a-2")]).toEqual(["outcome_unknown", "refused"]);
  });
});
