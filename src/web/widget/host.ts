// The page that frames us. It is believed only what the browser says of it: its window and its origin.
import { signal } from "@preact/signals";

export type HostMessage =
  | { switchyard: 1; kind: "hello"; invite?: string; title?: string }
  | { switchyard: 1; kind: "shown"; shown: boolean };
export type FrameMessage = { switchyard: 1; kind: "ready" | "close" } | { switchyard: 1; kind: "attention"; count: number };

/** Whether the panel is open on the host's page; a page of its own is always open. */
export const shown = signal(window.parent === window);
export const framed = window.parent !== window;
export const hostTitle = signal<string | null>(null);

let hostOrigin: string | null = null;

export function tellHost(message: FrameMessage): void {
  if (framed && hostOrigin !== null) window.parent.postMessage(message, hostOrigin);
}

/** An invite in our own address, taken out of it so that it is not shared or kept in the history. */
function ownInvite(): string | null {
  const invite = new URLSearchParams(location.hash.slice(1)).get("invite");
  if (invite !== null) history.replaceState(null, "", location.pathname + location.search);
  return invite;
}

/** Calls `begin` once with the origin of the page that shows us, and an invite when there is one. */
export function meetHost(begin: (origin: string, invite: string | null) => void): void {
  if (!framed) {
    begin(location.origin, ownInvite());
    return;
  }
  addEventListener("message", (event: MessageEvent) => {
    if (event.source !== window.parent) return;
    const message = event.data as Partial<HostMessage> | null;
    if (message?.switchyard !== 1) return;
    if (message.kind === "hello" && hostOrigin === null) {
      hostOrigin = event.origin;
      hostTitle.value = typeof message.title === "string" && message.title.trim() !== "" ? message.title.slice(0, 60) : null;
      begin(event.origin, typeof message.invite === "string" ? message.invite : null);
    }
    if (message.kind === "shown" && event.origin === hostOrigin) shown.value = message.shown === true;
  });
  // The one message without a known target: it says nothing but that we are here.
  window.parent.postMessage({ switchyard: 1, kind: "ready" } satisfies FrameMessage, "*");
}
