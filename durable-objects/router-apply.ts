// One effect of the router: a call to the object whose truth it changes. Each may be repeated; ids make that harmless.
import { github } from "../src/channels/github/index.ts";
import { stillOfTeam } from "../src/channels/github/permissions.ts";
import { completeStart, type EffectResult, type EffectRow, isEarly } from "../src/core/router-plan.ts";
import { boardName, type Env, readConfig } from "../src/env.ts";
import type { Logged, ThreadEvent } from "../src/protocol/events.ts";
import { Fault } from "../src/protocol/fault.ts";
import type { Schedule } from "../src/protocol/schedule.ts";
import { migrated } from "../src/storage/migrations.ts";
import { personById } from "../src/storage/people.ts";
import { carryOutPolicy } from "../src/storage/policy-acts.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";

/** Carries the effect out and returns what later effects of its chain need. */
export async function applyEffect(
  env: Env,
  { store, schedules }: Pick<RouterLedger, "store" | "schedules">,
  row: EffectRow,
): Promise<EffectResult> {
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
      const { triggerId: named } = effect.input;
      if (named === undefined) return thread.subscribe(effect.input);
      const oldest = store.inbox.queuedInThread(effect.threadId)[0];
      const settled = oldest === undefined ? null : await thread.row({ triggerId: named });
      const triggerId = oldest !== undefined && settled !== null && oldest.seq < settled.seq ? oldest.id : named;
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
    case "adopt": {
      const earlier = store.chain(row.chain).map((each) => each.result);
      return env.WORKER_SESSION.getByName(effect.taskId).adopt(completeStart(effect.input, earlier));
    }
    case "offer":
      await env.THREAD.getByName(effect.threadId).offer(effect.input);
      return {};
    case "withdraw":
      await env.THREAD.getByName(effect.threadId).decideOffer(effect.input);
      return {};
    case "post":
      try {
        await env.THREAD.getByName(effect.threadId).post(effect.input);
      } catch (error) {
        if (!isEarly(effect, store.pendingEffects())) throw error;
        throw new Fault("unavailable", `${effect.threadId} is not given to its task yet.`, { cause: error });
      }
      return {};
    case "decide_offer":
      await env.THREAD.getByName(effect.threadId).decideOffer(effect.input);
      return {};
    case "receipt": {
      const { outboundId, untilMs } = effect.input;
      const said = await env.THREAD.getByName(effect.threadId).row({ triggerId: outboundId });
      const state = said?.kind === "outbound" ? said.state : "unknown";
      if ((state === "pending" || state === "unknown") && Date.now() < untilMs)
        throw new Fault("unavailable", `${outboundId} is on its way still.`, { retry: "later" });
      return { sent: state };
    }
    case "tell":
      await env.WORKER_SESSION.getByName(effect.taskId).tell(effect.input);
      return {};
    case "accept":
      await env.WORKER_SESSION.getByName(effect.taskId).accept(effect.input);
      return {};
    case "reopen":
      await env.WORKER_SESSION.getByName(effect.taskId).reopen(effect.input);
      return {};
    case "cancel":
      await env.WORKER_SESSION.getByName(effect.taskId).cancel(effect.input);
      return {};
    case "policy": {
      const { act, post } = effect.input;
      await env.THREAD.getByName(effect.threadId).post({ ...post, text: await carryOutPolicy(env.DB, act, Date.now()) });
      return {};
    }
    case "append": {
      const schedule = schedules.get(effect.input.trigger.principal.id);
      if (schedule !== null && !(await hasAccess(env, schedule)))
        throw new Fault("forbidden", `${schedule.by.name}, who made this schedule, has no access any more.`);
      const thread = env.THREAD.getByName(effect.threadId);
      await thread.append(effect.input);
      const log = (await thread.events({ afterSeq: 0, limit: 1, about: effect.input.trigger.id })) as Logged<ThreadEvent>[];
      const follower = log.flatMap(({ event }) => (event.kind === "thread.accepted" ? event.subscribers : []))[0];
      return follower === undefined ? {} : { follower };
    }
    case "board":
      await env.BOARD.getByName(boardName).change(effect.input);
      return {};
  }
}

/** [RS4] Of people whom only a webhook's sender vouches for nobody can be asked. */
async function hasAccess(env: Env, { by, thread }: Schedule): Promise<boolean> {
  await migrated(env.DB);
  const person = by.id.startsWith("prs_") ? await personById(env.DB, by.id) : null;
  if (person !== null) return person.revokedMs === null;
  return thread.source !== github.source || (await stillOfTeam(by.id, thread.place, readConfig(env).github));
}
