// The router's decisions about its own work: what enters the inbox, what makes the next turn, what a failed model call means.
import { limits } from "../protocol/limits.ts";
import { type Authority, type Lane, lanes, type Principal } from "../protocol/principal.ts";
import { finalStatuses, type Report, type TaskStatus } from "../protocol/task.ts";
import type { DeliveredRow, ThreadRow } from "../protocol/thread.ts";
import { handedBackRule, type Trigger, type Verdict } from "../protocol/trigger.ts";
import { audienceOf } from "./audience.ts";
import { authorityOf, isPerson, laneOf, rowTaints, taints } from "./authority.ts";
import { estimateTokens, excerpt } from "./context.ts";
import { providerTokens } from "./token-rate.ts";

/** What one item may bring into a turn; more is read by recall. */
export const maxItemChars = 8_000;
/** An item that waits apart goes before the others once it is overdue by this. */
const patienceMs = 60_000;

/** An earlier row of a thread, as the inbox keeps it. */
export type EarlierRow = { id: string; externalId?: string; role: Principal["role"]; name: string; text: string; taints: boolean };

type Queued = {
  id: string;
  lane: Lane;
  threadId: string;
  /** Turns that left it undecided. */
  attempts: number;
  /** Model calls that failed because of it: from the first on it waits apart from the others. */
  tries: number;
  /** Why the last turn did not settle it. */
  problem: string | null;
};
export type QueuedTrigger = Queued & {
  kind: "trigger";
  seq: number;
  trigger: Trigger;
  verdict: Verdict;
  before: EarlierRow[];
  tasks: string[];
};
export type QueuedReport = Queued & { kind: "report"; report: Report };
export type InboxItem = QueuedTrigger | QueuedReport;

export type KnownTask = {
  id: string;
  title: string;
  /** Where its answer goes. */
  threadId: string;
  /** All threads that pass through to it, `threadId` included. */
  threads: string[];
  decisionId: string;
  authority: Authority;
  tainted: boolean;
  status: TaskStatus;
  line: string;
  machine: string | null;
  source: string;
  place: string;
  /** Who reads its answer: see audience.ts. */
  audience: string;
  hops: number;
  startedMs: number;
  updatedMs: number;
  endedMs: number | null;
  /** Nobody asked for it. */
  speculative?: boolean;
  /** Its profile, and the beginning of its goal: the same is not tried twice. */
  profile?: string;
  goal?: string;
  /** How often it was tried again, and on another way: another machine or profile. */
  retries?: number;
  reroutes?: number;
};

export type KnownMachine = {
  id: string;
  name: string;
  online: boolean;
  workspaces: string[];
  revoked: boolean;
  revision: number;
  seenMs: number;
};

/** How well the inlined context served: turns, those that read nothing more, ids inlined, and ids that decisions named. */
export type ContextFigures = { turns: number; withoutRead: number; inlined: number; used: number };

type Segments = Record<Lane, number>;

/** What a lane's failed calls say of its next turn. */
export type Doubt = {
  /** In a row. */
  failures: number;
  /** No turn of this lane before. */
  untilMs: number;
  /** Items of its next turn at most: among them is one that the model refuses. Null: as many as wait. */
  width: number | null;
};

/** The turn under way, as far as its last request. `step` is 0 before the first. */
export type UnderWay = { turn: number; step: number; lane: Lane; ids: string[] };

export const noDoubt: Doubt = { failures: 0, untilMs: 0, width: null };

/** The router's own small state. */
export type RouterMeta = {
  turn: number;
  /** Raised by whoever takes the loop over; an answer of an older epoch is void. */
  epoch: number;
  leaseUntilMs: number;
  failures: number;
  retryAtMs: number;
  lastRetry: "never" | "later" | null;
  /** For operators. */
  modelNote: string | null;
  /** What people who wait are told, whoever reads it; null while it may pass unnoticed. */
  notice: string | null;
  doubts: Record<Lane, Doubt>;
  /** No turn of an item that waits apart before. */
  apartMs: number;
  /** Written with the lease. What a new loop finds here never came to its end. */
  underWay: UnderWay | null;
  segments: Segments;
  /** The last turn that may have read what was forgotten since: what it decided is in no summary and in no index. */
  forgotTurn?: number;
  /** Which policies each lane's transcript was told of last. */
  policies?: Record<Lane, string>;
  /** Which profiles the team's transcript was told of last. */
  profiles?: string;
  /** Threads that know already that the model cannot be reached. */
  told: string[];
  context: ContextFigures;
  /** How many tokens the provider counts for one that we estimate, in the last request. */
  tokenRate: number;
};

export const freshMeta: RouterMeta = {
  turn: 0,
  epoch: 0,
  leaseUntilMs: 0,
  failures: 0,
  retryAtMs: 0,
  lastRetry: null,
  modelNote: null,
  notice: null,
  doubts: { team: noDoubt, public: noDoubt },
  apartMs: 0,
  underWay: null,
  segments: { team: 1, public: 1 },
  told: [],
  context: { turns: 0, withoutRead: 0, inlined: 0, used: 0 },
  tokenRate: 1,
};

export const isOpen = (task: Pick<KnownTask, "status">): boolean => !finalStatuses.includes(task.status);

/** [RT1] A row's lane is that of the principal behind it. */
export const laneOfTrigger = (trigger: Trigger): Lane => laneOf(authorityOf(trigger.principal));

/** [RT2] A report of a task that read public text belongs to the public lane, whoever asked for the task. */
export const laneOfReport = (report: Pick<Report, "authority" | "tainted">): Lane => (report.tainted ? "public" : laneOf(report.authority));

/** [A8] Who reads what is answered to an item. */
export const audienceOfItem = (item: InboxItem, ofTask: (taskId: string) => string | undefined): string =>
  item.kind === "trigger" ? audienceOf(item.trigger) : (ofTask(item.report.taskId) ?? item.threadId);

export const readersOf = (items: readonly InboxItem[], ofTask: (taskId: string) => string | undefined): string[] => [
  ...new Set(items.map((item) => audienceOfItem(item, ofTask))),
];

/** [RD14] Whether nobody asked: all that is settled was said to others, and the router chose to act on it. */
export const isUnasked = (items: readonly InboxItem[]): boolean => {
  const triggers = items.filter((item) => item.kind === "trigger");
  return triggers.length > 0 && triggers.every(({ trigger, verdict }) => verdict.outcome === "candidate" && !trigger.addressed);
};

const earlierChars = 50;

function earlierRow(row: ThreadRow): EarlierRow[] {
  switch (row.kind) {
    case "trigger": {
      const { trigger } = row;
      return [
        {
          id: trigger.id,
          ...(trigger.externalId === undefined ? {} : { externalId: trigger.externalId }),
          role: trigger.principal.role,
          name: excerpt(trigger.principal.name, 60),
          text: excerpt(trigger.text, earlierChars),
          taints: taints(trigger.principal),
        },
      ];
    }
    case "outbound":
      return [{ id: row.outbound.id, role: "agent", name: "you", text: excerpt(row.outbound.text, earlierChars), taints: rowTaints(row) }];
    case "topic":
      return [];
  }
}

export type Delivery = {
  threadId: string;
  rows: DeliveredRow[];
  before: ThreadRow[];
  tasks: string[];
  releasedBy?: string;
  again?: string;
};

/** What the model is told of it. */
const againWords = "An operator asks for a decision about this: look at it anew.";

export type Arrival =
  | { what: "queue"; item: QueuedTrigger }
  /** A worker already has it. */
  | { what: "passed"; triggerId: string }
  /** The gate asked nobody; a worker that ended gave it back. */
  | { what: "record"; item: QueuedTrigger }
  /** Derived of derived messages: a human looks before anything is said. */
  | { what: "too_many_hops"; item: QueuedTrigger };

export const tooManyHops = { message: `This went back and forth between programs more than ${limits.maxHops} times.` };

/** [RT3] What a delivery brings: rows up to the thread's cut belong to a worker, unless the worker gave them back, [RT8] or an operator asks. */
export function arrivals(delivery: Delivery, cutSeq: number): Arrival[] {
  const before = delivery.before.flatMap(earlierRow).slice(-5);
  return delivery.rows.flatMap(({ row }): Arrival[] => {
    if (row.kind !== "trigger") return [];
    if (delivery.releasedBy === undefined && delivery.again === undefined && row.seq <= cutSeq)
      return [{ what: "passed", triggerId: row.trigger.id }];
    const item: QueuedTrigger = {
      kind: "trigger",
      id: row.trigger.id,
      lane: laneOfTrigger(row.trigger),
      threadId: delivery.threadId,
      seq: row.seq,
      attempts: 0,
      tries: 0,
      problem:
        delivery.again !== undefined
          ? againWords
          : delivery.releasedBy !== undefined && row.verdict.rule === handedBackRule
            ? row.verdict.reason
            : null,
      trigger: row.trigger,
      verdict: row.verdict,
      before,
      tasks: delivery.tasks.slice(-10),
    };
    if (row.verdict.outcome === "ignore" || row.verdict.outcome === "record") return [{ what: "record", item }];
    if (row.trigger.hops > limits.maxHops && delivery.again === undefined) return [{ what: "too_many_hops", item }];
    return [{ what: "queue", item }];
  });
}

/** Tokens that an item brings into a turn, about: its text, and the ids and names around it. */
const weightOf = (item: InboxItem, rate: number): number =>
  providerTokens(100 + estimateTokens((item.kind === "trigger" ? item.trigger.text : item.report.text).slice(0, maxItemChars)), rate);

type Waits = Pick<RouterMeta, "retryAtMs" | "doubts" | "apartMs" | "tokenRate">;

export type PickedTurn = { lane: Lane; items: InboxItem[] };

/** [RT4] What of these fits, in the order they came: the one that waited longest, then what people say, then the rest. */
function fitting(items: readonly InboxItem[], room: { items: number; tokens: number }, rate: number): InboxItem[] {
  const [first, ...others] = items;
  const ofPeople = (item: InboxItem): boolean => item.kind === "trigger" && isPerson(item.trigger.principal);
  const inTurn = [...(first === undefined ? [] : [first]), ...others.filter(ofPeople), ...others.filter((item) => !ofPeople(item))];
  let tokens = 0;
  const beyond = inTurn.findIndex((item, index) => {
    tokens += weightOf(item, rate);
    return index >= room.items || tokens > room.tokens;
  });
  const fit = new Set(beyond < 0 ? inTurn : inTurn.slice(0, beyond));
  return items.filter((item) => fit.has(item));
}

/**
 * [RT4] The next turn: everything that queued in one lane, team first, in the order it came, up to the caps; where these bite, people first.
 * Threads whose dispatch is not applied yet are held back, and only they. [RT7] An item that the model refuses goes alone.
 */
export function pickTurn(queued: readonly InboxItem[], held: ReadonlySet<string>, meta: Waits, nowMs: number): PickedTurn | null {
  const free = queued.filter((item) => !held.has(item.threadId) && nowMs >= mayGoMs({ ...item, tries: 0 }, meta));
  const [apart] = free.filter((item) => item.tries > 0).sort((a, b) => a.tries - b.tries);
  const alone = apart === undefined || nowMs < meta.apartMs ? null : { lane: apart.lane, items: [apart] };
  if (alone !== null && nowMs >= meta.apartMs + patienceMs) return alone;
  for (const lane of lanes) {
    const waiting = free.filter((each) => each.lane === lane && each.tries === 0);
    const room = { items: meta.doubts[lane].width ?? limits.maxTurnItems, tokens: limits.maxTurnTokens };
    const items = fitting(waiting, room, meta.tokenRate);
    // One that is larger than the cap goes alone.
    if (waiting.length > 0) return { lane, items: items.length > 0 ? items : waiting.slice(0, 1) };
  }
  return alone;
}

const mayGoMs = ({ lane, tries }: Pick<InboxItem, "lane" | "tries">, meta: Waits): number =>
  Math.max(meta.retryAtMs, meta.doubts[lane].untilMs, tries > 0 ? meta.apartMs : 0);

/** When the first of these may be in a turn. */
export const nextTurnMs = (queued: readonly InboxItem[], held: ReadonlySet<string>, meta: Waits): number =>
  Math.min(...queued.filter((item) => !held.has(item.threadId)).map((item) => mayGoMs(item, meta)));

/**
 * [RT6] What joins a turn that reads and so has another step: of its lane, while nobody of the team waits behind a public turn, while
 * the whole turn is within the caps, and only while a joined item still has a step to read and one to be decided in.
 */
export function pickJoining(
  queued: readonly InboxItem[],
  held: ReadonlySet<string>,
  meta: Waits,
  turn: { lane: Lane; items: ReadonlyMap<string, InboxItem>; undecided: number; step: number; nowMs: number },
): InboxItem[] {
  const alone = meta.doubts[turn.lane].width !== null || [...turn.items.values()].some((item) => item.tries > 0);
  if (alone || turn.step + 1 >= limits.maxRouterStepsPerTurn) return [];
  const next = pickTurn(
    queued.filter((item) => item.tries === 0 && !turn.items.has(item.id)),
    held,
    meta,
    turn.nowMs,
  );
  if (next?.lane !== turn.lane) return [];
  const tokens = [...turn.items.values()].reduce((sum, item) => sum + weightOf(item, meta.tokenRate), 0);
  const room = { items: limits.maxTurnItems - turn.undecided, tokens: limits.maxTurnTokens - tokens };
  return fitting(next.items, room, meta.tokenRate);
}
