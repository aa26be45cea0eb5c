// A model's reply becomes results and effects: every call is checked against its schema, the task's authority and taint, and gets exactly one result.
import { limits } from "../protocol/limits.ts";
import type { ModelReply } from "../protocol/model.ts";
import type { Profile } from "../protocol/profile.ts";
import { isMachineTool, type MachineCall, type WorkerCall } from "../protocol/worker-tools.ts";
import { refuseCommand } from "./authority.ts";
import { childId, makeId } from "./ids.ts";
import {
  type CommandMaker,
  mayRecall,
  parseCall,
  readerOf,
  resultsOf,
  submit,
  waitUntilMs,
  whyNotCall,
  withoutTwins,
} from "./worker-calls.ts";
import { oneLine } from "./worker-card.ts";
import { checksToAwait } from "./worker-checks.ts";
import { isContext } from "./worker-context.ts";
import { keepsCommits } from "./worker-draft.ts";
import { endTask, muteReply } from "./worker-end.ts";
import { countRepeat, repeatsNoticed, retriesFirst } from "./worker-failure.ts";
import { countUsage, handOff, openChildren, type Spoken, spawnChild, stopChild, tellChild } from "./worker-family.ts";
import { followRead, handBack, leaveThread, whyNotFollow } from "./worker-follow.ts";
import { takeNext } from "./worker-input.ts";
import { tooLongToSay } from "./worker-manner.ts";
import { takeNote } from "./worker-notes.ts";
import { endText, propose } from "./worker-propose.ts";
import {
  addReport,
  type Change,
  changeOf,
  type InboxItem,
  type InboxRow,
  type StepCall,
  type TaskState,
  type WorkerCommand,
  type WorkerRead,
} from "./worker-state.ts";

/** What the decision needs to know beside the state. */
export type ReplyFacts = {
  model: string;
  ms: number;
  nowMs: number;
  /** What we took the request for, before its provider counted it. */
  estimatedTokens: number;
  /** Rows that came since the step began. */
  pending: readonly InboxRow[];
  /** Rows of the backlog: they wait until this work has reported. */
  backlog: readonly InboxRow[];
  /** Profiles that the team saved. */
  profiles: readonly Profile[];
  open: readonly WorkerCommand[];
  /** Every command of this task, for those that are named by id. */
  commandOf: (commandId: string) => WorkerCommand | null;
  ownsArtifact: (artifactId: string) => boolean;
  /** Every command of this task, oldest first. */
  allCommands: () => readonly WorkerCommand[];
  /** What came into the inbox under an id, read or not. */
  itemOf: (key: string) => InboxItem | null;
  commandFor: CommandMaker;
};

type Done = { output: object; again: boolean };
type Asked = { read: WorkerRead };
/** A call as the ledger knows it, readable or not. */
type Named = { callId: string; tool: string };
type ReportCall = Extract<WorkerCall, { tool: "report" }>;

/** [W4] Commits a reply: the assistant's message, one result for each call, and what they cause. */
export function decideReply(task: TaskState, reply: ModelReply, facts: ReplyFacts): Change {
  if (task.open.kind !== "calling") throw new Error("no model call is open");
  const change = changeOf(task, "a step ended");
  const next = change.task;
  const { step } = task.open;
  const calls = withoutTwins(reply.calls.slice(0, limits.maxCallsPerReply));
  if (reply.calls.length > limits.maxCallsPerReply)
    next.notices = [
      ...next.notices,
      `Only the first ${limits.maxCallsPerReply} calls of your answer were taken; call the others again if you need them.`,
    ];
  next.open = { kind: "none" };
  change.events.push({ kind: "task.model", step, phase: "settle", model: facts.model, consumed: [], ms: facts.ms, usage: reply.usage });
  countUsage(next, reply.usage, facts.estimatedTokens);
  change.messages.push({ role: "assistant", text: reply.text, calls });
  if (calls.length === 0) return muteReply(change, step, facts);
  next.mute = 0;
  const deciding = new Deciding(change, step, facts, calls);
  for (const call of calls) deciding.take(call);
  return finishStep(change, step);
}

/** Appends the results when all are known; otherwise the step stays open for its reads. */
function finishStep(change: Change, step: number): Change {
  const unread = change.calls.filter(({ output }) => output === null);
  if (unread.length > 0 && change.task.mode.mode !== "ended") {
    change.task.open = { kind: "reading", step };
    return change;
  }
  for (const { callId, tool } of unread)
    change.events.push({ kind: "task.tool", step, callId, tool, phase: "refused", detail: "not read: the task has ended" });
  change.effects = change.effects.filter(({ effect }) => effect !== "read" || unread.length === 0);
  change.messages.push(...resultsOf(change.calls));
  return change;
}

/** A read of the open step is answered. With the last one all results enter the transcript, and their taint the task. */
export function readAnswered(task: TaskState, calls: readonly StepCall[], answered: { step: number; callId: string }): Change | null {
  if (task.open.kind !== "reading" || task.open.step !== answered.step) return null;
  const change = changeOf(task, "what was asked for was read");
  const call = calls.find(({ callId }) => callId === answered.callId);
  if (call)
    change.events.push({
      kind: "task.tool",
      step: call.step,
      callId: call.callId,
      tool: call.tool,
      phase: "done",
      detail: `${call.output?.length ?? 0} characters${call.tainting ? ", not of the team alone" : ""}`,
    });
  if (calls.some(({ output }) => output === null)) return change;
  change.task.open = { kind: "none" };
  change.task.tainted = task.tainted || calls.some(({ tainting }) => tainting);
  change.messages.push(...resultsOf(calls));
  return change;
}

/** One reply being decided, call by call. */
class Deciding {
  readonly #change: Change;
  readonly #step: number;
  readonly #facts: ReplyFacts;
  readonly #starts: boolean;
  #asked = false;
  #openCount: number;

  constructor(change: Change, step: number, facts: ReplyFacts, calls: ModelReply["calls"]) {
    this.#change = change;
    this.#step = step;
    this.#facts = facts;
    this.#starts = calls.some((call) => isMachineTool(call.tool));
    this.#openCount = facts.open.length;
  }

  take(raw: ModelReply["calls"][number]): void {
    const { task } = this.#change;
    const repeated = countRepeat(task, raw) >= repeatsNoticed;
    const call = parseCall(raw);
    const refused = "problem" in call ? null : whyNotCall(task, call, repeated);
    const outcome: Done | Asked =
      task.mode.mode === "ended"
        ? { output: { refused: "the task has ended" }, again: false }
        : "problem" in call
          ? this.#refused(raw, { error: call.problem })
          : refused !== null
            ? this.#refused(raw, { refused })
            : this.#decide(call);
    const step = { step: this.#step, callId: raw.callId, tool: raw.tool, tainting: false };
    if ("read" in outcome) {
      this.#change.calls.push({ ...step, output: null });
      this.#change.effects.push({ effect: "read", step: this.#step, callId: raw.callId, read: outcome.read });
      task.again = true;
      return;
    }
    this.#change.calls.push({ ...step, output: JSON.stringify(outcome.output) });
    if (outcome.again) task.again = true;
  }

  #decide(call: WorkerCall): Done | Asked {
    const { task } = this.#change;
    switch (call.tool) {
      case "run_command":
      case "push":
      case "read_file":
      case "write_file":
      case "edit_file":
      case "list_files":
      case "search_files":
        return this.#start(call);
      case "stop_command":
        return this.#stop(call);
      case "read_output":
        return this.#readOutput(call);
      case "recall":
        return this.#recall(call);
      case "subscribe":
        return this.#subscribe(call);
      case "unsubscribe": {
        const refused = leaveThread(this.#change, call.input.thread, call.input.reason);
        return refused === null ? this.#done(call, { left: call.input.thread }, false) : this.#refused(call, { refused });
      }
      case "hand_back": {
        const why = handBack(this.#change, this.#facts.itemOf(call.input.trigger), call.input);
        return why === null ? this.#done(call, { handed_back: true }, false) : this.#refused(call, { refused: why });
      }
      case "report":
        return this.#report(call);
      case "note":
        return this.#spoken(call, takeNote(this.#change, call.input, this.#step));
      case "propose":
        return this.#spoken(call, propose(this.#change, call, this.#step, this.#facts));
      case "spawn":
        return this.#spoken(call, spawnChild(this.#change, call, this.#step, this.#facts.profiles, this.#facts.nowMs));
      case "tell_child":
        return this.#spoken(call, tellChild(this.#change, call.input.task, call.input.text, this.#step, call.callId));
      case "stop_child":
        return this.#spoken(call, stopChild(this.#change, call.input.task));
      case "hand_off":
        return this.#spoken(call, handOff(this.#change, call, this.#step, this.#facts.profiles, this.#facts.nowMs));
      case "wait": {
        const untilMs = waitUntilMs(call.input, this.#facts.nowMs);
        if (untilMs === "unreadable") return this.#refused(call, { error: "`until` must be an ISO time, such as 2027-01-31T09:00:00Z." });
        // A result that the model has not seen yet comes first.
        if (!task.again) task.mode = { mode: "waiting", untilMs, reason: call.input.reason };
        return this.#done(call, untilMs === null ? { waiting: true } : { waiting: true, until: new Date(untilMs).toISOString() }, false);
      }
    }
  }

  #spoken(call: WorkerCall, answer: Spoken): Done {
    return "refused" in answer ? this.#refused(call, answer) : this.#done(call, answer.output, false);
  }

  /** [A5] A machine tool: refused, or a command on its way. */
  #start(call: MachineCall): Done {
    const { task } = this.#change;
    const { taskId, authority, endpoint } = task.start;
    const refused = refuseCommand({ authority, tainted: task.tainted });
    if (refused !== null) return this.#refused(call, { refused });
    if (endpoint === null)
      return this.#refused(call, {
        refused: "No machine is connected. Someone of the team has to enrol one; then ask again.",
      });
    if (this.#openCount >= limits.maxOpenCommandsPerTask)
      return this.#refused(call, {
        refused: `${limits.maxOpenCommandsPerTask} commands of this task are open already. Wait for one to end, or stop one.`,
      });
    if (task.commands >= limits.maxCommandsPerTask)
      return this.#refused(call, {
        refused: `This task has run ${limits.maxCommandsPerTask} commands; that is all it may. Report what you have.`,
      });
    const asker = { taskId, authority, endpoint, epoch: task.epoch, tainted: task.tainted, keeps: keepsCommits(task) };
    const made = this.#facts.commandFor(call, asker, this.#step, this.#facts.nowMs);
    if (!made.ok) return this.#refused(call, { refused: made.reason });
    this.#openCount += 1;
    submit(this.#change, call, this.#step, made.command, endpoint);
    return { output: { started: made.command.commandId }, again: false };
  }

  #stop(call: Extract<WorkerCall, { tool: "stop_command" }>): Done {
    const command = this.#facts.commandOf(call.input.command);
    if (command === null) return this.#refused(call, { refused: `${call.input.command} is no command of this task.` });
    if (!command.open) return this.#done(call, { ended: command.commandId }, true);
    this.#change.effects.push({
      effect: "stop",
      endpointId: command.endpointId,
      commandId: command.commandId,
      why: "the worker asked for it",
    });
    this.#change.task.line = `stopping ${command.what}`;
    return this.#done(call, { stopping: command.commandId }, false);
  }

  #readOutput(call: Extract<WorkerCall, { tool: "read_output" }>): Done | Asked {
    const command = this.#facts.commandOf(call.input.command);
    if (command === null) return this.#refused(call, { refused: `${call.input.command} is no command of this task.` });
    const limit = Math.min(call.input.limit ?? limits.inlineResultChars, limits.inlineResultChars);
    this.#ledger(call, "intent", command.commandId);
    return {
      read: { read: "output", endpointId: command.endpointId, commandId: command.commandId, offset: Math.floor(call.input.offset), limit },
    };
  }

  #recall(call: Extract<WorkerCall, { tool: "recall" }>): Done | Asked {
    const { id, page } = call.input;
    if (!mayRecall(this.#change.task, id, this.#facts))
      return this.#refused(call, {
        refused: "This task is not of the team alone, so it can read only what belongs to it: its own thread, commands and reports.",
      });
    this.#ledger(call, "intent", id);
    const audience = readerOf(this.#change.task, id, this.#facts);
    return { read: { read: "recall", id, page: page ?? 1, audience } };
  }

  /** [W20] Follows a thread from now on; noted before it is asked for, so that the task's end undoes it in any case. */
  #subscribe(call: Extract<WorkerCall, { tool: "subscribe" }>): Done | Asked {
    const { task } = this.#change;
    const { thread } = call.input;
    const refused = whyNotFollow(task, thread, mayRecall(task, thread, this.#facts));
    if (refused !== null) return this.#refused(call, { refused });
    if (!task.threads.includes(thread)) task.threads = [...task.threads, thread];
    this.#ledger(call, "intent", thread);
    return { read: followRead(task, thread, makeId("dec", task.start.taskId, this.#step, call.callId)) };
  }

  #report(call: ReportCall): Done {
    const { kind, text } = call.input;
    switch (kind) {
      case "progress":
        this.#change.task.line = oneLine(text);
        return this.#told(call, "running");
      case "answer":
        // Said beside the work: the card keeps the line of what runs.
        return this.#tooLong(call, text) ?? this.#told(call, "running");
      case "question":
      case "blocked":
        return this.#ask(call);
      case "done":
      case "failed":
        return this.#end(call, kind);
    }
  }

  #reportId = ({ callId }: ReportCall): string => childId("rep", this.#change.task.start.taskId, this.#step, callId);

  #told(call: ReportCall, status: "running" | "waiting"): Done {
    const { kind, text } = call.input;
    const id = this.#reportId(call);
    addReport(this.#change, { id, kind, text, status, nowMs: this.#facts.nowMs });
    return this.#done(call, { reported: id }, false);
  }

  #tooLong(call: ReportCall, text: string): Done | null {
    const long = tooLongToSay(this.#change.task, text, this.#step);
    return long === null ? null : this.#refused(call, { not_sent: long });
  }

  /** [W13] People are asked one thing at a time. */
  #ask(call: ReportCall): Done {
    const { task } = this.#change;
    const { text } = call.input;
    if (this.#asked) return this.#refused(call, { refused: "This answer asked already; wait for what is said to it." });
    const long = this.#tooLong(call, text);
    if (long !== null) return long;
    this.#asked = true;
    task.mode = { mode: "asking" };
    task.line = oneLine(text);
    return this.#told(call, "waiting");
  }

  #end(call: ReportCall, kind: "done" | "failed"): Done {
    const { task } = this.#change;
    const { nowMs, pending, open, backlog, allCommands } = this.#facts;
    const early = this.#whyNotEnd(kind);
    if (early !== null) return this.#refused(call, { not_sent: early });
    const checks = kind === "done" ? checksToAwait(task, nowMs) : null;
    if (checks !== null) {
      task.mode = { mode: "waiting", ...checks };
      return this.#done(call, { not_sent: `${checks.reason} have not ended: you are woken when they do; then report` }, false);
    }
    const text = endText(task, call.input.text, allCommands());
    const long = this.#tooLong(call, text);
    if (long !== null) return long;
    this.#ledger(call, "done", kind);
    const id = this.#reportId(call);
    const { confidence = 0.5, straightforward } = call.input;
    const sure = kind === "done" ? { confidence, ...(straightforward === true ? { straightforward } : {}) } : {};
    if (task.backlog.length > 0) {
      // [WI5] This work has reported; the task goes on with what was queued behind it.
      addReport(this.#change, { id, kind, text, ...sure, status: "running", nowMs });
      task.line = oneLine(text);
      takeNext(this.#change, backlog);
      return { output: { reported: id, next: "a queued message" }, again: false };
    }
    endTask(this.#change, { status: kind, text, key: call.callId, callId: call.callId, ...sure }, pending, open, nowMs);
    return { output: { reported: id }, again: false };
  }

  /** [W10] An end that does not know the latest is no end. */
  #whyNotEnd(kind: "done" | "failed"): string | null {
    const { task } = this.#change;
    if (this.#facts.pending.some(({ key, item }) => !isContext(item, task) && !task.quiet.includes(key))) return "new input arrived";
    if (this.#starts) return "this reply starts commands; report the end when their results are in";
    if (kind === "done" && openChildren(task).length > 0) return "children of yours are still at work; wait for them, or stop them";
    return kind === "failed" && retriesFirst(task) ? "try once more, another way" : null;
  }

  #done(call: WorkerCall, output: object, again: boolean): Done {
    this.#ledger(call, "done", JSON.stringify(output));
    return { output, again };
  }

  #refused(call: Named, output: object): Done {
    this.#ledger(call, "refused", Object.values(output).map(String).join(" "));
    return { output, again: true };
  }

  #ledger({ callId, tool }: Named, phase: "intent" | "done" | "refused", detail: string): void {
    this.#change.events.push({ kind: "task.tool", step: this.#step, callId, tool, phase, detail });
  }
}
