// The router's tools: decisions and reads. There is no tool here that executes anything, and there must not be one.
import * as z from "zod/mini";

const settles = z.array(z.string()).check(z.minLength(1), z.maxLength(100));
const reason = z.string().check(z.minLength(1), z.maxLength(500));
const text = z.string().check(z.minLength(1), z.maxLength(20_000));
/** Given where a policy of the team made the difference: its id, and in a few words how it applies. */
const byPolicy = { policy: z.optional(z.string().check(z.maxLength(60))), policyWhy: z.optional(z.string().check(z.maxLength(300))) };

/** A year: what lies beyond is a slip of the model. */
const maxDeadlineMinutes = 366 * 24 * 60;

export const routerTools = {
  reply: {
    description: "Answer the person in the thread of the settled trigger. On chat at most 100 words.",
    input: z.object({ settles, text, ...byPolicy }),
  },
  relay: {
    description: "Send a report's text, unchanged, to its thread.",
    input: z.object({ settles, report: z.string(), ...byPolicy }),
  },
  dispatch: {
    description:
      "Start a worker session for work. Say in `goal` what is to be done and when it is done; the trigger's text is quoted to the worker by the system. `acknowledge` is said at once. `profile`: coder (changes code), researcher (reads and explains, changes nothing), triager (sorts new reports), or one of the team's own; general when left out.",
    input: z.object({
      settles,
      title: z.string().check(z.minLength(1), z.maxLength(120)),
      goal: z.string().check(z.minLength(1), z.maxLength(8000)),
      machine: z.optional(z.string()),
      profile: z.optional(z.string().check(z.maxLength(40))),
      deadlineMinutes: z.optional(z.number().check(z.positive(), z.maximum(maxDeadlineMinutes))),
      acknowledge: z.optional(z.string().check(z.maxLength(1000))),
      ...byPolicy,
    }),
  },
  deliver: {
    description: "Hand facts from elsewhere to a running task.",
    input: z.object({ settles, task: z.string(), facts: text, ...byPolicy }),
  },
  record: { description: "Keep it, do nothing.", input: z.object({ settles, reason, ...byPolicy }) },
  ignore: { description: "Not worth keeping.", input: z.object({ settles, reason, ...byPolicy }) },
  cancel: { description: "Stop a task.", input: z.object({ settles, task: z.string(), reason, ...byPolicy }) },
  ask_human: {
    description: "You cannot decide: put the question to the team's operators.",
    input: z.object({ settles, question: text, ...byPolicy }),
  },
  recall: {
    description: "Read an object by its id (thr_, tsk_, rep_, trg_, cmd_, art_). Settles nothing.",
    input: z.object({ id: z.string(), page: z.optional(z.number().check(z.minimum(1))) }),
  },
} as const;

export type RouterTool = keyof typeof routerTools;
export const routerReads: readonly RouterTool[] = ["recall"];

export type RouterCall = { [T in RouterTool]: { callId: string; tool: T; input: z.infer<(typeof routerTools)[T]["input"]> } }[RouterTool];
