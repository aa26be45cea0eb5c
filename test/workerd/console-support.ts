// The console's door as a caller sees it: by bearer token, or as a browser with the cookie.
import { env, exports } from "cloudflare:workers";
import type { Env } from "../../src/env.ts";

export const bindings = env as unknown as Env;
export const origin = "https://switchyard.test";
const bearer = { authorization: "Bearer test-operator-token" };

export const request = (path: string, init: RequestInit = {}): Promise<Response> =>
  (exports as unknown as { default: Fetcher }).default.fetch(new Request(`${origin}${path}`, init));

export const asOperator = (method: string, path: string, body?: unknown): Promise<Response> =>
  request(`/api/console/${path}`, { method, headers: bearer, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });

export async function ok<T>(answer: Promise<Response>): Promise<T> {
  const response = await answer;
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json<T>();
}

/** Signs in and returns the cookie as a browser would send it. */
export async function signIn(): Promise<string> {
  const response = await request("/api/console/session", {
    method: "POST",
    headers: { origin },
    body: JSON.stringify({ token: "test-operator-token" }),
  });
  if (!response.ok) throw new Error(await response.text());
  return (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

export const asBrowser = (cookie: string, method: string, path: string, headers: Record<string, string> = { origin }): Promise<Response> =>
  request(`/api/console/${path}`, { method, headers: { cookie, ...headers }, ...(method === "POST" ? { body: "{}" } : {}) });

/** Opens the board's socket; resolves with its first frame of state, or the code that it was closed with. */
export async function openBoard(
  ticket: string,
  headers: Record<string, string> = { origin },
): Promise<{ socket: WebSocket; first: Promise<{ state: unknown } | { closed: number }>; closed: Promise<number> }> {
  const response = await request("/api/console/board", {
    headers: { upgrade: "websocket", "sec-websocket-protocol": `board.v1, ${ticket}`, ...headers },
  });
  const socket = response.webSocket;
  if (!socket) throw new Error(`no socket: ${response.status} ${await response.text()}`);
  const closed = new Promise<number>((resolve) => socket.addEventListener("close", (event) => resolve(event.code)));
  const state = new Promise<{ state: unknown }>((resolve) =>
    socket.addEventListener("message", (event) => {
      const frame = JSON.parse(String(event.data)) as { type: string; state: unknown };
      if (frame.type === "cf_agent_state") resolve({ state: frame.state });
    }),
  );
  socket.accept();
  return { socket, first: Promise.race([state, closed.then((code) => ({ closed: code }))]), closed };
}
