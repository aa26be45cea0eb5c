// The forms in which the offline model reads a time: an interval, a clock time, a day, or a moment; before what is wanted, or behind it.
import { cronWords, weekdays } from "../../core/schedule.ts";
import type { ScheduleTime } from "../../protocol/schedule.ts";

export type TimedRequest =
  | { do: "list" }
  | { do: "change"; change: "pause" | "resume" | "cancel"; name: string }
  | Timed
  /** Words of time that none of the forms reads, and what they were said of; or a time of which nothing is said. */
  | { do: "unclear"; text: string };

type Timed = {
  do: "set";
  name: string;
  text: string;
  time: ScheduleTime;
  words: string;
  /** Words like these stand in other sentences too: they are a time only beside work that is known. */
  needsWork: boolean;
};
type Time = Pick<Timed, "time" | "words">;

const unitMinutes: Record<string, number> = { second: 1 / 60, minute: 1, min: 1, hour: 60, h: 60, day: 1440, week: 10_080 };
const unit = "(second|minute|min|hour|h|day|week)s?";
const time = "(\\d{1,2})(?::(\\d{2}))?\\s*(am|pm)?";
const clock = `(?:at )?${time}`;
const zone = "(?:\\s+\\(?((?:[A-Z][A-Za-z_]+/[A-Za-z_/]+)|UTC)\\)?)?";
const day = `day|weekday|weekend|morning|evening|${weekdays.join("|")}`;

type Form = { said: string; flags: string; read(found: string[], now: string | null): Time | null; needsWork?: true };

/** Time first, and time last; whatever stands between is looked at once. */
const places = (said: string, flags: string): [RegExp, RegExp] => [
  new RegExp(`^${said}[,:]?\\s+(.{2,4000})$`, flags),
  new RegExp(`^(.{2,4000}?),?\\s{1,3}${said}[.!]?$`, flags),
];

const forms: Form[] = [
  {
    said: `in (\\d+(?:\\.\\d+)?) ${unit}`,
    flags: "is",
    read: ([count = "", each = ""]) => ({
      time: { afterMinutes: Number(count) * minutesOf(each) },
      words: `in ${count} ${plural(each, count)}`,
    }),
  },
  {
    said: `at (\\d{4}-\\d{2}-\\d{2})[T ](\\d{2}:\\d{2})${zone}`,
    flags: "s",
    read: ([date = "", at = "", name = ""]) => ({ time: { at: `${date} ${at}`, ...zoned(name) }, words: `at ${date} ${at}` }),
  },
  {
    said: `every (\\d+(?:\\.\\d+)? )?${unit}(?! at \\d)`,
    flags: "is",
    read: ([count = "", each = ""]) => ({
      time: { everyMinutes: Number(count.trim() || "1") * minutesOf(each) },
      words: `every ${count.trim() === "" ? each : `${count.trim()} ${plural(each, count)}`}`,
    }),
  },
  {
    said: `every (${day})s? ${clock}${zone}`,
    flags: "is",
    read: ([said = "", hour = "", minute = "", half = "", name = ""]) => {
      const which = said.toLowerCase();
      const ofDay = Number(hour) <= 12 ? ({ morning: "am", evening: "pm" }[which] ?? "") : "";
      const at = clockOf(hour, minute, half || ofDay);
      if (at === null) return null;
      const field = { day: "*", morning: "*", evening: "*", weekday: "1-5", weekend: "0,6" }[which] ?? String(weekdays.indexOf(which));
      const [hours, minutes] = at.split(":").map(Number);
      const cron = `${minutes} ${hours} * * ${field}`;
      return { time: { cron, ...zoned(name) }, words: cronWords(cron) };
    },
  },
  {
    said: `(?:(today|tomorrow) )?at ${time}`,
    flags: "is",
    needsWork: true,
    read: ([which = "", hour = "", minute = "", half = ""], now) => {
      const at = clockOf(hour, minute, half);
      if (at === null || now === null) return null;
      const today = now.slice(0, 10);
      const isLater = which.toLowerCase() === "tomorrow" || (which === "" && `${today} ${at}` <= now);
      const moment = `${isLater ? dayAfter(today) : today} ${at}`;
      return { time: { at: moment }, words: `at ${moment}` };
    },
  },
];
const placedForms = forms.map((form) => ({
  ...form,
  places: places(form.said, form.flags),
  alone: new RegExp(`^${form.said}[.!]?$`, form.flags),
}));

const minutesOf = (each: string): number => unitMinutes[each.toLowerCase()] ?? 1;
const plural = (each: string, count: string): string => (Number(count) === 1 ? each : `${each}s`);
const zoned = (name: string): Pick<ScheduleTime, "zone"> => (name === "" ? {} : { zone: name });

/** `09:05`; null when no clock shows that. */
function clockOf(hourSaid: string, minute: string, halfSaid: string): string | null {
  const [hour, half] = [Number(hourSaid), halfSaid.toLowerCase()];
  if (hour > 23 || Number(minute) > 59 || (half !== "" && (hour < 1 || hour > 12))) return null;
  const hours = half === "pm" ? (hour % 12) + 12 : half === "am" ? hour % 12 : hour;
  return `${String(hours).padStart(2, "0")}:${minute.padStart(2, "0")}`;
}

export const dayAfter = (date: string): string => new Date(Date.parse(`${date}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);

/** What people say of a time that no form reads. */
const vague = `(?:(?:every|each) (?:\\w+ )?(?:${day}|noon|night|month|year)s?|daily|nightly|weekly|monthly|hourly|tomorrow|tonight|(?:on|next) (?:${weekdays.join("|")}|week|month))(?: (?:\\w+ )?(?:at|by) \\S+(?:\\s*[ap]m)?)?|at \\d{1,2}(?::\\d{2})?\\s*(?:[ap]m)?`;
const vagueForms = places(`(?:${vague})`, "is");

/** A request that is about time; null when it is about something else. `now` is the clock of the team's zone, where it is known. */
export function readSchedule(text: string, now: string | null = null): TimedRequest | null {
  const plain = text
    .trim()
    .replace(/^@\S+[,:]?\s+/, "")
    .replace(/^please\s+/i, "");
  if (/^(?:list|show)(?: me)?(?: the| my| all)* schedules?[.!?]?$/i.test(plain)) return { do: "list" };
  const change = /^(pause|resume|cancel|stop|delete|remove) (?:the )?schedule[:,]? ["“”']?(.{1,60}?)["“”']?[.!]?$/i.exec(plain);
  if (change?.[1] !== undefined && change[2] !== undefined) {
    const word = change[1].toLowerCase();
    return { do: "change", change: word === "pause" || word === "resume" ? word : "cancel", name: change[2] };
  }
  if (placedForms.some(({ alone }) => alone.test(plain))) return { do: "unclear", text: "" };
  for (const form of placedForms) {
    const [first, last] = form.places.map((place) => place.exec(plain));
    const [wanted, parts] = first ? [first.at(-1), first.slice(1, -1)] : [last?.[1], last?.slice(2) ?? []];
    const found = parts.map((part) => part ?? "");
    const when = wanted === undefined ? null : form.read(found, now);
    if (wanted !== undefined && when !== null)
      return { do: "set", name: nameOf(wanted.trim()), text: wanted.trim(), ...when, needsWork: form.needsWork ?? !first };
  }
  const unclear = vagueForms.map((form) => form.exec(plain)?.[1]?.trim()).find((wanted) => wanted !== undefined);
  return unclear === undefined ? null : { do: "unclear", text: unclear };
}

/** The first words of what is wanted. */
function nameOf(wanted: string): string {
  const line =
    wanted
      .split("\n")[0]
      ?.replace(/[`"“”]/g, "")
      .replace(/[.!?,;:\s]+$/, "") ?? "";
  const words = line.split(/\s+/).slice(0, 6).join(" ");
  return Array.from(words).slice(0, 50).join("").trim() || "schedule";
}
