// The hibernating sockets of a root Thread: who is behind each, and which frames each may get when. A page first gets what
// it missed, then what happens; frames that come in between are held, so that each thread's rows arrive in order.
import { answeringCode, closeReason } from "../core/close-frame.ts";
import { logFault } from "../log-fault.ts";
import { firstIssue } from "../protocol/issue.ts";
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import {
  type WidgetClientFrame,
  type WidgetServerFrame,
  widgetClientFrame,
  widgetClose,
  widgetProtocol,
} from "../protocol/widget-frames.ts";
import { refused, upgraded } from "./upgrade.ts";

/** Survives hibernation with the socket; small by design. */
type Attachment = { principal: Principal; phase: "new" | "catching_up" | "live" | "ended" };

export class WidgetSockets {
  readonly #ctx: DurableObjectState;
  readonly #isRevoked: (principalId: string) => boolean;
  readonly #held = new Map<WebSocket, WidgetServerFrame[]>();
  readonly #inbound = new WeakMap<WebSocket, Promise<void>>();

  constructor(ctx: DurableObjectState, isRevoked: (principalId: string) => boolean) {
    this.#ctx = ctx;
    this.#isRevoked = isRevoked;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  /** Accepts the upgrade of a verified principal. */
  accept(principal: Principal): Response {
    const { 0: page, 1: server } = new WebSocketPair();
    this.#ctx.acceptWebSocket(server, [tagOf(principal.id)]);
    this.#attach(server, { principal, phase: "new" });
    return upgraded(page, widgetProtocol);
  }

  /**
   * [T7] Whether what a socket says still counts. A close only asks the peer to go: one that ignores it keeps its connection,
   * so what we closed, and whoever was revoked, is not heard any more, whatever arrives.
   */
  #isHeard(ws: WebSocket): boolean {
    const { phase, principal } = this.#attachment(ws);
    return phase !== "ended" && !this.#isRevoked(principal.id);
  }

  /** The principal and frame of a message; null when it is not heard, or broke the protocol and the socket was closed, naming the field. */
  receive(ws: WebSocket, message: string | ArrayBuffer): { principal: Principal; frame: WidgetClientFrame } | null {
    if (!this.#isHeard(ws)) return null;
    const { principal, phase } = this.#attachment(ws);
    const parsed = parseFrame(message);
    if ("problem" in parsed) return this.#protocolError(ws, parsed.problem);
    if (phase === "new" && parsed.frame.t !== "hello") return this.#protocolError(ws, "t: the first frame must be hello");
    if (phase !== "new" && parsed.frame.t === "hello") return this.#protocolError(ws, "t: hello was said already");
    return { principal, frame: parsed.frame };
  }

  send(ws: WebSocket, frame: WidgetServerFrame): void {
    // A socket that closed meanwhile throws; its page resumes by its cursor.
    if (ws.readyState === WebSocket.OPEN) ws.send(JSON.stringify(frame));
  }

  /** A frame for every page of this root. */
  broadcast(frame: WidgetServerFrame): void {
    for (const ws of this.#ctx.getWebSockets()) {
      const { phase } = this.#attachment(ws);
      if (phase === "live") this.send(ws, frame);
      else if (phase === "catching_up") hold(this.#held.get(ws) ?? [], frame);
    }
  }

  /**
   * Brings a page up to date: `missed` sends what it lacks and returns the last sequence number that it sent of each
   * thread; then come the frames that were held, each row once.
   */
  async catchUp(ws: WebSocket, missed: (send: (frame: WidgetServerFrame) => void) => Promise<void>): Promise<void> {
    this.#enter(ws, "catching_up");
    const held: WidgetServerFrame[] = [];
    this.#held.set(ws, held);
    const reached = new Map<string, number>();
    const once = (frame: WidgetServerFrame): void => {
      if (frame.t === "row") {
        if (frame.seq <= (reached.get(frame.threadId) ?? 0)) return;
        reached.set(frame.threadId, frame.seq);
      }
      this.send(ws, frame);
    };
    try {
      await missed(once);
      for (const frame of held) once(frame);
      this.#enter(ws, "live");
      this.send(ws, { t: "caught_up" });
    } catch (error) {
      logFault("widget.catch-up", error);
      this.#end(ws, 1011, "could not read the conversation; connect again");
    } finally {
      this.#held.delete(ws);
    }
  }

  get catchingUp(): boolean {
    return this.#held.size > 0;
  }

  /** Takes the frames of one page in their order. What fails is not acknowledged: the page keeps it, and sends it again. */
  async inOrder(ws: WebSocket, work: () => Promise<void>): Promise<void> {
    const heard = async (): Promise<void> => (this.#isHeard(ws) ? work() : undefined);
    const mine = (this.#inbound.get(ws) ?? Promise.resolve()).then(heard).catch((error: unknown) => {
      logFault("widget.frame", error);
      this.#end(ws, 1011, "not stored; connect again");
    });
    this.#inbound.set(ws, mine);
    await mine;
  }

  closed(ws: WebSocket, code: number): void {
    this.#held.delete(ws);
    ws.close(answeringCode(code));
  }

  /** Sockets whose catch-up died with an earlier instance: their pages connect again and resume. */
  closeStranded(): void {
    for (const ws of this.#ctx.getWebSockets())
      if (this.#attachment(ws).phase === "catching_up" && !this.#held.has(ws)) this.#end(ws, 1012, "connect again");
  }

  /** Closes the sockets of a principal who was revoked. */
  closeOf(principalId: string): number {
    const sockets = this.#ctx.getWebSockets(tagOf(principalId));
    for (const ws of sockets) this.#end(ws, widgetClose.revoked, "Your access was revoked. Ask the team for a new invite.");
    return sockets.length;
  }

  #protocolError(ws: WebSocket, problem: string): null {
    this.#end(ws, widgetClose.protocolError, closeReason(`protocol error: ${problem}`));
    return null;
  }

  /** Closes a socket from our side: from here on it is not heard, also if its peer keeps it open. */
  #end(ws: WebSocket, code: number, reason: string): void {
    this.#enter(ws, "ended");
    ws.close(code, reason);
  }

  /** There is no way back from `ended`. */
  #enter(ws: WebSocket, phase: Attachment["phase"]): void {
    const attachment = this.#attachment(ws);
    if (attachment.phase !== "ended") this.#attach(ws, { ...attachment, phase });
  }

  #attachment(ws: WebSocket): Attachment {
    return ws.deserializeAttachment() as Attachment;
  }

  #attach(ws: WebSocket, attachment: Attachment): void {
    ws.serializeAttachment(attachment satisfies Attachment);
  }
}

/** Of a draft only the newest is held: what it was before is nobody's business any more. */
function hold(held: WidgetServerFrame[], frame: WidgetServerFrame): void {
  const older = frame.t === "draft" ? held.findIndex((known) => known.t === "draft" && known.draftId === frame.draftId) : -1;
  if (older >= 0) held.splice(older, 1);
  held.push(frame);
}

/** A verified ticket, as the Worker hands it to a root: in headers of a request of its own, never the client's. */
export type SocketGrant = { principal: Principal; ticketId: string; expiresMs: number };
const grantHeader = "x-switchyard-grant";

export const socketRequest = (grant: SocketGrant): Request =>
  new Request("https://thread/socket", {
    headers: { Upgrade: "websocket", [grantHeader]: encodeURIComponent(JSON.stringify(grant)) },
  });

export function readSocketGrant(request: Request): SocketGrant | null {
  const header = request.headers.get(grantHeader);
  if (header === null || request.headers.get("Upgrade") !== "websocket") return null;
  return JSON.parse(decodeURIComponent(header)) as SocketGrant;
}

/** Tags have at most 256 characters. */
const tagOf = (principalId: string): string => principalId.slice(0, 256);

export const refuseUpgrade = (code: number, reason: string): Response => refused(widgetProtocol, code, reason);

/** A frame as the protocol defines it, or the field that breaks it. */
function parseFrame(message: string | ArrayBuffer): { frame: WidgetClientFrame } | { problem: string } {
  if (typeof message !== "string") return { problem: "frame: must be text" };
  // UTF-8 is never shorter than UTF-16 units, so most frames need no count.
  if (message.length > limits.maxFrameBytes || new TextEncoder().encode(message).length > limits.maxFrameBytes)
    return { problem: `frame: has more than ${limits.maxFrameBytes} bytes` };
  let json: unknown;
  try {
    json = JSON.parse(message);
  } catch {
    return { problem: "frame: is not JSON" };
  }
  const parsed = widgetClientFrame.safeParse(json);
  return parsed.success ? { frame: parsed.data } : { problem: firstIssue(parsed.error, "frame") };
}
