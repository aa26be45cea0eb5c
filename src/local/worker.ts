// Runs the Worker in workerd on this machine, without an account: bundle once, then one process with local D1, R2 and objects.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { build, type Plugin } from "esbuild";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";

export const root = path.resolve(import.meta.dirname, "../..");
export const bundlePath = path.join(root, "dist/worker/index.js");

/** Bundles `src/index.ts`, or another entry, for workerd into `dist/worker` or another file, or bundles nothing and throws esbuild's message. */
export async function bundleWorker(entry = "src/index.ts", outfile = bundlePath, plugins: Plugin[] = []): Promise<string> {
  await build({
    entryPoints: [path.join(root, entry)],
    outfile,
    plugins,
    bundle: true,
    format: "esm",
    target: "es2024",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser", "import"],
    external: ["cloudflare:*", "node:*"],
    loader: { ".sql": "text" },
    define: { "process.env.NODE_ENV": '"production"' },
    sourcemap: "linked",
    logLevel: "silent",
  });
  return outfile;
}

export type WorkerOptions = {
  port: number;
  host?: string;
  /** Folder of the local state, in wrangler's layout; undefined keeps everything in memory. */
  statePath?: string;
  /** Secrets and variables. */
  bindings: Record<string, string>;
  /** Another bundle than `dist/worker/index.js`. */
  scriptPath?: string;
  onLog?: (line: string) => void;
  /**
   * A second socket that leads straight to the Worker: `miniflare.unsafeGetDirectURL()`. There are no pages then: with assets miniflare
   * puts two Workers of its own before ours, also on this socket, and each request would be counted with theirs.
   */
  direct?: boolean;
};

class LineLog extends Log {
  readonly #onLine: (line: string) => void;
  constructor(onLine: (line: string) => void) {
    super(LogLevel.WARN);
    this.#onLine = onLine;
  }
  override log(message: string): void {
    this.#onLine(message);
  }
  override error(error: Error): void {
    super.error(error);
    if (codeOf(error) === "ERR_RUNTIME_FAILURE") this.onLost();
  }
  /** workerd ended once more while it was started anew: miniflare starts it no third time. */
  onLost = (): void => {};
}

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);

/** Between two attempts. */
const restartMs = 1_000;

/** Starts the bundled Worker. Resolves when it listens; rejects with `ERR_ADDRESS_IN_USE` as the error's `code` when the port is taken. */
export async function startWorker(options: WorkerOptions): Promise<Miniflare> {
  const scriptPath = options.scriptPath ?? bundlePath;
  const object = (className: string) => ({ className, useSQLite: true });
  const folder = path.dirname(scriptPath);
  const texts = readdirSync(folder).filter((file) => file.endsWith(".sql"));
  const module = (type: "ESModule" | "Text", file: string) => ({ type, path: file, contents: readFileSync(file, "utf8") });
  const log = new LineLog(options.onLog ?? (() => {}));
  const settings = convertV4MiniflareOptions({
    name: "switchyard",
    host: options.host ?? "127.0.0.1",
    port: options.port,
    // Beside wrangler's bundle the migrations are modules of their own; in ours they are inside.
    modules: [module("ESModule", scriptPath), ...texts.map((file) => module("Text", path.join(folder, file)))],
    modulesRoot: folder,
    cf: false,
    compatibilityDate: "2026-10-01",
    compatibilityFlags: ["nodejs_compat"],
    durableObjects: {
      ROUTER: object("Router"),
      THREAD: object("Thread"),
      WORKER_SESSION: object("WorkerSession"),
      ENDPOINT: object("Endpoint"),
      BOARD: object("Board"),
    },
    d1Databases: ["DB"],
    r2Buckets: ["STORE"],
    ...(options.direct
      ? { unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] }
      : {
          assets: {
            directory: path.join(root, "dist/assets"),
            binding: "ASSETS",
            routerConfig: { has_user_worker: true, invoke_user_worker_ahead_of_assets: true },
          },
        }),
    bindings: options.bindings,
    log,
    handleStructuredLogs: ({ level, message }) => options.onLog?.(`${level}: ${message}`),
    ...(options.statePath === undefined ? {} : { resourcePersistencePath: path.join(options.statePath, "v3") }),
  });
  const miniflare = new Miniflare(settings);
  const restart = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, restartMs));
    try {
      await miniflare.setOptions(settings);
    } catch (error) {
      if (codeOf(error) === "ERR_DISPOSED") return;
      log.error(new Error("workerd could not be started anew; it is tried again.", { cause: error }));
      await restart();
    }
  };
  log.onLost = () => void restart();
  try {
    await miniflare.ready;
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
  return miniflare;
}
