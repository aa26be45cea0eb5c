// What a channel must do for outbound messages. Inbound is its door in `src/entry`; both share its parser.
import type { Config } from "../env.ts";
import type { OutboundIntent } from "../protocol/thread.ts";

export type OutboundMessage = {
  outbound: OutboundIntent;
  place: string;
  threadKey: string;
};

export interface Channel {
  /** Its manner is in `src/core/manners.ts`. */
  readonly source: string;
  /** Sends one message. Throws `Fault`; with `retry: "unknown"` it may have been sent, and `find` is asked before any retry. */
  send(message: OutboundMessage, config: Config): Promise<{ providerId: string }>;
  /** Looks an ambiguous message up by its marker; null when the provider does not have it. */
  find(message: OutboundMessage, config: Config): Promise<{ providerId: string } | null>;
}
