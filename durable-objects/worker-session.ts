// One task: what others may say to it. What that changes is decided in src/core/worker-*.ts and carried on by its loop.
import { DurableObject } from "cloudflare:workers";
import { taskAudience } from "../src/core/audience.ts";
import { atLeast, authorityOf } from "../src/core/authority.ts";
import { acceptTask, cancelTask, machineStopped } from "../src/core/worker-end.ts";
import { childReported } from "../src/core/worker-family.ts";
import { adoptTask, reopenTask } from "../src/core/worker-follow.ts";
import { amendMessage, received } from "../src/core/worker-input.ts";
import { offerMoved } from "../src/core/worker-offers.ts";
import { commandMoved, commandSettled, resumeTask, startTask } from "../src/core/worker-session.ts";
import { type InboxItem, spentOf, type TaskState, triggerOf } from "../src/core/worker-state.ts";
import type { Env } from "../src/env.ts";
import { logFault } from "../src/log-fault.ts";
import type { CommandState, SettledCommand } from "../src/protocol/command.ts";
import type { Logged } from "../src/protocol/events.ts";
import { Fault } from "../src/protocol/fault.ts";
import type { CommandId, EndpointId, ThreadId } from "../src/protocol/ids.ts";
import type { OfferView } from "../src/protocol/offer.ts";
import type { Authority, Principal } from "../src/protocol/principal.ts";
import type { Replayed, WorkerSessionRpc } from "../src/protocol/rpc.ts";
import type { Amended, QueuedMessage, Report, TaskCard, TaskDescription, TaskStart } from "../src/protocol/task.ts";
import type { DeliveredRow } from "../src/protocol/thread.ts";
import { profileFor } from "../src/storage/profiles.ts";
import { WorkerStore } from "../src/storage/worker-store.ts";
import { commandFor } from "../src/tools/on-endpoint.ts";
import { WorkerLoop } from "./worker-loop.ts";

export class WorkerSession extends DurableObject<Env> implements WorkerSessionRpc {
  readonly #taskId: string;
  /** Null until something is kept: asking about a task that never was makes no tables. */
  #opened: WorkerLoop | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    if (ctx.id.name === undefined) throw new Error("a WorkerSession is addressed by the name of its id");
    this.#taskId = ctx.id.name;
    if (WorkerStore.exists(ctx.storage)) this.#opened = new WorkerLoop(ctx, env, this.#taskId);
  }

  get #loop(): WorkerLoop {
    this.#opened ??= new WorkerLoop(this.ctx, this.env, this.#taskId);
    return this.#opened;
  }

  get #store(): WorkerStore {
    return this.#loop.store;
  }

  async start(input: TaskStart): Promise<{ started: boolean }> {
    if (input.taskId !== this.#taskId) throw new Fault("bad_input", `${input.taskId} was started at ${this.#taskId}.`);
    const profile = await profileFor(this.env.DB, input.profile, Date.now());
    this.#loop.decide((nowMs) => {
      if (this.#store.task() !== null) return null;
      return startTask(input, this.#store.earlyThreads(), this.#store.tombstone(), this.#store.inbox.pending(), nowMs, profile);
    });
    await this.#loop.fault("worker.started");
    this.#loop.kick();
    return { started: !isBuried(this.#store.task()) };
  }

  async deliver(input: { threadId: ThreadId; rows: DeliveredRow[] }): Promise<{ throughSeq: number }> {
    const { threadId, rows } = input;
    this.#receive(
      rows.map(({ row, alsoWith }) => ({ kind: "row", threadId, row, alsoWith })),
      threadId,
    );
    return { throughSeq: Math.max(0, ...rows.map(({ row }) => row.seq)) };
  }

  async tell(input: { id: string; text: string; authority: Authority; tainted: boolean }): Promise<void> {
    this.#receive([{ kind: "tell", ...input }], null);
  }

  #receive(items: InboxItem[], threadId: ThreadId | null): void {
    this.#loop.decide((nowMs) => {
      const rows = this.#store.inbox.receive(items);
      const task = this.#store.task();
      if (task === null) {
        if (threadId !== null) this.#store.addEarlyThread(threadId);
        return null;
      }
      if (rows.length === 0) return null;
      return received(task, rows, { threadId, unread: this.#store.inbox.unread(), open: this.#store.openCommands(), nowMs });
    });
    this.#loop.kick();
  }

  async settle(input: SettledCommand): Promise<void> {
    this.#loop.decide(() => {
      const task = this.#store.task();
      const command = this.#store.command(input.commandId);
      if (task === null || command === null) {
        logFault("worker-session.settle", new Error(`${input.commandId} is no command of this task`), { task: this.#taskId });
        return null;
      }
      const row = this.#store.inbox.receiveOne({ kind: "result", tool: command.tool, result: input });
      return row === null ? null : commandSettled(task, command, input, row, this.#store.inbox.pending());
    });
    this.#loop.kick();
  }

  async commandState(input: { commandId: CommandId; state: CommandState; machine: string; online: boolean }): Promise<void> {
    this.#loop.decide(() => {
      const task = this.#store.task();
      const command = this.#store.command(input.commandId);
      return task === null || command === null ? null : commandMoved(task, command, input);
    });
    this.#loop.kick();
  }

  async cancel(input: { by: Principal; reason: string }): Promise<{ status: TaskCard["status"] }> {
    const { by, reason } = input;
    this.#loop.decide((nowMs) => {
      const task = this.#store.task();
      if (task !== null) return cancelTask(task, by, reason, this.#store.inbox.unread(), this.#store.openCommands(), nowMs);
      // Whose task it will be is not known yet: the start compares again.
      if (!atLeast(authorityOf(by), "member")) throw new Fault("forbidden", "Only a member of the team may stop this task.");
      this.#store.bury({ by, reason });
      return null;
    });
    this.#loop.kick();
    return { status: this.#store.task()?.card.status ?? "cancelled" };
  }

  async stopped(input: { endpointId: EndpointId; epoch: number; offline: boolean }): Promise<void> {
    this.#loop.decide((nowMs) => {
      const task = this.#store.task();
      return task === null ? null : machineStopped(task, input, this.#store.inbox.unread(), this.#store.openCommands(), nowMs);
    });
    this.#loop.kick();
  }

  async resume(input: { by: Principal; modelCalls: number }): Promise<{ status: TaskCard["status"] }> {
    this.#loop.decide((nowMs) => resumeTask(this.#started(), input.by, input.modelCalls, nowMs));
    this.#loop.kick();
    return { status: this.#started().card.status };
  }

  async accept({ by, accepted, merged, reacted }: Parameters<WorkerSessionRpc["accept"]>[0]): Promise<void> {
    this.#loop.decide(() => acceptTask(this.#started(), by, accepted, merged ?? reacted));
    this.#loop.kick();
  }

  async adopt(input: TaskStart): Promise<{ tainted: boolean }> {
    this.#loop.decide(() => adoptTask(this.#started(), input, this.#store.openCommands()));
    this.#loop.kick();
    return { tainted: this.#started().tainted };
  }

  async reopen({ profile, ...input }: Parameters<WorkerSessionRpc["reopen"]>[0]): Promise<{ status: TaskCard["status"] }> {
    const to = profile === undefined ? {} : { profile: await profileFor(this.env.DB, profile, Date.now()) };
    this.#loop.decide((nowMs) => reopenTask(this.#started(), { ...input, ...to }, { commandFor, nowMs }));
    this.#loop.kick();
    return { status: this.#started().card.status };
  }

  async offerMoved(input: OfferView): Promise<void> {
    const receive = this.#store.inbox.receiveOne;
    this.#loop.decide((nowMs) => offerMoved(this.#started(), input, { receive, commandFor, nowMs }));
    this.#loop.kick();
  }

  async childReport(input: Report): Promise<void> {
    this.#loop.decide((nowMs) => {
      const task = this.#started();
      const row = this.#store.inbox.receiveOne({ kind: "child", report: input });
      return row === null ? null : childReported(task, row, input, this.#store.inbox.unread(), nowMs);
    });
    this.#loop.kick();
  }

  async amend(input: Parameters<WorkerSessionRpc["amend"]>[0]): ReturnType<WorkerSessionRpc["amend"]> {
    let outcome: Amended = "late";
    this.#loop.decide(() => {
      const amended = amendMessage(this.#started(), input, this.#store.inbox.unread());
      outcome = amended.outcome;
      return amended.change;
    });
    this.#loop.kick();
    return { outcome };
  }

  async describe(): Promise<TaskDescription | null> {
    const task = this.#opened?.store.task() ?? null;
    if (this.#opened === null || task === null) return null;
    const { start, card, tainted, allowance } = task;
    const { store } = this.#opened;
    return {
      start,
      card,
      tainted,
      allowance,
      spent: spentOf(task),
      profile: task.profile.name,
      reports: store.reports(),
      notes: store.notes(),
      backlog: task.backlog.flatMap(({ key }) => queuedMessage(key, store.inbox.item(key))),
      children: task.children.map(({ taskId, title, profile, share, open }) => ({ taskId, title, profile, share, open })),
    };
  }

  async segment({ id }: { id: string }): ReturnType<WorkerSessionRpc["segment"]> {
    const store = this.#opened?.store;
    const task = store?.task() ?? null;
    const part = task?.aside?.segments.find((segment) => segment.id === id);
    if (!store || !task || !part) return null;
    const messages = store.transcriptRows(part.fromRow, part.toRow).map(({ message }) => JSON.stringify(message));
    return { text: messages.join("\n"), tainting: task.tainted, audience: taskAudience(task.start) };
  }

  async replay({ step }: { step: number }): Promise<Replayed | null> {
    return (await this.#opened?.replay(step)) ?? null;
  }

  async events(input: { afterSeq: number; limit: number; about?: string }): Promise<Logged[]> {
    return this.#opened?.log.after(input.afterSeq, input.limit, [], input.about ?? "") ?? [];
  }

  async poke(): Promise<void> {
    await this.#opened?.alarms.run(Date.now);
    this.#opened?.kick();
  }

  override async alarm(): Promise<void> {
    await this.#opened?.alarms.run(Date.now);
  }

  #started(): TaskState {
    const task = this.#store.task();
    if (task === null) throw new Fault("not_found", `There is no task ${this.#taskId}.`);
    return task;
  }
}

/** Cancelled before it began. */
const isBuried = (task: TaskState | null): boolean => task?.mode.mode === "ended" && task.mode.status === "cancelled" && task.steps === 0;

const queuedMessage = (itemId: string, item: InboxItem | null): QueuedMessage[] => {
  const trigger = triggerOf(item);
  return item?.kind === "row" && trigger !== null
    ? [{ itemId, from: trigger.principal.name, text: trigger.text, atMs: item.row.atMs }]
    : [];
};
