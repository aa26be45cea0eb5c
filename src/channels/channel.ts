// What a channel must do for outbound messages. Inbound is its door in `src/entry`; both share its parser.
import type { Look, Seen } from "../core/reactions.ts";
import type { Config } from "../env.ts";
import type { OutboundIntent } from "../protocol/thread.ts";

export type OutboundMessage = {
  outbound: OutboundIntent;
  place: string;
  threadKey: string;
};

/** A person of this deployment by their login at a source; `revoked` persons are nobody's colleague any more. */
export type LinkedPerson = { id: string; name: string; revoked: boolean };
export type PersonOf = (login: string) => Promise<LinkedPerson | null>;

export interface Channel {
  /** Its manner is in `src/core/manners.ts`. */
  readonly source: string;
  /** Sends one message. Throws `Fault`; with `retry: "unknown"` it may have been sent, and `find` is asked before any retry. */
  send(message: OutboundMessage, config: Config): Promise<{ providerId: string }>;
  /** Looks an ambiguous message up by its marker; null when the provider does not have it. */
  find(message: OutboundMessage, config: Config): Promise<{ providerId: string } | null>;
  /** How to look for what people of the team say of a message by reacting to it; absent, or null, where nobody can look. */
  reactions?(config: Config, personOf: PersonOf): ((message: OutboundMessage, look: Look) => Promise<Seen>) | null;
}
