// The console's state: who is signed in, the live board, the page that is shown.
import { computed, signal } from "@preact/signals";
import ReconnectingSocket from "partysocket/ws";
import type { BoardState } from "../../protocol/board.ts";
import { boardClose, boardProtocol } from "../../protocol/board-wire.ts";
import type { SessionAnswer } from "../../protocol/console.ts";
import { messageOf } from "../../protocol/fault.ts";
import { DoorError, fetchJson } from "../shared/fetch-json.ts";
import { parseRoute, searchLink, waitingOf } from "./model.ts";

export type Access = { kind: "unknown" } | { kind: "out"; message: string | null } | { kind: "in" };
export type Question = { title: string; text: string; yes: string; run: () => Promise<void> };

export const access = signal<Access>({ kind: "unknown" });
export const board = signal<BoardState | null>(null);
export const live = signal(false);
export const route = signal(parseRoute(location.hash));
/** What is looked for. */
export const query = computed(() => (route.value.page === "search" ? route.value.words : ""));
/** A change that waits for its confirmation. */
export const question = signal<Question | null>(null);
/** What just happened, said once. */
export const toast = signal<string | null>(null);
export const waitingForYou = computed(() => (board.value === null ? 0 : waitingOf(board.value).length));

let socket: ReconnectingSocket | null = null;
let toastTimer: ReturnType<typeof setTimeout> | undefined;

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
  // Whoever types goes on typing.
  if (route.value.page === "search" && document.activeElement?.id === "search") return;
  scrollTo(0, 0);
  document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
});

/** Looks for words, from any page: the address says which, and one step back leads to where the search began. */
export function search(words: string): void {
  if (route.value.page === "search") history.replaceState(null, "", searchLink(words));
  else location.hash = searchLink(words);
  // At once: the next letter may come before the browser says that the address has changed, and must not be another step back.
  route.value = { page: "search", words };
}

export function say(message: string): void {
  toast.value = message;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    toast.value = null;
  }, 8000);
}

/** A call to the console's API. Signed out meanwhile: the sign-in page comes, and the error goes on. */
export async function api<T>(method: "GET" | "POST", path: string, body?: unknown): Promise<T> {
  try {
    return await fetchJson<T>(method, `/api/console/${path}`, method === "POST" ? (body ?? {}) : undefined);
  } catch (error) {
    if (error instanceof DoorError && error.status === 401 && access.value.kind === "in") leave("Your session has ended. Sign in again.");
    throw error;
  }
}

/** Runs a change and says how it went. */
export async function change(run: () => Promise<unknown>, done: string): Promise<void> {
  try {
    await run();
    say(done);
  } catch (error) {
    say(messageOf(error));
  }
}

function leave(message: string | null): void {
  socket?.close();
  socket = null;
  live.value = false;
  board.value = null;
  access.value = { kind: "out", message };
}

export async function signIn(token: string): Promise<void> {
  await fetchJson("POST", "/api/console/session", { token });
  follow();
}

export async function signOut(): Promise<void> {
  await change(() => api("POST", "session/end"), "Signed out.");
  leave(null);
}

/** Follows the board. Each connection has a ticket of its own; when none is given we are signed out. */
export function follow(): void {
  socket?.close();
  const protocols = async () => {
    // Who has no session is not refused a ticket: browsers log every refusal as an error.
    if (access.value.kind !== "in") {
      const session = await fetchJson<SessionAnswer>("GET", "/api/console/session");
      if (!session.open) {
        leave(session.message);
        throw new Error("signed out");
      }
    }
    try {
      const { ticket } = await fetchJson<{ ticket: string }>("POST", "/api/console/ticket", {});
      access.value = { kind: "in" };
      return [boardProtocol, ticket];
    } catch (error) {
      if (error instanceof DoorError && error.status !== 0 && error.status < 500) leave(error.message);
      throw error;
    }
  };
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const opened = new ReconnectingSocket(`${scheme}://${location.host}/api/console/board`, protocols, {
    minReconnectionDelay: 500 + Math.random() * 1000,
    maxReconnectionDelay: 15_000,
    connectionTimeout: 10_000,
  });
  socket = opened;
  opened.addEventListener("message", (event) => {
    const frame = JSON.parse(String(event.data)) as { type?: string; state?: BoardState };
    if (frame.type !== "cf_agent_state" || !frame.state) return;
    board.value = frame.state;
    live.value = true;
  });
  opened.addEventListener("close", (event) => {
    live.value = false;
    if (event.code === boardClose.signedOut && socket === opened) leave("You signed out in another window.");
  });
}
