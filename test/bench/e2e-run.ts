// One seed of the end-to-end experiment on the real system, in scaled time. Every figure comes from the objects' own rows.
import { setTimeout as sleep } from "node:timers/promises";
import { parseMessage } from "../../src/core/context.ts";
import { threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import { routerName } from "../../src/env.ts";
import type { Logged } from "../../src/protocol/events.ts";
import { idealOf, routerPrefix, workerPrefix } from "./e2e-simulation.ts";
import type { TaskPlan, ThreadEvent, Workload } from "./e2e-workload.ts";
import { casualTexts } from "./lib/casual.ts";
import { commented, Deployment, issueOpened, place } from "./lib/deployment.ts";
import { FakeDaemon } from "./lib/fake-daemon.ts";
import { type Message, type Script, type SimRequest, startModelServer } from "./lib/model-server.ts";
import { planMark, simulatedRouter } from "./lib/simulated-router.ts";
import { sum } from "./lib/statistics.ts";

export type RealRun = {
  minutes: (number | null)[];
  ideal: number[];
  /** Decisions of the router's model, and of all triggers those that reached it. */
  decisions: number;
  decidedByCode: number;
  /** Talk that the gate kept from the router. */
  dropped: number;
  cachedTokens: number;
  /** Real milliseconds from Stop to the machine's order to stop. */
  cancelMs: number[];
  cpuShare: number;
  unfinished: number;
};

const chatIssue = 500;
const taskIssue = (n: number): number => n + 1;
const addsMark = "(adds a round)";
const pollMs = 250;

/** The worker's simulated mind: rounds of a tool, then the report. What it knows is in its request. */
function simulatedWorker(workload: Workload): Script {
  return (request) => {
    const plan = workload.tasks[Number(/\(task (\d+)\)/.exec(userText(request))?.[1] ?? -1)];
    const started = callsOf(request, "run_command");
    const items = request.messages.flatMap((message) => (message.role === "user" ? (parseMessage(message.content)?.items ?? []) : []));
    const ended = items.filter((item) => item.item === "result").length;
    const added = items.filter((item) => item.item === "row" && item.text.includes(addsMark)).length;
    if (!plan) return { calls: [{ tool: "report", input: { kind: "done", text: "It is done.", confidence: 0.9 } }] };
    // Woken in the middle of a tool: it takes note, the tool goes on.
    if (started > ended) return { calls: [{ tool: "wait", input: { reason: "the tool runs" } }] };
    const latencyMs = plan.modelMs[started] ?? 5_000;
    if (ended < plan.rounds + added)
      return { calls: [{ tool: "run_command", input: { script: `sim-sleep ${Math.round(plan.toolMs[ended] ?? 0)}` } }], latencyMs };
    return { calls: [{ tool: "report", input: { kind: "done", text: `Task ${plan.n} is done.`, confidence: 0.95 } }], latencyMs };
  };
}

const userText = (request: SimRequest): string => request.messages.find((message) => message.role === "user")?.content ?? "";
const callsOf = (request: SimRequest, tool: string): number =>
  sum(request.messages.map((message: Message) => (message.tool_calls ?? []).filter((call) => call.function.name === tool).length));

export async function runReal(workload: Workload, speed: number): Promise<RealRun> {
  const router = simulatedRouter();
  const worker = simulatedWorker(workload);
  const server = await startModelServer({
    speed,
    script: (request) => (request.model === "router" ? router(request) : worker(request)),
    prefixTokens: (who, step) => (who.startsWith("router") ? routerPrefix : workerPrefix(step)),
  });
  const deployment = await Deployment.start({ modelUrl: server.url });
  let daemon: FakeDaemon | null = null;
  try {
    daemon = await FakeDaemon.connect(deployment, speed);
    await deployment.deliver("issues", "warm", issueOpened(900_001, "Warm", `Hello. ${planMark({ act: "dispatch", steps: 1 })}`));
    await sleep(1_500);
    const before = (await deployment.events("ROUTER", routerName)).at(-1)?.seq ?? 0;
    const cpuBefore = deployment.cpuSeconds();
    const startMs = Date.now() + 100;
    const at = (virtualMs: number): Promise<unknown> => sleep(Math.max(0, startMs + virtualMs / speed - Date.now()));
    const tasks = new Map<number, string>();
    const cancelled = new Map<string, number>();
    const follow = followTasks(deployment, before, tasks);
    const verdicts: string[] = [];
    await Promise.all([
      ...workload.tasks.map(async (plan) => {
        await at(plan.atMs);
        await deployment.deliver("issues", deliveryOf(plan), issueOpened(taskIssue(plan.n), `Work ${plan.n}`, askOf(plan)));
      }),
      ...workload.events.map(async (event, i) => {
        await at(event.atMs);
        if (event.kind === "cancel") await cancel(deployment, tasks.get(event.task), cancelled);
        else await deployment.deliver("issue_comment", `event-${i}`, commented(taskIssue(event.task), 10_000 + i, wordsOf(event)));
      }),
      ...workload.casual.map(async ({ atMs }, i) => {
        await at(atMs);
        const text = `${casualTexts[i % casualTexts.length]} ${planMark({ act: "record", steps: 1 })}`;
        verdicts.push((await deployment.deliver("issue_comment", `casual-${i}`, commented(chatIssue, 50_000 + i, text))).verdict);
      }),
    ]);
    await allEnded(deployment, before, workload, tasks, Date.now() + (40 * 60_000) / speed);
    follow.stop();
    if (daemon.lost !== null) throw new Error(`The machine went away in the middle of the run: ${daemon.lost}`);
    const wallS = (Date.now() - startMs) / 1_000;
    const cpuShare = (deployment.cpuSeconds() - cpuBefore) / wallS;
    const read = await readRows(deployment, before, workload, tasks, cancelled, { startMs, speed });
    const dropped = verdicts.filter((verdict) => verdict === "ignore" || verdict === "record").length;
    const cancelMs = [...cancelled].map(([taskId, pressedMs]) => (daemon?.stops.get(taskId) ?? Number.NaN) - pressedMs);
    return { ...read, ideal: idealOf(workload), dropped, cancelMs: cancelMs.filter(Number.isFinite), cpuShare };
  } finally {
    daemon?.close();
    await deployment.stop();
    await server.close();
  }
}

const deliveryOf = (plan: TaskPlan): string => `task-${plan.n}`;
const askOf = (plan: TaskPlan): string =>
  `Please fix this before the release. (task ${plan.n}) ${planMark({ act: "dispatch", steps: plan.routerSteps })}`;
const wordsOf = (event: ThreadEvent): string =>
  event.kind === "ci"
    ? `The checks of this branch ended. ${planMark({ act: "record", steps: 1 })}`
    : `One more thing about this. ${event.addsRound ? addsMark : ""} ${planMark({ act: "record", steps: 1 })}`;

const threadOf = (n: number): string => threadIdOf("github", place, `issue:${taskIssue(n)}`);

/** Which task each request became, while it runs; a task that used up its allowance is told to continue, as a person would. */
function followTasks(deployment: Deployment, before: number, tasks: Map<number, string>): { stop(): void } {
  const triggers = new Map<string, number>();
  for (let n = 0; n < 200; n++) triggers.set(triggerIdOf("github", `task-${n}`, threadOf(n)), n);
  let seq = before;
  let running = true;
  void (async () => {
    while (running) {
      for (const { seq: at, event } of await deployment.events("ROUTER", routerName, seq)) {
        seq = at;
        if (event.kind === "router.decision" && event.tool === "dispatch" && event.taskId !== undefined)
          for (const id of event.settles) tasks.set(triggers.get(id) ?? -1, event.taskId);
        if (event.kind === "router.report" && event.report.kind === "paused") await deployment.resume(event.report.taskId);
      }
      await sleep(pollMs);
    }
  })();
  return {
    stop: () => {
      running = false;
    },
  };
}

async function cancel(deployment: Deployment, taskId: string | undefined, cancelled: Map<string, number>): Promise<void> {
  if (taskId === undefined) return;
  const pressedMs = Date.now();
  if (await deployment.cancel(taskId)) cancelled.set(taskId, pressedMs);
}

async function allEnded(
  deployment: Deployment,
  before: number,
  workload: Workload,
  tasks: ReadonlyMap<number, string>,
  deadlineMs: number,
): Promise<void> {
  const ended = new Set<string>();
  let seq = before;
  const all = (): boolean => tasks.size >= workload.tasks.length && [...tasks.values()].every((taskId) => ended.has(taskId));
  while (Date.now() < deadlineMs && !all()) {
    for (const { seq: at, event } of await deployment.events("ROUTER", routerName, seq)) {
      seq = at;
      if (event.kind === "router.report" && ["done", "failed", "cancelled"].includes(event.report.kind)) ended.add(event.report.taskId);
    }
    await sleep(pollMs);
  }
  // The result message is a row of the thread a moment after the report.
  await sleep(1_000);
}

async function readRows(
  deployment: Deployment,
  before: number,
  workload: Workload,
  tasks: ReadonlyMap<number, string>,
  cancelled: ReadonlyMap<string, number>,
  { startMs, speed }: { startMs: number; speed: number },
): Promise<Pick<RealRun, "minutes" | "decisions" | "decidedByCode" | "cachedTokens" | "unfinished">> {
  const routerRows = await deployment.events("ROUTER", routerName, before);
  let cachedTokens = cachedOf(routerRows);
  const minutes: (number | null)[] = [];
  let unfinished = 0;
  for (const plan of workload.tasks) {
    const taskId = tasks.get(plan.n) ?? "";
    if (taskId !== "") cachedTokens += cachedOf(await deployment.events("WORKER_SESSION", taskId));
    const rows = await deployment.events("THREAD", threadOf(plan.n));
    const said = rows.find(({ event }) => event.kind === "thread.outbound" && event.outbound.kind === "relay");
    if (said === undefined && !cancelled.has(taskId)) {
      unfinished += 1;
      const status = (await deployment.events("WORKER_SESSION", taskId || "tsk_none")).findLast(
        ({ event }) => event.kind === "task.status",
      );
      console.error(`task ${plan.n} (${taskId || "not dispatched"}) has no result: ${JSON.stringify(status?.event ?? null)}`);
    }
    minutes.push(said === undefined || cancelled.has(taskId) ? null : ((said.atMs - startMs) * speed - plan.atMs) / 60_000);
  }
  const decisions = routerRows.flatMap(({ event }) => (event.kind === "router.decision" ? [event] : []));
  return {
    minutes,
    decisions: sum(decisions.filter(({ by }) => by === "model").map(({ settles }) => settles.length)),
    decidedByCode: decisions.filter(({ by }) => by === "code").length,
    cachedTokens,
    unfinished,
  };
}

/** From the cost ledger. */
const cachedOf = (rows: readonly Logged[]): number =>
  sum(
    rows.map(({ event }) =>
      (event.kind === "router.model" || event.kind === "task.model") && event.phase === "settle" ? (event.usage?.cachedTokens ?? 0) : 0,
    ),
  );
