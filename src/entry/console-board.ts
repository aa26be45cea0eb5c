// How a console comes to the live board: a single-use ticket, then one socket.
import { boardName, readConfig } from "../env.ts";
import { boardClose, boardProtocol, boardSessionHeader } from "../protocol/board-wire.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import { sessionSecret, signToken, type TokenClaims, verifyToken } from "../storage/tokens.ts";
import { type Access, type ConsoleContext, requireOwnOrigin } from "./console-access.ts";

type TicketClaims = TokenClaims & { jti: string; via: Access["via"] };

const ticketAudience = "console-ticket";
/** The standard close code for a passing state of the server. */
const tryAgainLater = 1013;

/** A ticket for one connection, good for half a minute. */
export async function boardTicket(c: ConsoleContext, access: Access): Promise<string> {
  const nowMs = Date.now();
  const sub = access.via === "cookie" ? access.sessionId : "bearer";
  const claims: TicketClaims = { sub, jti: crypto.randomUUID(), via: access.via };
  return signToken(sessionSecret(readConfig(c.env)), ticketAudience, claims, nowMs + limits.ticketMs, nowMs);
}

/** The upgrade. A browser hides the status of a refused one, so a refusal is a close code. */
export async function boardSocket(c: ConsoleContext): Promise<Response> {
  try {
    const claims = await useTicket(c);
    // A request of our own: the object keeps the address of each connection, and nothing of the client's belongs there.
    const request = new Request("https://board.internal/socket", {
      headers: { upgrade: "websocket", connection: "upgrade", [boardSessionHeader]: claims.sub },
    });
    const answer = await c.env.BOARD.getByName(boardName).fetch(request);
    if (answer.status !== 101 || !answer.webSocket) throw new Error(`the board answered ${answer.status}`);
    return upgraded(answer.webSocket);
  } catch (error) {
    const fault = asFault(error);
    if (fault === null) console.error(JSON.stringify({ at: "console.board", error: String(error) }));
    const code = fault === null || fault.retry === "later" ? tryAgainLater : boardClose.unauthorised;
    const { 0: page, 1: server } = new WebSocketPair();
    server.accept();
    server.close(code, (fault?.message ?? "Something went wrong on our side; try again in a minute.").slice(0, 120));
    return upgraded(page);
  }
}

async function useTicket(c: ConsoleContext): Promise<TicketClaims> {
  const [protocol, ticket] = (c.req.header("sec-websocket-protocol") ?? "").split(",").map((part) => part.trim());
  if (protocol !== boardProtocol) throw new Fault("bad_input", `The first protocol must be ${boardProtocol}.`);
  const nowMs = Date.now();
  const claims = ticket ? await verifyToken<TicketClaims>(sessionSecret(readConfig(c.env)), ticketAudience, ticket, nowMs) : null;
  if (claims === null) throw new Fault("unauthorised", "This ticket is wrong or too old; get a new one.");
  requireOwnOrigin(c, claims.via);
  const fresh = await c.env.BOARD.getByName(boardName).redeem({
    ticketId: claims.jti,
    sessionId: claims.sub,
    expiresMs: claims.expiresMs,
    nowMs,
  });
  if (!fresh) throw new Fault("unauthorised", "This ticket was used already, or its session has ended; get a new one.");
  return claims;
}

const upgraded = (page: WebSocket): Response =>
  new Response(null, { status: 101, webSocket: page, headers: { "Sec-WebSocket-Protocol": boardProtocol } });
