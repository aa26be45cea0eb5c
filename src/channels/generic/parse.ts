// A delivery of the generic webhook becomes a trigger. The sender holds the secret, and so speaks for the people it names.
import * as z from "zod/mini";
import { threadIdOf, triggerIdOf } from "../../core/ids.ts";
import { isSmallTalk } from "../../core/small-talk.ts";
import { Fault } from "../../protocol/fault.ts";
import { firstIssue } from "../../protocol/issue.ts";
import type { Trigger } from "../../protocol/trigger.ts";
import { fitText } from "../web.ts";

/** One wire, and a door for each; what comes through `chat` is answered as in a chat. */
export const signedSources = ["generic", "chat"] as const;
export type SignedSource = (typeof signedSources)[number];

const key = z.string().check(z.minLength(1), z.maxLength(200));

const genericBody = z.object({
  /** The sender's own name of the event; `message` and `message.…` are something that somebody said. */
  kind: z.string().check(z.minLength(1), z.maxLength(80), z.regex(/^(?!timer\.)/, "must not be a timer: those are our own schedules")),
  text: z.string().check(z.maxLength(1_000_000)),
  /** Where it is sent to: what is signed with it is taken there alone. */
  source: z.optional(z.string()),
  place: z.optional(z.string()),
  /** What belongs together; without it each message is a thread of its own. */
  thread: z.optional(key),
  title: z.optional(z.string().check(z.maxLength(300))),
  url: z.optional(z.string().check(z.maxLength(2000), z.regex(/^https?:\/\//, "must be an http or https address"))),
  /** Never an owner: an owner's word needs an owner's session. Without a role nobody is vouched for. */
  principal: z.optional(
    z.object({
      id: key,
      name: z.optional(z.string().check(z.maxLength(200))),
      role: z.optional(z.enum(["member", "guest", "public", "bot"])),
    }),
  ),
  /** Events that mean the same message carry the same key: the first one counts. */
  messageKey: z.optional(key),
  addressed: z.optional(z.boolean()),
});

/** `source`: of the door; `generic` when absent. */
export type GenericDelivery = { source?: SignedSource; place: string; deliveryId: string; nowMs: number };

/** [T15] The signature is over the body and not over the address: whoever kept a copy could send it elsewhere, so the body says where it belongs. */
function requireAddress(field: "source" | "place", named: string | undefined, address: string): void {
  if (named === undefined || named === address) return;
  throw new Fault(
    "bad_input",
    `The body's ${field} is another than that of the address, "${address}". What names its ${field} is taken there alone: send it there, or leave the field out.`,
  );
}

/** The trigger of a delivery, and whether its text was cut: then the whole body is kept beside it. */
export function parseGeneric(body: unknown, delivery: GenericDelivery): { trigger: Trigger; cut: boolean } {
  const { source = "generic", place, deliveryId, nowMs } = delivery;
  const parsed = genericBody.safeParse(body);
  if (!parsed.success) throw new Fault("bad_input", firstIssue(parsed.error, "body"));
  const { kind, text, thread, title, url, principal, messageKey, addressed } = parsed.data;
  requireAddress("source", parsed.data.source, source);
  requireAddress("place", parsed.data.place, place);
  // [G7] The message key is the identity where there is one, so that a pair of events meets in one thread as one trigger.
  const identity = messageKey === undefined ? `event:${deliveryId}` : `message:${messageKey}`;
  const threadKey = thread === undefined ? identity : `thread:${thread}`;
  const threadId = threadIdOf(source, place, threadKey);
  const fitted = fitText(text);
  return {
    cut: fitted.cut,
    trigger: {
      id: triggerIdOf(source, identity, threadId),
      source,
      deliveryId,
      threadId,
      place,
      threadKey,
      threadTitle: title ?? (thread === undefined ? `${kind} in ${place}` : thread),
      ...(url === undefined ? {} : { threadUrl: url }),
      kind,
      principal: {
        role: principal?.role ?? "public",
        id: principal?.id ?? place,
        name: principal?.name ?? principal?.id ?? place,
      },
      addressed: addressed ?? false,
      text: fitted.text,
      ...(messageKey === undefined ? {} : { externalId: messageKey }),
      ...(isSmallTalk(text) ? { facts: { words: "talk" } } : {}),
      atMs: nowMs,
      ...(fitted.cut ? { truncated: true } : {}),
      hops: 0,
    },
  };
}
