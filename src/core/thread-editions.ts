// Versions of one text at its source: original, edits, deletion. A source delivers them in any order; a thread has them in theirs.
import type { ThreadEvent } from "../protocol/events.ts";
import { limits } from "../protocol/limits.ts";
import { outcomes, type Trigger } from "../protocol/trigger.ts";
import { authorityOf, lower } from "./authority.ts";

type Accepted = Extract<ThreadEvent, { kind: "thread.accepted" }>;

export type Edition = {
  /** Of what it is a version. */
  subject: string;
  what: "original" | "edit" | "deletion";
  /** When this version was made, by the source's own clock; empty where it does not say. */
  at: string;
  /** Made so soon after its original that the original may still be on its way. */
  young: boolean;
};

const kinds: Record<string, Edition["what"]> = {
  opened: "original",
  created: "original",
  submitted: "original",
  edited: "edit",
  deleted: "deletion",
  dismissed: "deletion",
};
const ofText = /^(issues|issue_comment|pull_request|pull_request_review|pull_request_review_comment)\.([a-z]+)$/;

/** The version that a trigger brings; null for everything else that happens. */
export function editionOf({ kind, externalId, facts, atMs }: Pick<Trigger, "kind" | "externalId" | "facts" | "atMs">): Edition | null {
  const [, of = "", action = ""] = ofText.exec(kind) ?? [];
  const what = kinds[action];
  if (externalId === undefined || what === undefined) return null;
  const bornMs = Date.parse(facts?.created ?? "");
  return { subject: `${of}:${externalId}`, what, at: facts?.updated ?? "", young: Math.abs(atMs - bornMs) < limits.originalDelayMs };
}

/** A version that came; `seq` is null while it waits for its original. */
export type KnownEdition = { triggerId: string; what: Edition["what"]; at: string; seq: number | null };

export type EditionPlan =
  | { do: "take" }
  /** Kept aside: its original may still come. */
  | { do: "hold" }
  /** Kept in the log and shown to nobody: a newer version of it is a row already. */
  | { do: "stale"; newer: string }
  /** The original, as it reads by now. */
  | { do: "take_as"; seq: number };

const byVersion = (a: KnownEdition, b: KnownEdition): number =>
  Number(a.what === "deletion") - Number(b.what === "deletion") || (a.at < b.at ? -1 : a.at > b.at ? 1 : 0);

/** Versions that waited, in the order in which they were made. */
export const inOrder = <E extends KnownEdition>(held: readonly E[]): E[] => [...held].sort(byVersion);

/**
 * [T20] Where a version goes. `known`: its edits and deletion that came before it. An edit waits for an original that may still come; an
 * earlier version after a later one is never shown as if it were newer. `asksMore`: the original asks the router for more than the row
 * `seq` did, so that it is judged all the same, by its newest words.
 */
export function placeOf(
  edition: Edition,
  known: readonly KnownEdition[],
  hasOriginal: () => boolean,
  asksMore: (seq: number) => boolean,
): EditionPlan {
  const rows = inOrder(known).filter((each) => each.seq !== null);
  const newest = rows.at(-1);
  if (newest === undefined || newest.seq === null)
    return edition.what !== "original" && edition.young && !hasOriginal() ? { do: "hold" } : { do: "take" };
  const stale: EditionPlan = { do: "stale", newer: newest.triggerId };
  switch (edition.what) {
    case "original":
      return newest.what !== "deletion" && asksMore(newest.seq) ? { do: "take_as", seq: newest.seq } : stale;
    case "edit":
      return newest.what === "deletion" || (edition.at !== "" && edition.at < newest.at) ? stale : { do: "take" };
    case "deletion":
      return { do: "take" };
  }
}

const rank = ({ verdict }: Pick<Accepted, "verdict">): number => outcomes.indexOf(verdict.outcome);

/** Whether the router would judge this although it did not judge the other. */
export const asksMoreThan = (original: Accepted, edit: Accepted): boolean =>
  original.mode === "decide" && rank(original) > rank(edit) && rank(original) >= outcomes.indexOf("candidate");

/** The original with the words of an edit that came before it, and the lower of both authorities. */
export function asEdited(original: Accepted, edit: Accepted): Accepted {
  const { text, truncated, rawArtifact, principal } = edit.trigger;
  const { truncated: _cut, rawArtifact: _raw, ...trigger } = original.trigger;
  const own = authorityOf(trigger.principal);
  return {
    ...original,
    trigger: {
      ...trigger,
      text,
      ...(truncated === undefined ? {} : { truncated }),
      ...(rawArtifact === undefined ? {} : { rawArtifact }),
      principal: lower(own, authorityOf(principal)) === own ? trigger.principal : principal,
      facts: { ...trigger.facts, edited: edit.trigger.id },
    },
  };
}
