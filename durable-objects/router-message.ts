// The message of a turn and the transcript before it: what the router's model reads, from the router's own rows.

import { estimateTokens } from "../src/core/context.ts";
import { type InboxItem, type PickedTurn, pickJoining, type RouterMeta } from "../src/core/router.ts";
import { capObserved, policiesToShow, profilesToShow, renderJoined, renderTurn, summaryLines } from "../src/core/router-items.ts";
import { capFacts, type Fact, turnTerms } from "../src/core/router-memory.ts";
import { routerRequest } from "../src/core/router-prompt.ts";
import { schedulesItem } from "../src/core/router-schedule.ts";
import { fixedTokens, providerTokens } from "../src/core/token-rate.ts";
import type { ScheduleItem } from "../src/protocol/context-items.ts";
import type { RouterEvent } from "../src/protocol/events.ts";
import { limits } from "../src/protocol/limits.ts";
import type { ModelMessage } from "../src/protocol/model.ts";
import type { Policy } from "../src/protocol/policy.ts";
import type { Lane } from "../src/protocol/principal.ts";
import type { Profile } from "../src/protocol/profile.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";

/** Decisions that are looked through for the summary of a new segment. */
const lookedThrough = 200;

/** A thread that moved by itself up to `headSeq`, and was looked at up to `seenSeq`. */
export type Observed = { threadId: string; headSeq: number; seenSeq: number; line: string };

export type TurnMessage = {
  turn: number;
  segment: number;
  /** The transcript of this segment is empty. */
  fresh: boolean;
  talk: Talk;
  /** Ids of facts, tasks and machines that the message brings along. */
  inlined: string[];
  /** What it says of schedules; what joins the turn may make another list of it. */
  told: { schedules?: ScheduleItem | undefined };
};

/** What a turn says to its model, step by step, and what the transcript keeps of that. */
export class Talk {
  #messages: ModelMessage[];
  /** Not in the transcript yet. */
  #kept: ModelMessage[] = [];
  #tokens: number;

  /** `tokens`: estimated, of the whole request so far. */
  constructor(earlier: readonly ModelMessage[], tokens: number) {
    this.#messages = [...earlier];
    this.#tokens = tokens;
  }

  get messages(): ModelMessage[] {
    return this.#messages;
  }

  get tokens(): number {
    return this.#tokens;
  }

  add(sent: readonly ModelMessage[], kept = sent): void {
    this.#messages = [...this.#messages, ...sent];
    this.#kept.push(...kept);
    this.#tokens += sent.reduce((sum, message) => sum + estimateTokens(JSON.stringify(message)), 0);
  }

  /** What is new to the transcript. */
  takeKept(): ModelMessage[] {
    return this.#kept.splice(0);
  }
}

function factsFor({ memory }: RouterLedger, lane: Lane, items: readonly InboxItem[], readers: readonly string[]): Fact[] {
  const people = items.flatMap((item) => (item.kind === "trigger" ? [item.trigger.principal.id] : []));
  return lane === "team" ? capFacts(lane, memory.relevant(turnTerms(items), people, readers)) : [];
}

/** [RD17] A decision of this lane, and of no turn that may have read what was forgotten since. */
const mayBeSummed = (event: RouterEvent, lane: Lane, { forgotTurn = 0 }: RouterMeta): boolean =>
  event.kind === "router.decision" && event.lane === lane && (lane === "public" || event.turn > forgotTurn);

/** [A9] What the readers of a turn may hear of schedules. */
const schedulesFor = ({ schedules }: RouterLedger, lane: Lane, readers: readonly string[], zone: string, nowMs: number) =>
  lane === "team" ? schedulesItem(schedules.list(), zone, nowMs, readers) : undefined;

type Joinable = Parameters<typeof pickJoining>[3] &
  Pick<TurnMessage, "turn" | "inlined" | "told"> & { items: Map<string, InboxItem>; zone: string };

/** What came meanwhile enters the turn: its message goes with the next request, with what concerns it and was not there yet. */
export function joinTurn(ledger: RouterLedger, held: ReadonlySet<string>, turn: Joinable): ModelMessage[] {
  const { store } = ledger;
  const joining = pickJoining(store.inbox.queued(held), held, store.meta(), turn);
  if (joining.length === 0) return [];
  const readers = store.readersOf(joining);
  const facts = factsFor(ledger, turn.lane, joining, readers).filter(({ id }) => !turn.inlined.includes(id));
  const before = turn.items.size;
  for (const item of joining) turn.items.set(item.id, item);
  // Whoever joins may have schedules of their own, and since the turn began some may have changed.
  const all = store.readersOf([...turn.items.values()]);
  const now = schedulesFor(ledger, turn.lane, all, turn.zone, turn.nowMs);
  const schedules = JSON.stringify(now?.list) === JSON.stringify(turn.told.schedules?.list) ? undefined : now;
  if (schedules !== undefined) turn.told.schedules = schedules;
  turn.inlined.push(...facts.map(({ id }) => id));
  const text = renderJoined({ turn: turn.turn, lane: turn.lane, items: joining, facts, schedules, before });
  return [{ role: "user", text }];
}

/** The next turn's message. Past the threshold a new segment begins with a summary; the rows of the old one stay. */
export function composeTurn(
  ledger: RouterLedger,
  { lane, items }: PickedTurn,
  observed: readonly Observed[],
  { policies, profiles }: { policies: readonly Policy[]; profiles: readonly Profile[] },
  about: { agentName: string; zone: string; nowMs: number },
): TurnMessage {
  const { agentName, zone, nowMs } = about;
  const { store, log } = ledger;
  const meta = store.meta();
  const turn = meta.turn + 1;
  let segment = meta.segments[lane];
  let history = store.transcript(lane, segment);
  const fixed = fixedTokens(routerRequest(agentName, lane, []));
  if (providerTokens(fixed + history.tokens, meta.tokenRate) > limits.compactRouterTokens) {
    segment += 1;
    history = { messages: [], tokens: 0 };
  }
  const past = history.messages.length > 0 || segment === 1 ? [] : log.before(Number.MAX_SAFE_INTEGER, lookedThrough, ["router.decision"]);
  const readers = store.readersOf(items);
  const facts = factsFor(ledger, lane, items, readers);
  const tasks = store.tasks();
  const machines = lane === "team" ? store.machines() : [];
  const schedules = schedulesFor(ledger, lane, readers, zone, nowMs);
  const text = renderTurn({
    turn,
    lane,
    items,
    tasks,
    readers,
    machines,
    facts,
    policies: policiesToShow(policies, meta.policies?.[lane] ?? "", history.messages.length === 0),
    ...(lane === "team" ? { profiles: profilesToShow(profiles, meta.profiles ?? "", history.messages.length === 0) } : {}),
    schedules,
    observed: capObserved(observed.map((each) => each.line)),
    summary: summaryLines(past.flatMap(({ event }) => (mayBeSummed(event, lane, meta) ? [event] : []))),
    nowMs,
  });
  const inlined = [...facts, ...tasks, ...machines].map((each) => each.id);
  const talk = new Talk(history.messages, fixed + history.tokens);
  talk.add([{ role: "user", text }]);
  return { turn, segment, fresh: history.messages.length === 0, talk, inlined, told: { schedules } };
}
