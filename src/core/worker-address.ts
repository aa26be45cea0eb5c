// Where an effect of a worker session goes, and by which id a repeated one is known.
import type { WorkerEffect } from "./worker-state.ts";

/** Where an effect goes, and the id that makes a second one of it the same row. Effects to one target keep their order. */
export function effectAddress(effect: WorkerEffect): { id: string; target: string } {
  switch (effect.effect) {
    case "submit":
      return { id: `submit:${effect.command.commandId}`, target: effect.endpointId };
    case "stop":
      return { id: `stop:${effect.commandId}`, target: effect.endpointId };
    case "stop_task":
      return { id: `stop_task:${effect.endpointId}`, target: effect.endpointId };
    case "asked":
      return { id: `asked:${effect.endpointId}`, target: effect.endpointId };
    case "report":
      return { id: effect.report.id, target: "router" };
    case "note":
      return { id: `note:${effect.note.n}`, target: `note:${effect.threadId}` };
    case "start_child":
      return { id: `start:${effect.start.taskId}`, target: effect.start.taskId };
    case "tell_child":
      return { id: `tell:${effect.id}`, target: effect.taskId };
    case "cancel_child":
      return { id: `cancel:${effect.taskId}`, target: effect.taskId };
    case "card":
      return { id: `card:${effect.to}`, target: effect.to };
    case "offer":
      return { id: `offer:${effect.input.offer.outbound.id}`, target: `offer:${effect.threadId}` };
    case "withdraw":
      return { id: `withdraw:${effect.outboundId}`, target: `offer:${effect.threadId}` };
    case "follow":
      return { id: `follow:${effect.threadId}`, target: effect.threadId };
    case "unsubscribe":
      return { id: `unsubscribe:${effect.threadId}`, target: effect.threadId };
    case "release":
      return { id: `release:${effect.threadId}:${effect.rows[0]?.row.seq ?? 0}`, target: `release:${effect.threadId}` };
    case "read":
      // A subscription and its end keep their order.
      return {
        id: `read:${effect.step}:${effect.callId}`,
        target: effect.read.read === "subscribe" ? effect.read.threadId : `read:${effect.callId}`,
      };
  }
}
