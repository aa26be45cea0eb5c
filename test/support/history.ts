// The history checker: reads the event logs of objects and says which invariants they break. It needs no running system,
// and judges only by the logs that it gets: a rule about two objects is checked when both logs are there.
import { ownerOf } from "../../src/core/ids.ts";
import { editionOf } from "../../src/core/thread-editions.ts";
import type { Logged, SwitchyardEvent } from "../../src/protocol/events.ts";
import { limits } from "../../src/protocol/limits.ts";
import { finalStatuses } from "../../src/protocol/task.ts";

export type ObjectLog = { object: string; kind: "thread" | "router" | "task" | "endpoint"; events: Logged[] };

type Kind = SwitchyardEvent["kind"];
type Of<K extends Kind> = Extract<SwitchyardEvent, { kind: K }>;
type Found<K extends Kind> = { seq: number; atMs: number; event: Of<K> };

/** Events of a kind, in their order. */
const only = <K extends Kind>(log: ObjectLog, kind: K): Found<K>[] =>
  log.events.flatMap(({ seq, atMs, event }) => (event.kind === kind ? [{ seq, atMs, event: event as Of<K> }] : []));

/** Values that occur more than once. */
function repeated(values: readonly string[]): string[] {
  const seen = new Set<string>();
  return [...new Set(values.filter((value) => seen.size === seen.add(value).size))];
}

/**
 * The violations in a history at rest, each beginning with the invariant's id; empty when there are none. `events` must be
 * whole logs from their beginning.
 */
export function checkHistory(logs: readonly ObjectLog[]): string[] {
  const of = (kind: ObjectLog["kind"]) => logs.filter((log) => log.kind === kind);
  const history: History = { threads: of("thread"), routers: of("router"), tasks: of("task"), endpoints: of("endpoint") };
  return [
    ...logs.flatMap(gaps),
    ...history.threads.flatMap((log) => [
      ...acceptedOnce(log),
      ...editsAfterOriginals(log),
      ...acceptedAreDecided(log, history),
      ...subscribersGetAll(log, history),
      ...outbound(log, history),
    ]),
    ...history.routers.flatMap((log) => [...decidedOnce(log), ...modelCallsSettle(log), ...decidedByAnswers(log)]),
    ...history.tasks.flatMap((log) => [
      ...entersOnce(log),
      ...allAreRead(log),
      ...steps(log),
      ...seenAtOnce(log),
      ...toolCalls(log),
      ...calledByAnswers(log),
      ...statusChain(log),
      ...endIsTold(log, history),
    ]),
    ...history.endpoints.flatMap((log) => commands(log, history)),
  ];
}

type History = Record<"threads" | "routers" | "tasks" | "endpoints", ObjectLog[]>;

/** [R30] A log is append-only and has no gap. */
function gaps(log: ObjectLog): string[] {
  const at = log.events.findIndex(({ seq }, i) => seq !== i + 1);
  return at < 0 ? [] : [`R30: ${log.object} has a gap in its log: event ${at + 1} has the number ${log.events[at]?.seq}`];
}

/** [R3] One delivery makes one row of a thread. */
function acceptedOnce(log: ObjectLog): string[] {
  const accepted = only(log, "thread.accepted").map(({ event }) => event.trigger);
  return [
    ...repeated(accepted.map(({ id }) => id)).map((id) => `R3: ${id} was accepted twice in ${log.object}`),
    ...repeated(accepted.map(({ source, deliveryId }) => JSON.stringify([source, deliveryId]))).map(
      (key) => `R3: the delivery ${key} was accepted twice in ${log.object}`,
    ),
    ...accepted
      .filter(({ threadId }) => threadId !== log.object)
      .map(({ id }) => `H1: ${id} was accepted in ${log.object}, a foreign thread`),
  ];
}

/** [R1] [R8] A row that somebody is to judge ends decided, escalated, passed, or with a worker. */
function acceptedAreDecided(log: ObjectLog, { routers, tasks }: History): string[] {
  if (routers.length === 0) return [];
  const closed = new Set(
    routers.flatMap((router) => [
      ...only(router, "router.decision").flatMap(({ event }) => event.settles),
      ...only(router, "router.escalated").flatMap(({ event }) => event.ids),
      ...only(router, "router.passed").flatMap(({ event }) => event.triggerIds),
    ]),
  );
  const followers = new Set(only(log, "thread.subscribed").map(({ event }) => event.taskId));
  const unseen = [...followers].some((taskId) => !tasks.some((task) => task.object === taskId));
  return only(log, "thread.accepted").flatMap(({ seq, event }) => {
    const { trigger, verdict, mode } = event;
    const asks = verdict.outcome === "candidate" || verdict.outcome === "request";
    if (!asks || mode === "observe" || closed.has(trigger.id)) return [];
    // A flip hands rows over that the router never saw: some worker has it, maybe one whose log is not here.
    if (unseen || tasks.some((task) => hasRow(task, log.object, seq))) return [];
    return [`R1: ${trigger.id} was accepted in ${log.object} and is neither decided nor with a worker`];
  });
}

const hasRow = (task: ObjectLog, threadId: string, seq: number): boolean =>
  only(task, "task.inbox").some(({ event }) => event.threadId === threadId && event.threadSeq === seq) ||
  only(task, "task.rejected").some(({ event }) => event.threadId === threadId && event.threadSeq === seq) ||
  only(task, "task.released").some(({ event }) => event.threadId === threadId && event.threadSeqs.includes(seq));

/** [R5] Of one text no original is a row after its edit or deletion, unless it has the newest words; what waited for one is a row, or known to be old. */
function editsAfterOriginals(log: ObjectLog): string[] {
  const changed = new Set<string>();
  const late = only(log, "thread.accepted").flatMap(({ event: { trigger } }) => {
    const edition = editionOf(trigger);
    if (edition === null) return [];
    const isLate = edition.what === "original" && changed.has(edition.subject) && trigger.facts?.edited === undefined;
    if (edition.what !== "original") changed.add(edition.subject);
    return isLate ? [`R5: ${trigger.id} is an original after its edit in ${log.object}`] : [];
  });
  const taken = new Set(only(log, "thread.accepted").map(({ event }) => event.trigger.id));
  const lost = only(log, "thread.held").filter(({ event }) => !taken.has(event.trigger.id));
  return [...late, ...lost.map(({ event }) => `R5: ${event.trigger.id} waited for its original in ${log.object}, and is no row`)];
}

/** [R5] [R7] Each subscriber gets each row of its range, in order. */
function subscribersGetAll(log: ObjectLog, { tasks }: History): string[] {
  const rows = log.events.filter(({ event }) => event.kind === "thread.accepted" || event.kind === "thread.outbound").map(({ seq }) => seq);
  const ends = only(log, "thread.unsubscribed");
  return only(log, "thread.subscribed").flatMap(({ seq: at, event: { taskId, fromSeq } }) => {
    const task = tasks.find((each) => each.object === taskId);
    if (!task) return [];
    const end = ends.find((each) => each.event.taskId === taskId && each.seq > at)?.event.atSeq ?? Number.POSITIVE_INFINITY;
    const missing = rows.filter((seq) => seq >= fromSeq && seq <= end && !hasRow(task, log.object, seq));
    const came = only(task, "task.inbox").flatMap(({ event }) => (event.threadId === log.object ? [event.threadSeq ?? 0] : []));
    return [
      ...missing.map((seq) => `R7: row ${seq} of ${log.object} did not reach its subscriber ${taskId}`),
      ...(came.some((seq, i) => seq < (came[i - 1] ?? 0)) ? [`R5: rows of ${log.object} reached ${taskId} out of order`] : []),
    ];
  });
}

/** [R9] [R10] [R11] [H1] What was said: by the router, in the thread that asked, once, and with a known end. */
function outbound(log: ObjectLog, { routers }: History): string[] {
  const decisions = new Set(routers.flatMap((router) => only(router, "router.decision").map(({ event }) => event.decisionId)));
  const said = only(log, "thread.outbound").map(({ event }) => event.outbound);
  const sent = only(log, "thread.sent").map(({ event }) => event.outboundId);
  const confirmed = only(log, "thread.confirmed");
  const words = only(log, "thread.offer_decided").map(({ event }) => event);
  const released = new Set(words.flatMap(({ outboundId, state }) => (state === "released" ? [outboundId] : [])));
  const offered = only(log, "thread.offered").map(({ event }) => event.offer);
  const ended = new Set([
    ...sent,
    ...confirmed.map(({ event }) => event.outboundId),
    ...only(log, "thread.unsent").map(({ event }) => event.outboundId),
  ]);
  const sources = new Set(only(log, "thread.accepted").map(({ event }) => event.trigger.source));
  // In the widget the row is the delivery; elsewhere the ledger must say how it ended.
  const carried = !sources.has("web");
  return [
    ...repeated(said.map(({ id }) => id)).map((id) => `R9: ${id} was said twice in ${log.object}`),
    ...repeated(sent).map((id) => `R9: ${id} was sent twice from ${log.object}`),
    ...repeated(words.map(({ outboundId }) => outboundId)).map((id) => `R9: ${id} was decided twice in ${log.object}`),
    ...confirmed
      .filter(({ event }) => !said.some(({ id }) => id === event.outboundId))
      .map(({ event }) => `R9: ${event.outboundId} was confirmed in ${log.object}, which never said it`),
    ...only(log, "thread.accepted").flatMap(({ event: { trigger, verdict } }) =>
      trigger.facts?.echoOf !== undefined || (trigger.facts?.self === "marked" && verdict.outcome !== "record")
        ? [`R9: what we did ourselves came back to ${log.object} as news: ${trigger.id}`]
        : [],
    ),
    ...offered
      // The release of a draft says nothing: its task makes what was released, and proposes that.
      .filter(({ outbound: { id }, draft }) => (released.has(id) && draft !== true) !== said.some((each) => each.id === id))
      .map(({ outbound: { id } }) => `R9: the offer ${id} was said without a release, or released and not said, in ${log.object}`),
    ...repeated(said.flatMap(({ reportId }) => reportId ?? [])).map((id) => `R9: ${id} was relayed twice in ${log.object}`),
    ...confirmed.flatMap(({ seq, event: { outboundId } }) =>
      only(log, "thread.sent").some((each) => each.event.outboundId === outboundId && each.seq > seq)
        ? [`R9: ${outboundId} was sent again after it was confirmed`]
        : [],
    ),
    ...said.flatMap((each) => [
      ...(carried && !ended.has(each.id) ? [`R10: ${each.id} was neither sent nor visibly given up`] : []),
      ...(each.threadId === log.object ? [] : [`H1: ${each.id} was said in ${log.object}, but is for ${each.threadId}`]),
      ...(routers.length === 0 || released.has(each.id) || (each.decisionId !== undefined && decisions.has(each.decisionId))
        ? []
        : [`R11: ${each.id} was said in ${log.object} without a decision of the router`]),
    ]),
    ...answersToOthers(log, said),
  ];
}

/** [H1] An answer stays in the thread that asked, or in the topic that its trigger opened. */
function answersToOthers(log: ObjectLog, said: readonly Of<"thread.outbound">["outbound"][]): string[] {
  const deliveries = new Set(only(log, "thread.accepted").map(({ event }) => event.trigger.threadKey));
  const isTopic = [...deliveries].some((key) => key.startsWith("topic:"));
  return said.flatMap(({ id, triggerId }) =>
    triggerId === undefined || isTopic || ownerOf(triggerId, "thr") === log.object
      ? []
      : [`H1: ${id} in ${log.object} answers ${triggerId} of another thread`],
  );
}

/** [R3] A trigger is decided in one turn, and once more only if a worker gave it back. */
function decidedOnce(log: ObjectLog): string[] {
  const decisions = only(log, "router.decision");
  const entered = new Map<string, number>();
  for (const { event } of only(log, "router.inbox")) entered.set(event.triggerId, (entered.get(event.triggerId) ?? 0) + 1);
  const turns = new Map<string, Set<string>>();
  for (const { event } of decisions) for (const id of event.settles) turns.set(id, (turns.get(id) ?? new Set()).add(`${event.turn}`));
  return [
    ...repeated(decisions.map(({ event }) => event.decisionId)).map((id) => `R3: the decision ${id} was committed twice`),
    ...[...turns].flatMap(([id, made]) =>
      made.size > Math.max(1, entered.get(id) ?? 1) ? [`R3: ${id} was decided in ${made.size} turns: ${[...made].join(", ")}`] : [],
    ),
    ...repeated(only(log, "router.effect").map(({ event }) => event.effectId)).map((id) => `R9: the effect ${id} ended twice`),
    ...repeated(only(log, "router.report").map(({ event }) => event.report.id)).map((id) => `R3: the report ${id} was taken twice`),
  ];
}

/** [R22] Each settled model call was reserved before. */
function modelCallsSettle(log: ObjectLog): string[] {
  const open = new Map<string, number>();
  return only(log, "router.model").flatMap(({ seq, event: { turn, step, phase } }) => {
    const key = `turn ${turn}, step ${step}`;
    const reserved = open.get(key) ?? 0;
    open.set(key, phase === "reserve" ? reserved + 1 : reserved);
    return phase !== "reserve" && reserved === 0 ? [`R22: ${log.object} settled ${key} at ${seq} without a reservation`] : [];
  });
}

/** [R3] An item enters a worker's context once. */
function entersOnce(log: ObjectLog): string[] {
  const items = only(log, "task.inbox").map(({ event }) => event);
  const rejected = new Set(only(log, "task.rejected").map(({ event }) => event.itemId));
  return [
    ...items.filter(({ itemId }) => rejected.has(itemId)).map(({ itemId }) => `Q8: ${itemId} was both taken and refused by ${log.object}`),
    ...repeated(items.map(({ itemId }) => itemId)).map((id) => `R3: ${id} entered ${log.object} twice`),
    ...repeated(items.flatMap(({ threadId, threadSeq }) => (threadId === undefined ? [] : [`row ${threadSeq ?? 0} of ${threadId}`]))).map(
      (row) => `R3: ${row} entered ${log.object} twice`,
    ),
  ];
}

/** [Q8] What a task that is done had taken was read by a step, taken back, or given back to the router. */
function allAreRead(log: ObjectLog): string[] {
  if (only(log, "task.status").at(-1)?.event.to !== "done") return [];
  const read = new Set(only(log, "task.model").flatMap(({ event }) => event.consumed));
  const held = only(log, "task.backlog").map(({ event }) => event);
  const gone = new Set(held.flatMap((event) => (event.change === "withdraw" ? [event.itemId] : [])));
  return [...new Set(held.map(({ itemId }) => itemId))]
    .filter((id) => !read.has(id) && !gone.has(id))
    .map((id) => `Q8: the queued message ${id} was never read by ${log.object}`);
}

/** [R18] Steps follow each other, each is reserved, answered once, and takes only what is in the inbox and was not taken. */
function steps(log: ObjectLog): string[] {
  const found: string[] = [];
  const inbox = new Set<string>();
  const taken = new Set<string>();
  const reserved = new Set<number>();
  let settled = 0;
  for (const { event } of log.events) {
    if (event.kind === "task.inbox") inbox.add(event.itemId);
    // A person made the call void, or it was refused for good: the next step follows it.
    if ((event.kind === "task.interrupted" || event.kind === "task.left_out") && event.step !== null)
      settled = Math.max(settled, event.step);
    if (event.kind !== "task.model") continue;
    const { step, phase } = event;
    for (const item of event.consumed) {
      if (!inbox.has(item)) found.push(`R18: step ${step} of ${log.object} took ${item}, which never entered`);
      if (taken.has(item)) found.push(`R18: ${item} was taken by two steps of ${log.object}`);
      taken.add(item);
    }
    if (phase === "reserve") {
      if (step <= settled) found.push(`R18: step ${step} of ${log.object} was called again after its answer was committed`);
      reserved.add(step);
    }
    if (phase === "settle") {
      if (!reserved.has(step)) found.push(`R22: step ${step} of ${log.object} was settled without a reservation`);
      if (step !== settled + 1) found.push(`R18: step ${step} of ${log.object} follows step ${settled}`);
      settled = Math.max(settled, step);
    }
  }
  return found;
}

/** [R20] A step takes all that had come before it, but for what a person queued and what is more than one message holds. */
function seenAtOnce(log: ObjectLog): string[] {
  const found: string[] = [];
  const waiting = new Set<string>();
  let begun = 0;
  let ended = false;
  for (const { event } of log.events) {
    // What an ended task gets, or had not read, is no input of its next life: it went back, or was our own word.
    if (event.kind === "task.status") ended = finalStatuses.includes(event.to);
    if (ended) waiting.clear();
    else if (event.kind === "task.inbox") waiting.add(event.itemId);
    if (event.kind === "task.skipped") waiting.delete(event.itemId);
    if (event.kind === "task.backlog") {
      if (event.change === "hold" || event.change === "withdraw") waiting.delete(event.itemId);
      if (event.change === "now" || event.change === "next") waiting.add(event.itemId);
    }
    if (event.kind !== "task.model" || event.phase !== "reserve" || event.step <= begun) continue;
    begun = event.step;
    for (const item of event.consumed) waiting.delete(item);
    if (event.consumed.length < limits.maxStepRows)
      for (const item of waiting) found.push(`R20: ${item} was there before step ${event.step} of ${log.object}, which did not take it`);
  }
  return found;
}

/** [R21] A worker's tools are called by committed answers only, never by one that was lost, void or half. */
function calledByAnswers(log: ObjectLog): string[] {
  const settled = only(log, "task.model").filter(({ event }) => event.phase === "settle");
  return only(log, "task.tool").flatMap(({ seq, event: { step, callId, phase } }) =>
    phase !== "intent" || settled.some((answer) => answer.event.step === step && answer.seq < seq)
      ? []
      : [`R21: the call ${callId} of step ${step} was made by ${log.object} without a committed answer`],
  );
}

/** [R21] The same for the router's decisions. */
function decidedByAnswers(log: ObjectLog): string[] {
  const settled = only(log, "router.model").filter(({ event }) => event.phase === "settle");
  return only(log, "router.decision").flatMap(({ seq, event: { decisionId, turn, by } }) =>
    by === "code" || settled.some((answer) => answer.event.turn === turn && answer.seq < seq)
      ? []
      : [`R21: ${decisionId} was decided in turn ${turn} without a committed answer`],
  );
}

/** [R19] Each tool call has one result; [R18] a finished one is not made again. */
function toolCalls(log: ObjectLog): string[] {
  const calls = only(log, "task.tool").map(({ event }) => ({ ...event, key: `${event.callId} of step ${event.step}` }));
  const keys = (phases: readonly string[]) => calls.filter(({ phase }) => phases.includes(phase)).map(({ key }) => key);
  const results = new Set(keys(["done", "refused"]));
  const last = only(log, "task.status").at(-1)?.event.to;
  return [
    ...repeated(keys(["intent"])).map((key) => `R18: the call ${key} was made twice by ${log.object}`),
    ...repeated(keys(["done", "refused"])).map((key) => `R19: the call ${key} of ${log.object} has two results`),
    // A cancelled task has no next request in which a result could be missing.
    ...(last === "done" ? keys(["intent"]).filter((key) => !results.has(key)) : []).map(
      (key) => `R19: the call ${key} of ${log.object} has no result`,
    ),
  ];
}

/** A status follows from the one before, and a final one stays. */
function statusChain(log: ObjectLog): string[] {
  let now: Of<"task.status">["from"] = "new";
  const reopened = only(log, "task.reopened").map(({ seq }) => seq);
  let last = 0;
  return only(log, "task.status").flatMap(({ seq, event: { from, to } }) => {
    const again = reopened.some((each) => each > last && each <= seq);
    last = seq;
    const found = [
      ...(from === now ? [] : [`R8: ${log.object} went from ${from} to ${to}, but was ${now}`]),
      ...(now !== "new" && finalStatuses.includes(now) && !again ? [`R17: ${log.object} went from ${now} to ${to} after its end`] : []),
    ];
    now = to;
    return found;
  });
}

/** [Q17] The end of a task that the router started is a row of the router's inbox. */
function endIsTold(log: ObjectLog, { routers }: History): string[] {
  const started = routers.some((router) =>
    only(router, "router.decision").some(({ event }) => event.tool === "dispatch" && event.taskId === log.object),
  );
  const last = only(log, "task.status").at(-1)?.event.to;
  if (!started || last === undefined || !finalStatuses.includes(last)) return [];
  const told = new Set(routers.flatMap((router) => only(router, "router.report").map(({ event }) => event.report.id)));
  const ends = only(log, "task.report").flatMap(({ event: { report } }) => (finalStatuses.includes(report.status) ? [report.id] : []));
  const untold = ends.filter((id) => !told.has(id)).map((id) => `Q17: the router never got ${id}, the end of ${log.object}`);
  return ends.length === 0 ? [`Q17: ${log.object} ended as ${last} and reported it to nobody`] : untold;
}

const order = ["queued", "sent", "accepted", "started", "settled"] as const;

/** [R12] [R17] A command is started once, settled once, and nothing of it happens after that. */
function commands(log: ObjectLog, { tasks }: History): string[] {
  const byId = new Map<string, Of<"endpoint.command">[]>();
  for (const { event } of only(log, "endpoint.command")) byId.set(event.commandId, [...(byId.get(event.commandId) ?? []), event]);
  return [...byId].flatMap(([id, events]) => {
    const found: string[] = [];
    const count = (state: string): number => events.filter((event) => event.state === state).length;
    if (count("started") > 1) found.push(`R12: ${id} was started twice`);
    if (count("settled") > 1) found.push(`R12: ${id} was settled twice`);
    const end = events.findIndex((event) => event.state === "settled");
    const after = end < 0 ? undefined : events[end + 1];
    if (after) found.push(`R12: ${id} was ${after.state} after it was settled`);
    let furthest = -1;
    for (const { state } of events) {
      const at = order.indexOf(state);
      // After a reconnect a command may be sent again while it is only sent; once it started, never.
      if (state === "sent" && furthest >= order.indexOf("started")) found.push(`R12: ${id} was sent again after it was started`);
      furthest = Math.max(furthest, at);
    }
    const task = tasks.find((each) => each.object === events[0]?.taskId);
    if (!task) return found;
    if (!only(task, "task.tool").some(({ event }) => event.phase === "intent" && event.commandId === id))
      found.push(`R12: ${id} ran without a call of ${task.object}`);
    if (end >= 0 && !only(task, "task.inbox").some(({ event }) => event.item === "result" && event.itemId.includes(id)))
      found.push(`R12: the result of ${id} did not reach ${task.object}`);
    return found;
  });
}
