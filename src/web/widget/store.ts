// The widget's state and the one connection that feeds it.
import { batch, computed, signal } from "@preact/signals";
import ReconnectingSocket from "partysocket/ws";
import type { Amendment, InputMode, MoveTo } from "../../protocol/trigger.ts";
import type { WidgetClientFrame, WidgetServerFrame } from "../../protocol/widget-frames.ts";
import { widgetClose, widgetProtocol } from "../../protocol/widget-wire.ts";
import { DoorError } from "../shared/fetch-json.ts";
import { forgetEntry, keepEntry, keptEntries } from "./keep.ts";
import { announcement, applyFrame, emptyConversation, itemsOf, resumeMap, settleDelivered, waitingCount } from "./model.ts";
import {
  acknowledge,
  disconnected,
  dismissRefusal,
  dueFrames,
  emptyOutbox,
  enqueue,
  markSent,
  type OutboxFrame,
  refuse,
  rootPlaceholder,
} from "./outbox.ts";
import { Session } from "./session.ts";

/** How the page is connected. `ended` does not come back by itself; its sentence says what to do. */
export type Link = { kind: "connecting" } | { kind: "open" } | { kind: "offline" } | { kind: "ended"; message: string; retry: boolean };

export const conversation = signal(emptyConversation);
export const outbox = signal(emptyOutbox);
export const link = signal<Link>({ kind: "connecting" });
export const spoken = signal("");
/** One sentence about this visit, to be dismissed: an invite that could not be used, and the like. */
export const visitNote = signal<string | null>(null);
/** Whether the person is of the team. */
export const ofTeam = computed(() => ["owner", "member"].includes(conversation.value.welcome?.you.role ?? ""));
export const items = computed(() => itemsOf(conversation.value, outbox.value));
export const waiting = computed(() => waitingCount(conversation.value));

/** A frame that is not confirmed within this time makes us ask whether anybody is there. */
const ackDueMs = 3_000;
/** Who does not answer within this time is not there: the connection is dead, whatever it says. */
const probeMs = 4_000;
const offlineAfterMs = 4_000;
/** A connection that is silent for two of these is dead: a laptop that slept, a network that changed. */
const pingMs = 25_000;

let session: Session | null = null;
let socket: ReconnectingSocket | null = null;
let person = "";
let heardMs = 0;
let ackTimer: ReturnType<typeof setTimeout> | undefined;
let offlineTimer: ReturnType<typeof setTimeout> | undefined;

/** Starts the page: shows what the outbox kept, and connects. */
export function start(hostOrigin: string, invite: string | null): void {
  session = new Session(hostOrigin, invite);
  session.onInviteRefused = (message) => {
    visitNote.value = message;
  };
  becomePerson(session.rootThreadId ?? `new:${hostOrigin}`);
  connect(session);
  addEventListener("online", () => {
    if (link.value.kind !== "ended") socket?.reconnect();
  });
  addEventListener("offline", () => {
    lost();
    if (link.value.kind === "ended") return;
    link.value = { kind: "offline" };
    socket?.send("ping");
  });
  setInterval(() => {
    if (!socket || link.value.kind !== "open") return;
    if (Date.now() - heardMs < 2 * pingMs) {
      socket.send("ping");
      return;
    }
    lost();
    socket.reconnect();
  }, pingMs);
}

/** The outbox belongs to a person. What was typed before we knew who it is goes along. */
function becomePerson(next: string): void {
  if (next === person) return;
  const adopted = person.startsWith("new:") ? outbox.value.entries : [];
  for (const entry of adopted) {
    forgetEntry(person, entry.frame.clientMsgId);
    keepEntry(next, entry);
  }
  person = next;
  outbox.value = { ...emptyOutbox, entries: keptEntries(next) };
  for (const entry of adopted) outbox.value = enqueue(outbox.value, entry.frame, entry.atMs);
  conversation.value = emptyConversation;
}

function connect(current: Session): void {
  let next: ReturnType<Session["ticket"]> | null = null;
  // Address and protocols of one attempt come from the same ticket.
  const ticket = () => {
    next ??= current
      .ticket()
      .then((given) => {
        becomePerson(given.rootThreadId);
        return given;
      })
      .catch((error: unknown) => {
        next = null;
        if (error instanceof DoorError && (error.status === 403 || error.status === 400)) end(error.message, error.status !== 403);
        throw error;
      });
    return next;
  };
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const url = async () => `${scheme}://${location.host}/api/widget/socket?thread=${(await ticket()).rootThreadId}`;
  const protocols = async () => {
    const { ticket: given } = await ticket();
    next = null;
    return [widgetProtocol, given];
  };
  socket?.close();
  // The jitter keeps the pages of a team from coming back in one moment after a deploy.
  const opened = new ReconnectingSocket(url, protocols, {
    minReconnectionDelay: 500 + Math.random() * 1000,
    maxReconnectionDelay: 15_000,
    reconnectionDelayGrowFactor: 1.6,
    connectionTimeout: 10_000,
    maxEnqueuedMessages: 0,
  });
  socket = opened;
  watchGap();
  opened.addEventListener("open", () => send({ t: "hello", resume: resumeMap(conversation.value) }));
  opened.addEventListener("message", (event) => {
    heardMs = Date.now();
    // A browser without a network may still reach a server on its own machine.
    if (event.data === "pong" && link.value.kind === "offline") {
      link.value = { kind: "open" };
      flush();
    }
    if (event.data !== "pong") receive(JSON.parse(String(event.data)) as WidgetServerFrame);
  });
  opened.addEventListener("error", lost);
  opened.addEventListener("close", (event) => {
    lost();
    if (event.code === widgetClose.revoked) {
      current.forget();
      end("You are signed out: your access was withdrawn. Ask the team for a new invite link.", false);
    } else if (event.code === widgetClose.protocolError) {
      end(`This page and the server do not understand each other (${event.reason || "protocol error"}). Reload the page.`, true);
    }
  });
}

function lost(): void {
  clearTimeout(ackTimer);
  ackTimer = undefined;
  outbox.value = disconnected(outbox.value);
  if (link.value.kind === "open") link.value = { kind: "connecting" };
  watchGap();
}

/** A short gap is nobody's business: it is said only when it lasts. */
function watchGap(): void {
  if (link.value.kind !== "connecting") return;
  offlineTimer ??= setTimeout(() => {
    offlineTimer = undefined;
    if (link.value.kind === "connecting") link.value = { kind: "offline" };
  }, offlineAfterMs);
}

function end(message: string, retry: boolean): void {
  clearTimeout(offlineTimer);
  offlineTimer = undefined;
  link.value = { kind: "ended", message, retry };
  socket?.close();
}

/** Connects again after an end that can be helped. */
export function retry(): void {
  if (!session) return;
  link.value = { kind: "connecting" };
  connect(session);
}

function send(frame: WidgetClientFrame): boolean {
  return socket !== null && socket.readyState === socket.OPEN && socket.send(JSON.stringify(frame));
}

function receive(frame: WidgetServerFrame): void {
  const heard = announcement(conversation.value, frame);
  batch(() => {
    conversation.value = applyFrame(conversation.value, frame);
    if (heard !== null) spoken.value = heard;
    switch (frame.t) {
      case "welcome":
        clearTimeout(offlineTimer);
        offlineTimer = undefined;
        link.value = { kind: "open" };
        break;
      case "ack":
        outbox.value = acknowledge(outbox.value, frame.clientMsgId);
        forgetEntry(person, frame.clientMsgId);
        break;
      case "refused":
        outbox.value = refuse(outbox.value, frame.clientMsgId, frame.message);
        forgetEntry(person, frame.clientMsgId);
        break;
      case "row":
      case "card":
      case "draft":
      case "marked":
      case "caught_up":
        break;
    }
    outbox.value = settleDelivered(outbox.value, conversation.value);
  });
  flush();
}

/** Sends what waits, oldest first; each is kept until its ack. */
function flush(): void {
  const rootThreadId = conversation.value.welcome?.rootThreadId;
  if (link.value.kind !== "open" || rootThreadId === undefined) return;
  for (const frame of dueFrames(outbox.value, rootThreadId)) {
    if (!send(frame)) break;
    outbox.value = markSent(outbox.value, frame.clientMsgId);
  }
  const underWay = outbox.value.entries.some((entry) => entry.state === "sent");
  if (!underWay) {
    clearTimeout(ackTimer);
    ackTimer = undefined;
  } else {
    ackTimer ??= setTimeout(probe, ackDueMs);
  }
}

/** An answer is slow, or nobody is there: any word from the other side tells which. */
function probe(): void {
  const askedMs = Date.now();
  socket?.send("ping");
  ackTimer = setTimeout(() => {
    ackTimer = undefined;
    if (heardMs >= askedMs) return flush();
    lost();
    socket?.reconnect();
  }, probeMs);
}

function put(frame: OutboxFrame): void {
  outbox.value = enqueue(outbox.value, frame, Date.now());
  const entry = outbox.value.entries.find((candidate) => candidate.frame.clientMsgId === frame.clientMsgId);
  if (entry) keepEntry(person, entry);
  flush();
}

const newId = (): string => crypto.randomUUID().replaceAll("-", "");

/** Says something in the root (`null`) or in a task's topic, where it may be queued or interrupt. */
export const say = (threadId: string | null, text: string, mode?: InputMode): void =>
  put({
    t: "send",
    clientMsgId: newId(),
    threadId: threadId ?? conversation.value.welcome?.rootThreadId ?? rootPlaceholder,
    text,
    ...(mode === undefined || mode === "steer" ? {} : { mode }),
  });

/** Changes a message that its task has not read yet. */
export function amend(threadId: string, of: string, change: Amendment, how: MoveTo & { text?: string } = {}): undefined {
  put({ t: "amend", clientMsgId: newId(), threadId, of, change, ...how });
}

export function act(topic: { taskId: string; threadId: string }, action: "stop" | "continue" | "accept" | "reject"): void {
  put({ t: "act", clientMsgId: newId(), taskId: topic.taskId, threadId: topic.threadId, action });
}

/** A word on what a task proposed. */
export function decide({ taskId, threadId }: { taskId: string; threadId: string }, offer: string, verdict: "release" | "decline"): void {
  put({ t: "decide", clientMsgId: newId(), taskId, threadId, offer, verdict });
}

/** Whether a proactive reply was wrong; shown at once. */
export function mark(threadId: string, of: string, wrong: boolean): void {
  conversation.value = applyFrame(conversation.value, { t: "marked", of, wrong });
  put({ t: "mark", clientMsgId: newId(), threadId, of, wrong });
}

export const dropRefusal = (clientMsgId: string): void => {
  outbox.value = dismissRefusal(outbox.value, clientMsgId);
};
