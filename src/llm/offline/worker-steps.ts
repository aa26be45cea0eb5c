// What all jobs of the offline worker share: calls and their results, runs, listings.
import { recordIn } from "../../core/json.ts";
import { literal } from "../../core/regexp.ts";
import { blocked, type JobAnswer, type Run, unusualEnd } from "./report-text.ts";
import { cutMark, plainLines, readResults } from "./results.ts";
import type { Done, Job, WorkerState } from "./worker-state.ts";

export type Call = { tool: string; input: Record<string, unknown> };
export type Step = { calls: Call[] } | { wait: string } | { answer: JobAnswer } | { ask: string };

const same = (call: Call, other: Done): boolean => call.tool === other.tool && JSON.stringify(call.input) === JSON.stringify(other.input);

/** Results of all wanted calls, or the step that gets them. `pool` are the calls that count. */
export function ensure(wanted: readonly Call[], pool: readonly Done[]): { step: Step } | { results: Done[] } {
  const found = wanted.map((call) => pool.findLast((other) => same(call, other)));
  const missing = wanted.filter((_, i) => found[i] === undefined);
  if (missing.length > 0) return { step: { calls: missing } };
  const results = found.filter((each) => each !== undefined);
  const refused = results.find((each) => each.refused !== undefined);
  if (refused) return { step: { answer: refusedAnswer(refused.refused ?? "") } };
  const open = results.find((each) => each.result === undefined);
  return open ? { step: { wait: `for ${open.tool === "run_command" ? "the command" : "the files"}` } } : { results };
}

const refusedAnswer = (reason: string): JobAnswer => blocked(`I could not do this: ${reason}`);

/** Why the machine did not even look; null when it did. */
export const notRead = (one: Done): JobAnswer | null =>
  one.result && one.result.outcome !== "exited"
    ? unusualEnd({ script: one.tool.replace("_", " "), result: one.result, output: one.result.output, notes: [] })
    : null;

export const ok = (one: Done): boolean => one.result?.outcome === "exited" && (one.result.exit ?? 0) === 0;

/** A machine may have several workspaces; the one that the words name, else the first. */
export function workspaceOf(state: WorkerState): { workspace?: string } {
  const { machine, asked } = state.goal;
  if (machine === null || machine.workspaces.length < 2) return {};
  const text = asked.text.toLowerCase();
  const named = machine.workspaces.find((name) => new RegExp(`(?<![\\w-])${literal(name.toLowerCase())}(?![\\w-])`).test(text));
  return named ? { workspace: named } : {};
}

export type Planned = { script: string; cwd?: string; from: string; notes?: string[] };

/** Runs commands of this job and reads what they say; a long test output is read on where names are missing. */
export function runStep(job: Job, state: WorkerState, plans: readonly Planned[], read: (run: Run, machine: string) => JobAnswer): Step {
  const workspace = workspaceOf(state);
  const calls = plans.map(({ script, cwd }) => ({ tool: "run_command", input: { script, ...workspace, ...(cwd ? { cwd } : {}) } }));
  const got = ensure(calls, job.done);
  if ("step" in got) return got.step;
  const more = got.results.flatMap((one) => missingOutput(one).calls);
  const wanted = more.filter((call) => !job.done.some((other) => same(call, other)));
  if (wanted.length > 0) return { calls: wanted };
  const machine = state.goal.machine?.name ?? "the machine";
  const answers = got.results.flatMap((one, i) => {
    const plan = plans[i];
    if (plan === undefined || one.result === undefined) return [];
    return [
      read(
        {
          script: plan.script,
          ...(plan.cwd ? { cwd: plan.cwd } : {}),
          result: one.result,
          output: wholeOutput(one, job.done),
          notes: plan.notes ?? [],
        },
        machine,
      ),
    ];
  });
  return { answer: joined(answers) };
}

const rank = { done: 0, failed: 1, blocked: 2 } as const;

/** Several answers as one: the worst outcome and the lowest confidence of them. */
export function joined(answers: readonly JobAnswer[]): JobAnswer {
  return answers.reduce(
    (all, one) => ({
      outcome: rank[one.outcome] > rank[all.outcome] ? one.outcome : all.outcome,
      confidence: Math.min(all.confidence, one.confidence),
      text: all.text === "" ? one.text : `${all.text}\n\n${one.text}`,
    }),
    { outcome: "done", confidence: 1, text: "" },
  );
}

const chunkBytes = 8_000;
const maxChunks = 3;
const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** Calls that read what is cut out of an output, its end first; `whole` when they get all of it. */
function missingOutput(one: Done): { calls: Call[]; whole: boolean } {
  const none = { calls: [], whole: true };
  const { result, command } = one;
  const [head, tail] = result?.output.split(cutMark) ?? [];
  if (!result || !command || result.exit === 0 || head === undefined || tail === undefined) return none;
  // The middle matters only when more tests failed than the shown part names.
  const seen = readResults(result.output, result.exit);
  const allNamed = seen.failedCount > 0 && seen.failed.length >= Math.min(10, seen.failedCount);
  if (!seen.partial && seen.runner !== null && allNamed) return none;
  const from = bytesOf(head);
  const until = result.bytes - bytesOf(tail);
  const start = Math.max(from, until - maxChunks * chunkBytes);
  const calls: Call[] = [];
  for (let offset = start; offset < until; offset += chunkBytes)
    calls.push({ tool: "read_output", input: { command, offset, limit: Math.min(chunkBytes, until - offset) } });
  return { calls, whole: start === from };
}

/** The output with what was read on in its place. What stays out stays marked: counts of what is shown are then not all. */
function wholeOutput(one: Done, pool: readonly Done[]): string {
  const output = one.result?.output ?? "";
  const { calls, whole } = missingOutput(one);
  const chunks = calls.flatMap((call) => {
    const text = recordIn(pool.findLast((other) => same(call, other))?.output ?? "")?.text;
    return typeof text === "string" ? [text] : [];
  });
  if (chunks.length === 0) return output;
  const [head = "", tail = ""] = output.split(cutMark);
  const gap = whole && chunks.length === calls.length ? "" : (cutMark.exec(output)?.[0] ?? "");
  return `${head}${gap}${chunks.join("")}${tail}`;
}

const project = new Set(["node_modules", "vendor", "target", "dist", "build", "out", "coverage", "__pycache__", "venv", "env", "Pods"]);
const isHidden = (path: string): boolean =>
  path.split("/").some((part, i, all) => project.has(part) || (part.startsWith(".") && i < all.length - 1));

export const listCalls = (state: WorkerState): Call[] => {
  const workspace = workspaceOf(state);
  // Two lists: the upper level is never cut short by what lies below it.
  return [1, 3].map((depth) => ({ tool: "list_files", input: { ...workspace, depth } }));
};

/** Paths of a listing; folders end in a slash. */
export function pathsOf(listings: readonly Done[]): string[] {
  const paths = listings.flatMap((one) =>
    plainLines(one.result?.output ?? "").flatMap((line) => {
      if (line === "" || line === "(empty)" || line.startsWith("[")) return [];
      return [
        line
          .replace(/ \(not listed\)$/, "")
          .replace(/ -> .*$/, "")
          .replace(/^\.\//, ""),
      ];
    }),
  );
  return [...new Set(paths)].filter((path) => !isHidden(path));
}

const readLines = 400;
export const readCall = (path: string, state: WorkerState): Call => ({
  tool: "read_file",
  input: { path, ...workspaceOf(state), limit: readLines },
});
