import fc from "fast-check";
import { expect, test } from "vitest";
import { triggerIdOf } from "../../src/core/ids.ts";
import { withCard } from "../../src/core/worker-card.ts";
import { amendMessage, received } from "../../src/core/worker-input.ts";
import { decideReply } from "../../src/core/worker-reply.ts";
import { beginStep, nextMove } from "../../src/core/worker-session.ts";
import { type Change, heldStep, type InboxRow, rejectedStep, releasedStep, type TaskState } from "../../src/core/worker-state.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { Amended } from "../../src/protocol/task.ts";
import type { Amendment, MoveTo, Trigger } from "../../src/protocol/trigger.ts";
import {
  between,
  bot,
  calling,
  command,
  facts,
  fresh,
  member,
  message,
  reply,
  replyFacts,
  stranger,
  texts,
  threadId,
} from "../support/worker-fixtures.ts";

const owner: Principal = { role: "owner", id: "operator", name: "Operator" };
const say = (text: string, mode?: Trigger["mode"], from: Principal = member): InboxRow =>
  message(text, from, triggerIdOf("github", text, threadId), { externalId: `ext-${text}`, ...(mode === undefined ? {} : { mode }) });
const amend = (of: InboxRow, change: Amendment, text = "", from: Principal = member, to: MoveTo = {}): InboxRow =>
  message(text || change, from, triggerIdOf("github", `${of.key}${change}${text}${JSON.stringify(to)}`, threadId), {
    text,
    kind: "message.amended",
    amends: { triggerId: of.key, change, ...to },
  });

/** An inbox as the store keeps it: each row with the step that stands for where it is. */
class Inbox {
  task: TaskState;
  readonly rows = new Map<number, { row: InboxRow; step: number | null }>();
  readonly events: Change["events"] = [];
  readonly reports: string[] = [];

  constructor(task: TaskState) {
    this.task = task;
  }

  get = (step: number | null): string[] =>
    this.list(step).map(({ item }) => (item.kind === "row" && item.row.kind === "trigger" ? item.row.trigger.text : ""));
  list = (step: number | null): InboxRow[] =>
    [...this.rows.values()]
      .filter((each) => each.step === step)
      .map(({ row }) => row)
      .sort((a, b) => a.seq - b.seq);
  unread = (): InboxRow[] => [...this.list(null), ...this.list(heldStep)].sort((a, b) => a.seq - b.seq);

  take(...rows: InboxRow[]): Change {
    for (const row of rows) this.rows.set(row.seq, { row, step: null });
    return this.save(received(this.task, rows, { threadId, unread: this.unread(), open: [], nowMs: 0 }));
  }

  save(change: Change): Change {
    this.task = withCard(change, [], 0).task;
    for (const row of change.edited) this.rows.set(row.seq, { row, step: this.rows.get(row.seq)?.step ?? null });
    for (const { seq, step } of change.moved) {
      const known = this.rows.get(seq);
      if (known) this.rows.set(seq, { ...known, step });
    }
    for (const seq of change.consumed?.seqs ?? []) {
      const known = this.rows.get(seq);
      if (known) this.rows.set(seq, { ...known, step: change.consumed?.step ?? null });
    }
    this.events.push(...change.events);
    this.reports.push(...change.reports.map(({ text }) => text));
    return change;
  }

  /** As the console does it. */
  amend(by: Principal, of: InboxRow, how: { change: Amendment; text?: string } & MoveTo): Amended {
    const { outcome, change } = amendMessage(this.task, { by, itemId: of.key, ...how }, this.unread());
    if (change) this.save(change);
    return outcome;
  }

  reply(...calls: Parameters<typeof reply>): Change {
    this.save(beginStep(this.task, this.list(null), facts));
    return this.save(decideReply(this.task, reply(...calls), replyFacts({ pending: this.list(null), backlog: this.list(heldStep) })));
  }
}

const busy = (): Inbox => new Inbox(calling());
const done: [string, unknown] = ["report", { kind: "done", text: "it is done", confidence: 0.9 }];

test("[WI1] a message steers unless it says otherwise: it is in the next step", () => {
  const inbox = busy();
  inbox.take(say("first"), say("second", "steer"));
  expect(inbox.get(null)).toEqual(["first", "second"]);
  expect(inbox.task.backlog).toEqual([]);
});

test("[WI3] a queued message waits: it wakes nothing, withholds no report, and is on the card in its order", () => {
  const inbox = busy();
  inbox.take(say("then lint", "queue"), say("then docs", "queue"));
  expect(inbox.get(null)).toEqual([]);
  expect(inbox.task.card.backlog).toEqual(["ext-then lint", "ext-then docs"]);
  expect(nextMove(between({ mode: { mode: "asking" } }), inbox.list(null), [], 0).move).toBe("sleep");
});

test("[WI5] a report of the current work hands the first queued message over, and only that one; the last report ends the task", () => {
  const inbox = new Inbox(between());
  inbox.take(say("then lint", "queue"), say("then docs", "queue"));
  const first = inbox.reply(done);
  expect(first.reports).toMatchObject([{ kind: "done", status: "running" }]);
  expect(inbox.task.mode.mode).toBe("working");
  expect(inbox.get(null)).toEqual(["then lint"]);
  expect(nextMove(inbox.task, inbox.list(null), [], 0)).toEqual({ move: "begin" });
  inbox.reply(done);
  expect(inbox.get(null)).toEqual(["then docs"]);
  expect(inbox.reply(done).task.mode).toMatchObject({ mode: "ended", status: "done" });
  expect(inbox.events.filter((event) => event.kind === "task.backlog").map((event) => event.change)).toEqual([
    "hold",
    "hold",
    "next",
    "next",
  ]);
});

test("[WI5] queued work gets an allowance of its own, as new work does", () => {
  const inbox = new Inbox(fresh({ steps: 14 }));
  inbox.take(say("then lint", "queue"));
  inbox.reply(done);
  expect(inbox.task.allowance).toBe(30);
});

test("[WI4] a message that no step took can be changed, taken back, and handed over by whoever said it", () => {
  const inbox = busy();
  const lint = say("then lint", "queue");
  const docs = say("then docs", "queue");
  const tests = say("then tests", "queue");
  inbox.take(lint, docs, tests);
  inbox.take(amend(lint, "edit", "then lint, with fixes"));
  inbox.take(amend(docs, "withdraw"), amend(tests, "now"));
  expect(inbox.get(heldStep)).toEqual(["then lint, with fixes"]);
  expect(inbox.get(null)).toEqual(["then tests"]);
  expect(inbox.task.card.backlog).toEqual(["ext-then lint"]);
  inbox.take(amend(lint, "edit", "mine now", stranger), amend(lint, "withdraw", "", stranger));
  expect(inbox.get(heldStep)).toEqual(["then lint, with fixes"]);
});

test("[WI4] an edit of a message that a step has taken is news, with what it replaces", () => {
  const inbox = new Inbox(between());
  const lint = say("then lint");
  inbox.take(lint);
  inbox.reply(["report", { kind: "progress", text: "on it" }]);
  inbox.take(amend(lint, "edit", "no, only format"), amend(lint, "now"));
  expect(inbox.get(null)).toEqual(["no, only format"]);
  expect(texts(beginStep(inbox.task, inbox.list(null), facts))).toContain(`"replaces":"${lint.key}"`);
});

test("[WI4] the console changes a message with the owner's authority, and hears when it is too late", () => {
  const inbox = busy();
  const lint = say("then lint", "queue");
  inbox.take(lint);
  inbox.amend(owner, lint, { change: "withdraw" });
  expect(inbox.get(heldStep)).toEqual([]);
  expect(inbox.amend(owner, lint, { change: "edit", text: "x" })).toBe("late");
});

/** Two messages of the member and one of the owner, queued in this order. */
const three = (): { inbox: Inbox; lint: InboxRow; docs: InboxRow; tests: InboxRow } => {
  const inbox = busy();
  const [lint, docs, tests] = [say("lint", "queue"), say("docs", "queue"), say("tests", "queue", owner)];
  inbox.take(lint);
  inbox.take(docs);
  inbox.take(tests);
  return { inbox, lint, docs, tests };
};

test("[WI9] a queued message is moved before another one or to the end, is handed over in the new order, and a repeat changes nothing", () => {
  const { inbox, lint, docs, tests } = three();
  expect(inbox.task.card).toMatchObject({ backlog: ["ext-lint", "ext-docs", "ext-tests"], backlogRevision: 3 });
  expect(inbox.amend(owner, tests, { change: "move", before: lint.key, revision: 3 })).toBe("done");
  expect(inbox.task.card).toMatchObject({ backlog: ["ext-tests", "ext-lint", "ext-docs"], backlogRevision: 4 });
  const known = inbox.events.length;
  expect(inbox.amend(owner, tests, { change: "move", before: lint.key, revision: 3 })).toBe("done");
  expect(inbox.task.card.backlogRevision).toBe(4);
  expect(inbox.events).toHaveLength(known);
  inbox.take(amend(lint, "move", "", member, { before: null, revision: 4 }));
  expect(inbox.task.card.backlog).toEqual(["ext-tests", "ext-docs", "ext-lint"]);
  expect(inbox.amend(owner, docs, { change: "move", before: docs.key, revision: 5 })).toBe("done");
  inbox.task = { ...inbox.task, open: { kind: "none" } };
  inbox.reply(done);
  expect(inbox.get(null)).toEqual(["tests"]);
  expect(inbox.events.filter((event) => event.kind === "task.backlog" && event.change === "move")).toMatchObject([
    { itemId: tests.key, by: owner, before: lint.key },
    { itemId: lint.key, by: member, before: null },
  ]);
});

test("[WI9] of two who move the same list, the second one, who saw an older one, is told so and changes nothing", () => {
  const { inbox, lint, docs, tests } = three();
  expect(inbox.amend(owner, tests, { change: "move", before: docs.key, revision: 3 })).toBe("done");
  expect(inbox.amend(owner, docs, { change: "move", before: lint.key, revision: 3 })).toBe("stale");
  inbox.take(amend(docs, "move", "", member, { before: lint.key, revision: 3 }));
  expect(inbox.task.card.backlog).toEqual(["ext-lint", "ext-tests", "ext-docs"]);
  expect(inbox.reports).toEqual([expect.stringMatching(/^I left the order as it is, member: .* move your message again\.$/)]);
  expect(inbox.get(null)).toEqual([]);
  // Two in one delivery: the second cannot have seen the first.
  const both = [
    amend(docs, "move", "", member, { before: lint.key, revision: 4 }),
    amend(lint, "move", "", member, { before: null, revision: 4 }),
  ];
  inbox.take(...both);
  expect(inbox.task.card.backlog).toEqual(["ext-docs", "ext-lint", "ext-tests"]);
  expect(inbox.reports).toHaveLength(2);
});

test("[WI9] only whoever said a message moves it, or the owner, and only in the list", () => {
  const { inbox, lint, docs, tests } = three();
  inbox.take(
    amend(tests, "move", "", member, { before: lint.key, revision: 3 }),
    amend(lint, "move", "", stranger, { before: null, revision: 3 }),
  );
  expect(inbox.task.card.backlog).toEqual(["ext-lint", "ext-docs", "ext-tests"]);
  expect(inbox.amend(owner, lint, { change: "move", before: "trg_unknown", revision: 3 })).toBe("stale");
  inbox.take(amend(docs, "now"));
  expect(inbox.amend(owner, docs, { change: "move", before: lint.key, revision: 4 })).toBe("late");
  expect(inbox.get(null)).toEqual(["docs"]);
});

test("[WI9] whatever is moved, nothing is lost or doubled in the list", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(4), fc.option(fc.nat(4)))), (moves) => {
      const inbox = busy();
      const rows = Array.from({ length: 5 }, (_, i) => say(`m${i}`, "queue"));
      inbox.take(...rows);
      for (const [at, to] of moves) {
        const row = rows[at];
        const before = to === null ? null : (rows[to]?.key ?? null);
        if (row) inbox.amend(owner, row, { change: "move", before, revision: inbox.task.card.backlogRevision });
        const order = inbox.task.backlog.map(({ key }) => key);
        expect([...order].sort()).toEqual(rows.map(({ key }) => key).sort());
        if (row && before !== row.key) expect(order[order.indexOf(row.key) + 1] ?? null).toBe(before);
      }
    }),
  );
});

test("[Q8] [WI2] a full backlog refuses with a reason and says so; received is enqueued and rejected, nothing else", () => {
  const inbox = busy();
  const all = Array.from({ length: limits.maxBacklog + 3 }, (_, i) => say(`queued ${i}`, "queue"));
  inbox.take(...all);
  expect(inbox.list(heldStep)).toHaveLength(limits.maxBacklog);
  expect(inbox.list(rejectedStep)).toHaveLength(3);
  const inboxed = inbox.events.filter((event) => event.kind === "task.inbox").length;
  const rejected = inbox.events.flatMap((event) => (event.kind === "task.rejected" ? [event.reason] : []));
  expect(inboxed + rejected.length).toBe(all.length);
  expect(rejected[0]).toContain("messages are queued already");
  expect(inbox.reports).toHaveLength(3);
});

test("[Q8] [WI2] a flood of events is bounded, refused with a reason, and said once", () => {
  const inbox = busy();
  for (let n = 0; n < 3; n++) inbox.take(...Array.from({ length: 300 }, (_, i) => message(`event ${n}-${i}`, bot)));
  expect(inbox.list(null)).toHaveLength(limits.maxPendingRows);
  expect(inbox.list(rejectedStep)).toHaveLength(900 - limits.maxPendingRows);
  expect(inbox.reports).toHaveLength(1);
});

test("[WI6] an interrupt stops what runs and the model call, and its words are the next input", () => {
  const open = [command(1, "run_command"), command(2, "read_file")];
  const row = say("stop that, do this", "interrupt");
  const change = received(calling(), [row], { threadId, unread: [row], open, nowMs: 0 });
  expect(change.effects).toMatchObject([
    { effect: "stop", commandId: "cmd_a-1" },
    { effect: "stop", commandId: "cmd_a-2" },
  ]);
  expect(change.task).toMatchObject({ open: { kind: "none" }, lease: { epoch: 2, untilMs: 0 }, epoch: 1 });
  expect(nextMove(change.task, [row], open, 0)).toEqual({ move: "begin" });
  const text = texts(beginStep(change.task, [row], facts));
  expect(text).toContain("stop that, do this");
  expect(text).toContain("member interrupted you. All commands that ran are being stopped.");
});

test("[WI6] an interrupt needs the authority of a stop; from others it is a message, and queued work stays queued", () => {
  const open = [command(1, "run_command")];
  const row = say("hey", "interrupt", stranger);
  const change = received(calling(), [row], { threadId, unread: [row], open, nowMs: 0 });
  expect(change.effects).toEqual([]);
  expect(change.task.lease.epoch).toBe(1);
  const inbox = busy();
  inbox.take(say("later", "queue"));
  inbox.take(say("now this", "interrupt"));
  expect(inbox.get(heldStep)).toEqual(["later"]);
});

test("[R8] what is queued when a task ends goes back to the router, in its order", () => {
  const inbox = new Inbox(between());
  inbox.take(say("then lint", "queue"), say("then docs", "queue"));
  const row = say("last words");
  inbox.take(row);
  const mute = { text: "", calls: [], usage: null, finish: "stop" as const };
  inbox.task = { ...inbox.task, mute: 2, open: { kind: "calling", step: 2, attempts: 1, retryAtMs: null } };
  const change = inbox.save(decideReply(inbox.task, mute, replyFacts({ pending: inbox.list(null), backlog: inbox.list(heldStep) })));
  const released = change.effects.flatMap((effect) =>
    effect.effect === "release" ? effect.rows.map((each) => each.row.kind === "trigger" && each.row.trigger.text) : [],
  );
  expect(released).toEqual(["then lint", "then docs", "last words"]);
  expect(inbox.list(releasedStep)).toHaveLength(3);
  expect(inbox.task.card.backlog).toBeUndefined();
});
