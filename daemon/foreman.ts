// Takes the cloud's frames and sees each command through: judged, journalled, run once, its end kept until the cloud has it.
import { setTimeout as sleep } from "node:timers/promises";
import { isRecord } from "../src/core/json.ts";
import type { Command, CommandResult } from "../src/protocol/command.ts";
import type { CloudFrame, HelloFrame } from "../src/protocol/daemon-frames.ts";
import { Fault } from "../src/protocol/fault.ts";
import { commandId as commandIdSchema } from "../src/protocol/ids.ts";
import { limits } from "../src/protocol/limits.ts";
import { endLeftovers } from "./group.ts";
import type { Home } from "./home.ts";
import { type Job, type JobEnd, notBegun, perform } from "./job.ts";
import type { Journal } from "./journal.ts";
import type { FaultPlan } from "./kill-point.ts";
import { compacted, enter, howEnded, isVoid, type JournalRecord, type Ledger, openList, openOf } from "./ledger.ts";
import type { Log } from "./log.ts";
import { type Link, Outbox } from "./outbox.ts";
import { type Judgement, judge, readPolicy } from "./policy.ts";
import type { Sandbox } from "./sandbox.ts";
import { forgetOutput, Spool } from "./spool.ts";

export type Parts = {
  home: Home;
  endpointId: string;
  journal: Journal;
  ledger: Ledger;
  sandbox: Sandbox["mode"];
  cgroupParent: string | null;
  fault: FaultPlan;
  log: Log;
  /** The journal cannot be written, or something that must not happen did: the daemon ends. */
  onFatal: (error: unknown) => void;
};

/** A stop that was sent right behind the welcome comes before what was accepted in an earlier life is started. */
const settleAfterWelcomeMs = 300;
const compactAboveBytes = 16 * 1024 * 1024;
const stopCapMs = 60_000;

const noOutput = { outputBytes: 0, truncatedBytes: 0 };

export class Foreman {
  readonly #parts: Parts;
  readonly #outbox: Outbox;
  readonly #jobs = new Map<string, Job>();
  readonly #spools = new Map<string, Spool>();
  /** Accepted, and waiting for their turn. */
  readonly #queue: Command[] = [];
  /** Accepted in an earlier life: they wait for the first welcome, since they may have been cancelled meanwhile. */
  readonly #recovered: Command[] = [];
  #ending = false;
  #compactedBytes = 0;
  #link: Link | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#outbox = new Outbox((what) => parts.fault(what === "output" ? "output.sent" : "result.sent"));
  }

  /** What an earlier life left: its leftovers are ended, its unknown ends said, its results kept ready. Before the first connect. */
  async recover(): Promise<void> {
    const { ledger, journal, endpointId, cgroupParent, home } = this.#parts;
    forgetOutput(home, (id) => (ledger.entries.get(id)?.state ?? "acked") === "acked");
    await journal.rewrite(compacted(ledger, endpointId, Date.now()));
    this.#compactedBytes = journal.bytes;
    for (const [id, entry] of ledger.entries) {
      if (entry.state === "acked") continue;
      const spool = this.#spool(id);
      this.#outbox.track(id, spool);
      if (entry.state === "finished") this.#outbox.finish(id, entry.result);
      else if (entry.state === "accepted") this.#recovered.push(entry.command);
      else {
        await endLeftovers(entry.process, id, cgroupParent, () => this.#sayStuck(id));
        const reason = "The daemon ended while this ran, so nobody saw how it ended. What was left of it was stopped; it is not run again.";
        await this.#finish(entry.command, spool, { outcome: "outcome_unknown", exitCode: null, reason, startedMs: entry.startedMs });
      }
    }
  }

  hello(): HelloFrame["open"] {
    return openList(this.#parts.ledger, (id) => this.#outbox.outputBytes(id));
  }

  onWelcome(offsets: readonly { commandId: string; offset: number }[], link: Link): void {
    this.#link = link;
    this.#outbox.connected(link, offsets);
    setTimeout(() => {
      if (this.#link === null) return;
      for (const each of this.#recovered.splice(0)) this.#begin(each);
    }, settleAfterWelcomeMs).unref();
  }

  onDown(): void {
    this.#link = null;
    this.#outbox.disconnected();
  }

  onFrame(frame: CloudFrame): void {
    this.#take(frame).catch(this.#parts.onFatal);
  }

  /** A `run` of a kind that this version does not know is refused by name, so that nothing waits for it for ever. */
  onUnreadable(frame: unknown, problem: string): boolean {
    if (!isRecord(frame) || frame.t !== "run" || !isRecord(frame.command)) return false;
    const id = commandIdSchema.safeParse(frame.command.commandId);
    if (!id.success || this.#parts.ledger.entries.has(id.data)) return false;
    const reason = `This machine's daemon cannot read the command (${problem}); update it, or ask for less at once.`;
    this.#parts.log({ event: "refused", text: `refused ${id.data}: ${reason}`, commandId: id.data });
    const endedMs = Date.now();
    this.#sendResult({ commandId: id.data, outcome: "refused", exitCode: null, reason, ...noOutput, startedMs: null, endedMs });
    return true;
  }

  /** Ends everything that runs here; the results go out now, or with the next start. What waits, waits on. */
  async shutdown(): Promise<void> {
    this.#ending = true;
    for (const job of this.#jobs.values()) job.stop(limits.stopGraceMs, "shutdown");
    await Promise.all([...this.#jobs.values()].map((job) => job.done));
    for (let tries = 0; tries < 20 && this.#link !== null && !this.#outbox.idle; tries++) await sleep(50);
    await this.#parts.journal.close();
  }

  async #take(frame: CloudFrame): Promise<void> {
    switch (frame.t) {
      case "run":
        return this.#run(frame.command);
      case "stop":
        return this.#stop(frame.commandId, frame.graceMs);
      case "stop_task": {
        const forgetMs = Date.now() + limits.dedupeMs;
        await this.#record({ k: "void_task", taskId: frame.taskId, beforeEpoch: frame.beforeEpoch, forgetMs });
        for (const id of openOf(this.#parts.ledger, frame.taskId, frame.beforeEpoch)) await this.#stop(id, frame.graceMs);
        return;
      }
      case "output_ack":
        return this.#outbox.acknowledged(frame.commandId, frame.offset);
      case "result_ack": {
        this.#parts.fault("result.acked");
        if (this.#parts.ledger.entries.get(frame.commandId)?.state !== "finished") return;
        await this.#record({ k: "acked", commandId: frame.commandId, atMs: Date.now() });
        this.#outbox.forget(frame.commandId);
        this.#spools.delete(frame.commandId);
        return this.#compactWhenLarge();
      }
      case "challenge":
      case "welcome":
        return;
    }
  }

  /** A command that is known is never begun again: its state is the answer. */
  async #run(command: Command): Promise<void> {
    const { commandId } = command;
    const known = this.#parts.ledger.entries.get(commandId);
    if (known) {
      // What is entered may not be on the disk yet; nothing is said before it is.
      await this.#parts.journal.append();
      switch (known.state) {
        case "accepted":
          return this.#send({ t: "accepted", commandId });
        case "started":
          return this.#send({ t: "started", commandId, atMs: known.startedMs });
        case "finished":
          return this.#outbox.repeat(commandId);
        case "acked":
          return this.#sendResult(known.result);
      }
    }
    const judgement = this.#judge(command);
    const spool = this.#spool(commandId);
    this.#outbox.track(commandId, spool);
    const durable = this.#record({ k: "accepted", command, atMs: Date.now() });
    if (!judgement.ok) {
      const { outcome, reason } = judgement;
      return this.#finish(command, spool, { outcome, exitCode: null, reason, startedMs: null });
    }
    await durable;
    this.#send({ t: "accepted", commandId });
    this.#parts.log({ event: "accepted", text: `accepted ${commandId}`, commandId });
    this.#parts.fault("journalled");
    this.#begin(command);
  }

  /** Runs it now, or when one of those that run has ended. */
  #begin(command: Command): void {
    this.#queue.push(command);
    this.#next();
  }

  #next(): void {
    while (this.#jobs.size < limits.maxRunningPerMachine) {
      const command = this.#queue.shift();
      if (command === undefined) return;
      this.#perform(command);
    }
  }

  #perform(command: Command): void {
    const id = command.commandId;
    const { home, sandbox, cgroupParent, fault, log } = this.#parts;
    const spool = this.#spoolOf(id);
    const job = perform({
      command,
      spool,
      home,
      cgroupParent,
      mode: sandbox,
      judge: () => this.#judge(command),
      granted: () => readPolicy(home).workspaces.map(({ path }) => path),
      started: async (process) => {
        const atMs = Date.now();
        await this.#record({ k: "started", commandId: id, process, atMs });
        this.#send({ t: "started", commandId: id, atMs });
        log({ event: "started", text: `started ${id}`, commandId: id });
        return atMs;
      },
      opened: () => fault("spawned"),
      onOutput: () => this.#outbox.pump(),
      exited: () => fault("exited"),
      onStuck: () => this.#sayStuck(id),
      onWarning: (text) => log({ event: "warning", text: `${id}: ${text}`, commandId: id }),
      finish: (end) => this.#finish(command, spool, end),
    });
    this.#jobs.set(id, job);
    job.done.catch(this.#parts.onFatal).finally(() => {
      this.#jobs.delete(id);
      if (!this.#ending) this.#next();
    });
  }

  #judge(command: Command): Judgement {
    const { ledger, home, sandbox } = this.#parts;
    if (isVoid(ledger, command)) return { ok: false, outcome: "void", reason: "Its task was stopped before it came here." };
    try {
      return judge(command, readPolicy(home), sandbox, Date.now());
    } catch (error) {
      if (error instanceof Fault) return { ok: false, outcome: "refused", reason: error.message };
      throw error;
    }
  }

  async #stop(id: string, graceMs: number): Promise<void> {
    const entry = this.#parts.ledger.entries.get(id);
    if (!entry) {
      await this.#record({ k: "void", commandId: id, forgetMs: Date.now() + limits.dedupeMs });
      return this.#send({ t: "stopped", commandId: id });
    }
    if (entry.state === "acked") return this.#send({ t: "stopped", commandId: id });
    for (const held of [this.#recovered, this.#queue]) {
      const at = held.findIndex((each) => each.commandId === id);
      if (at < 0) continue;
      held.splice(at, 1);
      await this.#finish(entry.command, this.#spoolOf(id), { outcome: "stopped", exitCode: null, reason: notBegun, startedMs: null });
    }
    this.#jobs.get(id)?.stop(Math.min(stopCapMs, Math.max(0, graceMs)), "stopped");
    this.#outbox.answerStop(id);
  }

  async #finish(command: Command, spool: Spool, end: JobEnd): Promise<void> {
    const result: CommandResult = { commandId: command.commandId, ...end, ...spool.finish(), endedMs: Date.now() };
    await this.#record({ k: "finished", result });
    this.#outbox.finish(command.commandId, result);
    const how = howEnded(end);
    const ran = end.startedMs !== null;
    this.#parts.log({
      event: ran ? "ran" : "refused",
      text: ran ? `ran ${command.commandId} ${how}` : `${how} ${command.commandId}: ${end.reason ?? ""}`,
      commandId: command.commandId,
      outcome: end.outcome,
      exitCode: end.exitCode,
      outputBytes: result.outputBytes,
    });
  }

  #sayStuck(id: string): void {
    this.#parts.log({ event: "warning", text: `${id}: something that it started cannot be ended`, commandId: id });
  }

  #spool(id: string): Spool {
    const spool = new Spool(this.#parts.home.output, id);
    this.#spools.set(id, spool);
    return spool;
  }
  #spoolOf(id: string): Spool {
    return this.#spools.get(id) ?? this.#spool(id);
  }

  /** Memory and journal change together; what is said to the cloud waits for the returned promise. */
  #record(record: JournalRecord): Promise<void> {
    enter(this.#parts.ledger, record);
    return this.#parts.journal.append(record);
  }

  async #compactWhenLarge(): Promise<void> {
    const { journal, ledger, endpointId } = this.#parts;
    if (journal.bytes < compactAboveBytes || journal.bytes < 2 * this.#compactedBytes) return;
    await journal.rewrite(compacted(ledger, endpointId, Date.now()));
    this.#compactedBytes = journal.bytes;
  }

  #send(frame: Parameters<Link["send"]>[0]): void {
    this.#link?.send(frame, () => undefined);
  }
  #sendResult(result: CommandResult): void {
    this.#link?.send({ t: "result", result }, () => this.#parts.fault("result.sent"));
  }
}
