// The forms in which the offline model reads a time: an interval, a clock time, a day, or a moment.
import { cronWords, weekdays } from "../../core/schedule.ts";
import type { ScheduleTime } from "../../protocol/schedule.ts";

export type TimedRequest =
  | { do: "list" }
  | { do: "change"; change: "pause" | "resume" | "cancel"; name: string }
  | { do: "set"; name: string; text: string; time: ScheduleTime; words: string };

const unitMinutes: Record<string, number> = { second: 1 / 60, minute: 1, min: 1, hour: 60, h: 60, day: 1440, week: 10_080 };
const unit = "(second|minute|min|hour|h|day|week)s?";
const clock = "(?:at )?(\\d{1,2})(?::(\\d{2}))?\\s*(am|pm)?";
const zone = "(?:\\s+\\(?((?:[A-Z][A-Za-z_]+/[A-Za-z_/]+)|UTC)\\)?)?";
const rest = "[,:]?\\s+(.{2,4000})$";

const forms: [RegExp, (found: string[]) => { time: ScheduleTime; words: string } | null][] = [
  [
    new RegExp(`^in (\\d+(?:\\.\\d+)?) ${unit}${rest}`, "is"),
    ([count = "", each = ""]) => ({ time: { afterMinutes: Number(count) * minutesOf(each) }, words: `in ${count} ${plural(each, count)}` }),
  ],
  [
    new RegExp(`^at (\\d{4}-\\d{2}-\\d{2})[T ](\\d{2}:\\d{2})${zone}${rest}`, "s"),
    ([day = "", time = "", name = ""]) => ({ time: { at: `${day} ${time}`, ...zoned(name) }, words: `at ${day} ${time}` }),
  ],
  [
    new RegExp(`^every (\\d+(?:\\.\\d+)? )?${unit}(?! at \\d)${rest}`, "is"),
    ([count = "", each = ""]) => ({
      time: { everyMinutes: Number(count.trim() || "1") * minutesOf(each) },
      words: `every ${count.trim() === "" ? each : `${count.trim()} ${plural(each, count)}`}`,
    }),
  ],
  [
    new RegExp(`^every (day|weekday|weekend|${weekdays.join("|")})s? ${clock}${zone}${rest}`, "is"),
    ([day = "", hour = "", minute = "", half = "", name = ""]) => {
      const at = hourOf(Number(hour), half.toLowerCase());
      const minutes = Number(minute || "0");
      if (at === null || minutes > 59) return null;
      const which = day.toLowerCase();
      const field = { day: "*", weekday: "1-5", weekend: "0,6" }[which] ?? String(weekdays.indexOf(which));
      const cron = `${minutes} ${at} * * ${field}`;
      return { time: { cron, ...zoned(name) }, words: cronWords(cron) };
    },
  ],
];

const minutesOf = (each: string): number => unitMinutes[each.toLowerCase()] ?? 1;
const plural = (each: string, count: string): string => (Number(count) === 1 ? each : `${each}s`);
const zoned = (name: string): Pick<ScheduleTime, "zone"> => (name === "" ? {} : { zone: name });

function hourOf(hour: number, half: string): number | null {
  if (hour > 23 || (half !== "" && (hour < 1 || hour > 12))) return null;
  if (half === "pm") return hour === 12 ? 12 : hour + 12;
  return half === "am" && hour === 12 ? 0 : hour;
}

/** A request that is about time; null when it is about something else. */
export function readSchedule(text: string): TimedRequest | null {
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
  for (const [form, read] of forms) {
    const found = form.exec(plain);
    const wanted = found?.at(-1)?.trim();
    const timed = found === null || wanted === undefined ? null : read(found.slice(1, -1).map((part) => part ?? ""));
    if (timed !== null && wanted !== undefined) return { do: "set", name: nameOf(wanted), text: wanted, ...timed };
  }
  return null;
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
