// What becomes of a task that has ended: its outcome is judged, or it goes on, with all that it knows, in its own threads.
import { defaultProfile, type Profile } from "../protocol/profile.ts";
import type { RouterCall } from "../protocol/router-tools.ts";
import { asRouter, taints } from "./authority.ts";
import { type InboxItem, isOpen, type KnownMachine, type KnownTask, type QueuedTrigger } from "./router.ts";
import { chooseMachine, chooseProfile } from "./router-dispatch.ts";
import { type Planned, type PlannedDecision, type RouterEffect, stripMarkers } from "./router-plan.ts";
import { isSameWork } from "./same-work.ts";

type ResolveInput = Extract<RouterCall, { tool: "resolve" }>["input"];

const maxRetries = 1;
const maxReroutes = 2;

/** [RD8] Retried once, with other words; then another machine or profile; then people. Its authority has been checked. */
export function planResolve(
  view: { nowMs: number; agentName: string; machines: readonly KnownMachine[]; profiles?: readonly Pick<Profile, "name">[] },
  input: ResolveInput,
  task: KnownTask,
  settled: readonly InboxItem[],
  decision: PlannedDecision,
): Planned {
  if (isOpen(task)) return { refused: `${task.id} is still open (${task.status}): use deliver or cancel.` };
  const by = asRouter(view.agentName, decision.authority);
  const about = { ...decision, taskId: task.id, threadId: task.threadId };
  if (input.how === "accept" || input.how === "reject") {
    const accepted = input.how === "accept";
    return { decision: { ...about, effects: [{ kind: "accept", taskId: task.id, input: { by, accepted } }] }, result: { accepted } };
  }
  const note = stripMarkers(input.note ?? "");
  const { retries = 0, reroutes = 0 } = task;
  if (input.how === "retry" && note === "") return { refused: "A retry needs a rephrased instruction in `note`." };
  const had = task.profile ?? defaultProfile;
  if (input.how === "retry" && isSameWork({ profile: had, text: task.goal ?? "" }, { profile: had, text: note }))
    return { refused: "That is what it was told before. Say in `note` what it should do differently." };
  if (input.how === "retry" && retries >= maxRetries)
    return { refused: "It was tried again already. Take another path (reroute), or ask_human." };
  if (input.how === "reroute" && reroutes >= maxReroutes) return { refused: "It was rerouted twice already: ask_human." };
  const profile = input.profile === undefined ? null : chooseProfile(view.profiles ?? [], input.profile);
  if (profile !== null && "problem" in profile) return { refused: profile.problem };
  const otherProfile = profile !== null && profile.name !== had ? profile.name : null;
  const wantsMachine = input.machine !== undefined || (input.how === "reroute" && otherProfile === null);
  const machine = wantsMachine ? chooseMachine(view.machines, input.machine) : null;
  if (machine !== null && "problem" in machine) return { refused: machine.problem };
  if (input.how === "reroute" && otherProfile === null && (machine === null || machine.name === task.machine))
    return { refused: "There is no other machine to take it to: name one, or another profile, retry, or ask_human." };

  const triggers = settled.filter((item) => item.kind === "trigger");
  const inside = triggers.filter((item) => task.threads.includes(item.threadId)).sort((a, b) => a.seq - b.seq);
  const outside = triggers.filter((item) => !task.threads.includes(item.threadId));
  // What was said elsewhere is handed over in words; what was said in the task's own threads reaches it as rows.
  const text = [note, ...outside.map((item) => `${item.trigger.principal.name} said: ${item.trigger.text}`)].filter(Boolean).join("\n\n");
  if (text === "" && inside.length === 0) return { refused: "Say in `note` what is to be done." };
  const tainted = triggers.some((item) => taints(item.trigger.principal));
  const firstOf = new Map<string, QueuedTrigger>();
  for (const item of inside) if (!firstOf.has(item.threadId)) firstOf.set(item.threadId, item);
  const follow = [...new Set([task.threadId, ...firstOf.keys()])].map((threadId): RouterEffect => {
    const first = firstOf.get(threadId);
    const row = first === undefined ? {} : { triggerId: first.id };
    return { kind: "subscribe", threadId, input: { taskId: task.id, decisionId: decision.id, ...row } };
  });
  const endpoint = machine === null ? {} : { endpoint: { endpointId: machine.id, name: machine.name, workspaces: machine.workspaces } };
  const effects: RouterEffect[] = [
    // Opened before it is subscribed: an ended task would give the rows back.
    {
      kind: "reopen",
      taskId: task.id,
      input: { id: decision.id, by, text, tainted, ...endpoint, ...(otherProfile === null ? {} : { profile: otherProfile }) },
    },
    ...follow,
  ];
  const newTask: KnownTask = {
    ...task,
    status: "running",
    line: "",
    endedMs: null,
    updatedMs: view.nowMs,
    machine: machine?.name ?? task.machine,
    profile: otherProfile ?? had,
    retries: retries + (input.how === "retry" ? 1 : 0),
    reroutes: reroutes + (input.how === "reroute" ? 1 : 0),
  };
  return { decision: { ...about, effects, newTask }, result: { opened: task.id, thread: task.threadId } };
}
