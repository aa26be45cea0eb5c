// The web channel: what a person types into the widget becomes a trigger. Outbound needs no sending: the row in the log is
// the delivery, and the sockets show it.

import { triggerIdOf } from "../core/ids.ts";
import { fitBytes } from "../core/split-text.ts";
import { rootKeyOf, rootThreadIdOf, topicKeyOf, webSource, widgetPlace } from "../core/thread.ts";
import type { TaskId, ThreadId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import type { Trigger } from "../protocol/trigger.ts";
import type { WidgetClientFrame } from "../protocol/widget-frames.ts";
import type { Channel } from "./channel.ts";

export const web: Channel = {
  source: webSource,
  send: async ({ outbound }) => ({ providerId: outbound.id }),
  find: async ({ outbound }) => ({ providerId: outbound.id }),
};

export type SendFrame = Extract<WidgetClientFrame, { t: "send" }>;
export type AmendFrame = Extract<WidgetClientFrame, { t: "amend" }>;
/** Where a message goes: the page's root, or the topic of one of its tasks. */
export type Target = { threadId: ThreadId; topicOf: TaskId | null; title: string };

/** Bytes of a trigger that are not its text. */
const envelopeBytes = 4 * 1024;
const maxTextBytes = limits.maxTriggerBytes - envelopeBytes;

/** The text as the trigger carries it, and whether something was cut: then the whole of it belongs into the store. */
export function fitText(text: string): { text: string; cut: boolean } {
  const whole = text.toWellFormed();
  const fitting = fitBytes(whole, maxTextBytes);
  return { text: fitting, cut: fitting.length < whole.length };
}

/** A message in the widget as a trigger. The page's own id of it is the delivery's, so that a repeat is the same trigger. */
export function webTrigger(
  frame: SendFrame,
  principal: Principal,
  target: Target,
  nowMs: number,
  rawArtifact: string | null = null,
): Trigger {
  const deliveryId = `${principal.id}:${frame.clientMsgId}`;
  const { text, cut } = fitText(frame.text);
  const replyTo = frame.replyTo;
  return {
    id: triggerIdOf(webSource, deliveryId, target.threadId),
    source: webSource,
    deliveryId,
    threadId: target.threadId,
    place: widgetPlace,
    threadKey: target.topicOf === null ? rootKeyOf(principal.id) : topicKeyOf(target.topicOf),
    threadTitle: target.title,
    kind: "message",
    principal,
    addressed: true,
    text,
    ...(replyTo === undefined ? {} : { replyTo: { id: short(replyTo.id), author: short(replyTo.author), text: short(replyTo.text) } }),
    externalId: frame.clientMsgId,
    atMs: nowMs,
    ...(cut ? { truncated: true } : {}),
    ...(rawArtifact === null ? {} : { rawArtifact }),
    hops: 0,
    // In a root there is no worker that could be busy with it.
    ...(frame.mode === undefined || target.topicOf === null ? {} : { mode: frame.mode }),
  };
}

/** A change of an earlier message, as a row of the same topic: so it reaches the worker after it, once. */
export function amendTrigger(frame: AmendFrame, principal: Principal, target: Target, nowMs: number): Trigger {
  const { clientMsgId, threadId, of, change, before, revision, text = "" } = frame;
  const words = change === "edit" ? text : change === "withdraw" ? "I take this message back." : "";
  const idOf = (message: string): string => triggerIdOf(webSource, `${principal.id}:${message}`, threadId);
  const to = change === "move" ? { before: typeof before === "string" ? idOf(before) : null, revision } : {};
  const { externalId: _none, ...trigger } = webTrigger({ t: "send", clientMsgId, threadId, text: words }, principal, target, nowMs);
  return {
    ...trigger,
    kind: "message.amended",
    externalId: of,
    amends: { triggerId: idOf(of), change, ...to },
  };
}

const short = (text: string): string => text.toWellFormed().slice(0, 500).toWellFormed();

/** The root of a principal's page. */
export const rootTarget = (principal: Principal): Target => ({
  threadId: rootThreadIdOf(principal.id),
  topicOf: null,
  title: `Conversation with ${principal.name}`.slice(0, 500),
});
