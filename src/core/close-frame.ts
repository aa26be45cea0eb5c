// What the close of a WebSocket may carry.
import { fitBytes } from "./split-text.ts";

const maxReasonBytes = 123;

/** Cut to what a close frame holds, at a whole character. */
export function closeReason(reason: string): string {
  if (fitBytes(reason, maxReasonBytes) === reason) return reason;
  return `${fitBytes(reason, maxReasonBytes - 3)}…`;
}

/** The code that answers a peer's close, or it would see 1006. 1005, 1006 and 1015 only describe a close; they cannot be sent. */
export const answeringCode = (code: number): number => (code === 1005 || code === 1006 || code === 1015 ? 1000 : code);
