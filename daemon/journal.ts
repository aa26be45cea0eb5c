// The journal file: append-only, one record a line: 16 hex digits of SHA-256, space, JSON. Appends that come together share one fsync.
import { createHash } from "node:crypto";
import { type FileHandle, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { Fault } from "../src/protocol/fault.ts";
import { readIfThere, syncFolder } from "./home.ts";
import { type JournalRecord, journalRecord } from "./ledger.ts";

const digest = (json: string): string => createHash("sha256").update(json).digest("hex").slice(0, 16);

export const encodeRecord = (record: JournalRecord): string => {
  const json = JSON.stringify(record);
  return `${digest(json)} ${json}\n`;
};

export type JournalContent = { records: JournalRecord[]; soundBytes: number; torn: boolean };

/**
 * Reads a journal's text. Only a last line without its newline is torn by a crash and may be cut: nothing was done on its word yet.
 * Any other line that does not check was durable once; what it said is lost, so nothing may run.
 */
export function parseJournal(text: string, path: string): JournalContent {
  const end = text.lastIndexOf("\n") + 1;
  const lines = text.slice(0, end).split("\n").slice(0, -1);
  const records = lines.map((line, i) => {
    const json = line.slice(17);
    if (line[16] !== " " || digest(json) !== line.slice(0, 16))
      throw new Fault(
        "internal",
        `The journal ${path} is damaged at line ${i + 1}, so it is not known what already ran here. Put back a good copy, or enrol this machine again (npm run daemon -- enroll URL CODE), which sets the journal aside.`,
      );
    const parsed = journalRecord.safeParse(JSON.parse(json));
    if (!parsed.success)
      throw new Fault(
        "bad_input",
        `The journal ${path} was written by a newer daemon (line ${i + 1}); run that version, or update this one.`,
      );
    return parsed.data;
  });
  return { records, soundBytes: Buffer.byteLength(text.slice(0, end)), torn: end < text.length };
}

type Waiting = { resolve: () => void; reject: (error: unknown) => void };
type Job = { text: string; whole: boolean; waiting: Waiting[] };

/** An open journal. `append` resolves when the record is on the disk. */
export class Journal {
  readonly path: string;
  #file: FileHandle;
  #jobs: Job[] = [];
  #writing = false;
  #bytes: number;
  #broken: unknown = null;

  private constructor(path: string, file: FileHandle, bytes: number) {
    this.path = path;
    this.#file = file;
    this.#bytes = bytes;
  }

  /** Opens or makes the journal and cuts a torn tail. */
  static async open(path: string): Promise<{ journal: Journal; records: JournalRecord[]; torn: boolean }> {
    const content = parseJournal(readIfThere(path) ?? "", path);
    const file = await open(path, "a", 0o600);
    if (content.torn) await file.truncate(content.soundBytes);
    await file.sync();
    syncFolder(dirname(path));
    return { journal: new Journal(path, file, content.soundBytes), records: content.records, torn: content.torn };
  }

  get bytes(): number {
    return this.#bytes;
  }

  append(...records: JournalRecord[]): Promise<void> {
    return this.#enqueue(records.map(encodeRecord).join(""), false);
  }

  /** Replaces the whole file; appends asked for later follow it. */
  rewrite(records: readonly JournalRecord[]): Promise<void> {
    return this.#enqueue(records.map(encodeRecord).join(""), true);
  }

  async close(): Promise<void> {
    await this.append();
    await this.#file.close();
  }

  #enqueue(text: string, whole: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const last = this.#jobs.at(-1);
      if (last && !last.whole && !whole) {
        last.text += text;
        last.waiting.push({ resolve, reject });
      } else this.#jobs.push({ text, whole, waiting: [{ resolve, reject }] });
      void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    // One turn of the event loop lets appends that come together share the fsync.
    await null;
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift()) {
      try {
        // After a failed write the file's end is not known: nothing more is promised.
        if (this.#broken !== null) throw this.#broken;
        if (job.whole) await this.#replace(job.text);
        else await this.#extend(job.text);
        for (const each of job.waiting) each.resolve();
      } catch (cause) {
        this.#broken = new Fault("internal", `The journal ${this.path} cannot be written; check the disk and start the daemon again.`, {
          cause,
        });
        for (const each of job.waiting) each.reject(this.#broken);
      }
    }
    this.#writing = false;
  }

  async #extend(text: string): Promise<void> {
    if (text === "") return;
    await this.#file.appendFile(text);
    await this.#file.datasync();
    this.#bytes += Buffer.byteLength(text);
  }

  async #replace(text: string): Promise<void> {
    const temporary = `${this.path}.new`;
    const file = await open(temporary, "w", 0o600);
    await file.writeFile(text);
    await file.sync();
    await rename(temporary, this.path);
    syncFolder(dirname(this.path));
    await this.#file.close();
    // The new descriptor stands at the end of what was written and goes on from there.
    this.#file = file;
    this.#bytes = Buffer.byteLength(text);
  }
}
