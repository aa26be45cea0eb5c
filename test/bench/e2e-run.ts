// One seed of the end-to-end experiment on the real Worker, in scaled time. Every figure comes from the objects' own rows.
import { setTimeout as sleep } from "node:timers/promises";
import { triggerIdOf } from "../../src/core/ids.ts";
import { routerName } from "../../src/env.ts";
import type { Logged } from "../../src/protocol/events.ts";
import { type Policy, routerMind, threadIdOf, threadOfTask, warmThread, workerMind } from "./e2e-minds.ts";
import type { Outcome } from "./e2e-simulation.ts";
import type { TaskPlan, Workload } from "./e2e-workload.ts";
import { Deployment, type Said } from "./lib/deployment.ts";
import { ownSeconds } from "./lib/foreign-load.ts";
import { startModelServer } from "./lib/model-server.ts";
import { SleepingDaemon } from "./lib/sleeping-daemon.ts";
import { sum } from "./lib/statistics.ts";

/** What makes a design of the real system. */
export type RealDesign = {
  policy: Policy;
  /** The shipped rules, or none: then everything is the router's to judge. */
  gate: "shipped" | "off";
  /** Another bundle than the shipped one. */
  scriptPath?: string;
};

export type RealRun = Outcome & {
  /** Results that were said without the router's model. */
  decidedByCode: number;
  /** Talk that the gate kept from the router, and requests: of those there must be none. */
  dropped: number;
  droppedRequests: number;
  /** Real milliseconds from Stop to the machine's order to stop; without end where a command ran on. */
  cancelMs: number[];
  cpuShare: number;
  /** Seconds of CPU of this design's process and runtime, from their start. */
  usedSeconds: number;
  unfinished: number;
};

export type Clock = { startMs: number; speed: number };
/** Wall clock of a virtual moment. */
export const until = ({ startMs, speed }: Clock, virtualMs: number): Promise<unknown> =>
  sleep(Math.max(0, startMs + virtualMs / speed - Date.now()));

const pollMs = 250;
/** A command that ends later than this after Stop was not stopped. */
const ranOnMs = 1_000;
/** Virtual: after it a task without a result counts as unfinished. */
const patienceMs = 40 * 60_000;

const member = { id: "U1", name: "Member", role: "member" } as const;
/** Of the team: what a stranger's program says would taint the work, and a tainted task may not run commands. */
const pipeline = { id: "ci", name: "Pipeline", role: "member" } as const;
const room = "room";
const asked = (plan: TaskPlan): Said => ({ kind: "message", text: plan.text, thread: threadOfTask(plan.n), principal: member });
const threadIdOfTask = (n: number): string => threadIdOf(threadOfTask(n));

/** A deployment with its own model and its own machine, ready for the workload. */
export class RealSystem {
  readonly #workload: Workload;
  readonly #deployment: Deployment;
  readonly #daemon: SleepingDaemon;
  readonly #closeModel: () => Promise<void>;
  /** The router's rows before the run. */
  readonly #before: number;
  readonly #tasks = new Map<number, string>();
  /** Requests by the trigger that they become. */
  readonly #requests: ReadonlyMap<string, number>;
  #readSeq: number;
  /** When Stop was pressed, by task. */
  readonly #cancelled = new Map<string, number>();

  private constructor(workload: Workload, deployment: Deployment, daemon: SleepingDaemon, closeModel: () => Promise<void>, before: number) {
    this.#workload = workload;
    this.#deployment = deployment;
    this.#daemon = daemon;
    this.#closeModel = closeModel;
    this.#before = before;
    this.#readSeq = before;
    this.#requests = new Map(workload.tasks.map(({ n }) => [triggerIdOf("generic", `event:task-${n}`, threadIdOfTask(n)), n]));
  }

  static async start(design: RealDesign, workload: Workload, speed: number): Promise<RealSystem> {
    const router = routerMind(workload, design.policy);
    const worker = workerMind(workload, design.policy);
    const server = await startModelServer({ speed, script: (request) => (request.model === "router" ? router : worker)(request) });
    const deployment = await Deployment.start({
      modelUrl: server.url,
      ...(design.scriptPath === undefined ? {} : { scriptPath: design.scriptPath }),
    });
    if (design.gate === "off")
      await deployment.saveRules([{ id: "all", outcome: "candidate", reason: "No gate: the router judges everything." }]);
    const daemon = await SleepingDaemon.connect(deployment, speed);
    // Migrations and code are there before the clock starts.
    for (const n of [1, 2])
      await deployment.say(`warm-${n}`, { kind: "message", text: "Say hello.", thread: warmThread, principal: member });
    await sleep(1_500);
    const before = (await deployment.events("ROUTER", routerName)).at(-1)?.seq ?? 0;
    return new RealSystem(workload, deployment, daemon, server.close, before);
  }

  async run(clock: Clock): Promise<RealRun> {
    const { tasks, events, casual } = this.#workload;
    const cpuBefore = this.#deployment.cpuSeconds();
    const dropped = { talk: 0, requests: 0 };
    const isDropped = (verdict: string): boolean => verdict === "ignore" || verdict === "record";
    await Promise.all([
      ...tasks.map(async (plan) => {
        await until(clock, plan.atMs);
        const { verdict } = await this.#deployment.say(`task-${plan.n}`, asked(plan));
        if (isDropped(verdict)) dropped.requests += 1;
      }),
      ...events.map(async ({ atMs, task, kind, text }, i) => {
        await until(clock, atMs);
        if (kind === "cancel") return this.#cancel(task);
        const words = kind === "ci" ? { kind: "check", principal: pipeline } : { kind: "message", principal: member };
        await this.#deployment.say(`event-${i}`, { ...words, text, thread: threadOfTask(task) });
      }),
      ...casual.map(async ({ atMs, text }, i) => {
        await until(clock, atMs);
        const { verdict } = await this.#deployment.say(`casual-${i}`, { kind: "message", text, thread: room, principal: member });
        if (isDropped(verdict)) dropped.talk += 1;
      }),
    ]);
    await this.#allSaid(Date.now() + patienceMs / clock.speed);
    await this.#learnTasks();
    if (this.#daemon.lost !== null) throw new Error(`The machine went away in the middle of the run: ${this.#daemon.lost}`);
    const cpuShare = (this.#deployment.cpuSeconds() - cpuBefore) / ((Date.now() - clock.startMs) / 1_000);
    const cancelMs = [...this.#cancelled].flatMap(([taskId, pressedMs]) => {
      const toldMs = this.#daemon.stops.get(taskId);
      if (toldMs !== undefined) return [toldMs - pressedMs];
      // A task that was in the middle of a model call has nothing to stop on the machine.
      return (this.#daemon.ends.get(taskId) ?? 0) > pressedMs + ranOnMs ? [Number.POSITIVE_INFINITY] : [];
    });
    return {
      ...(await this.#outcome(clock)),
      dropped: dropped.talk,
      droppedRequests: dropped.requests,
      cancelMs,
      cpuShare,
      usedSeconds: ownSeconds() + this.#deployment.cpuSeconds(),
    };
  }

  async close(): Promise<void> {
    this.#daemon.close();
    await this.#deployment.stop();
    await this.#closeModel();
  }

  /** Reads which task each request became, from where it read last. */
  async #learnTasks(): Promise<void> {
    for (const { seq, event } of await this.#deployment.events("ROUTER", routerName, this.#readSeq)) {
      this.#readSeq = seq;
      if (event.kind === "router.decision" && event.tool === "dispatch" && event.taskId !== undefined)
        for (const id of event.settles) this.#tasks.set(this.#requests.get(id) ?? -1, event.taskId);
    }
  }

  /** A person presses Stop, once the card is there. */
  async #cancel(n: number): Promise<void> {
    for (let i = 0; i < 40; i++) {
      await this.#learnTasks();
      if (this.#tasks.has(n)) break;
      await sleep(pollMs);
    }
    const taskId = this.#tasks.get(n);
    if (taskId === undefined) return;
    const pressedMs = Date.now();
    if (await this.#deployment.cancel(taskId)) this.#cancelled.set(taskId, pressedMs);
  }

  #isCancelled = (n: number): boolean => this.#cancelled.has(this.#tasks.get(n) ?? "");

  async #allSaid(deadlineMs: number): Promise<void> {
    const waiting = new Set(this.#workload.tasks.map(({ n }) => n));
    while (Date.now() < deadlineMs) {
      for (const n of waiting) if (this.#isCancelled(n) || (await this.#said(n)) !== null) waiting.delete(n);
      if (waiting.size === 0) return;
      await sleep(1_000);
    }
  }

  /** When the result of a request was in its thread, wall clock. */
  async #said(n: number): Promise<number | null> {
    const rows = await this.#deployment.events("THREAD", threadIdOfTask(n));
    return rows.find(({ event }) => event.kind === "thread.outbound" && event.outbound.kind === "relay")?.atMs ?? null;
  }

  async #outcome({
    startMs,
    speed,
  }: Clock): Promise<Pick<RealRun, "minutes" | "decisions" | "decidedByCode" | "cachedTokens" | "unfinished">> {
    const rows = await this.#deployment.events("ROUTER", routerName, this.#before);
    let cachedTokens = cachedOf(rows);
    const minutes: (number | null)[] = [];
    let unfinished = 0;
    for (const plan of this.#workload.tasks) {
      const taskId = this.#tasks.get(plan.n);
      if (taskId !== undefined) cachedTokens += cachedOf(await this.#deployment.events("WORKER_SESSION", taskId));
      const saidMs = await this.#said(plan.n);
      const cancelled = this.#isCancelled(plan.n);
      minutes.push(saidMs === null || cancelled ? null : ((saidMs - startMs) * speed - plan.atMs) / 60_000);
      if (saidMs !== null || cancelled) continue;
      unfinished += 1;
      const status =
        taskId && (await this.#deployment.events("WORKER_SESSION", taskId)).findLast(({ event }) => event.kind === "task.status");
      console.error(`task ${plan.n} (${taskId ?? "not dispatched"}) has no result: ${JSON.stringify(status || null)}`);
    }
    const decisions = rows.flatMap(({ event }) => (event.kind === "router.decision" ? [event] : []));
    return {
      minutes,
      decisions: sum(decisions.filter(({ by }) => by === "model").map(({ settles }) => settles.length)),
      decidedByCode: decisions.filter(({ by }) => by === "code").length,
      cachedTokens,
      unfinished,
    };
  }
}

/** From the cost ledger. */
const cachedOf = (rows: readonly Logged[]): number =>
  sum(
    rows.map(({ event }) =>
      (event.kind === "router.model" || event.kind === "task.model") && event.phase === "settle" ? (event.usage?.cachedTokens ?? 0) : 0,
    ),
  );
