// The bare platform: a Worker that calls an object that does nothing, or keeps one row that it looks for first. What we measure is a ratio to
// it, in the same run.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { cpuSecondsOf, newestRuntime } from "./runtimes.ts";

export const bareObjects = 200;

const script = `import { DurableObject } from "cloudflare:workers";
export class Bare extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS row (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL)");
  }
  async nothing() { return 1; }
  async keep(key, body) {
    const { sql } = this.ctx.storage;
    if (sql.exec("SELECT 1 FROM row WHERE key = ?", key).toArray().length === 0) sql.exec("INSERT INTO row (key, body) VALUES (?, ?)", key, body);
    return 1;
  }
}
export default {
  async fetch(request, env) {
    const body = await request.text();
    const object = env.BARE.getByName("object-" + Math.floor(Math.random() * ${bareObjects}));
    await (new URL(request.url).pathname === "/row" ? object.keep(crypto.randomUUID(), body) : object.nothing());
    return new Response("ok", { status: 202 });
  },
};`;

export class Floor {
  readonly url: string;
  readonly #worker: Miniflare;
  readonly #folder: string;
  readonly #pid = newestRuntime();

  private constructor(url: string, worker: Miniflare, folder: string) {
    this.url = url;
    this.#worker = worker;
    this.#folder = folder;
  }

  static async start(): Promise<Floor> {
    const folder = mkdtempSync(path.join(tmpdir(), "switchyard-floor-"));
    const file = path.join(folder, "floor.mjs");
    writeFileSync(file, script);
    const worker = new Miniflare(
      convertV4MiniflareOptions({
        name: "floor",
        host: "127.0.0.1",
        port: 0,
        modules: [{ type: "ESModule", path: file, contents: script }],
        modulesRoot: folder,
        cf: false,
        compatibilityDate: "2026-10-01",
        durableObjects: { BARE: { className: "Bare", useSQLite: true } },
        // On the disk that ours is on.
        resourcePersistencePath: path.join(folder, "state"),
        unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      }),
    );
    await worker.ready;
    return new Floor((await worker.unsafeGetDirectURL()).href, worker, folder);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  cpuSeconds(): number {
    return cpuSecondsOf(this.#pid);
  }

  async stop(): Promise<void> {
    await this.#worker.dispose();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
