// A decision and its effects as data: what the router commits in one transaction, and what its effects do afterwards.

import type { BoardChange, BoardNotice } from "../protocol/board.ts";
import type { FollowedPolicy } from "../protocol/policy.ts";
import type { Authority, Lane } from "../protocol/principal.ts";
import type { RouterTool } from "../protocol/router-tools.ts";
import type { ThreadRpc, WorkerSessionRpc } from "../protocol/rpc.ts";
import type { Speculation } from "../protocol/speculation.ts";
import type { Report, TaskStart } from "../protocol/task.ts";
import type { OutboundIntent, OutboundState } from "../protocol/thread.ts";
import { laneOf } from "./authority.ts";
import { childId, makeId } from "./ids.ts";
import { fitted, mannerOf } from "./manners.ts";
import type { KnownTask, QueuedTrigger } from "./router.ts";
import { type Destination, whereAsked } from "./router-destination.ts";
import type { Fact, Forgotten } from "./router-memory.ts";
import type { PolicyAct, Proposal } from "./router-policy.ts";
import type { ScheduleEdit } from "./router-schedule.ts";

type Input<T, M extends keyof T> = T[M] extends (input: infer I) => unknown ? I : never;

export type RouterEffect =
  | { kind: "open_topic"; threadId: string; input: Input<ThreadRpc, "openTopic"> }
  | { kind: "attach_topic"; threadId: string; input: Input<ThreadRpc, "attachTopic"> }
  | { kind: "subscribe"; threadId: string; input: Input<ThreadRpc, "subscribe"> }
  | { kind: "unsubscribe"; threadId: string; input: Input<ThreadRpc, "unsubscribe"> }
  /** `tainted` of the start is completed by what `subscribe` answered. */
  | { kind: "start"; taskId: string; input: TaskStart }
  /** A speculative task becomes the one of a person; completed like a start. */
  | { kind: "adopt"; taskId: string; input: TaskStart }
  /** The result of speculation: it waits until a person releases it. */
  | { kind: "offer"; threadId: string; input: Input<ThreadRpc, "offer"> }
  | { kind: "withdraw"; threadId: string; input: Input<ThreadRpc, "decideOffer"> }
  | { kind: "post"; threadId: string; input: OutboundIntent }
  | { kind: "decide_offer"; threadId: string; input: Input<ThreadRpc, "decideOffer"> }
  | { kind: "tell"; taskId: string; input: Input<WorkerSessionRpc, "tell"> }
  | { kind: "accept"; taskId: string; input: Input<WorkerSessionRpc, "accept"> }
  | { kind: "reopen"; taskId: string; input: Input<WorkerSessionRpc, "reopen"> }
  | { kind: "cancel"; taskId: string; input: Input<WorkerSessionRpc, "cancel"> }
  /** What became of the answer of a schedule's run: asked again until its thread knows, or until `untilMs`. */
  | { kind: "receipt"; threadId: string; input: { runId: string; outboundId: string; untilMs: number } }
  /** Of a schedule that is due. */
  | { kind: "append"; threadId: string; input: Input<ThreadRpc, "append"> }
  /** What an owner asked for is shown, saved or taken back, and the owner is told. */
  | { kind: "policy"; threadId: string; input: { act: PolicyAct; post: OutboundIntent } }
  | { kind: "board"; input: BoardChange[] };

/** What an effect answered that later effects of its chain need. */
export type EffectResult = {
  fromSeq?: number;
  cutSeq?: number;
  tainted?: boolean;
  started?: boolean;
  sent?: OutboundState;
  follower?: string;
};

/** One effect of a chain: chains are independent of each other, within one the order holds. */
export type EffectRow = {
  id: string;
  decisionId: string;
  chain: string;
  order: number;
  effect: RouterEffect;
  state: "pending" | "done" | "failed";
  attempts: number;
  dueMs: number;
  result: EffectResult;
};

export type Question = {
  id: string;
  lane: Lane;
  threads: Destination[];
  text: string;
};

export type PlannedDecision = {
  id: string;
  turn: number;
  lane: Lane;
  tool: RouterTool;
  by: "model" | "code";
  settles: string[];
  reason: string;
  authority: Authority;
  taskId?: string;
  threadId?: string;
  policy?: FollowedPolicy;
  /** Nobody had asked for anything. */
  unasked?: true;
  /** In order. They join the chain of another decision when they need what it did. */
  effects: RouterEffect[];
  chain?: string;
  newTask?: KnownTask;
  /** Nobody asked for `newTask`. */
  speculation?: Speculation;
  /** The speculative task that a person took over, and those that end because of it. */
  adopted?: string;
  replaced?: string[];
  schedule?: ScheduleEdit;
  proposal?: Proposal;
  fact?: { fact: Fact; replaces: string | null };
  /** A fact that is to be forgotten, and for whom. */
  forgets?: { id: string } & Pick<Forgotten, "by" | "threadId" | "triggerId">;
  question?: Question;
  notice?: BoardNotice;
};

/** A comment of ours marks what we sent; none may be written by a model or a worker, also not one that appears when another is taken out. */
export function stripMarkers(text: string): string {
  let before: string;
  let after = text;
  do {
    before = after;
    after = before.replace(/<!--\s*switchyard:[\s\S]*?(?:-->|$)/gi, "");
  } while (after !== before);
  return after.trim();
}

/** Known before the decision is made: a draft of the words has it too. */
export const outboundIdOf = (threadId: string, decisionId: string, part = ""): string => childId("out", threadId, decisionId, part);

/** What a call became: a decision, with what its model hears of it, or the reason why not. */
export type Planned = { decision: PlannedDecision; result: object } | { refused: string };

/** [RD16] A `post` of a decision, to where a row of ours sends it, in the manner of its source. */
export function postEffect(
  decisionId: string,
  { source, hops, ...named }: Destination,
  kind: OutboundIntent["kind"],
  text: string,
  about: { triggerId?: string; taskId?: string; reportId?: string; outcome?: true; part?: string } = {},
): Extract<RouterEffect, { kind: "post" }> {
  const { part, ...links } = about;
  return {
    kind: "post",
    threadId: named.threadId,
    input: {
      id: outboundIdOf(named.threadId, decisionId, part),
      kind,
      ...fitted(stripMarkers(text), mannerOf(source)),
      ...named,
      ...links,
      decisionId,
      hops: hops + 1,
    },
  };
}

/** Words about how a task ended say so: who reacts to them judges that. */
export const outcomeOf = ({ kind }: Pick<Report, "kind">): { outcome?: true } =>
  kind === "done" || kind === "failed" ? { outcome: true } : {};

/** The outbound ids of what decisions say. */
export const postsOf = (decisions: readonly PlannedDecision[]): string[] =>
  decisions.flatMap(({ effects }) => effects.flatMap((effect) => (effect.kind === "post" ? [effect.input.id] : [])));

/** What people notice: of these it is counted who had asked. */
export const acting: readonly RouterTool[] = ["reply", "dispatch", "deliver", "ask_human", "cancel", "resolve"];
export const isAct = ({ tool, by, speculation }: Pick<PlannedDecision, "tool" | "by" | "speculation">): boolean =>
  by === "model" && acting.includes(tool) && speculation === undefined;

/** What consoles see of a decision. */
const boardChanges = (decision: PlannedDecision, atMs: number): BoardChange[] => [
  {
    kind: "decision",
    decision: {
      decisionId: decision.id,
      atMs,
      tool: decision.tool,
      reason: decision.reason,
      lane: decision.lane,
      by: decision.by,
      settles: decision.settles,
      ...(decision.unasked && isAct(decision) ? { unasked: true as const } : {}),
      ...(decision.taskId === undefined ? {} : { taskId: decision.taskId }),
      ...(decision.threadId === undefined ? {} : { threadId: decision.threadId }),
    },
  },
  ...(decision.notice === undefined ? [] : [{ kind: "notice" as const, notice: decision.notice }]),
];

/** What is said as the decision makes it; words of code are nobody's. */
function asDecided(effect: RouterEffect, decision: PlannedDecision): RouterEffect {
  if (effect.kind !== "post" || effect.input.kind === "notice") return effect;
  // [A7] What is said on public authority was made from public text.
  const tainted = laneOf(decision.authority) === "public" ? { tainted: true } : {};
  // [RD14] What nobody had asked for, or a policy wanted, can be called unwanted where it is read.
  const proactive = isAct(decision) && (decision.unasked || decision.policy !== undefined) ? { proactive: true as const } : {};
  return { ...effect, input: { ...effect.input, ...tainted, ...proactive } };
}

/** The rows that carry a decision out. The board is a projection: its row stands in a chain of its own and holds nobody up. */
export function effectRows(decision: PlannedDecision, firstOrder: number, nowMs: number): EffectRow[] {
  const chain = decision.chain ?? decision.id;
  const row = (effect: RouterEffect, index: number, inChain: string): EffectRow => ({
    id: `${decision.id}/${index}/${effect.kind}`,
    decisionId: decision.id,
    chain: inChain,
    order: firstOrder + index,
    effect,
    state: "pending",
    attempts: 0,
    dueMs: nowMs,
    result: {},
  });
  return [
    ...decision.effects.map((effect, index) => row(asDecided(effect, decision), index, chain)),
    row({ kind: "board", input: boardChanges(decision, nowMs) }, decision.effects.length, `${decision.id}/board`),
  ];
}

/** The start of a task once the effects before it are applied. */
export const completeStart = (start: TaskStart, earlier: readonly EffectResult[]): TaskStart => ({
  ...start,
  tainted: start.tainted || earlier.some((result) => result.tainted === true),
});

/** Effects that make a thread pass through; a turn waits for them, and their thread is held back until then. */
export const flips = (effect: RouterEffect): effect is Extract<RouterEffect, { kind: "subscribe" }> => effect.kind === "subscribe";

/** [T13] What a task says waits until the thread is given to it. */
export const isEarly = (effect: RouterEffect, pending: readonly Pick<EffectRow, "effect">[]): boolean =>
  effect.kind === "post" &&
  pending.some((row) => (row.effect.kind === "subscribe" || row.effect.kind === "open_topic") && row.effect.threadId === effect.threadId);

/** The task that an effect sets to work, or gives to a person. */
export const startedBy = (effect: RouterEffect): string | null =>
  effect.kind === "start" || effect.kind === "adopt" || effect.kind === "reopen" ? effect.taskId : null;

/** Said by code, once an outage and thread: the message is kept, the model cannot answer yet. */
export function tellWaiting(item: QueuedTrigger, text: string, turn: number): PlannedDecision {
  const id = makeId("dec", "waiting", item.id);
  return {
    id,
    turn,
    lane: item.lane,
    tool: "reply",
    by: "code",
    settles: [],
    reason: "the model cannot be reached; the message waits",
    authority: "public",
    threadId: item.threadId,
    effects: [postEffect(id, whereAsked(item.trigger), "notice", text)],
  };
}
