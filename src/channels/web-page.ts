// What a root Thread does for the pages on its sockets: brings one up to date, takes its messages, passes its buttons on.

import { authorityOf, laneOf } from "../core/authority.ts";
import { saidUnasked, toWidgetRow } from "../core/thread.ts";
import { asFault } from "../protocol/fault.ts";
import type { TaskId, ThreadId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import type { TaskCard } from "../protocol/task.ts";
import type { ThreadRow } from "../protocol/thread.ts";
import type { Trigger } from "../protocol/trigger.ts";
import type { DraftFrame, WidgetClientFrame, WidgetServerFrame } from "../protocol/widget-frames.ts";
import { type AmendFrame, amendTrigger, fitText, rootTarget, type SendFrame, type Target, webTrigger } from "./web.ts";

export type ActFrame = Extract<WidgetClientFrame, { t: "act" | "decide" | "mark" }>;

/** What a page needs of its root, and of the topics under it. */
export type PagePorts = {
  rootThreadId: ThreadId;
  agentName: string;
  /** Why the model cannot work, for people; null when it can. */
  modelProblem: string | null;
  topic: (threadId: ThreadId) => { taskId: TaskId; title: string } | null;
  /** The newest topics, oldest first. */
  topics: (limit: number) => ThreadId[];
  newest: (limit: number) => ThreadRow[];
  /** The team's words on proactive replies. */
  marks: () => { of: string; wrong: boolean }[];
  /** Replies that are being written. */
  drafts: () => DraftFrame[];
  read: (threadId: ThreadId, afterSeq: number, limit: number) => Promise<{ rows: ThreadRow[]; cards: TaskCard[] }>;
  row: (threadId: ThreadId, id: string) => Promise<ThreadRow | null>;
  /** Lets a message in, or throws `rate_limited` with when to come back. */
  admit: (principal: Principal) => Promise<void>;
  /** Keeps a text that a trigger cannot carry whole; returns its artifact. */
  keepWhole: (text: string, by: Principal) => Promise<string>;
  /** Has the trigger judged and appended; resolves once it is durable, with its row when it made one. */
  append: (trigger: Trigger) => Promise<number | null>;
  /** Makes a button durable. */
  press: (id: string, by: Principal, frame: ActFrame, atMs: number) => void;
};

/** A fresh page gets the last rows of its root; one that resumes gets all that it missed. */
const freshRows = 200;
const shownTopics = 30;

/** Takes a message or a button; the answer goes out only after the durable write. */
export async function answerFrame(
  ports: PagePorts,
  principal: Principal,
  frame: SendFrame | ActFrame | AmendFrame,
  nowMs: number,
): Promise<WidgetServerFrame> {
  const { clientMsgId, threadId } = frame;
  const topic = ports.topic(threadId);
  if (frame.t === "act" || frame.t === "decide") {
    if (topic?.taskId !== frame.taskId)
      return { t: "refused", clientMsgId, message: "This task is not on your page any more. Reload it to see what is." };
    ports.press(`${principal.id}:${clientMsgId}`, principal, frame, nowMs);
    return { t: "ack", clientMsgId, threadId };
  }
  const target: Target | null =
    threadId === ports.rootThreadId ? rootTarget(principal) : topic && { threadId, topicOf: topic.taskId, title: topic.title };
  if (!target) return { t: "refused", clientMsgId, message: "This conversation is not on your page any more. Reload it to see what is." };
  if (frame.t === "mark") {
    // [T11] It counts against a policy of the team.
    if (laneOf(authorityOf(principal)) !== "team")
      return { t: "refused", clientMsgId, message: "Only members of the team can say what was not wanted." };
    const said = saidUnasked(await ports.row(threadId, frame.of));
    if ("problem" in said) return { t: "refused", clientMsgId, message: said.problem };
    ports.press(`${principal.id}:${clientMsgId}`, principal, frame, nowMs);
    return { t: "ack", clientMsgId, threadId };
  }
  const waitMs = await waitAtDoor(ports, principal);
  if (waitMs !== null)
    return { t: "refused", clientMsgId, message: `That was a lot at once, so this was not taken. Send it again in ${inWords(waitMs)}.` };
  if (frame.t === "amend") {
    if (target.topicOf === null) return { t: "refused", clientMsgId, message: "Only a message to a task can still be changed." };
    if (frame.change === "edit" && frame.text === undefined)
      return { t: "refused", clientMsgId, message: "A changed message needs its new words. To take it back, remove it." };
    await ports.append(amendTrigger(frame, principal, target, nowMs));
    return { t: "ack", clientMsgId, threadId };
  }
  if (frame.mode === "queue" && target.topicOf !== null) {
    const { cards } = await ports.read(threadId, Number.MAX_SAFE_INTEGER, 1);
    // Said here, where it can still be said at once; the worker looks again.
    const backlog = cards.find((card) => card.taskId === target.topicOf)?.backlog ?? [];
    // A repeat of one that was taken is no new one.
    if (backlog.length >= limits.maxBacklog && !backlog.includes(clientMsgId))
      return {
        t: "refused",
        clientMsgId,
        message: `${limits.maxBacklog} messages are queued for this task already. Remove one, or wait until it reports.`,
      };
  }
  const raw = fitText(frame.text).cut ? await ports.keepWhole(frame.text, principal) : null;
  const seq = await ports.append(webTrigger(frame, principal, target, nowMs, raw));
  return { t: "ack", clientMsgId, threadId, ...(seq === null ? {} : { seq }) };
}

/** How long to wait until a message may come in; null when it may now. */
async function waitAtDoor(ports: PagePorts, principal: Principal): Promise<number | null> {
  try {
    await ports.admit(principal);
    return null;
  } catch (error) {
    const fault = asFault(error);
    if (fault?.kind !== "rate_limited") throw error;
    return fault.retryAfterMs ?? 30_000;
  }
}

const inWords = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000);
  return seconds === 1 ? "a second" : seconds <= 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
};

/** Sends a page what it lacks: `resume` says up to which row it has each thread. */
export async function sendMissed(
  ports: PagePorts,
  principal: Principal,
  resume: Readonly<Record<string, number>>,
  send: (frame: WidgetServerFrame) => void,
): Promise<void> {
  const { rootThreadId, agentName, modelProblem } = ports;
  const model = { ready: modelProblem === null, ...(modelProblem === null ? {} : { note: modelProblem }) };
  send({ t: "welcome", you: { role: principal.role, name: principal.name }, rootThreadId, agentName, model });
  const show = (threadId: ThreadId, rows: readonly ThreadRow[]): void => {
    for (const row of rows) {
      const shown = toWidgetRow(row, principal.id);
      if (shown) send({ t: "row", threadId, seq: row.seq, row: shown });
    }
  };
  const showAll = async (threadId: ThreadId, from: number): Promise<void> => {
    for (let afterSeq = from; ; ) {
      const { rows, cards } = await ports.read(threadId, afterSeq, freshRows);
      show(threadId, rows);
      const last = rows.at(-1);
      if (last && rows.length === freshRows) {
        afterSeq = last.seq;
        continue;
      }
      for (const card of cards) send({ t: "card", threadId, card });
      return;
    }
  };
  const rootSeq = seqOf(resume, rootThreadId);
  if (rootSeq === null) show(rootThreadId, ports.newest(freshRows));
  else await showAll(rootThreadId, rootSeq);
  for (const topicId of ports.topics(shownTopics)) await showAll(topicId, seqOf(resume, topicId) ?? 0);
  for (const mark of ports.marks()) send({ t: "marked", ...mark });
  for (const draft of ports.drafts()) send(draft);
}

/** The page's own word for how far it has a thread; what is no sequence number counts as nothing. */
function seqOf(resume: Readonly<Record<string, number>>, threadId: ThreadId): number | null {
  const seq = Object.hasOwn(resume, threadId) ? resume[threadId] : undefined;
  return seq !== undefined && Number.isSafeInteger(seq) && seq >= 0 ? seq : null;
}
