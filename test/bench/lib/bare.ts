// The bare object of `worker/bare-step.ts` in a runtime of its own: what a turn costs without anything around it.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { bundleWorker } from "../../../src/local/worker.ts";
import type { BareRpc, BareTurns } from "../worker/bare-turns.ts";
import { newestRuntime, runtimeCpuMs } from "./runtimes.ts";

type Objects = Awaited<ReturnType<Miniflare["getDurableObjectNamespace"]>>;

export class BareRuntime {
  readonly #worker: Miniflare;
  readonly #folder: string;
  readonly #pid: number;
  readonly #objects: Objects;

  private constructor(worker: Miniflare, folder: string, objects: Objects) {
    this.#worker = worker;
    this.#folder = folder;
    this.#pid = newestRuntime();
    this.#objects = objects;
  }

  static async start(): Promise<BareRuntime> {
    const folder = mkdtempSync(path.join(tmpdir(), "switchyard-bare-"));
    const file = path.join(folder, "bare.js");
    await bundleWorker("test/bench/worker/bare-step.ts", file);
    const worker = new Miniflare(
      convertV4MiniflareOptions({
        name: "bare",
        host: "127.0.0.1",
        port: 0,
        modules: [{ type: "ESModule", path: file, contents: readFileSync(file, "utf8") }],
        modulesRoot: folder,
        cf: false,
        compatibilityDate: "2026-10-01",
        compatibilityFlags: ["nodejs_compat"],
        durableObjects: { BARE: { className: "Bare", useSQLite: true } },
        resourcePersistencePath: path.join(folder, "state"),
      }),
    );
    await worker.ready;
    return new BareRuntime(worker, folder, await worker.getDurableObjectNamespace("BARE"));
  }

  cpuMs(): number {
    return runtimeCpuMs(this.#pid);
  }

  #object(name: string): BareRpc {
    return this.#objects.get(this.#objects.idFromName(name)) as unknown as BareRpc;
  }

  turns(name: string, input: BareTurns): Promise<void> {
    return this.#object(name).turns(input);
  }

  nothing(name: string, input: unknown): Promise<void> {
    return this.#object(name).nothing(input);
  }

  async stop(): Promise<void> {
    await this.#worker.dispose();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
