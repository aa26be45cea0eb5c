// The router's decisions about its own work: what enters the inbox, what makes the next turn, what a failed model call means.
import { asFault, Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import { type Authority, type Lane, lanes, type Principal } from "../protocol/principal.ts";
import { finalStatuses, type Report, type TaskStatus } from "../protocol/task.ts";
import type { DeliveredRow, ThreadRow } from "../protocol/thread.ts";
import { handedBackRule, type Trigger, type Verdict } from "../protocol/trigger.ts";
import { audienceOf } from "./audience.ts";
import { authorityOf, laneOf, rowTaints, taints } from "./authority.ts";
import { estimateTokens, excerpt } from "./context.ts";

/** Items and tokens of one turn, about; the rest waits for the next. */
const maxTurnItems = 40;
const maxTurnTokens = 15_000;
/** What one item may bring into a turn; more is read by recall. */
export const maxItemChars = 8_000;
/** Wrong settings do not heal by themselves: known messages are tried again this often, a new one at once. */
const neverRetryMs = 5 * 60_000;
/** After this many failures in a row people are told that they have to wait. */
const failuresUntilTold = 3;

/** An earlier row of a thread, as the inbox keeps it. */
export type EarlierRow = { id: string; externalId?: string; role: Principal["role"]; name: string; text: string; taints: boolean };

type Queued = {
  id: string;
  lane: Lane;
  threadId: string;
  /** Turns that left it undecided. */
  attempts: number;
  /** Failed model calls in which it stood alone. */
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

/** The router's own small state. */
export type RouterMeta = {
  turn: number;
  /** Raised by whoever takes the loop over; an answer of an older epoch is void. */
  epoch: number;
  leaseUntilMs: number;
  failures: number;
  retryAtMs: number;
  lastRetry: "never" | "later" | null;
  modelNote: string | null;
  /** What people who wait are told; null while it may pass unnoticed. */
  notice: string | null;
  /** One item a turn: somewhere in the queue is one that the model refuses. */
  isolate: boolean;
  segments: Segments;
  /** Which policies each lane's transcript was told of last. */
  policies?: Record<Lane, string>;
  /** Which profiles the team's transcript was told of last. */
  profiles?: string;
  /** Threads that know already that the model cannot be reached. */
  told: string[];
  context: ContextFigures;
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
  isolate: false,
  segments: { team: 1, public: 1 },
  told: [],
  context: { turns: 0, withoutRead: 0, inlined: 0, used: 0 },
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
  const triggers = items.filter((item): item is QueuedTrigger => item.kind === "trigger");
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
};

export type Arrival =
  | { what: "queue"; item: QueuedTrigger }
  /** A worker already has it. */
  | { what: "passed"; triggerId: string }
  /** The gate asked nobody; a worker that ended gave it back. */
  | { what: "record"; item: QueuedTrigger }
  /** Derived of derived messages: a human looks before anything is said. */
  | { what: "too_many_hops"; item: QueuedTrigger };

/** [RT3] What a delivery brings: rows up to the thread's cut belong to a worker, unless the worker gave them back. */
export function arrivals(delivery: Delivery, cutSeq: number): Arrival[] {
  const before = delivery.before.flatMap(earlierRow).slice(-5);
  return delivery.rows.flatMap(({ row }): Arrival[] => {
    if (row.kind !== "trigger") return [];
    if (delivery.releasedBy === undefined && row.seq <= cutSeq) return [{ what: "passed", triggerId: row.trigger.id }];
    const item: QueuedTrigger = {
      kind: "trigger",
      id: row.trigger.id,
      lane: laneOfTrigger(row.trigger),
      threadId: delivery.threadId,
      seq: row.seq,
      attempts: 0,
      tries: 0,
      problem: delivery.releasedBy !== undefined && row.verdict.rule === handedBackRule ? row.verdict.reason : null,
      trigger: row.trigger,
      verdict: row.verdict,
      before,
      tasks: delivery.tasks.slice(-10),
    };
    if (row.verdict.outcome === "ignore" || row.verdict.outcome === "record") return [{ what: "record", item }];
    if (row.trigger.hops > limits.maxHops) return [{ what: "too_many_hops", item }];
    return [{ what: "queue", item }];
  });
}

/** Tokens that an item brings into a turn, about: its text, and the ids and names around it. */
const weightOf = (item: InboxItem): number =>
  100 + estimateTokens((item.kind === "trigger" ? item.trigger.text : item.report.text).slice(0, maxItemChars));

/**
 * [RT4] The next turn: everything that queued in one lane, team first, in the order it came, up to the caps.
 * Threads whose dispatch is not applied yet are held back, and only they.
 */
export function pickTurn(
  queued: readonly InboxItem[],
  held: ReadonlySet<string>,
  meta: Pick<RouterMeta, "isolate" | "retryAtMs" | "lastRetry">,
  nowMs: number,
): { lane: Lane; items: InboxItem[] } | null {
  const waiting = nowMs < meta.retryAtMs;
  if (waiting && meta.lastRetry !== "never") return null;
  for (const lane of lanes) {
    const free = queued.filter((item) => item.lane === lane && !held.has(item.threadId) && !(waiting && item.tries > 0));
    if (free.length === 0) continue;
    if (meta.isolate) return { lane, items: [...free].sort((a, b) => a.tries - b.tries).slice(0, 1) };
    const items: InboxItem[] = [];
    let tokens = 0;
    for (const item of free) {
      tokens += weightOf(item);
      if (items.length > 0 && (items.length >= maxTurnItems || tokens > maxTurnTokens)) break;
      items.push(item);
    }
    return { lane, items };
  }
  return null;
}

/**
 * [RT6] What joins a turn that reads and so has another step: of its lane, while nobody of the team waits behind a public turn, while
 * the whole turn is within the caps, and only while a joined item still has a step to read and one to be decided in.
 */
export function pickJoining(
  queued: readonly InboxItem[],
  held: ReadonlySet<string>,
  meta: Pick<RouterMeta, "isolate" | "retryAtMs" | "lastRetry">,
  turn: { lane: Lane; items: ReadonlyMap<string, InboxItem>; undecided: number; step: number; nowMs: number },
): InboxItem[] {
  if (meta.isolate || turn.step + 1 >= limits.maxRouterStepsPerTurn) return [];
  const next = pickTurn(
    queued.filter((item) => !turn.items.has(item.id)),
    held,
    meta,
    turn.nowMs,
  );
  if (next?.lane !== turn.lane) return [];
  let tokens = [...turn.items.values()].reduce((sum, item) => sum + weightOf(item), 0);
  const room = maxTurnItems - turn.undecided;
  const beyond = next.items.findIndex((item, index) => {
    tokens += weightOf(item);
    return index >= room || tokens > maxTurnTokens;
  });
  return beyond < 0 ? next.items : next.items.slice(0, beyond);
}

export type FaultPlan = {
  meta: RouterMeta;
  /** The items' count of failed calls in which they stood alone goes up. */
  countTries: boolean;
  /** The only item of the turn is what the model refuses: that counts as an attempt. */
  blameItem: boolean;
};

export type FailedTurn = {
  lane: Lane;
  items: number;
  /** The request held no earlier messages. */
  freshSegment: boolean;
  settingsProblem: string | null;
  nowMs: number;
  backOffAtMs: number;
};

/** [RT5] A failed model call loses nothing: the items stay queued, and people hear of it when it lasts. */
export function planModelFault(meta: RouterMeta, error: unknown, turn: FailedTurn): FaultPlan {
  const fault = asFault(error) ?? new Fault("internal", "Something in the router itself failed; it is tried again.", { retry: "later" });
  const failed: RouterMeta = { ...meta, failures: meta.failures + 1, modelNote: fault.message };
  if (fault.retry !== "never") {
    const lasting = failed.failures >= failuresUntilTold;
    return {
      meta: {
        ...failed,
        retryAtMs: Math.max(turn.backOffAtMs, turn.nowMs + (fault.retryAfterMs ?? 0)),
        lastRetry: "later",
        notice: lasting ? "I cannot reach my model right now; your message is kept and I will answer." : null,
      },
      countTries: turn.items === 1 && meta.isolate,
      blameItem: false,
    };
  }
  const notice = `I cannot answer yet. ${fault.message} Your message is kept and I will answer.`;
  const refused: RouterMeta = { ...failed, retryAtMs: turn.nowMs + neverRetryMs, lastRetry: "never" };
  if (turn.settingsProblem !== null || fault.kind === "unauthorised" || fault.kind === "forbidden")
    return { meta: { ...refused, notice }, countTries: true, blameItem: false };
  // It is one of the items, or what was said before, that the model refuses: items one by one, then without the past.
  if (turn.items > 1) return { meta: { ...refused, isolate: true }, countTries: false, blameItem: false };
  if (!turn.freshSegment) {
    const segments = { ...meta.segments, [turn.lane]: meta.segments[turn.lane] + 1 };
    return { meta: { ...refused, isolate: true, segments, retryAtMs: turn.nowMs }, countTries: false, blameItem: false };
  }
  // Only when a call before it went well is it this item, and not everything, that fails.
  return { meta: { ...refused, isolate: true, notice }, countTries: true, blameItem: meta.failures <= 1 };
}

/** After an answer of the model: nothing is wrong any more. */
export const afterModelAnswer = (meta: RouterMeta, stillFailing: boolean): RouterMeta => ({
  ...meta,
  failures: 0,
  retryAtMs: 0,
  lastRetry: null,
  modelNote: null,
  notice: null,
  isolate: meta.isolate && stillFailing,
  told: [],
});

/** Threads of people of the team who asked for something, wait for it, and were not told yet. */
export const threadsToTell = (queued: readonly InboxItem[], told: readonly string[]): QueuedTrigger[] => {
  const seen = new Set(told);
  return queued.filter((item): item is QueuedTrigger => {
    if (item.kind !== "trigger" || item.lane !== "team" || item.verdict.outcome !== "request" || seen.has(item.threadId)) return false;
    seen.add(item.threadId);
    return true;
  });
};
