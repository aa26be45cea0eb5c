// What becomes of a task that has ended: its outcome is judged, or it goes on, with all that it knows, in its own threads.
import { defaultProfile, type Profile } from "../protocol/profile.ts";
import type { RouterCall } from "../protocol/router-tools.ts";
import { asRouter, taints } from "./authority.ts";
import { chooseProfile } from "./profile-name.ts";
import { type InboxItem, isOpen, type KnownMachine, type KnownTask, type QueuedTrigger } from "./router.ts";
import { chooseMachine } from "./router-dispatch.ts";
import { type Planned, type PlannedDecision, type RouterEffect, stripMarkers } from "./router-plan.ts";
import { isSameWork } from "./same-work.ts";

type ResolveInput = Extract<RouterCall, { tool: "resolve" }>["input"];

const maxRetries = 1;
const maxReroutes = 2;

type View = { nowMs: number; agentName: string; machines: readonly KnownMachine[]; profiles?: readonly Pick<Profile, "name">[] };
type Refused = { refused: string };

/** [RD8] Retried once, with other words; then another machine or profile; then people. Its authority has been checked. */
export function planResolve(
  view: View,
  input: ResolveInput,
  task: KnownTask,
  settled: readonly InboxItem[],
  decision: PlannedDecision,
): Planned {
  if (isOpen(task)) return { refused: `${task.id} is still open (${task.status}): use deliver or cancel.` };
  const by = asRouter(view.agentName, decision.authority);
  const about = { ...decision, taskId: task.id, threadId: task.threadId };
  const { how } = input;
  if (how === "accept" || how === "reject") {
    const accepted = how === "accept";
    return { decision: { ...about, effects: [{ kind: "accept", taskId: task.id, input: { by, accepted } }] }, result: { accepted } };
  }
  const note = stripMarkers(input.note ?? "");
  const refusal = whyNotAgain(how, note, task, settled);
  if (refusal !== null) return { refused: refusal };
  const path = pathOf(view, input, task);
  if ("refused" in path) return path;
  const { machine, profile } = path;
  const { text, tainted, inside } = handedOver(note, task, settled);
  if (text === "" && inside.length === 0) return { refused: "Say in `note` what is to be done." };
  const moved = {
    ...(machine === null ? {} : { endpoint: { endpointId: machine.id, name: machine.name, workspaces: machine.workspaces } }),
    ...(profile === null ? {} : { profile }),
  };
  const effects: RouterEffect[] = [
    // Opened before it is subscribed: an ended task would give the rows back.
    { kind: "reopen", taskId: task.id, input: { id: decision.id, by, text, tainted, ...moved } },
    ...followAgain(task, inside, decision.id),
  ];
  const { retries = 0, reroutes = 0 } = task;
  const newTask: KnownTask = {
    ...task,
    status: "running",
    line: "",
    endedMs: null,
    updatedMs: view.nowMs,
    machine: machine?.name ?? task.machine,
    profile: profile ?? profileOf(task),
    retries: retries + (how === "retry" ? 1 : 0),
    reroutes: reroutes + (how === "reroute" ? 1 : 0),
  };
  return { decision: { ...about, effects, newTask }, result: { opened: task.id, thread: task.threadId } };
}

const profileOf = (task: KnownTask): string => task.profile ?? defaultProfile;

/** Why it does not go on in this way, as a sentence for the model; null when it may. */
function whyNotAgain(how: "retry" | "reroute" | "reopen", note: string, task: KnownTask, settled: readonly InboxItem[]): string | null {
  // A program alone starts no work. And a reopening counts no attempts: by its own report a failed task would go round for ever.
  if (!settled.some((item) => (item.kind === "report" ? how !== "reopen" : item.trigger.principal.role !== "bot")))
    return "Nobody asks for more of it: settle a person's words. What failed is retried or rerouted by its report; else ask_human.";
  const { retries = 0, reroutes = 0 } = task;
  if (how === "reroute") return reroutes < maxReroutes ? null : "It was rerouted twice already: ask_human.";
  if (how !== "retry") return null;
  if (note === "") return "A retry needs a rephrased instruction in `note`.";
  const profile = profileOf(task);
  if (isSameWork({ profile, text: task.goal ?? "" }, { profile, text: note }))
    return "That is what it was told before. Say in `note` what it should do differently.";
  return retries < maxRetries ? null : "It was tried again already. Take another path (reroute), or ask_human.";
}

/** Where it goes on: the machine and the profile that are other than before, else null. A reroute changes one of them. */
function pathOf(view: View, input: ResolveInput, task: KnownTask): { machine: KnownMachine | null; profile: string | null } | Refused {
  const named = input.profile === undefined ? null : chooseProfile(view.profiles ?? [], input.profile);
  if (named !== null && "problem" in named) return { refused: named.problem };
  const profile = named !== null && named.name !== profileOf(task) ? named.name : null;
  const mustMove = input.how === "reroute" && profile === null;
  const machine = mustMove || input.machine !== undefined ? chooseMachine(view.machines, input.machine) : null;
  if (machine !== null && "problem" in machine) return { refused: machine.problem };
  if (mustMove && (machine === null || machine.name === task.machine))
    return { refused: "There is no other machine to take it to: name one, or another profile, retry, or ask_human." };
  return { machine, profile };
}

/** What was said elsewhere is handed over in words; what was said in the task's own threads (`inside`) reaches it as rows. */
function handedOver(
  note: string,
  { threads }: KnownTask,
  settled: readonly InboxItem[],
): { text: string; tainted: boolean; inside: QueuedTrigger[] } {
  const triggers = settled.filter((item) => item.kind === "trigger");
  const inside = triggers.filter((item) => threads.includes(item.threadId)).sort((a, b) => a.seq - b.seq);
  const outside = triggers.filter((item) => !threads.includes(item.threadId));
  const text = [note, ...outside.map((item) => `${item.trigger.principal.name} said: ${item.trigger.text}`)].filter(Boolean).join("\n\n");
  return { text, tainted: triggers.some((item) => taints(item.trigger.principal)), inside };
}

/** It follows its first thread, and each other one in which it was asked to go on, from there. */
function followAgain(task: KnownTask, inside: readonly QueuedTrigger[], decisionId: string): RouterEffect[] {
  const threads = new Set([task.threadId, ...inside.map((item) => item.threadId)]);
  return [...threads].map((threadId) => {
    const first = inside.find((item) => item.threadId === threadId);
    const row = first === undefined ? {} : { triggerId: first.id };
    return { kind: "subscribe", threadId, input: { taskId: task.id, decisionId, ...row } };
  });
}
