// A worker session's tools. Those on a machine start and return at once; their result is a later inbox row.
import * as z from "zod/mini";
import { limits } from "./limits.ts";
import { offerKinds } from "./offer.ts";
import { noteKinds, reportKinds } from "./task.ts";

const workspace = z.optional(z.string().check(z.maxLength(100)));
const path = z.string().check(z.minLength(1), z.maxLength(4096));
const count = z.number().check(z.minimum(1));

export const workerTools = {
  run_command: {
    description: "Start a shell script on the machine; the result comes as a later `result` item.",
    input: z.object({
      script: z.string().check(z.minLength(1), z.maxLength(32_000)),
      workspace,
      cwd: z.optional(path),
      timeoutSeconds: z.optional(count),
    }),
  },
  stop_command: { description: "Stop a running command and all that it started.", input: z.object({ command: z.string() }) },
  read_output: {
    description: "Read more of a command's output, by byte offset.",
    input: z.object({ command: z.string(), offset: z.number().check(z.minimum(0)), limit: z.optional(count) }),
  },
  push: {
    description:
      "Push the commit that the repository of `cwd` stands on to your own branch (switchyard/tsk_…), with the machine's own git. Never by force: add commits. The result comes as a later `result` item.",
    input: z.object({ workspace, cwd: z.optional(path) }),
  },
  read_file: {
    description: "Read a file; offset and limit are lines.",
    input: z.object({ path, workspace, offset: z.optional(z.number()), limit: z.optional(count) }),
  },
  write_file: { description: "Write a whole file.", input: z.object({ path, workspace, content: z.string() }) },
  edit_file: {
    description: "Replace exact text in a file; it must occur once, unless `all`.",
    input: z.object({ path, workspace, old: z.string().check(z.minLength(1)), new: z.string(), all: z.optional(z.boolean()) }),
  },
  list_files: {
    description: "List files below a folder.",
    input: z.object({ path: z.optional(path), workspace, depth: z.optional(count) }),
  },
  search_files: {
    description: "Search files for a regular expression.",
    input: z.object({
      query: z.string().check(z.minLength(1), z.maxLength(1000)),
      path: z.optional(path),
      glob: z.optional(z.string()),
      workspace,
    }),
  },
  report: {
    description:
      "Tell the router. `done` and `failed` end the task; `question` and `blocked` wait for an answer; `answer` says one line to people while the work goes on; `progress` disturbs nobody. `text` is shown as it is.",
    input: z.object({
      kind: z.enum(reportKinds),
      text: z.string().check(z.minLength(1), z.maxLength(20_000)),
      confidence: z.optional(z.number().check(z.minimum(0), z.maximum(1))),
      straightforward: z.optional(z.boolean()),
    }),
  },
  propose: {
    description:
      "Propose something for the outside world. It leaves when the team's setting, the router or a person releases it; a notice says what became of it. `pull_request`: from your branch, after `push`: title, summary (what and why, one sentence), changes (one line each); what you ran stands in it by itself. `comment`: text, in a `thread` (thr_) of yours or `reply_to` one of its events (trg_). `label`: labels, likewise.",
    input: z.object({
      what: z.enum(offerKinds),
      thread: z.optional(z.string().check(z.maxLength(80))),
      reply_to: z.optional(z.string().check(z.maxLength(80))),
      text: z.optional(z.string().check(z.maxLength(limits.maxOfferChars))),
      labels: z.optional(z.array(z.string().check(z.maxLength(100))).check(z.maxLength(10))),
      title: z.optional(z.string().check(z.maxLength(300))),
      summary: z.optional(z.string().check(z.maxLength(2000))),
      changes: z.optional(z.array(z.string().check(z.maxLength(1000))).check(z.maxLength(30))),
      links: z.optional(z.array(z.string().check(z.maxLength(500))).check(z.maxLength(10))),
      base: z.optional(z.string().check(z.maxLength(200))),
      draft: z.optional(z.boolean()),
    }),
  },
  subscribe: {
    description: "Follow another thread (thr_): what comes in it from now on reaches you too. Read what was before by recall.",
    input: z.object({ thread: z.string().check(z.maxLength(80)), reason: z.string().check(z.maxLength(300)) }),
  },
  unsubscribe: {
    description: "No longer follow a thread that you subscribed to.",
    input: z.object({ thread: z.string().check(z.maxLength(80)), reason: z.string().check(z.maxLength(300)) }),
  },
  hand_back: {
    description:
      "An event (trg_) that reached you is not for this task: give it back to the router, which decides when every task that got it has.",
    input: z.object({ trigger: z.string().check(z.maxLength(80)), reason: z.string().check(z.minLength(1), z.maxLength(300)) }),
  },
  recall: { description: "Read an object by its id.", input: z.object({ id: z.string(), page: z.optional(count) }) },
  wait: {
    description:
      "Sleep until something arrives, or the time is over: `seconds` from now, or `until` an ISO time; up to 30 days. Without either, until something arrives.",
    input: z.object({
      seconds: z.optional(count),
      until: z.optional(z.string().check(z.maxLength(40))),
      reason: z.string().check(z.maxLength(300)),
    }),
  },
  note: {
    description:
      "Keep what must outlast this context: a confirmed `fact`, an open `question`, or an `approach` that you tried, with its outcome. Notes are never changed, only added. Other workers of the thread can read them by recall; without `thread`, the one that this task answers in.",
    input: z.object({
      kind: z.enum(noteKinds),
      text: z.string().check(z.minLength(1), z.maxLength(1000)),
      outcome: z.optional(z.string().check(z.maxLength(500))),
      thread: z.optional(z.string().check(z.maxLength(80))),
    }),
  },
  spawn: {
    description:
      "Start a child for a part of the work that stands alone. It works at once, beside you, with `share` model calls out of your own allowance; its reports come to you as `child` items.",
    input: z.object({
      title: z.string().check(z.minLength(1), z.maxLength(120)),
      goal: z.string().check(z.minLength(1), z.maxLength(8000)),
      share: z.int().check(z.minimum(1)),
      profile: z.optional(z.string().check(z.maxLength(40))),
      deadlineMinutes: z.optional(z.number().check(z.positive(), z.maximum(limits.maxDeadlineMinutes))),
    }),
  },
  tell_child: {
    description: "Say something to a child of yours: an answer, a correction.",
    input: z.object({ task: z.string(), text: z.string().check(z.minLength(1), z.maxLength(20_000)) }),
  },
  stop_child: { description: "Stop a child and all that it started.", input: z.object({ task: z.string() }) },
  hand_off: {
    description:
      "Hand this task to another profile, when what is left needs other tools or another view. `summary` says what is known, what was tried with which outcome, and what is open.",
    input: z.object({
      profile: z.string().check(z.minLength(1), z.maxLength(40)),
      reason: z.string().check(z.minLength(1), z.maxLength(500)),
      summary: z.string().check(z.minLength(1), z.maxLength(8000)),
    }),
  },
} as const;

export type WorkerTool = keyof typeof workerTools;
export type WorkerCall = { [T in WorkerTool]: { callId: string; tool: T; input: z.infer<(typeof workerTools)[T]["input"]> } }[WorkerTool];

/** Tools that become a command on a machine. */
export const machineTools = [
  "run_command",
  "push",
  "read_file",
  "write_file",
  "edit_file",
  "list_files",
  "search_files",
] as const satisfies readonly WorkerTool[];
export type MachineTool = (typeof machineTools)[number];
export type MachineCall = Extract<WorkerCall, { tool: MachineTool }>;

export const isMachineTool = (tool: string): tool is MachineTool => (machineTools as readonly string[]).includes(tool);
