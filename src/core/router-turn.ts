// One step of a turn as messages: what the next request holds, and what the transcript keeps of it.

import { limits } from "../protocol/limits.ts";
import type { ModelMessage, ModelReply } from "../protocol/model.ts";
import type { FoundKind } from "../protocol/router-tools.ts";

import { teamAudience } from "./audience.ts";
import { isRecord } from "./json.ts";
import type { InboxItem } from "./router.ts";
import { isId, readCall } from "./router-calls.ts";
import type { StepOutcome } from "./router-decide.ts";
import { undecidedProblem } from "./router-items.ts";

export type ReadCall = { index: number; page: number } & (
  | { read: "recall"; id: string }
  | { read: "find"; query: string; kind?: FoundKind | undefined }
);
/** `heard`: the audiences of what the text holds. */
export type ReadAnswer = { text: string; tainting: boolean; heard: readonly string[] };

/** The reads among the calls of one answer. */
export const readsOf = (calls: ModelReply["calls"]): ReadCall[] =>
  calls.flatMap((call, index): ReadCall[] => {
    const read = readCall(call);
    if (!("tool" in read)) return [];
    if (read.tool === "recall") return [{ index, read: "recall", id: read.input.id, page: read.input.page ?? 1 }];
    if (read.tool === "find")
      return [{ index, read: "find", query: read.input.query ?? "", kind: read.input.kind, page: Math.floor(read.input.page ?? 1) }];
    return [];
  });

export type StepMessages = { sent: ModelMessage[]; kept: ModelMessage[] };

/**
 * [RM1] Each call has one result. What the team's lane read of public text, and what was written after it, is in the requests
 * of this turn only: the transcript keeps that it happened, and the ids.
 */
export function stepMessages(
  reply: ModelReply,
  outcome: Pick<StepOutcome, "results" | "refused">,
  reads: ReadonlyMap<number, ReadAnswer>,
  options: { team: boolean; tainted: boolean; known: ReadonlySet<string>; keptId: string },
): StepMessages {
  const calls = reply.calls.map((call) => ({ ...call, input: isRecord(call.input) ? call.input : {} }));
  const sent: ModelMessage[] = [{ role: "assistant", text: reply.text, calls }];
  const keptCalls = options.tainted
    ? calls.map((call, i) => ({
        callId: `${options.keptId}_${i}`,
        tool: readableTool(call.tool),
        input: redacted(call.input, options.known),
      }))
    : calls;
  const kept: ModelMessage[] = [{ role: "assistant", text: options.tainted ? "" : reply.text, calls: keptCalls }];
  calls.forEach((call, i) => {
    const read = reads.get(i);
    const output = read?.text ?? outcome.results[i] ?? JSON.stringify({ refused: "It could not be read." });
    sent.push({ role: "tool", callId: call.callId, tool: call.tool, output });
    const keptCall = keptCalls[i] ?? call;
    const notKept = options.team && read?.tainting === true;
    const id = typeof call.input.id === "string" && isId(call.input.id) ? call.input.id : "an object";
    const about = { role: "tool" as const, callId: keptCall.callId, tool: keptCall.tool };
    if (notKept) kept.push({ ...about, output: `(public text, read as ${id}; not kept)` });
    else kept.push({ ...about, output, ...(isOfSome(read) ? { later: laterWords(call.tool, id) } : {}) });
  });
  // A message without words and calls is none: providers refuse it.
  if (calls.length === 0 && kept[0]?.role === "assistant" && kept[0].text === "") kept[0] = { ...kept[0], text: "(nothing)" };
  return { sent, kept };
}

/** The task that a call names; empty when it names none. */
export const taskNamed = (input: unknown): string => (isRecord(input) && typeof input.task === "string" ? input.task : "");

/** The fact that a call corrects or has forgotten; empty when it names none. */
export const factNamed = (input: unknown): string => (isRecord(input) && typeof input.replaces === "string" ? input.replaces : "");

/** [A9] Whether what was read belongs to some conversation, and not to the whole team. */
const isOfSome = (read: ReadAnswer | undefined): boolean => read?.heard.some((from) => from !== teamAudience) === true;

const laterWords = (tool: string, id: string): string =>
  tool === "find"
    ? "(found for that turn only; look again when it is needed)"
    : `(${id} was read for that turn only; read it again when it is needed)`;

const readableTool = (tool: string): string => (/^[a-z_]{1,20}$/.test(tool) ? tool : "unknown");

const redacted = (input: Record<string, unknown>, known: ReadonlySet<string>): Record<string, unknown> => ({
  ...(Array.isArray(input.settles) ? { settles: input.settles.filter((id) => typeof id === "string" && known.has(id)) } : {}),
  note: "written after reading text from outside the team; not kept",
});

/** [RM2] Another step of this turn only for what was read or is to be said again, while something is undecided and steps are left. */
export const isLastStep = (step: number, reads: number, undecided: number, unsaid = 0): boolean =>
  (reads === 0 && unsaid === 0) || undecided === 0 || step >= limits.maxRouterStepsPerTurn;

/** [RT7] What makes the model answer with words alone would do so again: later turns know only that there was such a turn. */
export const unsaid = (message: ModelMessage): ModelMessage =>
  message.role === "tool" ? message : { ...message, later: message.role === "user" ? "(these items wait again)" : "(nothing)" };

/** [RM3] What an undecided item is told about in the next turn. */
export function problemOf(item: InboxItem, outcome: Pick<StepOutcome, "refused">, hadCalls: boolean): string {
  const own =
    outcome.refused.find((refused) => refused.settles.includes(item.id)) ?? outcome.refused.find((refused) => refused.settles.length === 0);
  if (own !== undefined) return own.reason;
  if (!hadCalls) return "You answered without a tool call: nothing was said or done. Settle each id with a call.";
  return undecidedProblem(item.attempts + 2);
}
