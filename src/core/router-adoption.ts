// A person asks for what a speculative task does already: it becomes theirs, where the rules of authority, taint and audience allow it.
import type { Authority } from "../protocol/principal.ts";
import type { Speculation } from "../protocol/speculation.ts";
import { audienceOf, mayFlow } from "./audience.ts";
import { lower } from "./authority.ts";
import type { KnownTask, QueuedTrigger } from "./router.ts";
import { isOpenSpeculation, type SpeculationView } from "./speculation.ts";

export type Adoption =
  /** `authority`: of the work from now on. It holds words of both, so it is the lower of the two. */
  | { what: "adopt"; task: KnownTask; row: Speculation; authority: Authority }
  /** It is done, and offered: they get its words. */
  | { what: "hand_over"; row: Speculation; text: string }
  /** It may not become theirs: it ends, and their task is one of its own. */
  | { what: "instead"; rows: Speculation[] }
  | { what: "refused"; refused: string };

/** [SP5] The running speculative task that a person's request takes over: the named one, else the one of the request's own thread. */
export function adoptionOf(
  view: { tasks: ReadonlyMap<string, KnownTask>; speculation?: SpeculationView },
  named: string | undefined,
  triggers: readonly QueuedTrigger[],
  authority: Authority,
): Adoption {
  const rows = view.speculation?.rows ?? [];
  const running = rows.filter(({ outcome }) => outcome === "running");
  const [first] = triggers;
  const threads = triggers.map(({ threadId }) => threadId);
  const here = running.filter(({ threadId }) => threads.includes(threadId));
  const row = named === undefined ? here[0] : rows.find((each) => each.taskId === named && isOpenSpeculation(each));
  if (row === undefined)
    return named === undefined
      ? { what: "instead", rows: [] }
      : { what: "refused", refused: "There is no speculative task of this id at work or offered: leave `adopt` out." };
  const task = view.tasks.get(row.taskId);
  const allowed = task !== undefined && !task.tainted && first !== undefined && mayFlow(task.audience, audienceOf(first.trigger));
  if (allowed && row.draft)
    return {
      what: "refused",
      refused: `${row.taskId} waits as the draft of a pull request: it goes on when a person of the team releases it in the console. Say so, or leave \`adopt\` out.`,
    };
  if (allowed && row.offerText !== null) return { what: "hand_over", row, text: row.offerText };
  if (allowed) return { what: "adopt", task, row, authority: lower(task.authority, authority) };
  return named === undefined
    ? { what: "instead", rows: here }
    : {
        what: "refused",
        refused: `${row.taskId} knows what may not be said here, so it cannot become this person's: leave \`adopt\` out.`,
      };
}
