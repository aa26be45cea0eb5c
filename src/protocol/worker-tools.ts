// A worker session's tools. Those on a machine start and return at once; their result is a later inbox row.
import * as z from "zod/mini";
import { reportKinds } from "./task.ts";

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
      "Tell the router. `done` and `failed` end the task; `question` and `blocked` wait for an answer; `progress` disturbs nobody. `text` is shown as it is.",
    input: z.object({
      kind: z.enum(reportKinds),
      text: z.string().check(z.minLength(1), z.maxLength(20_000)),
      confidence: z.optional(z.number().check(z.minimum(0), z.maximum(1))),
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
    description: "Sleep until something arrives, or the time is over.",
    input: z.object({ seconds: z.optional(count), reason: z.string().check(z.maxLength(300)) }),
  },
} as const;

export type WorkerTool = keyof typeof workerTools;
export type WorkerCall = { [T in WorkerTool]: { callId: string; tool: T; input: z.infer<(typeof workerTools)[T]["input"]> } }[WorkerTool];

/** Tools that become a command on a machine. */
export const machineTools = [
  "run_command",
  "read_file",
  "write_file",
  "edit_file",
  "list_files",
  "search_files",
] as const satisfies readonly WorkerTool[];
