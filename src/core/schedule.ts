// When schedules are due, and what becomes of their runs. The calendar is a library's; the rules are here.
import { Cron } from "croner";
import { messageOf } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { Schedule, ScheduleRun, ScheduleTime, ScheduleWhen } from "../protocol/schedule.ts";
import type { OutboundState } from "../protocol/thread.ts";
import { type Trigger, timerKind, type Verdict } from "../protocol/trigger.ts";
import { makeId, triggerIdOf } from "./ids.ts";

/** Due instants of a calendar that one receipt counts exactly: each has to be looked up. */
const maxCounted = 5_000;

export const scheduleIdOf = (threadId: string, name: string): string => makeId("sch", threadId, name.trim().toLowerCase());

/** Whether the name is one of an IANA zone. */
function isZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone !== "";
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

const calendar = (pattern: string, zone: string): Cron => new Cron(pattern, { timezone: zone, paused: true, mode: "5-part" });

/** [RS1] A time as it was said, or a sentence on what is wrong with it. */
export function readTime(input: ScheduleTime, zone: string, nowMs: number): { when: ScheduleWhen; zone: string } | { problem: string } {
  const own = input.zone ?? zone;
  if (!isZone(own)) return { problem: `"${own}" is no time zone; use a name like Europe/Berlin.` };
  const given = [input.at, input.afterMinutes, input.everyMinutes, input.cron].filter((each) => each !== undefined);
  if (given.length !== 1) return { problem: "Say exactly one of at, afterMinutes, everyMinutes and cron." };
  const read = readOne(input, own, nowMs);
  if ("problem" in read) return read;
  const { when } = read;
  const aheadMs = when.kind === "once" ? when.atMs - nowMs : when.kind === "every" ? when.everyMs : 0;
  return aheadMs <= limits.maxScheduleAheadMs ? read : { problem: "Ten years ahead is the farthest." };
}

function readOne(input: ScheduleTime, own: string, nowMs: number): { when: ScheduleWhen; zone: string } | { problem: string } {
  if (input.afterMinutes !== undefined) return { when: { kind: "once", atMs: Math.round(nowMs + input.afterMinutes * 60_000) }, zone: own };
  if (input.everyMinutes !== undefined) {
    const everyMs = Math.round(input.everyMinutes * 60_000);
    if (everyMs < limits.minScheduleMs) return { problem: `Every ${limits.minScheduleMs / 1000} seconds is the shortest interval.` };
    return { when: { kind: "every", everyMs, anchorMs: nowMs }, zone: own };
  }
  if (input.at !== undefined) return readInstant(input.at, own, nowMs);
  try {
    const cron = (input.cron ?? "").trim();
    if (calendar(cron, own).nextRun(new Date(nowMs)) === null) return { problem: `"${cron}" never comes.` };
    return { when: { kind: "cron", cron }, zone: own };
  } catch {
    // The parser's own words speak of fields and forms that are not taken here.
    return { problem: `"${input.cron}" is no cron pattern of five fields: minute, hour, day, month and weekday, like 0 9 * * 1-5.` };
  }
}

/** Readers of dates count on where a month has ended: the 30th of February is the 2nd of March to them. */
const isDay = (date: string): boolean => String(new Date(`${date}T00:00:00Z`).getUTCDate()).padStart(2, "0") === date.slice(8);

function readInstant(at: string, zone: string, nowMs: number): { when: ScheduleWhen; zone: string } | { problem: string } {
  const [, date, time, offset] =
    /^(\d{4}-\d{2}-\d{2})[T ]((?:[01]\d|2[0-3]):[0-5]\d)(?::[0-5]\d)?(Z|[+-]\d{2}:\d{2})?$/.exec(at.trim()) ?? [];
  const problem = `"${at}" is no time; write it like 2026-12-01 09:00.`;
  if (date === undefined || time === undefined || !isDay(date)) return { problem };
  let atMs: number;
  try {
    atMs =
      offset === undefined
        ? (new Cron(`${date}T${time}:00`, { timezone: zone, paused: true }).nextRun(new Date(0))?.getTime() ?? Number.NaN)
        : new Date(`${date}T${time}:00${offset}`).getTime();
  } catch (error) {
    return { problem: `${problem} (${messageOf(error)})` };
  }
  if (Number.isNaN(atMs)) return { problem };
  if (atMs <= nowMs) return { problem: `${at} in ${zone} is over.` };
  return { when: { kind: "once", atMs }, zone };
}

/** [RS2] The first due instant after a time; intervals stay on their first beat, cron follows the clock of its zone. */
export function nextDue(when: ScheduleWhen, zone: string, afterMs: number): number | null {
  switch (when.kind) {
    case "once":
      return when.atMs > afterMs ? when.atMs : null;
    case "every":
      return when.anchorMs + when.everyMs * (Math.max(0, Math.floor((afterMs - when.anchorMs) / when.everyMs)) + 1);
    case "cron":
      return calendar(when.cron, zone).nextRun(new Date(afterMs))?.getTime() ?? null;
  }
}

type DueInstants = {
  last: number;
  count: number;
  next: number | null;
  /** The calendar has more of them than were counted. */
  more: boolean;
};

/** The instants from one that is due up to now. */
function dueUpTo({ when, zone }: Pick<Schedule, "when" | "zone">, firstMs: number, nowMs: number): DueInstants {
  switch (when.kind) {
    case "once":
      return { last: firstMs, count: 1, next: null, more: false };
    case "every": {
      const count = Math.floor((nowMs - firstMs) / when.everyMs) + 1;
      const last = firstMs + (count - 1) * when.everyMs;
      return { last, count, next: last + when.everyMs, more: false };
    }
    case "cron": {
      let [last, count] = [firstMs, 1];
      let next = nextDue(when, zone, last);
      for (; next !== null && next <= nowMs && count < maxCounted; count++) {
        last = next;
        next = nextDue(when, zone, last);
      }
      if (next === null || next > nowMs) return { last, count, next, more: false };
      const latest = calendar(when.cron, zone).previousRuns(1, new Date(nowMs))[0]?.getTime() ?? last;
      return { last: Math.max(last, latest), count, next: nextDue(when, zone, nowMs), more: true };
    }
  }
}

export type DuePlan = {
  schedule: Schedule;
  /** The run to start; null when the one before is still under way. */
  run: ScheduleRun | null;
  receipt: ScheduleRun | null;
};

/**
 * [RS3] Each due instant is one run or one receipt: of what became due while nobody looked, the last runs and the others are missed;
 * while a run is under way, none starts beside it. Null when nothing is due.
 */
export function planDue(schedule: Schedule, busy: boolean, nowMs: number): DuePlan | null {
  if (schedule.state !== "active" || schedule.nextMs === null || schedule.nextMs > nowMs) return null;
  const { last, count, next, more } = dueUpTo(schedule, schedule.nextMs, nowMs);
  const missed = busy ? count : count - 1;
  const triggerId = triggerIdOf(schedule.thread.source, deliveryIdOf(schedule, last), schedule.thread.threadId);
  const about = { scheduleId: schedule.id, atMs: nowMs, taskId: null };
  return {
    schedule: { ...schedule, nextMs: next, state: next === null ? "ended" : "active" },
    run: busy ? null : { ...about, id: triggerId, dueMs: last, execution: "pending", delivery: "none", missed: 0, detail: "" },
    receipt:
      missed === 0
        ? null
        : {
            ...about,
            id: `missed:${schedule.id}:${schedule.nextMs}`,
            dueMs: schedule.nextMs,
            execution: "missed",
            delivery: "none",
            missed,
            detail: `${busy ? "the run before was still under way" : "nobody was awake at the time"}${more ? "; they were more than could be counted" : ""}`,
          },
  };
}

/** [RS3] What is due and did not run when somebody changes the schedule is missed: nobody who pauses it wants it to run first. */
export function missedByChange(schedule: Schedule, nowMs: number): ScheduleRun | null {
  const receipt = planDue(schedule, true, nowMs)?.receipt ?? null;
  return receipt && { ...receipt, detail: "it was changed before it ran" };
}

const deliveryIdOf = (schedule: Schedule, dueMs: number): string => `schedule:${schedule.id}:${dueMs}`;

/** [RS4] The trigger of a due instant: said by the schedule, with the authority of the person who made it, in that person's thread. */
export function triggerOfRun(schedule: Schedule, run: ScheduleRun): { trigger: Trigger; verdict: Verdict } {
  const { thread, name, by } = schedule;
  return {
    trigger: {
      ...thread,
      id: run.id,
      deliveryId: deliveryIdOf(schedule, run.dueMs),
      kind: timerKind,
      principal: { role: "agent", id: schedule.id, name: `Schedule “${name}” of ${by.name}`.slice(0, 200), onBehalfOf: schedule.authority },
      addressed: true,
      text: schedule.text,
      facts: { schedule: schedule.id, for: by.id, due: new Date(run.dueMs).toISOString() },
      atMs: run.dueMs,
      hops: 0,
    },
    verdict: { outcome: "request", rule: "schedule", reason: `The schedule “${name}” is due.` },
  };
}

/** [RS5] After a run has ended: a failure counts, and after some in a row the schedule is paused. */
export function afterRun(schedule: Schedule, run: ScheduleRun): { schedule: Schedule; paused: boolean } {
  const failed = run.execution === "failed" || run.delivery === "failed" || run.delivery === "unknown";
  if (!failed) return { schedule: { ...schedule, failures: 0 }, paused: false };
  const failures = schedule.failures + 1;
  if (failures < limits.maxScheduleFailures || schedule.state !== "active") return { schedule: { ...schedule, failures }, paused: false };
  const why = `${failures} runs in a row failed. The last: ${run.detail || "no reason was given"}`;
  return { schedule: { ...schedule, failures, state: "paused", why }, paused: true };
}

/** [RS5] Whether nothing more comes of a run: it ran, and of its answer it is known what became of it. */
export const isOver = ({ execution, delivery }: Pick<ScheduleRun, "execution" | "delivery">): boolean =>
  execution === "failed" || execution === "missed" || (execution === "done" && delivery !== "pending" && delivery !== "posted");

/** What became of a run's answer, as its thread's ledger says. */
export function runSaid(run: ScheduleRun, state: OutboundState): ScheduleRun {
  if (run.delivery !== "posted") return run;
  switch (state) {
    case "sent":
    case "confirmed":
      return { ...run, delivery: state };
    case "failed":
      return { ...run, delivery: "failed", detail: "its answer could not be sent" };
    case "expired":
      return { ...run, delivery: "failed", detail: "its answer was too old to be sent" };
    case "pending":
    case "unknown":
      return { ...run, delivery: "unknown", detail: "nobody knows whether its answer arrived" };
  }
}

/** What follows for a run from a decision on its trigger. */
export function runDecided(run: ScheduleRun, decision: { tool: string; taskId?: string; reason: string; by: string }): ScheduleRun {
  // A task that only got it with its thread may give it back.
  if (run.execution !== "pending" && !(run.execution === "running" && run.passed)) return run;
  const { passed: _, ...own } = run;
  switch (decision.tool) {
    case "dispatch":
      return decision.taskId === undefined
        ? { ...own, execution: "failed", detail: decision.reason }
        : { ...own, execution: "running", taskId: decision.taskId, delivery: "pending" };
    case "reply":
      return { ...own, execution: "done", delivery: "pending", detail: decision.reason };
    case "ask_human":
      return { ...own, execution: "failed", detail: `a person has to decide: ${decision.reason}` };
    default:
      return { ...own, execution: decision.by === "code" ? "failed" : "done", detail: decision.reason };
  }
}

/** [RS5] A thread that a task follows asks nobody for a decision: the run is that task's, over when it reports its end, or now where it has. */
export function runPassed(run: ScheduleRun, taskId: string, atWork: boolean): ScheduleRun {
  if (run.execution !== "pending") return run;
  const passed = { ...run, taskId, passed: true as const };
  return atWork
    ? { ...passed, execution: "running", delivery: "pending" }
    : { ...passed, execution: "done", detail: "the task that followed the thread had it" };
}

/** One for each zone that was asked for: making one costs more than all else that a turn's message does. */
const clocks = new Map<string, Intl.DateTimeFormat>();

/** A local time as people read it. */
export function localTime(atMs: number, zone: string): string {
  const clock = clocks.get(zone) ?? new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  clocks.set(zone, clock);
  return clock.format(new Date(atMs));
}

export const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/** [RS1] A cron pattern of one clock time on all or some days of the week as people say it: `every day at 09:00`. Others stay as they are. */
export function cronWords(cron: string): string {
  const [, minute = "", hour = "", day = ""] = /^(\d{1,2})\s+(\d{1,2})\s+\*\s+\*\s+(\*|1-5|0,6|6,0|[0-7])$/.exec(cron.trim()) ?? [];
  const days = { "*": "day", "1-5": "weekday", "0,6": "weekend", "6,0": "weekend" }[day] ?? weekdays[Number(day) % 7];
  return day === "" ? cron : `every ${days} at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
}

/** When, in words: `every 10 min`, `every weekday at 09:00 (Europe/Berlin)`, `0 9 1 * * (UTC)`. */
export function timeWords({ when, zone }: Pick<Schedule, "when" | "zone">): string {
  switch (when.kind) {
    case "once":
      return `once at ${localTime(when.atMs, zone)} (${zone})`;
    case "every": {
      const minutes = when.everyMs / 60_000;
      return Number.isInteger(minutes / 60)
        ? `every ${minutes / 60} h`
        : Number.isInteger(minutes)
          ? `every ${minutes} min`
          : `every ${when.everyMs / 1000} s`;
    }
    case "cron":
      return `${cronWords(when.cron)} (${zone})`;
  }
}
