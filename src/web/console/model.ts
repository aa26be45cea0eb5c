// The console's view logic without a page: routes, filters, counts, and what an id leads to.
import { boardLimits } from "../../core/board.ts";
import { ownerOf } from "../../core/ids.ts";
import type { BoardNotice, BoardState, BoardTask } from "../../protocol/board.ts";
import { statusView } from "../shared/status.ts";

export type Route =
  | { page: "now" | (typeof listPages)[number] }
  | { page: "task" | "thread" | "trigger" | "decision" | "fact"; id: string }
  | { page: "search"; words: string }
  | { page: "unknown"; hash: string };

const detailPages = ["task", "thread", "trigger", "decision", "fact"] as const;
const listPages = [
  "tasks",
  "threads",
  "decisions",
  "machines",
  "people",
  "schedules",
  "rules",
  "profiles",
  "proposals",
  "memory",
  "incidents",
  "costs",
] as const;

/** [O12] Whether the first screen has all words of a notice: what it cut is decided about where all of them stand. */
export const isWhole = ({ text }: Pick<BoardNotice, "text">): boolean => text.length < boardLimits.noticeChars;

/** The address of a search, and back: what is no address of one is no words. */
export const searchLink = (words: string): string => `#/search/${encodeURIComponent(words)}`;
const wordsIn = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
};

/** `#/task/tsk_…` and its like; an empty hash is the first screen. */
export function parseRoute(hash: string): Route {
  const [, page = "", id = ""] = hash.replace(/^#/, "").split("/");
  if (page === "") return { page: "now" };
  if (page === "search") return { page, words: wordsIn(id) };
  for (const known of listPages) if (page === known && id === "") return { page: known };
  for (const known of detailPages) if (page === known && /^[a-z]+_[a-z0-9-]+$/.test(id)) return { page: known, id };
  return { page: "unknown", hash };
}

/** Where an id leads in the console; null when there is no page for it. */
export function linkOf(id: string): string | null {
  const prefix = id.slice(0, id.indexOf("_"));
  const ownerLink = (ownerPrefix: "tsk" | "thr"): string | null => {
    const owner = ownerOf(id, ownerPrefix);
    return owner === null ? null : linkOf(owner);
  };
  switch (prefix) {
    case "tsk":
      return `#/task/${id}`;
    case "thr":
      return `#/thread/${id}`;
    case "trg":
      return `#/trigger/${id}`;
    case "dec":
      return `#/decision/${id}`;
    case "fct":
      return `#/fact/${id}`;
    case "rep":
      return ownerLink("tsk");
    case "out":
      return ownerLink("thr");
    case "ep":
      return "#/machines";
    default:
      return null;
  }
}

const textOf = (task: BoardTask): string =>
  [task.title, task.askedBy, task.source, task.place, task.machine ?? "", statusView(task).word, task.line, task.taskId].join(" ");

/** Whether a text holds every word of a query. */
export const holdsWords = (text: string, query: string): boolean =>
  query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word));

/** Tasks that hold every word of the query. */
export const filterTasks = (tasks: readonly BoardTask[], query: string): BoardTask[] =>
  tasks.filter((task) => holdsWords(textOf(task), query));

/** Open ones first, those that wait for a person on top; within each the newest first. */
export function sortTasks(tasks: readonly BoardTask[]): BoardTask[] {
  const rank = (task: BoardTask): number => {
    const view = statusView(task);
    return view.forYou ? 0 : view.open ? 1 : 2;
  };
  return [...tasks].sort((a, b) => rank(a) - rank(b) || b.startedMs - a.startedMs);
}

/** The board's tasks and older ones together; of one task the higher revision. */
export function mergeTasks(live: readonly BoardTask[], stored: readonly BoardTask[]): BoardTask[] {
  const byId = new Map<string, BoardTask>();
  for (const task of [...stored, ...live]) {
    const known = byId.get(task.taskId);
    if (!known || known.revision <= task.revision) byId.set(task.taskId, task);
  }
  return [...byId.values()];
}

/** `ids`: of the notices that say the same of one thread, of which the newest is shown. */
export type Waiting = { kind: "notice"; notice: BoardNotice; ids: readonly string[] } | { kind: "task"; task: BoardTask };

const saysTheSame = (a: BoardNotice, b: BoardNotice): boolean =>
  a.kind === b.kind && a.text === b.text && a.threadId === b.threadId && a.taskId === b.taskId;

/** Each thing once, however often it was said. */
const grouped = (notices: readonly BoardNotice[]): Waiting[] =>
  notices
    .filter((notice, at) => notices.findIndex((other) => saysTheSame(notice, other)) === at)
    .map((notice) => ({ kind: "notice", notice, ids: notices.filter((other) => saysTheSame(notice, other)).map(({ id }) => id) }));

/** A task that only waits for a word on its proposals, each of which stands there by itself. */
const standsAsProposals = (task: BoardTask, notices: readonly BoardNotice[]): boolean =>
  task.waitingFor === "release" && (task.offers ?? []).every(({ id }) => notices.some((notice) => notice.id === id));

/** What waits for a person, each once: questions first, then tasks, then refusals and faults. */
export function waitingOf(board: BoardState): Waiting[] {
  const questions = board.notices.filter((notice) => notice.kind === "question" || notice.kind === "offer");
  const rest = board.notices.filter((notice) => notice.kind !== "question" && notice.kind !== "offer");
  const tasks = board.tasks.filter((task) => statusView(task).forYou && !standsAsProposals(task, questions));
  return [
    ...questions.map((notice): Waiting => ({ kind: "notice", notice, ids: [notice.id] })),
    ...tasks.map((task): Waiting => ({ kind: "task", task })),
    ...grouped(rest),
  ];
}

/** Where a task came from, in a word: `widget`, `acme/app`. */
export const placeOf = (task: { source: string; place: string }): string => (task.source === "web" ? "widget" : task.place);
