// What people say of an outcome by reacting to the words in which it was told. Nobody tells us of reactions: when it is looked for them,
// and which of them count, is decided here.
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import type { TaskCard } from "../protocol/task.ts";
import type { OutboundIntent, OutboundState } from "../protocol/thread.ts";

/** `id` grows with time at its source, whose clock counts whole seconds. */
export type Reaction = { id: number; sign: string; atMs: number; login: string };

/** A look at one message of ours. `etag`: what its list was called by its source when nothing in it concerned us. */
export type Look = { providerId: string; etag: string | null };
/** `word`: a person's of the team; null where nobody of them said anything. */
export type Seen = { word: Word | null; etag: string | null };
type Word = { by: Principal; accepted: boolean; sign: string };

const verdicts: ReadonlyMap<string, boolean> = new Map([
  ["👍", true],
  ["🎉", true],
  ["❤️", true],
  ["🚀", true],
  ["👎", false],
  ["😕", false],
]);

/** [W31] The last word of each account, the newest first; a sign that says neither yes nor no is no word. */
export function wordsOf(reactions: readonly Reaction[]): (Reaction & { accepted: boolean })[] {
  const words = reactions.flatMap((reaction) => {
    const accepted = verdicts.get(reaction.sign);
    return accepted === undefined ? [] : [{ ...reaction, accepted }];
  });
  words.sort((a, b) => b.atMs - a.atMs || b.id - a.id);
  return words.filter(({ login }, at) => words.findIndex((other) => other.login === login) === at);
}

/** What was said here of how a task ended, and what the outbound ledger knows of it. */
export type SaidOutcome = {
  outbound: Pick<OutboundIntent, "id" | "taskId">;
  entry: { state: OutboundState; createdMs: number; providerId: string | null };
};

/** A look may be made when there is something to react to, and the task is at its end still. */
type Unjudged<S extends SaidOutcome> = S & { taskId: string; ready: boolean };

/**
 * [W31] [T14] Of each task the newest outcome that was said here, while nobody judged it; the newest first. `over`: of which nothing more
 * is to be found.
 */
export function unjudged<S extends SaidOutcome>(
  said: readonly S[],
  cards: readonly Pick<TaskCard, "taskId" | "status" | "accepted">[],
  over: (outboundId: string) => boolean,
): Unjudged<S>[] {
  const newest = new Map<string, S>();
  for (const each of said.toSorted((a, b) => b.entry.createdMs - a.entry.createdMs)) {
    const { taskId } = each.outbound;
    if (taskId !== undefined && !newest.has(taskId)) newest.set(taskId, each);
  }
  return [...newest].flatMap(([taskId, each]) => {
    const card = cards.find((known) => known.taskId === taskId);
    const { state, providerId } = each.entry;
    if (card?.accepted !== undefined || state === "failed" || state === "expired" || over(each.outbound.id)) return [];
    const ended = card?.status === "done" || card?.status === "failed";
    return [{ ...each, taskId, ready: ended && providerId !== null }];
  });
}

const shortestWaitMs = 60_000;
const longestWaitMs = 12 * 60 * 60_000;

/**
 * [T14] When a thread looks next, given when its unjudged outcomes were said: rarely and then not at all. What could not be read is looked
 * at again with growing waits, and never before its source takes it. Null when there is nothing more to look for.
 */
export function nextLookMs(saidMs: readonly number[], nowMs: number, failed: { retryAfterMs?: number | undefined } | null): number | null {
  const looks = saidMs.flatMap((atMs) => limits.reactionLooksMs.map((afterMs) => atMs + afterMs)).filter((atMs) => atMs > nowMs);
  const youngestMs = Math.max(...saidMs);
  const waitMs = Math.min(Math.max(shortestWaitMs, (nowMs - youngestMs) / 2), longestWaitMs);
  if (failed !== null && saidMs.length > 0) looks.push(nowMs + waitMs);
  const nextMs = Math.ceil(Math.max(Math.min(...looks), nowMs + (failed?.retryAfterMs ?? 0)));
  return looks.length > 0 && nextMs < youngestMs + limits.reactionMs ? nextMs : null;
}
