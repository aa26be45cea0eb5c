// The daemon's command line.
import { hostname } from "node:os";
import { parseArgs } from "node:util";
import { Fault, messageOf } from "../src/protocol/fault.ts";
import { openHome } from "./home.ts";
import { enrol } from "./identity.ts";
import { readFaultPlan } from "./kill-point.ts";
import { requireLock } from "./lock.ts";
import { makeLog, printable, printableLine } from "./log.ts";
import { grantFolder, withdrawFolder } from "./policy.ts";
import { doctorReport, logReport, statusReport } from "./report.ts";
import { runDaemon } from "./run.ts";

const usage = `Switchyard's daemon: this machine runs commands for your team's Switchyard, in the folders that you grant.

  npm run daemon -- enroll URL CODE [--name NAME]   connect this machine; the console makes the code
  npm run daemon -- grant DIR [--name NAME]         let commands work in a folder (--only: and in no other)
  npm run daemon -- grant DIR --push                and let tasks push branches switchyard/… from it, with your git
  npm run daemon -- withdraw NAME                   no longer
  npm run daemon -- run [--unsandboxed] [--url URL] run until Ctrl-C
  npm run daemon -- status                          is it connected, and what is granted
  npm run daemon -- log [--limit N]                 what ran here
  npm run daemon -- doctor                          what this machine lacks

  --home DIR   where the daemon keeps its key and journal (default ~/.switchyard)
  --json       one JSON object a line, for programs
`;

/** The only way to the owner's terminal. */
const print = (text: string): void => void process.stdout.write(printable(text));

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        home: { type: "string" },
        name: { type: "string" },
        url: { type: "string" },
        limit: { type: "string", default: "20" },
        only: { type: "boolean", default: false },
        push: { type: "boolean", default: false },
        unsandboxed: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (cause) {
    throw new Fault("bad_input", `${messageOf(cause).split(". ")[0]}; see: npm run daemon -- --help`, {
      cause,
    });
  }
}

/** A machine's name from its host name, in the letters that a name may have. */
const defaultName = (): string =>
  hostname()
    .replace(/\.local$|\..*$/, "")
    .replace(/[^\p{L}\p{N} ._-]/gu, "-")
    .replace(/^[^\p{L}\p{N}]+/u, "")
    .slice(0, 60) || "machine";

async function main(): Promise<number> {
  const { values, positionals } = readArguments();
  const [verb, ...rest] = positionals;
  if (values.help || verb === undefined) {
    print(usage);
    return values.help ? 0 : 2;
  }
  if (process.platform === "win32") throw new Fault("bad_input", "The daemon runs on Linux and macOS; on Windows, use it inside WSL.");
  const show = (fields: Record<string, unknown>, lines: string[]): void =>
    print(values.json ? `${JSON.stringify(fields)}\n` : lines.map((line) => `${printableLine(line)}\n`).join(""));
  const home = openHome(values.home);
  switch (verb) {
    case "enroll": {
      const [url, code] = rest;
      if (!url || !code) throw new Fault("bad_input", "Give the address and the code: npm run daemon -- enroll URL CODE");
      const lock = requireLock(home);
      try {
        const identity = await enrol(home, url, code, values.name ?? defaultName());
        const { endpointId, name } = identity;
        show({ endpointId, name, url: identity.url }, [
          `enrolled as "${name}" (${endpointId})`,
          "next: npm run daemon -- grant DIR, then npm run daemon -- run",
        ]);
      } finally {
        lock.release();
      }
      return 0;
    }
    case "grant": {
      const [dir] = rest;
      if (!dir) throw new Fault("bad_input", "Give the folder: npm run daemon -- grant DIR");
      const { grant, isNew } = grantFolder(home, dir, values.name ?? null, values.only, values.push);
      show({ ...grant, isNew }, [
        `${isNew ? "granted" : "already granted"}: "${grant.name}" = ${grant.path}${grant.push ? ", tasks may push from it" : ""}`,
      ]);
      return 0;
    }
    case "withdraw": {
      const [name] = rest;
      if (!name) throw new Fault("bad_input", "Give the folder's name: npm run daemon -- withdraw NAME");
      withdrawFolder(home, name);
      show({ withdrawn: name }, [`withdrawn: "${name}"`]);
      return 0;
    }
    case "run":
      await runDaemon(home, values.url ?? null, values.unsandboxed, readFaultPlan(process.env), makeLog(values.json, print, Date.now));
      return 0;
    case "status": {
      const { fields, lines } = statusReport(home);
      show(fields, lines);
      return 0;
    }
    case "log": {
      const limit = Number(values.limit);
      if (!Number.isInteger(limit) || limit < 1) throw new Fault("bad_input", "--limit is a whole number from 1.");
      const entries = logReport(home, limit);
      for (const entry of entries) show(entry.fields, [entry.line]);
      if (entries.length === 0 && !values.json) print("Nothing ran here yet.\n");
      return 0;
    }
    case "doctor": {
      const findings = await doctorReport(home);
      for (const each of findings) show(each, [`${each.ok ? "ok  " : "TODO"}  ${each.text}`]);
      return findings.every((each) => each.ok) ? 0 : 1;
    }
    default:
      throw new Fault("bad_input", `There is no "${verb}"; see: npm run daemon -- --help`);
  }
}

main().then(
  (code) => process.exit(code),
  (error) => {
    const text = messageOf(error);
    // What is not a fault of ours to explain is a bug: its place helps whoever mends it.
    const place = error instanceof Fault || !(error instanceof Error) ? "" : `${error.stack}\n`;
    process.stderr.write(printable(`switchyard: ${text}\n${place}`));
    process.exit(1);
  },
);
