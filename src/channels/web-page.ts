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
export async function answerFrame(ports: PagePorts, principal: Principal, frame: PageFrame, nowMs: number): Promise<WidgetServerFrame> {
  const { clientMsgId, threadId } = frame;
  const taken = await take(ports, principal, frame, nowMs);
  return "refused" in taken ? { t: "refused", clientMsgId, message: taken.refused } : { t: "ack", clientMsgId, threadId, ...taken };
}

type PageFrame = SendFrame | ActFrame | AmendFrame;
/** `refused`: why not, for people. `seq`: the row that it made. */
type Taken = { refused: string } | { seq?: number };

async function take(ports: PagePorts, principal: Principal, frame: PageFrame, nowMs: number): Promise<Taken> {
  const { threadId } = frame;
  const topic = ports.topic(threadId);
  const press = (button: ActFrame): Taken => {
    ports.press(`${principal.id}:${button.clientMsgId}`, principal, button, nowMs);
    return {};
  };
  if (frame.t === "act" || frame.t === "decide")
    return topic?.taskId === frame.taskId ? press(frame) : { refused: "This task is not on your page any more. Reload it to see what is." };
  const target: Target | null =
    threadId === ports.rootThreadId ? rootTarget(principal) : topic && { threadId, topicOf: topic.taskId, title: topic.title };
  if (!target) return { refused: "This conversation is not on your page any more. Reload it to see what is." };
  if (frame.t === "mark") {
    const refused = await whyNotMark(ports, principal, threadId, frame.of);
    return refused === null ? press(frame) : { refused };
  }
  const waitMs = await waitAtDoor(ports, principal);
  if (waitMs !== null) return { refused: `That was a lot at once, so this was not taken. Send it again in ${inWords(waitMs)}.` };
  const refused = frame.t === "amend" ? whyNotAmend(frame, target) : await whyNotQueue(ports, frame, target);
  if (refused !== null) return { refused };
  if (frame.t === "amend") {
    await ports.append(amendTrigger(frame, principal, target, nowMs));
    return {};
  }
  const raw = fitText(frame.text).cut ? await ports.keepWhole(frame.text, principal) : null;
  const seq = await ports.append(webTrigger(frame, principal, target, nowMs, raw));
  return seq === null ? {} : { seq };
}

/** [T11] It counts against a policy of the team. */
async function whyNotMark(ports: PagePorts, principal: Principal, threadId: ThreadId, of: string): Promise<string | null> {
  if (laneOf(authorityOf(principal)) !== "team") return "Only members of the team can say what was not wanted.";
  const said = saidUnasked(await ports.row(threadId, of));
  return "problem" in said ? said.problem : null;
}

function whyNotAmend(frame: AmendFrame, target: Target): string | null {
  if (target.topicOf === null) return "Only a message to a task can still be changed.";
  const wordless = frame.change === "edit" && frame.text === undefined;
  return wordless ? "A changed message needs its new words. To take it back, remove it." : null;
}

/** Said here, where it can still be said at once; the worker looks again. */
async function whyNotQueue(ports: PagePorts, frame: SendFrame, target: Target): Promise<string | null> {
  if (frame.mode !== "queue" || target.topicOf === null) return null;
  const { cards } = await ports.read(target.threadId, Number.MAX_SAFE_INTEGER, 1);
  const backlog = cards.find((card) => card.taskId === target.topicOf)?.backlog ?? [];
  // A repeat of one that was taken is no new one.
  return backlog.length >= limits.maxBacklog && !backlog.includes(frame.clientMsgId)
    ? `${limits.maxBacklog} messages are queued for this task already. Remove one, or wait until it reports.`
    : null;
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
