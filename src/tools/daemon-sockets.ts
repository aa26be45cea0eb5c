// The sockets of one machine's object. They hibernate: what each is, it carries as its attachment.
import { answeringCode, closeReason } from "../core/close-frame.ts";
import { type CloudFrame, daemonClose, daemonProtocolVersion } from "../protocol/daemon-frames.ts";
import { limits } from "../protocol/limits.ts";
import type { Refusal } from "./daemon-socket.ts";

/** Challenged, at work in an epoch, or `spent`: its challenge was used. */
type Attachment = { nonce: string; host: string; atMs: number } | { epoch: number } | { spent: true };
export type Challenge = { nonce: string; host: string };

/** Sockets that have not proved who they are. */
const maxStrangers = 8;

const attachmentOf = (ws: WebSocket): Attachment => ws.deserializeAttachment() as Attachment;
const attach = (ws: WebSocket, attachment: Attachment): void => ws.serializeAttachment(attachment);

export const superseded: Refusal = { code: daemonClose.superseded, reason: "superseded by a newer connection" };
const revoked: Refusal = { code: daemonClose.revoked, reason: "this machine was revoked; enrol it again" };

/** The epoch that a socket works in; null before its hello. */
export function epochOf(ws: WebSocket): number | null {
  const attachment = attachmentOf(ws);
  return "epoch" in attachment ? attachment.epoch : null;
}

/** When a stranger came; one whose challenge is used has had its chance. */
function dialledMs(ws: WebSocket): number {
  const attachment = attachmentOf(ws);
  return "nonce" in attachment ? attachment.atMs : 0;
}

const sweepMs = 120_000;

export class DaemonSockets {
  readonly #ctx: DurableObjectState;

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  /** [E13] Accepts a connection and challenges it. `host` is where the daemon must have dialled: its signature is bound to it. */
  accept(host: string, nonce: string, atMs: number): Response {
    // The platform lists sockets in no promised order: those that have waited longest go first.
    const strangers = this.#strangers().sort((a, b) => dialledMs(a) - dialledMs(b));
    for (const ws of strangers.slice(0, Math.max(0, strangers.length - maxStrangers + 1)))
      close(ws, { code: daemonClose.unauthorised, reason: "too many connections without a hello" });
    const { 0: client, 1: server } = new WebSocketPair();
    this.#ctx.acceptWebSocket(server);
    attach(server, { nonce, host, atMs });
    server.send(frameText({ t: "challenge", v: daemonProtocolVersion, nonce }));
    return new Response(null, { status: 101, webSocket: client });
  }

  #strangers(): WebSocket[] {
    return this.#ctx.getWebSockets().filter((ws) => ws.readyState === WebSocket.OPEN && epochOf(ws) === null);
  }

  /**
   * When to look for peers that are gone without a word: soon where something runs or somebody has not said who they are, else rarely,
   * since whoever asks something of the machine looks first.
   */
  sweepAtMs(running: number): number {
    return Date.now() + (running > 0 || this.#strangers().length > 0 ? sweepMs : 10 * sweepMs);
  }

  /** Takes a socket's challenge: it is good for one hello, right or wrong. Null when it was used. */
  spend(ws: WebSocket): Challenge | null {
    const attachment = attachmentOf(ws);
    if (!("nonce" in attachment)) return null;
    attach(ws, { spent: true });
    return attachment;
  }

  /** From now on this socket is the machine's; every older one is closed and told why. */
  promote(ws: WebSocket, epoch: number): void {
    attach(ws, { epoch });
    for (const other of this.#ctx.getWebSockets()) if (other !== ws && epochOf(other) !== null) close(other, superseded);
  }

  live(epoch: number | undefined): WebSocket | null {
    return this.#ctx.getWebSockets().find((ws) => ws.readyState === WebSocket.OPEN && epochOf(ws) === epoch) ?? null;
  }

  /** Without a live socket nothing is lost: the next hello reconciles what the ledger says was sent. */
  send(epoch: number | undefined, frames: readonly CloudFrame[]): void {
    const socket = frames.length > 0 ? this.live(epoch) : null;
    if (socket) for (const frame of frames) socket.send(frameText(frame));
  }

  revoke(): void {
    for (const ws of this.#ctx.getWebSockets()) close(ws, revoked);
  }

  /** Open sockets that fell silent, or never said hello, each with why it is closed; and how many others are left. */
  silent(nowMs: number, sinceMs: number): { silent: { ws: WebSocket; refusal: Refusal }[]; left: number } {
    const open = this.#ctx.getWebSockets().filter((ws) => ws.readyState === WebSocket.OPEN);
    const silent = open.filter((ws) => nowMs - this.#heardMs(ws, sinceMs) > 3 * limits.daemonPingMs);
    const why = (ws: WebSocket): Refusal =>
      epochOf(ws) === null
        ? { code: daemonClose.unauthorised, reason: "no hello for too long" }
        : { code: 1001, reason: "no ping for too long" };
    return { silent: silent.map((ws) => ({ ws, refusal: why(ws) })), left: open.length - silent.length };
  }

  #heardMs(ws: WebSocket, sinceMs: number): number {
    const attachment = attachmentOf(ws);
    if ("nonce" in attachment) return attachment.atMs;
    if ("spent" in attachment) return 0;
    return Math.max(sinceMs, this.#ctx.getWebSocketAutoResponseTimestamp(ws)?.getTime() ?? 0);
  }
}

const frameText = (frame: CloudFrame): string => JSON.stringify(frame);

/** [E10] Closes a socket with a reason, also one whose peer is closing. What still arrives on it counts for nothing: a peer may ignore a close. */
export function close(ws: WebSocket, { code, reason }: Refusal): void {
  attach(ws, { spent: true });
  if (ws.readyState === WebSocket.OPEN || ws.readyState === WebSocket.CLOSING) ws.close(code, closeReason(reason));
}

export const answerClose = (ws: WebSocket, { code, reason }: Refusal): void => close(ws, { code: answeringCode(code), reason });
