// One task of the offline worker in a real folder: the planner is asked as a worker session asks a model, its commands really run.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type FileSpec, runFileCommand } from "../../daemon/files.ts";
import { markData, renderMessage } from "../../src/core/context.ts";
import { cut } from "../../src/core/worker-context.ts";
import { answerChat } from "../../src/llm/offline/planner.ts";
import type { WorkerItem } from "../../src/protocol/context-items.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Role } from "../../src/protocol/principal.ts";
import { workerTools } from "../../src/protocol/worker-tools.ts";

export type Call = { id: string; tool: string; input: Record<string, unknown> };
type Result = Extract<WorkerItem, { item: "result" }>;
type WireMessage = Record<string, unknown>;

/** A folder with these files; a text that begins with `#!` may be run. */
export function folderWith(files: Record<string, string>): string {
  const root = mkdtempSync(path.join(tmpdir(), "offline-"));
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(root, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: text.startsWith("#!") ? 0o755 : 0o644 });
  }
  return root;
}

export type TaskOptions = {
  goal?: string;
  machine?: null | { id: string; name: string; workspaces: string[] };
  /** Rows that came with the goal, or the tool result that refuses every machine tool. */
  rows?: WorkerItem[];
  refuse?: string;
  /** A result made by hand instead of running the shell command. */
  result?: (script: string) => Partial<Result> | null;
};

/** A worker session's transcript, step by step. */
export class OfflineTask {
  readonly messages: WireMessage[] = [{ role: "system", content: "You are a worker session." }];
  readonly reports: { kind: string; text: string; confidence?: number }[] = [];
  readonly scripts: string[] = [];
  readonly stopped: string[] = [];
  modelCalls = 0;
  readonly #root: string;
  readonly #options: TaskOptions;
  readonly #outputs = new Map<string, string>();
  #commands = 0;
  #seq = 2;

  constructor(root: string, asked: string, options: TaskOptions = {}) {
    this.#root = root;
    this.#options = options;
    const machine = options.machine === undefined ? { id: "ep_a", name: "studio", workspaces: ["main"] } : options.machine;
    this.#user([
      {
        item: "goal",
        task: "tsk_a",
        goal: options.goal ?? "Do what was asked.",
        asked: { from: { role: "member", name: "member" }, trigger: "trg_a-b", ...markData(asked) },
        machine,
        authority: "member",
        tainted: false,
        modelCalls: 15,
      },
      ...(options.rows ?? []),
    ]);
  }

  #user(items: WorkerItem[]): void {
    this.messages.push({ role: "user", content: renderMessage({ step: this.modelCalls + 1, of: 15 }, items) });
  }

  /** A later word in the task's thread. */
  say(text: string, role: Role = "member"): void {
    this.#user([{ item: "row", thread: "thr_a", seq: this.#seq++, kind: "message", from: { role, name: role }, ...markData(text) }]);
  }

  /** A word that ended what ran. */
  interrupt(text: string): void {
    const notice = "member interrupted you. The command that ran is being stopped. Do what the message says before anything else.";
    this.#user([
      { item: "row", thread: "thr_a", seq: this.#seq++, kind: "message", from: { role: "member", name: "member" }, ...markData(text) },
      { item: "notice", text: notice },
    ]);
  }

  /** One model call; its calls, with the commands not yet run. */
  ask(): Call[] {
    this.modelCalls += 1;
    const tools = Object.entries(workerTools).map(([name, { description }]) => ({ type: "function", function: { name, description } }));
    const reply = JSON.parse(answerChat(JSON.stringify({ model: "offline", messages: this.messages, tools }))) as {
      choices: [{ message: { content: string | null; tool_calls?: { id: string; function: { name: string; arguments: string } }[] } }];
    };
    const { message } = reply.choices[0];
    this.messages.push({ role: "assistant", ...message });
    return (message.tool_calls ?? []).map((call) => {
      const input = JSON.parse(call.function.arguments) as Record<string, unknown>;
      const parsed = workerTools[call.function.name as keyof typeof workerTools].input.safeParse(input);
      if (!parsed.success) throw new Error(`${call.function.name}: ${parsed.error.message}`);
      return { id: call.id, tool: call.function.name, input };
    });
  }

  #toolResult(call: Call, output: object): void {
    this.messages.push({ role: "tool", tool_call_id: call.id, content: JSON.stringify(output) });
  }

  /** Answers the calls as the session does; what was started comes back, to be ended by `settle`. */
  take(calls: readonly Call[]): { command: string; call: Call }[] {
    const started: { command: string; call: Call }[] = [];
    for (const call of calls) {
      if (call.tool === "report") {
        this.reports.push(call.input as { kind: string; text: string });
        this.#toolResult(call, { reported: `rep_a-${this.reports.length}` });
      } else if (call.tool === "wait") this.#toolResult(call, { waiting: true });
      else if (call.tool === "stop_command") {
        this.stopped.push(String(call.input.command));
        this.#toolResult(call, { stopping: call.input.command });
      } else if (call.tool === "read_output") {
        const bytes = Buffer.from(this.#outputs.get(String(call.input.command)) ?? "");
        const offset = Number(call.input.offset);
        this.#toolResult(call, {
          command: call.input.command,
          text: bytes.subarray(offset, offset + Number(call.input.limit)).toString(),
          offset,
        });
      } else if (this.#options.refuse) this.#toolResult(call, { refused: this.#options.refuse });
      else {
        const command = `cmd_a-${++this.#commands}`;
        this.#toolResult(call, { started: command });
        started.push({ command, call });
      }
    }
    return started;
  }

  /** Carries commands out and shows their results in one message. */
  async settle(started: readonly { command: string; call: Call }[], outcome: Partial<Result> = {}): Promise<void> {
    const items: WorkerItem[] = [];
    for (const { command, call } of started) items.push({ ...(await this.#run(command, call)), ...outcome });
    this.#user(items);
  }

  async #run(command: string, { tool, input }: Call): Promise<Result> {
    const base = { item: "result" as const, command, outcome: "exited", ms: 1 };
    const done = (output: string, exit: number, more: Partial<Result> = {}): Result => {
      this.#outputs.set(command, output);
      return { ...base, exit, bytes: Buffer.byteLength(output), output: cut(output, limits.inlineResultChars, command), ...more };
    };
    if (tool === "run_command") {
      const script = String(input.script);
      this.scripts.push(script);
      const made = this.#options.result?.(script);
      if (made)
        return done(made.output ?? "", made.exit ?? 0, { ...made, output: cut(made.output ?? "", limits.inlineResultChars, command) });
      const cwd = path.join(this.#root, typeof input.cwd === "string" ? input.cwd : ".");
      // Without our own marks of a test run: an inner `node --test` would report to the outer one.
      const { NODE_TEST_CONTEXT: _, VITEST: __, ...env } = process.env;
      // As the daemon does: the programs of this repository are not those of the project.
      const PATH = (env.PATH ?? "")
        .split(path.delimiter)
        .filter((folder) => !folder.endsWith("node_modules/.bin"))
        .join(path.delimiter);
      const run = spawnSync("sh", ["-c", `${script}`], { cwd, env: { ...env, PATH }, encoding: "utf8", timeout: 60_000 });
      return done(`${run.stdout}${run.stderr}`, run.status ?? 1);
    }
    try {
      const spec = { kind: tool, workspace: "main", ...input } as FileSpec;
      return done(await runFileCommand(this.#root, spec, AbortSignal.timeout(10_000)), 0);
    } catch (error) {
      return done("", 1, { reason: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Steps until a report that waits for people or ends the task. */
  async run(): Promise<{ kind: string; text: string; confidence?: number }> {
    for (let step = 0; step < 15; step++) {
      const before = this.reports.length;
      const calls = this.ask();
      if (calls.length === 0) throw new Error("The planner answered without a call.");
      const started = this.take(calls);
      const report = this.reports.at(-1);
      if (this.reports.length > before && report) return report;
      if (started.length > 0) await this.settle(started);
    }
    throw new Error("No report after 15 steps.");
  }
}
