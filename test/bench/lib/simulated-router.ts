// The router's simulated mind: what it decides about a trigger stands in the trigger's text, put there by the workload.
import { parseMessage } from "../../../src/core/context.ts";
import type { RouterItem } from "../../../src/protocol/context-items.ts";
import type { Script, SimCall, SimRequest } from "./model-server.ts";

export type Plan = { act: "record" | "reply" | "dispatch" | "deliver" | "cancel"; steps: number };

/** Ends the text of a trigger, as a sentence that only the simulation reads. */
export const planMark = (plan: Plan): string => `(sim ${plan.act} ${plan.steps})`;

function planOf(text: string): Plan {
  const match = /\(sim (record|reply|dispatch|deliver|cancel) (\d)\)/.exec(text);
  return match ? { act: match[1] as Plan["act"], steps: Number(match[2]) } : { act: "record", steps: 1 };
}

type Trigger = Extract<RouterItem, { item: "trigger" }>;
type Report = Extract<RouterItem, { item: "report" }>;

/** The items of the turn that the request is a step of, and what the tasks are. */
export function readTurn(request: SimRequest): { triggers: Trigger[]; reports: Report[]; openTasks: { id: string; thread: string }[] } {
  const users = request.messages.filter((message) => message.role === "user").map((message) => parseMessage(message.content));
  const last = users.at(-1);
  const turn = last && "turn" in last.head ? last.head.turn : null;
  const items = users.flatMap((message) => (message && "turn" in message.head && message.head.turn === turn ? message.items : []));
  return {
    triggers: items.filter((item): item is Trigger => item.item === "trigger"),
    reports: items.filter((item): item is Report => item.item === "report"),
    openTasks: items.flatMap((item) => (item.item === "tasks" ? item.open : [])),
  };
}

const nameOf = (item: Trigger | Report): string => item.name ?? item.id;

/** Terse: decisions of one kind share a call, reasons are a word. */
export function simulatedRouter(): Script {
  const stepsDone = new Map<string, number>();
  const decided = new Set<string>();
  return (request) => {
    const { triggers, reports, openTasks } = readTurn(request);
    const calls: SimCall[] = [];
    const recorded: string[] = [];
    for (const report of reports) {
      if (decided.has(report.id)) continue;
      decided.add(report.id);
      calls.push({ tool: "relay", input: { settles: [nameOf(report)], report: nameOf(report) } });
    }
    for (const trigger of triggers) {
      const plan = planOf(trigger.text);
      const again = (trigger.attempt ?? 1) > 1;
      if (decided.has(trigger.id) && !again) continue;
      const step = (stepsDone.get(trigger.id) ?? 0) + 1;
      stepsDone.set(trigger.id, step);
      if (step < plan.steps) {
        calls.push({ tool: "recall", input: { id: nameOf(trigger) } });
        continue;
      }
      decided.add(trigger.id);
      const settles = [nameOf(trigger)];
      const task = openTasks.find(({ thread }) => thread === trigger.thread)?.id;
      if (plan.act === "dispatch")
        calls.push({ tool: "dispatch", input: { settles, title: "Fix it", goal: "Do what is asked; tests pass." } });
      else if (plan.act === "reply") calls.push({ tool: "reply", input: { settles, text: "Yes, that is merged and will be out today." } });
      else if (plan.act === "cancel" && task) calls.push({ tool: "cancel", input: { settles, task, reason: "asked" } });
      else recorded.push(nameOf(trigger));
    }
    if (recorded.length > 0) calls.push({ tool: "record", input: { settles: recorded, reason: "talk" } });
    return calls.length > 0 ? { calls } : { calls, text: "nothing" };
  };
}
