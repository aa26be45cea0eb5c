// Triggers, reports and tasks for the router's tests.
import { webAudience } from "../../src/core/audience.ts";
import { childId, makeId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import { type KnownMachine, type KnownTask, laneOfTrigger, type QueuedTrigger } from "../../src/core/router.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { Report } from "../../src/protocol/task.ts";
import type { Outcome, Trigger } from "../../src/protocol/trigger.ts";

export { queuedReport } from "../../src/core/router-reports.ts";

export const member: Principal = { role: "member", id: "prs_member", name: "member" };
export const owner: Principal = { role: "owner", id: "prs_owner", name: "owner" };
export const guest: Principal = { role: "guest", id: "guest-1", name: "guest" };

export type TriggerParts = {
  name: string;
  by: Principal;
  /** Issue of this name; without it the root of `by`. */
  thread?: string;
  /** A pull request of it instead. */
  pull?: boolean;
  text?: string;
  outcome?: Extract<Outcome, "candidate" | "request">;
  /** False: said to somebody else. */
  addressed?: boolean;
};

export function triggerOf({ name, by, thread, pull = false, text, addressed = true }: TriggerParts): Trigger {
  const source = thread === undefined ? "web" : "github";
  const place = thread === undefined ? "widget" : "acme/app";
  const threadKey = thread === undefined ? `root:${by.id}` : `${pull ? "pull" : "issue"}:${thread}`;
  const threadId = threadIdOf(source, place, threadKey);
  return {
    id: triggerIdOf(source, name, threadId),
    source,
    deliveryId: name,
    threadId,
    place,
    threadKey,
    ...(pull ? { threadUrl: `https://github.com/acme/app/pull/${thread}` } : {}),
    threadTitle: thread === undefined ? by.name : `title of ${thread}`,
    kind: thread === undefined ? "message" : "issue_comment.created",
    principal: by,
    addressed,
    text: text ?? `text of ${name}`,
    atMs: 1,
    hops: 0,
  };
}

export function queuedTrigger(parts: TriggerParts, seq = 1): QueuedTrigger {
  const trigger = triggerOf(parts);
  return {
    kind: "trigger",
    id: trigger.id,
    lane: laneOfTrigger(trigger),
    threadId: trigger.threadId,
    seq,
    attempts: 0,
    tries: 0,
    problem: null,
    trigger,
    verdict: { outcome: parts.outcome ?? "request", rule: "r", reason: "asked" },
    before: [],
    tasks: [],
  };
}

export function taskOf(name: string, parts: Partial<KnownTask> = {}): KnownTask {
  const threadId = parts.threadId ?? threadIdOf("web", "widget", `topic:${name}`);
  return {
    id: makeId("tsk", name),
    title: `task ${name}`,
    threadId,
    threads: [threadId],
    decisionId: makeId("dec", name),
    authority: "member",
    tainted: false,
    status: "running",
    line: "",
    machine: null,
    source: "web",
    place: "widget",
    audience: parts.source === "github" ? "github acme/app" : webAudience(member.id),
    hops: 0,
    startedMs: 1,
    updatedMs: 1,
    endedMs: null,
    ...parts,
  };
}

export function reportOf(parts: Partial<Report> & { task?: KnownTask } = {}): Report {
  const { task = taskOf("reported"), ...rest } = parts;
  return {
    id: childId("rep", task.id, rest.kind ?? "done", rest.text ?? ""),
    taskId: task.id,
    kind: "done",
    title: task.title,
    text: "Two tests fail.",
    threadId: task.threadId,
    authority: task.authority,
    tainted: task.tainted,
    status: "done",
    atMs: 10,
    ...rest,
  };
}

export const machineOf = (name: string, parts: Partial<KnownMachine> = {}): KnownMachine => ({
  id: makeId("ep", name),
  name,
  online: true,
  workspaces: ["app"],
  revoked: false,
  revision: 1,
  seenMs: 1,
  ...parts,
});
