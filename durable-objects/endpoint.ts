// One machine: its daemon's hibernating socket, the ledger of its commands, and what waits while it is away.
import { DurableObject } from "cloudflare:workers";
import type { Decision, EndpointInput } from "../src/core/command-ledger.ts";
import { expectedHost } from "../src/core/endpoint.ts";
import { type Env, readConfig } from "../src/env.ts";
import { type FaultPoint, faultPoint } from "../src/fault-point.ts";
import { logFault } from "../src/log-fault.ts";
import type { CommandState, QueuedCommand } from "../src/protocol/command.ts";
import { type DaemonFrame, daemonClose, type HelloFrame } from "../src/protocol/daemon-frames.ts";
import type { EndpointEvent, Logged } from "../src/protocol/events.ts";
import { Fault, messageOf } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { EndpointRpc } from "../src/protocol/rpc.ts";
import { AlarmMux } from "../src/storage/alarm-mux.ts";
import { CommandRows } from "../src/storage/command-rows.ts";
import { EndpointEffects } from "../src/storage/endpoint-effects.ts";
import { type EndpointDeadline, EndpointStore, heldResultMs } from "../src/storage/endpoint-store.ts";
import { EventLog } from "../src/storage/event-log.ts";
import { OutputStore } from "../src/storage/output.ts";
import { Pump } from "../src/storage/pump.ts";
import { WakeList } from "../src/storage/wake-list.ts";
import { bytesOfBase64, inputOf, parseDaemonFrame, type Refusal, verifyHello } from "../src/tools/daemon-socket.ts";
import { answerClose, close, DaemonSockets, epochOf, superseded } from "../src/tools/daemon-sockets.ts";

export class Endpoint extends DurableObject<Env> implements EndpointRpc {
  readonly #endpointId: string;
  readonly #log: EventLog<EndpointEvent>;
  readonly #rows: CommandRows;
  readonly #output: OutputStore;
  readonly #sockets: DaemonSockets;
  readonly #alarms: AlarmMux<EndpointDeadline>;
  readonly #store: EndpointStore;
  readonly #effects: EndpointEffects;
  readonly #pump: Pump;
  readonly #wake: WakeList;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    if (ctx.id.name === undefined) throw new Error("an Endpoint is addressed by the name of its id");
    this.#endpointId = ctx.id.name;
    this.#log = new EventLog(ctx.storage.sql, { indexed: () => true });
    this.#rows = new CommandRows(ctx.storage.sql);
    this.#output = new OutputStore(ctx.storage, env.STORE);
    this.#sockets = new DaemonSockets(ctx);
    this.#alarms = new AlarmMux(ctx.storage, {
      effects: () => this.#effectsDue(),
      expiry: async () => this.#applied({ kind: "expire" }),
      held: ({ key }) => this.#heldTooLong(key),
      sweep: async () => this.#sweep(),
    });
    this.#store = new EndpointStore(ctx.storage, this.#log, this.#rows, this.#output, this.#alarms);
    this.#effects = new EndpointEffects(env, this.#endpointId, this.#rows, this.#output);
    this.#pump = new Pump(
      () => this.#carryOut(),
      (error) => this.#complain(error),
    );
    this.#wake = new WakeList(env.DB, "endpoint", this.#endpointId);
  }

  async enrol(input: { endpointId: string; name: string; publicKey: string; platform: string; host?: string }): Promise<void> {
    const known = this.#rows.machine();
    if (known && known.publicKey !== input.publicKey) throw new Fault("conflict", `${known.name} is enrolled with another key already.`);
    await this.#applied({ kind: "enrol", ...input });
  }

  async submit(command: QueuedCommand): Promise<{ state: CommandState }> {
    this.#noticeLoss();
    await this.#applied({ kind: "submit", command }, "endpoint.queued");
    return { state: this.#rows.entry(command.commandId)?.state ?? "settled" };
  }

  async asked({ taskId }: { taskId: string }): Promise<void> {
    this.#noticeLoss();
    await this.#applied({ kind: "asked", taskId });
  }

  async stop({ commandId, why }: { commandId: string; why: string }): Promise<{ known: boolean }> {
    this.#noticeLoss();
    await this.#applied({ kind: "stop", commandId, why });
    return { known: this.#rows.entry(commandId) !== null };
  }

  async stopTask({ taskId, epoch }: { taskId: string; epoch: number }): Promise<void> {
    this.#noticeLoss();
    await this.#applied({ kind: "stop_task", taskId, epoch });
  }

  async readOutput(input: { commandId: string; offset: number; limit: number }) {
    const entry = this.#rows.entry(input.commandId);
    if (!entry) return null;
    const { text, next, totalBytes } = await this.#output.read(input.commandId, input.offset, input.limit);
    return { text, offset: next, totalBytes, done: entry.state === "settled" && next >= totalBytes, audience: entry.command.audience };
  }

  async revoke({ by }: { by: string }): Promise<void> {
    const decided = this.#applied({ kind: "revoke", by });
    this.#sockets.revoke();
    await decided;
  }

  async describe() {
    this.#noticeLoss();
    const machine = this.#rows.machine();
    if (!machine) return null;
    const { endpointId, name, online, workspaces, sandbox, revoked } = machine;
    return { endpointId, name, online, workspaces, sandbox, revoked, ...this.#rows.counts() };
  }

  async events({ afterSeq, limit, about }: { afterSeq: number; limit: number; about?: string }): Promise<Logged[]> {
    return this.#log.after(afterSeq, limit, [], about);
  }

  async poke(): Promise<void> {
    await this.alarm();
    await this.#pump.kick();
  }

  override async alarm(): Promise<void> {
    this.#noticeLoss();
    await this.#alarms.run(Date.now);
  }

  /** The daemon dials in: it is challenged, and until a valid hello nothing else is heard. */
  override async fetch(request: Request): Promise<Response> {
    const machine = this.#rows.machine();
    if (!machine) return Response.json({ error: "not_found", message: "No such machine is enrolled here." }, { status: 404 });
    if (machine.revoked) return Response.json({ error: "gone", message: `${machine.name} was revoked. Enrol it again.` }, { status: 410 });
    this.#alarms.setEarlier("sweep", this.#sockets.sweepAtMs(1));
    return this.#sockets.accept(expectedHost(machine, new URL(request.url).host), crypto.randomUUID(), Date.now());
  }

  override async webSocketMessage(ws: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const { frame, refusal } = parseDaemonFrame(message);
    if (refusal) return this.#refuse(ws, refusal);
    if (frame.t === "hello") return this.#hello(ws, frame);
    const epoch = epochOf(ws);
    if (epoch === null) return this.#refuse(ws, { code: daemonClose.unauthorised, reason: "the first frame must be a hello" });
    if (epoch !== this.#rows.machine()?.epoch) return this.#refuse(ws, superseded);
    await this.#work(ws, frame);
  }

  override async webSocketClose(ws: WebSocket, code: number, reason: string): Promise<void> {
    this.#gone(ws, { code, reason });
    answerClose(ws, { code, reason });
  }

  override async webSocketError(ws: WebSocket, error: unknown): Promise<void> {
    this.#gone(ws, { code: 1006, reason: messageOf(error) });
  }

  async #hello(ws: WebSocket, frame: HelloFrame): Promise<void> {
    const refuse = (reason: string) => this.#refuse(ws, { code: daemonClose.unauthorised, reason });
    const challenge = this.#sockets.spend(ws);
    if (!challenge) return refuse("this challenge was used already");
    const machine = this.#rows.machine();
    if (machine?.endpointId !== frame.endpointId) return refuse("this hello is for another machine");
    if (!(await verifyHello(machine.publicKey, frame, challenge))) return refuse("the signature is not of this machine's key");
    if (ws.readyState !== WebSocket.OPEN) return;
    const workspaces = frame.workspaces.map(({ name }) => name);
    const decision = this.#store.apply({ kind: "hello", about: frame.about, workspaces, open: frame.open });
    if (decision.close) return this.#refuse(ws, decision.close);
    this.#sockets.promote(ws, decision.machine?.epoch ?? 0);
    this.#alarms.set("sweep", this.#sockets.sweepAtMs(this.#rows.counts().running));
    this.#send(decision);
    await this.#after(decision);
  }

  async #work(ws: WebSocket, frame: Exclude<DaemonFrame, HelloFrame>): Promise<void> {
    const bytes = frame.t === "output" ? bytesOfBase64(frame.data) : undefined;
    if (bytes === null || (bytes && bytes.length > limits.maxOutputChunkBytes)) {
      const message = bytes === null ? "is not base64" : `is more than ${limits.maxOutputChunkBytes} bytes`;
      return this.#refuse(ws, { code: daemonClose.protocolError, reason: `protocol error: data: ${message}` });
    }
    const decision = this.#store.apply(inputOf(frame, bytes?.length ?? 0), bytes);
    if (decision.close) return this.#refuse(ws, decision.close);
    this.#send(decision);
    await this.#after(decision);
  }

  async #applied(input: EndpointInput, reached?: FaultPoint): Promise<undefined> {
    const decision = this.#store.apply(input);
    this.#send(decision);
    await this.#after(decision, reached);
  }

  /** After a commit: the fault points that it reached, then its effects. */
  async #after(decision: Decision, reached?: FaultPoint): Promise<void> {
    const { faultUrl } = readConfig(this.env);
    if (decision.entries.length > 0 && this.#live()) this.#alarms.setEarlier("sweep", this.#sockets.sweepAtMs(this.#rows.counts().running));
    if (reached) await faultPoint(faultUrl, reached);
    if (decision.entries.some(({ state }) => state === "settled")) await faultPoint(faultUrl, "endpoint.settled");
    if (decision.effects.length > 0) void this.#pump.kick();
  }

  /** What fails stays owed: the next kick and the deadline try it again. */
  async #carryOut(): Promise<void> {
    for (const error of await this.#effects.run()) this.#complain(error);
    if (!this.#rows.owes()) this.#alarms.clear("effects");
    const dues = [this.#alarms.due("effects"), this.#alarms.due("expiry")].filter((due) => due !== null);
    await this.#wake.report(dues.length > 0 ? Math.min(...dues) : null);
  }

  #complain(error: unknown): void {
    logFault("endpoint", error, { endpoint: this.#endpointId });
  }

  async #effectsDue(): Promise<undefined> {
    await this.#pump.kick();
    if (this.#rows.owes()) throw new Error("some of what is owed to other objects could not be handed over yet");
  }

  /** A connected machine had its time; one that is away gets it after it is back. */
  async #heldTooLong(commandId: string): Promise<number | undefined> {
    if (!this.#live()) return Date.now() + heldResultMs;
    return this.#applied({ kind: "output_missing", commandId });
  }

  /** Closes sockets that fell silent; runs again only while one is left. */
  #sweep(): number | undefined {
    const { silent, left } = this.#sockets.silent(Date.now(), this.#rows.machine()?.sinceMs ?? 0);
    for (const { ws, refusal } of silent) this.#refuse(ws, refusal);
    return left > 0 ? this.#sockets.sweepAtMs(this.#rows.counts().running) : undefined;
  }

  #live(): WebSocket | null {
    return this.#sockets.live(this.#rows.machine()?.epoch);
  }

  /** A crash or a deploy takes sockets away without a word; a machine that lost its network says none either. */
  #noticeLoss(): void {
    this.#sweep();
    if (this.#rows.machine()?.online && !this.#live())
      void this.#applied({ kind: "disconnected", code: 1006, reason: "the connection was lost" });
  }

  #send({ machine, frames }: Decision): void {
    this.#sockets.send(machine?.epoch, frames);
  }

  #refuse(ws: WebSocket, refusal: Refusal): void {
    // First the loss: a closed socket has no epoch any more.
    this.#gone(ws, refusal);
    close(ws, refusal);
  }

  #gone(ws: WebSocket, { code, reason }: Refusal): void {
    const epoch = epochOf(ws);
    if (epoch !== null && epoch === this.#rows.machine()?.epoch) void this.#applied({ kind: "disconnected", code, reason });
  }
}
