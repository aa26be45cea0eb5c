// Plays one task through the whole system and shows each hop with its time, read from the event logs of the objects.
import type { ConsoleClient, TimelineEntry } from "./console-client.ts";
import { StartError } from "./settings.ts";
import type { WidgetClient } from "./widget-client.ts";

export const firstRequest = "run the tests and tell me what fails";

/** One step on the road of a request; `ms` counts from the moment it was sent. */
export type Hop = {
  hop: "gate" | "thread" | "router" | "worker" | "machine" | "reply";
  ms: number;
  id: string;
  detail: string;
  text?: string;
};

type Field = string | number | undefined;
const nested = (event: Record<string, unknown>, ...path: string[]): Field =>
  path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined),
    event,
  ) as Field;

/** The hops that a task's timeline shows so far, in the order of the road. */
export function hopsOf(timeline: readonly TimelineEntry[], sentMs: number): Hop[] {
  const hops: Hop[] = [];
  const first = (kind: string, hold: (event: TimelineEntry["event"]) => boolean = () => true) =>
    timeline.find((entry) => entry.event.kind === kind && hold(entry.event));
  const add = (hop: Hop["hop"], entry: TimelineEntry | undefined, id: Field, detail: string) => {
    if (entry) hops.push({ hop, ms: Math.max(0, entry.atMs - sentMs), id: String(id ?? entry.object), detail });
  };
  const accepted = first("thread.accepted");
  if (accepted) {
    add(
      "gate",
      accepted,
      nested(accepted.event, "trigger", "id"),
      `${nested(accepted.event, "verdict", "outcome")} by rule ${nested(accepted.event, "verdict", "rule")}`,
    );
    add("thread", accepted, accepted.object, "accepted, durable");
  }
  const decision = first("router.decision", (event) => event.tool === "dispatch");
  if (decision) add("router", decision, nested(decision.event, "decisionId"), `dispatched: ${nested(decision.event, "reason")}`);
  const started = first("task.started");
  if (started)
    add("worker", started, started.object, `"${nested(started.event, "title")}" on ${nested(started.event, "machine") ?? "no machine"}`);
  for (const entry of timeline) {
    if (entry.event.kind !== "endpoint.command" || entry.event.state !== "settled") continue;
    const exit = nested(entry.event, "result", "exitCode");
    add(
      "machine",
      entry,
      nested(entry.event, "commandId"),
      `${nested(entry.event, "what")} · ${exit === null ? nested(entry.event, "result", "outcome") : `exit ${exit}`}`,
    );
  }
  return hops;
}

/** Sends the request, calls `onHop` for each hop as it happens, and returns the answer. Throws `StartError` with the reason when there is none. */
export async function playFirstTask(
  widget: WidgetClient,
  console_: ConsoleClient,
  timeoutMs: number,
  onHop: (hop: Hop) => void,
): Promise<{ answer: string; taskId: string }> {
  const deadlineMs = Date.now() + timeoutMs;
  const left = () => Math.max(1, deadlineMs - Date.now());
  const sentMs = Date.now();
  const seen = new Set<string>();
  const show = (hops: Hop[]) => {
    for (const hop of hops) {
      const key = `${hop.hop} ${hop.id}`;
      if (seen.has(key)) continue;
      seen.add(key);
      onHop(hop);
    }
  };
  // Listening starts before sending: an answer may be faster than the next line.
  const topic = widget.until(
    (frame) => {
      if (frame.t === "refused") throw new StartError(frame.message);
      if (frame.t !== "row" || frame.row.atMs < sentMs) return undefined;
      if (frame.row.kind === "topic") return { taskId: frame.row.taskId, threadId: frame.row.topicThreadId };
      // An answer without a task: the system says why it could not start one.
      if (frame.row.kind === "reply" && frame.threadId === widget.rootThreadId) return { said: frame.row.text };
      return undefined;
    },
    left(),
    "decision of the router",
  );
  const replies: { threadId: string; kind: string; text: string; atMs: number }[] = [];
  const stop = widget.listen((frame) => {
    if (frame.t === "row" && frame.row.kind === "reply" && frame.row.atMs >= sentMs) {
      replies.push({ threadId: frame.threadId, kind: frame.row.replyKind, text: frame.row.text, atMs: frame.row.atMs });
    }
  });
  try {
    widget.send(firstRequest);
    const found = await topic;
    if ("said" in found) throw new StartError(`No task was started: ${found.said}`);
    for (;;) {
      show(hopsOf(await console_.timeline(found.taskId), sentMs));
      const answer = replies.find((reply) => reply.threadId === found.threadId && reply.kind === "relay");
      if (answer) {
        show(hopsOf(await console_.timeline(found.taskId), sentMs));
        onHop({
          hop: "reply",
          ms: Math.max(0, answer.atMs - sentMs),
          id: found.taskId,
          detail: "answered in its topic",
          text: answer.text,
        });
        return { answer: answer.text, taskId: found.taskId };
      }
      const problem = replies.find((reply) => reply.threadId === found.threadId && reply.kind === "notice");
      if (problem) throw new StartError(`The task did not finish: ${problem.text}`);
      if (Date.now() >= deadlineMs)
        throw new StartError(`The task did not finish within ${Math.round(timeoutMs / 1000)} s; the console shows how far it came.`);
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
  } finally {
    stop();
  }
}
