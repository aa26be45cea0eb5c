// The router's tools: decisions and reads. There is no tool here that executes anything, and there must not be one.
import * as z from "zod/mini";
import { limits } from "./limits.ts";
import { policyChange } from "./policy.ts";
import { scheduleChanges, scheduleName, scheduleText, scheduleTime } from "./schedule.ts";
import { outcomes } from "./trigger.ts";

const settles = z.array(z.string()).check(z.minLength(1), z.maxLength(100));
const reason = z.string().check(z.minLength(1), z.maxLength(500));
const text = z.string().check(z.minLength(1), z.maxLength(20_000));
/** More pages has nothing. */
const page = z.optional(z.number().check(z.minimum(1), z.maximum(1_000_000)));
/** Facts (fct_) that the call rests on: measured, and shown beside the decision. */
const uses = z.optional(z.array(z.string().check(z.maxLength(80))).check(z.maxLength(20)));

/** `preference`: how somebody wants it; `background`: what is so; `rule`: what holds for the domain or the team. */
export const factKinds = ["preference", "background", "rule"] as const;
export type FactKind = (typeof factKinds)[number];
/** `here`: whoever reads the conversation where it was said; `team`: everybody of the team, wherever they ask. */
export const factReaches = ["here", "team"] as const;
export type FactReach = (typeof factReaches)[number];
/** Given where a policy of the team made the difference: its id, and in a few words how it applies. */
const byPolicy = { policy: z.optional(z.string().check(z.maxLength(60))), policyWhy: z.optional(z.string().check(z.maxLength(300))) };

/** What can be found by words. */
export const foundKinds = ["fact", "task", "decision", "thread"] as const;
export type FoundKind = (typeof foundKinds)[number];

export const routerTools = {
  reply: {
    description: "Answer the person in the thread of the settled trigger. On chat at most 100 words.",
    input: z.object({ settles, text, uses, ...byPolicy }),
  },
  relay: {
    description: "Send a report's text, unchanged, to its thread.",
    input: z.object({ settles, report: z.string(), ...byPolicy }),
  },
  dispatch: {
    description:
      "Start a worker session for work. Say in `goal` what is to be done and when it is done; the trigger's text is quoted to the worker by the system. `acknowledge` is said at once. `workspace`: what the machine has to have, where the work belongs to one. `profile`: one of the names in `profiles`; general when left out. `speculative`: nobody asked for it, and the policy that you name allows it. `adopt`: the speculative task that does already what is asked for now.",
    input: z.object({
      settles,
      title: z.string().check(z.minLength(1), z.maxLength(120)),
      goal: z.string().check(z.minLength(1), z.maxLength(8000)),
      machine: z.optional(z.string()),
      workspace: z.optional(z.string().check(z.maxLength(100))),
      profile: z.optional(z.string().check(z.maxLength(40))),
      deadlineMinutes: z.optional(z.number().check(z.positive(), z.maximum(limits.maxDeadlineMinutes))),
      acknowledge: z.optional(z.string().check(z.maxLength(1000))),
      speculative: z.optional(z.boolean()),
      adopt: z.optional(z.string().check(z.maxLength(80))),
      uses,
      ...byPolicy,
    }),
  },
  deliver: {
    description: "Hand facts from elsewhere to a running task.",
    input: z.object({ settles, task: z.string(), facts: text, uses, ...byPolicy }),
  },
  record: { description: "Keep it, do nothing.", input: z.object({ settles, reason, uses, ...byPolicy }) },
  ignore: { description: "Not worth keeping.", input: z.object({ settles, reason, uses, ...byPolicy }) },
  cancel: { description: "Stop a task.", input: z.object({ settles, task: z.string(), reason, uses, ...byPolicy }) },
  resolve: {
    description:
      "Say what becomes of a task that has ended: accept or reject its outcome, retry it once with a rephrased instruction, reroute it to another machine or profile, or reopen it (a reply in a finished topic). It keeps all that it knows.",
    input: z.object({
      settles,
      task: z.string(),
      how: z.enum(["accept", "reject", "retry", "reroute", "reopen"]),
      note: z.optional(z.string().check(z.maxLength(4000))),
      machine: z.optional(z.string()),
      profile: z.optional(z.string().check(z.maxLength(40))),
      uses,
      ...byPolicy,
    }),
  },
  release: {
    description:
      "A report of kind `proposal` waits: let it leave (`release`), or not (`decline`, the task hears why). A person of the team can always decide instead: then record the report.",
    input: z.object({
      settles,
      proposal: z.string().check(z.maxLength(80)),
      verdict: z.enum(["release", "decline"]),
      reason,
      uses,
      ...byPolicy,
    }),
  },
  ask_human: {
    description: "You cannot decide: put the question to the team's operators.",
    input: z.object({ settles, question: text, uses, ...byPolicy }),
  },
  remember: {
    description:
      "Keep a fact for good: its `kind`, and its `text` in one sentence that stands alone. `for`: `team` when everybody is to know it, else it stays in this conversation (a rule is the team's by itself). `replaces`: the fact that it corrects. Only `replaces`, without `text`: that fact is forgotten, and the system says so to whoever asked. May stand beside another call for the same trigger.",
    input: z.object({
      settles,
      kind: z.optional(z.enum(factKinds)),
      for: z.optional(z.enum(factReaches)),
      text: z.optional(z.string().check(z.minLength(1), z.maxLength(500))),
      replaces: z.optional(z.string().check(z.maxLength(80))),
      ...byPolicy,
    }),
  },
  set_policy: {
    description:
      "An owner wants things treated differently from now on. Either a gate rule: `outcome` for what fits the conditions (mute: nobody hears it, tasks that follow the thread neither; “stop reacting to dependabot” is a mute); `thread` is a thr_ id, or #12 with a `place`; on GitHub a program's name ends in [bot]. Or, where it takes words, a policy: `change` (its id, new text, on or off; `speculation`: the places where it lets work start that nobody asked for, and its budget in model calls, or null to end that). Without `confirm` the system shows it to the owner with what it would have done; with `confirm` (the rul_ id that the owner repeated) it is saved, with `undo` it is taken back. `list` shows all policies and the chat's rules.",
    input: z.object({
      settles,
      outcome: z.optional(z.enum(outcomes)),
      source: z.optional(z.string().check(z.maxLength(40))),
      place: z.optional(z.string().check(z.maxLength(200))),
      thread: z.optional(z.string().check(z.maxLength(200))),
      kind: z.optional(z.string().check(z.maxLength(80))),
      principal: z.optional(z.string().check(z.maxLength(200))),
      addressed: z.optional(z.boolean()),
      why: z.optional(z.string().check(z.maxLength(300))),
      change: z.optional(policyChange),
      confirm: z.optional(z.string().check(z.maxLength(80))),
      undo: z.optional(z.string().check(z.maxLength(80))),
      list: z.optional(z.boolean()),
      ...byPolicy,
    }),
  },
  schedule: {
    description:
      "Set a named schedule of this thread (the same name again takes its place), or pause, resume or cancel one. When due, `text` comes back here as a request, on behalf of who asked. Exactly one of at (2026-12-01 09:00, in the zone), afterMinutes, everyMinutes, cron (five fields). May stand beside another call for the same trigger.",
    input: z.object({
      settles,
      name: scheduleName,
      text: z.optional(scheduleText),
      change: z.optional(z.enum(scheduleChanges)),
      ...scheduleTime.shape,
      uses,
      ...byPolicy,
    }),
  },
  recall: {
    description:
      "Read an item by its name, or an object by its id (thr_, trg_, tsk_, rep_, cmd_, art_, out_, nts_, dec_, fct_, sch_, rul_, ep_). Settles nothing.",
    input: z.object({ id: z.string(), page }),
  },
  find: {
    description:
      "Find facts, tasks, decisions and threads by words; answers with ids. With `kind` only those, and without words all of that kind. Settles nothing.",
    input: z.object({ query: z.optional(z.string().check(z.maxLength(400))), kind: z.optional(z.enum(foundKinds)), page }),
  },
} as const;

export type RouterTool = keyof typeof routerTools;
export const routerReads: readonly RouterTool[] = ["recall", "find"];

export type RouterCall = { [T in RouterTool]: { callId: string; tool: T; input: z.infer<(typeof routerTools)[T]["input"]> } }[RouterTool];
