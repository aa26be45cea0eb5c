// `npm start`: the whole system on this machine. Worker in workerd, this machine's daemon, one task played through, then it serves.
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import path from "node:path";
import { messageOf } from "../protocol/fault.ts";
import { buildAssets } from "./build.ts";
import { ConsoleClient } from "./console-client.ts";
import { daemonFindings, startDaemon } from "./daemon-process.ts";
import { firstRequest, type Hop, playFirstTask } from "./first-task.ts";
import { lockState } from "./instance-lock.ts";
import { childrenNamed, processRef } from "./processes.ts";
import { readSettings, type Settings, StartError, usage } from "./settings.ts";
import { WidgetClient } from "./widget-client.ts";
import { bundleWorker, startWorker } from "./worker.ts";
import { copyFolder, copySample } from "./workspace.ts";

const minuteMs = 60_000;
const firstTaskTimeoutMs = 100_000;

/** What was started, to be stopped in reverse order. */
const cleanups: (() => unknown)[] = [];
let stopping: Promise<void> | null = null;

function stopAll(): Promise<void> {
  stopping ??= (async () => {
    for (const cleanup of cleanups.reverse()) {
      try {
        await cleanup();
      } catch (error) {
        console.error(`While stopping: ${messageOf(error)}`);
      }
    }
  })();
  return stopping;
}

/** workerd's own remarks about alarms after a restart; nothing that a person could act on. */
const isNoise = (line: string): boolean => line.includes("NOSENTRY") || line.includes("SQLite alarm overdue");

/** The daemon's own folder: beside the state, unless that lies in the workspace, where commands could read the machine's key. */
function daemonHome(settings: Settings): string {
  const beside = path.join(settings.statePath, "daemon");
  const fromWorkspace = settings.workspace === null ? ".." : path.relative(settings.workspace, beside);
  if (fromWorkspace.startsWith("..") || path.isAbsolute(fromWorkspace)) return beside;
  return path.join(homedir(), ".switchyard", `local-${createHash("sha256").update(settings.statePath).digest("hex").slice(0, 12)}`);
}

/** A folder's name in the letters that the daemon takes for one. */
const workspaceName = (folder: string): string =>
  path
    .basename(folder)
    .replace(/[^\p{L}\p{N} ._-]/gu, "-")
    .replace(/^[^\p{L}\p{N}]+/u, "")
    .slice(0, 100) || "workspace";

/** The folder that the daemon works in, and whether commands may run there without a sandbox. */
async function prepareWorkspace(settings: Settings, home: string, say: (line: string) => void) {
  const sandboxed = (await daemonFindings(home)).some(({ check, ok }) => check === "sandbox" && ok);
  const scratch = path.join(settings.statePath, "workspaces", settings.workspace === null ? settings.sample : "copy");
  if (settings.workspace === null) {
    const { failingTest } = copySample(settings.sample, scratch);
    say(`Workspace  ${scratch}, a fresh copy of the ${settings.sample} sample; its failing test is "${failingTest}" this time.`);
    if (!sandboxed) say("Sandbox    bubblewrap is not installed: commands run unsandboxed in that scratch folder (--unsandboxed).");
    return { workspace: scratch, name: settings.sample, unsandboxed: !sandboxed };
  }
  const name = workspaceName(settings.workspace);
  if (sandboxed || settings.unsandboxed) {
    say(`Workspace  ${settings.workspace}${sandboxed ? "" : ", unsandboxed as you asked"}`);
    return { workspace: settings.workspace, name, unsandboxed: settings.unsandboxed };
  }
  copyFolder(settings.workspace, scratch);
  say(
    `Workspace  ${scratch}, a scratch copy of ${settings.workspace}: bubblewrap is not installed, so commands run unsandboxed and only in the copy.`,
  );
  say("           Install bubblewrap, or add --unsandboxed, to work in the folder itself.");
  return { workspace: scratch, name, unsandboxed: true };
}

async function checkHealth(origin: string): Promise<void> {
  const health = (await (await fetch(`${origin}/health`)).json()) as { model?: { ready?: boolean; note?: string } };
  if (health.model?.ready === false) throw new StartError(health.model.note ?? "The model's settings cannot work; /health says more.");
}

const hopLine = (hop: Hop): string => `  ${hop.hop.padEnd(8)} ${String(hop.ms).padStart(6)} ms  ${hop.detail}  ${hop.id}`;

async function main(): Promise<void> {
  const settings = readSettings(process.argv.slice(2));
  if (settings.help) return console.log(usage);
  // With --json standard output holds the hops and nothing else.
  const say = (line: string) => (settings.json ? console.error(line) : console.log(line));

  const lock = lockState(settings.statePath);
  process.on("exit", () => lock.release());
  if (lock.ended.length > 0) say(`The last run was killed; what it left behind is ended now (processes ${lock.ended.join(", ")}).`);
  say("Building   browser parts and Worker …");
  await Promise.all([buildAssets(), bundleWorker()]);
  const origin = `http://127.0.0.1:${settings.port}`;
  const worker = await startWorker({
    port: settings.port,
    statePath: settings.statePath,
    bindings: settings.bindings,
    onLog: (line) => {
      if (!isNoise(line)) console.error(`worker: ${line}`);
    },
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ERR_ADDRESS_IN_USE" || error.code === "EADDRINUSE") {
      throw new StartError(`Port ${settings.port} is in use. Stop what uses it, or start with --port N.`);
    }
    throw error;
  });
  cleanups.push(() => worker.dispose());
  lock.adopt(childrenNamed("workerd"));
  ownSignals();
  await checkHealth(origin);

  const cron = setInterval(() => {
    worker
      .getWorker()
      .then((fetcher) => fetcher.scheduled({ cron: "* * * * *" }))
      .catch((error: unknown) => console.error(`The cron failed: ${error}`));
  }, minuteMs);
  cleanups.push(() => clearInterval(cron));

  let playing = true;
  const operatorToken = settings.bindings.OPERATOR_TOKEN ?? "";
  const console_ = new ConsoleClient(origin, operatorToken);
  const home = daemonHome(settings);
  const { workspace, name, unsandboxed } = await prepareWorkspace(settings, home, say);
  const daemon = await startDaemon(console_, {
    home,
    origin,
    workspace,
    workspaceName: name,
    unsandboxed,
    // While the first task plays, its hops say what ran.
    onLine: (line) => {
      if (!playing || !line.startsWith("ran ")) say(`daemon     ${line}`);
    },
  });
  const daemonRef = daemon.pid === undefined ? null : processRef(daemon.pid);
  if (daemonRef !== null) lock.adopt([daemonRef]);
  cleanups.push(() => {
    daemon.kill("SIGTERM");
    return new Promise((resolve) => (daemon.exitCode === null ? daemon.once("exit", resolve) : resolve(undefined)));
  });

  if (!settings.once) {
    say(`Widget     ${await console_.ownerLink()}`);
    say("           (your personal link; it works once, this browser then remembers you)");
    say(`Console    ${origin}/console`);
    say(`           operator token: ${operatorToken}`);
  }
  say(`Playing    "${firstRequest}"`);
  const widget = await WidgetClient.connect(await console_.ownerLink());
  cleanups.push(() => widget.close());
  try {
    const { answer } = await playFirstTask(widget, console_, firstTaskTimeoutMs, (hop) =>
      settings.json ? console.log(JSON.stringify(hop)) : say(hopLine(hop)),
    );
    say(`\n${answer}\n`);
  } catch (error) {
    // What was asked is kept and may still be answered: only a single run gives up.
    if (settings.once || !(error instanceof StartError)) throw error;
    console.error(error.message);
  }
  widget.close();
  playing = false;
  if (settings.once) {
    await stopAll();
    process.exit(0);
  }
  say("Serving    until Ctrl-C.");
  daemon.once("exit", (code) => {
    if (stopping === null) say(`daemon     ended (exit ${code}); commands wait until it is back: npm run daemon -- run --home ${home}`);
  });
}

/** Ctrl-C stops everything that was started. The runtime's own handlers would end this process before that is done. */
function ownSignals(): void {
  for (const [signal, code] of [
    ["SIGINT", 0],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.removeAllListeners(signal);
    process.on(signal, () => {
      void stopAll().then(() => {
        console.error("Stopped.");
        process.exit(code);
      });
    });
  }
}

ownSignals();

main().catch(async (error: unknown) => {
  console.error(error instanceof StartError ? error.message : error);
  await stopAll();
  process.exit(1);
});
