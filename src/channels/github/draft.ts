// What the parser makes of one event for one thread: a trigger whose people are not looked up yet.
import { threadIdOf, triggerIdOf } from "../../core/ids.ts";
import { fitBytes } from "../../core/split-text.ts";
import { limits } from "../../protocol/limits.ts";
import type { Trigger } from "../../protocol/trigger.ts";
import type { GitHubUser } from "./payloads.ts";

/** Somebody at GitHub. `association` is GitHub's own word about the author of a text, null where it says none. */
export type Actor = { login: string; kind: "person" | "bot" | "self" | "ghost"; association: string | null };

/** Who stands behind a trigger: people (the author of the words first, then whoever sent the event), or a CI system (`own`: surely of a branch of this repository). */
export type Source = { kind: "people"; actors: [Actor, ...Actor[]] } | { kind: "ci"; name: string; own: boolean };

/** Words that stand beside a trigger, and who wrote them: shown only where their author is of the team. */
export type Words = { text: string; by: Actor };

export type Draft = {
  trigger: Omit<Trigger, "principal" | "threadTitle">;
  source: Source;
  /** The thread's title; `plain` names the thread without anybody's words. */
  title: { plain: string; words: Words | null };
  /** The issue's own words: what an assignment without words of its own is about. */
  subject: Words | null;
};

/** `deliveryId` is what the delivery is, `label` what GitHub calls this transport of it. */
export type Delivery = { deliveryId: string; label: string; nowMs: number; login: string; secret: string | null };

const sameLogin = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

export function actorOf(user: GitHubUser, association: string | null, login: string): Actor {
  if (!user) return { login: "ghost", kind: "ghost", association: null };
  const bot = user.type === "Bot" || /\[bot\]$/i.test(user.login);
  const kind = sameLogin(user.login, login) ? "self" : bot ? "bot" : "person";
  return { login: user.login, kind, association };
}

/** The author of the words and the sender of the event; once when they are the same. */
export const authorAndSender = (author: Actor, sender: Actor): [Actor, ...Actor[]] =>
  sameLogin(author.login, sender.login) ? [author] : [author, sender];

/** Only addresses that a browser may open. */
const linkOf = (url: string | null): string | null =>
  url && url.length <= 2000 && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : null;

export const joined = (title: string | null, body: string | null): string =>
  [title, body]
    .map((part) => part?.trim() ?? "")
    .filter(Boolean)
    .join("\n\n");

const maxFactChars = 300;

function factsOf(facts: Record<string, string | null | undefined>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(facts)) if (value) kept[name] = value.slice(0, name === "url" ? 2000 : maxFactChars);
  return kept;
}

/** Room for what the door adds: the title and the principal. */
const doorBytes = 3 * 1024;

const encoder = new TextEncoder();

/** No text is more bytes of UTF-8. */
const mostBytes = (text: string): number => 3 * text.length;

/** The longest beginning of a text that fits beside `rest` and cuts no character. */
function fitted(text: string, rest: string): string {
  const roomBytes = limits.maxTriggerBytes - doorBytes;
  return mostBytes(text) + mostBytes(rest) <= roomBytes ? text : fitBytes(text, roomBytes - encoder.encode(rest).length);
}

export type DraftInput = {
  place: string;
  threadKey: string;
  threadUrl?: string | null;
  kind: string;
  source: Source;
  title: Draft["title"];
  text?: string;
  addressed?: boolean;
  subject?: Words | null;
  externalId?: number | null | undefined;
  facts: Record<string, string | null | undefined>;
};

/** Puts a draft together: ids, sizes, and the fact that words came from our account without our mark. */
export function draftOf(delivery: Delivery, input: DraftInput): Draft {
  const threadId = threadIdOf("github", input.place, input.threadKey);
  const url = linkOf(input.threadUrl ?? null);
  const unmarked = input.source.kind === "people" && input.source.actors[0].kind === "self";
  const rest: Draft["trigger"] = {
    id: triggerIdOf("github", delivery.deliveryId, threadId),
    source: "github",
    deliveryId: delivery.deliveryId,
    label: delivery.label,
    threadId,
    place: input.place,
    threadKey: input.threadKey,
    ...(url ? { threadUrl: url } : {}),
    kind: input.kind,
    addressed: (input.addressed ?? false) && !unmarked,
    text: "",
    ...(input.externalId ? { externalId: String(input.externalId) } : {}),
    facts: factsOf({
      ...input.facts,
      url: linkOf(input.facts.url ?? null) ?? url,
      self: input.facts.self ?? (unmarked ? "unmarked" : null),
    }),
    atMs: delivery.nowMs,
    hops: 0,
  };
  const whole = input.text ?? "";
  const text = fitted(whole, JSON.stringify(rest));
  return {
    trigger: { ...rest, text, ...(text.length < whole.length ? { truncated: true } : {}) },
    source: input.source,
    title: input.title,
    subject: input.subject ?? null,
  };
}
