// What an operator says to a task from the console: a row of the task's thread, with the owner's authority.
import type { Principal } from "../protocol/principal.ts";
import type { ThreadInfo } from "../protocol/thread.ts";
import type { InputMode, Trigger } from "../protocol/trigger.ts";
import { triggerIdOf } from "./ids.ts";
import { rootOwnerOf } from "./thread.ts";

/** [WI8] The caller's own id of it makes a repeat the same row. It is sent to no channel: it is said to the worker, in the conversation that it is in. */
export function operatorTrigger(
  info: ThreadInfo,
  operator: Principal,
  said: { id: string; text: string; mode?: InputMode | undefined },
  nowMs: number,
): Trigger {
  const deliveryId = `console:${said.id}`;
  const reader = info.viewerId ?? rootOwnerOf(info.threadKey);
  return {
    id: triggerIdOf(info.source, deliveryId, info.threadId),
    source: info.source,
    deliveryId,
    threadId: info.threadId,
    place: info.place,
    threadKey: info.threadKey,
    threadTitle: info.title,
    kind: "message",
    principal: operator,
    addressed: true,
    text: said.text,
    externalId: said.id,
    atMs: nowMs,
    hops: 0,
    ...(reader === null ? {} : { facts: { for: reader } }),
    ...(said.mode === undefined ? {} : { mode: said.mode }),
  };
}
