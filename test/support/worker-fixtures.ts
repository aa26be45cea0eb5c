// A task, rows and replies for tests of the worker session's decisions.
import { childId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import type { CommandMaker } from "../../src/core/worker-calls.ts";
import type { ReplyFacts } from "../../src/core/worker-reply.ts";
import {
  type Change,
  type InboxItem,
  type InboxRow,
  inboxKey,
  newTask,
  type TaskState,
  type WorkerCommand,
} from "../../src/core/worker-state.ts";
import type { ModelReply } from "../../src/protocol/model.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { TaskStart } from "../../src/protocol/task.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";

export const member: Principal = { role: "member", id: "prs_m", name: "member" };
export const bot: Principal = { role: "bot", id: "ci", name: "ci" };
export const stranger: Principal = { role: "public", id: "x", name: "stranger" };
export const threadId = threadIdOf("github", "acme/app", "issue:12");
export const asked = triggerIdOf("github", "asked", threadId);

export const start: TaskStart = {
  taskId: "tsk_a",
  decisionId: "dec_a",
  title: "Fix it",
  goal: "Fix it.",
  quote: { triggerId: asked, from: member, text: "please fix it" },
  authority: "member",
  tainted: false,
  profile: "default",
  endpoint: { endpointId: "ep_a", name: "studio-laptop", workspaces: ["app"] },
  threadId,
  source: "github",
  place: "acme/app",
  maxModelCalls: 15,
  atMs: 0,
};

export const facts = { agentName: "Switchyard", model: "scripted", nowMs: 1000 };
export const fresh = (overrides: Partial<TaskState> = {}): TaskState => ({ ...newTask(start, [], 0), ...overrides });
/** After its first step, with nothing under way. */
export const between = (overrides: Partial<TaskState> = {}): TaskState => fresh({ steps: 1, ...overrides });
export const calling = (overrides: Partial<TaskState> = {}): TaskState =>
  fresh({ steps: 1, open: { kind: "calling", step: 1, attempts: 1, retryAtMs: null }, lease: { epoch: 1, untilMs: 0 }, ...overrides });

let seq = 0;
export const rowOf = (item: InboxItem): InboxRow => ({ seq: ++seq, key: inboxKey(item), item });
export const message = (
  text: string,
  from: Principal = member,
  id = triggerIdOf("github", text, threadId),
  more: Partial<Trigger> = {},
): InboxRow =>
  rowOf({
    kind: "row",
    threadId,
    alsoWith: [],
    row: {
      kind: "trigger",
      seq: seq + 1,
      atMs: 0,
      verdict: { outcome: "request", rule: "r", reason: "r" },
      trigger: {
        id,
        source: "github",
        deliveryId: text.slice(0, 100),
        threadId,
        place: "acme/app",
        threadKey: "issue:12",
        threadTitle: "t",
        kind: from.role === "bot" ? "check_run.completed" : "issue_comment.created",
        principal: from,
        addressed: true,
        text,
        atMs: 0,
        hops: 0,
        ...more,
      },
    },
  });
export const said = (text: string): InboxRow =>
  rowOf({
    kind: "row",
    threadId,
    alsoWith: [],
    row: {
      kind: "outbound",
      seq: seq + 1,
      atMs: 0,
      state: "sent",
      outbound: { id: childId("out", threadId, text), threadId, kind: "reply", text, hops: 0 },
    },
  });
export const command = (n: number, tool: WorkerCommand["tool"], more: Partial<WorkerCommand> = {}): WorkerCommand => ({
  commandId: `cmd_a-${n}`,
  endpointId: "ep_a",
  step: 1,
  callId: `call-${n}`,
  tool,
  what: tool,
  open: true,
  online: true,
  machine: "studio-laptop",
  ...more,
});
export const result = ({ commandId, tool }: WorkerCommand): InboxRow =>
  rowOf({
    kind: "result",
    tool,
    result: {
      commandId,
      outcome: "exited",
      exitCode: 0,
      outputBytes: 2,
      truncatedBytes: 0,
      startedMs: 0,
      endedMs: 1,
      taskId: "tsk_a",
      endpointId: "ep_a",
      output: { text: "ok", spilled: false },
    },
  });

export const commandFor: CommandMaker = (call, task, step, nowMs) => ({
  ok: true,
  command: {
    commandId: childId("cmd", "ep_a", task.taskId, step, call.callId),
    taskId: task.taskId,
    epoch: task.epoch,
    spec: { kind: "shell", workspace: "app", script: "true" },
    authority: task.authority,
    tainted: task.tainted,
    timeoutMs: 1,
    notAfterMs: nowMs,
    atMs: nowMs,
  },
});
export const replyFacts = (more: Partial<ReplyFacts> = {}): ReplyFacts => ({
  model: "scripted",
  ms: 5,
  nowMs: 1000,
  estimatedTokens: 1000,
  pending: [],
  backlog: [],
  profiles: [],
  open: [],
  commandOf: () => null,
  itemOf: () => null,
  ownsArtifact: () => false,
  allCommands: () => [],
  commandFor,
  ...more,
});
export const reply = (...calls: [tool: string, input: unknown][]): ModelReply => ({
  text: "",
  calls: calls.map(([tool, input], i) => ({ callId: `c${i}`, tool, input })),
  usage: null,
  finish: "tools",
});
export const outputs = (change: Change): string[] => change.messages.flatMap((one) => (one.role === "tool" ? [one.output] : []));
export const texts = (change: Change): string => change.messages.map((one) => (one.role === "user" ? one.text : "")).join("\n");
