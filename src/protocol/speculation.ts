// Speculation: work that nobody asked for, on a budget of its own. What a policy allows, and the ledger of what became of it.
import * as z from "zod/mini";
import type { Spend } from "./task.ts";

/** A place that a policy names: work may start from what its people do there. `*`: every place of the source. */
const speculationPlace = z.object({
  source: z.string().check(z.trim(), z.regex(/^[a-z][a-z0-9-]{0,39}$/, "is the name of a source, such as github")),
  place: z.string().check(z.trim(), z.minLength(1), z.maxLength(200)),
});

/** What a policy allows. Without it a policy allows no speculation at all. */
export const speculationSetting = z.object({
  places: z.array(speculationPlace).check(z.minLength(1), z.maxLength(20)),
  /** Model calls of one task, and of all that start within 24 hours. */
  callsPerTask: z.number().check(z.int(), z.minimum(1), z.maximum(60)),
  callsPerDay: z.number().check(z.int(), z.minimum(1), z.maximum(2_000)),
  /** When more calls than this were spent for nothing within seven days, the policy pauses itself. */
  maxWastedCalls: z.number().check(z.int(), z.minimum(1), z.maximum(20_000)),
});
export type SpeculationSetting = z.infer<typeof speculationSetting>;

/** The words by which an owner saved a policy in a conversation: what it says by itself is said there. */
export type SavedIn = { triggerId: string; source: string };

/** `accepted` to `expired` are what people made of an offer; `moot`: nobody needs it any more. */
export type SpeculationOutcome =
  | "running"
  | "offered"
  | "accepted"
  | "edited"
  | "rejected"
  | "expired"
  | "discarded"
  | "moot"
  | "cancelled"
  | "adopted";

/** One speculative task in the ledger. Its reservation counts until its own final report settles it. */
export type Speculation = {
  taskId: string;
  title: string;
  policy: { id: string; version: number; maxWastedCalls: number; savedIn?: SavedIn };
  decisionId: string;
  /** Where it came from: nobody there hears of it, unless its result is offered and released. */
  threadId: string;
  triggerId: string;
  seq: number;
  /** The commit that it was about, if any. */
  sha: string | null;
  source: string;
  place: string;
  reservedCalls: number;
  /** Null until settled. */
  spent: Spend | null;
  /** Null while unsettled, or where no price is set. */
  dollars: number | null;
  outcome: SpeculationOutcome;
  why: string;
  /** The held words that are offered. */
  offerId: string | null;
  offerText: string | null;
  /** The offer is the draft of a pull request: what is released is not said, but made by the task. */
  draft?: true;
  startedMs: number;
  /** The end of the work, and of the matter. */
  settledMs: number | null;
  closedMs: number | null;
};

/** The figures of one policy over seven days. */
export type SpeculationFigures = {
  policyId: string;
  tasks: number;
  outcomes: Partial<Record<SpeculationOutcome, number>>;
  /** Of the offers that a person answered, or that expired. Null without any. */
  acceptedShare: number | null;
  calls: number;
  wastedCalls: number;
  workMs: number;
  /** Null where no price of the model is set. */
  dollars: number | null;
  wastedDollars: number | null;
  /** Calls that are reserved or spent of the last 24 hours. */
  callsToday: number;
  /** Why it paused itself, until it is saved again. */
  paused: string | null;
};

export type SpeculationAnswer = {
  /** Why no speculation happens at all, for people; null when a policy may cause it. */
  off: string | null;
  figures: SpeculationFigures[];
  recent: Speculation[];
};
