// The branch of a task: the only one that its machine pushes for it, and whose events can come back to it.
import type { TaskId } from "../protocol/ids.ts";

export const branchOf = (taskId: TaskId): string => `switchyard/${taskId}`;

/** Whether a branch bears the name of a task, be it one of ours. */
export const isNamedForTask = (branch: string): boolean => branch.startsWith("switchyard/tsk_");

/** The task whose branch this is; null for every other. */
export const taskOfBranch = (branch: string): TaskId | null => /^switchyard\/(tsk_[a-z0-9]+)$/.exec(branch)?.[1] ?? null;

/** `owner/name` at GitHub; it becomes part of an address, so neither part may be dots alone. */
export const repositoryName = /^(?!\.+\/)[\w.-]{1,100}\/(?!\.+$)[\w.-]{1,100}$/;

/** The thread's key of a task's branch in its repository. */
export const branchKeyOf = (taskId: TaskId): string => `branch:${branchOf(taskId)}`;
