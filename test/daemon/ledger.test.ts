import { expect, test } from "vitest";
import { compacted, emptyLedger, enter, isVoid, type JournalRecord, type Ledger, labelOf, openList, openOf } from "../../daemon/ledger.ts";
import type { Command, CommandResult } from "../../src/protocol/command.ts";
import { limits } from "../../src/protocol/limits.ts";

const command = (commandId: string, more: Partial<Command> = {}): Command => ({
  commandId,
  taskId: "tsk_a",
  epoch: 1,
  spec: { kind: "shell", workspace: "work", script: "echo  one\necho two" },
  authority: "member",
  tainted: false,
  timeoutMs: 1000,
  notAfterMs: 5000,
  atMs: 0,
  ...more,
});

const result = (commandId: string): CommandResult => ({
  commandId,
  outcome: "exited",
  exitCode: 0,
  outputBytes: 3,
  truncatedBytes: 0,
  startedMs: 1,
  endedMs: 2,
});

const accepted = (id: string, more: Partial<Command> = {}): JournalRecord => ({ k: "accepted", command: command(id, more), atMs: 0 });
const started = (id: string): JournalRecord => ({ k: "started", commandId: id, process: { pid: 7, startTime: "b/1" }, atMs: 1 });
const finished = (id: string): JournalRecord => ({ k: "finished", result: result(id) });
const acked = (id: string): JournalRecord => ({ k: "acked", commandId: id, atMs: 10 });

function ledgerOf(...records: JournalRecord[]): Ledger {
  const ledger = emptyLedger();
  for (const record of records) enter(ledger, record);
  return ledger;
}

test("a command goes from accepted to started to finished to acknowledged, and a repeated record changes nothing", () => {
  const ledger = ledgerOf(accepted("cmd_a"), started("cmd_a"), finished("cmd_a"), started("cmd_a"), finished("cmd_a"));
  expect(ledger.entries.get("cmd_a")).toMatchObject({ state: "finished", result: result("cmd_a") });
  enter(ledger, acked("cmd_a"));
  expect(ledger.entries.get("cmd_a")).toEqual({
    state: "acked",
    taskId: "tsk_a",
    label: "shell echo one echo two",
    workspace: "work",
    result: result("cmd_a"),
    forgetMs: 10 + limits.dedupeMs,
  });
  enter(ledger, started("cmd_unknown"));
  expect(ledger.entries.size).toBe(1);
});

test("a refusal is finished without a start", () => {
  expect(ledgerOf(accepted("cmd_a"), finished("cmd_a")).entries.get("cmd_a")).toMatchObject({ state: "finished" });
});

test("[R12] compaction keeps every open command as it is, and an acknowledged one's id until no repeat of it may run", () => {
  const late = 20 * limits.dedupeMs;
  const ledger = ledgerOf(
    { k: "journal", v: 1, endpointId: "ep_a" },
    accepted("cmd_a"),
    accepted("cmd_b"),
    started("cmd_b"),
    accepted("cmd_c"),
    started("cmd_c"),
    finished("cmd_c"),
    accepted("cmd_d"),
    finished("cmd_d"),
    acked("cmd_d"),
    accepted("cmd_e", { notAfterMs: late }),
    finished("cmd_e"),
    acked("cmd_e"),
    { k: "void", commandId: "cmd_v", forgetMs: 100 },
    { k: "void_task", taskId: "tsk_v", beforeEpoch: 3, forgetMs: late },
  );
  const again = ledgerOf(...compacted(ledger, "ep_a", 50));
  expect(again).toEqual(ledger);
  const much = ledgerOf(...compacted(ledger, "ep_a", 10 + limits.dedupeMs));
  expect([...much.entries.keys()]).toEqual(["cmd_a", "cmd_b", "cmd_c", "cmd_e"]);
  expect(much.voids.size).toBe(0);
  expect(much.voidTasks.size).toBe(1);
});

test("what was cancelled before it came is void: by its id, or by its task's epoch", () => {
  const ledger = ledgerOf(
    { k: "void", commandId: "cmd_v", forgetMs: 100 },
    { k: "void_task", taskId: "tsk_v", beforeEpoch: 3, forgetMs: 100 },
    { k: "void_task", taskId: "tsk_v", beforeEpoch: 2, forgetMs: 100 },
  );
  expect(isVoid(ledger, command("cmd_v"))).toBe(true);
  expect(isVoid(ledger, command("cmd_x", { taskId: "tsk_v", epoch: 2 }))).toBe(true);
  expect(isVoid(ledger, command("cmd_x", { taskId: "tsk_v", epoch: 3 }))).toBe(false);
});

test("a hello lists what is not acknowledged, and a cancel finds the task's open commands of older epochs", () => {
  const ledger = ledgerOf(accepted("cmd_a"), accepted("cmd_b", { epoch: 2 }), accepted("cmd_c"), finished("cmd_c"), acked("cmd_c"));
  expect(openList(ledger, () => 4)).toEqual([
    { commandId: "cmd_a", state: "accepted", outputBytes: 4 },
    { commandId: "cmd_b", state: "accepted", outputBytes: 4 },
  ]);
  expect(openOf(ledger, "tsk_a", 2)).toEqual(["cmd_a"]);
});

test("a label is one short line", () => {
  const label = labelOf({ kind: "shell", workspace: "work", script: "x".repeat(500) });
  expect(label.length).toBeLessThan(120);
  expect(labelOf({ kind: "list_files", workspace: "work" })).toBe("list_files .");
});
