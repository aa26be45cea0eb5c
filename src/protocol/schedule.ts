// Schedules: what happens at a time, by itself, on behalf of the person who asked for it.
import * as z from "zod/mini";
import type { Authority, Principal } from "./principal.ts";

/** When, as a person or a model says it: exactly one of `at`, `afterMinutes`, `everyMinutes` and `cron`. */
export const scheduleTime = z.object({
  /** `2026-12-01 09:00`, in the zone. */
  at: z.optional(z.string().check(z.maxLength(40))),
  afterMinutes: z.optional(z.number().check(z.positive())),
  everyMinutes: z.optional(z.number().check(z.positive())),
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  cron: z.optional(z.string().check(z.maxLength(100))),
  /** An IANA zone: `Europe/Berlin`. */
  zone: z.optional(z.string().check(z.maxLength(60))),
});
export type ScheduleTime = z.infer<typeof scheduleTime>;

export const scheduleName = z.string().check(z.trim(), z.minLength(1), z.maxLength(60));
export const scheduleText = z.string().check(z.trim(), z.minLength(1), z.maxLength(4000));
export const scheduleChanges = ["pause", "resume", "cancel"] as const;
export type ScheduleChange = (typeof scheduleChanges)[number];

export type ScheduleWhen =
  | { kind: "once"; atMs: number }
  | { kind: "every"; everyMs: number; anchorMs: number }
  | { kind: "cron"; cron: string };

export type Schedule = {
  id: string;
  name: string;
  /** What the trigger says when it is due. */
  text: string;
  when: ScheduleWhen;
  zone: string;
  /** The thread that gets the trigger, and with it the answer. */
  thread: { threadId: string; source: string; place: string; threadKey: string; threadTitle: string };
  by: Pick<Principal, "role" | "id" | "name">;
  authority: Authority;
  state: "active" | "paused" | "ended" | "cancelled";
  /** Why it is paused. */
  why: string;
  nextMs: number | null;
  /** Runs in a row that failed. */
  failures: number;
  createdMs: number;
};

/**
 * One due instant, or a stretch of them that was missed. Whether it ran and whether people have the answer are two things: only
 * `done` with an answer that is `sent` or `confirmed` is well. `posted` is on its way; of `unknown` nobody could say that it arrived.
 */
export type ScheduleRun = {
  id: string;
  scheduleId: string;
  dueMs: number;
  atMs: number;
  execution: "pending" | "running" | "done" | "failed" | "missed";
  delivery: "none" | "pending" | "posted" | "sent" | "confirmed" | "failed" | "unknown";
  /** Due instants that this receipt stands for, when they were missed. */
  missed: number;
  taskId: string | null;
  /** That task followed the thread already, and got it as it gets every row. */
  passed?: true;
  detail: string;
};

/** What the console asks for: a schedule on behalf of a person, in that person's thread. */
export type ScheduleSetting = Pick<Schedule, "name" | "text" | "thread" | "by" | "authority"> & { time: ScheduleTime };

export type ScheduleLine = Schedule & { runs: ScheduleRun[]; words: string };
export type SchedulesAnswer = { zone: string; schedules: ScheduleLine[] };
