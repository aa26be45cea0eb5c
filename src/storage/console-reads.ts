// What the console reads: lists from D1, and the events of several objects as one story. Nothing here changes anything.
import { desc } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { ownerOf } from "../core/ids.ts";
import { topicThreadIdOf, webSource } from "../core/thread.ts";
import { mergeTimeline } from "../core/timeline.ts";
import type { BoardDecision, BoardTask } from "../protocol/board.ts";
import type {
  DecisionAnswer,
  EndpointRow,
  TaskAnswer,
  ThreadsAnswer,
  TimelineEntry,
  TimelineLane,
  WhyAnswer,
} from "../protocol/console.ts";
import type { Logged, RouterEvent, SwitchyardEvent } from "../protocol/events.ts";
import type { EndpointRpc, ObjectRpc, RouterRpc, ThreadRpc, WorkerSessionRpc } from "../protocol/rpc.ts";
import type { TaskCard } from "../protocol/task.ts";
import { endpoints, tasks, threads } from "./d1-schema.ts";

/** The objects that are read, by id; the doors give their stubs. */
export type Objects = {
  thread(id: string): ThreadRpc;
  worker(id: string): WorkerSessionRpc;
  endpoint(id: string): EndpointRpc;
  router: RouterRpc;
};

const routerId = "router";
const pageRows = 500;
/** Events of one object in one answer. */
const maxEvents = 2000;

/** The newest tasks of the index. */
export async function listTasks(db: D1Database, limit: number): Promise<BoardTask[]> {
  const rows = await drizzle(db).select().from(tasks).orderBy(desc(tasks.updatedMs)).limit(limit);
  return rows.map(({ card, source, place, askedBy }) => ({ ...(JSON.parse(card) as TaskCard), source, place, askedBy }));
}

/** The threads that heard something last. They are not counted: pages read this while they are open. */
export async function listThreads(db: D1Database, limit: number): Promise<ThreadsAnswer> {
  const { id, source, place, threadKey, title, updatedMs } = threads;
  const rows = await drizzle(db)
    .select({ id, source, place, threadKey, title, updatedMs })
    .from(threads)
    .orderBy(desc(updatedMs), id)
    .limit(limit + 1);
  return { threads: rows.slice(0, limit), more: rows.length > limit };
}

/** Tasks that began since then, by the day of where `offsetMs` is set: a task that began lately changed lately, which has an index. */
export async function tasksByDay(
  db: D1Database,
  { sinceMs, offsetMs }: { sinceMs: number; offsetMs: number },
): Promise<{ day: number; tasks: number; failed: number }[]> {
  const began = "json_extract(card, '$.startedMs')";
  const query = `SELECT CAST((${began} + ?1) / 86400000 AS INTEGER) AS day, COUNT(*) AS tasks,
    SUM(json_extract(card, '$.status') = 'failed') AS failed FROM tasks WHERE updated_ms >= ?2 AND ${began} >= ?2 GROUP BY 1`;
  const { results } = await db.prepare(query).bind(offsetMs, sinceMs).all<{ day: number; tasks: number; failed: number }>();
  return results;
}

/** Machines that were ever enrolled, the newest first. */
export async function listEndpoints(db: D1Database): Promise<EndpointRow[]> {
  const rows = await drizzle(db).select().from(endpoints).orderBy(desc(endpoints.createdMs));
  return rows.map(({ id, ...row }) => ({ endpointId: id, ...row }));
}

type Read = { lane: TimelineLane; object: string; from: ObjectRpc; about?: string | undefined };

async function readEvents({ lane, object, from, about }: Read): Promise<{ entries: TimelineEntry[]; cut: boolean }> {
  const entries: TimelineEntry[] = [];
  let afterSeq = 0;
  while (entries.length < maxEvents) {
    const page = await from.events({ afterSeq, limit: pageRows, ...(about === undefined ? {} : { about }) });
    entries.push(...page.map((logged) => ({ ...logged, lane, object })));
    afterSeq = page.at(-1)?.seq ?? afterSeq;
    if (page.length < pageRows) return { entries, cut: false };
  }
  return { entries, cut: true };
}

const decisionsIn = (entries: readonly { event: SwitchyardEvent }[]) =>
  entries.flatMap(({ event }) => (event.kind === "router.decision" ? [event] : []));

/** A task with everything that happened about it; null when there is no such task. */
export async function readTask(objects: Objects, taskId: string): Promise<Omit<TaskAnswer, "dollars"> | null> {
  const worker = objects.worker(taskId);
  const described = await worker.describe();
  if (!described) return null;
  const { start } = described;
  const thread = objects.thread(start.threadId);
  const isTopic = start.source === webSource && start.threadId === topicThreadIdOf(taskId, start.place);
  const first = await Promise.all([
    readEvents({ lane: "worker", object: taskId, from: worker }),
    // All of a topic is about its task; in a shared thread only what names it.
    readEvents({ lane: "thread", object: start.threadId, from: thread, about: isTopic ? undefined : taskId }),
    readEvents({ lane: "thread", object: start.threadId, from: thread, about: start.quote.triggerId }),
    readEvents({ lane: "router", object: routerId, from: objects.router, about: taskId }),
    readEvents({ lane: "router", object: routerId, from: objects.router, about: start.decisionId }),
    ...(start.endpoint === null
      ? []
      : [
          readEvents({
            lane: "machine",
            object: start.endpoint.endpointId,
            from: objects.endpoint(start.endpoint.endpointId),
            about: taskId,
          }),
        ]),
  ]);
  // What the decision settled: the row in the place where it was asked, and its way through the router.
  const settled =
    decisionsIn(first.flatMap(({ entries }) => entries)).find((event) => event.decisionId === start.decisionId)?.settles ?? [];
  const asked = settled.filter((id) => id.startsWith("trg_"));
  const second = await Promise.all(
    asked.flatMap((triggerId) => {
      const threadId = ownerOf(triggerId, "thr");
      return [
        readEvents({ lane: "router", object: routerId, from: objects.router, about: triggerId }),
        ...(threadId === null ? [] : [readEvents({ lane: "thread", object: threadId, from: objects.thread(threadId), about: triggerId })]),
      ];
    }),
  );
  const reads = [...first, ...second];
  return { ...described, timeline: mergeTimeline(reads.map(({ entries }) => entries)), cut: reads.some(({ cut }) => cut) };
}

const toBoardDecision = (event: Extract<RouterEvent, { kind: "router.decision" }>, atMs: number): BoardDecision => ({
  decisionId: event.decisionId,
  atMs,
  tool: event.tool,
  reason: event.reason,
  lane: event.lane,
  by: event.by,
  settles: event.settles,
  ...(event.taskId === undefined ? {} : { taskId: event.taskId }),
  ...(event.threadId === undefined ? {} : { threadId: event.threadId }),
});

/** A decision and what came of it; null when the router made no such decision. */
export async function readDecision(objects: Objects, decisionId: string): Promise<DecisionAnswer | null> {
  const { entries } = await readEvents({ lane: "router", object: routerId, from: objects.router, about: decisionId });
  for (const { event, atMs } of entries)
    if (event.kind === "router.decision" && event.decisionId === decisionId)
      return {
        decision: { ...event, atMs },
        events: entries.map(({ seq, atMs: at, event: logged }): Logged => ({ seq, atMs: at, event: logged })),
      };
  return null;
}

/** Each step that a trigger took; null when it is not stored. */
export async function readWhy(objects: Objects, triggerId: string): Promise<WhyAnswer | null> {
  const threadId = ownerOf(triggerId, "thr");
  if (threadId === null) return null;
  const thread = objects.thread(threadId);
  const row = await thread.row({ triggerId });
  if (row?.kind !== "trigger") return null;
  const [said, decided] = await Promise.all([
    readEvents({ lane: "thread", object: threadId, from: thread, about: triggerId }),
    readEvents({ lane: "router", object: routerId, from: objects.router, about: triggerId }),
  ]);
  const accepted = said.entries.flatMap(({ event }) =>
    event.kind === "thread.accepted" && event.trigger.id === triggerId ? [event] : [],
  )[0];
  const answers = said.entries.flatMap(({ event }) =>
    event.kind === "thread.outbound" && event.outbound.triggerId === triggerId ? [event.outbound.id] : [],
  );
  const replies = await Promise.all(answers.map((id) => thread.row({ triggerId: id })));
  return {
    trigger: row.trigger,
    verdict: row.verdict,
    threadId,
    seq: row.seq,
    acceptedMs: row.atMs,
    subscribers: accepted?.subscribers ?? [],
    decisions: decided.entries.flatMap(({ event, atMs }) =>
      event.kind === "router.decision" && event.settles.includes(triggerId)
        ? [{ ...toBoardDecision(event, atMs), authority: event.authority }]
        : [],
    ),
    refusals: decided.entries.flatMap(({ event, atMs }) =>
      event.kind === "router.refused" && event.settles.includes(triggerId) ? [{ atMs, tool: event.tool, reason: event.reason }] : [],
    ),
    escalated:
      decided.entries
        .flatMap(({ event, atMs }) => (event.kind === "router.escalated" ? [{ atMs, question: event.question }] : []))
        .at(-1) ?? null,
    replies: replies.flatMap((reply) => (reply?.kind === "outbound" ? [reply] : [])),
  };
}
