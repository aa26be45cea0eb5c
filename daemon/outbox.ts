// What goes up to the cloud: output in order of offset within a window, then the result, then the answer to a stop.
// Everything stays until it is acknowledged, and starts again from the cloud's offset after a reconnect.
import type { CommandResult } from "../src/protocol/command.ts";
import type { DaemonFrame } from "../src/protocol/daemon-frames.ts";
import { limits } from "../src/protocol/limits.ts";
import type { Spool } from "./spool.ts";

/** Takes a frame for the open connection; `onWritten` when it left this process. */
export type Link = { send(frame: DaemonFrame, onWritten: () => void): void; bufferedBytes(): number };

type Item = {
  spool: Spool;
  sent: number;
  acked: number;
  result: CommandResult | null;
  resultSent: boolean;
  stopAsked: boolean;
};

/** How long a stop's answer waits behind the command's last output: its processes are gone, and the cloud may not care for the rest. */
const stopPatienceMs = 5_000;

export class Outbox {
  readonly #items = new Map<string, Item>();
  readonly #onSent: (what: "output" | "result") => void;
  #link: Link | null = null;

  constructor(onSent: (what: "output" | "result") => void) {
    this.#onSent = onSent;
  }

  track(id: string, spool: Spool): void {
    this.#items.set(id, { spool, sent: 0, acked: 0, result: null, resultSent: false, stopAsked: false });
  }

  outputBytes(id: string): number {
    return this.#items.get(id)?.spool.size ?? 0;
  }

  /** A new connection: output goes on where the cloud has it; a result that is not acknowledged is sent again. */
  connected(link: Link, offsets: readonly { commandId: string; offset: number }[]): void {
    this.#link = link;
    const known = new Map(offsets.map((each) => [each.commandId, each.offset]));
    for (const [id, item] of this.#items) {
      // The cloud never takes back what it acknowledged; a crash of this machine may have taken bytes that the cloud still has.
      item.acked = Math.min(item.spool.size, Math.max(item.acked, known.get(id) ?? 0));
      item.sent = item.acked;
      item.resultSent = false;
    }
    this.pump();
  }

  disconnected(): void {
    this.#link = null;
  }

  /** The command ended: its result follows its last output. */
  finish(id: string, result: CommandResult): void {
    const item = this.#items.get(id);
    if (!item) return;
    item.result = result;
    if (item.stopAsked) this.#answerLate(id);
    this.pump();
  }

  acknowledged(id: string, offset: number): void {
    const item = this.#items.get(id);
    if (!item || offset <= item.acked) return;
    item.acked = Math.min(offset, item.spool.size);
    item.sent = Math.max(item.sent, item.acked);
    this.pump();
  }

  /** The cloud asks again: the result goes out once more. */
  repeat(id: string): void {
    const item = this.#items.get(id);
    if (item) item.resultSent = false;
    this.pump();
  }

  /** Answers a stop once the command has ended and its result is on its way. */
  answerStop(id: string): void {
    const item = this.#items.get(id);
    if (!item) return;
    item.stopAsked = true;
    if (item.result) this.#answerLate(id);
    this.pump();
  }

  forget(id: string): void {
    this.#items.get(id)?.spool.discard();
    this.#items.delete(id);
  }

  /** Nothing waits to be sent or acknowledged. */
  get idle(): boolean {
    return this.#items.size === 0;
  }

  /** Sends what the windows allow, one chunk a command in turn, so that a talkative one does not hold up the others. */
  pump(): void {
    for (let sentAny = true; sentAny; ) {
      sentAny = false;
      for (const [id, item] of this.#items) {
        if (!this.#link || this.#link.bufferedBytes() > limits.outputWindowBytes) return;
        if (this.#sendChunk(id, item)) sentAny = true;
        else this.#sendEnd(id, item);
      }
    }
  }

  #sendChunk(commandId: string, item: Item): boolean {
    const room = Math.min(limits.maxOutputChunkBytes, item.acked + limits.outputWindowBytes - item.sent);
    if (room <= 0 || item.sent >= item.spool.size) return false;
    const data = item.spool.read(item.sent, room);
    if (data.length === 0) return false;
    const frame: DaemonFrame = { t: "output", commandId, offset: item.sent, data: data.toString("base64") };
    item.sent += data.length;
    this.#send(frame, () => this.#onSent("output"));
    return true;
  }

  #sendEnd(commandId: string, item: Item): void {
    if (item.result && !item.resultSent && item.sent >= item.spool.size) {
      item.resultSent = true;
      this.#send({ t: "result", result: item.result }, () => this.#onSent("result"));
    }
    if (item.stopAsked && item.resultSent) {
      item.stopAsked = false;
      this.#send({ t: "stopped", commandId }, () => undefined);
    }
  }

  #answerLate(commandId: string): void {
    setTimeout(() => {
      const item = this.#items.get(commandId);
      if (!item?.stopAsked || !this.#link) return;
      item.stopAsked = false;
      this.#send({ t: "stopped", commandId }, () => undefined);
    }, stopPatienceMs).unref();
  }

  #send(frame: DaemonFrame, onWritten: () => void): void {
    this.#link?.send(frame, () => {
      onWritten();
      this.pump();
    });
  }
}
