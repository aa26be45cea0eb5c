// A task, its status, and what a worker session says about it.
import * as z from "zod/mini";
import { endpointId, reportId, taskId, threadId, triggerId } from "./ids.ts";
import { pullDraft } from "./offer.ts";
import { authority, principal } from "./principal.ts";

/** `paused`: out of budget, with Continue or Stop. `waiting`: for a person, a machine or an event; `waitingFor` says which. */
export const taskStatuses = ["queued", "running", "waiting", "paused", "done", "failed", "cancelling", "cancelled"] as const;
export const taskStatus = z.enum(taskStatuses);
export type TaskStatus = z.infer<typeof taskStatus>;

export const finalStatuses: readonly TaskStatus[] = ["done", "failed", "cancelled"];

/** What starts a worker session. Made by the router's code from a committed decision, never by a model alone. */
export const taskStart = z.object({
  taskId,
  decisionId: z.string(),
  title: z.string().check(z.maxLength(200)),
  /** The router's words. */
  goal: z.string().check(z.maxLength(8000)),
  /** The trigger that asked, quoted verbatim by code. */
  quote: z.object({ triggerId, from: principal, text: z.string() }),
  authority,
  /** True once public text is in what the worker was given; monotone. */
  tainted: z.boolean(),
  profile: z.string().check(z.maxLength(40)),
  /** The machine chosen by the router; null when none is enrolled. */
  endpoint: z.nullable(z.object({ endpointId, name: z.string(), workspaces: z.array(z.string()) })),
  /** The thread that gets the answer, and whose rows pass through. */
  threadId,
  source: z.string(),
  place: z.string(),
  maxModelCalls: z.number(),
  deadlineMs: z.optional(z.number()),
  /** Nobody asked for it: it speaks to nobody and follows no thread. */
  speculative: z.optional(z.boolean()),
  /** For a child: who spawned it. Its reports go there. */
  parent: z.optional(z.object({ taskId, depth: z.number() })),
  atMs: z.number(),
});
export type TaskStart = z.infer<typeof taskStart>;

export const reportKinds = ["progress", "answer", "question", "blocked", "done", "failed"] as const;

export const noteKinds = ["fact", "question", "approach"] as const;
/** What a worker keeps for good, in its own name. */
export type Note = { step: number; kind: (typeof noteKinds)[number]; text: string; outcome?: string };

/** What a task has spent of models, its children with it; tokens as far as the provider says. */
export const spend = z.object({ calls: z.number(), inputTokens: z.number(), outputTokens: z.number() });
export type Spend = z.infer<typeof spend>;

/** A note as its thread keeps it for the other workers: whose it is, its number among theirs, and who may hear it. */
export type ThreadNote = Note & { taskId: string; n: number; audience: string; tainted: boolean };

/** What a worker session tells the router. `text` is ready to show. */
export const report = z.object({
  id: reportId,
  taskId,
  kind: z.enum([...reportKinds, "cancelled", "paused", "waiting", "notice", "overdue", "proposal"]),
  title: z.string(),
  text: z.string().check(z.maxLength(20_000)),
  /** 0 to 1; a `done` of at least 0.7 is relayed by code when the task is its thread's sole subscriber. */
  confidence: z.optional(z.number().check(z.minimum(0), z.maximum(1))),
  /** Of a `proposal`: what waits for a release. */
  offer: z.optional(z.string()),
  /** A result that needs no judgement before it is used; only of `done`. */
  straightforward: z.optional(z.boolean()),
  threadId,
  authority,
  tainted: z.boolean(),
  status: taskStatus,
  /** Model calls of its allowance that are not spent; a child's are its parent's again when it ends. */
  callsLeft: z.optional(z.number()),
  /** All until then. */
  spent: z.optional(spend),
  /** Of the end of a task that nobody asked for: the pull request that it would make. */
  draft: z.optional(pullDraft),
  atMs: z.number(),
});
export type Report = z.infer<typeof report>;

/** What people see of a task: the card of the widget, the row of the console. `revision` only grows; the highest wins. */
export const taskCard = z.object({
  taskId,
  threadId,
  title: z.string(),
  status: taskStatus,
  /** `you`, `release` (a person's word on what it proposed), `studio-laptop`, `event`: only with status `waiting`. */
  waitingFor: z.optional(z.string()),
  machine: z.optional(z.string()),
  /** Last step in one line: `npm test · 41 lines`. */
  line: z.string().check(z.maxLength(300)),
  /** Nobody asked for it. */
  speculative: z.optional(z.boolean()),
  modelCalls: z.number(),
  startedMs: z.number(),
  updatedMs: z.number(),
  endedMs: z.optional(z.number()),
  accepted: z.optional(z.boolean()),
  /** Queued messages, the next one first: the source's own id of each. */
  backlog: z.optional(z.array(z.string())),
  /** Grows with each change of which they are and of their order; 0 when absent. */
  backlogRevision: z.optional(z.number()),
  /** What it proposed and what waits for a release. */
  offers: z.optional(z.array(z.object({ id: z.string(), title: z.string(), text: z.string() }))),
  revision: z.number(),
});
export type TaskCard = z.infer<typeof taskCard>;

/** What became of a change of a message: `late`: a step has taken it, or it is somebody else's; `stale`: the list is not what the person saw. */
export type Amended = "done" | "late" | "stale";

/** A message of the backlog, as operators see it. */
export type QueuedMessage = { itemId: string; from: string; text: string; atMs: number };

/** A child of a task and what of the allowance it was given. */
export type ChildLine = { taskId: string; title: string; profile: string; share: number; open: boolean };

/** All that a worker session tells about itself. */
export type TaskDescription = {
  start: TaskStart;
  card: TaskCard;
  tainted: boolean;
  reports: Report[];
  backlog: QueuedMessage[];
  children: ChildLine[];
  /** The profile that it works under now. */
  profile: string;
  /** Model calls that it may make in all, its children's shares not counted. */
  allowance: number;
  /** Until now, with its children that have ended. */
  spent: Spend;
  notes: Note[];
};
