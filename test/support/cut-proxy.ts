// A loopback proxy between a daemon and its cloud that breaks the line in every way a real one does: cut at byte N, half-open
// silence, frames that come twice, a slow link.

import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export class CutProxy {
  /** For each coming connection, how many bytes from the daemon pass before both sides are cut; when used up, none is cut. */
  cutsUp: number[] = [];
  /** The same for bytes from the cloud. */
  cutsDown: number[] = [];
  stalled = false;
  duplicate = false;
  /** Wait before each chunk that goes up. */
  delayMs = 0;
  connections = 0;
  cuts = 0;

  readonly #target: number;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(targetPort: number) {
    this.#target = targetPort;
    this.#server = createServer((socket) => this.#join(socket));
  }

  static async start(targetPort: number): Promise<CutProxy> {
    const proxy = new CutProxy(targetPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cutNow(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async close(): Promise<void> {
    this.cutNow();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(daemon: Socket): void {
    this.connections++;
    const cloud = connect(this.#target, "127.0.0.1");
    for (const socket of [daemon, cloud]) {
      this.#open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => this.#open.delete(socket));
    }
    const end = (): void => {
      daemon.destroy();
      cloud.destroy();
    };
    void this.#pump(daemon, cloud, this.cutsUp.shift() ?? null, end, true);
    void this.#pump(cloud, daemon, this.cutsDown.shift() ?? null, end, false);
  }

  async #pump(from: Socket, to: Socket, cutAt: number | null, end: () => void, isUp: boolean): Promise<void> {
    let passed = 0;
    const frames = new FrameDoubler();
    try {
      for await (const chunk of from as AsyncIterable<Buffer>) {
        // Half-open: bytes vanish, and nobody is told.
        if (this.stalled) continue;
        if (isUp && this.delayMs > 0) await sleep(this.delayMs);
        if (cutAt !== null && passed + chunk.length >= cutAt) {
          to.write(chunk.subarray(0, cutAt - passed), () => end());
          this.cuts++;
          return;
        }
        passed += chunk.length;
        to.write(frames.take(chunk, this.duplicate));
      }
    } catch {
      // A socket that was cut: its other half is ended below.
    }
    if (!this.stalled) end();
  }
}

/** Sees where WebSocket frames begin and end, and gives each data frame twice. */
class FrameDoubler {
  #rest = Buffer.alloc(0);
  #inFrames = false;
  #plain = false;

  take(chunk: Buffer, twice: boolean): Buffer {
    if (this.#plain) return chunk;
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const out: Buffer[] = [];
    if (!this.#inFrames) {
      const end = this.#rest.indexOf("\r\n\r\n");
      if (end < 0) return Buffer.alloc(0);
      // An ordinary request has no frames.
      this.#plain = !/^upgrade: websocket/im.test(this.#rest.subarray(0, end).toString("latin1"));
      if (this.#plain) return this.#rest;
      this.#inFrames = true;
      out.push(this.#rest.subarray(0, end + 4));
      this.#rest = this.#rest.subarray(end + 4);
    }
    for (let size = this.#frameBytes(); size !== null && this.#rest.length >= size; size = this.#frameBytes()) {
      const frame = this.#rest.subarray(0, size);
      const isData = ((frame[0] ?? 0) & 0x0f) === 1;
      out.push(frame, ...(twice && isData ? [frame] : []));
      this.#rest = this.#rest.subarray(size);
    }
    return Buffer.concat(out);
  }

  #frameBytes(): number | null {
    const second = this.#rest[1];
    if (second === undefined) return null;
    const mask = (second & 0x80) === 0 ? 0 : 4;
    const short = second & 0x7f;
    if (short < 126) return 2 + mask + short;
    if (short === 126) return this.#rest.length < 4 ? null : 4 + mask + this.#rest.readUInt16BE(2);
    return this.#rest.length < 10 ? null : 10 + mask + Number(this.#rest.readBigUInt64BE(2));
  }
}
