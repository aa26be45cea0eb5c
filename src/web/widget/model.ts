// What the page knows of the conversation, and how each frame changes it. Every frame may come twice.
import type { TaskCard } from "../../protocol/task.ts";
import type { DraftFrame, WidgetRow, WidgetServerFrame } from "../../protocol/widget-frames.ts";
import { statusView } from "../shared/status.ts";
import { type Outbox, type OutboxEntry, rootPlaceholder } from "./outbox.ts";

export type ShownRow = { seq: number; row: WidgetRow };
type Welcome = Extract<WidgetServerFrame, { t: "welcome" }>;

/** A reply that is being written; interrupted also from a new connection on, until the server speaks of it again. */
export type Draft = Omit<DraftFrame, "t">;

export type Conversation = {
  welcome: Omit<Welcome, "t"> | null;
  /** Rows of each thread, by sequence number. */
  rows: Readonly<Record<string, readonly ShownRow[]>>;
  cards: Readonly<Record<string, TaskCard>>;
  /** Whether a proactive reply was called unwanted, by its row's id. */
  marks: Readonly<Record<string, boolean>>;
  /** The newest draft of each thread. */
  drafts: Readonly<Record<string, Draft>>;
  /** False until all that happened before is on the page: until then nothing is announced. */
  caughtUp: boolean;
};

export const emptyConversation: Conversation = { welcome: null, rows: {}, cards: {}, marks: {}, drafts: {}, caughtUp: false };

/** Adds a row once, in its place; a repeat gives the same list back. */
export function insertRow(rows: readonly ShownRow[], seq: number, row: WidgetRow): readonly ShownRow[] {
  let at = rows.length;
  while (at > 0 && (rows[at - 1]?.seq ?? 0) >= seq) at--;
  return rows[at]?.seq === seq ? rows : rows.toSpliced(at, 0, { seq, row });
}

const isReplyOf = (row: WidgetRow, draftId: string): boolean => row.kind === "reply" && row.id === draftId;

function withDraft(state: Conversation, draft: Draft | null, threadId = draft?.threadId ?? ""): Conversation {
  const { [threadId]: _, ...drafts } = state.drafts;
  return { ...state, drafts: draft ? { ...drafts, [threadId]: draft } : drafts };
}

/** The newest words count; what has its row already, or was seen in a newer form, changes nothing. */
function applyDraft(state: Conversation, frame: DraftFrame): Conversation {
  const { t: _, ...draft } = frame;
  const { threadId, draftId, rev, state: to } = draft;
  const known = state.drafts[threadId];
  const same = known?.draftId === draftId;
  if (known && (known.rev > rev || (known.rev === rev && known.state === to))) return state;
  if (state.rows[threadId]?.some(({ row }) => isReplyOf(row, draftId))) return state;
  if (to === "writing") return withDraft(state, draft);
  if (!same) return state;
  // Who says that a draft broke off may not know its words.
  return withDraft(state, to === "dropped" ? null : { ...draft, text: draft.text || known.text }, threadId);
}

/** The next conversation; the same object when the frame brought nothing new. */
export function applyFrame(state: Conversation, frame: WidgetServerFrame): Conversation {
  switch (frame.t) {
    case "welcome": {
      const { t: _, ...welcome } = frame;
      const drafts = Object.values(state.drafts).map((draft) => [draft.threadId, { ...draft, state: "interrupted" }]);
      return { ...state, welcome, drafts: Object.fromEntries(drafts), caughtUp: false };
    }
    case "row": {
      const known = state.rows[frame.threadId] ?? [];
      const next = insertRow(known, frame.seq, frame.row);
      if (next === known) return state;
      const shown = { ...state, rows: { ...state.rows, [frame.threadId]: next } };
      const draft = state.drafts[frame.threadId];
      // The row replaces its draft; a draft that broke off leaves with whatever is said next.
      const ends = draft && (isReplyOf(frame.row, draft.draftId) || (draft.state === "interrupted" && frame.row.kind === "reply"));
      return ends ? withDraft(shown, null, frame.threadId) : shown;
    }
    case "draft":
      return applyDraft(state, frame);
    case "card": {
      const known = state.cards[frame.card.taskId];
      if (known && known.revision >= frame.card.revision) return state;
      return { ...state, cards: { ...state.cards, [frame.card.taskId]: frame.card } };
    }
    case "marked":
      return { ...state, marks: { ...state.marks, [frame.of]: frame.wrong } };
    case "caught_up":
      return { ...state, caughtUp: true };
    case "ack":
    case "refused":
      return state;
  }
}

/** Thread → highest sequence number on the page: what a new connection does not need to send again. */
export const resumeMap = (state: Conversation): Record<string, number> =>
  Object.fromEntries(Object.entries(state.rows).flatMap(([threadId, rows]) => rows.slice(-1).map((last) => [threadId, last.seq])));

export type TopicView = {
  taskId: string;
  threadId: string;
  title: string;
  atMs: number;
  /** Null while the card is on its way. */
  card: TaskCard | null;
  /** Rows before those, shown on demand. */
  earlier: readonly ShownRow[];
  /** Every result since a person last spoke; else the last answer. And what came after it. */
  latest: readonly ShownRow[];
  pending: readonly OutboxEntry[];
  draft: Draft | null;
  /** Messages that wait until the current work has reported, oldest first. */
  queued: readonly { clientMsgId: string; text: string }[];
  /** Buttons that were pressed and are not confirmed yet; of a proposal its id and the word on it. */
  pressed: readonly string[];
};

export type Item =
  | { kind: "row"; key: string; seq: number; row: Exclude<WidgetRow, { kind: "topic" | "amend" }> }
  | { kind: "topic"; key: string; topic: TopicView }
  | { kind: "draft"; key: string; draft: Draft }
  | { kind: "pending"; key: string; entry: OutboxEntry };

const isSend = (entry: OutboxEntry): boolean => entry.frame.t === "send";

/** Messages of the outbox that belong to a thread and whose row is not on the page yet. */
function pendingOf(outbox: Outbox, rows: readonly ShownRow[], threadIds: readonly string[]): OutboxEntry[] {
  const shown = new Set(rows.map(({ row }) => (row.kind === "message" ? row.clientMsgId : undefined)));
  return outbox.entries.filter((entry) => isSend(entry) && threadIds.includes(entry.frame.threadId) && !shown.has(entry.frame.clientMsgId));
}

/** The conversation as it counts now: edited words stand for the first ones, and what was taken back is gone. */
export function amended(rows: readonly ShownRow[]): ShownRow[] {
  const words = new Map<string, string | null>();
  for (const { row } of rows) {
    if (row.kind !== "amend") continue;
    if (row.change === "edit") words.set(row.of, row.text);
    if (row.change === "withdraw") words.set(row.of, null);
  }
  return rows.flatMap((shown) => {
    const { row } = shown;
    if (row.kind === "amend") return [];
    if (row.kind !== "message" || row.clientMsgId === undefined) return [shown];
    const text = words.get(row.clientMsgId);
    return text === undefined ? [shown] : text === null ? [] : [{ ...shown, row: { ...row, text } }];
  });
}

const isResult = ({ row }: ShownRow): boolean => row.kind === "reply" && row.replyKind === "relay";

/** What the line says behind which earlier rows are. */
export function foldWords(earlier: readonly ShownRow[]): string {
  const results = earlier.filter(isResult).length;
  return `${earlier.length} earlier messages${results === 0 ? "" : ` (${results} ${results === 1 ? "result" : "results"})`}`;
}

function topicView(state: Conversation, outbox: Outbox, row: Extract<WidgetRow, { kind: "topic" }>): TopicView {
  const rows = state.rows[row.topicThreadId] ?? [];
  const card = state.cards[row.taskId] ?? null;
  const backlog = card?.backlog ?? [];
  const said = amended(rows);
  const idOf = (shown: ShownRow): string => (shown.row.kind === "message" ? (shown.row.clientMsgId ?? "") : "");
  const queued = backlog.flatMap((id) => {
    const shown = said.find((each) => idOf(each) === id);
    return shown?.row.kind === "message" ? [{ clientMsgId: id, text: shown.row.text }] : [];
  });
  const all = said.filter((shown) => !backlog.includes(idOf(shown)));
  const lastReply = all.findLastIndex((shown) => shown.row.kind === "reply");
  // Whoever queued several messages gets several results.
  const lastMessage = all.findLastIndex((shown) => shown.row.kind === "message");
  const result = all.findIndex((shown, at) => at > lastMessage && isResult(shown));
  // The first row repeats the request that stands above the card: it is shown only together with others.
  const cut = result >= 0 ? result : lastReply < 0 ? Math.min(1, all.length) : lastReply;
  const pressed = outbox.entries.flatMap(({ frame }) => {
    if ((frame.t !== "act" && frame.t !== "decide") || frame.taskId !== row.taskId) return [];
    return [frame.t === "act" ? frame.action : frame.offer];
  });
  return {
    taskId: row.taskId,
    threadId: row.topicThreadId,
    title: row.title,
    atMs: row.atMs,
    card,
    earlier: all.slice(0, cut),
    latest: all.slice(cut),
    pending: pendingOf(outbox, rows, [row.topicThreadId]),
    draft: state.drafts[row.topicThreadId] ?? null,
    queued,
    pressed,
  };
}

/** A draft and its row are one place on the page, as a message and its row are. */
const replyKey = (outboundId: string): string => `reply:${outboundId}`;
const rowKey = (row: WidgetRow, seq: number): string => {
  if (row.kind === "message" && row.clientMsgId) return `row:${row.clientMsgId}`;
  return row.kind === "reply" && row.id !== undefined ? replyKey(row.id) : `row:${seq}`;
};

function itemOf({ seq, row }: ShownRow, state: Conversation, outbox: Outbox): Item[] {
  if (row.kind === "amend") return [];
  return row.kind === "topic"
    ? [{ kind: "topic", key: row.taskId, topic: topicView(state, outbox, row) }]
    : [{ kind: "row", key: rowKey(row, seq), seq, row }];
}

/** The page from top to bottom: messages, tasks as cards, and what waits to be sent. */
export function itemsOf(state: Conversation, outbox: Outbox): Item[] {
  const rootId = state.welcome?.rootThreadId ?? null;
  const rows = rootId === null ? [] : (state.rows[rootId] ?? []);
  const items = rows.flatMap((shown) => itemOf(shown, state, outbox));
  const draft = rootId === null ? undefined : state.drafts[rootId];
  if (draft) items.push({ kind: "draft", key: replyKey(draft.draftId), draft });
  const pending = pendingOf(outbox, rows, rootId === null ? [rootPlaceholder] : [rootPlaceholder, rootId]);
  return [...items, ...pending.map((entry): Item => ({ kind: "pending", key: `row:${entry.frame.clientMsgId}`, entry }))];
}

/** Drops delivered messages whose row is on the page: the row stands for them from here on. */
export function settleDelivered(outbox: Outbox, state: Conversation): Outbox {
  const delivered = outbox.entries.filter((entry) => entry.state === "delivered");
  if (delivered.length === 0) return outbox;
  const shown = new Set(
    Object.values(state.rows).flatMap((rows) => rows.map(({ row }) => (row.kind === "message" ? row.clientMsgId : undefined))),
  );
  const entries = outbox.entries.filter((entry) => entry.state !== "delivered" || !shown.has(entry.frame.clientMsgId));
  return entries.length === outbox.entries.length ? outbox : { ...outbox, entries };
}

/** How many tasks wait for the person. */
export const waitingCount = (state: Conversation): number => Object.values(state.cards).filter((card) => statusView(card).forYou).length;

/** Without the marks of Markdown, which nobody wants to hear; a star or a bracket that marks nothing (`*.md`, `name[bot]`) stays. */
const spokenText = (text: string): string =>
  text
    .replace(/\[([^\]\n]*)\]\([^)\n]*\)/g, "$1")
    .replace(/(\*{1,3})(?=\S)([^*\n]*[^*\s])\1/g, "$2")
    .replace(/^\s*(?:- |#+ |> ?)|`/gm, "")
    .slice(0, 400);

/** What a screen reader hears of a frame; null when it is nothing new or nothing of interest. Ask before the frame is applied. */
export function announcement(before: Conversation, frame: WidgetServerFrame): string | null {
  if (!before.caughtUp) return null;
  switch (frame.t) {
    case "row": {
      if (before.rows[frame.threadId]?.some(({ seq }) => seq === frame.seq)) return null;
      return frame.row.kind === "reply" ? `${before.welcome?.agentName ?? "Answer"}: ${spokenText(frame.row.text)}` : null;
    }
    case "card": {
      const known = before.cards[frame.card.taskId];
      if (known && (known.revision >= frame.card.revision || statusView(known).word === statusView(frame.card).word)) return null;
      return `Task “${frame.card.title}”: ${statusView(frame.card).word}.`;
    }
    case "refused":
      return frame.message;
    // Its row is announced, once: a voice that reads half sentences again and again helps nobody.
    case "draft":
    case "welcome":
    case "ack":
    case "marked":
    case "caught_up":
      return null;
  }
}
