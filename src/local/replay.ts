// `npm run replay -- tsk_…|router --step K`: prints the bytes of the request that a task, or the router, sent to its model at step K.
import { parseArgs } from "node:util";
import { messageOf } from "../protocol/fault.ts";
import { ConsoleClient } from "./console-client.ts";
import { readSettings } from "./settings.ts";

const usage = `npm run replay -- tsk_…|router --step K [options]
  --url URL        the deployment; the local one without it
  --token TOKEN    its OPERATOR_TOKEN
  --port N         where the local one listens, default 8787
  --state DIR      where the local one keeps its state, default .wrangler/state`;

function read() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        step: { type: "string" },
        url: { type: "string" },
        token: { type: "string" },
        port: { type: "string" },
        state: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    throw new Error(`${messageOf(error).split(". ")[0]}\n${usage}`);
  }
}

async function main(): Promise<void> {
  const { positionals, values } = read();
  if (values.help) return console.log(usage);
  const [of, ...others] = positionals;
  const step = Number(values.step);
  if (of === undefined || others.length > 0 || !(of === "router" || of.startsWith("tsk_")) || !Number.isInteger(step) || step < 1)
    throw new Error(of !== undefined && values.step === undefined ? `Which step? Say --step 1 for the first.\n${usage}` : usage);
  const local = (["port", "state"] as const).flatMap((name) => (values[name] === undefined ? [] : [`--${name}`, values[name]]));
  const settings = readSettings(local);
  const token = values.token ?? (values.url === undefined ? settings.bindings.OPERATOR_TOKEN : process.env.OPERATOR_TOKEN);
  if (!token) throw new Error(`The operator token is missing: give --token, or set OPERATOR_TOKEN.\n${usage}`);
  const client = new ConsoleClient(values.url?.replace(/\/+$/, "") ?? `http://127.0.0.1:${settings.port}`, token);
  const { bytes, model, complete } = await client.replay(of, step);
  const size = Buffer.byteLength(bytes);
  console.error(`${of}, step ${step}: ${size} bytes to "${model}"${complete ? "" : "; public text that was read then is not kept"}`);
  process.stdout.write(bytes);
}

main().catch((error: unknown) => {
  console.error(messageOf(error));
  process.exitCode = 1;
});
