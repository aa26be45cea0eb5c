// What failed is tried once more in another way; what was just done is not done again.
import type { ModelReply } from "../protocol/model.ts";
import type { WorkerTool } from "../protocol/worker-tools.ts";
import { refuseCommand } from "./authority.ts";
import { callKey } from "./same-work.ts";
import type { TaskState } from "./worker-state.ts";

/** The same call this often in a row is noticed, and not made again. */
export const repeatsNoticed = 3;

/** Calls that do something or read something; a report is never a repetition that could be left out. */
export const isWork = (tool: WorkerTool): boolean => tool !== "report" && tool !== "wait";

/** [WF2] How often this call was made in a row. */
export function countRepeat(task: TaskState, raw: ModelReply["calls"][number]): number {
  if (raw.tool === "wait") return 0;
  const key = callKey(raw.tool, raw.input);
  const count = task.repeat.key === key ? task.repeat.count + 1 : 1;
  task.repeat = { key, count };
  if (count % repeatsNoticed === 0) {
    const notice = `\`${raw.tool}\` with the same input has just been done ${count} times in a row. Doing it again changes nothing: try another way, or report.`;
    task.notices = [...task.notices, notice];
  }
  return count;
}

/** [WF1] What failed is tried once more, with the goal said in other words; only where there was an attempt, and calls are left for another. */
export function retriesFirst(task: TaskState): boolean {
  const { title, endpoint, authority } = task.start;
  const able = endpoint !== null && refuseCommand({ authority, tainted: task.tainted }) === null;
  if (task.retried || task.commands === 0 || !able || task.steps + 1 >= task.allowance) return false;
  task.retried = true;
  const notice = `Before you give up on "${title}": say in one sentence what outcome is wanted, without the way that failed. Then try one other way to it. If that fails too, report \`failed\` with both.`;
  task.notices = [...task.notices, notice];
  return true;
}
