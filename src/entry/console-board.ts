// How a console comes to the live board: a single-use ticket, then one socket.
import { upgraded } from "../channels/upgrade.ts";
import { boardName, readConfig } from "../env.ts";
import { boardClose, boardProtocol, boardSessionHeader } from "../protocol/board-wire.ts";
import { Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import { sessionSecret, signToken, type TokenClaims, verifyToken } from "../storage/tokens.ts";
import { type Access, type ConsoleContext, requireOwnOrigin } from "./console-access.ts";
import { refuseFailed, ticketBeside } from "./upgrade.ts";

type TicketClaims = TokenClaims & { jti: string; via: Access["via"] };

const ticketAudience = "console-ticket";

/** A ticket for one connection, good for half a minute. */
export async function boardTicket(c: ConsoleContext, access: Access): Promise<string> {
  const nowMs = Date.now();
  const sub = access.via === "cookie" ? access.sessionId : "bearer";
  const claims: TicketClaims = { sub, jti: crypto.randomUUID(), via: access.via };
  return signToken(sessionSecret(readConfig(c.env)), ticketAudience, claims, nowMs + limits.ticketMs, nowMs);
}

export async function boardSocket(c: ConsoleContext): Promise<Response> {
  try {
    const claims = await useTicket(c);
    // A request of our own: the object keeps the address of each connection, and nothing of the client's belongs there.
    const request = new Request("https://board.internal/socket", {
      headers: { upgrade: "websocket", connection: "upgrade", [boardSessionHeader]: claims.sub },
    });
    const answer = await c.env.BOARD.getByName(boardName).fetch(request);
    if (answer.status !== 101 || !answer.webSocket) throw new Error(`the board answered ${answer.status}`);
    return upgraded(answer.webSocket, boardProtocol);
  } catch (error) {
    return refuseFailed(error, "console.board", boardProtocol, boardClose.unauthorised);
  }
}

async function useTicket(c: ConsoleContext): Promise<TicketClaims> {
  const ticket = ticketBeside(c, boardProtocol);
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
