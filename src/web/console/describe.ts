// An event of the log as a line that a person can read. The log stays the truth; this is only its wording.
import type { SwitchyardEvent } from "../../protocol/events.ts";
import type { Tone } from "../shared/status.ts";
import { duration } from "../shared/time.ts";
import { outcomeWords } from "./rules-model.ts";
import { asTitle, decisionWords, toolWords } from "./tool-words.ts";

/** `detail`: true and rarely asked for; hidden at first. */
export const filters = ["said", "decided", "model", "work", "detail"] as const;
export type Filter = (typeof filters)[number];

export type Line = {
  filter: Filter;
  text: string;
  /** More, shown smaller: reasons, what was said, what ran. */
  detail?: string;
  tone?: Tone;
  ids: string[];
};

const compact = (ids: readonly (string | undefined)[]): string[] => [
  ...new Set(ids.filter((id): id is string => id !== undefined && id !== "")),
];

const usageText = (event: { ms?: number; usage?: { inputTokens: number; outputTokens: number } | null }): string => {
  const parts = [
    event.ms === undefined ? "" : `${(event.ms / 1000).toFixed(1)} s`,
    event.usage ? `${event.usage.inputTokens} + ${event.usage.outputTokens} tokens` : "",
  ];
  return parts.filter(Boolean).join(", ");
};

const withDetail = (line: Line, detail: string | undefined): Line => (detail === undefined || detail === "" ? line : { ...line, detail });

function describeModel(
  who: string,
  event: { model: string; phase: string; ms?: number; usage?: { inputTokens: number; outputTokens: number } | null; error?: string },
): Line {
  switch (event.phase) {
    case "reserve":
      return { filter: "detail", text: `${who} asks the model ${event.model}`, ids: [] };
    case "settle":
      return withDetail({ filter: "model", text: `${who} asked the model ${event.model}`, ids: [] }, usageText(event));
    case "superseded":
      return { filter: "model", text: "The answer came too late and was not used", tone: "wait", ids: [] };
    default:
      // It is made again; a task or a turn that ends because of it says so itself.
      return withDetail({ filter: "model", text: "The model call failed", tone: "wait", ids: [] }, event.error);
  }
}

/** One line for one event. */
export function describeEvent(event: SwitchyardEvent): Line {
  switch (event.kind) {
    case "thread.accepted": {
      const { trigger, verdict } = event;
      const way = event.subscribers.length > 0 ? "passed through to its task" : `gate: ${outcomeWords[verdict.outcome]} (${verdict.rule})`;
      return withDetail(
        { filter: "said", text: `${trigger.principal.name} (${trigger.principal.role}), ${trigger.kind} — ${way}`, ids: [trigger.id] },
        trigger.text,
      );
    }
    case "thread.held":
      return { filter: "detail", text: `${event.trigger.kind} came before its original and waits for it`, ids: [event.trigger.id] };
    case "thread.stale":
      return {
        filter: "detail",
        text: `${event.trigger.kind} came after a newer version of the same words: kept, and shown to nobody`,
        ids: [event.trigger.id, event.newer],
      };
    case "thread.duplicate":
      return {
        filter: "detail",
        text: `Came again and was not taken twice${event.of ? `: duplicate of ${event.of} by its ${event.by}` : ""}`,
        ids: [event.triggerId],
      };
    case "thread.subscribed":
      return { filter: "detail", text: "The thread now passes through to the task", ids: compact([event.taskId, event.decisionId]) };
    case "thread.unsubscribed":
      return withDetail({ filter: "detail", text: "The thread no longer passes through to the task", ids: [event.taskId] }, event.reason);
    case "thread.topic":
      return withDetail(
        { filter: "detail", text: "The task got a topic of its own", ids: compact([event.topicThreadId, event.triggerId]) },
        event.title,
      );
    case "thread.outbound":
      return withDetail(
        {
          filter: "said",
          text: `To be said (${event.outbound.kind})`,
          ids: compact([event.outbound.id, event.outbound.decisionId, event.outbound.reportId]),
        },
        event.outbound.text,
      );
    case "thread.offered":
      return withDetail(
        { filter: "said", text: `Proposed, waits for a release: ${event.offer.title}`, tone: "wait", ids: [event.offer.outbound.id] },
        event.offer.outbound.text,
      );
    case "thread.offer_decided":
      return withDetail(
        {
          filter: "decided",
          text: `The proposal was ${event.state} by ${event.by.name}`,
          tone: event.state === "released" ? "good" : "quiet",
          ids: [event.outboundId],
        },
        event.reason,
      );
    case "thread.sent":
      return { filter: "said", text: "Sent", tone: "good", ids: [event.outboundId] };
    case "thread.confirmed":
      return { filter: "said", text: "Its arrival was confirmed", tone: "good", ids: [event.outboundId] };
    case "thread.unsent":
      return withDetail({ filter: "said", text: `Not sent: ${event.state}`, tone: "bad", ids: [event.outboundId] }, event.reason);
    case "thread.accepted_outcome":
      return {
        filter: "said",
        text: `${event.by.name} ${event.accepted ? "accepted" : "rejected"} the result${event.reaction ? ` by a reaction (${event.reaction.sign})` : ""}`,
        tone: event.accepted ? "good" : "bad",
        ids: [event.taskId, ...(event.reaction ? [event.reaction.to] : [])],
      };
    case "thread.marked":
      return {
        filter: "said",
        text: `${event.by.name} says that this was ${event.wrong ? "not wanted" : "right after all"}`,
        tone: event.wrong ? "bad" : "quiet",
        ids: [event.outboundId],
      };
    case "thread.released":
      return {
        filter: "detail",
        text: event.free.length > 0 ? "The task gave rows back to the router" : "The task gave rows up; another still has them",
        ids: [event.taskId],
      };
    case "thread.note":
      return withDetail({ filter: "work", text: `Notes a ${event.note.kind}`, ids: [event.note.taskId] }, event.note.text);
    case "task.reopened":
      return withDetail({ filter: "work", text: `Opened again by ${event.by.name}`, ids: [event.id] }, event.text);
    case "router.inbox":
      return event.again === undefined
        ? { filter: "detail", text: `Waits for the router's next turn (${event.lane} lane)`, ids: [event.triggerId] }
        : { filter: "decided", text: "An operator asked for another decision", ids: [event.triggerId] };
    case "router.report":
      return withDetail(
        {
          filter: "said",
          text: `The router got a report: ${event.report.kind}${confidence(event.report.confidence)}`,
          ids: [event.report.id],
        },
        event.report.text,
      );
    case "router.model":
      return describeModel("The router", event);
    case "router.probe": {
      const text = `The router looked whether its model answers: ${event.error === undefined ? "it does" : "it does not"}`;
      return withDetail({ filter: "detail", text, ids: [] }, event.error);
    }
    case "router.fact":
      return { filter: "decided", text: "Remembered", ids: compact([event.factId, event.triggerId]) };
    case "router.forgot":
      return { filter: "decided", text: `${event.by.name} had a fact forgotten`, ids: compact([event.factId, event.triggerId]) };
    case "router.schedule": {
      const missed = event.missed === undefined ? "" : `, ${event.missed} times`;
      const tone = event.what === "missed" || event.what === "paused" ? { tone: "wait" as const } : {};
      const ids = compact([event.scheduleId, event.triggerId]);
      return withDetail({ filter: "decided", text: `Schedule “${event.name}”: ${event.what}${missed}`, ...tone, ids }, event.detail);
    }
    case "router.speculation":
      return withDetail(
        {
          filter: "decided",
          text: `Nobody asked, by the policy ${event.policyId}: ${event.phase === "outcome" ? event.outcome : `${event.phase} ${event.calls} model calls`}`,
          ids: [event.taskId],
        },
        event.why,
      );
    case "router.speculation_paused":
      return withDetail({ filter: "decided", text: `The policy ${event.policyId} paused itself`, tone: "wait", ids: [] }, event.why);
    case "task.adopted":
      return {
        filter: "work",
        text: `${event.by.name} asked for what it did already: it is theirs`,
        ids: compact([event.threadId, event.decisionId]),
      };
    case "router.context": {
      const read = event.reads === 0 ? "nothing more was read" : `read ${event.reads} more`;
      return {
        filter: "detail",
        text: `Context: ${event.used.length} of ${event.inlined.length} inlined ids used, ${read}`,
        ids: event.used,
      };
    }
    case "router.decision":
      return withDetail(
        {
          filter: "decided",
          text: `Decided to ${decisionWords(event)} (${event.tool})${event.by === "code" ? ", by a fixed rule" : ""}, with the authority of ${event.authority}`,
          ids: compact([event.decisionId, ...event.settles, event.taskId, event.threadId]),
        },
        event.reason,
      );
    case "router.refused":
      return withDetail(
        { filter: "decided", text: `Refused to ${named(event.tool)}`, tone: "wait", ids: compact(event.settles) },
        event.reason,
      );
    case "router.effect":
      return withDetail(
        {
          filter: event.state === "done" ? "detail" : "decided",
          text: event.state === "done" ? `Carried out: ${event.effect}` : `Could not be carried out: ${event.effect}`,
          ...(event.state === "failed" ? { tone: "bad" as const } : {}),
          ids: [event.decisionId],
        },
        event.reason,
      );
    case "router.passed":
      return {
        filter: "decided",
        text: "Left to the task that the thread passes through to",
        ids: compact([event.taskId, ...event.triggerIds]),
      };
    case "router.escalated":
      return withDetail({ filter: "decided", text: "Asked the operators", tone: "wait", ids: compact(event.ids) }, event.question);
    case "task.started":
      return withDetail(
        {
          filter: "detail",
          text: `Started${event.machine === null ? "" : ` for ${event.machine}`}, with the authority of ${event.authority}${event.tainted ? ", tainted by public text" : ""}`,
          ids: compact([event.triggerId, event.decisionId]),
        },
        event.goal,
      );
    case "task.inbox":
      return {
        filter: "detail",
        text: `Input: ${event.item}${event.tainting ? " (public text: taints the task)" : ""}`,
        ids: [event.itemId],
      };
    case "task.model":
      return describeModel("The worker", event);
    case "task.tool":
      return describeTool(event);
    case "task.report":
      return withDetail(
        { filter: "said", text: `Reports: ${event.report.kind}${confidence(event.report.confidence)}`, ids: [event.report.id] },
        event.report.text,
      );
    case "task.status":
      return withDetail(
        {
          filter: "work",
          text: event.from === "new" ? `Is ${event.to}` : `${event.from} → ${event.to}`,
          ...(event.to === "failed" ? { tone: "bad" as const } : event.to === "done" ? { tone: "good" as const } : {}),
          ids: [],
        },
        event.why,
      );
    case "task.cancel":
      return withDetail({ filter: "said", text: `${event.by.name} stops it`, tone: "wait", ids: [] }, event.reason);
    case "task.rejected":
      return withDetail({ filter: "said", text: "A message was not taken", tone: "bad", ids: [event.itemId] }, event.reason);
    case "task.skipped":
      return withDetail({ filter: "said", text: "An event was passed over", ids: [event.itemId] }, event.reason);
    case "task.backlog":
      return withDetail(
        { filter: "said", text: backlogWords[event.change](event.by?.name ?? "The task"), ids: [event.itemId] },
        event.text,
      );
    case "task.interrupted":
      return { filter: "said", text: `${event.by.name} interrupts it`, tone: "wait", ids: event.commands };
    case "task.left_out": {
      const what = event.what === "older" ? "the older part of its messages" : "what came last";
      return { filter: "work", text: `Step ${event.step} was refused by the model; it goes on without ${what}`, tone: "wait", ids: [] };
    }
    case "task.spawned":
      return withDetail(
        { filter: "work", text: `Starts a child (${event.profile}) with ${event.share} model calls`, ids: [event.child] },
        event.title,
      );
    case "task.child":
      return {
        filter: "work",
        text: `A child has ended: ${event.kindOfReport}; ${event.returned} model calls came back`,
        ids: [event.child, event.report],
      };
    case "task.compacted":
      return {
        filter: "detail",
        text: `Puts the older part of its transcript aside (${event.charsBefore} → ${event.charsAfter} characters)`,
        ids: [event.segment],
      };
    case "task.hand_off":
      return withDetail(
        { filter: "work", text: `Handed on from ${event.from} to ${event.to} (${event.count})`, ids: [] },
        `${event.reason} — ${event.summary}`,
      );
    case "task.released":
      return { filter: "detail", text: `Gives back ${event.threadSeqs.length} unread rows`, ids: [event.threadId] };
    case "endpoint.enrolled":
      return { filter: "detail", text: `Enrolled as ${event.name}`, ids: [] };
    case "endpoint.connected":
      return { filter: "detail", text: `Connected (connection ${event.epoch}, sandbox: ${event.sandbox})`, ids: [] };
    case "endpoint.disconnected":
      return withDetail({ filter: "detail", text: `Connection ended (${event.code})`, tone: "wait", ids: [] }, event.reason);
    case "endpoint.revoked":
      return { filter: "detail", text: `Revoked by ${event.by}`, tone: "bad", ids: [] };
    case "endpoint.command":
      return describeCommand(event);
    case "endpoint.stop":
      return withDetail({ filter: "work", text: "Stop of a command", tone: "wait", ids: [event.commandId] }, event.why);
  }
}

const backlogWords = {
  hold: (who: string) => `${who} queues a message`,
  edit: (who: string) => `${who} changes a message before it is read`,
  withdraw: (who: string) => `${who} takes a message back`,
  move: (who: string) => `${who} moves a queued message`,
  now: (who: string) => `${who} hands a queued message over at once`,
  next: (who: string) => `${who} goes on with a queued message`,
} as const;

/** In words, with the name by which it is found. */
const named = (tool: string): string => `${toolWords(tool)} (${tool})`;

const confidence = (value: number | undefined): string => (value === undefined ? "" : `, ${Math.round(value * 100)} % sure`);

function describeTool(event: Extract<SwitchyardEvent, { kind: "task.tool" }>): Line {
  const ids = compact([event.commandId]);
  switch (event.phase) {
    case "intent":
      return withDetail({ filter: "work", text: asTitle(toolWords(event.tool)), ids }, event.detail);
    case "done":
      // What ran on a machine is told by the machine.
      return withDetail(
        { filter: event.commandId === undefined ? "work" : "detail", text: `Answered: ${toolWords(event.tool)}`, ids },
        event.detail,
      );
    case "refused":
      return withDetail({ filter: "work", text: `Refused to ${named(event.tool)}`, tone: "wait", ids }, event.detail);
  }
}

function describeCommand(event: Extract<SwitchyardEvent, { kind: "endpoint.command" }>): Line {
  const ids = [event.commandId];
  const { result } = event;
  if (event.state !== "settled" || !result) {
    const words = {
      queued: "Waits for the machine",
      sent: "Sent to the machine",
      accepted: "Journalled by the machine",
      started: "Runs",
      settled: "Ended",
    };
    return withDetail({ filter: "detail", text: words[event.state], ids }, event.what);
  }
  const took = result.startedMs === null ? "" : ` after ${duration(result.endedMs - result.startedMs)}`;
  const good = result.outcome === "exited" && result.exitCode === 0;
  const text =
    result.outcome === "exited"
      ? `Ended with exit code ${result.exitCode ?? result.signal ?? "?"}${took}`
      : `Ended: ${result.outcome.replaceAll("_", " ")}${took}`;
  return withDetail(
    { filter: "work", text, ids, ...(good ? {} : { tone: "wait" as const }) },
    [event.what, result.reason].filter(Boolean).join(" — "),
  );
}
