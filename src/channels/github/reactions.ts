// What people of the team say of a comment of ours by reacting to it. GitHub tells nobody of reactions: whoever wants to know has to look.
import * as z from "zod/mini";
import { type Look, type Reaction, type Seen, wordsOf } from "../../core/reactions.ts";
import type { Config } from "../../env.ts";
import { Fault } from "../../protocol/fault.ts";
import type { OutboundMessage, PersonOf } from "../channel.ts";
import { callGitHubPage } from "./api.ts";
import { actorOf } from "./draft.ts";
import { personOfTeam } from "./permissions.ts";

const timeoutMs = 5_000;
const pageSize = 100;
const maxPages = 3;
/** GitHub is asked about so many people of one comment: where more have reacted, the newest count. */
const maxPeople = 5;

const signs: Readonly<Record<string, string>> = {
  "+1": "👍",
  "-1": "👎",
  laugh: "😄",
  confused: "😕",
  heart: "❤️",
  hooray: "🎉",
  rocket: "🚀",
  eyes: "👀",
};

const reactionList = z.array(
  z.object({
    id: z.number(),
    content: z.string(),
    created_at: z.string(),
    user: z.nullish(z.object({ login: z.string(), type: z.nullish(z.string()) })),
  }),
);

/** Until when GitHub asked us to stay away, by whose repositories: a look can wait, what people are to hear comes first. */
const pauses = new Map<string, number>();

/** Looks once at the reactions to a comment. Throws a `Fault`: `not_found` where the comment is gone. */
export async function readReactions(config: Config, personOf: PersonOf, message: OutboundMessage, look: Look): Promise<Seen> {
  const whose = `${config.github.apiUrl} ${message.place.split("/")[0]}`.toLowerCase();
  const waitMs = (pauses.get(whose) ?? 0) - Date.now();
  if (waitMs > 0) throw new Fault("rate_limited", "GitHub asked us to wait.", { retryAfterMs: waitMs });
  pauses.delete(whose);
  try {
    return await seenAtFirst(pathsOf(message, look.providerId), (path) => readAt(path, config, personOf, message.place, look.etag));
  } catch (error) {
    if (error instanceof Fault && error.retryAfterMs !== undefined) pauses.set(whose, Date.now() + error.retryAfterMs);
    throw error;
  }
}

/** An answer in a review has a number among those; where its thread was gone, it is a comment like any other. */
function pathsOf({ place, outbound: { deed } }: OutboundMessage, providerId: string): string[] {
  if (!/^\d+$/.test(providerId) || (deed !== undefined && deed.do !== "comment")) return [];
  const comment = `/repos/${place}/issues/comments/${providerId}/reactions`;
  return deed === undefined ? [comment] : [`/repos/${place}/pulls/comments/${providerId}/reactions`, comment];
}

async function seenAtFirst(paths: readonly string[], readAt: (path: string) => Promise<Seen>): Promise<Seen> {
  let gone = new Fault("not_found", "This is no comment that anybody could react to.");
  for (const path of paths)
    try {
      return await readAt(path);
    } catch (error) {
      if (!(error instanceof Fault) || error.kind !== "not_found") throw error;
      gone = error;
    }
  throw gone;
}

async function readAt(path: string, config: Config, personOf: PersonOf, place: string, before: string | null): Promise<Seen> {
  const { github } = config;
  const reactions: Reaction[] = [];
  let etag: string | null = null;
  for (let page = 1; page <= maxPages; page++) {
    const call = { method: "GET" as const, path: `${path}?per_page=${pageSize}&page=${page}`, timeoutMs, etag: page === 1 ? before : null };
    const answer = await callGitHubPage(github, call);
    if (answer.unchanged) return { word: null, etag: answer.etag };
    const listed = reactionList.safeParse(answer.body);
    if (!listed.success) throw new Fault("provider", "GitHub's list of reactions cannot be read.", { retry: "later" });
    for (const { id, content, created_at, user } of listed.data) {
      const { kind, login } = actorOf(user ? { login: user.login, type: user.type ?? null } : null, null, github.login);
      if (kind === "person") reactions.push({ id, sign: signs[content] ?? "", atMs: Date.parse(created_at), login });
    }
    if (listed.data.length < pageSize) {
      // What the newest page says is not in the name of the first.
      etag = page === 1 ? answer.etag : null;
      break;
    }
  }
  const words = wordsOf(reactions);
  for (const { login, accepted, sign } of words.slice(0, maxPeople)) {
    const by = await personOfTeam(login, place, { config: github, personOf });
    if (by !== null) return { word: { by, accepted, sign }, etag: null };
  }
  // Who is a stranger today may be of the team at the next look.
  return { word: null, etag: words.length === 0 ? etag : null };
}
