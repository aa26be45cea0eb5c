// A machine's ledger in memory, for tests of its decisions.
import type { Cancel, Decision, EndpointEffect, EndpointInput, Entry, Ledger, Machine } from "../../src/core/command-ledger.ts";
import { decide } from "../../src/core/endpoint.ts";
import type { Command, CommandResult } from "../../src/protocol/command.ts";
import type { HelloFrame } from "../../src/protocol/daemon-frames.ts";
import type { EndpointEvent } from "../../src/protocol/events.ts";

export const now = 1_000_000;
const about: HelloFrame["about"] = { version: "1", platform: "linux", sandbox: "bwrap" };

/** A command of one task, asked by a member; `changes` make it another. */
export const commandOf = (n: number, changes: Partial<Command> = {}): Command => ({
  commandId: `cmd_a-${n}`,
  taskId: "tsk_a",
  epoch: 1,
  spec: { kind: "shell", workspace: "app", script: `echo ${n}` },
  authority: "member",
  tainted: false,
  timeoutMs: 1000,
  notAfterMs: now + 1_000_000,
  atMs: now,
  ...changes,
});

export const resultOf = (commandId: string, outputBytes = 0, changes: Partial<CommandResult> = {}): CommandResult => ({
  commandId,
  outcome: "exited",
  exitCode: 0,
  outputBytes,
  truncatedBytes: 0,
  startedMs: now,
  endedMs: now + 5,
  ...changes,
});

/** A ledger that lives in memory, with everything that its decisions said. */
export class Book {
  machine: Machine | null = null;
  readonly entries = new Map<string, Entry>();
  readonly cancels = new Map<string, Cancel>();
  readonly effects: EndpointEffect[] = [];
  readonly events: EndpointEvent[] = [];
  readonly output = new Map<string, string>();
  nowMs = now;

  /** Applies an input as the object does; `data` is an output frame's. */
  apply(input: EndpointInput, data = ""): Decision {
    const ledger: Ledger = { machine: this.machine, entries: [...this.entries.values()], cancels: [...this.cancels.values()] };
    const decision = decide(ledger, input, this.nowMs);
    this.machine = decision.machine;
    for (const entry of decision.entries) this.entries.set(entry.command.commandId, entry);
    for (const cancel of decision.cancels) this.cancels.set(cancel.taskId, cancel);
    const { store } = decision;
    if (store) this.output.set(store.commandId, (this.output.get(store.commandId) ?? "") + data.slice(store.skip));
    this.effects.push(...decision.effects);
    this.events.push(...decision.events);
    return decision;
  }

  enrol(): this {
    this.apply({ kind: "enrol", endpointId: "ep_a", name: "laptop", publicKey: "key", platform: "linux" });
    return this;
  }

  hello(open: HelloFrame["open"] = []): Decision {
    return this.apply({ kind: "hello", about, workspaces: ["app"], open });
  }

  state(commandId: string) {
    return this.entries.get(commandId)?.state;
  }

  outcome(commandId: string) {
    return this.entries.get(commandId)?.result?.outcome;
  }
}
