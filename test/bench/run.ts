// `npm run bench -- NAME [--quick] [--json] [--picture]`: one benchmark, its figures and its goals. The exit code is non-zero when a goal falls short.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { buildAssets } from "../../src/local/build.ts";
import { bundleWorker } from "../../src/local/worker.ts";
import { messageOf } from "../../src/protocol/fault.ts";
import { cost, fullCost, quickCost } from "./cost.ts";
import { essayBatching, fullBatching, quickBatching } from "./essay-batching.ts";
import { essayEndToEnd, fullEndToEnd, quickEndToEnd } from "./essay-e2e.ts";
import { fullIngest, ingest, quickIngest } from "./ingest.ts";
import { print, type Result } from "./lib/result.ts";
import { fullPassThrough, passThrough, quickPassThrough } from "./pass-through.ts";
import { fullRouterOverhead, quickRouterOverhead, routerOverhead } from "./router-overhead.ts";
import { fullScale, quickScale, scale } from "./scale.ts";
import { fullWorkerStep, quickWorkerStep, workerStep } from "./worker-step.ts";

const pictures = path.resolve(import.meta.dirname, "../../src/web/pictures");

type Flags = { quick: boolean; seeds: number[] | null; speed: number | null };
type Bench = (flags: Flags) => Promise<{ result: Result; svg?: string }>;

const benches: Record<string, Bench> = {
  cost: ({ quick }) => cost(quick ? quickCost : fullCost),
  "essay-e2e": ({ quick, seeds, speed }) => {
    const options = quick ? quickEndToEnd : fullEndToEnd;
    return essayEndToEnd({ ...options, seeds: seeds ?? options.seeds, speed: speed ?? options.speed });
  },
  "essay-batching": ({ quick, seeds }) => {
    const options = quick ? quickBatching : fullBatching;
    return essayBatching({ ...options, seeds: seeds ?? options.seeds });
  },
  ingest: ({ quick }) => ingest(quick ? quickIngest : fullIngest),
  "pass-through": ({ quick }) => passThrough(quick ? quickPassThrough : fullPassThrough),
  "router-overhead": ({ quick }) => routerOverhead(quick ? quickRouterOverhead : fullRouterOverhead),
  scale: ({ quick }) => scale(quick ? quickScale : fullScale),
  "worker-step": ({ quick }) => workerStep(quick ? quickWorkerStep : fullWorkerStep),
};

const usage = `npm run bench -- NAME [--quick] [--json] [--picture]
  NAME         ${Object.keys(benches).join(", ")}
  --quick      a short run for development: the same figures, with more noise
  --json       one JSON object as the last line
  --picture    draws the run for the README, where the bench has a picture
  --seeds 1,2  other seeds than its own (essay-e2e, essay-batching)
  --speed 15   another scale of time (essay-e2e)`;

function refuse(problem: string): never {
  console.error(`${problem}\n${usage}`);
  process.exit(2);
}

function read() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: "boolean" },
        json: { type: "boolean" },
        picture: { type: "boolean" },
        seeds: { type: "string" },
        speed: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    return refuse(messageOf(error).split(". ")[0] ?? "");
  }
}

const { values, positionals } = read();
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const [name = ""] = positionals;
const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
if (bench === undefined) refuse(name === "" ? "Which benchmark?" : `There is no benchmark “${name}”.`);
const seeds = values.seeds === undefined ? null : values.seeds.split(",").map(Number);
if (seeds?.some((seed) => !Number.isInteger(seed))) refuse(`--seeds takes whole numbers, like 1,2, not “${values.seeds}”.`);
const speed = values.speed === undefined ? null : Number(values.speed);
if (speed !== null && !(speed > 0)) refuse(`--speed takes a number above 0, not “${values.speed}”.`);
// State in memory where the machine has such a folder: the disk of a shared machine is not what is measured.
const scratch = mkdtempSync(path.join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "switchyard-bench-"));
process.env.TMPDIR = scratch;
process.on("exit", () => rmSync(scratch, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

console.error("Building the Worker …");
await Promise.all([buildAssets(), bundleWorker()]);
console.error(`Measuring${values.quick ? ", a short run" : ""}: the figures come at the end …`);
const { result: done, svg } = await bench({ quick: values.quick ?? false, seeds, speed });
if (svg !== undefined && values.picture) {
  mkdirSync(pictures, { recursive: true });
  writeFileSync(path.join(pictures, `bench-${done.bench}.svg`), svg);
}
if (values.json) console.log(JSON.stringify(done));
else print(done);
process.exit(done.ok ? 0 : 1);
