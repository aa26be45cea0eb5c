// What a Thread knows of a trigger before it decides what to do with it.
import { type AppendPlan, labelOfOurs, planAppend } from "../core/thread.ts";
import { limits } from "../protocol/limits.ts";
import type { ThreadRpc } from "../protocol/rpc.ts";
import type { Trigger } from "../protocol/trigger.ts";
import type { ThreadStore } from "./thread-store.ts";

/** The plan for a trigger; `store` is undefined while the thread keeps nothing. */
export const planFor = (
  store: ThreadStore | undefined,
  { trigger, verdict }: Parameters<ThreadRpc["append"]>[0],
  { knownSeq, fromChannel, nowMs }: { knownSeq: number | null; fromChannel: boolean; nowMs: number },
): AppendPlan =>
  planAppend({
    trigger,
    verdict,
    subscriptions: store?.subscriptions() ?? [],
    knownSeq,
    echo: (store && echoIn(store, trigger, nowMs)) ?? null,
    saidLately: () => store?.saidLately() ?? false,
    fromChannel,
  });

/** By the marker that the channel verified; a label, which has none, by what was sent here lately. */
function echoIn({ outbound }: ThreadStore, trigger: Trigger, nowMs: number): ReturnType<ThreadStore["outbound"]["entry"]> {
  const claimed = trigger.facts?.echoOf;
  if (claimed !== undefined) return outbound.entry(claimed);
  const label = labelOfOurs(trigger);
  return label === null ? null : outbound.labelled(label, nowMs - 2 * limits.outboundMaxAgeStructuredMs);
}
