import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decideStep } from "../../src/core/router-decide.ts";
import { changeSchedule, setSchedule } from "../../src/core/router-schedule.ts";
import {
  afterRun,
  cronWords,
  isOver,
  localTime,
  missedByChange,
  nextDue,
  planDue,
  readTime,
  runDecided,
  runPassed,
  runSaid,
  timeWords,
  triggerOfRun,
} from "../../src/core/schedule.ts";
import { readSchedule } from "../../src/llm/offline/read-schedule.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Schedule, ScheduleTime, ScheduleWhen } from "../../src/protocol/schedule.ts";
import { guest, member, owner, queuedTrigger } from "../support/router-fixtures.ts";

const at = (iso: string): number => Date.parse(iso);
const cron = (pattern: string): ScheduleWhen => ({ kind: "cron", cron: pattern });
const next = (pattern: string, zone: string, after: string): string | null => {
  const due = nextDue(cron(pattern), zone, at(after));
  return due === null ? null : new Date(due).toISOString();
};

const schedule = (when: ScheduleWhen, parts: Partial<Schedule> = {}): Schedule => ({
  id: "sch_a",
  name: "tests",
  text: "run the tests",
  when,
  zone: "UTC",
  thread: { threadId: "thr_a", source: "web", place: "widget", threadKey: "root:prs_a", threadTitle: "member" },
  by: { role: "member", id: "prs_a", name: "member" },
  authority: "member",
  state: "active",
  why: "",
  nextMs: nextDue(when, "UTC", 0),
  failures: 0,
  createdMs: 0,
  ...parts,
});

describe("the calendar", () => {
  test("[H5] [RS2] nine o'clock on weekdays stays nine o'clock over both changes of the clock, and in UTC", () => {
    const weekdays = "0 9 * * 1-5";
    expect(next(weekdays, "Europe/Berlin", "2026-10-23T09:00:00+02:00")).toBe(new Date("2026-10-26T09:00:00+01:00").toISOString());
    expect(next(weekdays, "Europe/Berlin", "2027-03-26T09:00:00+01:00")).toBe(new Date("2027-03-29T09:00:00+02:00").toISOString());
    expect(next(weekdays, "UTC", "2026-10-23T09:00:00Z")).toBe("2026-10-26T09:00:00.000Z");
  });

  // One row a zone: the hour that is skipped in spring, and the hour that comes twice in autumn.
  test.each([
    ["Europe/Berlin", "30 2 * * *", "2027-03-27T12:00:00Z", ["2027-03-28T01:00:00.000Z", "2027-03-29T00:30:00.000Z"]],
    ["Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", ["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"]],
    ["America/New_York", "30 2 * * *", "2027-03-13T12:00:00Z", ["2027-03-14T07:00:00.000Z", "2027-03-15T06:30:00.000Z"]],
    ["America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", ["2026-11-01T05:30:00.000Z", "2026-11-02T06:30:00.000Z"]],
    ["Australia/Lord_Howe", "0 9 * * *", "2026-10-03T03:00:00Z", ["2026-10-03T22:00:00.000Z", "2026-10-04T22:00:00.000Z"]],
    ["UTC", "30 2 * * *", "2026-10-24T12:00:00Z", ["2026-10-25T02:30:00.000Z", "2026-10-26T02:30:00.000Z"]],
  ])("[RS2] in %s `%s` comes once a day, also on the day the clock changes", (zone, pattern, after, expected) => {
    const first = next(pattern, zone, after);
    expect([first, next(pattern, zone, first ?? "")]).toEqual(expected);
  });

  test("[RS2] an interval stays on its first beat, whenever it is looked at", () => {
    fc.assert(
      fc.property(fc.integer({ min: 30_000, max: 10 ** 8 }), fc.integer({ min: 0, max: 10 ** 12 }), (everyMs, after) => {
        const due = nextDue({ kind: "every", everyMs, anchorMs: 1_000 }, "UTC", after) ?? 0;
        expect((due - 1_000) % everyMs).toBe(0);
        expect(due).toBeGreaterThan(after);
        expect(due - after).toBeLessThanOrEqual(Math.max(everyMs, 1_000 + everyMs - after));
      }),
    );
  });

  test("[RS1] a time that is none, is over, or never comes is refused with a sentence", () => {
    const read = (time: ScheduleTime) => readTime(time, "Europe/Berlin", at("2026-11-30T12:00:00Z"));
    expect(read({ at: "2026-12-01 09:00" })).toEqual({ when: { kind: "once", atMs: at("2026-12-01T08:00:00Z") }, zone: "Europe/Berlin" });
    expect(read({ at: "2026-12-01T09:00:00Z" })).toMatchObject({ when: { atMs: at("2026-12-01T09:00:00Z") } });
    expect(read({ at: "2026-07-01 09:00" })).toMatchObject({ problem: expect.stringContaining("over") });
    expect(read({ at: "tomorrow" })).toMatchObject({ problem: expect.stringContaining("no time") });
    for (const none of ["2026-13-01 09:00", "2027-02-29 09:00", "2027-04-31T09:00Z", "2027-01-01 24:00", "2027-01-01 09:00:60"])
      expect(read({ at: none }), none).toMatchObject({ problem: expect.stringContaining("no time") });
    expect(read({ at: "2028-02-29 09:00" })).toHaveProperty("when");
    expect(read({ cron: "61 * * * *" })).toMatchObject({ problem: expect.stringContaining("five fields") });
    expect(read({ cron: "* * * * * *" })).toHaveProperty("problem");
    expect(read({ cron: "0 0 30 2 *" })).toMatchObject({ problem: expect.stringContaining("never") });
    expect(read({ cron: "0 9 * * *", zone: "Mars/Base" })).toMatchObject({ problem: expect.stringContaining("zone") });
    expect(read({ everyMinutes: 0.1 })).toMatchObject({ problem: expect.stringContaining("shortest") });
    for (const far of [{ everyMinutes: 1e300 }, { afterMinutes: 1e300 }, { everyMinutes: 1e11 }, { at: "9999-12-31 23:59" }])
      expect(read(far)).toEqual({ problem: "Ten years ahead is the farthest." });
    expect(read({ everyMinutes: 60 * 24 * 365 })).toHaveProperty("when");
    expect(read({ everyMinutes: 5, afterMinutes: 5 })).toMatchObject({ problem: expect.stringContaining("exactly one") });
    expect(read({})).toHaveProperty("problem");
  });
});

describe("what is due", () => {
  test("[H4] [RS3] after an outage there is one run, and one receipt for the instants before it", () => {
    const tick = schedule({ kind: "every", everyMs: 30_000, anchorMs: 0 }, { nextMs: 60_000 });
    expect(planDue(tick, false, 59_999)).toBeNull();
    expect(planDue(tick, false, 60_000)).toMatchObject({ run: { dueMs: 60_000 }, receipt: null, schedule: { nextMs: 90_000 } });
    expect(planDue(tick, false, 200_000)).toMatchObject({
      run: { dueMs: 180_000, execution: "pending" },
      receipt: { dueMs: 60_000, missed: 4, execution: "missed" },
      schedule: { nextMs: 210_000 },
    });
  });

  test("[RS3] each due instant is one run or is counted by one receipt, however the clock is looked at", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 400_000 }), fc.boolean()), { minLength: 1, maxLength: 40 }), (looks) => {
        let now = 0;
        let state = schedule({ kind: "every", everyMs: 30_000, anchorMs: 0 }, { nextMs: 30_000 });
        let covered = 0;
        const runs = new Set<string>();
        for (const [step, busy] of looks) {
          now += step;
          const plan = planDue(state, busy, now);
          if (plan === null) continue;
          state = plan.schedule;
          covered += (plan.run === null ? 0 : 1) + (plan.receipt?.missed ?? 0);
          if (plan.run !== null) {
            expect(runs.has(plan.run.id)).toBe(false);
            runs.add(plan.run.id);
          }
          expect(planDue(state, false, now)).toBeNull();
        }
        expect(covered).toBe(Math.floor(now / 30_000));
      }),
    );
  });

  test("[RS3] of however many missed instants the last one runs, and the next is after now", () => {
    const tick = schedule({ kind: "every", everyMs: 30_000, anchorMs: 0 }, { nextMs: 60_000 });
    const late = 60_000 + 20_000 * 30_000;
    expect(planDue(tick, false, late)).toMatchObject({
      run: { dueMs: late },
      receipt: { dueMs: 60_000, missed: 20_000, detail: "nobody was awake at the time" },
      schedule: { nextMs: late + 30_000 },
    });
    // A calendar is counted up to a number, and says that it was more.
    const minutes = schedule({ kind: "cron", cron: "* * * * *" }, { nextMs: 60_000, zone: "Europe/Berlin" });
    expect(planDue(minutes, false, 6_000 * 60_000 + 30_000)).toMatchObject({
      run: { dueMs: 6_000 * 60_000 },
      receipt: { missed: 4_999, detail: expect.stringContaining("more than could be counted") },
      schedule: { nextMs: 6_001 * 60_000 },
    });
  });

  test("[RS3] what is due and did not run when the schedule is changed is missed, not run and not forgotten", () => {
    const tick = schedule({ kind: "every", everyMs: 30_000, anchorMs: 0 }, { nextMs: 60_000 });
    expect(missedByChange(tick, 59_999)).toBeNull();
    expect(missedByChange(tick, 125_000)).toMatchObject({
      execution: "missed",
      dueMs: 60_000,
      missed: 3,
      detail: "it was changed before it ran",
    });
    expect(missedByChange({ ...tick, state: "paused" }, 125_000)).toBeNull();
  });

  test("[RS3] no run starts beside one that is under way; a clock that goes back fires nothing twice", () => {
    const tick = schedule({ kind: "every", everyMs: 30_000, anchorMs: 0 }, { nextMs: 60_000 });
    expect(planDue(tick, true, 60_000)).toMatchObject({ run: null, receipt: { missed: 1, detail: expect.stringContaining("under way") } });
    const after = planDue(tick, false, 60_000)?.schedule ?? tick;
    expect(planDue(after, false, 60_000 - 3_600_000)).toBeNull();
  });

  test("[RS3] a moment comes once, late if nobody was awake, and is over then", () => {
    const once = schedule({ kind: "once", atMs: 1_000 }, { nextMs: 1_000 });
    expect(planDue(once, false, 10 ** 9)).toMatchObject({
      run: { dueMs: 1_000 },
      receipt: null,
      schedule: { nextMs: null, state: "ended" },
    });
    expect(planDue(schedule({ kind: "once", atMs: 1_000 }, { state: "paused" }), false, 2_000)).toBeNull();
  });

  test("[RS4] the trigger speaks as a program with the authority of its maker, in the maker's thread", () => {
    const plan = planDue(schedule({ kind: "once", atMs: 1_000 }, { nextMs: 1_000 }), false, 1_500);
    if (!plan?.run) throw new Error("nothing is due");
    const { trigger, verdict } = triggerOfRun(plan.schedule, plan.run);
    expect(trigger).toMatchObject({
      id: plan.run.id,
      threadId: "thr_a",
      kind: "timer.due",
      text: "run the tests",
      principal: { role: "agent", onBehalfOf: "member" },
    });
    expect(verdict).toMatchObject({ outcome: "request", rule: "schedule" });
  });
});

describe("what came of it", () => {
  const run = {
    id: "trg_a-1",
    scheduleId: "sch_a",
    dueMs: 1,
    atMs: 1,
    execution: "pending",
    delivery: "none",
    missed: 0,
    taskId: null,
    detail: "",
  } as const;

  test("[RS5] execution and delivery are apart: a dispatch runs, an answer is done and not yet said", () => {
    expect(runDecided(run, { tool: "dispatch", taskId: "tsk_a", reason: "", by: "model" })).toMatchObject({
      execution: "running",
      delivery: "pending",
    });
    expect(runDecided(run, { tool: "reply", reason: "", by: "model" })).toMatchObject({ execution: "done", delivery: "pending" });
    expect(runDecided(run, { tool: "ask_human", reason: "?", by: "model" })).toMatchObject({ execution: "failed" });
    expect(runDecided(run, { tool: "record", reason: "", by: "model" })).toMatchObject({ execution: "done", delivery: "none" });
  });

  test("[RS5] what a task got with its thread is that task's, until it has ended or given it back", () => {
    const passed = runPassed(run, "tsk_a", true);
    expect(passed).toMatchObject({ execution: "running", delivery: "pending", taskId: "tsk_a" });
    expect(isOver(runPassed(run, "tsk_a", false))).toBe(true);
    expect(runDecided(passed, { tool: "record", reason: "", by: "model" })).toMatchObject({ execution: "done" });
    // A dispatch of its own: what else is decided beside it ends no run, and neither does that its thread is given to its task.
    const own = runDecided(run, { tool: "dispatch", taskId: "tsk_b", reason: "", by: "model" });
    expect(runDecided(own, { tool: "reply", reason: "", by: "model" })).toEqual(own);
    expect(runPassed(own, "tsk_b", true)).toEqual(own);
  });

  test("[RS5] the answer of a run ends as its thread's ledger says; of one that perhaps arrived that is told, and it does not count as well", () => {
    const posted = { ...run, execution: "done", delivery: "posted" } as const;
    const ends = (["sent", "confirmed", "failed", "expired", "unknown", "pending"] as const).map(
      (state) => runSaid(posted, state).delivery,
    );
    expect(ends).toEqual(["sent", "confirmed", "failed", "failed", "unknown", "unknown"]);
    expect(isOver(posted)).toBe(false);
    for (const delivery of ends) expect(isOver({ execution: "done", delivery })).toBe(true);
    expect(isOver({ execution: "running", delivery: "sent" })).toBe(false);
    // A word that came before changes nothing.
    expect(runSaid({ ...posted, delivery: "failed" }, "sent").delivery).toBe("failed");
    const held = schedule({ kind: "every", everyMs: 60_000, anchorMs: 0 });
    expect(afterRun(held, runSaid(posted, "unknown")).schedule.failures).toBe(1);
    expect(afterRun(held, runSaid(posted, "sent")).schedule.failures).toBe(0);
  });

  test("[RS5] three failures in a row pause a schedule, also when only the delivery failed; a run that went well starts the count anew", () => {
    let state = schedule({ kind: "every", everyMs: 60_000, anchorMs: 0 });
    const failed = { ...run, execution: "done", delivery: "failed", detail: "no answer" } as const;
    for (let n = 1; n < limits.maxScheduleFailures; n++) {
      const after = afterRun(state, failed);
      expect(after.paused).toBe(false);
      state = after.schedule;
    }
    expect(afterRun(afterRun(state, { ...run, execution: "done", delivery: "sent" }).schedule, failed).paused).toBe(false);
    const last = afterRun(state, failed);
    expect(last).toMatchObject({ paused: true, schedule: { state: "paused", why: expect.stringContaining("no answer") } });
    expect(afterRun(last.schedule, failed).paused).toBe(false);
  });
});

describe("setting one", () => {
  const call = (input: object, item: ReturnType<typeof queuedTrigger>, schedules: Schedule[] = []) =>
    decideStep(
      {
        turn: 1,
        step: 1,
        lane: item.lane,
        capped: false,
        nowMs: at("2026-11-30T12:00:00Z"),
        agentName: "agent",
        items: new Map([[item.id, item]]),
        progress: new Map(),
        tasks: new Map(),
        machines: [],
        policies: [],
        zone: "Europe/Berlin",
        schedules,
      },
      [{ callId: "c", tool: "schedule", input: { settles: [item.id], name: "tests", ...input } }],
    );

  test("[RS6] the same name in the same thread is the same schedule, changed", () => {
    const item = queuedTrigger({ name: "a", by: member });
    const first = call({ text: "run the tests", cron: "0 9 * * *" }, item).decisions[0]?.schedule?.schedule;
    expect(first).toMatchObject({ zone: "Europe/Berlin", nextMs: at("2026-12-01T08:00:00Z"), authority: "member", by: { id: member.id } });
    if (!first) throw new Error("nothing was set");
    const second = call({ text: "run all tests", everyMinutes: 60 }, item, [first]).decisions[0]?.schedule?.schedule;
    expect(second).toMatchObject({ id: first.id, createdMs: first.createdMs, text: "run all tests" });
    expect(
      call({ text: "x", cron: "* * * * *" }, queuedTrigger({ name: "b", by: member, thread: "x" })).decisions[0]?.schedule?.schedule.id,
    ).not.toBe(first.id);
  });

  test("[RS6] outsiders and programs set none, and an owner's is an owner's to change", () => {
    expect(call({ text: "x", afterMinutes: 1 }, queuedTrigger({ name: "a", by: guest })).decisions).toMatchObject([{ by: "code" }]);
    const timer = queuedTrigger({ name: "b", by: { role: "agent", id: "sch_a", name: "s", onBehalfOf: "owner" } });
    expect(call({ text: "x", afterMinutes: 1 }, timer).decisions).toEqual([]);
    const owned = call({ text: "x", everyMinutes: 5 }, queuedTrigger({ name: "c", by: owner })).decisions[0]?.schedule?.schedule;
    if (!owned) throw new Error("nothing was set");
    expect(call({ change: "cancel" }, queuedTrigger({ name: "d", by: member }), [owned]).refused).toHaveLength(1);
    expect(call({ change: "cancel" }, queuedTrigger({ name: "e", by: owner }), [owned]).decisions[0]?.schedule).toMatchObject({
      what: "cancelled",
    });
    expect(setSchedule(owned, { ...owned, authority: "member", time: { everyMinutes: 5 } }, "UTC", 1)).toHaveProperty("problem");
  });

  test("[RS6] [A9] by a guessed name nobody changes a schedule of another's conversation, nor learns that it exists", () => {
    const ana = { ...member, id: "prs_ana" };
    const own = call({ text: "x", everyMinutes: 5 }, queuedTrigger({ name: "a", by: ana })).decisions[0]?.schedule?.schedule;
    const open = call({ text: "x", everyMinutes: 5 }, queuedTrigger({ name: "b", by: ana, thread: "x" })).decisions[0]?.schedule?.schedule;
    if (!own || !open) throw new Error("nothing was set");
    const stranger = queuedTrigger({ name: "c", by: member });
    const reason = (schedules: Schedule[]) => call({ change: "cancel" }, stranger, schedules).refused[0]?.reason;
    expect(reason([own])).toBe(reason([]));
    expect(reason([{ ...own, authority: "owner" }])).toBe(reason([]));
    expect(call({ change: "cancel" }, queuedTrigger({ name: "d", by: ana, thread: "y" }), [own]).decisions).toEqual([]);
    expect(call({ change: "cancel" }, stranger, [own, open]).decisions[0]?.schedule).toMatchObject({ schedule: { id: open.id } });
  });

  test("[RS6] all calls of one answer together make no more schedules than there may be; a name that is there is changed", () => {
    const item = queuedTrigger({ name: "a", by: member });
    const set = (name: string, text = "x") => ({
      callId: name,
      tool: "schedule",
      input: { settles: [item.id], name, text, everyMinutes: 5 },
    });
    const held = Array.from({ length: limits.maxSchedules - 1 }, (_, n) =>
      schedule({ kind: "every", everyMs: 60_000, anchorMs: 0 }, { id: `sch_${n}`, name: `held ${n}` }),
    );
    const outcome = decideStep(
      {
        ...{ turn: 1, step: 1, lane: "team", capped: false, nowMs: 1, agentName: "agent", progress: new Map(), tasks: new Map() },
        ...{ machines: [], policies: [], zone: "UTC", schedules: held, items: new Map([[item.id, item]]) },
      },
      [set("one"), set("two"), set("one", "y")],
    );
    expect(outcome.decisions.map((each) => each.schedule?.schedule)).toMatchObject([
      { name: "one", text: "x" },
      { name: "one", text: "y" },
    ]);
    expect(outcome.refused).toMatchObject([{ reason: expect.stringContaining("cancel one first") }]);
  });

  test("[RS6] what was due while it was paused is not caught up", () => {
    const paused = schedule({ kind: "every", everyMs: 60_000, anchorMs: 0 }, { state: "paused", nextMs: 60_000 });
    expect(changeSchedule(paused, "resume", 600_500)).toMatchObject({ schedule: { state: "active", nextMs: 660_000, failures: 0 } });
    expect(changeSchedule(schedule({ kind: "once", atMs: 5 }, { state: "paused" }), "resume", 10)).toHaveProperty("problem");
  });

  test("[RS6] what is over is not paused, which would have it wait for nothing", () => {
    const over = schedule({ kind: "once", atMs: 5 }, { state: "ended", nextMs: null });
    expect(changeSchedule(over, "pause", 10)).toHaveProperty("problem");
  });

  test("times are said in words and in the clock of their zone", () => {
    expect(localTime(at("2026-12-01T08:00:00Z"), "Europe/Berlin")).toBe("2026-12-01 09:00");
    expect(timeWords({ when: cron("0 9 * * *"), zone: "UTC" })).toBe("every day at 09:00 (UTC)");
    expect(timeWords({ when: { kind: "every", everyMs: 7_200_000, anchorMs: 0 }, zone: "UTC" })).toBe("every 2 h");
  });
});

test.each([
  ["5 17 * * 1-5", "every weekday at 17:05"],
  ["30 8 * * 0,6", "every weekend at 08:30"],
  ["30 8 * * 1", "every monday at 08:30"],
  ["0 0 * * 7", "every sunday at 00:00"],
  ["0 9 1 * *", "0 9 1 * *"],
  ["*/5 * * * *", "*/5 * * * *"],
  ["0 9 * 1 *", "0 9 * 1 *"],
  ["0 9 * * 1,3", "0 9 * * 1,3"],
])("[RS1] the pattern %s is said as “%s”", (pattern, words) => {
  expect(cronWords(pattern)).toBe(words);
});

describe("the offline model's forms", () => {
  test.each([
    ["every day at 9 run the tests", { cron: "0 9 * * *" }, "run the tests"],
    ["Every monday at 8:30 (Europe/Berlin) run the tests", { cron: "30 8 * * 1", zone: "Europe/Berlin" }, "run the tests"],
    ["every weekday at 5:15 pm, build", { cron: "15 17 * * 1-5" }, "build"],
    ["please every 2 hours run `npm test`", { everyMinutes: 120 }, "run `npm test`"],
    ["every hour build", { everyMinutes: 60 }, "build"],
    ["in 10 minutes run the tests", { afterMinutes: 10 }, "run the tests"],
    ["at 2026-12-01 09:00 run the linter", { at: "2026-12-01 09:00" }, "run the linter"],
    ["@agent at 2026-12-01 09:00 UTC: run the linter", { at: "2026-12-01 09:00", zone: "UTC" }, "run the linter"],
    ["every morning at 9 build", { cron: "0 9 * * *" }, "build"],
    ["every evening at 8 build", { cron: "0 20 * * *" }, "build"],
    ["run the tests every day at 9.", { cron: "0 9 * * *" }, "run the tests"],
    ["run the tests, in 10 minutes", { afterMinutes: 10 }, "run the tests"],
    ["tomorrow at 9 run the tests", { at: "2027-01-01 09:00" }, "run the tests"],
    ["run the tests tomorrow at 9pm", { at: "2027-01-01 21:00" }, "run the tests"],
    ["today at 9 run the tests", { at: "2026-12-31 09:00" }, "run the tests"],
    ["at 9:30 run the tests", { at: "2027-01-01 09:30" }, "run the tests"],
    ["at 17:30 run the tests", { at: "2026-12-31 17:30" }, "run the tests"],
  ])("[RS1] %s", (text, time, wanted) => {
    expect(readSchedule(text, "2026-12-31 13:14")).toMatchObject({ do: "set", time, text: wanted });
  });

  test.each(["at 25:00 run the tests", "every day at 25 run the tests", "run the tests every night", "on friday at 9 run the tests"])(
    "[RS1] a time that none of them reads is noticed: %s",
    (text) => {
      expect(readSchedule(text, "2026-12-31 13:14")).toEqual({ do: "unclear", text: "run the tests" });
    },
  );

  test("lists, changes, and everything that is no schedule", () => {
    expect(readSchedule("list schedules")).toEqual({ do: "list" });
    expect(readSchedule("cancel schedule run the tests")).toEqual({ do: "change", change: "cancel", name: "run the tests" });
    expect(readSchedule("pause the schedule “nightly”.")).toEqual({ do: "change", change: "pause", name: "nightly" });
    for (const text of ["run the tests", "cancel", "what is at 9?", "in time run it"]) expect(readSchedule(text)).toBeNull();
    expect(readSchedule("every day at 9")).toEqual({ do: "unclear", text: "" });
    // What names no date needs a clock.
    expect(readSchedule("tomorrow at 9 run the tests")).toEqual({ do: "unclear", text: "run the tests" });
  });
});
