// The one script of a host page: a button, and a frame of our own origin that holds the conversation.
// Styles are set by script, so that a host's style policy cannot break them.

import type { FrameMessage, HostMessage } from "./widget/host.ts";

const script = document.currentScript as HTMLScriptElement;
const home = new URL(script.src).origin;
const title = script.dataset.title ?? "";

/** A personal invite in the page's address, taken out of it so that it is not shared by accident. */
const takeInvite = (): string | null => {
  const hash = new URLSearchParams(location.hash.slice(1));
  const invite = hash.get("invite");
  if (invite !== null) {
    hash.delete("invite");
    const rest = hash.toString();
    history.replaceState(history.state, "", location.pathname + location.search + (rest ? `#${rest}` : ""));
  }
  return invite;
};
const invite = takeInvite();

const style = (element: HTMLElement, text: string): void => {
  element.style.cssText = text;
};

function mount(): void {
  const frame = document.createElement("iframe");
  const button = document.createElement("button");
  const dot = document.createElement("span");
  const narrow = matchMedia("(max-width: 480px), (max-height: 480px)");
  let open = false;

  const post = (message: HostMessage): void => frame.contentWindow?.postMessage(message, home);

  const layout = (): void => {
    const size = narrow.matches
      ? "inset:0;width:100%;height:100%;border-radius:0"
      : "inset-inline-end:20px;bottom:88px;width:min(440px,calc(100vw - 40px));height:min(720px,calc(100vh - 116px));border-radius:16px;box-shadow:0 8px 40px rgb(0 0 0/22%),0 0 0 1px rgb(0 0 0/8%)";
    style(
      frame,
      `position:fixed;z-index:2147483001;border:0;color-scheme:normal;background:Canvas;${size};display:${open ? "block" : "none"}`,
    );
  };

  const show = (next: boolean): void => {
    open = next;
    layout();
    button.setAttribute("aria-expanded", String(open));
    post({ switchyard: 1, kind: "shown", shown: open });
    if (open) frame.focus();
    else button.focus();
  };

  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-label", title || "Open the conversation");
  style(
    button,
    "position:fixed;z-index:2147483000;inset-inline-end:20px;bottom:20px;width:56px;height:56px;padding:16px;border:0;border-radius:50%;background:#0d6b63;color:#fff;cursor:pointer;box-shadow:0 4px 18px rgb(0 0 0/25%)",
  );
  const svg = "http://www.w3.org/2000/svg";
  const icon = document.createElementNS(svg, "svg");
  const path = document.createElementNS(svg, "path");
  icon.setAttribute("viewBox", "0 0 24 24");
  path.setAttribute("d", "M3 18h18M5 18c6 0 6-11 14-11");
  path.setAttribute("fill", "none");
  path.setAttribute("stroke", "#fff");
  path.setAttribute("stroke-width", "2.6");
  path.setAttribute("stroke-linecap", "round");
  icon.append(path);
  style(
    dot,
    "display:none;position:absolute;top:1px;inset-inline-end:1px;width:16px;height:16px;border-radius:50%;background:#b3261e;border:2px solid #fff",
  );
  button.append(icon, dot);
  button.onclick = () => show(!open);

  frame.title = title || "Conversation";
  frame.src = `${home}/widget/`;
  frame.allow = "clipboard-write";
  // On a page of our own origin a sandbox would keep nothing apart.
  if (home !== location.origin)
    frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox");
  layout();
  narrow.addEventListener("change", layout);

  addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow || event.origin !== home) return;
    const message = event.data as FrameMessage;
    if (message.kind === "ready") {
      post({ switchyard: 1, kind: "hello", title, ...(invite === null ? {} : { invite }) });
      if (open || script.dataset.open !== undefined || invite !== null) show(true);
    }
    if (message.kind === "close" && open) show(false);
    if (message.kind === "attention") {
      const waits = message.count > 0 && !open;
      dot.style.display = waits ? "block" : "none";
      button.setAttribute("aria-label", (title || "Open the conversation") + (waits ? ", something is new" : ""));
    }
  });
  document.body.append(button, frame);
}

if (document.body) mount();
else addEventListener("DOMContentLoaded", mount);
