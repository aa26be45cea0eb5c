// GitHub as a channel: we answer as a comment in the issue or pull request, and find our comment again by its marker.
import * as z from "zod/mini";
import { addMarker, markerOf } from "../../core/marker.ts";
import { splitText } from "../../core/split-text.ts";
import type { Config } from "../../env.ts";
import { Fault } from "../../protocol/fault.ts";
import { limits } from "../../protocol/limits.ts";
import type { Channel, OutboundMessage } from "../channel.ts";
import { callGitHub, canCallGitHub } from "./api.ts";
import { addLabels, findLabels, findPull, openPull, replyInReview } from "./deeds.ts";
import { readReactions } from "./reactions.ts";

const timeoutMs = 15_000;
/** GitHub takes 65,536 characters in a comment; the marker needs some of them. */
const maxCommentChars = 65_000;
const pageSize = 100;
const maxPages = 50;

const commentAnswer = z.object({ id: z.number() });
const commentList = z.array(z.object({ id: z.number(), body: z.nullish(z.string()) }));

export const github: Channel = {
  source: "github",

  async send(message, config) {
    const { deed, id } = message.outbound;
    const secret = markerSecret(config);
    const text = bodyOf(message);
    const body = addMarker(secret, id, text);
    if (deed?.do === "pull_request") return openPull(config, message.place, deed, body, markerOf(secret, id, text));
    const number = numberOf(message);
    if (deed?.do === "label") return addLabels(config, message.place, number, deed.labels);
    const inReview = deed === undefined ? null : await replyInReview(config, message.place, number, deed.inReplyTo, body);
    if (inReview !== null) return inReview;
    const path = commentsPath(message.place, number);
    const answer = commentAnswer.safeParse(await callGitHub(config.github, { method: "POST", path, body: { body }, timeoutMs }));
    if (!answer.success) throw new Fault("provider", "GitHub took the comment, but did not say its number.", { retry: "unknown" });
    return { providerId: String(answer.data.id) };
  },

  async find(message, config) {
    const { deed, id } = message.outbound;
    // The whole marker, not the whole text: somebody may have edited it since, and nobody can know the marker before it was sent.
    const marker = markerOf(markerSecret(config), id, bodyOf(message));
    if (deed?.do === "pull_request") return findPull(config, message.place, deed, marker);
    const number = numberOf(message);
    if (deed?.do === "label") return findLabels(config, message.place, number, deed.labels);
    const inReview = deed === undefined ? null : await findComment(config, `/repos/${message.place}/pulls/${number}/comments`, marker);
    return inReview ?? findComment(config, commentsPath(message.place, number), marker);
  },

  reactions: (config, personOf) =>
    canCallGitHub(config.github) ? (message, look) => readReactions(config, personOf, message, look) : null,
};

async function findComment(config: Config, path: string, marker: string): Promise<{ providerId: string } | null> {
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
}

/** GitHub counts pull requests as issues: both are answered at the same path. */
const commentsPath = (place: string, number: string): string => `/repos/${place}/issues/${number}/comments`;

function numberOf({ threadKey }: OutboundMessage): string {
  const number = /^(?:issue|pull):([1-9]\d*)$/.exec(threadKey)?.[1];
  if (!number) throw new Fault("bad_input", `Nothing can be said in ${threadKey}: on GitHub only issues and pull requests take comments.`);
  return number;
}

function markerSecret(config: Config): string {
  if (config.sessionSecret === null)
    throw new Fault("unauthorised", "SESSION_SECRET is missing: without it our own comments would not be known when they come back.");
  return config.sessionSecret;
}

/** What is longer than a comment is cut where a reader would pause, with its code blocks closed, and says so. */
function bodyOf(message: OutboundMessage): string {
  const [first = "", ...more] = splitText(message.outbound.text.replaceAll("\0", ""), maxCommentChars);
  return more.length === 0
    ? first
    : `${first}\n\n… *This is only the beginning: a comment holds no more. The console has all of it, as ${message.outbound.id}.*`;
}
