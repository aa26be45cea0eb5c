// Compaction: the older part of a long transcript is put aside, and what counts of it stands in its place. Nothing is deleted.
import type { ContextItem, WorkerItem } from "../protocol/context-items.ts";
import { limits } from "../protocol/limits.ts";
import type { ModelMessage } from "../protocol/model.ts";
import type { Note } from "../protocol/task.ts";
import { estimateTokens, excerpt, parseMessage, renderMessage } from "./context.ts";
import { childId } from "./ids.ts";
import { providerTokens } from "./token-rate.ts";
import { fitSum, goalItem } from "./worker-context.ts";
import { type Change, changeOf, type TaskState, type WorkerCommand } from "./worker-state.ts";

/** What stays as it is: the last messages, up to this share of the limit. */
const keptShare = 0.25;
const maxSaid = 60;
const saidChars = 400;
const maxTold = 60;
const toldChars = 16_000;

type Kept = Extract<WorkerItem, { item: "kept" }>;

/** [WX1] Whether a request that we take for so many tokens is too long for another step; one that was refused is. */
export const isLong = (task: Pick<TaskState, "tokenRate" | "refused">, estimated: number): boolean =>
  (task.refused?.leaveOut ?? null) !== null || providerTokens(estimated, task.tokenRate) > limits.compactWorkerTokens;

/** [W28] Whether a refused request of so many tokens may have been too long: there is an older part to put aside. */
export const mayBeShorter = (task: Pick<TaskState, "tokenRate">, estimated: number): boolean =>
  providerTokens(estimated, task.tokenRate) > limits.compactWorkerTokens * keptShare;

/** [WX1] Puts aside what is older than the last messages. Made by code from rows that stay, so that it loses no approach and invents none. Null when there is nothing to gain. */
export function compact(
  task: TaskState,
  from: {
    rows: readonly { row: number; message: ModelMessage }[];
    commands: readonly WorkerCommand[];
    notes: readonly Note[];
    /** What stands for the parts that were put aside before. */
    head: string | null;
  },
): Change | null {
  if (task.open.kind !== "none") return null;
  const { rows, commands, notes } = from;
  const before = task.aside?.segments ?? [];
  const lastAside = before.at(-1)?.toRow ?? 0;
  const current = rows.filter(({ row }) => row > lastAside);
  const all = task.refused?.leaveOut === "all";
  const messages = current.map(({ message }) => message);
  const tailAt = all ? messages.length : tailOf(messages, task.tokenRate);
  const put = current.slice(0, tailAt);
  const [first, last] = [put[0], put.at(-1)];
  if (first === undefined || last === undefined) return null;
  const change = changeOf(task, "its transcript was compacted");
  const { taskId } = task.start;
  const id = childId("seg", taskId, before.length + 1);
  const past = rows.filter(({ row, message }) => row <= last.row && !isOf(message, task.refused?.left ?? [])).flatMap(itemsIn);
  const item: Kept = {
    item: "kept",
    segment: id,
    facts: notes.filter(({ kind }) => kind === "fact").map(({ text }) => text),
    questions: notes
      .filter(({ kind }) => kind === "question")
      .map(({ text, outcome }) => (outcome === undefined ? text : `${text} — ${outcome}`)),
    approaches: approachesOf(commands, notes),
    said: saidIn(past),
    told: toldIn(past, id),
  };
  const head = renderMessage({ step: task.steps, of: task.allowance }, [goalItem(task), item]);
  const segment = { id, fromRow: first.row, toRow: last.row };
  change.task.aside = { segments: [...before, segment] };
  if (task.refused !== undefined) change.task.refused = { ...task.refused, leaveOut: null };
  if (all)
    change.task.notices = [
      ...task.notices,
      leftOut(
        id,
        current.map(({ message }) => message),
        task.steps,
      ),
    ];
  const charsBefore = sizeOf(current.map(({ message }) => message)) + (from.head?.length ?? 0);
  const charsAfter = sizeOf(current.slice(tailAt).map(({ message }) => message)) + head.length;
  change.events.push({ kind: "task.compacted", segment: id, fromRow: first.row, toRow: last.row, charsBefore, charsAfter, head });
  return change;
}

const isOf = (message: ModelMessage, steps: readonly number[]): boolean => {
  const head = message.role === "user" ? parseMessage(message.text)?.head : undefined;
  return head !== undefined && "step" in head && steps.includes(head.step);
};

/** [W28] What the model is told of what it refused: where it stands, and none of its words. */
function leftOut(segment: string, messages: readonly ModelMessage[], step: number): string {
  const items = messages
    .filter((message) => isOf(message, [step]))
    .flatMap((message) => (message.role === "user" ? (parseMessage(message.text)?.items ?? []) : []));
  const ids = items.flatMap((item) =>
    item.item === "row" ? [`row ${item.seq} of ${item.thread}`] : item.item === "result" ? [item.command] : [],
  );
  return `What came last was refused by the model's provider and is left out${ids.length === 0 ? "" : `: ${ids.join(", ")}`}. People decided to go on without it; all of it is in ${segment}.`;
}

const sizeOf = (messages: readonly ModelMessage[]): number => messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0);

/** Where the part begins that stays: at a user message, so that no call is parted from its result. */
function tailOf(messages: readonly ModelMessage[], rate: number): number {
  let at = messages.length;
  let tokens = 0;
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i];
    if (message === undefined) break;
    tokens += estimateTokens(JSON.stringify(message));
    if (providerTokens(tokens, rate) > limits.compactWorkerTokens * keptShare) break;
    if (message.role === "user") at = i;
  }
  return at;
}

/** [WX2] Every approach with its outcome: what was run, and what the worker noted. A task's life has room for so many commands and notes. */
function approachesOf(commands: readonly WorkerCommand[], notes: readonly Note[]): Kept["approaches"] {
  const noted = notes
    .filter(({ kind }) => kind === "approach")
    .map(({ step, text, outcome }) => ({ step, what: text, outcome: outcome ?? "no outcome was noted" }));
  const run = commands.map(({ step, what, ended, open }) => ({ step, what, outcome: open ? "still open" : (ended ?? "ended") }));
  return [...noted, ...run].sort((a, b) => a.step - b.step);
}

const itemsIn = ({ message }: { message: ModelMessage }): ContextItem[] =>
  message.role === "user" ? (parseMessage(message.text)?.items ?? []) : [];

/** What people said so far, shortened; the thread has all of it. */
const saidIn = (items: readonly ContextItem[]): Kept["said"] =>
  items
    .flatMap((item) =>
      item.item === "row" && item.kind === "message"
        ? [{ thread: item.thread, seq: item.seq, from: item.from.name, text: excerpt(item.text, saidChars) }]
        : [],
    )
    .slice(-maxSaid);

/** Facts from elsewhere, what was known at a hand-off, what children found: it stands in no thread of the task. */
function toldIn(items: readonly ContextItem[], segment: string): string[] {
  const told = items.flatMap((item) => {
    if (item.item === "child") return [`${item.task} (${item.title}), ${item.kind}: ${item.text}`];
    return item.item === "notice" ? [item.text] : [];
  });
  return fitSum(
    told.slice(-maxTold).map((text) => ({ text, id: segment })),
    toldChars,
  );
}
