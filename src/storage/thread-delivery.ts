// Delivery of a Thread's log: one cursor and one pump for each target, so that a target that fails or hangs holds back no other.
import { retryAtMs } from "../core/alarms.ts";
import { alsoWith, covers, deliveredKinds, isActive, toWidgetRow } from "../core/thread.ts";
import { type Env, routerName } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { Fault } from "../protocol/fault.ts";
import type { TaskId } from "../protocol/ids.ts";
import { limits } from "../protocol/limits.ts";
import type { WidgetServerFrame } from "../protocol/widget-frames.ts";
import { withTimeout } from "../timeout.ts";
import type { AlarmMux, DeadlineHandler } from "./alarm-mux.ts";
import { Pump } from "./pump.ts";
import type { ThreadAbout, ThreadStore } from "./thread-store.ts";

/** Longer than any durable write of the other side. */
export const callTimeoutMs = 15_000;
/** Earlier rows that the router reads along with those that it decides. */
const rowsBefore = 5;

const routerTarget = "router";
const mirrorTarget = "mirror";

export type DeliveryHooks = {
  /** After each hand-over. */
  delivered: () => Promise<void>;
  /** When all pumps stand still; `waiting` says whether something failed and is tried again later. */
  settled: (waiting: boolean) => void;
};

export class Delivery {
  readonly #store: ThreadStore;
  readonly #alarms: AlarmMux<"deliver" | "after">;
  readonly #env: Pick<Env, "ROUTER" | "THREAD" | "WORKER_SESSION">;
  readonly #hooks: DeliveryHooks;
  readonly #pumps = new Map<string, Pump>();
  #running = 0;
  #failed = false;
  #attempts = 0;

  constructor(
    store: ThreadStore,
    alarms: AlarmMux<"deliver" | "after">,
    env: Pick<Env, "ROUTER" | "THREAD" | "WORKER_SESSION">,
    hooks: DeliveryHooks,
  ) {
    this.#store = store;
    this.#alarms = alarms;
    this.#env = env;
    this.#hooks = hooks;
  }

  /** Some time after a commit: what its own delivery did not hand over, as after a crash, is begun again and then looked after. */
  late(): void {
    if (this.#waiting().length === 0) return;
    this.#alarms.setEarlier("deliver", Date.now() + limits.heartbeatMs, { payload: "0" });
    this.kick();
  }

  /** While the deadline after a burst is still to come, it does this for all of the burst. */
  keepCursors(): void {
    if (this.#alarms.due("after") === null) this.#store.keepCursors();
  }

  /** Starts delivery to whoever waits for something. */
  kick(): void {
    const targets = this.#waiting();
    if (targets.length === 0 && this.#running === 0) this.#alarms.clear("deliver");
    for (const target of targets) {
      this.#running += 1;
      void this.#pump(target)
        .kick()
        .finally(() => {
          this.#running -= 1;
          if (this.#running === 0) this.#settle();
        });
    }
  }

  /** The fallback's work: it waits for no target, so that the object's other deadlines get their turn. */
  readonly onDeadline: DeadlineHandler = async (deadline) => {
    this.#attempts = Math.max(this.#attempts, Number(deadline.payload));
    if (this.#waiting().length === 0) return undefined;
    this.kick();
    return Date.now() + limits.heartbeatMs;
  };

  #pump(target: string): Pump {
    const known = this.#pumps.get(target);
    if (known) return known;
    const pump = new Pump(
      async () => {
        const about = this.#store.about();
        while (about && (await this.#step(target, about))) await this.#hooks.delivered();
      },
      (error) => {
        this.#failed = true;
        logFault("thread.delivery", error, { target });
      },
    );
    this.#pumps.set(target, pump);
    return pump;
  }

  #settle(): void {
    const waiting = this.#waiting().length > 0;
    if (!waiting) {
      this.#attempts = 0;
      this.#alarms.clear("deliver");
    } else if (this.#failed) {
      this.#attempts += 1;
      this.#alarms.set("deliver", retryAtMs(Date.now(), this.#attempts), { payload: String(this.#attempts) });
    }
    this.#failed = false;
    this.keepCursors();
    this.#hooks.settled(waiting);
  }

  /** Targets with rows that they did not take yet. */
  #waiting(): string[] {
    const subscriptions = this.#store.subscriptions();
    const tasks = subscriptions.filter((one) => this.#store.nextSeq(one.cursor, one.endSeq) !== null).map((one) => one.taskId);
    // A subscribed thread owes the router nothing: the flip moved its cursor past the cut.
    const router = !subscriptions.some(isActive) && this.#store.routerWaiting() !== null;
    return [...(router ? [routerTarget] : []), ...new Set(tasks), ...(this.#mirrorWaits() ? [mirrorTarget] : [])];
  }

  #mirrorWaits(): boolean {
    if (this.#store.about()?.rootThreadId === undefined) return false;
    return this.#store.nextSeq(this.#store.mark("mirror.cursor"), null) !== null || this.#store.unmirroredCards().length > 0;
  }

  /** Hands the next rows to a target; false when it has all. */
  #step(target: string, about: ThreadAbout): Promise<boolean> {
    if (target === routerTarget) return this.#toRouter(about);
    if (target === mirrorTarget) return this.#toRoot(about);
    return this.#toTask(target, about);
  }

  async #toRouter(about: ThreadAbout): Promise<boolean> {
    const store = this.#store;
    if (store.subscriptions().some(isActive)) return false;
    const { rows, throughSeq } = store.routerRows(limits.maxDeliveryRows);
    const first = rows[0];
    if (!first) {
      // Only rows that nobody decides in this stretch of the log: what waits is further on.
      store.took("router.cursor", throughSeq);
      return store.routerWaiting() !== null;
    }
    const call = this.#env.ROUTER.getByName(routerName).deliver({
      threadId: about.threadId,
      rows: rows.map((row) => ({ row, alsoWith: [] })),
      before: store.rowsBefore(first.seq, rowsBefore),
      tasks: store.tasks(),
    });
    const taken = (await withTimeout(call, callTimeoutMs, "The router")).throughSeq;
    if (taken < first.seq) throw new Fault("unavailable", `The router took no row of ${about.threadId}.`);
    store.took("router.cursor", taken >= (rows.at(-1)?.seq ?? 0) ? throughSeq : taken);
    return true;
  }

  async #toTask(taskId: TaskId, about: ThreadAbout): Promise<boolean> {
    const store = this.#store;
    const subscriptions = store.subscriptions();
    const next = subscriptions.find((one) => one.taskId === taskId && store.nextSeq(one.cursor, one.endSeq) !== null);
    if (!next) return false;
    const rows = store.rowsAfter(next.cursor, limits.maxDeliveryRows, deliveredKinds).filter((row) => covers(next, row.seq));
    const first = rows[0];
    const last = rows.at(-1);
    if (!first || !last) return false;
    const statuses = new Map(store.cards().map((card) => [card.taskId, card.status]));
    const call = this.#env.WORKER_SESSION.getByName(taskId).deliver({
      threadId: about.threadId,
      rows: rows.map((row) => ({ row, alsoWith: alsoWith(subscriptions, taskId, row.seq, statuses) })),
    });
    const taken = (await withTimeout(call, callTimeoutMs, taskId)).throughSeq;
    if (taken < first.seq) throw new Fault("unavailable", `${taskId} took no row of ${about.threadId}.`);
    store.advance(next, Math.min(taken, last.seq));
    return true;
  }

  /** A topic's rows and cards, as frames for the page at its root. */
  async #toRoot(about: ThreadAbout): Promise<boolean> {
    const store = this.#store;
    const { rootThreadId, viewerId, threadId } = about;
    if (rootThreadId === undefined || viewerId === undefined) return false;
    const rows = store.rowsAfter(store.mark("mirror.cursor"), limits.maxDeliveryRows);
    const cards = store.unmirroredCards();
    if (rows.length === 0 && cards.length === 0) return false;
    const frames: WidgetServerFrame[] = rows.flatMap((row) => {
      const shown = toWidgetRow(row, viewerId);
      return shown ? [{ t: "row" as const, threadId, seq: row.seq, row: shown }] : [];
    });
    frames.push(...cards.map((card) => ({ t: "card" as const, threadId, card })));
    const call = this.#env.THREAD.getByName(rootThreadId).mirror({ topicThreadId: threadId, frames });
    const { taken } = await withTimeout(call, callTimeoutMs, rootThreadId);
    if (!taken) throw new Fault("unavailable", `${rootThreadId} does not know the topic ${threadId} yet.`);
    store.took("mirror.cursor", rows.at(-1)?.seq ?? 0);
    for (const card of cards) store.mirroredCard(card);
    return true;
  }
}
