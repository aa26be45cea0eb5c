// One message through a deployment, and what its objects' rows say became of it.
import { routerName } from "../../../src/env.ts";
import type { Logged } from "../../../src/protocol/events.ts";
import { until } from "../../support/until.ts";
import type { EvalDeployment } from "./deployment.ts";
import type { Labelled } from "./labelled.ts";
import { becameOf, decisionsOf, isDecided, isEscalated, type Outcome, usageOf } from "./outcome.ts";

/** Delivers the message and waits for its decision; what fails is an outcome, too. */
export async function play(deployment: EvalDeployment, line: Labelled, timeoutMs: number): Promise<Outcome> {
  const before = (await deployment.events("ROUTER", routerName)).at(-1)?.seq ?? 0;
  const { triggerId, threadId, kept } = await deployment.deliver(line);
  const silent = { line, became: "silent" as const, policy: null, usage: null };
  if (!kept) return { ...silent, rule: "ignored at the gate", what: "" };
  const verdict = (await deployment.events("THREAD", threadId))
    .map(({ event }) => (event.kind === "thread.accepted" && event.trigger.id === triggerId ? event.verdict : null))
    .find((found) => found !== null);
  if (!verdict) throw new Error(`${line.id}: its thread does not hold it.`);
  if (verdict.outcome !== "candidate" && verdict.outcome !== "request") return { ...silent, rule: verdict.rule, what: verdict.reason };

  let rows: Logged[] = [];
  const decided = until(
    "a decision",
    async () => {
      rows = await deployment.events("ROUTER", routerName, before);
      return isDecided(rows, triggerId);
    },
    timeoutMs,
  );
  const found = await decided.then(
    () => true,
    () => false,
  );
  const decisions = decisionsOf(rows, triggerId);
  await Promise.all(decisions.map(({ tool, taskId }) => (tool === "dispatch" && taskId ? deployment.cancel(taskId) : null)));
  const usage = usageOf(rows);
  if (!found) return { line, became: "none", rule: verdict.rule, policy: null, what: lastError(rows), usage };
  const policy = decisions.map((decision) => decision.policy?.id).find((id) => id !== undefined) ?? null;
  const what = decisions.map(({ tool, reason }) => `${tool}: ${reason}`).join("; ");
  return isEscalated(rows, triggerId)
    ? { line, became: "answer", rule: verdict.rule, policy, what: "left undecided: a person was asked", usage }
    : { line, became: becameOf(decisions), rule: verdict.rule, policy, what, usage };
}

const lastError = (rows: readonly Logged[]): string =>
  rows.map(({ event }) => (event.kind === "router.model" ? event.error : undefined)).findLast((error) => error !== undefined) ??
  "no answer in time";
