// What the router's model reads: each waiting thing as a context item, with public text kept out of the team's lane.

import { hiddenTitle, type MarkedText, type RouterItem, type ScheduleItem, type TaskLine } from "../protocol/context-items.ts";
import type { RouterEvent } from "../protocol/events.ts";
import { limits } from "../protocol/limits.ts";
import type { Policy } from "../protocol/policy.ts";
import type { Lane } from "../protocol/principal.ts";
import type { Profile } from "../protocol/profile.ts";
import type { ThreadInfo, ThreadRow } from "../protocol/thread.ts";
import { hasKnownTitle, mayReachAny } from "./audience.ts";
import { excerpt, markData, renderMessage } from "./context.ts";
import { type EarlierRow, type InboxItem, isOpen, type KnownMachine, type KnownTask, maxItemChars, type QueuedTrigger } from "./router.ts";
import { type Fact, factsItem } from "./router-memory.ts";
import { nameOf } from "./router-names.ts";
import { stampOf } from "./speculation.ts";

const recentTasks = 10;
const maxOpenTasks = 60;
const maxObservedChars = 4_000;
const summaryDecisions = 20;

export type TurnInput = {
  turn: number;
  lane: Lane;
  items: readonly InboxItem[];
  tasks: readonly KnownTask[];
  /** Audiences of the items: who reads what this turn says. */
  readers: readonly string[];
  machines: readonly KnownMachine[];
  observed: readonly string[];
  facts?: readonly Fact[];
  /** Only in the team's lane. */
  schedules?: ScheduleItem | undefined;
  /** Null while the transcript's last word on them still holds. */
  policies: readonly Policy[] | null;
  /** The same; only in the team's lane. */
  profiles?: readonly Profile[] | null;
  /** Only at the start of a segment. */
  summary: readonly string[];
  nowMs: number;
};

/** [RI1] One turn as one user message: the same input is always the same bytes. */
export function renderTurn(input: TurnInput): string {
  const items: RouterItem[] = [
    ...(input.summary.length > 0 ? [{ item: "summary" as const, lines: [...input.summary] }] : []),
    ...(input.policies === null ? [] : [{ item: "policies" as const, list: policiesFor(input.lane, input.policies) }]),
    ...(input.profiles ? [{ item: "profiles" as const, list: input.profiles.map(({ name, purpose }) => ({ name, purpose })) }] : []),
    tasksItem(input),
    ...(input.lane === "team" ? [machinesItem(input.machines)] : []),
    ...(input.schedules === undefined ? [] : [input.schedules]),
    ...factsItems(input.facts),
    ...(input.lane === "team" && input.observed.length > 0 ? [{ item: "observed" as const, lines: [...input.observed] }] : []),
    ...problemItems(input.items),
    ...input.items.map((item, index) => renderItem(item, input.lane, nameOf(input.turn, index))),
  ];
  return renderMessage({ turn: input.turn, lane: input.lane }, items);
}

/** [RI11] What joins a turn under way: the items, counted on from those that it has, and what the turn was not told yet. All else of it still holds. */
export const renderJoined = (input: Pick<TurnInput, "turn" | "lane" | "items" | "facts" | "schedules"> & { before: number }): string =>
  renderMessage({ turn: input.turn, lane: input.lane }, [
    ...(input.schedules === undefined ? [] : [input.schedules]),
    ...factsItems(input.facts),
    ...problemItems(input.items),
    ...input.items.map((item, index) => renderItem(item, input.lane, nameOf(input.turn, input.before + index))),
  ]);

const factsItems = (facts: TurnInput["facts"]): RouterItem[] => (facts === undefined || facts.length === 0 ? [] : [factsItem(facts)]);

function renderItem(item: InboxItem, lane: Lane, name: string): RouterItem {
  if (item.kind === "trigger") return triggerItem(item, lane, name);
  const { report } = item;
  return {
    item: "report",
    id: report.id,
    name,
    task: report.taskId,
    title: report.title,
    thread: report.threadId,
    kind: report.kind,
    ...(report.confidence === undefined ? {} : { confidence: report.confidence }),
    ...(report.offer === undefined ? {} : { proposal: report.offer }),
    text: excerpt(report.text, maxItemChars),
  };
}

function triggerItem(item: QueuedTrigger, lane: Lane, name: string): RouterItem {
  const { trigger } = item;
  const { marked, cut } = capped(markData(trigger.text));
  const replyTo = replyOf(item, lane);
  const facts = factsOf(trigger.facts, lane);
  return {
    item: "trigger",
    id: trigger.id,
    name,
    thread: trigger.threadId,
    source: trigger.source,
    place: trigger.place,
    title: titleOf(item, lane),
    kind: trigger.kind,
    from: { role: trigger.principal.role, name: excerpt(trigger.principal.name, 60) },
    verdict: item.verdict.outcome === "request" ? "request" : "candidate",
    addressed: trigger.addressed,
    ...(replyTo === null ? {} : { replyTo }),
    ...(item.before.length > 0 ? { before: item.before.map((row) => earlierOf(row, lane)) } : {}),
    ...(item.tasks.length > 0 ? { tasks: item.tasks } : {}),
    ...(facts === null ? {} : { facts }),
    ...(cut || trigger.truncated ? { truncated: true } : {}),
    ...(item.attempts > 0 ? { attempt: item.attempts + 1 } : {}),
    ...marked,
  };
}

/** All that one item brings is counted together: many small blocks are as long as one large one. */
function capped(marked: MarkedText): { marked: MarkedText; cut: boolean } {
  let room = maxItemChars;
  let cut = false;
  const take = (text: string): string => {
    const taken = room <= 0 && text !== "" ? "…" : excerpt(text, room);
    cut ||= taken !== text;
    room -= taken.length;
    return taken;
  };
  const text = take(marked.text);
  if (marked.data === undefined) return { marked: { text }, cut };
  const data = marked.data.slice(0, 20).map((block) => ({ ...block, text: take(block.text) }));
  return { marked: { text, data }, cut: cut || data.length < marked.data.length };
}

/** [RI2] Whoever opened a thread wrote its title; in the team's lane it is shown only when that is known to be the team or us. */
function titleOf(item: QueuedTrigger, lane: Lane): string {
  const known = lane === "public" || hasKnownTitle(item.trigger);
  return known ? excerpt(item.trigger.threadTitle, 120) : "";
}

const notShown = "(not from the team: read it by recall if you must)";

/** [RI3] A neighbour carries no principal: in the team's lane its words are shown only when an earlier row says who they are from. */
function replyOf(item: QueuedTrigger, lane: Lane): { author: string; text: string } | null {
  const { replyTo } = item.trigger;
  if (!replyTo) return null;
  const row = item.before.find((earlier) => earlier.id === replyTo.id || earlier.externalId === replyTo.id);
  if (lane === "team" && (row === undefined || row.taints)) return { author: row ? row.id : "unknown", text: notShown };
  return { author: excerpt(row?.name ?? replyTo.author, 60), text: excerpt(replyTo.text, 300) };
}

const earlierOf = (row: EarlierRow, lane: Lane): { id: string; from: string; text: string } =>
  lane === "team" && row.taints ? { id: row.id, from: row.role, text: notShown } : { id: row.id, from: row.name, text: row.text };

/** Facts are small and machine-made, but a branch of a fork has its author's words: prose does not pass. */
function factsOf(facts: Record<string, string> | undefined, lane: Lane): Record<string, string> | null {
  const shown = Object.entries(facts ?? {}).filter(([, value]) => lane === "public" || /^[\w./:@#?&=%+~-]{1,200}$/.test(value));
  return shown.length === 0 ? null : Object.fromEntries(shown.map(([key, value]) => [key, excerpt(value, 200)]));
}

/** Tasks in the team's lane are all; in the public lane only those of the threads at hand. */
function tasksItem(input: TurnInput): RouterItem {
  const shown = input.lane === "team" ? input.tasks : input.tasks.filter((task) => concerns(task, input.items));
  const newestFirst = [...shown].sort((a, b) => b.updatedMs - a.updatedMs);
  const isPrivate = (task: KnownTask): boolean => !mayReachAny(task.audience, input.readers);
  const line = (task: KnownTask): TaskLine => ({
    id: task.id,
    // [A9] Of a conversation that nobody here reads only that there is work: not what.
    title: isPrivate(task) ? hiddenTitle : task.title,
    status: task.status,
    thread: task.threadId,
    ...(task.speculative ? { speculative: true } : {}),
    ...(task.machine === null || input.lane === "public" ? {} : { machine: task.machine }),
    // What a task that read public text did last may hold that text.
    line: task.tainted || input.lane === "public" || isPrivate(task) ? "" : task.line,
    minutes: Math.max(0, Math.round(((task.endedMs ?? input.nowMs) - task.startedMs) / 60_000)),
  });
  return {
    item: "tasks",
    open: newestFirst.filter(isOpen).slice(0, maxOpenTasks).map(line),
    recent: newestFirst
      .filter((task) => !isOpen(task))
      .slice(0, recentTasks)
      .map(line),
  };
}

const concerns = (task: KnownTask, items: readonly InboxItem[]): boolean =>
  !task.speculative &&
  items.some((item) =>
    item.kind === "report" ? item.report.taskId === task.id : task.threads.includes(item.threadId) || item.tasks.includes(task.id),
  );

const machinesItem = (machines: readonly KnownMachine[]): RouterItem => ({
  item: "machines",
  list: machines.filter((machine) => !machine.revoked).map(({ id, name, online, workspaces }) => ({ id, name, online, workspaces })),
});

/** Items with the same problem share a line. */
function problemItems(items: readonly InboxItem[]): RouterItem[] {
  const settlesOf = new Map<string, string[]>();
  for (const item of items) {
    if (item.problem === null) continue;
    settlesOf.set(item.problem, [...(settlesOf.get(item.problem) ?? []), item.id]);
  }
  return [...settlesOf].map(([text, settles]) => ({ item: "problem", settles, text }));
}

/** [RI4] A thread that moved, as ids, kinds and counts: no text of it. */
export function observedLine(info: Pick<ThreadInfo, "threadId" | "source" | "place" | "subscribers">, rows: readonly ThreadRow[]): string {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const kind =
      row.kind === "trigger" ? `${row.trigger.kind} by ${row.trigger.principal.role}` : row.kind === "outbound" ? "said" : "topic";
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
  const last = rows.findLast((row) => row.kind === "trigger");
  const tasks = info.subscribers.slice(0, 5).join(" ");
  return `${info.threadId} (${info.source} ${info.place}): ${kinds || "nothing"}${last?.kind === "trigger" ? `; last ${last.trigger.id}` : ""}${tasks ? `; with ${tasks}` : ""}`;
}

/** Lines up to 4 KB together; the others are counted. */
export function capObserved(lines: readonly string[]): string[] {
  const kept: string[] = [];
  let chars = 0;
  for (const line of lines) {
    if (chars + line.length > maxObservedChars) break;
    chars += line.length;
    kept.push(line);
  }
  return kept.length === lines.length ? kept : [...kept, `and ${lines.length - kept.length} more threads`];
}

/** [RI5] The start of a new segment: what this lane decided last, one line each. */
export const summaryLines = (decisions: readonly RouterEvent[]): string[] =>
  decisions
    .flatMap((event) =>
      event.kind === "router.decision"
        ? [
            `turn ${event.turn} ${event.by} ${event.tool} ${event.settles.slice(0, 5).join(" ")}${event.taskId ? ` → ${event.taskId}` : ""}: ${excerpt(event.reason, 160)}`,
          ]
        : [],
    )
    .slice(-summaryDecisions);

/** [RI6] In the public lane only what belongs to the threads at hand may be read. Null when it may be, else the reason. */
export function refuseRecall(lane: Lane, id: string, items: readonly InboxItem[]): string | null {
  if (lane === "team") return null;
  const near = items.some(
    (item) => id === item.threadId || id === item.id || (id.startsWith("trg_") && id.startsWith(`trg_${item.threadId.slice(4)}-`)),
  );
  return near ? null : "Only the threads and reports of this turn can be read here.";
}

export const undecidedProblem = (attempt: number): string =>
  `Still undecided (turn ${attempt} of ${limits.maxDecisionAttempts}). Settle each of these ids with one tool call.`;

/** [G10] The policies as a turn must show them: when they changed, or when a fresh transcript has none yet and some are on. */
export function policiesToShow(policies: readonly Policy[], shown: string, fresh: boolean): readonly Policy[] | null {
  const known = fresh ? "" : shown;
  return policyStamp(policies) === known ? null : policies;
}

/** [SP1] People outside the team cause no speculation: their lane does not know where it may happen. */
const policiesFor = (lane: Lane, policies: readonly Policy[]): Policy[] =>
  policies.map(({ id, version, text, speculation }) => ({
    ...{ id, version, text },
    ...(lane === "public" || speculation === undefined ? {} : { speculation }),
  }));

/** What tells one set of policies from another. */
export const policyStamp = (policies: readonly Policy[]): string => policies.map(stampOf).join(" ");

/** [WP2] The profiles as a turn must show them: where a transcript begins, and when one was added or changed. */
export const profilesToShow = (profiles: readonly Profile[], shown: string, fresh: boolean): readonly Profile[] | null =>
  !fresh && profileStamp(profiles) === shown ? null : profiles;

export const profileStamp = (profiles: readonly Profile[]): string => profiles.map(({ name, version }) => `${name}@${version}`).join(" ");
