import { expect, test } from "vitest";
import type { MachineTask } from "../../src/core/worker-calls.ts";
import { limits } from "../../src/protocol/limits.ts";
import { isMachineTool, type MachineCall, machineTools, workerTools } from "../../src/protocol/worker-tools.ts";
import { commandFor } from "../../src/tools/on-endpoint.ts";

const now = 1_000;
const task: MachineTask = {
  taskId: "tsk_a",
  epoch: 3,
  authority: "member",
  tainted: false,
  endpoint: { endpointId: "ep_a", name: "laptop", workspaces: ["app", "docs"] },
};
const run = (input: Partial<Extract<MachineCall, { tool: "run_command" }>["input"]> = {}): MachineCall => ({
  callId: "call_1",
  tool: "run_command",
  input: { script: "npm test", ...input },
});
const made = (call: MachineCall, changes: Partial<MachineTask> = {}, step = 1) => commandFor(call, { ...task, ...changes }, step, now);
const commandOf = (call: MachineCall, changes: Partial<MachineTask> = {}) => {
  const result = made(call, changes);
  if (!result.ok) throw new Error(result.reason);
  return result.command;
};

test("a command names the task, its epoch and authority, runs in the first workspace, and waits for its machine as long as the limit says", () => {
  expect(made(run())).toEqual({
    ok: true,
    command: {
      commandId: expect.stringMatching(/^cmd_a-[a-z2-7]{10}$/),
      taskId: "tsk_a",
      epoch: 3,
      spec: { kind: "shell", workspace: "app", script: "npm test" },
      authority: "member",
      tainted: false,
      timeoutMs: limits.commandTimeoutMs,
      notAfterMs: now + limits.commandNotAfterMs,
      atMs: now,
    },
  });
});

test("a repeated step makes the same command, another step or call another one", () => {
  const id = commandOf(run()).commandId;
  expect(commandOf(run()).commandId).toBe(id);
  expect(commandOf({ ...run(), callId: "call_2" }).commandId).not.toBe(id);
  const later = made(run(), {}, 2);
  expect(later.ok && later.command.commandId).not.toBe(id);
});

test("timeouts are clamped by the limits", () => {
  expect(commandOf(run({ timeoutSeconds: 30 })).timeoutMs).toBe(30_000);
  expect(commandOf(run({ timeoutSeconds: 1e9 })).timeoutMs).toBe(limits.maxCommandTimeoutMs);
  expect(commandOf(run({ timeoutSeconds: 0.001 })).timeoutMs).toBe(1000);
});

test("every machine tool becomes a command of its own kind, and no other tool does", () => {
  const inputs: Record<(typeof machineTools)[number], object> = {
    run_command: { script: "ls", cwd: "src" },
    push: { cwd: "src" },
    read_file: { path: "a", offset: 1, limit: 2 },
    write_file: { path: "a", content: "b" },
    edit_file: { path: "a", old: "b", new: "c", all: true },
    list_files: { depth: 2 },
    search_files: { query: "x", glob: "*.ts" },
  };
  for (const tool of machineTools) {
    const call = { callId: "c", tool, input: { ...inputs[tool], workspace: "docs" } } as MachineCall;
    const { spec } = commandOf(call);
    const { script, ...rest } = inputs[tool] as { script?: string };
    expect(spec).toEqual(
      tool === "run_command"
        ? { kind: "shell", workspace: "docs", script, ...rest }
        : { kind: tool, workspace: "docs", ...rest, ...(tool === "push" ? { branch: `switchyard/${task.taskId}` } : {}) },
    );
  }
  expect(
    Object.keys(workerTools)
      .filter((tool) => isMachineTool(tool))
      .sort(),
  ).toEqual([...machineTools].sort());
});

test("[SP8] a push is only a keep while its task may push nothing, and of what was released it is that commit to that place", () => {
  const push = { callId: "c", tool: "push", input: { cwd: "src", workspace: "docs" } } as MachineCall;
  const at = { workspace: "docs", branch: `switchyard/${task.taskId}`, cwd: "src" };
  const only = { sha: "a".repeat(40), place: "acme/app" };
  expect(commandOf(push, { keeps: true }).spec).toEqual({ kind: "keep", ...at });
  expect(commandOf(push, { only }).spec).toEqual({ kind: "push_kept", ...at, ...only });
  expect(commandOf(push, { keeps: true, only }).spec.kind).toBe("push_kept");
});

test.each([
  [
    "there is no machine",
    run(),
    { endpoint: null },
    "No machine is enrolled for this task. Ask for one to be enrolled in the console, then try again.",
  ],
  ["the workspace is unknown", run({ workspace: "secrets" }), {}, 'There is no workspace "secrets" on laptop; it has: app, docs.'],
  [
    "the machine granted no folder",
    run(),
    { endpoint: { endpointId: "ep_a", name: "laptop", workspaces: [] } },
    "laptop has granted no folder. Its owner grants one on the machine itself.",
  ],
  ["the task is tainted", run(), { tainted: true }, expect.stringContaining("outside the team")],
  ["the task is a guest's", run(), { authority: "guest" as const }, expect.stringContaining("member of the team")],
  [
    "a file is too large",
    { callId: "c", tool: "write_file", input: { path: "a", content: "x".repeat(limits.maxFileBytes + 1) } } satisfies MachineCall,
    {},
    expect.stringMatching(/^content: /),
  ],
])("it is refused with a reason when %s", (_, call, changes, reason) => {
  expect(made(call, changes)).toEqual({ ok: false, reason });
});
