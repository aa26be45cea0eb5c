// One command's output on this disk, until the cloud has it. Past the limit the head half and the tail half are kept: the tail half
// waits in memory and joins the file at the end. So in the kept stream a cut is always at byte `maxBytes / 2`, and nothing marks it
// but the result's `truncatedBytes`.
import { closeSync, existsSync, fstatSync, fsyncSync, mkdirSync, openSync, readdirSync, readSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { limits } from "../src/protocol/limits.ts";
import type { Home } from "./home.ts";

export class Spool {
  readonly #path: string;
  readonly #maxBytes: number;
  #fd: number | null = null;
  #size = 0;
  #total = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;

  constructor(folder: string, commandId: string, maxBytes: number = limits.maxCommandOutputBytes) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, commandId);
    this.#maxBytes = maxBytes;
    if (existsSync(this.#path)) {
      this.#size = fstatSync(this.#open()).size;
      this.#total = this.#size;
    }
  }

  /** Bytes of the kept stream that can be sent now. */
  get size(): number {
    return this.#size;
  }

  append(chunk: Buffer): void {
    this.#total += chunk.length;
    const half = Math.floor(this.#maxBytes / 2);
    const room = Math.max(0, half - this.#size);
    if (room > 0) this.#write(chunk.subarray(0, room));
    if (chunk.length <= room) return;
    // A copy: the reader's buffers are larger than what is kept of them.
    this.#tail.push(Buffer.from(chunk.subarray(room)));
    this.#tailBytes += chunk.length - room;
    for (let first = this.#tail[0]; first && this.#tailBytes > this.#maxBytes - half; first = this.#tail[0]) {
      const excess = Math.min(first.length, this.#tailBytes - (this.#maxBytes - half));
      this.#tailBytes -= excess;
      if (excess === first.length) this.#tail.shift();
      else this.#tail[0] = first.subarray(excess);
    }
  }

  /** The end of the output: the tail joins the file, and all of it is on the disk. */
  finish(): { outputBytes: number; truncatedBytes: number } {
    for (const chunk of this.#tail) this.#write(chunk);
    this.#tail = [];
    this.#tailBytes = 0;
    if (this.#fd !== null) fsyncSync(this.#fd);
    return { outputBytes: this.#total, truncatedBytes: this.#total - this.#size };
  }

  read(offset: number, maxBytes: number): Buffer {
    const buffer = Buffer.alloc(Math.max(0, Math.min(maxBytes, this.#size - offset)));
    const bytes = buffer.length === 0 ? 0 : readSync(this.#open(), buffer, 0, buffer.length, offset);
    return buffer.subarray(0, bytes);
  }

  /** Forgets the output: the cloud has it. */
  discard(): void {
    this.close();
    if (existsSync(this.#path)) unlinkSync(this.#path);
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #open(): number {
    this.#fd ??= openSync(this.#path, "a+", 0o600);
    return this.#fd;
  }

  #write(chunk: Buffer): void {
    let done = 0;
    while (done < chunk.length) done += writeSync(this.#open(), chunk, done);
    this.#size += chunk.length;
  }
}

/** Removes output that nobody will ask for: a crash may have come between an acknowledgement and the removal. */
export function forgetOutput(home: Home, isForgotten: (commandId: string) => boolean): void {
  mkdirSync(home.output, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(home.output)) if (isForgotten(name)) unlinkSync(join(home.output, name));
}
