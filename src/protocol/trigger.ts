// One event of the outside world, normalised by a channel.
import * as z from "zod/mini";
import { artifactId, threadId, triggerId } from "./ids.ts";
import { principal } from "./principal.ts";

const shortText = z.string().check(z.maxLength(500));

export const neighbour = z.object({ id: shortText, author: shortText, text: shortText });

/** How a person's message meets a worker that is busy. `steer`: seen at the next step; `queue`: kept until the current work reports; `interrupt`: what runs is stopped first. */
export const inputModes = ["steer", "queue", "interrupt"] as const;
export type InputMode = (typeof inputModes)[number];

/** What a person does to a message of theirs that no step took yet. Of a queued one, `now`: it is handed over at once; `move`: it is done earlier or later. */
export const amendments = ["edit", "withdraw", "now", "move"] as const;
export type Amendment = (typeof amendments)[number];

/** Of a `move`: the queued message that it comes before, last when null; and the revision of the list that the person saw. */
export const moveTo = { before: z.optional(z.nullable(triggerId)), revision: z.optional(z.number()) };
export type MoveTo = { before?: string | null | undefined; revision?: number | undefined };

export const trigger = z.object({
  id: triggerId,
  /** Channel that brought it: `web`, `github`. */
  source: z.string().check(z.minLength(1), z.maxLength(40)),
  /** What makes this event the same when it is delivered again; with source and thread it makes the trigger's id. */
  deliveryId: z.string().check(z.minLength(1), z.maxLength(200)),
  /** The source's own name for this transport of it, for people who look it up there; it decides nothing. */
  label: z.optional(shortText),
  threadId,
  /** Where it happened: `widget`, `acme/app`. */
  place: shortText,
  /** The thread's key within source and place: `root:prs_…`, `topic:…`, `issue:12`, `branch:main`. */
  threadKey: shortText,
  threadTitle: shortText,
  threadUrl: z.optional(z.string().check(z.maxLength(2000))),
  /** The source's own name of the event: `message`, `issues.opened`, `check_run.completed`. */
  kind: z.string().check(z.minLength(1), z.maxLength(80)),
  principal,
  /** Said to the agent: by name, by mention, or in a place where everything is. */
  addressed: z.boolean(),
  text: z.string(),
  replyTo: z.optional(neighbour),
  neighbours: z.optional(z.array(neighbour)),
  /** Id of the comment, review, or message at the provider; an edit carries its original's. */
  externalId: z.optional(shortText),
  /** Small facts of the channel as text: `{ sha, conclusion, branch, url }`. */
  facts: z.optional(z.record(z.string(), z.string())),
  atMs: z.number(),
  rawArtifact: z.optional(artifactId),
  truncated: z.optional(z.boolean()),
  hops: z.number(),
  /** `steer` when absent. */
  mode: z.optional(z.enum(inputModes)),
  /** This is no message of its own: it changes an earlier one of the same thread. */
  amends: z.optional(z.object({ triggerId, change: z.enum(amendments), ...moveTo })),
});
export type Trigger = z.infer<typeof trigger>;

/** `mute`: nobody hears it, tasks that follow the thread neither; `ignore`: nothing happened, unless a task follows; `record`: kept, nobody is asked; `candidate`: the router judges; `request`: explicitly asked. */
export const outcomes = ["mute", "ignore", "record", "candidate", "request"] as const;
export type Outcome = (typeof outcomes)[number];

/** What the gate said, and by which rule. */
export type Verdict = { outcome: Outcome; rule: string; reason: string };

/** Rule of the verdict of a row that a worker handed back: the router judges it, whatever the gate said. */
export const handedBackRule = "handed_back";

/** Kind of the trigger of a schedule that is due. */
export const timerKind = "timer.due";
