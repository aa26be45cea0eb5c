// The looks of a Thread at what people made of the outcomes that it told. What need not be read again stands in the deadline itself: a look
// that finds nothing moves that, and writes nothing else.
import type { Deadline } from "../core/alarms.ts";
import { nextLookMs, unjudged } from "../core/reactions.ts";
import { logFault } from "../log-fault.ts";
import { asFault } from "../protocol/fault.ts";
import type { OutboundId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { ThreadRoom } from "./thread-room.ts";

export const firstLookMs = limits.reactionLooksMs[0];

/** Of a message what its list is called while that says nothing; null where nothing more is to be found: it is gone, or a person has said their word. */
type Looked = Map<OutboundId, string | null>;

/** [T14] One look. It never fails: what could not be read is looked at again, in its own time. */
export async function lookAtReactions(room: ThreadRoom, { payload }: Deadline): Promise<undefined> {
  const looked: Looked = new Map(payload === "" ? [] : (JSON.parse(payload) as [OutboundId, string | null][]));
  const failed = await look(room, looked);
  // Read anew: meanwhile more may have been said.
  const { said, left } = outcomesOf(room, looked);
  const saidMs = left.map(({ entry }) => entry.createdMs);
  const known = [...looked].filter(([id]) => said.some(({ outbound }) => outbound.id === id));
  const nextMs = nextLookMs(saidMs, Date.now(), failed);
  if (nextMs !== null) room.alarms.set("reactions", nextMs, known.length === 0 ? {} : { payload: JSON.stringify(known) });
}

function outcomesOf({ store }: ThreadRoom, looked: Looked) {
  const said = store.outbound.outcomes(Date.now() - limits.reactionMs);
  return { said, left: unjudged(said, store.cards(), (id) => looked.get(id) === null) };
}

/** Why the look ended early, where another may help; null when it has seen what there is. */
async function look(room: ThreadRoom, looked: Looked): Promise<{ retryAfterMs?: number | undefined } | null> {
  const read = room.carrier?.reactions;
  if (!read) return null;
  const ready = outcomesOf(room, looked).left.filter((outcome) => outcome.ready);
  for (const { outbound, entry, taskId } of ready.slice(0, limits.maxReactionLooks)) {
    const { id } = outbound;
    try {
      const { word, etag } = await read(outbound, { providerId: entry.providerId ?? "", etag: looked.get(id) ?? null });
      if (word === null) {
        if (etag === null) looked.delete(id);
        else looked.set(id, etag);
        continue;
      }
      // [W31] Durable before it is kept that there is nothing more to find; found twice it is one word.
      const { by, accepted, sign } = word;
      const actId = `reaction:${id}`;
      room.press({ id: actId, by, atMs: Date.now(), frame: { t: "reaction", clientMsgId: actId, taskId, accepted, sign, of: id } });
      looked.set(id, null);
    } catch (error) {
      const fault = asFault(error);
      if (fault?.kind === "not_found") {
        looked.set(id, null);
        continue;
      }
      logFault("thread.reactions", error, { outbound: id });
      return fault?.retry === "never" ? null : { retryAfterMs: fault?.retryAfterMs };
    }
  }
  return null;
}
