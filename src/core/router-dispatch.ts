// A dispatch as effects: the thread flips (or a topic opens under a root), the worker starts, people hear that it does.
import { limits } from "../protocol/limits.ts";
import type { Policy } from "../protocol/policy.ts";
import type { Authority } from "../protocol/principal.ts";
import { defaultProfile, type Profile } from "../protocol/profile.ts";
import type { RouterCall } from "../protocol/router-tools.ts";
import type { Speculation } from "../protocol/speculation.ts";
import type { TaskStart } from "../protocol/task.ts";
import type { Trigger } from "../protocol/trigger.ts";
import { audienceOf, speakerOf } from "./audience.ts";
import { asRouter, taints } from "./authority.ts";
import { excerpt } from "./context.ts";
import { makeId, threadIdOf, triggerIdOf } from "./ids.ts";
import { chooseProfile } from "./profile-name.ts";
import type { InboxItem, KnownMachine, KnownTask, QueuedTrigger } from "./router.ts";
import { adoptionOf } from "./router-adoption.ts";
import { type Destination, whereAsked, withTask } from "./router-destination.ts";
import { type Planned, type PlannedDecision, postEffect, type RouterEffect, stripMarkers } from "./router-plan.ts";
import { allowingPolicy, newSpeculation, type SpeculationView } from "./speculation.ts";

type DispatchInput = Omit<Extract<RouterCall, { tool: "dispatch" }>["input"], "settles">;

const isRoot = (item: QueuedTrigger): boolean => item.trigger.threadKey.startsWith("root:");

/** [RD6] The machine that the model named, else one that is online, else the one seen last; null when none is enrolled. It has what the work needs. */
export function chooseMachine(
  machines: readonly KnownMachine[],
  named: string | undefined,
  workspace?: string | undefined,
): KnownMachine | null | { problem: string } {
  const enrolled = machines.filter((machine) => !machine.revoked);
  const needs = workspace?.trim().toLowerCase() ?? "";
  const able = needs === "" ? enrolled : enrolled.flatMap((machine) => beginningIn(machine, needs) ?? []);
  if (needs !== "" && able.length === 0) {
    const known = [...new Set(enrolled.flatMap((machine) => machine.workspaces))].join(", ");
    return {
      problem: known === "" ? "No machine has a workspace; leave `workspace` out." : `No machine has that workspace; there are ${known}.`,
    };
  }
  if (named !== undefined && named.trim() !== "") {
    const wanted = named.trim().toLowerCase();
    const isNamed = (machine: KnownMachine): boolean => machine.id === wanted || machine.name.toLowerCase() === wanted;
    const match = able.find(isNamed);
    if (match) return match;
    const names = able.map((machine) => machine.name).join(", ");
    if (enrolled.some(isNamed)) return { problem: `That machine has no such workspace; ${names} has it.` };
    return {
      problem: names === "" ? "No machine is enrolled; leave `machine` out." : `There is no machine of that name; there are ${names}.`,
    };
  }
  const online = able.filter((machine) => machine.online);
  return online[0] ?? [...able].sort((a, b) => b.seenMs - a.seenMs)[0] ?? null;
}

/** Commands that name no workspace run in the first. */
function beginningIn(machine: KnownMachine, workspace: string): KnownMachine | null {
  const first = machine.workspaces.find((each) => each.toLowerCase() === workspace);
  return first === undefined ? null : { ...machine, workspaces: [first, ...machine.workspaces.filter((each) => each !== first)] };
}

export type DispatchView = {
  nowMs: number;
  agentName: string;
  machines: readonly KnownMachine[];
  tasks: ReadonlyMap<string, KnownTask>;
  policies: readonly Policy[];
  profiles?: readonly Pick<Profile, "name">[];
  speculation?: SpeculationView;
};

/** The decision with everything that starts the task. Its authority has been checked. */
export function planDispatch(view: DispatchView, input: DispatchInput, settled: readonly InboxItem[], decision: PlannedDecision): Planned {
  const triggers = settled.filter((item) => item.kind === "trigger");
  // The earliest of its thread: what follows it there reaches the worker by itself.
  const first = triggers.filter((item) => item.threadId === triggers[0]?.threadId).sort((a, b) => a.seq - b.seq)[0];
  if (first === undefined) return { refused: "Work starts from what a person asked: settle that trigger, not only a report." };
  // [A2] With whatever authority it came.
  if (input.speculative !== true && triggers.every((item) => item.trigger.principal.role === "bot"))
    return { refused: "A program alone starts no work: record it, or ask_human. Only a policy that allows speculation may do more." };
  const wanted = wantedOf(view, input);
  if ("refused" in wanted) return wanted;
  if (input.speculative === true) return planSpeculative(view, input, wanted, first, decision);
  const adoption = adoptionOf(view, { adopt: input.adopt, title: wanted.title }, triggers, decision.authority);
  if (adoption.what === "refused") return adoption;
  if (adoption.what === "hand_over") return planHandOver(view.agentName, adoption.row, adoption.text, first, decision);
  const adopted = adoption.what === "adopt" ? adoption : null;
  const draft = adopted?.row.draft ? adopted.row : null;
  const ended = adoption.what === "instead" ? adoption.rows : [];

  const taskId = adopted?.task.id ?? makeId("tsk", decision.id);
  const tainted =
    triggers.some((item) => taints(item.trigger.principal)) || settled.some((item) => item.kind === "report" && item.report.tainted);
  const start: TaskStart = {
    ...startOf(wanted, taskId, decision.id, first, view.nowMs),
    ...whereStarted(first, taskId),
    authority: adopted?.authority ?? decision.authority,
    tainted,
    maxModelCalls: limits.maxModelCallsPerTask,
    ...(input.deadlineMinutes === undefined ? {} : { deadlineMs: view.nowMs + Math.round(input.deadlineMinutes * 60_000) }),
  };
  const { threadId } = start;
  const others = otherThreads(triggers, first);
  const hops = Math.max(...triggers.map((item) => item.trigger.hops));
  const effects: RouterEffect[] = [
    ...(draft === null ? [] : goingOn(draft, view.agentName, start)),
    ...opening(first, threadId, taskId, wanted.title, decision.id),
    ...others.map((item): RouterEffect => subscribeTo(item, taskId, decision.id)),
    ...(adopted === null ? [{ kind: "start" as const, taskId, input: start }] : draft === null ? [adopt(start)] : []),
    ...(adopted === null ? [] : [tellTheirs(start, first.trigger, decision.id)]),
    ...rootRest(triggers, first, taskId, start.authority),
    ...acknowledged(stripMarkers(input.acknowledge ?? ""), start, { ...whereAsked(first.trigger), hops }),
    ...ended.map((row) => endSpeculation(row, view.agentName, "a person asked, and has a task of their own")),
  ];
  const fresh = freshTask(start, first, { machine: wanted.machine?.name ?? null, hops, nowMs: view.nowMs });
  const known = adopted?.task ?? fresh;
  const { line, machine: at, startedMs } = known;
  const { status, endedMs } = draft === null ? known : { status: "running" as const, endedMs: null };
  const newTask: KnownTask = {
    ...fresh,
    threads: [threadId, ...others.map((item) => item.threadId)],
    tainted: tainted || adopted?.task.tainted === true,
    ...{ status, line, machine: at, startedMs, endedMs },
  };
  return {
    decision: {
      ...decision,
      taskId,
      threadId,
      effects,
      newTask,
      // After its own start, which may still be on its way.
      ...(adopted === null ? {} : { chain: adopted.row.decisionId, adopted: adopted.row.taskId }),
      ...(ended.length === 0 ? {} : { replaced: ended.map((row) => row.taskId) }),
    },
    result: { [adopted === null ? "started" : "adopted"]: taskId, thread: threadId },
  };
}

type Wanted = { title: string; goal: string; profile: string; machine: KnownMachine | null };

/** The work in words, who does it and where; or why it cannot be done like this. */
function wantedOf(view: DispatchView, input: DispatchInput): Wanted | { refused: string } {
  const machine = chooseMachine(view.machines, input.machine, input.workspace);
  if (machine !== null && "problem" in machine) return { refused: machine.problem };
  const profile = chooseProfile(view.profiles ?? [{ name: defaultProfile }], input.profile);
  if ("problem" in profile) return { refused: profile.problem };
  const title = excerpt(stripMarkers(input.title).replace(/\s+/g, " "), 120);
  const goal = stripMarkers(input.goal);
  if (title === "" || goal === "") return { refused: "A dispatch needs a title and a goal in words." };
  return { title, goal, profile: profile.name, machine };
}

/** In the thread of what is asked; of a root, in a topic of its own, where the asking row has an id of its own. */
function whereStarted(first: QueuedTrigger, taskId: string): Pick<TaskStart, "threadId" | "quote"> {
  const { trigger, threadId } = first;
  const quote = { triggerId: trigger.id, from: speakerOf(trigger), text: trigger.text };
  if (!isRoot(first)) return { threadId, quote };
  const topic = threadIdOf(trigger.source, trigger.place, `topic:${taskId}`);
  return { threadId: topic, quote: { ...quote, triggerId: triggerIdOf(trigger.source, trigger.deliveryId, topic) } };
}

/** People hear that it begins, where its task is. */
const acknowledged = (words: string, { taskId, threadId, decisionId }: TaskStart, to: Destination): RouterEffect[] =>
  words === "" ? [] : [postEffect(decisionId, withTask(to, threadId), "reply", words, { taskId, part: "acknowledge" })];

const startOf = (
  { title, goal, profile, machine }: Wanted,
  taskId: string,
  decisionId: string,
  { trigger, threadId }: QueuedTrigger,
  atMs: number,
): Omit<TaskStart, "authority" | "maxModelCalls"> => ({
  taskId,
  decisionId,
  title,
  goal,
  quote: { triggerId: trigger.id, from: speakerOf(trigger), text: trigger.text },
  tainted: false,
  profile,
  endpoint: machine === null ? null : { endpointId: machine.id, name: machine.name, workspaces: machine.workspaces },
  threadId,
  source: trigger.source,
  place: trigger.place,
  atMs,
});

const freshTask = (
  start: TaskStart,
  { trigger }: QueuedTrigger,
  { machine, hops, nowMs }: { machine: string | null; hops: number; nowMs: number },
): KnownTask => ({
  id: start.taskId,
  title: start.title,
  threadId: start.threadId,
  threads: [],
  decisionId: start.decisionId,
  authority: start.authority,
  tainted: start.tainted,
  status: "queued",
  line: "",
  machine,
  profile: start.profile,
  goal: excerpt(start.goal, 1_000),
  source: start.source,
  place: start.place,
  audience: audienceOf(trigger),
  hops,
  startedMs: nowMs,
  updatedMs: nowMs,
  endedMs: null,
});

/** [SP2] It begins, and nothing else happens: no thread passes through to it, and nobody is told. */
function planSpeculative(
  view: DispatchView,
  input: DispatchInput,
  wanted: Wanted,
  first: QueuedTrigger,
  decision: PlannedDecision,
): Planned {
  const policy = allowingPolicy(view.policies, input.policy);
  if (policy === null) return { refused: "No policy allows it." };
  const taskId = makeId("tsk", decision.id);
  const { nowMs } = view;
  const start: TaskStart = {
    ...startOf(wanted, taskId, decision.id, first, nowMs),
    authority: decision.authority,
    maxModelCalls: policy.speculation.callsPerTask,
    deadlineMs: nowMs + limits.speculationMs,
    speculative: true,
  };
  const { title, machine } = wanted;
  const newTask = { ...freshTask(start, first, { machine: machine?.name ?? null, hops: first.trigger.hops, nowMs }), speculative: true };
  return {
    decision: {
      ...decision,
      reason: excerpt(`speculation by ${policy.id}: ${title}`, 300),
      taskId,
      threadId: first.threadId,
      effects: [{ kind: "start", taskId, input: start }],
      newTask,
      speculation: newSpeculation(policy, { taskId, decisionId: decision.id, title }, first, nowMs),
    },
    result: { started: taskId, speculative: true },
  };
}

const adopt = (start: TaskStart): RouterEffect => ({ kind: "adopt", taskId: start.taskId, input: start });

/** [SP5] The task is told whose it is now, and in whose words; what it knows it keeps. */
const tellTheirs = (start: TaskStart, trigger: Trigger, decisionId: string): RouterEffect => ({
  kind: "tell",
  taskId: start.taskId,
  input: {
    id: decisionId,
    text: `${trigger.principal.name} asks for this now, so report to them as for any task. Their words: ${trigger.text}\n\nWhat the router says of it: ${start.goal}`,
    authority: start.authority,
    tainted: start.tainted,
  },
});

/** [SP5] It has ended with a draft: its offer is taken back, and it goes on as theirs. Before it is subscribed: an ended task would give the rows back. */
const goingOn = (row: Speculation, agentName: string, start: TaskStart): RouterEffect[] => [
  ...withdrawOffer(row, "somebody asked for it, and its task goes on with it", agentName),
  adopt(start),
];

/** A word of code: whoever's the task is, nobody needs it. */
export const endSpeculation = ({ taskId }: Pick<Speculation, "taskId">, agentName: string, reason: string): RouterEffect => ({
  kind: "cancel",
  taskId,
  input: { by: asRouter(agentName, "owner"), reason: excerpt(reason, 300) },
});

/** The offer, where there is one, is taken back: what nobody answered is answered by code. */
export const withdrawOffer = ({ taskId, threadId, offerId }: Speculation, reason: string, agentName: string): RouterEffect[] =>
  offerId === null
    ? []
    : [
        {
          kind: "withdraw",
          threadId,
          input: { outboundId: offerId, verdict: "decline", by: asRouter(agentName, "owner"), via: "router", reason, taskId },
        },
      ];

/** [SP5] The task is done, and its result waits as an offer: whoever asks for it gets it, and the offer is taken back. */
function planHandOver(agentName: string, row: Speculation, text: string, first: QueuedTrigger, decision: PlannedDecision): Planned {
  const { trigger, threadId } = first;
  const { taskId } = row;
  const withdraw = withdrawOffer(row, "somebody asked for it, and has it", agentName);
  const post = postEffect(decision.id, whereAsked(trigger), "relay", text, { taskId });
  return {
    decision: { ...decision, taskId, threadId, effects: [...withdraw, post], chain: row.decisionId, adopted: taskId },
    result: { adopted: taskId, said: post.input.id },
  };
}

/** [RD7] The task that this turn gave the item's thread to: its rows pass through, so a second task would do them again. A root never flips. */
export function flippedTo(
  view: { items: ReadonlyMap<string, InboxItem> },
  progress: ReadonlyMap<string, { act: string | null; target: { chain: string } | null }>,
  item: InboxItem,
): string | null {
  if (item.kind !== "trigger" || isRoot(item)) return null;
  for (const [id, { act, target }] of progress)
    if (act === "dispatch" && target !== null && view.items.get(id)?.threadId === item.threadId) return makeId("tsk", target.chain);
  return null;
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
