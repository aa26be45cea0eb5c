// The router's `schedule` tool: a named schedule is set, changed or ended, by people of the team and for themselves.
import type { ScheduleItem } from "../protocol/context-items.ts";
import { limits } from "../protocol/limits.ts";
import type { RouterCall } from "../protocol/router-tools.ts";
import type { Schedule, ScheduleChange, ScheduleRun, ScheduleSetting } from "../protocol/schedule.ts";
import { audienceAt, audienceOf, mayFlow, mayReachAny } from "./audience.ts";
import { atLeast } from "./authority.ts";
import { excerpt } from "./context.ts";
import { makeId } from "./ids.ts";
import type { QueuedTrigger } from "./router.ts";
import { whereScheduled } from "./router-destination.ts";
import { type Planned, type PlannedDecision, postEffect, stripMarkers } from "./router-plan.ts";
import { localTime, nextDue, readTime, scheduleIdOf, timeWords, triggerOfRun } from "./schedule.ts";

export type ScheduleCall = Extract<RouterCall, { tool: "schedule" }>["input"];
/** What a decision does to a schedule. */
export type ScheduleEdit = { schedule: Schedule; what: "set" | "paused" | "resumed" | "cancelled" };

const maxShown = 20;

export const scheduleAudience = ({ thread, by }: Schedule): string => audienceAt(thread, by.id);

/** What a turn of the team's lane says about time. */
export const schedulesItem = (schedules: readonly Schedule[], zone: string, nowMs: number, readers: readonly string[]): ScheduleItem => ({
  item: "schedules",
  now: localTime(nowMs, zone),
  zone,
  list: schedules
    .filter((schedule) => mayReachAny(scheduleAudience(schedule), readers))
    .slice(0, maxShown)
    .map((schedule) => ({
      id: schedule.id,
      name: schedule.name,
      when: timeWords(schedule),
      next: schedule.nextMs === null || schedule.state !== "active" ? schedule.state : localTime(schedule.nextMs, schedule.zone),
      by: excerpt(schedule.by.name, 60),
      text: excerpt(schedule.text, 80),
    })),
});

/** [RS6] A schedule after a change; a resumed one goes on from now, and what was due meanwhile is not caught up. */
export function changeSchedule(schedule: Schedule, change: ScheduleChange, nowMs: number): ScheduleEdit | { problem: string } {
  switch (change) {
    case "pause":
      if (schedule.nextMs === null) return { problem: `“${schedule.name}” is over.` };
      return { schedule: { ...schedule, state: "paused", why: "paused by a person" }, what: "paused" };
    case "resume": {
      const nextMs = nextDue(schedule.when, schedule.zone, nowMs);
      if (nextMs === null) return { problem: `The time of “${schedule.name}” is over; set it anew.` };
      return { schedule: { ...schedule, state: "active", why: "", failures: 0, nextMs }, what: "resumed" };
    }
    case "cancel":
      return { schedule: { ...schedule, state: "cancelled", nextMs: null }, what: "cancelled" };
  }
}

/** [RS6] A named schedule of a thread is set; a second one of the name takes its place. */
export function setSchedule(
  known: Schedule | null,
  input: ScheduleSetting,
  zone: string,
  nowMs: number,
): ScheduleEdit | { problem: string } {
  const read = readTime(input.time, zone, nowMs);
  if ("problem" in read) return read;
  if (known !== null && !atLeast(input.authority, known.authority))
    return { problem: `“${known.name}” was made by an ${known.authority}.` };
  const nextMs = nextDue(read.when, read.zone, nowMs);
  if (nextMs === null) return { problem: "That time never comes." };
  const { name, text, thread, by, authority } = input;
  return {
    schedule: {
      id: scheduleIdOf(thread.threadId, name),
      name,
      text,
      when: read.when,
      zone: read.zone,
      thread,
      by,
      authority,
      state: "active",
      why: "",
      nextMs,
      failures: 0,
      createdMs: known?.createdMs ?? nowMs,
    },
    what: "set",
  };
}

/** What a decision of a step did counts for its later calls. */
export const withEdit = (schedules: readonly Schedule[], edit: ScheduleEdit | undefined): readonly Schedule[] =>
  edit === undefined
    ? schedules
    : [...schedules.filter(({ id }) => id !== edit.schedule.id), ...(edit.what === "cancelled" ? [] : [edit.schedule])];

type View = { nowMs: number; zone: string; schedules: readonly Schedule[] };

/** The tool's call. Who may use it has been checked. */
export function planSchedule(view: View, input: ScheduleCall, said: QueuedTrigger, decision: PlannedDecision): Planned {
  const name = stripMarkers(input.name).replace(/\s+/g, " ").trim();
  const { threadId } = said.trigger;
  const own = view.schedules.find((each) => each.id === scheduleIdOf(threadId, name));
  const about = { ...decision, threadId };
  return input.change === undefined
    ? planSetting(view, { ...input, name }, own, said, about)
    : planEdit(view, { change: input.change, name }, own, said, about);
}

/** The one of that name in this thread, else the only one that may be heard of here. */
function planEdit(
  { schedules, nowMs }: View,
  { change, name }: { change: ScheduleChange; name: string },
  own: Schedule | undefined,
  { trigger }: QueuedTrigger,
  decision: PlannedDecision,
): Planned {
  const reader = audienceOf(trigger);
  const named = schedules.filter((each) => each.name.toLowerCase() === name.toLowerCase() && mayFlow(scheduleAudience(each), reader));
  const known = own ?? (named.length === 1 ? named[0] : undefined);
  if (known === undefined && named.length > 1) return { refused: "Several have that name: change it in its own thread." };
  if (known === undefined) return { refused: `There is no schedule “${name}”; see the schedules item.` };
  if (!atLeast(decision.authority, known.authority))
    return { refused: `“${name}” was made by an ${known.authority}: only one can change it.` };
  const edit = changeSchedule(known, change, nowMs);
  if ("problem" in edit) return { refused: edit.problem };
  return { decision: { ...decision, reason: `${edit.what}: ${name}`, schedule: edit }, result: { [edit.what]: known.id } };
}

function planSetting(
  { schedules, zone: usual, nowMs }: View,
  input: ScheduleCall,
  own: Schedule | undefined,
  { trigger }: QueuedTrigger,
  decision: PlannedDecision,
): Planned {
  if (input.text === undefined) return { refused: "Say in `text` what is to be done when it is due." };
  if (own === undefined && schedules.length >= limits.maxSchedules)
    return { refused: `There are ${schedules.length} schedules already: cancel one first.` };
  const { name, at, afterMinutes, everyMinutes, cron, zone } = input;
  const { threadId, source, place, threadKey, threadTitle } = trigger;
  const thread = { threadId, source, place, threadKey, threadTitle };
  const by = { role: trigger.principal.role, id: trigger.principal.id, name: trigger.principal.name };
  const time = { at, afterMinutes, everyMinutes, cron, zone };
  const text = stripMarkers(input.text);
  const edit = setSchedule(own ?? null, { name, text, time, thread, by, authority: decision.authority }, usual, nowMs);
  if ("problem" in edit) return { refused: edit.problem };
  const { schedule } = edit;
  const when = timeWords(schedule);
  const next = schedule.nextMs === null ? "" : `${localTime(schedule.nextMs, schedule.zone)} (${schedule.zone})`;
  return {
    decision: { ...decision, reason: `scheduled “${name}”, ${when}; next ${next}`, schedule: edit },
    result: { scheduled: schedule.id, when, next },
  };
}

const byCode = (schedule: Schedule, id: string, reason: string, turn: number): PlannedDecision => ({
  id,
  turn,
  lane: "team",
  tool: "schedule",
  by: "code",
  settles: [],
  reason,
  authority: schedule.authority,
  threadId: schedule.thread.threadId,
  effects: [],
});

/** [RS4] The run of a due instant: its trigger enters the thread like any other. */
export const runDecision = (schedule: Schedule, run: ScheduleRun, turn: number): PlannedDecision => ({
  ...byCode(schedule, makeId("dec", "schedule", run.id), `the schedule “${schedule.name}” is due`, turn),
  effects: [{ kind: "append", threadId: schedule.thread.threadId, input: triggerOfRun(schedule, run) }],
});

/** [RS5] Said once, when repeated failure paused a schedule: to its thread, and to the operators. */
export function pausedDecision(schedule: Schedule, run: ScheduleRun, turn: number, nowMs: number): PlannedDecision {
  const id = makeId("dec", "schedule-paused", run.id);
  const text = `I have paused the schedule “${schedule.name}”: ${excerpt(schedule.why, 400)} Say “resume schedule ${schedule.name}” to go on.`;
  return {
    ...byCode(schedule, id, `paused “${schedule.name}” after repeated failure`, turn),
    effects: [postEffect(id, whereScheduled(schedule, run), "notice", text)],
    notice: { id, atMs: nowMs, kind: "fault", text, threadId: schedule.thread.threadId },
  };
}
