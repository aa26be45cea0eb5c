// The designs without a router: one session hears everything. It asks the same model server over the same wire, its tools take the
// same time, and it pays nothing for storage, channels or machines; that counts for it.
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, until } from "./e2e-run.ts";
import { delegates, essayCost, essaySteps, type Outcome, ownWorkMs, routerPrefix, workerPrefix } from "./e2e-simulation.ts";
import { addsRounds, type TaskPlan, type Workload } from "./e2e-workload.ts";
import { type Message, type ModelServer, type Script, type SimCall, startModelServer } from "./lib/model-server.ts";

export type Prompt = "neutral" | "delegating";

/** What enters a session: words of the chat, the end of a tool, what a subagent says at its end. */
type Item =
  | { item: "message"; text: string; asks?: number; about?: number; stop?: boolean }
  | { item: "result"; task: number }
  | { item: "subagent"; task: number };

type Call =
  /** What it has not decided yet takes it another request. */
  | { tool: "look"; input: object }
  | { tool: "run_command"; input: { task: number; virtualMs: number } }
  | { tool: "say" | "subagent"; input: { task: number } }
  | { tool: "tell"; input: { task: number; text: string } }
  | { tool: "stop"; input: { task: number } };

/** The mind of a session that does all the work. What it holds it knows from its transcript; kept here so that it need not read it each time. */
function workingMind(workload: Workload): Script {
  const held = new Map<number, { plan: TaskPlan; rounds: number; done: number }>();
  return ({ messages }) => {
    const items = itemsOf(messages.at(-1));
    for (const item of items) {
      if (item.item === "result") {
        const task = held.get(item.task);
        if (task) task.done += 1;
      }
      if (item.item !== "message") continue;
      const { asks, about, stop, text } = item;
      const plan = asks === undefined ? undefined : workload.tasks[asks];
      if (plan) held.set(plan.n, { plan, rounds: plan.rounds, done: 0 });
      const task = about === undefined ? undefined : held.get(about);
      if (task && stop) held.delete(task.plan.n);
      else if (task) task.rounds += addsRounds(text);
    }
    const latencyMs = ownWorkMs(items.filter(({ item }) => item !== "result").length, [...held.values()]);
    const calls = [...held.values()].map(({ plan, rounds, done }): SimCall => {
      if (done < rounds) return { tool: "run_command", input: { task: plan.n, virtualMs: plan.toolMs[done] ?? 0 } };
      held.delete(plan.n);
      return { tool: "say", input: { task: plan.n } };
    });
    return { calls, text: "", latencyMs, cached: routerPrefix };
  };
}

/** The mind of a session that hands each task to a subagent: what it hears takes it as many requests as the essay's router. */
function delegatingMind(): Script {
  const ended = new Set<number>();
  let open: { left: number; calls: SimCall[] }[] = [];
  const decide = (item: Item): { left: number; calls: SimCall[] } => {
    if (item.item === "subagent") {
      ended.add(item.task);
      return { left: essaySteps.result, calls: [{ tool: "say", input: { task: item.task } }] };
    }
    if (item.item === "message" && item.asks !== undefined)
      return { left: essaySteps.task, calls: [{ tool: "subagent", input: { task: item.asks } }] };
    if (item.item === "message" && item.about !== undefined && !ended.has(item.about)) {
      const { about: task, stop, text } = item;
      return stop
        ? { left: 1, calls: [{ tool: "stop", input: { task } }] }
        : { left: essaySteps.forward, calls: [{ tool: "tell", input: { task, text } }] };
    }
    return { left: essaySteps.casual, calls: [] };
  };
  return ({ messages }) => {
    open.push(...itemsOf(messages.at(-1)).map(decide));
    const latencyMs = essayCost(open.length);
    for (const each of open) each.left -= 1;
    const calls = open.flatMap((each) => (each.left === 0 ? each.calls : []));
    open = open.filter(({ left }) => left > 0);
    return { calls: open.length > 0 ? [...calls, { tool: "look", input: {} }] : calls, text: "", latencyMs, cached: routerPrefix };
  };
}

/** A subagent's mind: rounds of a tool, then its last word. */
function subagentMind(workload: Workload): Script {
  return ({ messages }) => {
    const plan = workload.tasks[Number(messages[0]?.content.split(" ").at(-1))];
    const steps = messages.filter(({ role }) => role === "assistant").length;
    const cached = workerPrefix(steps);
    const items = messages.flatMap(itemsOf);
    const done = items.filter(({ item }) => item === "result").length;
    const added = items.reduce((rounds, item) => rounds + (item.item === "message" ? addsRounds(item.text) : 0), 0);
    if (!plan) throw new Error("A subagent has no task.");
    const calls = done < plan.rounds + added ? [{ tool: "run_command", input: { task: plan.n, virtualMs: plan.toolMs[done] ?? 0 } }] : [];
    return { calls, text: calls.length > 0 ? "" : "Done.", latencyMs: plan.modelMs[done] ?? 0, cached };
  };
}

const itemsOf = (message: Message | undefined): Item[] => (message?.role === "user" ? (JSON.parse(message.content) as Item[]) : []);

/** One conversation: what the model was told and what it answered. */
class Conversation {
  cachedTokens = 0;
  readonly #url: string;
  readonly #model: string;
  readonly #messages: object[];

  constructor(url: string, model: string, system: string) {
    this.#url = url;
    this.#model = model;
    this.#messages = [{ role: "system", content: system }];
  }

  async ask(items: readonly Item[]): Promise<Call[]> {
    this.#messages.push({ role: "user", content: JSON.stringify(items) });
    const body = JSON.stringify({ model: this.#model, messages: this.#messages });
    const response = await fetch(`${this.#url}/chat/completions`, { method: "POST", body });
    if (!response.ok) throw new Error(`The model answered ${response.status}: ${await response.text()}`);
    const answer = (await response.json()) as {
      choices: { message: { tool_calls: { function: { name: string; arguments: string } }[] } }[];
      usage: { prompt_tokens_details: { cached_tokens: number } };
    };
    this.cachedTokens += answer.usage.prompt_tokens_details.cached_tokens;
    const message = answer.choices[0]?.message;
    if (message) this.#messages.push({ role: "assistant", content: "", tool_calls: message.tool_calls });
    return (message?.tool_calls ?? []).map(
      ({ function: { name, arguments: input } }) => ({ tool: name, input: JSON.parse(input) }) as Call,
    );
  }
}

/** Runs beside the others; its own log is what it is judged by. */
export class SingleSession {
  readonly #workload: Workload;
  readonly #server: ModelServer;
  readonly #clock: Clock;
  readonly #conversations: Conversation[] = [];
  readonly #inbox: Item[] = [];
  readonly #saidMs = new Map<number, number>();
  readonly #stopped = new Set<number>();
  /** What each subagent has not read yet. */
  readonly #told = new Map<number, Item[]>();
  #decisions = 0;
  #waitsFor: () => void = () => {};
  #expected: number;

  private constructor(workload: Workload, server: ModelServer, clock: Clock) {
    this.#workload = workload;
    this.#server = server;
    this.#clock = clock;
    this.#expected = workload.tasks.length + workload.events.length + workload.casual.length;
  }

  static async run(prompt: Prompt, workload: Workload, clock: Clock): Promise<Outcome> {
    const session = prompt === "neutral" || !delegates(workload.seed) ? workingMind(workload) : delegatingMind();
    const subagent = subagentMind(workload);
    const server = await startModelServer({
      speed: clock.speed,
      script: (request) => (request.model === "session" ? session : subagent)(request),
    });
    try {
      return await new SingleSession(workload, server, clock).#run();
    } finally {
      await server.close();
    }
  }

  async #run(): Promise<Outcome> {
    const { tasks, events, casual } = this.#workload;
    void Promise.all([
      ...tasks.map(({ n, atMs, text }) => this.#arrives(atMs, { item: "message", text, asks: n })),
      ...events.map(({ atMs, task, kind, text }) =>
        this.#arrives(atMs, { item: "message", text, about: task, ...(kind === "cancel" ? { stop: true } : {}) }),
      ),
      ...casual.map(({ atMs, text }) => this.#arrives(atMs, { item: "message", text })),
    ]);
    const main = this.#conversation("session", "You are an agent in a group chat.");
    const isOpen = (n: number): boolean => !this.#saidMs.has(n) && !this.#stopped.has(n);
    while (this.#expected > 0 || this.#inbox.length > 0 || tasks.some(({ n }) => isOpen(n))) {
      if (this.#inbox.length === 0)
        await new Promise<void>((resolve) => {
          this.#waitsFor = resolve;
        });
      await this.#turn(main);
    }
    return {
      minutes: tasks.map(({ n, atMs }) => {
        const saidMs = this.#saidMs.get(n);
        return saidMs === undefined ? null : ((saidMs - this.#clock.startMs) * this.#clock.speed - atMs) / 60_000;
      }),
      decisions: this.#decisions,
      cachedTokens: this.#conversations.reduce((total, { cachedTokens }) => total + cachedTokens, 0),
    };
  }

  #conversation(model: string, system: string): Conversation {
    const conversation = new Conversation(this.#server.url, model, system);
    this.#conversations.push(conversation);
    return conversation;
  }

  async #arrives(atMs: number, item: Item & { item: "message" }): Promise<void> {
    await until(this.#clock, atMs);
    this.#expected -= 1;
    if (item.stop && item.about !== undefined && !this.#saidMs.has(item.about)) this.#stopped.add(item.about);
    this.#enter(item);
  }

  #enter(item: Item): void {
    this.#inbox.push(item);
    this.#waitsFor();
  }

  /** All that waits, until it is decided; the tools of a model call run side by side, and the turn ends with the slowest. */
  async #turn(main: Conversation): Promise<void> {
    const items = this.#inbox.splice(0);
    this.#decisions += items.filter(({ item }) => item !== "result").length;
    const ran: Item[] = [];
    for (let asked = items, looks = true; looks; asked = []) {
      const calls = await main.ask(asked);
      looks = calls.some(({ tool }) => tool === "look");
      await Promise.all(calls.map((call) => this.#carryOut(call, ran)));
    }
    if (ran.length > 0) this.#inbox.unshift(...ran);
  }

  async #carryOut(call: Call, ran: Item[]): Promise<void> {
    switch (call.tool) {
      case "look":
        return;
      case "say":
        if (!this.#stopped.has(call.input.task)) this.#saidMs.set(call.input.task, Date.now());
        return;
      case "run_command":
        await sleep(call.input.virtualMs / this.#clock.speed);
        ran.push({ item: "result", task: call.input.task });
        return;
      case "subagent":
        void this.#delegate(call.input.task);
        return;
      case "tell":
        this.#told.get(call.input.task)?.push({ item: "message", text: call.input.text });
        return;
      case "stop":
        this.#told.delete(call.input.task);
        return;
    }
  }

  /** A subagent has a context of its own and works beside the main session. */
  async #delegate(task: number): Promise<void> {
    const own = this.#conversation("subagent", `Do the work of task ${task}`);
    const unread: Item[] = [{ item: "message", text: this.#workload.tasks[task]?.text ?? "" }];
    this.#told.set(task, unread);
    for (;;) {
      const calls = await own.ask(unread.splice(0));
      if (!this.#told.has(task)) return;
      const [call] = calls;
      if (call?.tool !== "run_command") {
        // Told something in its last call: once more.
        if (unread.length > 0) continue;
        break;
      }
      await sleep(call.input.virtualMs / this.#clock.speed);
      if (!this.#told.has(task)) return;
      unread.push({ item: "result", task });
    }
    this.#told.delete(task);
    this.#enter({ item: "subagent", task });
  }
}
