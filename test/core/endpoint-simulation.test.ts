import fc from "fast-check";
import { expect, test } from "vitest";
import type { Decision, EndpointInput } from "../../src/core/command-ledger.ts";
import type { Command, CommandResult } from "../../src/protocol/command.ts";
import type { CloudFrame, DaemonFrame, HelloFrame } from "../../src/protocol/daemon-frames.ts";
import { Book, commandOf, now, resultOf } from "../support/command-book.ts";

/** A daemon as the real one behaves, small: a journal that lasts, and two queues that a cut empties. */
class SimulatedDaemon {
  readonly journal = new Map<string, { command: Command; state: "accepted" | "started" | "finished" | "acked"; result?: CommandResult }>();
  readonly voids = new Set<string>();
  readonly voidTasks = new Map<string, number>();
  readonly runs = new Map<string, number>();
  toCloud: DaemonFrame[] = [];
  fromCloud: CloudFrame[] = [];

  open(): HelloFrame["open"] {
    return [...this.journal.entries()].flatMap(([commandId, { state }]) =>
      state === "acked" ? [] : [{ commandId, state, outputBytes: state === "accepted" ? 0 : 5 }],
    );
  }

  take(): void {
    const frame = this.fromCloud.shift();
    if (frame) this.#take(frame);
  }

  #take(frame: CloudFrame): void {
    switch (frame.t) {
      case "welcome":
        for (const [commandId, entry] of this.journal) {
          if (entry.state === "accepted" || entry.state === "acked") continue;
          // One byte too early: what overlaps is trimmed.
          const offset = Math.max(0, (frame.output.find((known) => known.commandId === commandId)?.offset ?? 0) - 1);
          if (offset < 4) this.toCloud.push({ t: "output", commandId, offset, data: "12345".slice(offset) });
          if (entry.result) this.toCloud.push({ t: "result", result: entry.result });
        }
        break;
      case "run": {
        const { commandId, taskId, epoch } = frame.command;
        const known = this.journal.get(commandId);
        if (known?.result) this.toCloud.push({ t: "result", result: known.result });
        if (known) break;
        if (this.voids.has(commandId) || epoch < (this.voidTasks.get(taskId) ?? 0)) {
          const result = resultOf(commandId, 0, { outcome: "void" });
          this.journal.set(commandId, { command: frame.command, state: "finished", result });
          this.toCloud.push({ t: "result", result });
          break;
        }
        this.journal.set(commandId, { command: frame.command, state: "accepted" });
        this.toCloud.push({ t: "accepted", commandId });
        break;
      }
      case "stop":
        this.stop(frame.commandId);
        break;
      case "stop_task":
        this.voidTasks.set(frame.taskId, frame.beforeEpoch);
        for (const [commandId, { command }] of this.journal)
          if (command.taskId === frame.taskId && command.epoch < frame.beforeEpoch) this.stop(commandId);
        break;
      case "result_ack": {
        const entry = this.journal.get(frame.commandId);
        if (entry) entry.state = "acked";
        break;
      }
      case "challenge":
      case "output_ack":
        break;
    }
  }

  stop(commandId: string): void {
    const entry = this.journal.get(commandId);
    if (!entry) this.voids.add(commandId);
    else if (entry.state === "accepted" || entry.state === "started")
      this.finish(commandId, resultOf(commandId, entry.state === "accepted" ? 0 : 5, { outcome: "stopped" }));
    this.toCloud.push({ t: "stopped", commandId });
  }

  finish(commandId: string, result: CommandResult): void {
    const entry = this.journal.get(commandId);
    if (!entry) return;
    entry.state = "finished";
    entry.result = result;
    this.toCloud.push({ t: "result", result });
  }

  /** Starts the next accepted command, or ends the next that runs. */
  work(): unknown {
    for (const [commandId, entry] of this.journal) {
      if (entry.state === "accepted") {
        entry.state = "started";
        this.runs.set(commandId, (this.runs.get(commandId) ?? 0) + 1);
        this.toCloud.push(
          { t: "started", commandId, atMs: now },
          { t: "output", commandId, offset: 0, data: "12" },
          { t: "output", commandId, offset: 2, data: "345" },
        );
        return;
      }
      if (entry.state === "started") return this.finish(commandId, resultOf(commandId, 5));
    }
  }
}

const inputOf = (frame: DaemonFrame): EndpointInput | null => {
  switch (frame.t) {
    case "hello":
      return null;
    case "output":
      return { kind: "output", commandId: frame.commandId, offset: frame.offset, bytes: frame.data.length };
    case "result":
      return { kind: "result", result: frame.result };
    case "accepted":
    case "stopped":
      return { kind: frame.t, commandId: frame.commandId };
    case "started":
      return { kind: "started", commandId: frame.commandId, atMs: frame.atMs };
  }
};

type Step =
  | { op: "connect" | "cut" | "daemon" | "work" | "cloud" | "duplicate" | "drop" }
  | { op: "submit" | "stop"; n: number }
  /** The process dies after its commit, before its frames leave. */
  | { op: "crash"; n: number }
  | { op: "cancel"; task: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom<Step>({ op: "connect" }, { op: "cut" }, { op: "duplicate" }, { op: "drop" }) },
  { weight: 6, arbitrary: fc.constantFrom<Step>({ op: "daemon" }, { op: "work" }, { op: "cloud" }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("submit" as const), n: fc.nat(7) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom("stop" as const, "crash" as const), n: fc.nat(7) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("cancel" as const), task: fc.nat(1) }) },
);

class Simulation {
  readonly book = new Book().enrol();
  readonly daemon = new SimulatedDaemon();
  readonly submitted = new Set<string>();
  readonly cancelled = new Set<string>();
  /** Submitted after their task was cancelled. */
  readonly late = new Set<string>();
  connected = false;

  say(decision: Decision): unknown {
    if (decision.close) return this.cut();
    if (this.connected) this.daemon.fromCloud.push(...decision.frames);
  }

  cut(): void {
    this.connected = false;
    this.daemon.toCloud = [];
    this.daemon.fromCloud = [];
    this.book.apply({ kind: "disconnected", code: 1006, reason: "" });
  }

  connect(): void {
    this.daemon.toCloud = [];
    this.daemon.fromCloud = [];
    this.connected = true;
    this.say(this.book.hello(this.daemon.open()));
  }

  submit(n: number): Decision {
    const command = commandOf(n, { taskId: `tsk_${n % 2}` });
    if (this.cancelled.has(command.taskId) && !this.submitted.has(command.commandId)) this.late.add(command.commandId);
    this.submitted.add(command.commandId);
    return this.book.apply({ kind: "submit", command });
  }

  cloud(): void {
    const frame = this.daemon.toCloud.shift();
    const input = frame && inputOf(frame);
    if (input) this.say(this.book.apply(input, frame.t === "output" ? frame.data : ""));
  }

  run(next: Step): unknown {
    switch (next.op) {
      case "connect":
        return this.connect();
      case "cut":
        return this.cut();
      case "daemon":
        return this.daemon.take();
      case "work":
        return this.daemon.work();
      case "cloud":
        return this.cloud();
      case "duplicate": {
        const frame = this.daemon.toCloud[0];
        if (frame) this.daemon.toCloud.unshift(frame);
        return;
      }
      case "drop":
        return this.daemon.toCloud.shift();
      case "submit":
        return this.say(this.submit(next.n));
      case "crash":
        this.submit(next.n);
        return this.cut();
      case "stop":
        return this.say(this.book.apply({ kind: "stop", commandId: `cmd_a-${next.n}`, why: "asked" }));
      case "cancel":
        this.cancelled.add(`tsk_${next.task}`);
        return this.say(this.book.apply({ kind: "stop_task", taskId: `tsk_${next.task}`, epoch: 2 }));
    }
  }

  /** Connects for good and lets both sides finish. */
  drain(): void {
    this.connect();
    for (let i = 0; i < 500; i++) {
      this.daemon.take();
      this.daemon.work();
      this.cloud();
      if (!this.connected) this.connect();
    }
  }
}

test("[R12][R13][R17] under any order of cuts, crashes, repeats, stops and cancels each command runs at most once and is settled once, with the truth", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120, size: "max" }), (steps) => {
      const world = new Simulation();
      for (const next of steps) world.run(next);
      world.drain();
      const { book, daemon } = world;
      for (const commandId of world.submitted) {
        const runs = daemon.runs.get(commandId) ?? 0;
        const entry = book.entries.get(commandId);
        expect(entry?.state).toBe("settled");
        expect(
          book.events.filter((event) => event.kind === "endpoint.command" && event.commandId === commandId && event.state === "settled"),
        ).toHaveLength(1);
        expect(runs).toBeLessThanOrEqual(1);
        expect(entry?.result?.outcome).not.toBe("outcome_unknown");
        if (world.late.has(commandId)) expect(runs).toBe(0);
        if (entry?.result?.outcome === "exited") expect([runs, entry.storedBytes, book.output.get(commandId)]).toEqual([1, 5, "12345"]);
        if (entry?.result?.outcome === "void" || entry?.result?.outcome === "refused") expect(runs).toBe(0);
      }
      for (const taskId of world.cancelled) expect(book.effects).toContainEqual({ kind: "stopped", taskId, epoch: 2, offline: false });
      expect(daemon.open()).toEqual([]);
    }),
    { numRuns: 500 },
  );
});
