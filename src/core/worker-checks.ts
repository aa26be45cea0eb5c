// What happens on a task's own branch: its own pushes are context, the checks of its last push come together, and whatever bears the
// branch's name without a commit that this task pushed is not its own.
import { limits } from "../protocol/limits.ts";
import { branchOf, isNamedForTask } from "./branch.ts";
import { type Change, type InboxItem, type InboxRow, releasedStep, type TaskState, triggerOf } from "./worker-state.ts";

const isCheck = (kind: string): boolean => /^(check_run|check_suite|workflow_run)\./.test(kind);
const isPush = (kind: string): boolean => kind === "push" || kind === "pull_request.synchronize";
const isGood = (conclusion: string | undefined): boolean => ["success", "neutral", "skipped"].includes(conclusion ?? "");

/**
 * Whose an event of a branch is. `own`: of a commit that this task pushed. `unclaimed`: it may be of a push whose result is not here yet.
 * `foreign`: it bears the branch's name, or is of another task's branch. `null`: nothing of the kind.
 */
export type Ownership = "own" | "unclaimed" | "foreign" | null;

/** [W24] Only the commit decides: the ledger has those that the task's machine pushed, by the daemon's own word. */
export function ownership(task: TaskState, item: InboxItem): Ownership {
  const trigger = triggerOf(item);
  const { branch = "", sha = "", fork } = trigger?.facts ?? {};
  if (trigger === null || !isNamedForTask(branch)) return null;
  const check = isCheck(trigger.kind);
  const opened = trigger.kind === "pull_request.opened" && trigger.facts?.self !== undefined;
  if (!check && !isPush(trigger.kind) && !opened) return null;
  if (branch !== branchOf(task.start.taskId)) return check ? "foreign" : null;
  const known = task.pushes.some((push) => push.sha === sha && push.place.toLowerCase() === trigger.place.toLowerCase());
  if (known && fork === undefined) return "own";
  if (task.pushing.length > 0) return "unclaimed";
  // Somebody of the repository pushed to the branch: that is news, whoever it was.
  return check ? "foreign" : null;
}

/** Its own pushes and its own pull request are no news, and nobody's words. */
export const isOwnPush = (task: TaskState, item: InboxItem): boolean => {
  const kind = triggerOf(item)?.kind ?? "";
  return ownership(task, item) === "own" && !isCheck(kind);
};

/**
 * [W25] Checks of the last push come together: the first failure wakes, and each conclusion that is new; other failures are read along,
 * successes of single jobs and everything of older heads are not. Call it with rows that are new, or newly known to be own.
 */
export function noteChecks(change: Change, rows: readonly InboxRow[]): void {
  const { task } = change;
  const head = task.pushes.at(-1);
  for (const { seq, key, item } of rows) {
    const trigger = triggerOf(item);
    if (trigger === null || !isCheck(trigger.kind) || ownership(task, item) !== "own") continue;
    const drop = (reason: string): void => {
      change.moved.push({ seq, step: releasedStep });
      change.events.push({ kind: "task.skipped", itemId: key, reason });
    };
    const { sha, conclusion, name = "checks" } = trigger.facts ?? {};
    if (head === undefined || sha !== head.sha) {
      drop("a check of an older head");
      continue;
    }
    const checks = task.checks ?? { seen: false, failed: false, suites: {} };
    task.checks = { ...checks, seen: true };
    if (!trigger.kind.endsWith(".completed")) {
      drop("a check that only began");
      continue;
    }
    const bad = !isGood(conclusion);
    if (trigger.kind.startsWith("check_suite.")) {
      const known = checks.suites[name];
      task.checks = { seen: true, failed: checks.failed || bad, suites: { ...checks.suites, [name]: conclusion ?? "" } };
      if (known === conclusion) drop("the same conclusion again");
    } else if (!bad) drop("one job succeeded; the conclusion tells");
    else {
      task.checks = { ...checks, seen: true, failed: true };
      if (checks.failed) task.quiet = [...task.quiet, key];
    }
  }
}

/** [W26] A task that pushed waits for its checks before it is done: until when, and why; null when nothing is to be waited for. */
export function checksToAwait(task: TaskState, nowMs: number): { untilMs: number; reason: string } | null {
  const head = task.pushes.at(-1);
  if (head === undefined || Object.keys(task.checks?.suites ?? {}).length > 0) return null;
  const untilMs = head.atMs + (task.checks?.seen ? limits.checksMs : limits.checksBeginMs);
  return nowMs >= untilMs ? null : { untilMs, reason: `the checks of ${head.sha.slice(0, 10)}` };
}
