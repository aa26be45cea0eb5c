// Decisions about one machine: what a hello reconciles, stop, cancel, expiry and fencing. State in, new state and effects out.
import { utf8ToBytes } from "@noble/hashes/utils.js";
import type { CommandResult, QueuedCommand } from "../protocol/command.ts";
import { daemonClose, type HelloFrame } from "../protocol/daemon-frames.ts";
import { limits } from "../protocol/limits.ts";
import { refuseCommand } from "./authority.ts";
import { type Decision, Draft, type EndpointInput, type Entry, type Ledger, type Machine } from "./command-ledger.ts";

const cancelledReason = "The task was cancelled.";

/** Decides what one input changes. Pure: the same ledger, input and time give the same decision. */
export function decide(ledger: Ledger, input: EndpointInput, nowMs: number): Decision {
  const draft = new Draft(ledger, nowMs);
  switch (input.kind) {
    case "enrol":
      enrol(draft, input);
      break;
    case "revoke":
      revoke(draft, input.by);
      break;
    case "submit":
      submit(draft, input.command);
      break;
    case "asked":
      asked(draft, input.taskId);
      break;
    case "stop":
      stop(draft, input.commandId, input.why);
      break;
    case "stop_task":
      stopTask(draft, input.taskId, input.epoch);
      break;
    case "hello":
      hello(draft, input);
      break;
    case "disconnected":
      disconnect(draft, input.code, input.reason);
      break;
    case "accepted":
      draft.advance(draft.entry(input.commandId), "accepted");
      break;
    case "started":
      draft.advance(draft.entry(input.commandId), "started", Math.min(input.atMs, nowMs));
      break;
    case "output":
      output(draft, input);
      break;
    case "result":
      result(draft, input.result);
      break;
    case "stopped": {
      // The machine had nothing to stop: the command never arrived there, or its result is on its way.
      const entry = draft.entry(input.commandId);
      if (entry?.state === "sent" && entry.stopWhy !== null) draft.endUnrun(entry, "void", entry.stopWhy);
      break;
    }
    case "expire":
      for (const entry of draft.open("queued")) draft.expired(entry);
      break;
    case "output_missing":
      giveUpOutput(draft, draft.entry(input.commandId));
      break;
  }
  draft.sendUnasked();
  draft.answerCancels();
  return draft.decision();
}

function enrol(draft: Draft, input: Extract<EndpointInput, { kind: "enrol" }>): void {
  if (draft.machine) return;
  const { endpointId, name, publicKey, platform, host } = input;
  const fresh = { revoked: false, epoch: 0, online: false, sinceMs: draft.nowMs, workspaces: [], sandbox: "none", revision: 0 };
  draft.putMachine({ endpointId, name, publicKey, platform, ...(host === undefined ? {} : { host }), ...fresh });
  draft.events.push({ kind: "endpoint.enrolled", name });
}

const isLoopback = (host: string): boolean => /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(host);

/**
 * [E11] The host that a hello must be signed for: the one of the enrolment, not what the caller says it dialled; or a signature
 * could be relayed from another place. On this machine itself ports come and go, and there is nobody between.
 */
export const expectedHost = (machine: Machine, dialled: string): string =>
  machine.host === undefined || (isLoopback(machine.host) && isLoopback(dialled)) ? dialled : machine.host;

/** [E10] The epoch rises too: whatever the old connection says from now on is void. */
function revoke(draft: Draft, by: string): void {
  const { machine } = draft;
  if (!machine || machine.revoked) return;
  if (machine.online) disconnect(draft, daemonClose.revoked, "revoked");
  draft.putMachine({ ...(draft.machine ?? machine), revoked: true, epoch: machine.epoch + 1 });
  draft.events.push({ kind: "endpoint.revoked", by });
  for (const entry of draft.open()) {
    if (entry.state === "queued") draft.endUnrun(entry, "refused", revokedReason(machine));
    else draft.endUnknown(entry, `${machine.name} was revoked before it said how this ended.`);
  }
}

const revokedReason = (machine: Machine): string => `${machine.name} was revoked; choose another machine or enrol it again.`;

/** [E5] Every command enters the ledger, also one that may not run: its refusal reaches the task the same way as a result. */
function submit(draft: Draft, command: QueuedCommand): void {
  const known = draft.entry(command.commandId);
  if (known) {
    // Asked again: the answer may have been lost on the way.
    if (known.state === "settled") draft.effects.push({ kind: "settle", taskId: command.taskId, commandId: command.commandId });
    return;
  }
  const { machine } = draft;
  const openOfTask = draft.open().filter((entry) => entry.command.taskId === command.taskId).length;
  const fresh = { stopWhy: null, result: null, startedMs: null, storedBytes: 0, waitingTold: false };
  const entry = draft.put({ command, state: "queued", ...fresh });
  draft.log(entry, "queued");

  const cancel = draft.cancel(command.taskId);
  const refused = refusal(machine, command, openOfTask);
  if (cancel && command.epoch < cancel.epoch) draft.endUnrun(entry, "void", cancelledReason);
  else if (refused !== null) draft.endUnrun(entry, "refused", refused);
  else if (machine?.online) sendAsked(draft, entry);
  else if (!draft.expired(entry)) {
    const { taskId, commandId } = command;
    draft.put({ ...entry, waitingTold: true });
    draft.effects.push({ kind: "command_state", taskId, commandId, state: "queued", online: false }, { kind: "board" });
  }
}

function refusal(machine: Machine | null, command: QueuedCommand, openOfTask: number): string | null {
  if (!machine) return "This machine is not enrolled here; choose another one.";
  if (machine.revoked) return revokedReason(machine);
  const refused = refuseCommand(command);
  if (refused !== null) return refused;
  if (openOfTask >= limits.maxOpenCommandsPerTask)
    return `This task already has ${limits.maxOpenCommandsPerTask} commands open; wait for one to end, or stop one.`;
  if (utf8ToBytes(JSON.stringify(command)).length > limits.maxFrameBytes - 1024)
    return `This command is larger than ${limits.maxFrameBytes / 1024} KiB; split it into smaller parts.`;
  return null;
}

function stop(draft: Draft, commandId: string, why: string): void {
  const entry = draft.entry(commandId);
  if (!entry || entry.state === "settled") return;
  draft.askToStop(entry, why);
  if (entry.state === "queued") draft.endUnrun(entry, "void", why);
  else if (draft.machine?.online) draft.frames.push({ t: "stop", commandId, graceMs: limits.stopGraceMs });
}

function stopTask(draft: Draft, taskId: string, askedEpoch: number): void {
  const known = draft.cancel(taskId);
  const epoch = Math.max(askedEpoch, known?.epoch ?? 0);
  // A repeated cancel is answered again: the first answer may have been lost.
  draft.putCancel({ taskId, epoch, answered: false, offlineTold: known !== null && known.epoch === epoch && known.offlineTold });
  for (const entry of draft.openBelow(taskId, epoch)) {
    draft.askToStop(entry, cancelledReason);
    if (entry.state === "queued") draft.endUnrun(entry, "void", cancelledReason);
  }
  if (draft.machine?.online && draft.openBelow(taskId, epoch).length > 0)
    draft.frames.push({ t: "stop_task", taskId, beforeEpoch: epoch, graceMs: limits.stopGraceMs });
}

/** [E6] A valid hello raises the fencing epoch, and both sides agree on every open command: stops go first, then what waits. */
function hello(draft: Draft, input: Extract<EndpointInput, { kind: "hello" }>): void {
  const { machine, nowMs } = draft;
  if (!machine || machine.revoked) {
    draft.close = { code: daemonClose.revoked, reason: "this machine was revoked; enrol it again" };
    return;
  }
  if (machine.online) {
    const reason = "superseded by a newer connection";
    draft.events.push({ kind: "endpoint.disconnected", epoch: machine.epoch, code: daemonClose.superseded, reason });
  }
  const epoch = machine.epoch + 1;
  const { sandbox } = input.about;
  draft.putMachine({ ...machine, epoch, online: true, sinceMs: nowMs, workspaces: input.workspaces, sandbox });
  draft.events.push({ kind: "endpoint.connected", epoch, sandbox });

  const listed = new Map(input.open.map((item) => [item.commandId, item]));
  for (const entry of draft.open()) {
    const there = listed.get(entry.command.commandId);
    if (there) draft.advance(entry, there.state === "accepted" ? "accepted" : "started");
    else if (entry.state === "sent") unarrived(draft, entry);
    else if (entry.state !== "queued") forgotten(draft, entry);
  }
  // What is settled or unknown here needs no more output: the machine's own length says that it has all been seen.
  const output = input.open.map(({ commandId, outputBytes }) => {
    const entry = draft.entry(commandId);
    return { commandId, offset: entry && entry.state !== "settled" ? entry.storedBytes : outputBytes };
  });
  draft.frames.push({ t: "welcome", epoch, name: machine.name, pingMs: limits.daemonPingMs, output });
  sendStops(draft, listed);
  for (const entry of draft.open("queued")) sendAsked(draft, entry);
}

/** What nobody asked for waits for an idle machine; all else goes at once. */
function sendAsked(draft: Draft, entry: Entry): void {
  if (entry.command.speculative !== true) draft.send(entry);
}

/** A person took the task over: its commands are like all others. */
function asked(draft: Draft, taskId: string): void {
  for (const entry of draft.open().filter(({ command }) => command.taskId === taskId && command.speculative === true)) {
    const { speculative: _, ...command } = entry.command;
    const taken = draft.put({ ...entry, command });
    if (taken.state === "queued" && draft.machine?.online) draft.send(taken);
  }
}

/** Sent, and the machine never got it: it waits like before. */
function unarrived(draft: Draft, entry: Entry): void {
  if (entry.stopWhy !== null) draft.endUnrun(entry, "void", entry.stopWhy);
  else draft.put({ ...entry, state: "queued" });
}

/** The machine had accepted it and has no record of it any more. */
function forgotten(draft: Draft, entry: Entry): void {
  if (entry.result) giveUpOutput(draft, entry);
  else draft.endUnknown(entry, "The machine lost its record of this command; it may have run.");
}

function sendStops(draft: Draft, listed: ReadonlyMap<string, HelloFrame["open"][number]>): void {
  const graceMs = limits.stopGraceMs;
  const covered = new Set<string>();
  for (const { taskId, epoch } of draft.cancels()) {
    const open = draft.openBelow(taskId, epoch);
    if (open.length === 0) continue;
    draft.frames.push({ t: "stop_task", taskId, beforeEpoch: epoch, graceMs });
    for (const entry of open) covered.add(entry.command.commandId);
  }
  for (const { commandId, state } of listed.values()) {
    const entry = draft.entry(commandId);
    if (!entry || covered.has(commandId) || state === "finished") continue;
    // Settled here and still running there: nobody waits for it.
    if (entry.stopWhy !== null || entry.state === "settled") draft.frames.push({ t: "stop", commandId, graceMs });
  }
}

/** [E7] Nothing is lost with the connection: what runs stays open, what may not have arrived waits. */
function disconnect(draft: Draft, code: number, reason: string): void {
  const { machine } = draft;
  if (!machine?.online) return;
  draft.putMachine({ ...machine, online: false, sinceMs: draft.nowMs });
  draft.events.push({ kind: "endpoint.disconnected", epoch: machine.epoch, code, reason });
  for (const entry of draft.open("sent")) {
    if (entry.waitingTold) continue;
    const { taskId, commandId } = entry.command;
    draft.put({ ...entry, waitingTold: true });
    draft.effects.push({ kind: "command_state", taskId, commandId, state: "sent", online: false });
  }
}

/** [E8] Output is one stream: an overlap is trimmed, a gap ends the connection so that the machine sends again from what is stored. */
function output(draft: Draft, input: Extract<EndpointInput, { kind: "output" }>): void {
  const { commandId, offset, bytes } = input;
  const known = draft.entry(commandId);
  if (!known) return;
  const stored = known.storedBytes;
  if (known.state === "settled") {
    draft.frames.push({ t: "output_ack", commandId, offset: offset + bytes });
    return;
  }
  if (!Number.isSafeInteger(offset) || offset < 0 || offset > stored) {
    draft.close = { code: daemonClose.protocolError, reason: `protocol error: offset: is ${offset}, expected ${stored}` };
    return;
  }
  const skip = stored - offset;
  const end = offset + bytes;
  if (end > limits.maxCommandOutputBytes + limits.maxOutputChunkBytes) {
    draft.close = { code: daemonClose.protocolError, reason: "protocol error: data: is more output than a command may have" };
    return;
  }
  const running = draft.advance(known, "started") ?? known;
  const entry = end > stored ? draft.put({ ...running, storedBytes: end }) : running;
  if (end > stored) draft.store = { commandId, offset: stored, skip };
  draft.frames.push({ t: "output_ack", commandId, offset: entry.storedBytes });
  if (entry.result && isWhole(entry, entry.result)) {
    draft.settle(entry, entry.result);
    draft.frames.push({ t: "result_ack", commandId });
  }
}

const isWhole = (entry: Entry, settled: CommandResult): boolean => entry.storedBytes >= settled.outputBytes - settled.truncatedBytes;

/** [E15] A machine's clock is its own. An end that lies before the command or after now is taken for now, and what it took stays. */
function inTime({ command: { atMs } }: Entry, result: CommandResult, nowMs: number): CommandResult {
  const { startedMs, endedMs } = result;
  const since = startedMs ?? endedMs;
  if (atMs <= since && since <= endedMs && endedMs <= nowMs) return result;
  const tookMs = Math.min(Math.max(0, endedMs - since), Math.max(0, nowMs - atMs));
  return { ...result, endedMs: nowMs, startedMs: startedMs === null ? null : nowMs - tookMs };
}

/** [E9] A result settles its command when its output is here; a repeated one, and one of a command long forgotten, is only acknowledged. */
function result(draft: Draft, said: CommandResult): void {
  const { commandId } = said;
  const entry = draft.entry(commandId);
  if (entry && entry.state !== "settled") {
    const settled = inTime(entry, said, draft.nowMs);
    if (!isWhole(entry, settled)) {
      draft.put({ ...entry, result: settled });
      return;
    }
    draft.settle(entry, settled);
  }
  draft.frames.push({ t: "result_ack", commandId });
}

/** Better a result that says what is missing than none. */
function giveUpOutput(draft: Draft, entry: Entry | null): void {
  if (!entry?.result || entry.state === "settled") return;
  const missing = entry.result.outputBytes - entry.result.truncatedBytes - entry.storedBytes;
  const note = `The last ${missing} bytes of its output did not arrive.`;
  const reason = entry.result.reason === undefined ? note : `${entry.result.reason} ${note}`.slice(0, 2000);
  draft.settle(entry, { ...entry.result, truncatedBytes: entry.result.truncatedBytes + missing, reason });
  if (draft.machine?.online) draft.frames.push({ t: "result_ack", commandId: entry.command.commandId });
}
