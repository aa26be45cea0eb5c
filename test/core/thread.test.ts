import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeId, triggerIdOf } from "../../src/core/ids.ts";
import {
  activeTasks,
  alsoWith,
  covers,
  hopsOf,
  isActive,
  isForRouter,
  labelOfOurs,
  mergedTask,
  planAppend,
  planFlip,
  rekeyForTopic,
  rootThreadIdOf,
  type Subscription,
  topicThreadIdOf,
  toWidgetRow,
} from "../../src/core/thread.ts";
import type { ThreadEvent } from "../../src/protocol/events.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { ThreadRow } from "../../src/protocol/thread.ts";
import { type Outcome, outcomes, type Trigger, timerKind, type Verdict } from "../../src/protocol/trigger.ts";

const threadId = makeId("thr", "core");
const member: Principal = { role: "member", id: "prs_member", name: "Member" };

const trigger = (deliveryId: string, more: Partial<Trigger> = {}): Trigger => ({
  id: triggerIdOf("github", deliveryId, threadId),
  source: "github",
  deliveryId,
  threadId,
  place: "acme/app",
  threadKey: "issue:1",
  threadTitle: "An issue",
  kind: "issue_comment.created",
  principal: member,
  addressed: true,
  text: "hello",
  atMs: 0,
  hops: 0,
  ...more,
});
const verdict = (outcome: Outcome): Verdict => ({ outcome, rule: `rule.${outcome}`, reason: "" });
const subscription = (more: Partial<Subscription> = {}): Subscription => ({
  taskId: "tsk_a",
  decisionId: "dec_a",
  fromSeq: 1,
  cutSeq: 1,
  cursor: 0,
  endSeq: null,
  tainted: false,
  ...more,
});

describe("what a thread does with a trigger", () => {
  const plan = (more: Partial<Parameters<typeof planAppend>[0]>) =>
    planAppend({
      trigger: trigger("d1"),
      verdict: verdict("request"),
      subscriptions: [],
      knownSeq: null,
      echo: null,
      saidLately: () => false,
      hopsHere: () => 0,
      fromChannel: true,
      ...more,
    });

  test("[T2] without a subscriber it is decided, and `ignore` leaves no row", () => {
    expect(plan({})).toMatchObject({ do: "accept", event: { mode: "decide", subscribers: [] } });
    expect(plan({ verdict: verdict("ignore") })).toEqual({ do: "ignore", rule: "rule.ignore" });
  });

  test("[G14] small talk is kept without a decision, unless we spoke there lately; a rule of the team's own counts as it stands", () => {
    const talk = { trigger: { ...trigger("d1"), facts: { words: "talk" } }, saidLately: () => true };
    const shipped = { outcome: "record" as const, rule: "generic.talk", reason: "talk" };
    const outcome = (more: Parameters<typeof plan>[0]): string => {
      const planned = plan(more);
      return planned.do === "accept" ? planned.event.verdict.outcome : planned.do;
    };
    expect(outcome({ ...talk, verdict: shipped })).toBe("candidate");
    expect(outcome({ ...talk, verdict: { ...shipped, rule: "github.talk:issue_comment.created" } })).toBe("candidate");
    expect(outcome({ ...talk, verdict: shipped, saidLately: () => false })).toBe("record");
    expect(outcome({ ...talk, verdict: { ...shipped, rule: "team.quiet" } })).toBe("record");
  });

  test("[T2] with a subscriber everything is accepted, and the router only observes", () => {
    expect(plan({ verdict: verdict("ignore"), subscriptions: [subscription()] })).toMatchObject({
      do: "accept",
      event: { mode: "observe", subscribers: ["tsk_a"] },
    });
    expect(plan({ subscriptions: [subscription({ endSeq: 4 })] })).toMatchObject({ event: { mode: "decide" } });
  });

  test("[T5] an owner's mute holds also where a task follows the thread; what is known, and our own confirmation, are told first", () => {
    const muted = { verdict: verdict("mute"), subscriptions: [subscription()] };
    expect(plan(muted)).toEqual({ do: "ignore", rule: "rule.mute" });
    expect(plan({ ...muted, knownSeq: 7 })).toEqual({ do: "duplicate", seq: 7 });
    const echo = { ...trigger("d2"), facts: { echoOf: "out_a" } };
    expect(plan({ ...muted, trigger: echo, echo: { id: "out_a", state: "sent" } })).toMatchObject({ do: "confirm" });
  });

  test("[R3] a known trigger changes nothing, also when the gate would ignore it now", () => {
    expect(plan({ knownSeq: 7, verdict: verdict("ignore") })).toEqual({ do: "duplicate", seq: 7 });
  });

  test("[T2] our own message confirms its row; quoted by a person in another thread it is a trigger like any other", () => {
    const echo = trigger("d2", { facts: { echoOf: "out_x" } });
    expect(plan({ trigger: echo, echo: { id: "out_x", state: "sent" } })).toEqual({ do: "confirm", outboundId: "out_x", news: true });
    expect(plan({ trigger: echo, echo: { id: "out_x", state: "confirmed" } })).toEqual({ do: "confirm", outboundId: "out_x", news: false });
    expect(plan({ trigger: echo, echo: null }).do).toBe("accept");
  });

  test("[O10] our own pull request begins its thread and asks nobody, whatever the rules say; to its branch it comes only as an echo", () => {
    const opened = trigger("d3", { kind: "pull_request.opened", threadKey: "pull:7", facts: { self: "marked" } });
    for (const outcome of ["request", "candidate", "record", "ignore"] as const)
      expect(plan({ trigger: opened, verdict: verdict(outcome) })).toMatchObject({
        do: "accept",
        event: { mode: "decide", verdict: { outcome: "record", rule: "own.pull_request" } },
      });
    expect(plan({ trigger: opened, verdict: verdict("mute") }).do).toBe("ignore");
    const atBranch = { ...opened, threadKey: "branch:switchyard/tsk_a", facts: { echoOf: "out_x" } };
    expect(plan({ trigger: atBranch, subscriptions: [subscription()] })).toEqual({ do: "ignore", rule: "own.pull_request" });
    expect(plan({ trigger: atBranch, echo: { id: "out_x", state: "sent" } }).do).toBe("confirm");
  });

  test("[W30] a merge of a task's branch by a person of the team is a word on that task, nothing else is", () => {
    const taskId = "tsk_abcdefghijklmn";
    const facts = { merged: "true", branch: `switchyard/${taskId}` };
    const role = (name: Principal["role"]): Principal => ({ role: name, id: "x", name: "x" });
    const closed = { source: "github", kind: "pull_request.closed", facts, principal: role("member") };
    expect(mergedTask(closed)).toBe(taskId);
    expect(mergedTask({ ...closed, principal: role("owner") })).toBe(taskId);
    for (const name of ["guest", "public", "bot", "agent"] as const) expect(mergedTask({ ...closed, principal: role(name) })).toBeNull();
    expect(mergedTask({ ...closed, kind: "pull_request.edited" })).toBeNull();
    expect(mergedTask({ ...closed, source: "generic" })).toBeNull();
    expect(mergedTask({ ...closed, facts: { branch: facts.branch } })).toBeNull();
    expect(mergedTask({ ...closed, facts: { ...facts, fork: "true" } })).toBeNull();
    for (const branch of ["main", "switchyard/tsk_", "switchyard/tsk_a/b", "x/switchyard/tsk_abc"])
      expect(mergedTask({ ...closed, facts: { ...facts, branch } })).toBeNull();
  });

  test("[O10] a label is ours only when our own account put it on", () => {
    const labelled = { kind: "issues.labeled", facts: { self: "unmarked", label: "bug" } };
    expect(labelOfOurs(labelled)).toBe("bug");
    expect(labelOfOurs({ ...labelled, kind: "pull_request.labeled" })).toBe("bug");
    expect(labelOfOurs({ ...labelled, facts: { label: "bug" } })).toBeNull();
    expect(labelOfOurs({ ...labelled, kind: "issues.unlabeled" })).toBeNull();
  });

  test("[T8] what a channel brings and the ledger does not confirm is not the agent's, and keeps no claim to be", () => {
    const claimed = trigger("d2", { principal: { role: "agent", id: "bot", name: "Bot" }, facts: { echoOf: "out_x", action: "created" } });
    const planned = plan({ trigger: claimed });
    expect(planned.do === "accept" && planned.event.trigger).toMatchObject({ principal: { role: "public", id: "bot" } });
    expect(planned.do === "accept" && planned.event.trigger.facts).toEqual({ action: "created" });
    const inside = plan({ trigger: claimed, fromChannel: false });
    expect(inside.do === "accept" && inside.event.trigger.principal.role).toBe("agent");
  });

  test("[T16] what a program says carries on the hops of our words before it, where it asks for a decision; a person's word begins anew", () => {
    const bot: Principal = { role: "bot", id: "helper", name: "helper" };
    const hops = (by: Principal, outcome: Outcome): number => {
      const planned = plan({ trigger: trigger("d1", { principal: by }), verdict: verdict(outcome), hopsHere: () => 3 });
      return planned.do === "accept" ? planned.event.trigger.hops : -1;
    };
    expect([hops(bot, "candidate"), hops(bot, "request"), hops(bot, "record"), hops(member, "candidate")]).toEqual([3, 3, 0, 0]);
    const said = (count: number): ThreadRow => ({
      ...{ kind: "outbound", seq: 1, atMs: 0, state: "sent" },
      outbound: { id: "out_a-b", threadId, kind: "reply", text: "hello", hops: count },
    });
    const heard = (by: Principal, kind = "issue_comment.created"): ThreadRow => ({
      ...{ kind: "trigger", seq: 1, atMs: 0, verdict: verdict("candidate") },
      trigger: trigger("d1", { principal: by, kind }),
    });
    const schedule: Principal = { role: "agent", id: "sch_a", name: "Schedule", onBehalfOf: "member" };
    expect([
      hopsOf([]),
      hopsOf([said(1), heard(bot), said(2), heard(bot), heard(bot)]),
      hopsOf([said(2), heard(member), heard(bot)]),
      hopsOf([said(2), heard(schedule, timerKind)]),
    ]).toEqual([0, 2, 0, 0]);
  });

  test("[T3] `record` is kept and asked of nobody; observed rows are not the router's", () => {
    const event = (outcome: Outcome, mode: "decide" | "observe"): ThreadEvent => ({
      kind: "thread.accepted",
      trigger: trigger("d1"),
      verdict: verdict(outcome),
      mode,
      subscribers: [],
    });
    expect(outcomes.filter((outcome) => isForRouter(event(outcome, "decide")))).toEqual(["candidate", "request"]);
    expect(outcomes.filter((outcome) => isForRouter(event(outcome, "observe")))).toEqual([]);
  });
});

describe("where a flip cuts", () => {
  const flip = (more: Partial<Parameters<typeof planFlip>[0]> = {}) =>
    planFlip({
      threadKey: "issue:1",
      subscriptions: [],
      taskId: "tsk_a",
      decisionId: "dec_a",
      triggerSeq: 5,
      firstSeq: 1,
      historyBytes: 1000,
      waitingSeq: null,
      headSeq: 9,
      ...more,
    });

  test("[T4] a small issue is handed over whole, a long one from the settled trigger", () => {
    expect(flip()).toMatchObject({ flip: { fromSeq: 1, cutSeq: 9, cursor: 0 } });
    expect(flip({ historyBytes: 40_000 })).toMatchObject({ flip: { fromSeq: 5, cutSeq: 9, cursor: 4 } });
    expect(flip({ threadKey: "branch:main" })).toMatchObject({ flip: { fromSeq: 5 } });
  });

  test("[R8] a row that the router did not take goes to the worker, also when it is older than the settled trigger", () => {
    expect(flip({ historyBytes: 40_000, waitingSeq: 3 })).toMatchObject({ flip: { fromSeq: 3 } });
  });

  test("[R3] the same decision gets the same answer, also after the task's end", () => {
    const ended = subscription({ fromSeq: 2, cutSeq: 3, endSeq: 6 });
    expect(flip({ subscriptions: [ended] })).toEqual({ known: ended });
    expect(flip({ subscriptions: [subscription()], decisionId: "dec_b" })).toHaveProperty("known");
  });

  test("[R7] a task that comes back starts after its own end", () => {
    const ended = subscription({ fromSeq: 1, cutSeq: 3, endSeq: 6 });
    expect(flip({ subscriptions: [ended], decisionId: "dec_b" })).toMatchObject({ flip: { fromSeq: 7, cursor: 6 } });
  });

  test("a trigger of another thread cannot flip this one", () => {
    expect(flip({ triggerSeq: null })).toBe("no_such_row");
  });
});

/** A thread in memory over the real decisions: what the object does in SQL. */
class ModelThread {
  readonly log: ThreadEvent[] = [];
  subscriptions: Subscription[] = [];
  routerCursor = 0;
  readonly router: number[] = [];
  readonly taken = new Map<string, number[]>();
  readonly promised = new Map<number, string[]>();

  append(deliveryId: string, outcome: Outcome): void {
    const one = trigger(deliveryId);
    const knownSeq = this.log.findIndex((event) => event.kind === "thread.accepted" && event.trigger.id === one.id) + 1;
    const plan = planAppend({
      trigger: one,
      verdict: verdict(outcome),
      subscriptions: this.subscriptions,
      knownSeq: knownSeq === 0 ? null : knownSeq,
      echo: null,
      saidLately: () => false,
      hopsHere: () => 0,
      fromChannel: true,
    });
    if (plan.do !== "accept") return;
    this.log.push(plan.event);
    this.promised.set(this.log.length, activeTasks(this.subscriptions));
  }

  #waiting(): number | null {
    const at = this.log.findIndex((event, i) => i + 1 > this.routerCursor && isForRouter(event));
    return at < 0 ? null : at + 1;
  }

  subscribe(taskId: string, decisionId: string, historyBytes: number): void {
    // A decision settles a row that the router has.
    const triggerSeq = this.router.at(-1) ?? null;
    const plan = planFlip({
      threadKey: "issue:1",
      subscriptions: this.subscriptions,
      taskId,
      decisionId,
      triggerSeq,
      firstSeq: 1,
      historyBytes,
      waitingSeq: this.#waiting(),
      headSeq: this.log.length,
    });
    if (plan === "no_such_row" || "known" in plan) return;
    this.subscriptions.push(plan.flip);
    this.routerCursor = Math.max(this.routerCursor, plan.flip.cutSeq);
    this.log.push({ kind: "thread.subscribed", taskId, fromSeq: plan.flip.fromSeq, cutSeq: plan.flip.cutSeq, decisionId });
  }

  unsubscribe(taskId: string): void {
    if (!this.subscriptions.some((one) => one.taskId === taskId && isActive(one))) return;
    const atSeq = this.log.length;
    this.subscriptions = this.subscriptions.map((one) => (one.taskId === taskId && isActive(one) ? { ...one, endSeq: atSeq } : one));
    this.routerCursor = Math.max(this.routerCursor, atSeq);
    this.log.push({ kind: "thread.unsubscribed", taskId, atSeq, reason: "" });
  }

  toRouter(rows: number): void {
    for (let i = 0; i < rows && !this.subscriptions.some(isActive); i++) {
      const seq = this.#waiting();
      if (seq === null) return;
      this.router.push(seq);
      this.routerCursor = seq;
    }
  }

  toTask(taskId: string, rows: number): void {
    for (let i = 0; i < rows; i++) {
      const next = this.subscriptions
        .filter((one) => one.taskId === taskId)
        .map((one) => {
          const at = this.log.findIndex((event, n) => n + 1 > one.cursor && covers(one, n + 1) && event.kind === "thread.accepted");
          return { one, seq: at + 1 };
        })
        .find(({ seq }) => seq > 0);
      if (!next) return;
      this.taken.set(taskId, [...(this.taken.get(taskId) ?? []), next.seq]);
      this.subscriptions = this.subscriptions.map((one) => (one === next.one ? { ...one, cursor: next.seq } : one));
    }
  }
}

describe("any interleaving of rows, flips, ends and deliveries", () => {
  const task = fc.constantFrom("tsk_a", "tsk_b", "tsk_c");
  const op = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("append" as const), id: fc.nat(15), outcome: fc.constantFrom(...outcomes) }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("subscribe" as const), task, decision: fc.nat(4), bytes: fc.constantFrom(100, 99_999) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("unsubscribe" as const), task }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("router" as const), rows: fc.integer({ min: 1, max: 3 }) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("task" as const), task, rows: fc.integer({ min: 1, max: 3 }) }) },
  );

  test("[R3] [R5] [R7] [R8] each subscriber gets its range once and in order, and no row falls between it and the router", () => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 60 }), (ops) => {
        const model = new ModelThread();
        for (const one of ops) {
          if (one.do === "append") model.append(`d${one.id}`, one.outcome);
          if (one.do === "subscribe") model.subscribe(one.task, `dec_${one.task}_${one.decision}`, one.bytes);
          if (one.do === "unsubscribe") model.unsubscribe(one.task);
          if (one.do === "router") model.toRouter(one.rows);
          if (one.do === "task") model.toTask(one.task, one.rows);
        }
        model.toRouter(1000);
        for (const id of ["tsk_a", "tsk_b", "tsk_c"]) model.toTask(id, 1000);

        for (const id of ["tsk_a", "tsk_b", "tsk_c"]) {
          const own = model.subscriptions.filter((one) => one.taskId === id);
          const expected = model.log.flatMap((event, i) =>
            event.kind === "thread.accepted" && own.some((one) => covers(one, i + 1)) ? [i + 1] : [],
          );
          expect(model.taken.get(id) ?? []).toEqual(expected);
        }
        model.log.forEach((event, i) => {
          const seq = i + 1;
          for (const id of model.promised.get(seq) ?? []) expect(model.taken.get(id)).toContain(seq);
          if (event.kind !== "thread.accepted" || (event.verdict.outcome !== "candidate" && event.verdict.outcome !== "request")) return;
          const withTask = [...model.taken.values()].some((rows) => rows.includes(seq));
          expect(withTask || model.router.includes(seq)).toBe(true);
          if (event.mode === "observe") expect(model.router).not.toContain(seq);
        });
        expect(new Set(model.router).size).toBe(model.router.length);
      }),
      { numRuns: 1000 },
    );
  });

  test("a row names the other tasks that it reaches", () => {
    const subscriptions = [subscription(), subscription({ taskId: "tsk_b", fromSeq: 3 }), subscription({ taskId: "tsk_c", endSeq: 2 })];
    const statuses = new Map([["tsk_c", "waiting" as const]]);
    expect(alsoWith(subscriptions, "tsk_a", 2, statuses)).toEqual([{ task: "tsk_c", status: "waiting" }]);
    expect(alsoWith(subscriptions, "tsk_a", 3, statuses)).toEqual([{ task: "tsk_b", status: "queued" }]);
  });
});

describe("topics and pages", () => {
  test("a topic's first row is the settled trigger under the topic's own ids, and re-keying twice is re-keying once", () => {
    const topicId = topicThreadIdOf("tsk_a");
    const first = rekeyForTopic(trigger("d1"), topicId, "tsk_a", "A task");
    expect(first).toMatchObject({
      id: triggerIdOf("github", "d1", topicId),
      threadId: topicId,
      threadKey: "topic:tsk_a",
      deliveryId: "d1",
    });
    expect(rekeyForTopic(first, topicId, "tsk_a", "A task")).toEqual(first);
  });

  const row = (more: Partial<Trigger>): ThreadRow => ({
    kind: "trigger",
    seq: 1,
    atMs: 5,
    verdict: verdict("request"),
    trigger: trigger("prs_member:message-1", { source: "web", kind: "message", ...more }),
  });

  test("[T6] a page shows its person's own messages with the page's id of them, and nobody else's", () => {
    expect(toWidgetRow(row({}), "prs_member")).toMatchObject({
      kind: "message",
      from: { you: true, role: "member" },
      clientMsgId: "message-1",
    });
    expect(toWidgetRow(row({}), "gst_other")).toBeNull();
    const said = { id: "out_a-b", threadId, kind: "reply" as const, text: "hello", hops: 1, decisionId: "dec_a" };
    const reply = (more: object) =>
      toWidgetRow({ kind: "outbound", seq: 1, atMs: 0, outbound: { ...said, ...more }, state: "sent" }, "prs_member");
    expect(reply({ proactive: true })).toMatchObject({ kind: "reply", id: "out_a-b", proactive: true });
    expect(reply({})).not.toHaveProperty("proactive");
    expect(toWidgetRow(row({ source: "github", kind: "issues.opened" }), "prs_member")).toBeNull();
  });

  test("[T6] a page shows which schedule of its person spoke, and nobody else's", () => {
    const due: Partial<Trigger> = {
      kind: timerKind,
      text: "run the tests",
      principal: { role: "agent", id: "sch_a", name: "Schedule “nightly” of member", onBehalfOf: "member" },
      facts: { schedule: "sch_a", for: "prs_member" },
    };
    expect(toWidgetRow(row(due), "prs_member")).toEqual({
      kind: "message",
      from: { role: "agent", name: "Schedule “nightly” of member", you: false },
      text: "run the tests",
      atMs: 5,
    });
    expect(toWidgetRow(row(due), "prs_other")).toBeNull();
    expect(toWidgetRow(row({ ...due, source: "github" }), "prs_member")).toBeNull();
  });

  test("each principal has one root, whatever is asked first", () => {
    expect(rootThreadIdOf("prs_member")).toBe(rootThreadIdOf("prs_member"));
    expect(rootThreadIdOf("prs_member")).not.toBe(rootThreadIdOf("gst_other"));
  });
});
