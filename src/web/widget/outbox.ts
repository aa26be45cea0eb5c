// What a person sent and the cloud has not yet confirmed. Nothing leaves it but by an ack or a refusal.
import type { WidgetClientFrame } from "../../protocol/widget-frames.ts";

export type OutboxFrame = Extract<WidgetClientFrame, { t: "send" | "act" | "amend" | "decide" | "mark" }>;

/** `waiting`: not sent on this connection; `sent`: on its way; `delivered`: durable in the cloud, its row not shown yet. */
export type OutboxEntry = { frame: OutboxFrame; atMs: number; state: "waiting" | "sent" | "delivered" };
type Refusal = { frame: OutboxFrame; message: string };
/** `pressed`: the newest buttons that are durable; what comes of one is known later, and may be a refusal. */
export type Outbox = { entries: readonly OutboxEntry[]; refusals: readonly Refusal[]; pressed: readonly OutboxFrame[] };

/** More are not pressed within the moment that one takes. */
const maxPressed = 20;

/** Stands for the root thread while its id is not known yet; replaced when the entry is sent. */
export const rootPlaceholder = "root";

export const emptyOutbox: Outbox = { entries: [], refusals: [], pressed: [] };

const idOf = (entry: { frame: OutboxFrame }): string => entry.frame.clientMsgId;

/** Adds a frame once; the same id again changes nothing. */
export const enqueue = (outbox: Outbox, frame: OutboxFrame, atMs: number): Outbox =>
  outbox.entries.some((entry) => idOf(entry) === frame.clientMsgId)
    ? outbox
    : { ...outbox, entries: [...outbox.entries, { frame, atMs, state: "waiting" }] };

const mark = (outbox: Outbox, clientMsgId: string, state: OutboxEntry["state"]): Outbox => ({
  ...outbox,
  entries: outbox.entries.map((entry) => (idOf(entry) === clientMsgId ? { ...entry, state } : entry)),
});

/** On its way. What is durable already stays so, whatever comes late. */
export const markSent = (outbox: Outbox, clientMsgId: string): Outbox =>
  outbox.entries.some((entry) => idOf(entry) === clientMsgId && entry.state === "waiting") ? mark(outbox, clientMsgId, "sent") : outbox;

/** The connection is gone: what was on its way may not have arrived and is sent again. Repeats are harmless by their id. */
export const disconnected = (outbox: Outbox): Outbox => ({
  ...outbox,
  entries: outbox.entries.map((entry) => (entry.state === "sent" ? { ...entry, state: "waiting" } : entry)),
});

/** Durable in the cloud. A message stays in sight until its row arrives; a button press has no row of its own. */
export function acknowledge(outbox: Outbox, clientMsgId: string): Outbox {
  const entry = outbox.entries.find((candidate) => idOf(candidate) === clientMsgId);
  if (entry?.frame.t === "send") return mark(outbox, clientMsgId, "delivered");
  return entry ? { ...without(outbox, clientMsgId), pressed: [...outbox.pressed, entry.frame].slice(-maxPressed) } : outbox;
}

/** Refused for good: it leaves, and its words stay on the page so that nothing typed is lost. */
export function refuse(outbox: Outbox, clientMsgId: string, message: string): Outbox {
  const frame =
    outbox.entries.find((candidate) => idOf(candidate) === clientMsgId)?.frame ??
    outbox.pressed.find((candidate) => candidate.clientMsgId === clientMsgId);
  if (!frame) return outbox;
  const rest = without(outbox, clientMsgId);
  const pressed = rest.pressed.filter((candidate) => candidate !== frame);
  return { ...rest, pressed, refusals: [...rest.refusals, { frame, message }] };
}

const without = (outbox: Outbox, clientMsgId: string): Outbox => ({
  ...outbox,
  entries: outbox.entries.filter((entry) => idOf(entry) !== clientMsgId),
});

export const dismissRefusal = (outbox: Outbox, clientMsgId: string): Outbox => ({
  ...outbox,
  refusals: outbox.refusals.filter((refusal) => refusal.frame.clientMsgId !== clientMsgId),
});

/** The frames to send now, oldest first, with the root's real id. */
export const dueFrames = (outbox: Outbox, rootThreadId: string): OutboxFrame[] =>
  outbox.entries
    .filter((entry) => entry.state === "waiting")
    .map(({ frame }) => (frame.threadId === rootPlaceholder ? { ...frame, threadId: rootThreadId } : frame));

/** An entry as it is kept across a reload; null when what was kept is not one. */
export function parseEntry(text: string): OutboxEntry | null {
  try {
    const { frame, atMs } = JSON.parse(text) as { frame: OutboxFrame; atMs: number };
    const content =
      frame.t === "send"
        ? frame.text
        : frame.t === "act"
          ? frame.taskId && frame.action
          : frame.t === "decide"
            ? frame.offer && frame.verdict
            : frame.t === "mark"
              ? frame.of
              : frame.of && frame.change;
    if ([frame.clientMsgId, frame.threadId, content].some((field) => typeof field !== "string")) return null;
    return { frame, atMs: typeof atMs === "number" ? atMs : 0, state: "waiting" };
  } catch {
    // Kept by an older version, or damaged: there is nothing in it that could be sent.
    return null;
  }
}

export const serialiseEntry = (entry: OutboxEntry): string => JSON.stringify({ frame: entry.frame, atMs: entry.atMs });
