// A person asks for what a speculative task does already: it becomes theirs, where the rules of authority, taint and audience allow it.
import type { Authority } from "../protocol/principal.ts";
import type { Speculation } from "../protocol/speculation.ts";
import { audienceOf, mayFlow } from "./audience.ts";
import { lower } from "./authority.ts";
import type { KnownTask, QueuedTrigger } from "./router.ts";
import { isOpenSpeculation, isSame, type SpeculationView } from "./speculation.ts";

export type Adoption =
  /** `authority`: of the work from now on. It holds words of both, so it is the lower of the two. */
  | { what: "adopt"; task: KnownTask; row: Speculation; authority: Authority }
  /** It is done, and offered: they get its words. */
  | { what: "hand_over"; row: Speculation; text: string }
  /** It may not become theirs: it ends, and their task is one of its own. */
  | { what: "instead"; rows: Speculation[] }
  | { what: "refused"; refused: string };

/**
 * [SP5] The speculative task that a person's request takes over: the named one; else one that works for the request's own thread, or has
 * drafted a pull request there; else one that was started for just this, wherever it is asked for.
 */
export function adoptionOf(
  view: { tasks: ReadonlyMap<string, KnownTask>; speculation?: SpeculationView },
  { adopt: named, title }: { adopt?: string | undefined; title: string },
  triggers: readonly QueuedTrigger[],
  authority: Authority,
): Adoption {
  const open = (view.speculation?.rows ?? []).filter(isOpenSpeculation);
  const [first] = triggers;
  const threads = triggers.map(({ threadId }) => threadId);
  const here = open.filter((row) => threads.includes(row.threadId) && (row.outcome === "running" || row.draft));
  const allowed = (row: Speculation): KnownTask | null => {
    const task = view.tasks.get(row.taskId);
    return task !== undefined && !task.tainted && first !== undefined && mayFlow(task.audience, audienceOf(first.trigger)) ? task : null;
  };
  // Of another repository the same words mean something else.
  const isElsewhere = (row: Speculation): boolean => row.source === first?.trigger.source && row.place !== first.trigger.place;
  const same = (row: Speculation): boolean => isSame(row.title, title) && !isElsewhere(row);
  const row = named === undefined ? (here[0] ?? open.find(same)) : open.find((each) => each.taskId === named);
  if (row === undefined)
    return named === undefined
      ? { what: "instead", rows: [] }
      : { what: "refused", refused: "There is no speculative task of this id at work or offered: leave `adopt` out." };
  const task = allowed(row);
  if (task !== null && row.offerText !== null && !row.draft) return { what: "hand_over", row, text: row.offerText };
  if (task !== null) return { what: "adopt", task, row, authority: lower(task.authority, authority) };
  return named === undefined
    ? { what: "instead", rows: here }
    : {
        what: "refused",
        refused: `${row.taskId} knows what may not be said here, so it cannot become this person's: leave \`adopt\` out.`,
      };
}
