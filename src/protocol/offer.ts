// What waits for a release before it leaves for the outside world: proposed by a worker, released or declined by the team's
// setting, by the router, or by a person. Until then it is no word of ours and no part of the conversation.
import * as z from "zod/mini";
import { type TaskId, threadId } from "./ids.ts";
import type { Authority } from "./principal.ts";
import type { OutboundIntent, OutboundState } from "./thread.ts";

export const offerKinds = ["comment", "label", "pull_request"] as const;
export type OfferKind = (typeof offerKinds)[number];

export type Offer = {
  /** What goes out once it is released; its id is the offer's. */
  outbound: OutboundIntent;
  /** For people, in one line: what would happen, and where. */
  title: string;
  from: {
    taskId: TaskId;
    authority: Authority;
    /** The task had read public text when it proposed this. */
    tainted: boolean;
    /** Where the task was asked for. */
    source: string;
    place: string;
    /** Who may hear it before it is said: whoever reads what the task says. */
    audience?: string;
  };
  /** Nobody asked for it: no setting and no router releases it, only a person. */
  personOnly?: true;
  /** What it would change, for whoever releases it; it is not sent. */
  changes?: string;
  /** Of a task that nobody asked for: a release says nothing, but lets that task go on and make it. */
  draft?: true;
  /** A person released the same words before, as that draft. */
  releasedAs?: { offerId: string; by: string };
};

/** A pull request that is kept with its task: nothing of it has left, not even its branch. */
export const pullDraft = z.object({
  threadId,
  text: z.string(),
  deed: z.object({ do: z.literal("pull_request"), head: z.string(), base: z.string(), title: z.string(), draft: z.boolean() }),
  /** The commit that it is about: what is released, and all that is pushed. */
  sha: z.string(),
  /** All that this commit changes, as its machine prints it. */
  changes: z.string(),
});
export type PullDraft = z.infer<typeof pullDraft>;

export type OfferState = "held" | "released" | "declined" | "expired";
/** Who released or declined it. `policy`: the team's setting. */
export type OfferJudge = "policy" | "router" | "person" | "time";

export type OfferView = {
  offer: Offer;
  state: OfferState;
  atMs: number;
  untilMs: number;
  /** Who decided, by which way, once somebody did. */
  decided?: { by: string; via: OfferJudge; reason: string };
  /** How far it came, once it was released; `pending` also while an unknown outcome is looked up. */
  sent?: { state: OutboundState; providerId: string | null; detail: string | null };
};

/** What the team lets leave by itself; everything else waits for the router or a person. Saved versions win over the shipped one. */
export const releasePolicy = z.object({
  version: z.int().check(z.minimum(0)),
  byItself: z.array(z.enum(offerKinds)).check(z.maxLength(offerKinds.length)),
});
export type ReleasePolicy = z.infer<typeof releasePolicy>;
