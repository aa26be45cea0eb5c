// Calls of a worker's model before anything is done: do they parse, are they of its profile, may they read what they name?
import { type Command, isPush } from "../protocol/command.ts";
import { limits } from "../protocol/limits.ts";
import type { ModelMessage, ModelReply } from "../protocol/model.ts";
import type { TaskStart } from "../protocol/task.ts";
import { type MachineCall, type WorkerCall, type WorkerTool, workerTools } from "../protocol/worker-tools.ts";
import { taskAudience } from "./audience.ts";
import { laneOf } from "./authority.ts";
import { ownerOf } from "./ids.ts";
import { mayUse, toolsOf } from "./profiles.ts";
import { lineOfCall, whatOf } from "./worker-card.ts";
import { fitSum } from "./worker-context.ts";
import { isWork, repeatsNoticed } from "./worker-failure.ts";
import type { Change, StepCall, TaskState, WorkerCommand } from "./worker-state.ts";

/** What a command needs to know of its task. */
export type MachineTask = Pick<TaskStart, "taskId" | "authority" | "endpoint"> & {
  epoch: number;
  tainted: boolean;
  /** It may push nothing: the commit is only kept. */
  keeps?: boolean;
  /** The one commit that it may push, and where to. */
  only?: { sha: string; place: string };
};

/** A call as a command for the task's machine, or the reason why it cannot be one. */
export type CommandMaker = (
  call: MachineCall,
  task: MachineTask,
  step: number,
  nowMs: number,
) => { ok: true; command: Command } | { ok: false; reason: string };

/** A call checked against its tool's schema, or the reason for the model why it cannot be taken. */
export function parseCall(raw: ModelReply["calls"][number]): WorkerCall | { problem: string } {
  if (!Object.hasOwn(workerTools, raw.tool))
    return { problem: `There is no tool "${raw.tool}". The tools are: ${Object.keys(workerTools).join(", ")}.` };
  const tool = raw.tool as WorkerTool;
  const parsed = workerTools[tool].input.safeParse(raw.input);
  if (parsed.success) return { callId: raw.callId, tool, input: parsed.data } as WorkerCall;
  const issues = parsed.error.issues.map(
    (issue) => `${issue.path.length === 0 ? "input" : issue.path.join(".")}: ${issue.message} (${issue.code})`,
  );
  return { problem: `The input of ${tool} is not valid. ${issues.join("; ")}` };
}

/** What of a task's own objects is known of them. */
type Own = { commandOf: (commandId: string) => WorkerCommand | null; ownsArtifact: (artifactId: string) => boolean };

/** [W11] A task that is not of the team alone reads only its own objects: nothing bleeds out of other threads. */
export const mayRecall = (task: TaskState, id: string, own: Own): boolean =>
  (laneOf(task.start.authority) === "team" && !task.tainted) || isOwn(task, id, own);

/**
 * [A9] Who reads what a recall brings, where that decides what may be shown; null for what is the task's own. A thread that it follows by
 * its own choice is none: whether it may is not known before the thread has answered.
 */
export function readerOf(task: TaskState, id: string, own: Own): string | null {
  const thread = id.startsWith("trg_") ? ownerOf(id, "thr") : id;
  const chosen = task.threads.some((each) => each === thread && each !== task.start.threadId && !task.ownThreads?.includes(each));
  return isOwn(task, id, own) && !chosen ? null : taskAudience(task.start);
}

function isOwn(task: TaskState, id: string, own: Own): boolean {
  const { taskId } = task.start;
  const thread = ownerOf(id, "thr");
  return (
    id === taskId ||
    task.threads.includes(id) ||
    (id.startsWith("trg_") && thread !== null && task.threads.includes(thread)) ||
    (/^(rep|seg)_/.test(id) && ownerOf(id, "tsk") === taskId) ||
    task.offers.some((offer) => offer.id === id) ||
    own.commandOf(id) !== null ||
    own.ownsArtifact(id)
  );
}

/** A command is on its way: in the ledger of the task, and as an effect. */
export function submit(
  change: Change,
  call: MachineCall,
  step: number,
  command: Command,
  { endpointId, name }: NonNullable<TaskStart["endpoint"]>,
): void {
  const { task } = change;
  const { commandId, spec } = command;
  const what = call.tool === "run_command" || isPush(spec) ? whatOf(spec) : lineOfCall(call);
  if (spec.kind === "push" || spec.kind === "push_kept") task.pushing = [...task.pushing, commandId];
  task.commands += 1;
  task.line = what;
  const from = spec.kind !== "keep" ? {} : { from: { workspace: spec.workspace, ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }) } };
  const { tool, callId } = call;
  change.commands.push({ commandId, endpointId, step, callId, tool, what, open: true, online: true, machine: name, ...from });
  change.effects.push({ effect: "submit", endpointId, command });
  change.events.push({ kind: "task.tool", step, callId, tool, phase: "intent", commandId, detail: what });
}

const silent = "Nobody asked for this task, so nobody hears of it before it is done";

/** [SP2] Why a task that nobody asked for may not do this; null when it may. Its children speak to it alone, so they may. */
function whyNotUnasked(task: TaskState, call: WorkerCall): string | null {
  if (task.start.speculative !== true) return null;
  switch (call.tool) {
    case "subscribe":
    case "unsubscribe":
    case "hand_back":
      return `${silent}: it follows no thread. Read by recall.`;
    case "propose":
      // [SP8] It is kept, and offered with the report.
      if (call.input.what === "pull_request" && task.start.parent === undefined) return null;
      return `${silent}: nothing of it leaves by itself. Say in your report what you made; its words are offered to people.`;
    case "push":
      // [SP8] Its commit is only kept, for the pull request that a child cannot propose.
      if (task.start.parent === undefined) return null;
      return `${silent}: nothing of it leaves by itself, no branch either. Commit your change and report it.`;
    case "report":
      return task.start.parent === undefined && /^(question|blocked|answer)$/.test(call.input.kind)
        ? `${silent}: you cannot ask or answer. Find out what you can by yourself; then report done, or failed.`
        : null;
    default:
      return null;
  }
}

/** Why a call is not carried out, whatever its input; null when it may be. */
export function whyNotCall(task: TaskState, call: WorkerCall, repeated: boolean): string | null {
  if (!mayUse(task.profile, call.tool)) return notOfProfile(task, call.tool);
  const unasked = whyNotUnasked(task, call);
  if (unasked !== null) return unasked;
  return repeated && isWork(call.tool) ? `the same was just done ${repeatsNoticed - 1} times; it is not done again` : null;
}

/** What a model hears that asks for a tool which its profile lacks. */
const notOfProfile = (task: TaskState, tool: string): string =>
  `${tool} is not a tool of the profile ${task.profile.name}. Its tools are: ${Object.keys(toolsOf(task.profile)).join(", ")}. If the work needs others, use hand_off or report it.`;

const maxWaitMs = 30 * 24 * 60 * 60_000;

/** When a wait is over: null without a time, at most 30 days ahead. */
export function waitUntilMs(
  input: { seconds?: number | undefined; until?: string | undefined },
  nowMs: number,
): number | null | "unreadable" {
  if (input.until === undefined) return input.seconds === undefined ? null : nowMs + Math.min(input.seconds * 1000, maxWaitMs);
  const atMs = Date.parse(input.until);
  return Number.isNaN(atMs) ? "unreadable" : Math.min(Math.max(atMs, nowMs), nowMs + maxWaitMs);
}

/** [R19] The results of a step as messages, one for each call, within the cap of a step. */
export function resultsOf(calls: readonly StepCall[]): ModelMessage[] {
  const outputs = fitSum(
    calls.map((call) => ({ text: call.output ?? "not read: the task has ended", id: "it again with its page" })),
    limits.inlineStepChars,
  );
  return calls.map((call, i) => ({ role: "tool", callId: call.callId, tool: call.tool, output: outputs[i] ?? "" }));
}

/** Providers may repeat a call id; one id can have only one result, so only its first call counts. */
export function withoutTwins(calls: ModelReply["calls"]): ModelReply["calls"] {
  const seen = new Set<string>();
  return calls.filter(({ callId }) => !seen.has(callId) && seen.add(callId));
}
