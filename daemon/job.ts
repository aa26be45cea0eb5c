// One command from the moment that its turn came to its end.
import { type Command, type CommandResult, isPush, type PushSpec } from "../src/protocol/command.ts";
import { Fault, messageOf } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import { type FileSpec, runFileCommand } from "./files.ts";
import { gitChanges, gitState } from "./git-guard.ts";
import type { Home } from "./home.ts";
import type { ProcessMark } from "./ledger.ts";
import type { Judgement } from "./policy.ts";
import { baseIn, planKeep, planPush } from "./push.ts";
import { endedBySignal, type Launched, launch, type ShellEnd, type ShellPlan } from "./runner.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Spool } from "./spool.ts";
import { existingPath } from "./workspace-path.ts";

type StopWhy = "stopped" | "timed_out" | "shutdown";
export type JobEnd = Pick<CommandResult, "outcome" | "exitCode" | "startedMs" | "pushed" | "kept"> & { signal?: string; reason?: string };

export type JobPlan = {
  command: Command;
  spool: Spool;
  home: Home;
  mode: Sandbox["mode"];
  cgroupParent: string | null;
  /** Asked when its turn comes: the folder's grant may be gone by then. */
  judge(): Judgement;
  /** Every granted folder, as the owner's policy says now. */
  granted(): string[];
  /** Makes the start durable; only then may the command do anything. */
  started(process: ProcessMark): Promise<number>;
  opened(): void;
  onOutput(): void;
  exited(): void;
  onStuck(): void;
  /** Something that the machine's owner should see. */
  onWarning(text: string): void;
  finish(end: JobEnd): Promise<void>;
};

export type Job = {
  stop(graceMs: number, why: StopWhy): void;
  done: Promise<void>;
};

export const notBegun = "It was stopped before it began.";
const reasons: Partial<Record<StopWhy, string>> = { shutdown: "The daemon was ended on its machine, and this with it." };

/** Sees one accepted command to its end. */
export function perform(plan: JobPlan): Job {
  const stopping = new AbortController();
  let why: StopWhy | null = null;
  const stopReason = (): StopWhy | null => why;
  let launched: Launched | null = null;
  const stop = (graceMs: number, reason: StopWhy): void => {
    // The first reason stands; a second stop may only shorten the grace.
    why ??= reason;
    stopping.abort();
    launched?.stop(graceMs);
  };

  const shell = async (spec: Extract<Command["spec"], { kind: "shell" }>, root: string): Promise<JobEnd> => {
    if (plan.mode === "none") throw new Fault("forbidden", "This machine has no sandbox.");
    const gitBefore = plan.mode === "bwrap" ? gitState(root) : null;
    const cwd = existingPath(root, spec.cwd ?? ".");
    const ended = await run({ script: spec.script, root, cwd, stdin: spec.stdin ?? null, mode: plan.mode });
    const changes = gitBefore === null || ended.startedMs === null ? null : gitChanges(root, gitBefore);
    if (changes === null) return ended;
    plan.onWarning(changes);
    return { ...ended, reason: (ended.reason === undefined ? changes : `${ended.reason} ${changes}`).slice(0, 2000) };
  };

  /** The owner's own git does it, so it is no command of the task that runs outside the sandbox: see push.ts. */
  const push = async (spec: PushSpec, root: string): Promise<JobEnd> => {
    const where = { folder: existingPath(root, spec.cwd ?? "."), root, granted: plan.granted() };
    if (spec.kind === "keep") {
      const { script, env, kept } = await planKeep(plan.home, where, spec.branch);
      const shown = await run({ script, root, cwd: plan.home.dir, stdin: null, mode: "unsandboxed", env });
      return shown.outcome === "exited" && shown.exitCode === 0 ? { ...shown, kept } : shown;
    }
    const { script, env, pushed } = await planPush(plan.home, where, spec.branch, spec.kind === "push_kept" ? spec : undefined);
    let output = "";
    const ended = await run({ script, root, cwd: plan.home.dir, stdin: null, mode: "unsandboxed", env }, (chunk) => {
      output = `${output}${chunk.toString("utf8")}`.slice(-16_000);
    });
    return ended.outcome === "exited" && ended.exitCode === 0 ? { ...ended, pushed: { ...pushed, ...baseIn(output) } } : ended;
  };

  const run = async (
    what: Pick<ShellPlan, "script" | "root" | "cwd" | "stdin" | "mode" | "env">,
    heard: (chunk: Buffer) => void = () => undefined,
  ): Promise<JobEnd> => {
    const running = await launch(
      {
        ...what,
        commandId: plan.command.commandId,
        daemonHome: plan.home.dir,
        outputFolder: plan.home.output,
        cgroupParent: plan.cgroupParent,
      },
      (chunk) => {
        plan.spool.append(chunk);
        heard(chunk);
        plan.onOutput();
      },
      plan.onStuck,
    );
    if (stopReason() !== null) {
      running.stop(0);
      await running.end;
      return { outcome: "stopped", exitCode: null, reason: notBegun, startedMs: null };
    }
    const startedMs = await plan.started(running.leader);
    launched = running;
    running.go();
    plan.opened();
    // A stop that came while the start was being written found nothing to stop.
    if (stopReason() !== null) running.stop(0);
    const timer = setTimeout(() => stop(limits.stopGraceMs, "timed_out"), timeoutOf(plan.command));
    const end = await running.end;
    clearTimeout(timer);
    plan.exited();
    return endOf(stopReason(), end, startedMs);
  };

  const file = async (spec: FileSpec, root: string): Promise<JobEnd> => {
    const startedMs = await plan.started(null);
    plan.opened();
    const timer = setTimeout(() => stop(0, "timed_out"), timeoutOf(plan.command));
    let exitCode = 0;
    try {
      plan.spool.append(Buffer.from(await runFileCommand(root, spec, stopping.signal), "utf8"));
    } catch (error) {
      exitCode = 1;
      plan.spool.append(Buffer.from(`${explain(error)}\n`, "utf8"));
    }
    clearTimeout(timer);
    plan.exited();
    // A file command that was through when the stop came has had its effect, and says so.
    return exitCode === 0 ? { outcome: "exited", exitCode, startedMs } : endOf(stopReason(), { exitCode, signal: null }, startedMs);
  };

  const work = async (): Promise<JobEnd> => {
    const judgement = plan.judge();
    if (!judgement.ok) return { outcome: judgement.outcome, exitCode: null, reason: judgement.reason, startedMs: null };
    const { spec } = plan.command;
    try {
      if (spec.kind === "shell") return await shell(spec, judgement.root);
      return isPush(spec) ? await push(spec, judgement.root) : await file(spec, judgement.root);
    } catch (error) {
      if (launched !== null || !isCommandsFault(error)) throw error;
      return { outcome: "refused", exitCode: null, reason: explain(error).slice(0, 2000), startedMs: null };
    }
  };

  const done = work().then((end) => plan.finish(end));
  return { stop, done };
}

/** Before its start, what the command itself is to blame for, or the machine's state: no such folder, no process to be had. */
const isCommandsFault = (error: unknown): boolean => error instanceof Fault || (error instanceof Error && "code" in error);

const timeoutOf = (command: Command): number => Math.min(limits.maxCommandTimeoutMs, Math.max(1, command.timeoutMs));

function endOf(why: StopWhy | null, seen: ShellEnd, startedMs: number): JobEnd {
  const end = why === null ? seen : endedBySignal(seen);
  const base = { exitCode: end.exitCode, ...(end.signal === null ? {} : { signal: end.signal }), startedMs };
  if (why === null) return { outcome: "exited", ...base };
  const reason = reasons[why];
  return { outcome: why === "timed_out" ? "timed_out" : "stopped", ...base, ...(reason === undefined ? {} : { reason }) };
}

/** A sentence for the reader of the output. */
function explain(error: unknown): string {
  if (error instanceof Fault) return error.message;
  if (error instanceof Error && "code" in error) return `The machine said: ${error.message}`;
  return `The daemon failed at this: ${messageOf(error)}`;
}
