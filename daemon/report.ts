// `status`, `log` and `doctor`: what this machine's daemon is, did, and needs.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as z from "zod/mini";
import { messageOf } from "../src/protocol/fault.ts";
import { writableCgroup } from "./group.ts";
import { type Home, readIfThere } from "./home.ts";
import { readIdentity } from "./identity.ts";
import { parseJournal } from "./journal.ts";
import { type Entry, emptyLedger, enter, howEnded, type Ledger, labelOf } from "./ledger.ts";
import { takeLock } from "./lock.ts";
import { readPolicy } from "./policy.ts";
import { detectSandbox } from "./sandbox.ts";

const statusFile = z.object({ state: z.string(), detail: z.string(), sinceMs: z.number(), pid: z.number() });

function readLedger(home: Home): Ledger {
  const ledger = emptyLedger();
  for (const record of parseJournal(readIfThere(home.journal) ?? "", home.journal).records) enter(ledger, record);
  return ledger;
}

/** Looks without disturbing: a lock that can be taken is given back at once. */
function isRunning(home: Home): boolean {
  const lock = takeLock(home);
  if ("heldBy" in lock) return true;
  lock.release();
  return false;
}

/** The machine's state, as a record for `--json` and as lines for people. */
export function statusReport(home: Home): { fields: Record<string, unknown>; lines: string[] } {
  const identity = readIdentity(home);
  const running = isRunning(home);
  const text = readIfThere(home.status);
  const last = text === null ? null : statusFile.parse(JSON.parse(text));
  const { workspaces } = readPolicy(home);
  const open = [...readLedger(home).entries].filter(([, entry]) => entry.state !== "acked");
  const connection = running && last ? `${last.state} (${last.detail}) since ${new Date(last.sinceMs).toISOString()}` : "not running";
  return {
    fields: {
      endpointId: identity?.endpointId ?? null,
      name: identity?.name ?? null,
      url: identity?.url ?? null,
      running,
      state: running ? (last?.state ?? "starting") : "not running",
      workspaces,
      open: open.map(([commandId, entry]) => ({ commandId, state: entry.state })),
    },
    lines: [
      identity
        ? `machine    ${identity.name} (${identity.endpointId}) at ${identity.url}`
        : "machine    not enrolled: npm run daemon -- enroll URL CODE",
      `daemon     ${connection}`,
      ...(workspaces.length === 0 ? ["folder     none granted: npm run daemon -- grant DIR"] : []),
      ...workspaces.map((each) => `folder     ${each.name} = ${each.path}${each.push ? " (tasks may push)" : ""}`),
      `commands   ${open.length} open${open.length === 0 ? "" : `: ${open.map(([id, entry]) => `${id} ${entry.state}`).join(", ")}`}`,
    ],
  };
}

function logLine(id: string, entry: Entry): { atMs: number; fields: Record<string, unknown>; line: string } {
  const ended = entry.state === "finished" || entry.state === "acked" ? entry.result : null;
  const label = entry.state === "acked" ? entry.label : labelOf(entry.command.spec);
  const workspace = entry.state === "acked" ? entry.workspace : entry.command.spec.workspace;
  const task = entry.state === "acked" ? entry.taskId : entry.command.taskId;
  const atMs = ended ? (ended.startedMs ?? ended.endedMs) : entry.state === "started" ? entry.startedMs : Date.now();
  const how = ended ? howEnded(ended) : entry.state;
  return {
    atMs,
    fields: { at: new Date(atMs).toISOString(), commandId: id, taskId: task, workspace, label, how },
    line: `${new Date(atMs).toISOString()}  ${how.padEnd(15)} ${workspace}: ${label}  (${id}, ${task})`,
  };
}

/** What ran here, oldest first. */
export function logReport(home: Home, limit: number): { fields: Record<string, unknown>; line: string }[] {
  return [...readLedger(home).entries]
    .map(([id, entry]) => logLine(id, entry))
    .sort((a, b) => a.atMs - b.atMs)
    .slice(-limit);
}

/** `check` is the word for programs; `text` says what was found, or what to do. */
export type Finding = { check: string; ok: boolean; text: string };

/** A fault becomes a finding: doctor goes on to the next question. */
type Look = Omit<Finding, "check">;
const finding = async (check: string, look: () => Look | Promise<Look>): Promise<Finding> => {
  try {
    return { check, ...(await look()) };
  } catch (error) {
    return { check, ok: false, text: messageOf(error) };
  }
};

/** Everything that the daemon needs, each with what to do when it is missing. */
export async function doctorReport(home: Home): Promise<Finding[]> {
  const sandbox = await detectSandbox(false, home.dir);
  const cgroup = writableCgroup();
  return Promise.all([
    finding("node", () => ({
      ok: Number(process.versions.node.split(".")[0]) >= 22,
      text: `Node ${process.versions.node} (22 or newer is needed; npm run daemon brings its own)`,
    })),
    finding("enrolment", () => {
      const identity = readIdentity(home);
      return {
        ok: identity !== null,
        text: identity ? `enrolled as "${identity.name}" at ${identity.url}` : "not enrolled: npm run daemon -- enroll URL CODE",
      };
    }),
    finding("folders", () => {
      const count = readPolicy(home).workspaces.length;
      return {
        ok: count > 0,
        text: count > 0 ? `${count} granted ${count === 1 ? "folder" : "folders"}` : "no granted folder: npm run daemon -- grant DIR",
      };
    }),
    finding("journal", () => ({ ok: true, text: `the journal is sound (${readLedger(home).entries.size} commands)` })),
    finding("sandbox", () => ({ ok: sandbox.mode === "bwrap", text: sandbox.mode === "bwrap" ? "bubblewrap works" : sandbox.why })),
    finding("stop", async () => {
      if (sandbox.mode === "bwrap") return { ok: true, text: "a stop ends everything that a command started (process namespace)" };
      if (cgroup !== null) return { ok: true, text: "without the sandbox, a stop ends everything by cgroup" };
      return {
        ok: false,
        text: "without the sandbox, a process that detaches itself and clears its environment survives a stop; install bubblewrap",
      };
    }),
    finding("namespaces", async () => {
      const hint = await userNamespaceHint();
      return { ok: hint === null || sandbox.mode === "bwrap", text: hint ?? "user namespaces are not restricted" };
    }),
    finding("cloud", async () => {
      const identity = readIdentity(home);
      if (identity === null) return { ok: false, text: "no cloud to reach yet" };
      const response = await fetch(`${identity.url}/health`, { signal: AbortSignal.timeout(10_000) }).catch(() => null);
      return {
        ok: response !== null,
        text: response ? `${identity.url} answers` : `${identity.url} cannot be reached; check that it is running, and your network`,
      };
    }),
  ]);
}

async function userNamespaceHint(): Promise<string | null> {
  const value = await promisify(execFile)("sysctl", ["-n", "kernel.apparmor_restrict_unprivileged_userns"]).catch(() => null);
  if (value?.stdout.trim() !== "1") return null;
  return "this system restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns=1): give bwrap an AppArmor profile, as your distribution describes";
}
