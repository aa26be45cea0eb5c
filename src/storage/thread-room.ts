// Everything of a Thread that works in the background: its deadlines and the pumps that carry out what its rows promise.
import { retryAtMs, spreadMs } from "../core/alarms.ts";
import { ownerOf } from "../core/ids.ts";
import { overtaken } from "../core/offer.ts";
import { unsentWords } from "../core/outbound.ts";
import { isActive, rootOwnerOf, saidUnasked, toWidgetRow } from "../core/thread.ts";
import { boardName, type Env, readConfig, routerName } from "../env.ts";
import { faultPoint } from "../fault-point.ts";
import { logFault } from "../log-fault.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { OutboundIntent } from "../protocol/thread.ts";
import type { WidgetRow, WidgetServerFrame } from "../protocol/widget-frames.ts";
import { withTimeout } from "../timeout.ts";
import { AlarmMux } from "./alarm-mux.ts";
import { fromD1 } from "./from-d1.ts";
import { listHeldOffers } from "./held-offers.ts";
import type { Carrier } from "./outbound-ledger.ts";
import { markDecision } from "./policies.ts";
import { Pump } from "./pump.ts";
import { takeOverdue } from "./thread-append.ts";
import { callTimeoutMs, Delivery } from "./thread-delivery.ts";
import { ThreadDrafts } from "./thread-drafts.ts";
import { indexThread } from "./thread-index.ts";
import { tellOffers } from "./thread-offers.ts";
import { type Act, wordOn } from "./thread-page.ts";
import { firstLookMs, lookAtReactions } from "./thread-reactions.ts";
import { type ThreadAbout, ThreadStore } from "./thread-store.ts";
import { WakeList } from "./wake-list.ts";

/** After the first row of a burst: one deadline, one entry in the index and one word to the router for all of them. */
const afterMs = 2_000;
const fallbackMs = 5_000;
/** A thread that hears much is not indexed after each burst, and not in one moment with all others; what it is called is told at once. */
const indexEveryMs = 30_000;
const indexSpreadMs = 10_000;

export type ThreadDeadline =
  | "after"
  | "deliver"
  | "outbound"
  | "act"
  | "moved"
  | "offers"
  | "editions"
  | "reactions"
  | "index"
  | "digest"
  | "draft"
  | "awake";

export type RoomHooks = {
  /** The thread's channel, bound to it; null when nothing can be sent there. */
  carrier: (about: ThreadAbout) => Omit<Carrier, "reached"> | null;
  /** A frame for the pages of this root. */
  broadcast: (frame: WidgetServerFrame) => void;
  /** Whether a page is being brought up to date. */
  catchingUp: () => boolean;
};

export class ThreadRoom {
  readonly store: ThreadStore;
  readonly alarms: AlarmMux<ThreadDeadline>;
  readonly drafts: ThreadDrafts;
  readonly #storage: DurableObjectStorage;
  readonly #env: Env;
  readonly #hooks: RoomHooks;
  readonly #delivery: Delivery;
  readonly #wakeList: WakeList;
  readonly #outbound: Pump;
  readonly #acts: Pump;
  readonly #offers: Pump;
  readonly #spreadMs: number;
  /** What the index was told last, by this instance. */
  #indexed: { name: string; atMs: number } | null = null;

  constructor(storage: DurableObjectStorage, env: Env, threadId: string, hooks: RoomHooks) {
    this.#storage = storage;
    this.#env = env;
    this.#hooks = hooks;
    this.#spreadMs = spreadMs(threadId, indexSpreadMs);
    this.store = new ThreadStore(storage);
    this.alarms = new AlarmMux(storage, {
      after: () => this.#afterwards(),
      deliver: (deadline) => this.#delivery.onDeadline(deadline),
      outbound: async () => {
        void this.#outbound.kick();
        return Date.now() + limits.heartbeatMs;
      },
      act: async () => {
        await this.#acts.kick();
        if (this.store.page.openActs().length > 0) throw new Error("a button's effect is not done yet");
        return undefined;
      },
      moved: () => this.#tellMoved(),
      offers: async () => {
        void this.#offers.kick();
        return Date.now() + limits.heartbeatMs;
      },
      editions: async () => takeOverdue(this),
      reactions: (deadline) => lookAtReactions(this, deadline),
      index: () => this.#index(),
      digest: () => this.#digest(),
      draft: (deadline) => this.drafts.onDeadline(deadline),
      awake: async () => (hooks.catchingUp() ? Date.now() + limits.heartbeatMs : undefined),
    });
    this.drafts = new ThreadDrafts(this.alarms, hooks.broadcast);
    this.#delivery = new Delivery(this.store, this.alarms, env, {
      delivered: () => faultPoint(readConfig(env).faultUrl, "thread.delivered"),
      settled: (waiting) => {
        if (waiting) void this.#listAsBusy();
      },
    });
    this.#wakeList = new WakeList(env.DB, "thread", threadId);
    const onError = (what: string) => (error: unknown) => logFault(what, error, { thread: threadId });
    this.#outbound = new Pump(() => this.#sendOutbound(), onError("thread.outbound"));
    this.#acts = new Pump(() => this.#carryOutActs(), onError("thread.act"));
    this.#offers = new Pump(() => this.#tellOffers(), onError("thread.offer"));
  }

  /** One change of the thread: rows, cursors and the deadlines that repeat its effects, together or not at all. */
  readonly commit = <T>(change: (nowMs: number) => T): T =>
    this.#commit((nowMs) => {
      const result = change(nowMs);
      this.alarms.setEarlier("after", nowMs + afterMs);
      return result;
    });

  /** A row that nobody waits for: only the index is to hear of it, in its own time. Mostly that is planned, and the row is all that is written. */
  readonly keep = (about: ThreadAbout, append: (nowMs: number) => number): number => {
    const nowMs = Date.now();
    const known = this.store.isAbout(about);
    const told = this.#indexed !== null && known ? this.#indexed.atMs + indexEveryMs + this.#spreadMs : 0;
    const indexMs = Math.max(nowMs + afterMs, told);
    if (known && (this.alarms.due("index") ?? Number.POSITIVE_INFINITY) <= indexMs) return append(nowMs);
    return this.#commit(() => {
      this.store.setAbout(about);
      this.alarms.setEarlier("index", indexMs);
      return append(nowMs);
    });
  };

  #commit<T>(change: (nowMs: number) => T): T {
    try {
      return this.#storage.transactionSync(() => change(Date.now()));
    } catch (error) {
      this.store.forget();
      throw error;
    }
  }

  /** Starts what the last commit promised; its deadlines repeat it after a crash. */
  kick(): void {
    this.#delivery.kick();
    if (this.alarms.due("outbound") !== null) void this.#outbound.kick();
    if (this.alarms.due("offers") !== null) void this.#offers.kick();
    if (this.alarms.due("act") !== null) void this.#acts.kick();
  }

  /** The whole of `alarm()` and `poke()`. */
  async run(): Promise<void> {
    await this.alarms.run(Date.now);
    await this.#listAsBusy();
  }

  /** The thread's channel, bound to it. */
  get carrier(): Omit<Carrier, "reached"> | null {
    const about = this.store.about();
    return about && this.#hooks.carrier(about);
  }

  /** Inside a commit: this row is to be sent through the thread's channel. [T14] People may react to it. */
  openOutbound({ id, outcome }: Pick<OutboundIntent, "id" | "outcome">, seq: number, nowMs: number): void {
    this.store.outbound.open(id, seq, nowMs);
    this.alarms.setEarlier("outbound", nowMs + fallbackMs);
    if (outcome && this.carrier?.reactions) this.alarms.setEarlier("reactions", nowMs + firstLookMs);
  }

  /** Inside a commit: an offer changed, and somebody is to hear it. */
  armOffers(nowMs: number): void {
    this.store.setMark("offers.unlisted", 1);
    this.alarms.setEarlier("offers", nowMs + fallbackMs);
  }

  async #tellOffers(): Promise<void> {
    const dues = [await tellOffers(this, this.#env, Date.now()), await this.#listOffers()].filter((dueMs) => dueMs !== null);
    this.alarms.set("offers", dues.length === 0 ? null : Math.min(...dues));
  }

  /** [O11] The list of what waits may lag: while D1 is away, tasks and consoles hear of offers all the same. Returns when to try again. */
  async #listOffers(): Promise<number | null> {
    const threadId = this.store.about()?.threadId;
    if (threadId === undefined || this.store.mark("offers.unlisted") === 0) return null;
    const held = this.store.offers.held();
    this.store.setMark("offers.unlisted", 0);
    try {
      await withTimeout(listHeldOffers(this.#env.DB, threadId, held), callTimeoutMs, "D1");
      return null;
    } catch (error) {
      this.store.setMark("offers.unlisted", 1);
      logFault("thread.offers", error, { thread: threadId });
      return retryAtMs(Date.now(), 1);
    }
  }

  /** While a page is brought up to date: without an alarm the platform may end that. */
  stayAwake(): void {
    this.alarms.setEarlier("awake", Date.now() + limits.heartbeatMs);
  }

  /** Inside a commit: a button, or what counts like one, is durable; twice it counts once. */
  promise(act: Act): void {
    if (!this.store.page.addAct(act)) return;
    const { frame, by, atMs } = act;
    const word = wordOn(act);
    if (word !== null) this.store.log.append(word, atMs);
    if (frame.t === "mark") this.store.log.append({ kind: "thread.marked", outboundId: frame.of, wrong: frame.wrong, by }, atMs);
    this.alarms.setEarlier("act", atMs + fallbackMs);
  }

  /** Makes a button durable; pressed twice it counts once. */
  press(act: Act): void {
    this.#storage.transactionSync(() => this.promise(act));
    const { frame } = act;
    if (frame.t === "mark") this.#hooks.broadcast({ t: "marked", of: frame.of, wrong: frame.wrong });
    void this.#acts.kick();
  }

  /** One that has to wait holds up no other. */
  async #carryOutActs(): Promise<void> {
    let failed: unknown;
    for (const act of this.store.page.openActs()) {
      try {
        await withTimeout(this.#carryOut(act), callTimeoutMs, "What a button does");
        this.store.page.endAct(act.id);
      } catch (error) {
        const fault = asFault(error);
        if (fault?.retry !== "never") {
          failed = error;
          continue;
        }
        this.store.page.endAct(act.id);
        this.#hooks.broadcast({ t: "refused", clientMsgId: act.frame.clientMsgId, message: fault.message });
      }
    }
    if (failed !== undefined) throw failed;
    this.alarms.clear("act");
  }

  async #carryOut({ by, frame, atMs }: Act): Promise<void> {
    if (frame.t === "mark") {
      const said = saidUnasked(await this.#env.THREAD.getByName(frame.threadId).row({ triggerId: frame.of }));
      if ("problem" in said) throw new Fault("not_found", said.problem);
      const mark = { ...said, wrong: frame.wrong, note: "", by: by.name, atMs };
      await fromD1(this.#env.DB, (db) => markDecision(db, this.#env.ROUTER.getByName(routerName), mark));
      return;
    }
    if (frame.t === "decide") {
      // Whose it is and who may say so is looked at where it waits.
      const { offer: outboundId, verdict, taskId } = frame;
      const thread = this.#env.THREAD.getByName(ownerOf(outboundId, "thr") ?? "");
      const late = overtaken(await thread.decideOffer({ outboundId, verdict, by, via: "person", taskId }), verdict);
      if (late !== null) throw new Fault("conflict", late);
      return;
    }
    const task = this.#env.WORKER_SESSION.getByName(frame.taskId);
    if (frame.t === "merge" || frame.t === "reaction") {
      const word =
        frame.t === "merge"
          ? { accepted: true, merged: { place: frame.place } }
          : { accepted: frame.accepted, reacted: { sign: frame.sign } };
      // Asked first: a word on an unknown task would make one.
      if ((await task.describe()) !== null) await task.accept({ by, ...word });
      return;
    }
    switch (frame.action) {
      case "stop":
        await task.cancel({ by, reason: "Stopped in the widget." });
        return;
      case "continue":
        await task.resume({ by, modelCalls: limits.maxModelCallsPerTask });
        return;
      case "accept":
      case "reject":
        await task.accept({ by, accepted: frame.action === "accept" });
        return;
    }
  }

  async #sendOutbound(): Promise<void> {
    const { carrier } = this;
    if (!carrier) return;
    const { faultUrl } = readConfig(this.#env);
    const dueMs = await this.store.outbound.run({ ...carrier, reached: (point) => faultPoint(faultUrl, point) }, Date.now);
    this.alarms.set("outbound", dueMs);
    if (this.alarms.due("offers") !== null) void this.#offers.kick();
    if (this.store.outbound.untold().length > 0) this.alarms.setEarlier("digest", Date.now());
  }

  /** One notice for all messages that did not reach people: they are never lost in silence. */
  async #digest(): Promise<undefined> {
    const about = this.store.about();
    const untold = this.store.outbound.untold();
    const first = untold[0];
    if (!about || !first) return undefined;
    const text = unsentWords(untold, about.title || about.threadId);
    const notice = { id: `outbound:${first.id}`, atMs: Date.now(), kind: "fault", text, threadId: about.threadId } as const;
    await withTimeout(this.#env.BOARD.getByName(boardName).change([{ kind: "notice", notice }]), callTimeoutMs, "The board");
    this.store.outbound.markTold(untold);
    return undefined;
  }

  /** What rows leave to do besides their delivery, which it looks after too. One part that fails is tried again by itself. */
  async #afterwards(): Promise<undefined> {
    this.#delivery.late();
    this.store.keepCursors();
    const parts = { moved: () => this.#tellMoved(), index: () => this.#index() };
    for (const kind of ["moved", "index"] as const)
      try {
        const againMs = await parts[kind]();
        if (againMs !== undefined) this.alarms.setEarlier(kind, againMs);
      } catch (error) {
        logFault(`thread.${kind}`, error);
        this.alarms.set(kind, retryAtMs(Date.now(), 1));
      }
    return undefined;
  }

  async #tellMoved(): Promise<undefined> {
    if (!this.store.subscriptions().some(isActive)) return undefined;
    const about = this.store.about();
    const headSeq = this.store.headRow();
    if (!about || this.store.routerKnows() || headSeq <= this.store.mark("moved.read")) return undefined;
    const call = this.#env.ROUTER.getByName(routerName).moved({ threadId: about.threadId, headSeq });
    await withTimeout(call, callTimeoutMs, "The router");
    this.store.raise("moved.told", headSeq);
    return undefined;
  }

  async #index(): Promise<number | undefined> {
    this.store.skipDecided();
    const about = this.store.about();
    if (!about) return undefined;
    const nowMs = Date.now();
    const name = JSON.stringify([about.title, about.url]);
    const nextMs = this.#indexed?.name === name ? this.#indexed.atMs + indexEveryMs : nowMs;
    if (nextMs > nowMs) return nextMs;
    await indexThread(this.#env.DB, this.store.info(about), nowMs);
    this.#indexed = { name, atMs: nowMs };
    this.alarms.clear("index");
    return undefined;
  }

  /** A row as the pages of this root show it; null for a thread of no page, and for what pages do not show. */
  shown(seq: number): WidgetRow | null {
    const owner = rootOwnerOf(this.store.about()?.threadKey ?? "");
    const logged = owner === null ? null : this.store.log.at(seq);
    const row = logged && this.store.row(logged);
    return row && owner !== null ? toWidgetRow(row, owner) : null;
  }

  /** The second source of wake-ups: written when something stays due, and again when nothing is. */
  async #listAsBusy(): Promise<void> {
    // The index may lag, and so may a look: for these alone nobody else has to wake this thread.
    const dueMs = this.alarms.nextMs("index", "reactions");
    const listed = this.store.mark("busy") === 1;
    if (dueMs === null && !listed) return;
    await this.#wakeList.report(dueMs);
    this.store.setMark("busy", dueMs === null ? 0 : 1);
  }
}
