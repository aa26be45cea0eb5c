// Carries out the effects of a worker session, each target apart from the others. Every receiver takes a repeated one as the same.
import { retryAtMs } from "../src/core/alarms.ts";
import { taskAudience } from "../src/core/audience.ts";
import { offerRefused } from "../src/core/worker-offers.ts";
import { readAnswered } from "../src/core/worker-reply.ts";
import { shareOf } from "../src/core/worker-spill.ts";
import type { Change, TaskState, WorkerEffect } from "../src/core/worker-state.ts";
import { boardName, type Env, routerName } from "../src/env.ts";
import { logFault } from "../src/log-fault.ts";
import { asFault, messageOf } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Offer } from "../src/protocol/offer.ts";
import type { DeliveredRow } from "../src/protocol/thread.ts";
import { askerOf, indexTask } from "../src/storage/task-index.ts";
import { WakeList } from "../src/storage/wake-list.ts";
import type { StoredEffect, WorkerStore } from "../src/storage/worker-store.ts";
import { withTimeout } from "../src/timeout.ts";
import { commandFor } from "../src/tools/on-endpoint.ts";
import { answerRead } from "./worker-reads.ts";

/** Another object, or D1, has this long for one effect; then it is tried again later. */
const effectTimeoutMs = 30_000;

/** What nobody needs once its receiver will never take it: a thread that does not know us needs no card, no note and no farewell. */
const pointless: readonly WorkerEffect["effect"][] = ["card", "unsubscribe", "withdraw", "follow", "note"];
type ReadEffect = Extract<WorkerEffect, { effect: "read" }>;
type SentEffect = Exclude<WorkerEffect, ReadEffect>;

/** What the effects need of their worker session. */
export type EffectsHost = {
  name: string;
  env: Env;
  store: WorkerStore;
  decide(decision: (nowMs: number) => Change | null): void;
  /** The step loop may have something to do. */
  step(): void;
  fault(): Promise<void>;
};

export class WorkerEffects {
  readonly #host: EffectsHost;
  readonly #wakeList: WakeList;

  constructor(host: EffectsHost) {
    this.#host = host;
    this.#wakeList = new WakeList(host.env.DB, "worker", host.name);
  }

  /** Sends everything that is due; what fails is due again with back-off, and holds up only its own target. */
  async sendDue(): Promise<void> {
    await Promise.all(this.#host.store.dueEffects(Date.now()).map((group) => this.#sendGroup(group)));
  }

  async #sendGroup(group: StoredEffect[]): Promise<void> {
    const { store } = this.#host;
    for (const stored of group) {
      const task = store.task();
      if (task === null) return;
      try {
        if (stored.effect.effect === "read") await this.#read(stored, stored.effect);
        else {
          await withTimeout(send(this.#host.env, stored.effect, task), effectTimeoutMs, stored.target);
          await this.#host.fault();
          store.effectDone(stored);
        }
      } catch (error) {
        if (asFault(error)?.retry === "never" && this.#endsThere(stored, messageOf(error))) continue;
        logFault("worker-session.effect", error, { effect: stored.id, attempts: stored.attempts });
        store.effectFailed(stored, retryAtMs(Date.now(), stored.attempts));
        return;
      }
    }
  }

  /** What its receiver will never take: an offer comes back as refused, and what nobody needs then is done with; all else is tried again. */
  #endsThere(stored: StoredEffect, reason: string): boolean {
    const { effect } = stored;
    if (effect.effect === "offer") this.#notOffered(stored, effect.input.offer, reason);
    else if (pointless.includes(effect.effect)) this.#host.store.effectDone(stored);
    else return false;
    return true;
  }

  #notOffered(stored: StoredEffect, offer: Offer, reason: string): void {
    const { store } = this.#host;
    this.#host.decide((nowMs) => {
      store.effectDone(stored);
      const task = store.task();
      return task && offerRefused(task, offer, reason, { receive: store.inbox.receiveOne, commandFor, nowMs });
    });
    this.#host.step();
  }

  async #read(stored: StoredEffect, { step, callId, read }: ReadEffect): Promise<void> {
    const { store, env } = this.#host;
    const task = store.task();
    const reader = { taskId: this.#host.name, audience: task === null ? this.#host.name : taskAudience(task.start) };
    const { output, tainting, artifactId } = await answerRead(env, reader, read, shareOf(store.calls(step).length));
    await this.#host.fault();
    this.#host.decide(() => {
      const own = read.read === "recall" && store.ownsArtifact(read.id);
      store.answer(step, callId, output, tainting && !own);
      if (artifactId !== null) store.addSpilled(artifactId);
      store.effectDone(stored);
      const now = store.task();
      return now === null ? null : readAnswered(now, store.calls(step), { step, callId });
    });
    this.#host.step();
  }

  /** Tells the wake list when this object is due. */
  async listWake(nextMs: number | null): Promise<void> {
    await this.#wakeList.report(nextMs, nextMs !== null && nextMs > Date.now() + limits.wakeOverdueMs);
  }
}

/** Resolves when the receiver has it; throws when it must be tried again. */
async function send(env: Env, effect: SentEffect, task: TaskState): Promise<void> {
  const { start, card } = task;
  switch (effect.effect) {
    case "submit":
      await env.ENDPOINT.getByName(effect.endpointId).submit({
        ...effect.command,
        speculative: start.speculative === true,
        audience: taskAudience(start),
      });
      return;
    case "asked":
      await env.ENDPOINT.getByName(effect.endpointId).asked({ taskId: start.taskId });
      return;
    case "stop":
      await env.ENDPOINT.getByName(effect.endpointId).stop({ commandId: effect.commandId, why: effect.why });
      return;
    case "stop_task":
      await env.ENDPOINT.getByName(effect.endpointId).stopTask({ taskId: start.taskId, epoch: effect.epoch });
      return;
    case "report":
      if (start.parent === undefined) await env.ROUTER.getByName(routerName).report(effect.report);
      else await env.WORKER_SESSION.getByName(start.parent.taskId).childReport(effect.report);
      return;
    case "note":
      await env.THREAD.getByName(effect.threadId).note(effect.note);
      return;
    case "start_child":
      await env.WORKER_SESSION.getByName(effect.start.taskId).start(effect.start);
      return;
    case "tell_child":
      await env.WORKER_SESSION.getByName(effect.taskId).tell({
        id: effect.id,
        text: effect.text,
        authority: start.authority,
        tainted: task.tainted,
      });
      return;
    case "cancel_child":
      await env.WORKER_SESSION.getByName(effect.taskId).cancel({ by: effect.by, reason: effect.reason });
      return;
    case "card":
      switch (effect.to) {
        case "board": {
          const place = { source: start.source, place: start.place, askedBy: askerOf(start) };
          await env.BOARD.getByName(boardName).change([{ kind: "task", task: { ...card, ...place } }]);
          return;
        }
        case "index":
          await indexTask(env.DB, start, card);
          return;
        default:
          await env.THREAD.getByName(effect.to).card(card);
          return;
      }
    case "unsubscribe":
      await env.THREAD.getByName(effect.threadId).unsubscribe({ taskId: start.taskId, reason: effect.reason });
      if (effect.byWorker)
        await env.ROUTER.getByName(routerName).follow({ taskId: start.taskId, threadId: effect.threadId, follows: false });
      return;
    case "offer":
      await env.THREAD.getByName(effect.threadId).offer(effect.input);
      return;
    case "withdraw": {
      const { outboundId, by, reason } = effect;
      await env.THREAD.getByName(effect.threadId).decideOffer({ outboundId, verdict: "decline", by, via: "person", reason });
      return;
    }
    case "follow": {
      const { threadId, decisionId, about } = effect;
      await env.THREAD.getByName(threadId).subscribe({ taskId: start.taskId, decisionId, about });
      await env.ROUTER.getByName(routerName).follow({ taskId: start.taskId, threadId, follows: true });
      return;
    }
    case "release": {
      const rows = await freeRows(env, start.taskId, effect);
      if (effect.recordOnly || rows.length === 0) return;
      await env.ROUTER.getByName(routerName).deliver({
        threadId: effect.threadId,
        rows,
        before: [],
        tasks: [start.taskId],
        releasedBy: start.taskId,
      });
      return;
    }
  }
}

/** [W21] The rows that nobody keeps any more: a row that another task has is not the router's yet. */
async function freeRows(env: Env, taskId: string, { threadId, rows }: Extract<SentEffect, { effect: "release" }>): Promise<DeliveredRow[]> {
  try {
    const { free } = await env.THREAD.getByName(threadId).release({ taskId, seqs: rows.map(({ row }) => row.seq) });
    return rows.filter(({ row }) => free.includes(row.seq));
  } catch (error) {
    if (asFault(error)?.kind !== "not_found") throw error;
    return rows;
  }
}
