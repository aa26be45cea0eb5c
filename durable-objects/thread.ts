// One thread: its ordered log, who follows it, what was said in it, and for a root the sockets of its widget page.
import { DurableObject } from "cloudflare:workers";
import { channelOf } from "../src/channels/registry.ts";
import { answerFrame, sendMissed } from "../src/channels/web-page.ts";
import { readSocketGrant, refuseUpgrade, WidgetSockets } from "../src/channels/web-sockets.ts";
import { deliveryOf, duplicateOf, topicThreadIdOf } from "../src/core/thread.ts";
import { type Env, readConfig } from "../src/env.ts";
import { faultPoint } from "../src/fault-point.ts";
import { Fault } from "../src/protocol/fault.ts";
import type { OfferView } from "../src/protocol/offer.ts";
import type { AppendResult, ThreadRpc } from "../src/protocol/rpc.ts";
import type { TaskCard } from "../src/protocol/task.ts";
import type { ThreadRow } from "../src/protocol/thread.ts";
import { type WidgetServerFrame, widgetClose } from "../src/protocol/widget-frames.ts";
import { releasePolicyInForce } from "../src/storage/release-policy.ts";
import { planFor, takeInOrder } from "../src/storage/thread-append.ts";
import { attachTopic, note, openTopic, post, release, repeat, subscribe, unsubscribe } from "../src/storage/thread-changes.ts";
import { callTimeoutMs } from "../src/storage/thread-delivery.ts";
import { draftPlace } from "../src/storage/thread-drafts.ts";
import { decideOffer, takeOffer } from "../src/storage/thread-offers.ts";
import { ThreadRoom } from "../src/storage/thread-room.ts";
import { readThread, ThreadStore } from "../src/storage/thread-store.ts";
import { withTimeout } from "../src/timeout.ts";
import { carrierIn, inManner, pagePorts } from "./thread-ports.ts";

type Input<M extends keyof ThreadRpc> = Parameters<ThreadRpc[M]>[0];

export class Thread extends DurableObject<Env> implements ThreadRpc {
  readonly #config = readConfig(this.env);
  readonly #sockets = new WidgetSockets(this.ctx, (principalId) => this.#isRevoked(principalId));
  /** Null until something is kept: what the gate ignores makes no tables. */
  #opened: ThreadRoom | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    if (ThreadStore.exists(ctx.storage)) this.#open();
    this.#sockets.closeStranded();
  }

  get #id(): string {
    const { name } = this.ctx.id;
    if (name === undefined) throw new Fault("bad_input", "A thread is reached by its thr_ id.");
    return name;
  }

  #open(): ThreadRoom {
    this.#opened ??= new ThreadRoom(this.ctx.storage, this.env, this.#id, {
      carrier: (about) => carrierIn(this.env, this.#config, about),
      broadcast: (frame) => this.#broadcast(frame),
      catchingUp: () => this.#sockets.catchingUp,
    });
    return this.#opened;
  }

  readonly #isRevoked = (principalId: string): boolean => this.#opened?.store.page.isRevoked(principalId) ?? false;

  #known(): ThreadRoom {
    if (!this.#opened?.store.about()) throw new Fault("not_found", `There is no thread ${this.#id}.`);
    return this.#opened;
  }

  async append({ trigger, verdict }: Input<"append">): Promise<AppendResult> {
    if (trigger.threadId !== this.#id) throw new Fault("bad_input", `This trigger belongs to ${trigger.threadId}, not to ${this.#id}.`);
    const known = this.#opened?.store;
    const first = known?.log.byKey(trigger.id) ?? null;
    const fromChannel = channelOf(trigger.source) !== null;
    const plan = planFor(known, { trigger, verdict }, { knownSeq: first?.seq ?? null, fromChannel, nowMs: Date.now() });
    switch (plan.do) {
      case "ignore":
        return { outcome: "ignored", triggerId: trigger.id, rule: plan.rule };
      case "confirm":
        if (plan.news) known?.outbound.confirm(plan.outboundId, trigger.externalId ?? trigger.deliveryId, Date.now());
        this.#opened?.kick();
        return { outcome: "confirmed", triggerId: trigger.id, outboundId: plan.outboundId };
      case "duplicate":
        known?.log.append(duplicateOf(deliveryOf(first?.event), trigger), Date.now());
        this.#opened?.kick();
        return { outcome: "duplicate", triggerId: trigger.id, seq: plan.seq };
      case "accept": {
        const { result, seqs } = takeInOrder(this.#open(), plan.event);
        for (const seq of seqs) this.#show(this.#open(), seq);
        await faultPoint(this.#config.faultUrl, "thread.committed");
        this.#opened?.kick();
        return result;
      }
    }
  }

  async repeated(input: Input<"repeated">): Promise<void> {
    repeat(this.#known(), input);
  }

  async subscribe(input: Input<"subscribe">): ReturnType<ThreadRpc["subscribe"]> {
    const room = input.about ? this.#open() : this.#known();
    const { fromSeq, cutSeq, tainted } = subscribe(room, this.#id, input);
    room.kick();
    return { fromSeq, cutSeq, tainted };
  }

  async unsubscribe(input: Input<"unsubscribe">): Promise<{ atSeq: number }> {
    return { atSeq: unsubscribe(this.#known(), input) };
  }

  async note(input: Input<"note">): Promise<void> {
    note(this.#known(), this.#id, input);
  }

  async release(input: Input<"release">): Promise<{ free: number[] }> {
    return { free: release(this.#known(), input) };
  }

  async openTopic(input: Input<"openTopic">): Promise<{ fromSeq: number; cutSeq: number }> {
    if (topicThreadIdOf(input.taskId, input.trigger.place) !== this.#id)
      throw new Fault("bad_input", `${this.#id} is not the topic of ${input.taskId}.`);
    const room = this.#open();
    const range = openTopic(room, this.#id, input);
    room.kick();
    return range;
  }

  async attachTopic(input: Input<"attachTopic">): Promise<{ seq: number }> {
    const room = this.#known();
    const { seq, news } = attachTopic(room, input);
    if (news) this.#show(room, seq);
    return { seq };
  }

  async post(intent: Input<"post">): Promise<{ seq: number }> {
    const room = this.#known();
    const { seq, news } = post(room, this.#id, intent, inManner);
    if (news) this.#show(room, seq);
    room.kick();
    return { seq };
  }

  async offer(input: Input<"offer">): ReturnType<ThreadRpc["offer"]> {
    const policy = await releasePolicyInForce(this.env.DB, Date.now());
    return this.#shown(takeOffer(this.#open(), this.#id, input, policy));
  }

  async decideOffer(input: Input<"decideOffer">): ReturnType<ThreadRpc["decideOffer"]> {
    return this.#shown(decideOffer(this.#known(), input, inManner));
  }

  #shown(view: OfferView): OfferView {
    const room = this.#open();
    this.#show(room, room.store.log.byKey(view.offer.outbound.id)?.seq ?? 0);
    room.kick();
    return view;
  }

  async offered({ outboundId }: Input<"offered">): ReturnType<ThreadRpc["offered"]> {
    return this.#opened?.store.offers.view(outboundId) ?? null;
  }

  async card(card: TaskCard): Promise<void> {
    const room = this.#known();
    if (room.commit(() => room.store.saveCard(card))) room.kick();
  }

  async mirror({ topicThreadId, frames }: Input<"mirror">): Promise<{ taken: boolean }> {
    const page = this.#opened?.store.page;
    if (!page?.topic(topicThreadId)) return { taken: false };
    for (const frame of frames) if (frame.t !== "row" || page.takeMirrored(topicThreadId, frame.seq)) this.#broadcast(frame);
    return { taken: true };
  }

  async draft(input: Input<"draft">): Promise<{ taken: boolean }> {
    const place = this.#opened && draftPlace(this.#opened, this.#id, input);
    if (!place) return { taken: false };
    if (place === "here") this.#opened?.drafts.take(input, Date.now());
    else if (place !== "said") this.ctx.waitUntil(this.#reach(place.root, (root) => root.draft(input)));
    return { taken: true };
  }

  async read(range: Input<"read">): ReturnType<ThreadRpc["read"]> {
    return readThread(this.#opened?.store, this.#id, range);
  }

  async row({ triggerId }: Input<"row">): Promise<ThreadRow | null> {
    const logged = this.#opened?.store.log.byKey(triggerId);
    return (logged && this.#opened?.store.row(logged)) ?? null;
  }

  async revoke({ principalId }: Input<"revoke">): Promise<{ closed: number }> {
    this.#open().store.page.revoke(principalId);
    return { closed: this.#sockets.closeOf(principalId) };
  }

  async events({ afterSeq, limit, about }: Input<"events">): ReturnType<ThreadRpc["events"]> {
    return this.#opened?.store.log.after(afterSeq, limit, [], about) ?? [];
  }

  override async alarm(): Promise<void> {
    await this.#opened?.run();
  }

  async poke(): Promise<void> {
    this.#opened?.kick();
    await this.#opened?.run();
  }

  /** The upgrade of a widget's page; the Worker has verified the ticket and says whose it is. */
  override async fetch(request: Request): Promise<Response> {
    const grant = readSocketGrant(request);
    if (!grant) return new Response("not found", { status: 404 });
    const { page } = this.#open().store;
    if (page.isRevoked(grant.principal.id)) return refuseUpgrade(widgetClose.revoked, "Your access was revoked.");
    if (!page.useTicket(grant.ticketId, grant.expiresMs, Date.now()))
      return refuseUpgrade(widgetClose.unauthorised, "This ticket was used before; get a new one.");
    return this.#sockets.accept(grant.principal);
  }

  override async webSocketMessage(ws: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const received = this.#sockets.receive(ws, message);
    if (!received) return;
    const { principal, frame } = received;
    const room = this.#open();
    const host = { id: this.#id, env: this.env, ctx: this.ctx, room };
    const ports = pagePorts(
      host,
      (id) => this.#isRevoked(id),
      (id, call) => this.#reach(id, call),
    );
    if (frame.t === "hello") {
      room.stayAwake();
      // Detached: reading the topics must not make this handler wait for other objects.
      void this.#sockets.catchUp(ws, (send) => sendMissed(ports, principal, frame.resume, send));
    } else await this.#sockets.inOrder(ws, async () => this.#sockets.send(ws, await answerFrame(ports, principal, frame, Date.now())));
  }

  override async webSocketClose(ws: WebSocket, code: number): Promise<void> {
    this.#sockets.closed(ws, code);
  }

  #show(room: ThreadRoom, seq: number): void {
    const row = room.shown(seq);
    if (row) this.#broadcast({ t: "row", threadId: this.#id, seq, row });
  }

  #broadcast(frame: WidgetServerFrame): void {
    if (frame.t === "row" && frame.row.kind === "reply") this.#opened?.drafts.end(frame.row.id ?? "");
    this.#sockets.broadcast(frame);
  }

  /** This thread or a topic under it; only work of the sockets waits for another object, with a limit. */
  #reach<T>(threadId: string, call: (thread: Pick<ThreadRpc, "read" | "row" | "append" | "draft">) => Promise<T>): Promise<T> {
    return withTimeout(call(threadId === this.#id ? this : this.env.THREAD.getByName(threadId)), callTimeoutMs, threadId);
  }
}
