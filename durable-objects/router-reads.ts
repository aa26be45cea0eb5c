// What a turn's calls ask to read: found by words, or recalled by id.

import type { InboxItem } from "../src/core/router.ts";
import { refuseRecall } from "../src/core/router-items.ts";
import { renderFound, scopeOf } from "../src/core/router-memory.ts";
import { type ReadAnswer, readsOf } from "../src/core/router-turn.ts";
import type { Env } from "../src/env.ts";
import type { ModelReply } from "../src/protocol/model.ts";
import type { Lane } from "../src/protocol/principal.ts";
import { recallObject, shownTo } from "../src/storage/recall.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";

/** Reads happen before the step commits: they have no effect, and so each call gets its result in one transaction. */
export async function readAll(
  env: Env,
  ledger: RouterLedger,
  turn: { lane: Lane; items: ReadonlyMap<string, InboxItem> },
  calls: ModelReply["calls"],
): Promise<Map<number, ReadAnswer>> {
  const items = [...turn.items.values()];
  const readers = ledger.store.readersOf(items);
  const answers = await Promise.all(
    readsOf(calls).map(async (read): Promise<[number, ReadAnswer]> => {
      const { index, page } = read;
      if (read.read === "find") {
        const found = ledger.memory.find(read, scopeOf(turn.lane, items, readers));
        const heard = found.hits.map((hit) => hit.audience);
        return [index, { text: renderFound(read, found, turn.lane), tainting: false, heard }];
      }
      const refused = refuseRecall(turn.lane, read.id, items);
      if (refused !== null) return [index, { text: refused, tainting: false, heard: [] }];
      const own = ledger.recall(read.id);
      const { text, tainting, audience } = own ? shownTo(own, read.id, readers) : await recallObject(env, { id: read.id, page, readers });
      return [index, { text, tainting, heard: audience === undefined ? [] : [audience] }];
    }),
  );
  return new Map(answers);
}
