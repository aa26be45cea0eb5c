// What is known of each command, as the journal tells it: accepted → started → finished → acknowledged. Pure; the journal makes it last.
import * as z from "zod/mini";
import { type Command, type CommandResult, command, commandResult } from "../src/protocol/command.ts";
import type { HelloFrame } from "../src/protocol/daemon-frames.ts";
import { commandId, endpointId, taskId } from "../src/protocol/ids.ts";
import { limits } from "../src/protocol/limits.ts";

const processMark = z.nullable(z.object({ pid: z.number(), startTime: z.string() }));
const kept = { commandId, taskId, label: z.string(), workspace: z.string(), result: commandResult, forgetMs: z.number() };

export const journalRecord = z.discriminatedUnion("k", [
  z.object({ k: z.literal("journal"), v: z.literal(1), endpointId }),
  z.object({ k: z.literal("accepted"), command, atMs: z.number() }),
  /** Before the process may do anything; `process` is null for work inside the daemon. */
  z.object({ k: z.literal("started"), commandId, process: processMark, atMs: z.number() }),
  z.object({ k: z.literal("finished"), result: commandResult }),
  z.object({ k: z.literal("acked"), commandId, atMs: z.number() }),
  /** Compacted: an acknowledged command, kept so that a late repeat never runs it again, and for `log`. */
  z.object({ k: z.literal("kept"), ...kept }),
  /** A stop for something that never came: should it come, it is void. */
  z.object({ k: z.literal("void"), commandId, forgetMs: z.number() }),
  z.object({ k: z.literal("void_task"), taskId, beforeEpoch: z.number(), forgetMs: z.number() }),
]);
export type JournalRecord = z.infer<typeof journalRecord>;
export type ProcessMark = z.infer<typeof processMark>;

export type Entry =
  | { state: "accepted"; command: Command }
  | { state: "started"; command: Command; process: ProcessMark; startedMs: number }
  | { state: "finished"; command: Command; result: CommandResult }
  | { state: "acked"; taskId: string; label: string; workspace: string; result: CommandResult; forgetMs: number };

export type Ledger = {
  endpointId: string | null;
  entries: Map<string, Entry>;
  voids: Map<string, number>;
  voidTasks: Map<string, { beforeEpoch: number; forgetMs: number }>;
};

export const emptyLedger = (): Ledger => ({ endpointId: null, entries: new Map(), voids: new Map(), voidTasks: new Map() });

function textOf(spec: Command["spec"]): string {
  switch (spec.kind) {
    case "shell":
      return spec.script;
    case "search_files":
      return spec.query;
    case "push":
    case "keep":
      return spec.branch;
    case "push_kept":
      return `${spec.branch} ${spec.sha}`;
    default:
      return spec.path ?? ".";
  }
}

/** A command in one short line, for `log`. */
export function labelOf(spec: Command["spec"]): string {
  const text = textOf(spec);
  const line = text.replace(/\s+/g, " ").trim();
  return `${spec.kind} ${line.length > 100 ? `${line.slice(0, 99)}…` : line}`;
}

export const howEnded = ({ outcome, exitCode, signal }: Pick<CommandResult, "outcome" | "exitCode" | "signal">): string =>
  outcome === "exited" ? `exit ${exitCode ?? signal}` : outcome;

/** Enters one record. Records of a command that is not known (compacted long ago) change nothing. */
export function enter(ledger: Ledger, record: JournalRecord): void {
  const { entries } = ledger;
  switch (record.k) {
    case "journal":
      ledger.endpointId = record.endpointId;
      return;
    case "accepted":
      entries.set(record.command.commandId, { state: "accepted", command: record.command });
      return;
    case "started": {
      const entry = entries.get(record.commandId);
      if (entry?.state === "accepted")
        entries.set(record.commandId, { state: "started", command: entry.command, process: record.process, startedMs: record.atMs });
      return;
    }
    case "finished": {
      const entry = entries.get(record.result.commandId);
      if (entry?.state === "accepted" || entry?.state === "started")
        entries.set(record.result.commandId, { state: "finished", command: entry.command, result: record.result });
      return;
    }
    case "acked": {
      const entry = entries.get(record.commandId);
      if (entry?.state !== "finished") return;
      const { command: done, result } = entry;
      entries.set(record.commandId, {
        state: "acked",
        taskId: done.taskId,
        label: labelOf(done.spec),
        workspace: done.spec.workspace,
        result,
        // A repeat past its own `notAfter` is refused as expired, so until then its id must be known.
        forgetMs: Math.max(record.atMs + limits.dedupeMs, done.notAfterMs),
      });
      return;
    }
    case "kept": {
      const { k: _, commandId: id, ...rest } = record;
      entries.set(id, { state: "acked", ...rest });
      return;
    }
    case "void":
      ledger.voids.set(record.commandId, record.forgetMs);
      return;
    case "void_task": {
      const before = ledger.voidTasks.get(record.taskId)?.beforeEpoch ?? 0;
      ledger.voidTasks.set(record.taskId, { beforeEpoch: Math.max(before, record.beforeEpoch), forgetMs: record.forgetMs });
      return;
    }
  }
}

/** The fewest records that tell the same; what is older than its time is forgotten. */
export function compacted(ledger: Ledger, endpoint: string, nowMs: number): JournalRecord[] {
  const records: JournalRecord[] = [{ k: "journal", v: 1, endpointId: endpoint }];
  for (const [id, forgetMs] of ledger.voids) if (forgetMs > nowMs) records.push({ k: "void", commandId: id, forgetMs });
  for (const [id, each] of ledger.voidTasks) if (each.forgetMs > nowMs) records.push({ k: "void_task", taskId: id, ...each });
  for (const [id, entry] of ledger.entries) {
    if (entry.state === "acked") {
      const { state: _, ...rest } = entry;
      if (entry.forgetMs > nowMs) records.push({ k: "kept", commandId: id, ...rest });
      continue;
    }
    records.push({ k: "accepted", command: entry.command, atMs: entry.command.atMs });
    if (entry.state === "started") records.push({ k: "started", commandId: id, process: entry.process, atMs: entry.startedMs });
    if (entry.state === "finished") records.push({ k: "finished", result: entry.result });
  }
  return records;
}

/** True when the command was cancelled before it came. */
export const isVoid = (ledger: Ledger, each: Command): boolean =>
  ledger.voids.has(each.commandId) || each.epoch < (ledger.voidTasks.get(each.taskId)?.beforeEpoch ?? 0);

/** Commands of a task, below an epoch, that are not acknowledged yet. */
export const openOf = (ledger: Ledger, task: string, beforeEpoch: number): string[] =>
  [...ledger.entries].flatMap(([id, entry]) =>
    entry.state !== "acked" && entry.command.taskId === task && entry.command.epoch < beforeEpoch ? [id] : [],
  );

/** The `open` list of a hello. */
export const openList = (ledger: Ledger, outputBytes: (id: string) => number): HelloFrame["open"] =>
  [...ledger.entries].flatMap(([id, entry]) =>
    entry.state === "acked" ? [] : [{ commandId: id, state: entry.state, outputBytes: outputBytes(id) }],
  );
