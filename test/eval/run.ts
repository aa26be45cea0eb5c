// `npm run eval`: the labelled messages through the doors of the built Worker, with whichever model is configured, and what became of them.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type Env, readConfig } from "../../src/env.ts";
import { buildAssets } from "../../src/local/build.ts";
import { devVars } from "../../src/local/settings.ts";
import { bundleWorker } from "../../src/local/worker.ts";
import { messageOf } from "../../src/protocol/fault.ts";
import { EvalDeployment } from "./lib/deployment.ts";
import { type Figures, figuresOf, maxFalseProactive, report } from "./lib/figures.ts";
import { heldOut, type Labelled, readSet, type SetName, setNames } from "./lib/labelled.ts";
import type { Outcome } from "./lib/outcome.ts";
import { play } from "./lib/play.ts";

const usage = `npm run eval -- [options]
  --set NAME       unseen, fresh, known or all (default)
  --limit N        only the first N messages of each set
  --only ID,ID     only these messages
  --block N        messages that share one deployment, and so one router; default 20
  --parallel N     deployments at once, 1 to 4; default 2
  --rules FILE     the gate's rules, as the console's API gives them; default: what ships
  --policies FILE  policies, as the console's API gives them; default: none
  --price IN/OUT   what a million tokens read and written cost; default: MODEL_PRICE
  --estimate       only say what the run would cost
  --json           one JSON object as the last line
The model is the one of .dev.vars or of the environment (MODEL_PROVIDER …), else the offline one. The exit code is not zero when
the false proactive share of a held-out set (${heldOut.join(", ")}) is more than ${maxFalseProactive * 100} %, or when a message was not decided.`;

const stop = (message: string): never => {
  console.error(message);
  process.exit(2);
};

function readOptions() {
  try {
    return parseArgs({
      options: {
        set: { type: "string", default: "all" },
        limit: { type: "string" },
        only: { type: "string" },
        block: { type: "string", default: "20" },
        parallel: { type: "string", default: "2" },
        rules: { type: "string" },
        policies: { type: "string" },
        price: { type: "string" },
        estimate: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values;
  } catch (error) {
    return stop(`${messageOf(error).split("\n")[0]}\n${usage}`);
  }
}

const options = readOptions();
if (options.help) {
  console.log(usage);
  process.exit(0);
}
const countOf = (name: "limit" | "block" | "parallel", most: number): number => {
  const value = Number(options[name] ?? most);
  return Number.isInteger(value) && value >= 1 && value <= most ? value : stop(`--${name} takes a number from 1 to ${most}.\n${usage}`);
};
const [limit, block, parallel] = [countOf("limit", 10_000), countOf("block", 1_000), countOf("parallel", 4)];
const names: readonly SetName[] = options.set === "all" ? setNames : setNames.filter((name) => name === options.set);
if (names.length === 0) stop(`There is no set “${options.set}”.\n${usage}`);
const settings = { ...devVars(), ...process.env };
const asked = options.price ?? settings.MODEL_PRICE;
const [priceIn = Number.NaN, priceOut = Number.NaN] = (asked ?? "").split("/").map(Number);
const price = asked === undefined || asked === "" ? null : { in: priceIn, out: priceOut };
if (price !== null && !(price.in >= 0 && price.out >= 0))
  stop(`A price is two numbers, for what is read and what is written: 3/15\n${usage}`);

/** The lists that the console's API gives, or the lists alone. */
function listIn(file: string | undefined, within: (value: Record<string, unknown>) => unknown): object[] | null {
  if (file === undefined) return null;
  const value = JSON.parse(readFileSync(file, "utf8")) as unknown;
  const list = Array.isArray(value) ? value : within(value as Record<string, unknown>);
  return Array.isArray(list) ? (list as object[]) : stop(`${file} holds no list.`);
}
const rules = listIn(options.rules, (value) => (value.inForce as { rules?: unknown } | undefined)?.rules ?? value.rules);
const policies = listIn(options.policies, (value) => value.policies);

const model = Object.fromEntries(
  Object.entries(settings).filter(
    (entry): entry is [string, string] => /^(?:ROUTER_)?MODEL_|^AGENT_NAME$|^TIME_ZONE$/.test(entry[0]) && !!entry[1],
  ),
);
const configured = readConfig(model as unknown as Env).model.router;
if (configured.problem !== null) stop(configured.problem);
const hosted = configured.provider !== "offline";

const only = options.only?.split(",");
const sets = new Map(
  names.map((name): [SetName, Labelled[]] => [
    name,
    readSet(name)
      .filter(({ id }) => only?.includes(id) ?? true)
      .slice(0, limit),
  ]),
);
const lines = [...sets.values()].flat();
if (lines.length === 0) stop("There is no such message.");

/** A request's fixed part, and what each message leaves in the transcript of its block: measured on the offline model. */
const [prefixTokens, perLineTokens, answerTokens] = [4_500, 450, 120];
const read = lines.length * (prefixTokens + (perLineTokens * Math.min(block, lines.length)) / 2);
const money = (input: number, output: number): string =>
  price === null
    ? ""
    : `, ${((input * price.in + output * price.out) / 1e6).toFixed(2)} at the price given (without the discount for cached tokens)`;
console.error(
  `${lines.length} messages, ${configured.provider} ${configured.modelName}${hosted ? `: about ${Math.round(read / 1_000)} k tokens read and ${Math.round((lines.length * answerTokens) / 1_000)} k written${money(read, lines.length * answerTokens)}` : ""}`,
);
if (options.estimate) process.exit(0);

await Promise.all([buildAssets(), bundleWorker()]);
const blocks = Array.from({ length: Math.ceil(lines.length / block) }, (_, i) => lines.slice(i * block, (i + 1) * block));
const outcomes = new Map<string, Outcome>();
const startedMs = Date.now();
const isTerminal = process.stderr.isTTY;

function progress(): void {
  const done = outcomes.size;
  if (!isTerminal && done % 20 !== 0 && done !== lines.length) return;
  const line = `${done} of ${lines.length} messages, ${Math.round((Date.now() - startedMs) / 1_000)} s`;
  process.stderr.write(isTerminal ? `\r${line}${done === lines.length ? "\n" : ""}` : `${line}\n`);
}

async function playBlock(messages: readonly Labelled[]): Promise<void> {
  const deployment = await EvalDeployment.start(model);
  try {
    await deployment.prepare({ rules, policies });
    for (const message of messages) {
      outcomes.set(message.id, await play(deployment, message, hosted ? 180_000 : 30_000));
      progress();
    }
  } finally {
    await deployment.stop();
  }
}

await Promise.all(
  Array.from({ length: parallel }, async () => {
    for (let next = blocks.shift(); next !== undefined; next = blocks.shift()) await playBlock(next);
  }),
);
finish();

function finish(): void {
  const result: Record<string, Figures> = {};
  for (const [name, messages] of sets) {
    const played = messages.flatMap(({ id }) => outcomes.get(id) ?? []);
    result[name] = figuresOf(played);
    if (!options.json) console.log(report(name, result[name], played));
  }
  const all = Object.values(result);
  const input = all.reduce((sum, { tokens }) => sum + tokens.input, 0);
  const output = all.reduce((sum, { tokens }) => sum + tokens.output, 0);
  if (!options.json && hosted) console.log(`\n${input} tokens read, ${output} written${money(input, output)}`);
  const isQuiet = heldOut.every((name) => (result[name]?.falseProactive.share ?? 0) <= maxFalseProactive);
  const ok = isQuiet && all.every(({ undecided }) => undecided === 0);
  if (options.json) {
    const of = { provider: configured.provider, model: configured.modelName };
    const each = [...outcomes.values()].map(({ line, what: _, ...rest }) => ({ id: line.id, expected: line.expected, ...rest }));
    console.log(JSON.stringify({ ...of, ok, sets: result, messages: each }));
  }
  process.exit(ok ? 0 : 1);
}
