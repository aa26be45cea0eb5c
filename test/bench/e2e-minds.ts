// The simulated minds of the end-to-end experiment. What is to be decided about a message follows from its thread and its text, which
// carry no marks: the gate reads what people would write.
import { parseMessage } from "../../src/core/context.ts";
import { threadIdOf as threadIdOfKey } from "../../src/core/ids.ts";
import { essayCost, essaySteps, routerPrefix, workerPrefix } from "./e2e-simulation.ts";
import { addsRounds, type TaskPlan, type Workload } from "./e2e-workload.ts";
import { chatPlace } from "./lib/deployment.ts";
import type { Message, Script, SimCall, SimRequest } from "./lib/model-server.ts";
import { readTurn } from "./lib/simulated-router.ts";
import { sum } from "./lib/statistics.ts";

/** `essay`: its steps for each decision, its words, and every result is a decision. */
export type Policy = "ours" | "essay";

export const threadOfTask = (n: number): string => `task-${n}`;
export const warmThread = "warm";
/** A thread of the group chat as the objects know it. */
export const threadIdOf = (thread: string): string => threadIdOfKey("generic", chatPlace, `thread:${thread}`);
/** What the tool of the experiment is called: a command that only takes time. */
export const sleepScript = (virtualMs: number): string => `sim-sleep ${Math.round(virtualMs)}`;

type Intent = { steps: number; task?: string };

/** The router of both policies: they differ in steps, words and the time of an answer. */
export function routerMind(workload: Workload, policy: Policy): Script {
  const stepsDone = new Map<string, number>();
  const decided = new Set<string>();
  const requests = new Map<string, TaskPlan>(workload.tasks.map((plan) => [threadIdOf(threadOfTask(plan.n)), plan]));
  const word = policy === "ours" ? "talk" : "This is talk among people and asks us for nothing.";
  return (request) => {
    const { triggers, reports, openTasks } = readTurn(request);
    const calls: SimCall[] = [];
    const recorded: string[] = [];
    let open = 0;
    /** Another step of context first, as long as the policy takes for it. */
    const decides = (id: string, attempt: number, steps: number): boolean => {
      if (decided.has(id) && attempt === 1) return false;
      open += 1;
      const step = (stepsDone.get(id) ?? 0) + 1;
      stepsDone.set(id, step);
      if (step < steps) calls.push({ tool: "recall", input: { id } });
      else decided.add(id);
      return step >= steps;
    };
    for (const { id } of reports)
      if (decides(id, 1, policy === "essay" ? essaySteps.result : 1)) calls.push({ tool: "relay", input: { settles: [id], report: id } });
    for (const { id, text, thread, attempt } of triggers) {
      const task = openTasks.find((each) => each.thread === thread)?.id;
      const plan = requests.get(thread);
      const title = plan?.text === text ? threadOfTask(plan.n) : thread === threadIdOf(warmThread) ? warmThread : null;
      const intent: Intent =
        title !== null
          ? { steps: policy === "essay" ? essaySteps.task : (plan?.routerSteps ?? 1) }
          : task === undefined
            ? { steps: essaySteps.casual }
            : { steps: policy === "essay" ? essaySteps.forward : 1, task };
      if (!decides(id, attempt ?? 1, intent.steps)) continue;
      const settles = [id];
      if (title !== null)
        calls.push({ tool: "dispatch", input: { settles, title, goal: `Do what is asked. (${title})`, profile: "coder" } });
      else if (intent.task !== undefined) calls.push({ tool: "deliver", input: { settles, task: intent.task, facts: text } });
      else recorded.push(id);
    }
    if (recorded.length > 0) calls.push({ tool: "record", input: { settles: recorded, reason: word } });
    const time = policy === "essay" ? { latencyMs: essayCost(open) } : {};
    return { calls, ...(calls.length > 0 ? {} : { text: "nothing" }), ...time, cached: routerPrefix };
  };
}

/** The worker: rounds of a tool, then the report. All that it knows is in its request. */
export function workerMind(workload: Workload, policy: Policy): Script {
  return (request) => {
    const cached = workerPrefix(countOf(request, (message) => message.role === "assistant"));
    const title = /\((task-\d+)\)/.exec(request.messages.find(({ role }) => role === "user")?.content ?? "")?.[1];
    const plan = workload.tasks.find(({ n }) => threadOfTask(n) === title);
    // The essay's router reads each result before people do: for that, ours has to be unsure.
    const confidence = policy === "essay" ? 0.5 : 0.95;
    const report = (text: string): SimCall => ({ tool: "report", input: { kind: "done", text, confidence } });
    if (!plan) return { calls: [report("It is done.")], latencyMs: 0, cached };
    const started = sum(
      request.messages.map(({ tool_calls }) => (tool_calls ?? []).filter((call) => call.function.name === "run_command").length),
    );
    const items = request.messages.flatMap((message) => (message.role === "user" ? (parseMessage(message.content)?.items ?? []) : []));
    const ended = items.filter(({ item }) => item === "result").length;
    // A row passed through, or a notice of the router that handed it over.
    const added = sum(items.map((item) => (item.item === "row" || item.item === "notice" ? addsRounds(item.text) : 0)));
    // Woken in the middle of a tool: it takes note, the tool goes on.
    if (started > ended) return { calls: [{ tool: "wait", input: { reason: "the tool runs" } }], latencyMs: 1_200, cached };
    const latencyMs = plan.modelMs[started] ?? 0;
    const script = sleepScript(plan.toolMs[ended] ?? 0);
    if (ended < plan.rounds + added) return { calls: [{ tool: "run_command", input: { script } }], latencyMs, cached };
    return { calls: [report(`Done: ${plan.text}`)], latencyMs, cached };
  };
}

const countOf = (request: SimRequest, is: (message: Message) => boolean): number => request.messages.filter(is).length;
