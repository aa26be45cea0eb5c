// The console's keyboard: `/` search, `j` and `k` move, `Enter` opens (rows are links), `?` help.
import { signal } from "@preact/signals";

export const help = signal(false);

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");

function move(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? (step === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[next]?.focus();
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape" && event.target instanceof HTMLElement) event.target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    switch (event.key) {
      case "/":
        document.getElementById("search")?.focus();
        break;
      case "j":
        move(1);
        break;
      case "k":
        move(-1);
        break;
      case "?":
        help.value = true;
        break;
      default:
        return;
    }
    event.preventDefault();
  });
}
