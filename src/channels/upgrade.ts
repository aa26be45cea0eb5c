// The answer to a page that connects: its socket, or a refusal that it can see.
import { closeReason } from "../core/close-frame.ts";

export const upgraded = (page: WebSocket | null, protocol: string): Response =>
  new Response(null, { status: 101, webSocket: page, headers: { "Sec-WebSocket-Protocol": protocol } });

/** Browsers hide the status of a refused upgrade, so it is accepted and closed with a code. */
export function refused(protocol: string, code: number, reason: string): Response {
  const { 0: page, 1: server } = new WebSocketPair();
  server.accept();
  server.close(code, closeReason(reason));
  return upgraded(page, protocol);
}
