// One clock for the page: it ticks each second while somebody looks, so that running times move.
import { signal } from "@preact/signals";

export const nowMs = signal(Date.now());

setInterval(() => {
  if (document.visibilityState === "visible") nowMs.value = Date.now();
}, 1000);
document.addEventListener("visibilitychange", () => {
  nowMs.value = Date.now();
});
