// GitHub as a channel: we answer as a comment in the issue or pull request, and find our comment again by its marker.
import * as z from "zod/mini";
import { addMarker, markerOf } from "../../core/marker.ts";
import { splitText } from "../../core/split-text.ts";
import type { Config } from "../../env.ts";
import { Fault } from "../../protocol/fault.ts";
import { limits } from "../../protocol/limits.ts";
import type { Channel, OutboundMessage } from "../channel.ts";
import { callGitHub } from "./api.ts";

const timeoutMs = 15_000;
/** GitHub takes 65,536 characters in a comment; the marker needs some of them. */
const maxCommentChars = 65_000;
const pageSize = 100;
const maxPages = 50;

const commentAnswer = z.object({ id: z.number() });
const commentList = z.array(z.object({ id: z.number(), body: z.nullish(z.string()) }));

export const github: Channel = {
  source: "github",
  manner: "structured",

  async send(message, config) {
    const path = commentsPath(message);
    const body = addMarker(markerSecret(config), message.outbound.id, bodyOf(message));
    const answer = commentAnswer.safeParse(await callGitHub(config.github, { method: "POST", path, body: { body }, timeoutMs }));
    if (!answer.success) throw new Fault("provider", "GitHub took the comment, but did not say its number.", { retry: "unknown" });
    return { providerId: String(answer.data.id) };
  },

  async find(message, config) {
    const path = commentsPath(message);
    // The whole marker, not the whole comment: somebody may have edited it since, and nobody can know the marker before it was sent.
    const marker = markerOf(markerSecret(config), message.outbound.id, bodyOf(message));
    const since = new Date(Date.now() - 2 * limits.outboundMaxAgeStructuredMs).toISOString();
    for (let page = 1; page <= maxPages; page++) {
      const query = `per_page=${pageSize}&page=${page}&since=${encodeURIComponent(since)}`;
      const comments = commentList.safeParse(await callGitHub(config.github, { method: "GET", path: `${path}?${query}`, timeoutMs }));
      if (!comments.success) throw new Fault("provider", "GitHub's list of comments cannot be read.", { retry: "later" });
      const found = comments.data.find((comment) => comment.body?.includes(marker));
      if (found) return { providerId: String(found.id) };
      if (comments.data.length < pageSize) return null;
    }
    throw new Fault("provider", `More than ${pageSize * maxPages} comments came here within two days: ours cannot be found among them.`);
  },
};

/** GitHub counts pull requests as issues: both are answered at the same path. */
function commentsPath(message: OutboundMessage): string {
  const number = /^(?:issue|pull):([1-9]\d*)$/.exec(message.threadKey)?.[1];
  if (!number)
    throw new Fault("bad_input", `Nothing can be said in ${message.threadKey}: on GitHub only issues and pull requests take comments.`);
  return `/repos/${message.place}/issues/${number}/comments`;
}

function markerSecret(config: Config): string {
  if (config.sessionSecret === null)
    throw new Fault("unauthorised", "SESSION_SECRET is missing: without it our own comments would not be known when they come back.");
  return config.sessionSecret;
}

/** What is longer than a comment is cut where a reader would pause, with its code blocks closed. */
function bodyOf(message: OutboundMessage): string {
  const [first = "", ...more] = splitText(message.outbound.text.replaceAll("\0", ""), maxCommentChars);
  return more.length === 0 ? first : `${first}\n\n…`;
}
