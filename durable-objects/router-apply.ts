// One effect of the router: a call to the object whose truth it changes. Each may be repeated; ids make that harmless.
import { completeStart, type EffectResult, type EffectRow } from "../src/core/router-plan.ts";
import { boardName, type Env } from "../src/env.ts";
import type { RouterStore } from "../src/storage/router-store.ts";

/** Carries the effect out and returns what later effects of its chain need. */
export async function applyEffect(env: Env, store: RouterStore, row: EffectRow): Promise<EffectResult> {
  const { effect } = row;
  switch (effect.kind) {
    case "open_topic": {
      const { cutSeq } = await env.THREAD.getByName(effect.threadId).openTopic(effect.input);
      return { cutSeq };
    }
    case "attach_topic":
      await env.THREAD.getByName(effect.threadId).attachTopic(effect.input);
      return {};
    case "subscribe": {
      const thread = env.THREAD.getByName(effect.threadId);
      // From the oldest row that is still undecided here: rows before the settled one must not fall between.
      const oldest = store.queuedInThread(effect.threadId)[0];
      const settled = oldest === undefined ? null : await thread.row({ triggerId: effect.input.triggerId });
      const triggerId = oldest !== undefined && settled !== null && oldest.seq < settled.seq ? oldest.id : effect.input.triggerId;
      const { fromSeq, cutSeq, tainted } = await thread.subscribe({ ...effect.input, triggerId });
      return { fromSeq, cutSeq, tainted };
    }
    case "unsubscribe":
      await env.THREAD.getByName(effect.threadId).unsubscribe(effect.input);
      return {};
    case "start": {
      const start = completeStart(
        effect.input,
        store.chain(row.chain).map((each) => each.result),
      );
      const { started } = await env.WORKER_SESSION.getByName(effect.taskId).start(start);
      return { started, tainted: start.tainted };
    }
    case "post":
      await env.THREAD.getByName(effect.threadId).post(effect.input);
      return {};
    case "tell":
      await env.WORKER_SESSION.getByName(effect.taskId).tell(effect.input);
      return {};
    case "cancel":
      await env.WORKER_SESSION.getByName(effect.taskId).cancel(effect.input);
      return {};
    case "board":
      await env.BOARD.getByName(boardName).change(effect.input);
      return {};
  }
}
