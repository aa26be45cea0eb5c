// What failed is tried once more in another way; what was just done is not done again.
import type { ModelReply } from "../protocol/model.ts";
import type { WorkerTool } from "../protocol/worker-tools.ts";
import { refuseCommand } from "./authority.ts";
import { sha256Hex } from "./ids.ts";
import { callKey } from "./same-work.ts";
import type { TaskState } from "./worker-state.ts";

/** The same call this often in a row is noticed, and not made again. */
export const repeatsNoticed = 3;

/** Calls that do something or read something; a report is never a repetition that could be left out. */
export const isWork = (tool: WorkerTool): boolean => tool !== "report" && tool !== "wait";

/** The longest cycle of calls that is noticed. */
const longestCycle = 3;

/** [WF2] How often in a row this call was made, or the cycle of calls that it ends. */
export function countRepeat(task: TaskState, raw: ModelReply["calls"][number]): number {
  if (raw.tool === "wait") return 0;
  const key = sha256Hex(callKey(raw.tool, raw.input)).slice(0, 16);
  task.recent = [...task.recent, key].slice(-longestCycle * repeatsNoticed);
  const count = Math.max(...Array.from({ length: longestCycle }, (_, i) => timesInARow(task.recent, i + 1)));
  if (count % repeatsNoticed === 0) {
    const notice = `\`${raw.tool}\` with the same input has just been done ${count} times in a row, alone or in a circle. Doing it again changes nothing: try another way, or report.`;
    task.notices = [...task.notices, notice];
  }
  return count;
}

/** How often the last calls of this number end the list. */
function timesInARow(keys: readonly string[], period: number): number {
  let alike = 0;
  while (alike + period < keys.length && keys.at(-1 - alike) === keys.at(-1 - alike - period)) alike += 1;
  return 1 + Math.floor(alike / period);
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
