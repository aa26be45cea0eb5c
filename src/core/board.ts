// The board's rules: what a console sees stays small, never goes back in time, and never shows again what is gone.
import type { BoardChange, BoardNotice, BoardState, BoardTask } from "../protocol/board.ts";
import { finalStatuses } from "../protocol/task.ts";

export const boardLimits = { tasks: 60, decisions: 40, notices: 30, noticeChars: 2000 } as const;

export const emptyBoard: BoardState = { tasks: [], endpoints: [], decisions: [], notices: [] };

const isOpen = (task: BoardTask): boolean => !finalStatuses.includes(task.status);

/** Newest first; when there are too many, ended tasks leave before open ones. */
function boundedTasks(tasks: readonly BoardTask[]): BoardTask[] {
  const newest = [...tasks].sort((a, b) => b.startedMs - a.startedMs || a.taskId.localeCompare(b.taskId));
  if (newest.length <= boardLimits.tasks) return newest;
  const kept = new Set([...newest.filter(isOpen), ...newest.filter((task) => !isOpen(task))].slice(0, boardLimits.tasks));
  return newest.filter((task) => kept.has(task));
}

const asks = ({ kind }: BoardNotice): boolean => kind === "question" || kind === "offer";

/** Newest first; when there are too many, what only tells something leaves before what waits for a person's word. */
function boundedNotices(notices: readonly BoardNotice[]): BoardNotice[] {
  const newest = [...notices].sort((a, b) => b.atMs - a.atMs);
  if (newest.length <= boardLimits.notices) return newest;
  const kept = new Set([...newest.filter(asks), ...newest.filter((notice) => !asks(notice))].slice(0, boardLimits.notices));
  return newest.filter((notice) => kept.has(notice));
}

function upsert<T>(list: readonly T[], item: T, same: (other: T) => boolean, isOlder: (known: T) => boolean): readonly T[] {
  const at = list.findIndex(same);
  const known = list[at];
  if (known === undefined) return [item, ...list];
  return isOlder(known) ? list : list.with(at, item);
}

function applyOne(state: BoardState, change: BoardChange, gone: ReadonlySet<string>): BoardState {
  switch (change.kind) {
    case "task": {
      const { task } = change;
      const next = upsert(
        state.tasks,
        task,
        (other) => other.taskId === task.taskId,
        (known) => known.revision >= task.revision,
      );
      return next === state.tasks ? state : { ...state, tasks: boundedTasks(next) };
    }
    case "endpoint": {
      const { endpoint } = change;
      if (gone.has(endpoint.endpointId)) return state;
      const next = upsert(
        state.endpoints,
        endpoint,
        (other) => other.endpointId === endpoint.endpointId,
        (known) => known.revision >= endpoint.revision,
      );
      if (next === state.endpoints) return state;
      return { ...state, endpoints: [...next].sort((a, b) => a.name.localeCompare(b.name) || a.endpointId.localeCompare(b.endpointId)) };
    }
    case "endpoint_gone": {
      const endpoints = state.endpoints.filter((endpoint) => endpoint.endpointId !== change.endpointId);
      return endpoints.length === state.endpoints.length ? state : { ...state, endpoints };
    }
    case "decision": {
      const { decision } = change;
      if (state.decisions.some((known) => known.decisionId === decision.decisionId)) return state;
      const decisions = [decision, ...state.decisions].sort((a, b) => b.atMs - a.atMs).slice(0, boardLimits.decisions);
      return { ...state, decisions };
    }
    case "notice": {
      const notice = { ...change.notice, text: change.notice.text.slice(0, boardLimits.noticeChars) };
      if (gone.has(notice.id) || state.notices.some((known) => known.id === notice.id)) return state;
      return { ...state, notices: boundedNotices([notice, ...state.notices]) };
    }
    case "notice_done": {
      const notices = state.notices.filter((notice) => notice.id !== change.id);
      return notices.length === state.notices.length ? state : { ...state, notices };
    }
  }
}

/**
 * Applies changes in order. The same object comes back when nothing changed, so that nobody is told of nothing.
 * `gone` holds ids of endpoints and notices that have left: a repeated change does not bring them back.
 */
export function applyBoardChanges(
  state: BoardState,
  changes: readonly BoardChange[],
  gone: ReadonlySet<string>,
): { state: BoardState; left: string[] } {
  const left: string[] = [];
  const all = new Set(gone);
  let next = state;
  for (const change of changes) {
    const id = change.kind === "endpoint_gone" ? change.endpointId : change.kind === "notice_done" ? change.id : null;
    if (id !== null && !all.has(id)) {
      all.add(id);
      left.push(id);
    }
    next = applyOne(next, change, all);
  }
  return { state: next, left };
}
