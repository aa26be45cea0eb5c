// The message of a turn and the transcript before it: what the router's model reads, from the router's own rows.
import { type InboxItem, pickJoining, readersOf } from "../src/core/router.ts";
import {
  capObserved,
  maxSegmentChars,
  policiesToShow,
  profilesToShow,
  renderJoined,
  renderTurn,
  summaryLines,
} from "../src/core/router-items.ts";
import { capFacts, type Fact, turnTerms } from "../src/core/router-memory.ts";
import type { ModelMessage } from "../src/protocol/model.ts";
import type { Policy } from "../src/protocol/policy.ts";
import type { Lane } from "../src/protocol/principal.ts";
import type { Profile } from "../src/protocol/profile.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";
import type { Observed, PickedTurn } from "./router-steps.ts";

/** Decisions that are looked through for the summary of a new segment. */
const lookedThrough = 200;

export type TurnMessage = {
  turn: number;
  segment: number;
  earlier: ModelMessage[];
  user: ModelMessage;
  /** Ids of facts, tasks and machines that the message brings along. */
  inlined: string[];
};

function factsFor({ memory }: RouterLedger, lane: Lane, items: readonly InboxItem[], readers: readonly string[]): Fact[] {
  const people = items.flatMap((item) => (item.kind === "trigger" ? [item.trigger.principal.id] : []));
  return lane === "team" ? capFacts(lane, memory.relevant(turnTerms(items), people, readers)) : [];
}

type Joinable = Parameters<typeof pickJoining>[3] & { turn: number; items: Map<string, InboxItem>; inlined: string[] };

/** What came meanwhile enters the turn: its message goes with the next request, with the facts that concern it and were not there yet. */
export function joinTurn(ledger: RouterLedger, held: ReadonlySet<string>, turn: Joinable): ModelMessage[] {
  const { store } = ledger;
  const joining = pickJoining(store.queued(), held, store.meta(), turn);
  if (joining.length === 0) return [];
  const readers = readersOf(joining, (taskId) => store.task(taskId)?.audience);
  const facts = factsFor(ledger, turn.lane, joining, readers).filter(({ id }) => !turn.inlined.includes(id));
  const text = renderJoined({ turn: turn.turn, lane: turn.lane, items: joining, facts, before: turn.items.size });
  turn.inlined.push(...facts.map(({ id }) => id));
  for (const item of joining) turn.items.set(item.id, item);
  return [{ role: "user", text }];
}

/** The next turn's message. Past the threshold a new segment begins with a summary; the rows of the old one stay. */
export function composeTurn(
  ledger: RouterLedger,
  { lane, items }: PickedTurn,
  observed: readonly Observed[],
  { policies, profiles }: { policies: readonly Policy[]; profiles: readonly Profile[] },
  clock: { zone: string; nowMs: number },
): TurnMessage {
  const { zone, nowMs } = clock;
  const { store, log } = ledger;
  const meta = store.meta();
  const turn = meta.turn + 1;
  let segment = meta.segments[lane];
  let history = store.transcript(lane, segment);
  if (history.chars > maxSegmentChars) {
    segment += 1;
    history = { messages: [], chars: 0 };
  }
  const past = history.messages.length > 0 || segment === 1 ? [] : log.before(Number.MAX_SAFE_INTEGER, lookedThrough, ["router.decision"]);
  const readers = readersOf(items, (taskId) => store.task(taskId)?.audience);
  const facts = factsFor(ledger, lane, items, readers);
  const tasks = store.tasks();
  const machines = lane === "team" ? store.machines() : [];
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
    ...(lane === "team" ? { schedules: { list: ledger.schedules.list(), zone } } : {}),
    observed: capObserved(observed.map((each) => each.line)),
    summary: summaryLines(past.map((row) => row.event).filter((event) => "lane" in event && event.lane === lane)),
    nowMs,
  });
  const inlined = [...facts, ...tasks, ...machines].map((each) => each.id);
  return { turn, segment, earlier: history.messages, user: { role: "user", text }, inlined };
}
