// What a Thread gives to the pages on its sockets, and the manner of its channel.
import { carrierOf, channelOf } from "../src/channels/registry.ts";
import type { PagePorts } from "../src/channels/web-page.ts";
import { webAudience } from "../src/core/audience.ts";
import { taints } from "../src/core/authority.ts";
import { fitManner, mannerOf } from "../src/core/manners.ts";
import { type Config, type Env, modelProblem, readConfig } from "../src/env.ts";
import { Fault } from "../src/protocol/fault.ts";
import type { ThreadRpc } from "../src/protocol/rpc.ts";
import { personOf } from "../src/storage/accounts.ts";
import { putArtifact } from "../src/storage/artifacts.ts";
import { admitAtPage, judgeAtPage } from "../src/storage/page-door.ts";
import type { ThreadRoom } from "../src/storage/thread-room.ts";
import type { ThreadAbout } from "../src/storage/thread-store.ts";

/** What a page shows of older replies is not that much. */
const shownMarks = 200;

export function pagePorts(
  { id, env, ctx, room }: { id: string; env: Env; ctx: DurableObjectState; room: ThreadRoom },
  isRevoked: (principalId: string) => boolean,
  reach: <T>(threadId: string, call: (thread: Pick<ThreadRpc, "read" | "row" | "append">) => Promise<T>) => Promise<T>,
): PagePorts {
  const { store } = room;
  const config = readConfig(env);
  return {
    rootThreadId: id,
    agentName: config.agentName,
    modelProblem: modelProblem(config),
    topic: (threadId) => store.page.topic(threadId),
    topics: (limit) => store.page.topics(limit),
    marks: () => store.page.marks(shownMarks),
    drafts: () => room.drafts.current,
    newest: (limit) => store.rowsBefore(Number.MAX_SAFE_INTEGER, limit),
    read: (threadId, afterSeq, limit) => reach(threadId, (thread) => thread.read({ afterSeq, limit })),
    row: (threadId, triggerId) => reach(threadId, (thread) => thread.row({ triggerId })),
    keepWhole: (text, by) => {
      const from = { audience: webAudience(by.id), tainting: taints(by) };
      return putArtifact(env.STORE, new TextEncoder().encode(text), "text/plain; charset=utf-8", from);
    },
    admit: (principal) => admitAtPage(env, ctx, id, principal),
    append: async (trigger) => {
      const verdict = await judgeAtPage(env, ctx, trigger, isRevoked);
      const result = await reach(trigger.threadId, (thread) => thread.append({ trigger, verdict }));
      return "seq" in result ? result.seq : null;
    },
    press: (actId, by, frame, atMs) => room.press({ id: actId, by, frame, atMs }),
  };
}

/** The thread's channel, bound to it. */
export const carrierIn = (env: Env, config: Config, { source, place, threadKey }: ThreadAbout) =>
  carrierOf(source, { place, threadKey }, config, (login) => personOf(env.DB, login, Date.now()));

/** A text as the channel of its thread may say it. */
export function inManner(text: string, source: string): string {
  if (channelOf(source) === null) throw new Fault("bad_input", `Nothing can be said in ${source}: it has no channel.`);
  return fitManner(text, mannerOf(source));
}
