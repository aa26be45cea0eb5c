// Times for people: short and relative, with the exact time to hand.

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** A duration: `0:08`, `4:10`, `2 h 5 min`, `3 d`. Never negative: clocks differ. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / 1000));
  if (whole < 3600) return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
  const hours = Math.floor(whole / 3600);
  if (hours >= 48) return `${Math.floor(hours / 24)} d`;
  const minutes = Math.floor((whole % 3600) / 60);
  return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
}

/** How long a task has taken: until its end, or until now. */
export const elapsed = (task: { startedMs: number; endedMs?: number | undefined }, nowMs: number): string =>
  duration((task.endedMs ?? nowMs) - task.startedMs);

/** `just now`, `3 min ago`, `2 h ago`, `4 d ago`. */
export function ago(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  if (ms < 45_000) return "just now";
  if (ms < hour) return `${Math.max(1, Math.round(ms / minute))} min ago`;
  if (ms < day) return `${Math.floor(ms / hour)} h ago`;
  return `${Math.floor(ms / day)} d ago`;
}

/** Time since a start, for a timeline: `+0.3 s`, `+1:12`. */
export function offset(ms: number): string {
  if (Math.abs(ms) < 60_000) return `${ms < 0 ? "−" : "+"}${(Math.abs(ms) / 1000).toFixed(1)} s`;
  return `${ms < 0 ? "−" : "+"}${duration(Math.abs(ms))}`;
}

/** The exact local time, for a tooltip. */
export const exact = (atMs: number): string => new Date(atMs).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Hours and minutes. */
export const clockTime = (atMs: number): string => new Date(atMs).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

/** The local day, to see where one begins. */
export const dayKey = (atMs: number): string => new Date(atMs).toDateString();

export const dayName = (atMs: number, nowMs: number): string =>
  dayKey(atMs) === dayKey(nowMs)
    ? "Today"
    : dayKey(atMs) === dayKey(nowMs - day)
      ? "Yesterday"
      : new Date(atMs).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
