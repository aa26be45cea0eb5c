// Calls of the router's model become decisions and effects here, or are refused. Whatever the model wrote, the rules below hold.
import { refusedByCode } from "../protocol/board.ts";
import type { ModelReply } from "../protocol/model.ts";
import type { Policy } from "../protocol/policy.ts";
import type { Authority, Lane, Principal } from "../protocol/principal.ts";
import type { Profile } from "../protocol/profile.ts";
import type { RouterCall, RouterTool } from "../protocol/router-tools.ts";
import type { Schedule } from "../protocol/schedule.ts";
import { mayFlow } from "./audience.ts";
import { atLeast, authorityOf, isTeamPerson, lower } from "./authority.ts";
import { excerpt } from "./context.ts";
import { makeId } from "./ids.ts";
import { type InboxItem, isOpen, isUnasked, type KnownMachine, type KnownTask, type QueuedTrigger } from "./router.ts";
import { isOverheard, readerOf, refuseMixed, refuseOverheard } from "./router-audience.ts";
import { readCall, safeId, tooLong } from "./router-calls.ts";
import { planChange } from "./router-change.ts";
import { type Destination, withTask } from "./router-destination.ts";
import { flippedTo, planDispatch } from "./router-dispatch.ts";
import { inForm, placeOf } from "./router-manner.ts";
import { outcomeOf, type PlannedDecision, postEffect, stripMarkers } from "./router-plan.ts";
import { followed, type Proposal, planPolicy } from "./router-policy.ts";
import { planRelease } from "./router-release.ts";
import { isToForget, type NamedFacts, noFacts, planRemember, without } from "./router-remember.ts";
import { planResolve } from "./router-resolve.ts";
import { planSchedule, withEdit } from "./router-schedule.ts";
import { asides, isRead, isSpeech, type RefusedCall, settlesIn, untrueBeside } from "./router-words.ts";
import { noSpeculation, refuseSpeculation, type SpeculationView, withStarted } from "./speculation.ts";

/** What calls of this turn did to an item so far: one act and one word to the people are both allowed. */
export type ItemProgress = { act: RouterTool | null; spoken: boolean; target: { threadId: string; chain: string } | null };

export type TurnView = {
  turn: number;
  step: number;
  lane: Lane;
  /** This turn read public text: whatever it decides has public authority. */
  capped: boolean;
  nowMs: number;
  agentName: string;
  items: ReadonlyMap<string, InboxItem>;
  progress: ReadonlyMap<string, ItemProgress>;
  /** Items whose words came back once because they were too long: now they are taken as they are. */
  shortened?: ReadonlySet<string>;
  tasks: ReadonlyMap<string, KnownTask>;
  machines: readonly KnownMachine[];
  /** The default zone of schedules, and those that hold. */
  zone?: string;
  schedules?: readonly Schedule[];
  /** Rules of the gate that were shown to owners. */
  proposals?: readonly Proposal[];
  policies: readonly Policy[];
  /** That the calls name. */
  facts?: NamedFacts;
  profiles?: readonly Pick<Profile, "name">[];
  /** Audiences of what earlier steps of this turn read. */
  heard?: readonly string[];
  speculation?: SpeculationView;
};

export type StepOutcome = {
  decisions: PlannedDecision[];
  refused: RefusedCall[];
  /** One for each call, in order; null for a read. */
  results: (string | null)[];
  progress: Map<string, ItemProgress>;
  /** Items whose words are to be said again, shorter. */
  tooLong: string[];
  /** Words came back that stood beside something refused. */
  again: boolean;
};

type Verdict = { decision: PlannedDecision; result: object } | { refused: string; settles?: string[]; tooLong?: true; again?: true };
type Call<Tool extends RouterTool> = Extract<RouterCall, { tool: Tool }>;
type Act = Exclude<RouterCall, { tool: "reply" | "relay" | "recall" | "find" }>;
/** One decision in the making: what it settles, and its id. */
type Making = { view: TurnView; settled: readonly InboxItem[]; id: string };

const cappedReason =
  "This turn read text from outside the team, so it may only answer, record or ask. Decide again without that recall, or use ask_human.";

/** [RD2] All calls of one answer. Acts are looked at before words, so that words about a dispatched trigger go where the task is. */
export function decideStep(view: TurnView, calls: ModelReply["calls"]): StepOutcome {
  const outcome: StepOutcome = {
    decisions: [],
    refused: [],
    results: calls.map(() => null),
    progress: new Map(view.progress),
    tooLong: [],
    again: false,
  };
  const read = calls.map(readCall);
  const inOrder = [...read.keys()].sort((a, b) => Number(isSpeech(read[a])) - Number(isSpeech(read[b])) || a - b);
  let { speculation = noSpeculation, schedules = [], facts = noFacts, tasks } = view;
  for (const index of inOrder) {
    const call = read[index];
    if (call === undefined || isRead(call)) continue;
    const verdict: Verdict =
      "problem" in call
        ? { refused: call.problem }
        : (untrueBeside(call, outcome.refused, outcome.progress) ??
          decideCall({ ...view, speculation, schedules, facts, tasks }, outcome.progress, call, index));
    if ("decision" in verdict) {
      speculation = withStarted(speculation, verdict.decision.speculation);
      schedules = withEdit(schedules, verdict.decision.schedule);
      facts = without(facts, verdict.decision.forgets?.id);
      // [RD8] Opened twice in one answer, what was said the second time would reach nobody.
      if (verdict.decision.newTask !== undefined) tasks = new Map(tasks).set(verdict.decision.newTask.id, verdict.decision.newTask);
      outcome.decisions.push(verdict.decision);
      outcome.results[index] = JSON.stringify(verdict.result);
    } else {
      const tool = "problem" in call ? excerpt(calls[index]?.tool ?? "", 40) : call.tool;
      const settles = verdict.settles ?? settlesIn(calls[index]?.input).filter((id) => view.items.has(id));
      if ("tooLong" in verdict) outcome.tooLong.push(...settles);
      outcome.again ||= "again" in verdict;
      outcome.refused.push({ tool, settles, reason: verdict.refused });
      outcome.results[index] = JSON.stringify({ refused: verdict.refused });
    }
  }
  return { ...outcome, decisions: inForm(view, outcome.decisions) };
}

/** With what it settles in it: a router that lost its own count makes no id of another decision. */
export const decisionIdOf = (view: Pick<TurnView, "turn" | "step">, index: number, settles: readonly string[]): string =>
  makeId("dec", view.turn, view.step, index, ...settles);

const untouched: ItemProgress = { act: null, spoken: false, target: null };

function decideCall(view: TurnView, progress: Map<string, ItemProgress>, call: RouterCall, index: number): Verdict {
  if (call.tool === "recall" || call.tool === "find") return { refused: "A read settles nothing." };
  const asked = call.tool === "relay" ? [...new Set([call.input.report, ...call.input.settles])] : [...new Set(call.input.settles)];
  const unknown = asked.filter((id) => !view.items.has(id));
  const speech = isSpeech(call);
  const aside = asides.includes(call.tool);
  const free = asked.filter((id) => {
    const done = progress.get(id) ?? untouched;
    return view.items.has(id) && (aside || (speech ? !done.spoken : done.act === null));
  });
  if (free.length === 0)
    return {
      refused:
        unknown.length > 0
          ? `${unknown.map(safeId).join(", ")} does not wait for a decision here. Use the ids of this message.`
          : `${asked.join(", ")} is settled already.`,
    };
  const settled = free.flatMap((id) => view.items.get(id) ?? []);
  const id = decisionIdOf(view, index, free);
  const overheard = refuseOverheard(view, call.tool, settled);
  if (overheard !== null) return overheard;
  const making = { view, settled, id };
  const verdict = speech ? say(making, progress, call as Call<"reply" | "relay">) : act(making, progress, call as Act);
  if (!("decision" in verdict)) return verdict;
  const decision = { ...verdict.decision, ...followed(view, call, verdict.decision.by) };
  // Refused by authority, the trigger has had its answer: nothing more is said or done about it.
  const settledByCode = decision.by === "code";
  for (const item of settled) {
    const before = progress.get(item.id) ?? untouched;
    progress.set(item.id, {
      act: (speech || aside) && !settledByCode ? before.act : call.tool,
      // Nobody hears of what nobody asked for.
      spoken: before.spoken || speech || settledByCode || decision.speculation !== undefined,
      target: movesTo(decision, item) ?? before.target,
    });
  }
  return unknown.length === 0
    ? { decision, result: verdict.result }
    : { decision, result: { ...verdict.result, unknown: `${unknown.map(safeId).join(", ")} does not wait for a decision here` } };
}

/** Where words about a dispatched item go: with the task, if it is of the task's thread or of the root above its topic. */
function movesTo(decision: PlannedDecision, item: InboxItem): ItemProgress["target"] {
  if (decision.newTask === undefined || decision.threadId === undefined || decision.speculation !== undefined) return null;
  const roots = decision.effects.flatMap((effect) => (effect.kind === "open_topic" ? [effect.input.rootThreadId] : []));
  const near = item.threadId === decision.threadId || roots.includes(item.threadId);
  return near ? { threadId: decision.threadId, chain: decision.chain ?? decision.id } : null;
}

/** [A2] [RD3] The lowest authority of what a decision settles, and never more than the turn may. */
function authorityOfItems(items: readonly InboxItem[], capped: boolean): Authority {
  if (capped || items.length === 0) return "public";
  return items
    .map((item): Authority => {
      if (item.kind === "trigger") return authorityOf(item.trigger.principal);
      return item.report.tainted ? "public" : item.report.authority;
    })
    .reduce(lower);
}

const base = ({ view, settled, id }: Making, tool: RouterTool, reason: string): PlannedDecision => ({
  id,
  turn: view.turn,
  lane: view.lane,
  tool,
  by: "model",
  settles: settled.map((item) => item.id),
  // A reason is kept for good: words written after public text was read are not.
  reason: view.capped
    ? "(decided after reading text from outside the team)"
    : isOverheard(view, settled)
      ? "(decided after reading another conversation)"
      : excerpt(reason, 300),
  authority: authorityOfItems(settled, view.capped),
  ...(isUnasked(settled) ? { unasked: true as const } : {}),
  effects: [],
});

/** [RD4] Words go to the settled items' own thread, or to the task that the same turn made of them; never anywhere else. */
function say(making: Making, progress: ReadonlyMap<string, ItemProgress>, call: Call<"reply" | "relay">): Verdict {
  const { view, settled } = making;
  const first = settled[0];
  if (first === undefined) return { refused: "It settles nothing." };
  const own = new Set(settled.map((item) => item.threadId));
  if (own.size > 1) return { refused: "These are of different threads: each thread needs a call of its own." };
  const place = { ...placeOf(view, first), hops: Math.max(...settled.map((item) => placeOf(view, item).hops)) };
  if (call.tool === "relay") return relay(making, call.input, place);
  const targets = settled.map((item) => progress.get(item.id)?.target ?? null);
  const target = targets.every((each) => each !== null && each.threadId === targets[0]?.threadId) ? (targets[0] ?? null) : null;
  return reply(making, call.input, place, target);
}

function relay(making: Making, input: Call<"relay">["input"], { source, hops }: Destination): Verdict {
  const { view, settled, id } = making;
  const told = settled.find((item) => item.kind === "report");
  if (told === undefined || told.id !== input.report) return { refused: `${safeId(input.report)} is no report that waits here.` };
  const { report, threadId } = told;
  const long = tooLong(view, settled, source, report.text);
  if (long !== null) return long;
  const post = postEffect(id, { ...placeOf(view, told), hops }, "relay", report.text, outcomeOf(report));
  const decision = base(making, "relay", `passed on: ${report.title}`);
  return { decision: { ...decision, taskId: report.taskId, threadId, effects: [post] }, result: { sent: post.input.id } };
}

function reply(making: Making, input: Call<"reply">["input"], place: Destination, target: ItemProgress["target"]): Verdict {
  const { view, settled, id } = making;
  const text = stripMarkers(input.text);
  if (text === "") return { refused: "The reply has no words." };
  const long = tooLong(view, settled, place.source, text);
  if (long !== null) return long;
  const trigger = settled.find((item) => item.kind === "trigger");
  const told = settled.find((item) => item.kind === "report");
  const to = target ? withTask(place, target.threadId) : place;
  const post = postEffect(id, to, "reply", text, {
    ...(trigger === undefined ? {} : { triggerId: trigger.id }),
    ...(told === undefined ? {} : { taskId: told.report.taskId, reportId: told.id, ...outcomeOf(told.report) }),
  });
  const decision = base(making, "reply", `answered: ${excerpt(text, 160)}`);
  return {
    decision: { ...decision, threadId: to.threadId, effects: [post], ...(target ? { chain: target.chain } : {}) },
    result: { sent: post.input.id },
  };
}

function act(making: Making, progress: ReadonlyMap<string, ItemProgress>, call: Act): Verdict {
  switch (call.tool) {
    case "record":
    case "ignore":
      return { decision: base(making, call.tool, call.input.reason), result: { done: call.tool } };
    case "ask_human":
      return askHuman(making, call.input.question);
    case "set_policy":
      return setPolicy(making, call.input);
    case "schedule":
      return schedule(making, call.input);
    case "release":
      return planRelease(making.view.agentName, call.input, making.settled, base(making, "release", call.input.reason));
    case "remember":
      return remember(making, call.input);
    case "dispatch":
      return dispatch(making, progress, call.input);
    case "deliver":
    case "cancel":
    case "resolve":
      return changeTask(making, call);
  }
}

function askHuman(making: Making, question: string): Verdict {
  const { view, settled, id } = making;
  const mixed = refuseMixed(view, settled);
  if (mixed !== null) return mixed;
  const text = stripMarkers(question);
  const threads = settled.map((item) => placeOf(view, item));
  const threadId = threads[0]?.threadId;
  const where = threadId === undefined ? {} : { threadId };
  return {
    decision: {
      ...base(making, "ask_human", text),
      ...where,
      question: { id, lane: view.lane, threads, text },
      notice: { id, atMs: view.nowMs, kind: "question", text: excerpt(text, 2_000), ...where },
    },
    result: { asked: id },
  };
}

function setPolicy(making: Making, input: Call<"set_policy">["input"]): Verdict {
  const refusal = refuseAuthority(making, "set_policy", "owner", "change what I react to");
  if (refusal !== null) return refusal;
  const said = saidBy(making.settled, ({ role }) => role === "owner");
  if (said === undefined) return { refused: "Only an owner can change rules: settle that person's trigger." };
  const { nowMs, proposals = [] } = making.view;
  return planPolicy({ nowMs, proposals }, input, said, base(making, "set_policy", ""));
}

function schedule(making: Making, input: Call<"schedule">["input"]): Verdict {
  const { view, settled } = making;
  const refusal = refuseAuthority(making, "schedule", "member", "schedule work");
  if (refusal !== null) return refusal;
  const said = saidBy(settled, isTeamPerson);
  if (said === undefined) return { refused: "Only a person of the team can schedule: settle that person's trigger." };
  const mixed = refuseMixed(view, settled);
  if (mixed !== null) return mixed;
  const { nowMs, zone = "UTC", schedules = [] } = view;
  return planSchedule({ nowMs, zone, schedules }, input, said, base(making, "schedule", input.name));
}

/** [RD10] Only people of the team, in a turn free of public text, write into the team's memory; the row says who, where and when. */
function remember(making: Making, input: Call<"remember">["input"]): Verdict {
  const { view, settled } = making;
  const what = isToForget(input) ? "have me forget things" : "have me remember things";
  const refusal = refuseAuthority(making, "remember", "member", what);
  if (refusal !== null) return refusal;
  const said = saidBy(settled, isTeamPerson);
  if (said === undefined) return { refused: "Only a person of the team can have things remembered or forgotten: settle that trigger." };
  const mixed = refuseMixed(view, settled);
  if (mixed !== null) return mixed;
  return planRemember(view, input, said, base(making, "remember", ""));
}

function dispatch(making: Making, progress: ReadonlyMap<string, ItemProgress>, input: Call<"dispatch">["input"]): Verdict {
  const { view, settled } = making;
  const refusal = input.speculative ? refuseSpeculation(view, input, settled) : refuseAuthority(making, "dispatch", "member", "start work");
  if (refusal !== null) return refusal;
  const flipped = settled.flatMap((item) => flippedTo(view, progress, item) ?? [])[0];
  if (flipped !== undefined) return { refused: `This thread goes to ${flipped} already: what was said there reaches that task.` };
  const mixed = refuseMixed(view, settled);
  if (mixed !== null) return mixed;
  return planDispatch(view, input, settled, base(making, "dispatch", input.title));
}

function changeTask(making: Making, call: Call<"deliver" | "cancel" | "resolve">): Verdict {
  const { view, settled } = making;
  const { tool } = call;
  const task = view.tasks.get(call.input.task);
  const what = tool === "cancel" ? "stop work" : tool === "resolve" ? "settle work" : "change work that is under way";
  // Before the task is looked up: from outside the team nobody learns which tasks there are.
  const outside = refuseAuthority(making, tool, "member", what);
  if (outside !== null) return outside;
  if (task === undefined) return { refused: `There is no task ${safeId(call.input.task)}; see the tasks item.` };
  if (task.speculative && tool !== "cancel")
    return { refused: "Nobody asked for that task. If somebody does now, dispatch and name it in `adopt`; else dispatch anew." };
  if (!isOpen(task) && tool !== "resolve")
    return { refused: `${task.id} has ended already (${task.status}). To go on with it, use resolve.` };
  const below = refuseAuthority(making, tool, task.authority, what);
  if (below !== null) return below;
  const judges = tool === "cancel" || (call.tool === "resolve" && (call.input.how === "accept" || call.input.how === "reject"));
  if (!judges && settled.some((item) => !mayFlow(readerOf(view, item), task.audience)))
    return { refused: "What was said in one conversation may not be handed to a task that answers in another." };
  if (call.tool === "resolve")
    return planResolve(view, call.input, task, settled, base(making, "resolve", `${call.input.how}: ${task.title}`));
  const reason = call.tool === "cancel" ? call.input.reason : `facts for ${task.title}`;
  return planChange(view.agentName, call, task, settled, base(making, tool, reason));
}

/** The trigger of somebody who may decide it, of what is settled. */
const saidBy = (settled: readonly InboxItem[], may: (principal: Principal) => boolean): QueuedTrigger | undefined =>
  settled.filter((item) => item.kind === "trigger").find(({ trigger }) => may(trigger.principal));

/** [RD5] Work needs the team. People below get a friendly word, the team a notice, and the trigger is settled; a capped turn decides again. */
function refuseAuthority(making: Making, tool: RouterTool, need: Authority, what: string): Verdict | null {
  const { view, settled, id } = making;
  const decision = base(making, tool, `${refusedByCode}${need === "owner" ? "only an owner" : "only the team"} can ${what}`);
  if (atLeast(decision.authority, need)) return null;
  if (view.capped && atLeast(authorityOfItems(settled, false), need)) return { refused: cappedReason };
  const triggers = settled.filter((item) => item.kind === "trigger");
  const first = triggers[0];
  if (first === undefined) return { refused: `A report of this task cannot ${what}: a member of the team has to ask for it.` };
  const who = need === "owner" ? "an owner of this deployment" : "members of the team";
  const words = `You can talk to me here, but only ${who} can ${what}. I have let the team know what you asked for.`;
  // [RD16] Who spoke to somebody else is not spoken to: consoles show what was refused.
  const places = new Map(triggers.filter((item) => !isUnasked([item])).map((item) => [item.threadId, item]));
  return {
    decision: {
      ...decision,
      by: "code",
      threadId: first.threadId,
      effects: [...places.values()].map((item) => postEffect(id, placeOf(view, item), "notice", words)),
      notice: {
        id,
        atMs: view.nowMs,
        kind: "refusal",
        text: `${excerpt(first.trigger.principal.name, 60)} (${first.trigger.principal.role}) asked to ${what}: "${excerpt(first.trigger.text, 300)}"`,
        threadId: first.threadId,
      },
    },
    result: {
      refused: `Only ${who} can ${what}. ${places.size === 0 ? "Nobody was spoken to" : "The person was told so"}, and the team sees it.`,
    },
  };
}
