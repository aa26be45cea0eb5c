// A worker's call of a machine tool as a command for a machine, or the reason why it cannot be one. Touches nothing.
import { refuseCommand } from "../core/authority.ts";
import { branchOf } from "../core/branch.ts";
import { childId } from "../core/ids.ts";
import type { CommandMaker, MachineTask } from "../core/worker-calls.ts";
import { type Command, commandSpec } from "../protocol/command.ts";
import { firstIssue } from "../protocol/issue.ts";
import { limits } from "../protocol/limits.ts";
import type { TaskStart } from "../protocol/task.ts";
import type { MachineCall } from "../protocol/worker-tools.ts";

/** The command of a call. Its id is a hash of where it was asked, so that a repeated step makes no second command. */
export const commandFor: CommandMaker = (call, task, step, nowMs) => {
  const refused = refuseCommand(task);
  if (refused !== null) return no(refused);
  const { endpoint } = task;
  if (!endpoint) return no("No machine is enrolled for this task. Ask for one to be enrolled in the console, then try again.");
  const workspace = workspaceOf(call.input.workspace, endpoint);
  if (!workspace.ok) return workspace;
  const spec = commandSpec.safeParse(specOf(call, workspace.name, task));
  if (!spec.success) return no(firstIssue(spec.error, "input"));
  const { taskId, epoch, authority, tainted } = task;
  const command: Command = {
    commandId: childId("cmd", endpoint.endpointId, taskId, step, call.callId),
    taskId,
    epoch,
    spec: spec.data,
    authority,
    tainted,
    timeoutMs: timeoutMsOf(call),
    notAfterMs: nowMs + limits.commandNotAfterMs,
    atMs: nowMs,
  };
  return { ok: true, command };
};

const no = (reason: string): { ok: false; reason: string } => ({ ok: false, reason });

function workspaceOf(
  asked: string | undefined,
  endpoint: NonNullable<TaskStart["endpoint"]>,
): { ok: true; name: string } | { ok: false; reason: string } {
  const { name, workspaces } = endpoint;
  const first = workspaces[0];
  if (first === undefined) return no(`${name} has granted no folder. Its owner grants one on the machine itself.`);
  if (asked === undefined) return { ok: true, name: first };
  if (workspaces.includes(asked)) return { ok: true, name: asked };
  return no(`There is no workspace "${asked}" on ${name}; it has: ${workspaces.join(", ")}.`);
}

function timeoutMsOf(call: MachineCall): number {
  if (call.tool !== "run_command" || call.input.timeoutSeconds === undefined) return limits.commandTimeoutMs;
  return Math.min(limits.maxCommandTimeoutMs, Math.max(1000, Math.round(call.input.timeoutSeconds * 1000)));
}

/** Unchecked: the command's own schema decides whether it fits. */
function specOf(call: MachineCall, workspace: string, { taskId, keeps, only }: MachineTask): unknown {
  switch (call.tool) {
    case "run_command": {
      const { script, cwd } = call.input;
      return { kind: "shell", workspace, script, ...(cwd === undefined ? {} : { cwd }) };
    }
    case "push": {
      const kind = only !== undefined ? "push_kept" : keeps ? "keep" : "push";
      // Whatever the call says, the branch is the task's own; the daemon looks again.
      return { kind, workspace, branch: branchOf(taskId), ...(call.input.cwd === undefined ? {} : { cwd: call.input.cwd }), ...only };
    }
    case "read_file":
    case "write_file":
    case "edit_file":
    case "list_files":
    case "search_files":
      return { ...call.input, kind: call.tool, workspace };
  }
}
