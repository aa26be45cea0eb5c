// Output of commands: bytes in the object's SQLite while they come; what is too long for a model's context moves to R2 as an artifact.
import type { SettledCommand } from "../protocol/command.ts";
import { Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import { withTimeout } from "../timeout.ts";
import { commandOutputType, getArtifact, putArtifact } from "./artifacts.ts";

/** A put that hangs may not hold up every later one. */
const putTimeoutMs = 30_000;

type Spill = { artifact_id: string; bytes: number; head: string; tail: string };

export const outputTables = `
CREATE TABLE IF NOT EXISTS output (command_id TEXT NOT NULL, at INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (command_id, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spill (command_id TEXT PRIMARY KEY, artifact_id TEXT NOT NULL, bytes INTEGER NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL) WITHOUT ROWID;`;

export class OutputStore {
  readonly #storage: DurableObjectStorage;
  readonly #store: R2Bucket;
  /** One assembly at a time: each may hold a whole output in memory. */
  #assembling: Promise<unknown> = Promise.resolve();

  constructor(storage: DurableObjectStorage, store: R2Bucket) {
    this.#storage = storage;
    this.#store = store;
  }

  /** Appends bytes at `offset`, which is where the stored output ends. Call it inside the transaction of its decision. */
  append(commandId: string, offset: number, bytes: Uint8Array): void {
    this.#storage.sql.exec("INSERT INTO output (command_id, at, data) VALUES (?, ?, ?)", commandId, offset, bytes.slice().buffer);
  }

  /** The output as its task gets it: inline when short, else head, tail and an artifact with all of it. May be repeated; throws while R2 is down. */
  async settled(commandId: string, audience: string): Promise<SettledCommand["output"]> {
    const known = this.#spill(commandId);
    if (known) return spilledOutput(known);
    const text = this.#shortText(commandId);
    if (text !== null) return { text, spilled: false };
    const run = this.#assembling.then(() => this.#moveToArtifact(commandId, audience));
    this.#assembling = run.catch(() => undefined);
    return run;
  }

  async #moveToArtifact(commandId: string, audience: string): Promise<SettledCommand["output"]> {
    // Asked twice at once: the first has moved it.
    const known = this.#spill(commandId);
    if (known) return spilledOutput(known);
    const bytes = this.#bytes(commandId);
    // Commands run for untainted tasks alone: no stranger wrote it.
    const put = putArtifact(this.#store, bytes, commandOutputType, { audience, tainting: false });
    const artifactId = await withTimeout(put, putTimeoutMs, "R2");
    const half = Math.floor(limits.inlineResultChars / 2);
    const head = decode(bytes.subarray(0, boundary(bytes, half)));
    const tail = decode(bytes.subarray(boundary(bytes, bytes.length - half)));
    const spill: Spill = { artifact_id: artifactId, bytes: bytes.length, head, tail };
    this.#storage.transactionSync(() => {
      this.#storage.sql.exec("INSERT OR REPLACE INTO spill VALUES (?, ?, ?, ?, ?)", commandId, artifactId, bytes.length, head, tail);
      this.#storage.sql.exec("DELETE FROM output WHERE command_id = ?", commandId);
    });
    return spilledOutput(spill);
  }

  /** Text from `offset`, at most `limit` bytes, never half a character; `next` is where the following text begins. */
  async read(commandId: string, offset: number, limit: number): Promise<{ text: string; next: number; totalBytes: number }> {
    const spill = this.#spill(commandId);
    const bytes = spill ? (await getArtifact(this.#store, spill.artifact_id))?.bytes : this.#bytes(commandId);
    if (!bytes) throw new Fault("not_found", `The output of ${commandId} is gone from storage; run the command again.`);
    const start = boundary(bytes, Math.min(Math.max(0, Math.floor(offset)), bytes.length));
    const wanted = Math.min(Math.max(1, Math.floor(limit)), limits.maxOutputChunkBytes);
    let next = boundary(bytes, Math.min(start + wanted, bytes.length));
    // A limit below one character still makes progress.
    for (let end = start + wanted + 1; next <= start && start < bytes.length; end++) next = boundary(bytes, Math.min(end, bytes.length));
    return { text: decode(bytes.subarray(start, next)), next, totalBytes: bytes.length };
  }

  forget(commandId: string): void {
    this.#storage.sql.exec("DELETE FROM output WHERE command_id = ?", commandId);
    this.#storage.sql.exec("DELETE FROM spill WHERE command_id = ?", commandId);
  }

  #spill(commandId: string): Spill | null {
    return (
      this.#storage.sql.exec<Spill>("SELECT artifact_id, bytes, head, tail FROM spill WHERE command_id = ?", commandId).toArray()[0] ?? null
    );
  }

  /** The whole output when it is short enough for a model's context, else null. */
  #shortText(commandId: string): string | null {
    const { bytes } = this.#storage.sql
      .exec<{ bytes: number }>("SELECT IFNULL(SUM(LENGTH(data)), 0) AS bytes FROM output WHERE command_id = ?", commandId)
      .one();
    // No UTF-16 unit takes more than three bytes of UTF-8: a longer output need not be decoded to be counted.
    if (bytes > 3 * limits.inlineResultChars) return null;
    const text = decode(this.#bytes(commandId));
    return text.length > limits.inlineResultChars ? null : text;
  }

  #bytes(commandId: string): Uint8Array {
    const parts = this.#storage.sql
      .exec<{ data: ArrayBuffer }>("SELECT data FROM output WHERE command_id = ? ORDER BY at", commandId)
      .toArray()
      .map(({ data }) => new Uint8Array(data));
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
}

const spilledOutput = ({ head, tail, artifact_id, bytes }: Spill): SettledCommand["output"] => ({
  head,
  tail,
  artifactId: artifact_id,
  totalBytes: bytes,
  spilled: true,
});

const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes);

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;
const sequenceLength = (lead: number): number => (lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1);

/** The last place at or before `at` that cuts no UTF-8 character in half; bytes that are no UTF-8 may be cut anywhere. */
export function boundary(bytes: Uint8Array, at: number): number {
  if (!isContinuation(bytes[at])) return at;
  for (let back = 1; back <= 3 && back <= at; back++) {
    const byte = bytes[at - back] ?? 0;
    if (isContinuation(byte)) continue;
    return sequenceLength(byte) > back ? at - back : at;
  }
  return at;
}
