// What became of a message, read from the rows of its thread and of the router.
import type { Logged, RouterEvent } from "../../../src/protocol/events.ts";
import type { ModelUsage } from "../../../src/protocol/model.ts";
import type { RouterTool } from "../../../src/protocol/router-tools.ts";
import type { Label, Labelled } from "./labelled.ts";

type Decision = Extract<RouterEvent, { kind: "router.decision" }>;

/** `none`: nothing was decided, for the model failed. */
export type Became = Label | "none";

export type Outcome = {
  line: Labelled;
  became: Became;
  /** The gate's rule, and the policy that the decision names. */
  rule: string;
  policy: string | null;
  /** In a few words. */
  what: string;
  usage: Required<ModelUsage> | null;
};

/** Which of the three a call of the router is. What is only remembered starts nothing and says nothing. */
const toolLabels: Record<Exclude<RouterTool, "recall" | "find">, Label> = {
  dispatch: "act",
  deliver: "act",
  cancel: "act",
  resolve: "act",
  release: "act",
  schedule: "act",
  set_policy: "act",
  reply: "answer",
  relay: "answer",
  ask_human: "answer",
  remember: "silent",
  record: "silent",
  ignore: "silent",
};
const strength: Label[] = ["silent", "answer", "act"];

/** The strongest of what was decided. What code refused was answered: people were told so. */
export const becameOf = (decisions: readonly { tool: string; by: "model" | "code" }[]): Label =>
  decisions
    .map(({ tool, by }): Label => (by === "code" ? "answer" : (toolLabels[tool as keyof typeof toolLabels] ?? "silent")))
    .reduce((a, b) => (strength.indexOf(a) >= strength.indexOf(b) ? a : b), "silent");

export const decisionsOf = (rows: readonly Logged[], triggerId: string): Decision[] =>
  rows.flatMap(({ event }) => (event.kind === "router.decision" && event.settles.includes(triggerId) ? [event] : []));

export const isEscalated = (rows: readonly Logged[], triggerId: string): boolean =>
  rows.some(({ event }) => event.kind === "router.escalated" && event.ids.includes(triggerId));

/** A turn's decisions are all there once its last row is. */
export function isDecided(rows: readonly Logged[], triggerId: string): boolean {
  if (isEscalated(rows, triggerId)) return true;
  const turns = new Set(decisionsOf(rows, triggerId).map(({ turn }) => turn));
  return rows.some(({ event }) => event.kind === "router.context" && turns.has(event.turn));
}

/** Tokens of the requests in which the message stood; null when the provider counted none. */
export function usageOf(rows: readonly Logged[]): Outcome["usage"] {
  const settled = rows.flatMap(({ event }) =>
    event.kind === "router.model" && event.phase === "settle" && event.usage ? [event.usage] : [],
  );
  if (settled.length === 0) return null;
  const sum = (of: (usage: ModelUsage) => number | undefined): number => settled.reduce((all, usage) => all + (of(usage) ?? 0), 0);
  return { inputTokens: sum((u) => u.inputTokens), cachedTokens: sum((u) => u.cachedTokens), outputTokens: sum((u) => u.outputTokens) };
}
