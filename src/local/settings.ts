// What the local start needs to know: arguments, `.dev.vars`, and secrets of its own that are made once and kept with the state.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs, parseEnv } from "node:util";
import { messageOf } from "../protocol/fault.ts";
import { root } from "./worker.ts";

/** A reason to stop that is told to the person in one line. */
export class StartError extends Error {}

export type Settings = {
  port: number;
  once: boolean;
  json: boolean;
  help: boolean;
  sample: string;
  /** A folder of the person's own instead of the sample. */
  workspace: string | null;
  unsandboxed: boolean;
  statePath: string;
  /** Secrets and variables for the Worker. */
  bindings: Record<string, string>;
};

export const usage = `npm start -- [options]
  --once             play one task, print its answer and stop
  --json             print each hop of that task as one JSON object a line
  --workspace DIR    work in this folder instead of the sample project
  --sample NAME      the sample to copy: node (default) or shell
  --unsandboxed      run commands without a sandbox also in a folder of your own
  --port N           default 8787
  --state DIR        default .wrangler/state`;

/** A page of somebody else whose name was resolved to this machine is none of ours. */
const thisMachine = "127.0.0.1,localhost,[::1]";

export function readSettings(argv: string[]): Settings {
  const values = parse(argv);
  const port = Number(values.port ?? 8787);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new StartError(`--port takes a number from 1 to 65535, not "${values.port}".`);
  const statePath = path.resolve(values.state ?? path.join(root, ".wrangler/state"));
  const workspace = values.workspace === undefined ? null : path.resolve(values.workspace);
  if (workspace !== null && !statSync(workspace, { throwIfNoEntry: false })?.isDirectory())
    throw new StartError(`There is no folder ${workspace}.`);
  return {
    port,
    once: values.once ?? false,
    json: values.json ?? false,
    help: values.help ?? false,
    sample: values.sample ?? "node",
    workspace,
    unsandboxed: values.unsandboxed ?? false,
    statePath,
    bindings: { ALLOWED_HOSTS: thisMachine, ...localSecrets(statePath), ...devVars() },
  };
}

function parse(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      options: {
        once: { type: "boolean" },
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
        unsandboxed: { type: "boolean" },
        workspace: { type: "string" },
        sample: { type: "string" },
        port: { type: "string" },
        state: { type: "string" },
      },
    }).values;
  } catch (error) {
    throw new StartError(`${messageOf(error).split("\n")[0]}\n${usage}`);
  }
}

/** `.dev.vars`, in wrangler's format; what stands there wins over the secrets made here. */
export function devVars(): Record<string, string> {
  const file = path.join(root, ".dev.vars");
  if (!existsSync(file)) return {};
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(parseEnv(readFileSync(file, "utf8")))) if (value !== undefined) values[name] = value;
  return values;
}

/** Secrets of the local deployment, kept beside its state so that a second start finds the same sessions. */
function localSecrets(statePath: string): Record<string, string> {
  const file = path.join(statePath, "local-secrets.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
  const secret = () => randomBytes(24).toString("base64url");
  const secrets = { SESSION_SECRET: secret(), OPERATOR_TOKEN: secret(), GITHUB_WEBHOOK_SECRET: secret() };
  mkdirSync(statePath, { recursive: true, mode: 0o700 });
  writeFileSync(file, JSON.stringify(secrets, null, 2), { mode: 0o600 });
  return secrets;
}
