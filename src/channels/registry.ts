// Every channel, by the source that its triggers name. A new channel is one file and one line here.
import { mannerOf } from "../core/manners.ts";
import type { Look } from "../core/reactions.ts";
import type { Config } from "../env.ts";
import type { OutboundIntent } from "../protocol/thread.ts";
import type { Channel, PersonOf } from "./channel.ts";
import { chat, generic } from "./generic/index.ts";
import { github } from "./github/index.ts";
import { web } from "./web.ts";

const channels: readonly Channel[] = [web, github, generic, chat];

/** The channel of a source; null when nothing can be said there. */
export const channelOf = (source: string): Channel | null => channels.find((channel) => channel.source === source) ?? null;

/** A channel bound to one thread, as its outbound ledger needs it. */
export function carrierOf(source: string, where: { place: string; threadKey: string }, config: Config, personOf: PersonOf) {
  const channel = channelOf(source);
  if (!channel) return null;
  const read = channel.reactions?.(config, personOf) ?? null;
  return {
    manner: mannerOf(source),
    send: (outbound: OutboundIntent) => channel.send({ outbound, ...where }, config),
    find: (outbound: OutboundIntent) => channel.find({ outbound, ...where }, config),
    reactions: read && ((outbound: OutboundIntent, look: Look) => read({ outbound, ...where }, look)),
  };
}
