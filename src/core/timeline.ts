// The timeline of a task: the events of all objects that took part, each once, in the order in which they happened.
import type { TimelineEntry } from "../protocol/console.ts";

/** Merges by time; events of one object keep their own order, whatever their clock said. */
export function mergeTimeline(lists: readonly (readonly TimelineEntry[])[]): TimelineEntry[] {
  const byObject = new Map<string, Map<number, TimelineEntry>>();
  for (const entry of lists.flat()) {
    const known = byObject.get(entry.object) ?? new Map<number, TimelineEntry>();
    known.set(entry.seq, entry);
    byObject.set(entry.object, known);
  }
  const placed = [...byObject.values()].flatMap((entries) => {
    let atMs = Number.NEGATIVE_INFINITY;
    return [...entries.values()]
      .sort((a, b) => a.seq - b.seq)
      .map((entry) => {
        // A clock that went back must not move an event before its predecessor.
        atMs = Math.max(atMs, entry.atMs);
        return { entry, atMs };
      });
  });
  return placed
    .sort(
      (a, b) => a.atMs - b.atMs || (a.entry.object === b.entry.object ? a.entry.seq - b.entry.seq : laneRank(a.entry) - laneRank(b.entry)),
    )
    .map(({ entry }) => entry);
}

/** At the same millisecond the road's own order: what is said, decided, done, run. */
const laneRank = (entry: TimelineEntry): number => ["thread", "router", "worker", "machine"].indexOf(entry.lane);
