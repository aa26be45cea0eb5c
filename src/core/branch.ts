// The branch of a task: the only one that its machine pushes for it, and whose events can come back to it.
import type { TaskId } from "../protocol/ids.ts";

export const branchOf = (taskId: TaskId): string => `switchyard/${taskId}`;

/** The thread's key of a task's branch in its repository. */
export const branchKeyOf = (taskId: TaskId): string => `branch:${branchOf(taskId)}`;

/** The task whose branch this thread is; null for every other thread, a fork's branch of that name among them. */
export const taskOfBranch = (threadKey: string): TaskId | null =>
  /^branch:switchyard\/(tsk_[a-z0-9]+(?:-[a-z0-9]+)?)$/.exec(threadKey)?.[1] ?? null;
