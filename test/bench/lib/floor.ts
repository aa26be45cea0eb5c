// The bare platform: a Worker that calls an object that does nothing. What we measure is a ratio to it, in the same run.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { cpuSecondsOf, newestRuntime } from "./runtimes.ts";

const script = `import { DurableObject } from "cloudflare:workers";
export class Nothing extends DurableObject { async nothing() { return 1; } }
export default {
  async fetch(request, env) {
    const body = await request.text();
    await env.NOTHING.getByName("object-" + (body.length % 200)).nothing();
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
        durableObjects: { NOTHING: { className: "Nothing", useSQLite: true } },
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
