// `run`: one daemon on one home, connected until it is ended.
import { statSync } from "node:fs";
import { daemonProtocolVersion } from "../src/protocol/daemon-frames.ts";
import { Fault } from "../src/protocol/fault.ts";
import { Connection } from "./connection.ts";
import { Foreman } from "./foreman.ts";
import { writableCgroup } from "./group.ts";
import { type Home, writeWhole } from "./home.ts";
import { cloudAddress, type Identity, readIdentity } from "./identity.ts";
import { Journal } from "./journal.ts";
import type { FaultPlan } from "./kill-point.ts";
import { emptyLedger, enter, type Ledger } from "./ledger.ts";
import { requireLock } from "./lock.ts";
import type { Log } from "./log.ts";
import { type Grant, readPolicy } from "./policy.ts";
import { detectSandbox, type Sandbox } from "./sandbox.ts";
import { daemonVersion } from "./version.ts";

const policyLookMs = 1_000;

/** The identity, or a fault that says how to get one. */
function requireIdentity(home: Home): Identity {
  const identity = readIdentity(home);
  if (identity === null)
    throw new Fault(
      "unauthorised",
      "This machine is not enrolled yet; make a code in the console and run: npm run daemon -- enroll URL CODE",
    );
  return identity;
}

async function openLedger(home: Home, identity: Identity, log: Log): Promise<{ journal: Journal; ledger: Ledger }> {
  const { journal, records, torn } = await Journal.open(home.journal);
  if (torn) log({ event: "recovered", text: "the journal's last line was cut off by a crash; it had not been acted on and was removed" });
  const ledger = emptyLedger();
  for (const record of records) enter(ledger, record);
  if (ledger.endpointId !== null && ledger.endpointId !== identity.endpointId)
    throw new Fault(
      "conflict",
      `The journal ${home.journal} belongs to ${ledger.endpointId}, not to this machine's ${identity.endpointId}; move it away.`,
    );
  return { journal, ledger };
}

function saySandbox(sandbox: Sandbox, cgroupParent: string | null): string {
  switch (sandbox.mode) {
    case "bwrap":
      return "commands run in a bubblewrap sandbox";
    case "unsandboxed":
      return `commands run WITHOUT a sandbox, as you asked: ${sandbox.why}; their processes are ended ${cgroupParent === null ? "as far as they can be recognised" : "by cgroup"}`;
    case "none":
      return `shell commands are refused: ${sandbox.why}; or start with --unsandboxed`;
  }
}

/** Reading the policy must not end the connection: while it cannot be read, nothing is granted. */
function grantsOf(home: Home, log: Log): Grant[] {
  try {
    return readPolicy(home).workspaces;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    log({ event: "warning", text: error.message });
    return [];
  }
}

const stampOf = (path: string): string => {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat ? `${stat.mtimeMs} ${stat.ino} ${stat.size}` : "";
};

/** Runs until a signal (0) or until the cloud says that it is no use (a fault). `url`: the cloud has moved to another address. */
export async function runDaemon(home: Home, url: string | null, allowUnsandboxed: boolean, fault: FaultPlan, log: Log): Promise<void> {
  const enrolled = requireIdentity(home);
  const identity = url === null ? enrolled : { ...enrolled, url: cloudAddress(url) };
  const lock = requireLock(home);
  const { journal, ledger } = await openLedger(home, identity, log);
  const sandbox = await detectSandbox(allowUnsandboxed, home.dir);
  const cgroupParent = sandbox.mode === "bwrap" ? null : writableCgroup();
  log({ event: "ready", text: saySandbox(sandbox, cgroupParent), sandbox: sandbox.mode, v: daemonProtocolVersion });
  for (const grant of grantsOf(home, log))
    log({ event: "granted", text: `folder "${grant.name}" is granted: ${grant.path}`, name: grant.name, path: grant.path });

  const { promise: failed, reject: onFatal } = Promise.withResolvers<never>();
  const foreman = new Foreman({
    home,
    endpointId: identity.endpointId,
    journal,
    ledger,
    sandbox: sandbox.mode,
    cgroupParent,
    fault,
    log,
    onFatal,
  });
  await foreman.recover();
  const connection = new Connection(
    identity,
    {
      hello: () => ({
        about: { version: daemonVersion, platform: `${process.platform} ${process.arch}`, sandbox: sandbox.mode },
        workspaces: grantsOf(home, log),
        open: foreman.hello(),
      }),
      onWelcome: (welcome, link) => foreman.onWelcome(welcome.output, link),
      onFrame: (frame) => foreman.onFrame(frame),
      onUnreadable: (frame, problem) => foreman.onUnreadable(frame, problem),
      onDown: () => foreman.onDown(),
      onState: (state, detail) => writeWhole(home.status, `${JSON.stringify({ state, detail, sinceMs: Date.now(), pid: process.pid })}\n`),
    },
    log,
  );
  let stamp = stampOf(home.policy);
  const watcher = setInterval(() => {
    const now = stampOf(home.policy);
    if (now === stamp) return;
    stamp = now;
    connection.reconnect("the granted folders changed; telling the cloud");
  }, policyLookMs);
  const onSignal = (): void => {
    process.once("SIGINT", () => process.exit(1));
    foreman.shutdown().then(() => connection.stop(), onFatal);
  };
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  try {
    const why = await Promise.race([connection.run(), failed]);
    if (why !== null) {
      await foreman.shutdown();
      throw new Fault("unauthorised", `${why[0]?.toUpperCase()}${why.slice(1)}.`);
    }
    log({ event: "ended", text: "ended" });
  } finally {
    clearInterval(watcher);
    lock.release();
  }
}
