// What the offline router says and does about schedules.
import { scheduleIdOf } from "../../core/schedule.ts";
import type { RouterItem } from "../../protocol/context-items.ts";
import { timerKind } from "../../protocol/trigger.ts";
import type { Answer } from "./chat.ts";
import { isWork } from "./intents.ts";
import { readIntents } from "./read-intents.ts";
import { dayAfter, readSchedule } from "./read-schedule.ts";

type Trigger = Extract<RouterItem, { item: "trigger" }>;
type Call = NonNullable<Answer["calls"]>[number];
export type Schedules = Extract<RouterItem, { item: "schedules" }>;

/** The forms of a time, as the help shows them. */
export const timeForms = (schedules: Schedules | null): string[] => [
  "every day at 9 run the tests",
  "every monday at 8:30",
  "in 10 minutes",
  "tomorrow at 9",
  ...(schedules === null ? [] : [`at ${dayAfter(schedules.now.slice(0, 10))} 09:00`]),
];

/** Calls for a request that is about time; null for any other. A schedule that is due speaks of no time any more. */
export function planTimed(trigger: Trigger, schedules: Schedules | null, isTeam: boolean): Call[] | null {
  const timed = trigger.kind === timerKind ? null : readSchedule(trigger.text, schedules?.now ?? null);
  if (timed === null) return null;
  const settles = [trigger.id];
  const reply = (text: string): Call[] => [{ tool: "reply", input: { settles, text } }];
  switch (timed.do) {
    case "list":
      return reply(scheduleList(schedules));
    case "change":
      return changeOf(trigger, timed, schedules);
    case "unclear":
      if (timed.text === "")
        return reply("I have scheduled nothing: say also what is to be done then, for example: every day at 9 run the tests.");
      return asksForWork(trigger, timed.text)
        ? reply(`I have started nothing: I did not understand when. Write the time like one of these: ${timeForms(schedules).join("; ")}.`)
        : null;
    case "set": {
      const { words, name, text, time, needsWork } = timed;
      if (needsWork && !asksForWork(trigger, text)) return null;
      const inZone = "everyMinutes" in time || "afterMinutes" in time ? "" : ` (${time.zone ?? schedules?.zone ?? "UTC"})`;
      const former = schedules?.list.find(({ id }) => id === scheduleIdOf(trigger.thread, name));
      const said = `Scheduled “${name}” ${words}${inZone}${former === undefined ? "" : `, in place of ${former.when}`}. To end it, say “cancel schedule ${name}”.`;
      return [{ tool: "schedule", input: { settles, name, text, ...time } }, ...(isTeam ? reply(said) : [])];
    }
  }
}

/** Whether it is work and nothing else; a time in a question about changes says since when. */
function asksForWork(trigger: Trigger, text: string): boolean {
  const intents = readIntents({ ...trigger, text });
  return intents.length > 0 && intents.every((intent) => isWork(intent) && intent.kind !== "changes");
}

function scheduleList(schedules: Schedules | null): string {
  // Outside of the team nobody hears of any, and not that there is none.
  if (schedules === null) return "There is no schedule that I can tell about here.";
  if (schedules.list.length === 0) return "There is no schedule.";
  return schedules.list
    .slice(0, 10)
    .map((each) => `- ${each.name}: ${each.when}, ${each.next === "paused" ? "paused" : `next ${each.next}`}`)
    .join("\n");
}

function changeOf(trigger: Trigger, { name, change }: { name: string; change: string }, schedules: Schedules | null): Call[] {
  const settles = [trigger.id];
  const reply = (text: string): Call => ({ tool: "reply", input: { settles, text } });
  const known = schedules?.list.find((each) => each.name.toLowerCase() === name.toLowerCase());
  if (known === undefined) return [reply(`There is no schedule “${name}”.\n${scheduleList(schedules)}`)];
  const past = { pause: "paused", resume: "resumed", cancel: "cancelled" }[change] ?? change;
  return [{ tool: "schedule", input: { settles, name: known.name, change } }, reply(`The schedule “${known.name}” is ${past}.`)];
}
