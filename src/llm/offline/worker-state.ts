// What a worker's transcript says so far: the jobs that people asked for, in order, and what was done for each. Folded anew at every step.
import { parseMessage } from "../../core/context.ts";
import { recordIn } from "../../core/json.ts";
import type { MarkedText, WorkerItem } from "../../protocol/context-items.ts";
import type { Chat, ChatCall, ChatMessage } from "./chat.ts";
import { type Intent, isWork, type WorkIntent } from "./intents.ts";
import { readIntents, unreadBesideWork } from "./read-intents.ts";

type Goal = Extract<WorkerItem, { item: "goal" }>;
export type Result = Extract<WorkerItem, { item: "result" }>;

/** One call and what became of it. */
export type Done = ChatCall & {
  output: string;
  /** The command that it started; its result comes later. */
  command?: string;
  refused?: string;
  result?: Result;
};

export type Job = {
  intent: WorkIntent;
  done: Done[];
  /** A later word replaced it; what it runs is stopped. */
  replaced: boolean;
  /** People have read its answer already. */
  told: boolean;
  /** They were asked whether it shall really be done. */
  asked: boolean;
};

export type WorkerState = {
  goal: Goal;
  jobs: Job[];
  /** Calls of all jobs: one listing serves them all. */
  all: Done[];
  stopAsked: boolean;
  /** Commands that a `stop_command` was sent for. */
  stopping: Set<string>;
  unable: string[];
  unclear: string[];
  /** Somebody asked how far it is. */
  statusAsked: boolean;
  /** Commands that people were asked about and did not want. */
  declined: string[];
  /** Words came after the last report. */
  news: boolean;
};

/** Which job the planner was at, given the state before its next answer. */
export type Current = (state: WorkerState) => Job | undefined;

const newJob = (intent: WorkIntent, done: Done[] = []): Job => ({ intent, done, replaced: false, told: false, asked: false });

/** Folds the transcript; null when there is no goal in it. `current` finds the job that a step's calls belong to. */
export function foldWorker(chat: Chat, current: Current): WorkerState | null {
  let state: WorkerState | null = null;
  const byCall = new Map<string, Done>();
  for (const message of chat.messages) {
    if (message.role === "user") state = takeItems(state, itemsOf(message.text), current);
    else if (state !== null) takeOwn(state, message, byCall, current);
  }
  return state;
}

const itemsOf = (text: string): WorkerItem[] => (parseMessage(text)?.items ?? []) as WorkerItem[];

function takeOwn(state: WorkerState, message: ChatMessage, byCall: Map<string, Done>, current: Current): void {
  if (message.role === "assistant") {
    const job = current(state);
    for (const call of message.calls) {
      const done: Done = { ...call, output: "" };
      byCall.set(call.callId, done);
      state.all.push(done);
      if (call.tool === "stop_command") state.stopping.add(String(call.input.command ?? ""));
      else if (call.tool !== "report" && call.tool !== "wait") job?.done.push(done);
    }
    return;
  }
  if (message.role !== "tool") return;
  const done = byCall.get(message.callId);
  if (done === undefined) return;
  done.output = message.output;
  const output = recordIn(message.output);
  if (typeof output?.started === "string") done.command = output.started;
  for (const key of ["refused", "error"]) if (typeof output?.[key] === "string" && done.refused === undefined) done.refused = output[key];
  if (done.tool === "report" && typeof output?.reported === "string" && done.input.kind !== "progress") {
    state.statusAsked = false;
    state.unclear = [];
    state.news = false;
    if (done.input.kind === "answer") return;
    const at = current(state);
    if (done.input.kind === "question" && at) at.asked = true;
    for (const job of state.jobs) job.told = job.told || isAnswered(state, job, current);
    state.unable = [];
    state.declined = [];
  }
}

/** Everything before the current job has its answer; with none current, all have. */
function isAnswered(state: WorkerState, job: Job, current: Current): boolean {
  const at = current(state);
  return at === undefined || state.jobs.indexOf(job) < state.jobs.indexOf(at);
}

/** As code says it to whoever was interrupted. */
const interruption = /^(?!From ).* interrupted you\. /;

function takeItems(state: WorkerState | null, items: readonly WorkerItem[], current: Current): WorkerState | null {
  const goal = items.find((item): item is Goal => item.item === "goal");
  const next = state ?? (goal ? begin(goal) : null);
  if (next === null) return null;
  const rows = items.filter((item): item is Extract<WorkerItem, { item: "row" }> => item.item === "row");
  const asked = goal ? askedAt(rows) : 0;
  const interrupted = items.some((item) => item.item === "notice" && interruption.test(item.text));
  for (const item of items) {
    if (item.item === "result") {
      const done = next.all.find((each) => each.command === item.command);
      if (done) done.result = item;
    }
    // Only the team's words change a task; others are read by nobody here.
    if (item.item === "row" && item.kind === "message" && item.seq > asked && (item.from.role === "owner" || item.from.role === "member"))
      takeWords(next, item, current, interrupted);
  }
  return next;
}

/**
 * A thread's history comes with the goal, without the row that asked: what stands before the gap is history, what follows it is news.
 * A thread whose first row is missing begins with the row that asked.
 */
function askedAt(rows: readonly { seq: number }[]): number {
  const seqs = new Set(rows.map((row) => row.seq));
  let seq = 1;
  while (seqs.has(seq)) seq += 1;
  return seq;
}

function begin(goal: Goal): WorkerState {
  const names = machineNames(goal);
  const asked = readIntents(goal.asked, names);
  const work = asked.filter(isWork);
  const found = work.length > 0 ? work : readIntents({ text: goal.goal }, names).filter(isWork);
  return {
    goal,
    jobs: found.map((intent) => newJob(intent)),
    all: [],
    stopAsked: false,
    stopping: new Set(),
    unable: asked.flatMap((intent) => (intent.kind === "unable" ? [intent.what] : [])),
    unclear: unreadBesideWork(goal.asked, names),
    statusAsked: false,
    declined: [],
    news: false,
  };
}

const machineNames = (goal: Goal): string[] => (goal.machine ? [goal.machine.name] : []);

/** A later word of a person: it adds work, changes what is under way, or ends it. */
function takeWords(state: WorkerState, said: MarkedText, current: Current, interrupted: boolean): void {
  const intents = readIntents(said, machineNames(state.goal));
  const work = intents.filter(isWork);
  const has = (kind: Intent["kind"]): boolean => intents.some((intent) => intent.kind === kind);
  const at = current(state);
  if (at?.asked && takeVerdict(state, at, said.text)) return;
  const narrowed = narrower(said.text, work, at ?? state.jobs.at(-1));
  state.news = true;
  if (narrowed) {
    replace(state, at, [narrowed]);
    return;
  }
  if (interrupted) {
    // What ran was ended for these words: it is no failure, and nobody waits for it.
    const redo = work.length === 0 && has("again") && at ? [at.intent] : work;
    replace(state, at, redo);
    if (redo.length > 0) return;
  } else if (work.length > 0) {
    const instead = /\binstead\b|\brather\b|^\s*(?:no|wait|actually)\b[,:]?/i.test(said.text) || has("stop");
    if (instead) replace(state, at, work);
    else state.jobs.push(...work.map((intent) => newJob(intent)));
    return;
  }
  if (has("stop")) {
    state.stopAsked = true;
    return;
  }
  const last = state.jobs.findLast((job) => !job.replaced);
  if (has("again") && last) {
    state.jobs.push(newJob(last.intent));
    return;
  }
  state.statusAsked = state.statusAsked || has("status");
  for (const intent of intents) {
    if (intent.kind === "unable") state.unable.push(intent.what);
    if (intent.kind === "unknown" && intent.text !== "") state.unclear.push(intent.text);
  }
}

/** A plain yes or no to the question whether to do it. */
function takeVerdict(state: WorkerState, job: Job, text: string): boolean {
  if (job.intent.kind !== "command") return false;
  const yes =
    /^\W*(?:yes|yep|yeah|y|ok(?:ay)?|sure|do it|go ahead|really|confirm(?:ed)?|ja|oui|s[ií])(?:[,\s]+(?:please|do it|run it|go ahead|really))*\W*$/i.test(
      text,
    );
  const no = /^\W*(?:no|nope|n|don'?t|do not|cancel|stop|never ?mind|nein|non)\b/i.test(text);
  if (yes) {
    const { unsure: _, ...intent } = job.intent;
    job.intent = intent;
  } else if (no) {
    job.replaced = true;
    state.declined.push(job.intent.script);
  }
  state.news = true;
  return yes || no;
}

/** `only the login tests`, `just login`: the same work on a part of it. */
function narrower(text: string, work: readonly WorkIntent[], job: Job | undefined): WorkIntent | null {
  if (!/\b(?:only|just)\b/i.test(text) || job?.intent.kind !== "project") return null;
  const [first] = work;
  if (work.length > 1) return null;
  if (first?.kind === "project")
    return first.purpose === job.intent.purpose && (first.only || first.where || first.variant) ? { ...job.intent, ...first } : null;
  if (first) return null;
  const subject = /\b(?:only|just)\s+(?:the\s+)?["“`]?([^"”`.!?]+?)["”`]?(?:\s+ones?)?(?:\s+please)?[.!?]*$/i.exec(text.trim())?.[1];
  return subject && job.intent.purpose === "test" ? { ...job.intent, only: subject } : null;
}

function replace(state: WorkerState, at: Job | undefined, work: readonly WorkIntent[]): void {
  const index = at ? state.jobs.indexOf(at) : state.jobs.length;
  if (at) at.replaced = true;
  state.jobs.splice(index + 1, 0, ...work.map((intent) => newJob(intent)));
}
