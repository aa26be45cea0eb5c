// Frames between the widget's page and its root Thread. JSON text, one object a frame.
// Each row has (thread, seq); the page applies each once and resumes with a map thread → seq.
import * as z from "zod/mini";
import { taskId, threadId } from "./ids.ts";
import { limits } from "./limits.ts";
import type { Role } from "./principal.ts";
import type { TaskCard } from "./task.ts";
import type { OutboundState } from "./thread.ts";
import { type Amendment, amendments, type InputMode, inputModes } from "./trigger.ts";

export { widgetClose, widgetProtocol } from "./widget-wire.ts";

const clientMsgId = z.string().check(z.regex(/^[A-Za-z0-9_-]{8,64}$/, "must be 8 to 64 letters, digits, - or _"));

const outboundId = z.string().check(z.regex(/^out_[a-z0-9]+-[a-z0-9]+$/, "is nothing that was said"), z.maxLength(64));

export const widgetClientFrame = z.discriminatedUnion("t", [
  /** First frame: what the page has already. */
  z.object({ t: z.literal("hello"), resume: z.record(z.string(), z.number()) }),
  /** A message into the root, or into a topic's card. Kept in the page's outbox until its ack. */
  z.object({
    t: z.literal("send"),
    clientMsgId,
    threadId,
    text: z.string().check(z.minLength(1, "must not be empty"), z.maxLength(limits.maxMessageChars)),
    replyTo: z.optional(z.object({ id: z.string(), author: z.string(), text: z.string().check(z.maxLength(500)) })),
    /** Into a topic: how it meets a busy worker; `steer` when absent. */
    mode: z.optional(z.enum(inputModes)),
  }),
  /** Changes a message of one's own in a topic that its worker has not taken yet; `of` is that message's clientMsgId. */
  z.object({
    t: z.literal("amend"),
    clientMsgId,
    threadId,
    of: clientMsgId,
    change: z.enum(amendments),
    /** Of a `move`: the queued message that it comes before, last when null, and the card's `backlogRevision` that the person saw. */
    before: z.optional(z.nullable(clientMsgId)),
    revision: z.optional(z.number()),
    text: z.optional(z.string().check(z.minLength(1, "must not be empty"), z.maxLength(limits.maxMessageChars))),
  }),
  /** A button on a card. Acknowledged like a message. */
  z.object({ t: z.literal("act"), clientMsgId, taskId, threadId, action: z.enum(["stop", "continue", "accept", "reject"]) }),
  /** A word on what a task proposed, as it stands on its card. Acknowledged like a message. */
  z.object({
    t: z.literal("decide"),
    clientMsgId,
    taskId,
    threadId,
    offer: outboundId,
    verdict: z.enum(["release", "decline"]),
  }),
  /** A word on a proactive reply of this thread, by its row's id: whether it was wrong to say it. Acknowledged like a message. */
  z.object({ t: z.literal("mark"), clientMsgId, threadId, of: outboundId, wrong: z.boolean() }),
]);
export type WidgetClientFrame = z.infer<typeof widgetClientFrame>;

/** A row as the page shows it: no more than a person needs, nothing of other audiences. */
export type WidgetRow =
  | {
      kind: "message";
      from: { role: Role; name: string; you: boolean };
      text: string;
      clientMsgId?: string;
      mode?: InputMode;
      atMs: number;
    }
  /** An earlier message of the thread was changed; `of` is its clientMsgId. */
  | { kind: "amend"; of: string; change: Amendment; text: string; atMs: number }
  /** `id` is the outbound id: a draft of this id becomes this row. `fullText`: all of it, where `text` was cut. */
  | {
      kind: "reply";
      id?: string;
      replyKind: "reply" | "relay" | "notice";
      text: string;
      fullText?: string;
      state: OutboundState;
      taskId?: string;
      /** Who is of the team may call it unwanted. */
      proactive?: true;
      atMs: number;
    }
  | { kind: "topic"; topicThreadId: string; taskId: string; title: string; atMs: number };

/**
 * A reply while it is written. It is kept nowhere: the newest `rev` counts, the row of the same id replaces it. `interrupted`: whoever
 * wrote it is gone or failed. `dropped`: it will not be said.
 */
export type DraftFrame = {
  t: "draft";
  threadId: string;
  draftId: string;
  rev: number;
  text: string;
  state: "writing" | "interrupted" | "dropped";
};

export type WidgetServerFrame =
  | DraftFrame
  | { t: "welcome"; you: { role: Role; name: string }; rootThreadId: string; agentName: string; model: { ready: boolean; note?: string } }
  | { t: "row"; threadId: string; seq: number; row: WidgetRow }
  /** A send or act is durable. `seq` is its row's, when it made one. */
  | { t: "ack"; clientMsgId: string; threadId: string; seq?: number }
  /** A send or act was refused for good; it leaves the outbox. */
  | { t: "refused"; clientMsgId: string; message: string }
  | { t: "card"; threadId: string; card: TaskCard }
  /** A person's last word on a proactive reply. */
  | { t: "marked"; of: string; wrong: boolean }
  /** All rows before this frame bring the page up to date. */
  | { t: "caught_up" };
