// The command ledger of one machine as a decision sees it: its types, and the draft in which a decision collects what it changes.
// A command goes queued → sent → accepted → started → settled; it is settled once.
import type { CommandResult, CommandSpec, CommandState, QueuedCommand } from "../protocol/command.ts";
import type { CloudFrame, HelloFrame } from "../protocol/daemon-frames.ts";
import type { EndpointEvent } from "../protocol/events.ts";
import { limits } from "../protocol/limits.ts";
import { refuseCommand } from "./authority.ts";
import { excerpt } from "./context.ts";

export type Machine = {
  endpointId: string;
  name: string;
  /** Raw Ed25519 key, base64. */
  publicKey: string;
  platform: string;
  /** Where it enrolled; missing for a machine that did so before this was kept. */
  host?: string;
  revoked: boolean;
  /** Fencing: raised by each valid hello; what an older connection says is void. */
  epoch: number;
  online: boolean;
  /** Since when it is online, or offline. */
  sinceMs: number;
  workspaces: string[];
  sandbox: string;
  /** Grows with each change that others are told of. */
  revision: number;
};

export type Entry = {
  command: QueuedCommand;
  state: CommandState;
  /** Why it must end, once somebody asked for that. */
  stopWhy: string | null;
  /** Final once settled; before that, a result that waits for the rest of its output. */
  result: CommandResult | null;
  startedMs: number | null;
  storedBytes: number;
  /** The worker session was told that this waits for its machine. */
  waitingTold: boolean;
};

/** A cancelled task: whatever it sends with a lower epoch is void, also when it arrives later. */
export type Cancel = { taskId: string; epoch: number; answered: boolean; offlineTold: boolean };

/** What a decision looks at: the commands that the input concerns, oldest first, and the cancels of their tasks. */
export type Ledger = { machine: Machine | null; entries: readonly Entry[]; cancels: readonly Cancel[] };

export type EndpointInput =
  | { kind: "enrol"; endpointId: string; name: string; publicKey: string; platform: string; host?: string }
  | { kind: "revoke"; by: string }
  | { kind: "submit"; command: QueuedCommand }
  | { kind: "asked"; taskId: string }
  | { kind: "stop"; commandId: string; why: string }
  | { kind: "stop_task"; taskId: string; epoch: number }
  | { kind: "hello"; about: HelloFrame["about"]; workspaces: string[]; open: HelloFrame["open"] }
  | { kind: "disconnected"; code: number; reason: string }
  | { kind: "accepted"; commandId: string }
  | { kind: "started"; commandId: string; atMs: number }
  | { kind: "output"; commandId: string; offset: number; bytes: number }
  | { kind: "result"; result: CommandResult }
  | { kind: "stopped"; commandId: string }
  /** Queued commands past their `notAfter`. */
  | { kind: "expire" }
  /** The output that a held result promised did not come. */
  | { kind: "output_missing"; commandId: string };

export type EndpointEffect =
  | { kind: "settle"; taskId: string; commandId: string }
  | { kind: "command_state"; taskId: string; commandId: string; state: CommandState; online: boolean }
  | { kind: "stopped"; taskId: string; epoch: number; offline: boolean }
  /** Tell the router and the board what this machine is now. */
  | { kind: "machine" }
  | { kind: "board" };

export type Decision = {
  machine: Machine | null;
  /** Only what changed. */
  entries: Entry[];
  cancels: Cancel[];
  /** For the live connection, in this order. */
  frames: CloudFrame[];
  effects: EndpointEffect[];
  events: EndpointEvent[];
  /** Keep the output frame's bytes after the first `skip`, at `offset`. */
  store?: { commandId: string; offset: number; skip: number };
  /** The connection broke the protocol, or may not be here. */
  close?: { code: number; reason: string };
};

const order: readonly CommandState[] = ["queued", "sent", "accepted", "started", "settled"];
const reached = (entry: Entry, state: CommandState): boolean => order.indexOf(entry.state) >= order.indexOf(state);

/** What a command is, in one short line: for the log and for people. */
const describeSpec = (spec: CommandSpec): string => excerpt(wordsOf(spec), 120);

function wordsOf(spec: CommandSpec): string {
  switch (spec.kind) {
    case "shell":
      return spec.script.trim().split("\n", 1)[0] ?? "";
    case "search_files":
      return `search ${spec.query}`;
    case "push":
      return `push ${spec.branch}`;
    case "keep":
      return "keep the commit";
    case "push_kept":
      return `push ${spec.sha.slice(0, 10)} to ${spec.branch}`;
    case "list_files":
      return `list ${spec.path ?? "."}`;
    case "read_file":
    case "write_file":
    case "edit_file":
      return `${spec.kind.slice(0, spec.kind.indexOf("_"))} ${spec.path}`;
  }
}

/** A decision under way: the ledger with what changed so far. */
export class Draft {
  readonly nowMs: number;
  machine: Machine | null;
  readonly frames: CloudFrame[] = [];
  readonly effects: EndpointEffect[] = [];
  readonly events: EndpointEvent[] = [];
  store: Decision["store"];
  close: Decision["close"];
  readonly #entries: Map<string, Entry>;
  readonly #cancels: Map<string, Cancel>;
  readonly #changed = new Set<string>();
  readonly #cancelsChanged = new Set<string>();

  constructor(ledger: Ledger, nowMs: number) {
    this.nowMs = nowMs;
    this.machine = ledger.machine;
    this.#entries = new Map(ledger.entries.map((entry) => [entry.command.commandId, entry]));
    this.#cancels = new Map(ledger.cancels.map((cancel) => [cancel.taskId, cancel]));
  }

  entry(commandId: string): Entry | null {
    return this.#entries.get(commandId) ?? null;
  }

  cancel(taskId: string): Cancel | null {
    return this.#cancels.get(taskId) ?? null;
  }

  /** Unsettled entries, oldest first; only those in `state` when it is given. */
  open(state?: CommandState): Entry[] {
    return [...this.#entries.values()].filter((entry) => (state === undefined ? entry.state !== "settled" : entry.state === state));
  }

  cancels(): Cancel[] {
    return [...this.#cancels.values()].filter((cancel) => !cancel.answered);
  }

  openBelow(taskId: string, epoch: number): Entry[] {
    return this.open().filter((entry) => entry.command.taskId === taskId && entry.command.epoch < epoch);
  }

  put(entry: Entry): Entry {
    const { commandId } = entry.command;
    this.#entries.set(commandId, entry);
    this.#changed.add(commandId);
    return entry;
  }

  putCancel(cancel: Cancel): void {
    this.#cancels.set(cancel.taskId, cancel);
    this.#cancelsChanged.add(cancel.taskId);
  }

  /** Others are told of this change of the machine itself. */
  putMachine(machine: Machine): void {
    this.machine = machine;
    this.effects.push({ kind: "machine" }, { kind: "board" });
  }

  /** Moves a command forward; what is there already stays, so that a repeated or late frame changes nothing. */
  advance(entry: Entry | null, state: Exclude<CommandState, "settled">, startedMs: number | null = null): Entry | null {
    if (!entry || reached(entry, state)) return entry;
    const { commandId, taskId } = entry.command;
    this.log(entry, state);
    this.effects.push({ kind: "board" });
    if (state === "started" && entry.waitingTold) this.effects.push({ kind: "command_state", taskId, commandId, state, online: true });
    return this.put({ ...entry, state, startedMs: entry.startedMs ?? startedMs });
  }

  /** [E1] A command is settled once; the first result stands. */
  settle(entry: Entry, settled: CommandResult): void {
    if (entry.state === "settled") return;
    const { commandId, taskId } = entry.command;
    this.put({ ...entry, state: "settled", result: settled });
    this.log(entry, "settled", settled);
    this.effects.push({ kind: "settle", taskId, commandId }, { kind: "board" });
  }

  /** Ends a command that never started. */
  endUnrun(entry: Entry, outcome: "void" | "expired" | "refused", reason: string): void {
    const { commandId } = entry.command;
    const nothing = { exitCode: null, outputBytes: 0, truncatedBytes: 0, startedMs: null };
    this.settle(entry, { commandId, outcome, reason, ...nothing, endedMs: this.nowMs });
  }

  /** [E4] It started, or may have, and nobody will see its end: said so, never run again. */
  endUnknown(entry: Entry, reason: string): void {
    const { commandId } = entry.command;
    const { storedBytes: outputBytes, startedMs } = entry;
    const known = { exitCode: null, outputBytes, truncatedBytes: 0, startedMs };
    this.settle(entry, { commandId, outcome: "outcome_unknown", reason, ...known, endedMs: this.nowMs });
  }

  /** [E2] A command that nobody started before its `notAfter` never starts. */
  expired(entry: Entry): boolean {
    if (entry.command.notAfterMs > this.nowMs) return false;
    this.endUnrun(entry, "expired", "The machine was not reachable in time, so this never started.");
    return true;
  }

  /** Hands a queued command to the machine, unless time or today's rules are against it. */
  send(entry: Entry): void {
    if (this.expired(entry)) return;
    const refused = refuseCommand(entry.command);
    if (refused !== null) {
      this.endUnrun(entry, "refused", refused);
      return;
    }
    this.put({ ...entry, state: "sent" });
    this.log(entry, "sent");
    // What only the cloud asks about stays here.
    const { speculative: _, audience: _who, ...command } = entry.command;
    this.frames.push({ t: "run", command });
    this.effects.push({ kind: "board" });
  }

  /** [E14] What nobody asked for goes to an idle machine only, and then so many at a time: people's work has it first. */
  sendUnasked(): void {
    if (!this.machine?.online) return;
    const open = this.open();
    const unasked = open.filter(({ command }) => command.speculative === true);
    const waiting = unasked.filter(({ state }) => state === "queued");
    if (waiting.length === 0 || unasked.length < open.length) return;
    const free = limits.maxSpeculativePerMachine - (unasked.length - waiting.length);
    for (const entry of waiting.slice(0, Math.max(0, free))) this.send(entry);
  }

  askToStop(entry: Entry, why: string): void {
    if (entry.stopWhy !== null) return;
    this.events.push({ kind: "endpoint.stop", commandId: entry.command.commandId, why });
    this.put({ ...entry, stopWhy: why });
  }

  log(entry: Entry, state: CommandState, settled?: CommandResult): void {
    const { commandId, taskId, spec } = entry.command;
    const event = { kind: "endpoint.command" as const, commandId, taskId, state, what: describeSpec(spec) };
    this.events.push(settled === undefined ? event : { ...event, result: settled });
  }

  /** [E3] A cancel is answered when nothing of it is open; while the machine is away, the worker hears that once. */
  answerCancels(): void {
    for (const cancel of this.cancels()) {
      const { taskId, epoch } = cancel;
      if (this.openBelow(taskId, epoch).length === 0) {
        this.putCancel({ ...cancel, answered: true });
        this.effects.push({ kind: "stopped", taskId, epoch, offline: false });
      } else if (!this.machine?.online && !cancel.offlineTold) {
        this.putCancel({ ...cancel, offlineTold: true });
        this.effects.push({ kind: "stopped", taskId, epoch, offline: true });
      }
    }
  }

  decision(): Decision {
    const { frames, effects, events } = this;
    // Receivers keep the highest revision, so each thing that they are told has its own.
    const news = this.machine !== null && effects.some(({ kind }) => kind === "machine" || kind === "board");
    return {
      machine: this.machine && news ? { ...this.machine, revision: this.machine.revision + 1 } : this.machine,
      entries: [...this.#changed].flatMap((id) => this.#entries.get(id) ?? []),
      cancels: [...this.#cancelsChanged].flatMap((id) => this.#cancels.get(id) ?? []),
      frames,
      effects,
      events,
      ...(this.store && { store: this.store }),
      ...(this.close && { close: this.close }),
    };
  }
}
