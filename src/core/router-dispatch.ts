// A dispatch as effects: the thread flips (or a topic opens under a root), the worker starts, people hear that it does.
import { limits } from "../protocol/limits.ts";
import type { Authority } from "../protocol/principal.ts";
import { defaultProfile, type Profile } from "../protocol/profile.ts";
import type { TaskStart } from "../protocol/task.ts";
import { audienceOf } from "./audience.ts";
import { taints } from "./authority.ts";
import { excerpt } from "./context.ts";
import { makeId, threadIdOf, triggerIdOf } from "./ids.ts";
import type { InboxItem, KnownMachine, KnownTask, QueuedTrigger } from "./router.ts";
import { type PlannedDecision, postEffect, type RouterEffect, stripMarkers } from "./router-plan.ts";

type DispatchInput = {
  title: string;
  goal: string;
  machine?: string | undefined;
  profile?: string | undefined;
  deadlineMinutes?: number | undefined;
  acknowledge?: string | undefined;
};

const isRoot = (item: QueuedTrigger): boolean => item.trigger.threadKey.startsWith("root:");

/** [RD6] The machine that the model named, else one that is online, else the one seen last; null when none is enrolled. */
export function chooseMachine(machines: readonly KnownMachine[], named: string | undefined): KnownMachine | null | { problem: string } {
  const known = machines.filter((machine) => !machine.revoked);
  if (named !== undefined && named.trim() !== "") {
    const wanted = named.trim().toLowerCase();
    const match = known.find((machine) => machine.id === wanted || machine.name.toLowerCase() === wanted);
    if (match) return match;
    const names = known.map((machine) => machine.name).join(", ");
    return {
      problem: names === "" ? "No machine is enrolled; leave `machine` out." : `There is no machine of that name; there are ${names}.`,
    };
  }
  const online = known.filter((machine) => machine.online);
  return online[0] ?? [...known].sort((a, b) => b.seenMs - a.seenMs)[0] ?? null;
}

/** [WP2] The profile that the model named, or a sentence for it when there is none of that name. */
function chooseProfile(profiles: readonly Pick<Profile, "name">[], named: string | undefined): { name: string } | { problem: string } {
  const name = named?.trim().toLowerCase() || defaultProfile;
  if (profiles.some((each) => each.name === name)) return { name };
  return { problem: `There is no profile "${excerpt(name, 40)}"; there are ${profiles.map((each) => each.name).join(", ")}.` };
}

/** The decision with everything that starts the task. Its authority has been checked. */
export function planDispatch(
  view: { nowMs: number; machines: readonly KnownMachine[]; profiles?: readonly Pick<Profile, "name">[] },
  input: DispatchInput,
  settled: readonly InboxItem[],
  decision: PlannedDecision,
): { decision: PlannedDecision; result: object } | { refused: string } {
  const triggers = settled.filter((item): item is QueuedTrigger => item.kind === "trigger");
  // The earliest of its thread: what follows it there reaches the worker by itself.
  const first = triggers.filter((item) => item.threadId === triggers[0]?.threadId).sort((a, b) => a.seq - b.seq)[0];
  if (first === undefined) return { refused: "Work starts from what a person asked: settle that trigger, not only a report." };
  const machine = chooseMachine(view.machines, input.machine);
  if (machine !== null && "problem" in machine) return { refused: machine.problem };
  const profile = chooseProfile(view.profiles ?? [{ name: defaultProfile }], input.profile);
  if ("problem" in profile) return { refused: profile.problem };
  const title = excerpt(stripMarkers(input.title).replace(/\s+/g, " "), 120);
  const goal = stripMarkers(input.goal);
  if (title === "" || goal === "") return { refused: "A dispatch needs a title and a goal in words." };

  const taskId = makeId("tsk", decision.id);
  const { trigger } = first;
  const threadId = isRoot(first) ? threadIdOf(trigger.source, trigger.place, `topic:${taskId}`) : first.threadId;
  const tainted =
    triggers.some((item) => taints(item.trigger.principal)) || settled.some((item) => item.kind === "report" && item.report.tainted);
  const hops = Math.max(...triggers.map((item) => item.trigger.hops));
  const start: TaskStart = {
    taskId,
    decisionId: decision.id,
    title,
    goal,
    quote: {
      // In a topic the asking row has an id of its own.
      triggerId: isRoot(first) ? triggerIdOf(trigger.source, trigger.deliveryId, threadId) : trigger.id,
      from: trigger.principal,
      text: trigger.text,
    },
    authority: decision.authority,
    tainted,
    profile: profile.name,
    endpoint: machine === null ? null : { endpointId: machine.id, name: machine.name, workspaces: machine.workspaces },
    threadId,
    source: trigger.source,
    place: trigger.place,
    maxModelCalls: limits.maxModelCallsPerTask,
    ...(input.deadlineMinutes === undefined ? {} : { deadlineMs: view.nowMs + Math.round(input.deadlineMinutes * 60_000) }),
    atMs: view.nowMs,
  };
  const others = otherThreads(triggers, first);
  const acknowledge = stripMarkers(input.acknowledge ?? "");
  const effects: RouterEffect[] = [
    ...opening(first, threadId, taskId, title, decision.id),
    ...others.map((item): RouterEffect => subscribeTo(item, taskId, decision.id)),
    { kind: "start", taskId, input: start },
    ...rootRest(triggers, first, taskId, decision.authority),
    ...(acknowledge === ""
      ? []
      : [
          postEffect(decision.id, { threadId, source: trigger.source, hops }, "reply", acknowledge, {
            triggerId: trigger.id,
            taskId,
            part: "acknowledge",
          }),
        ]),
  ];
  const newTask: KnownTask = {
    id: taskId,
    title,
    threadId,
    threads: [threadId, ...others.map((item) => item.threadId)],
    decisionId: decision.id,
    authority: decision.authority,
    tainted,
    status: "queued",
    line: "",
    machine: machine?.name ?? null,
    source: trigger.source,
    place: trigger.place,
    audience: audienceOf(trigger),
    hops,
    startedMs: view.nowMs,
    updatedMs: view.nowMs,
    endedMs: null,
  };
  return { decision: { ...decision, taskId, threadId, effects, newTask }, result: { started: taskId, thread: threadId } };
}

function opening(first: QueuedTrigger, threadId: string, taskId: string, title: string, decisionId: string): RouterEffect[] {
  if (!isRoot(first)) return [subscribeTo(first, taskId, decisionId)];
  const { trigger, verdict } = first;
  return [
    // The root first: a topic mirrors its rows into a root that knows it.
    { kind: "attach_topic", threadId: first.threadId, input: { topicThreadId: threadId, taskId, title, triggerId: trigger.id } },
    { kind: "open_topic", threadId, input: { rootThreadId: first.threadId, title, taskId, decisionId, trigger, verdict } },
  ];
}

const subscribeTo = (item: QueuedTrigger, taskId: string, decisionId: string): RouterEffect => ({
  kind: "subscribe",
  threadId: item.threadId,
  input: { taskId, decisionId, triggerId: item.id },
});

/** Further threads that pass through, each from the first of its triggers that is settled. A root never flips. */
function otherThreads(triggers: readonly QueuedTrigger[], first: QueuedTrigger): QueuedTrigger[] {
  const byThread = new Map<string, QueuedTrigger>();
  for (const item of triggers) {
    if (isRoot(item) || item.threadId === first.threadId) continue;
    const known = byThread.get(item.threadId);
    if (known === undefined || item.seq < known.seq) byThread.set(item.threadId, item);
  }
  return [...byThread.values()];
}

/** Further triggers of a root stay in the root, so their words are handed over. */
const rootRest = (triggers: readonly QueuedTrigger[], first: QueuedTrigger, taskId: string, authority: Authority): RouterEffect[] =>
  triggers
    .filter((item) => item !== first && isRoot(item))
    .map((item) => ({
      kind: "tell",
      taskId,
      input: { id: item.id, text: item.trigger.text, authority, tainted: taints(item.trigger.principal) },
    }));
