// Where words of ours may go. A destination is made of the row that causes the words, and names it: the trigger that is answered, the task
// that reports, the schedule, the policy or the speculation that speaks by itself. Nothing else makes one: no model, and nothing that came last.
import type { Schedule, ScheduleRun } from "../protocol/schedule.ts";
import type { Speculation } from "../protocol/speculation.ts";
import type { Report } from "../protocol/task.ts";
import type { Trigger } from "../protocol/trigger.ts";
import { ownerOf } from "./ids.ts";

declare const namedByRow: unique symbol;

/** [RD16] The thread, and the row that names it: the thread itself looks at both again before it says anything. */
export type Destination = { threadId: string; source: string; hops: number; triggerId?: string; taskId?: string; reportId?: string } & {
  readonly [namedByRow]: true;
};

const made = (to: Omit<Destination, typeof namedByRow>): Destination => to as Destination;

export const whereAsked = ({ id, threadId, source, hops }: Pick<Trigger, "id" | "threadId" | "source" | "hops">): Destination =>
  made({ threadId, source, hops, triggerId: id });

/** Words about what was dispatched stand with its task: in the topic that was opened for it. */
export const withTask = (to: Destination, threadId: string): Destination => ({ ...to, threadId });

/** `task`: what is known of where it was asked for. */
export const whereReported = (
  { id, taskId, threadId }: Pick<Report, "id" | "taskId" | "threadId">,
  task: { source: string; hops: number } | undefined,
): Destination => made({ threadId, source: task?.source ?? "", hops: task?.hops ?? 0, taskId, reportId: id });

/** Where its runs enter, and are answered. */
export const whereScheduled = ({ thread }: Pick<Schedule, "thread">, run: Pick<ScheduleRun, "id">): Destination =>
  made({ threadId: thread.threadId, source: thread.source, hops: 0, triggerId: run.id });

/** Where it came from: its policy names that place. */
export const whereFound = ({ threadId, triggerId, source, taskId }: Speculation, reportId: string, hops: number): Destination =>
  made({ threadId, source, hops, triggerId, taskId, reportId });

/** Where an owner saved the policy. One that was saved in the console speaks there alone. */
export function whereSaved({ savedIn }: Speculation["policy"]): Destination | null {
  const threadId = savedIn === undefined ? null : ownerOf(savedIn.triggerId, "thr");
  return savedIn === undefined || threadId === null
    ? null
    : made({ threadId, source: savedIn.source, hops: 0, triggerId: savedIn.triggerId });
}
