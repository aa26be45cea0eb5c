// What models read: user messages of both minds are lines, one JSON object each, so that no text can pose as structure.
// The first line of a message is its head; the others are these items.
import type { Policy } from "./policy.ts";
import type { Authority, Lane, Role } from "./principal.ts";

/** Text with quoted and fenced blocks lifted out: they are data, not words of the speaker. Placeholders `[data 1]` stand where they were. */
export type MarkedText = { text: string; data?: { kind: "quote" | "fence"; info?: string; text: string }[] };

export type Speaker = { role: Role; name: string };

export type RouterItem =
  | ({
      item: "trigger";
      id: string;
      /** What calls of this turn may say instead of the id. */
      name?: string;
      thread: string;
      source: string;
      place: string;
      title: string;
      kind: string;
      from: Speaker;
      verdict: "candidate" | "request";
      addressed: boolean;
      replyTo?: { author: string; text: string };
      /** Earlier rows of the thread: who, and the first 50 characters. */
      before?: { id: string; from: string; text: string }[];
      /** Tasks that this thread had before. */
      tasks?: string[];
      facts?: Record<string, string>;
      truncated?: boolean;
      attempt?: number;
    } & MarkedText)
  | {
      item: "report";
      id: string;
      name?: string;
      task: string;
      title: string;
      thread: string;
      kind: string;
      confidence?: number;
      proposal?: string;
      text: string;
    }
  /** Threads that moved without needing a decision; one line each. */
  | { item: "observed"; lines: string[] }
  | { item: "tasks"; open: TaskLine[]; recent: TaskLine[] }
  | ScheduleItem
  /** What people of the team asked to remember, as far as it concerns this message. */
  | { item: "facts"; list: { id: string; kind: string; text: string; from: string; on: string }[] }
  | { item: "machines"; list: { id: string; name: string; online: boolean; workspaces: string[] }[] }
  /** The roles that a task can be given, from here on; they replace those of an earlier message. */
  | { item: "profiles"; list: { name: string; purpose: string }[] }
  /** The team's policies that are on, from here on; they replace those of an earlier message. */
  | { item: "policies"; list: Policy[] }
  /** Made by code at the start of a transcript segment: what the earlier ones decided, one line each. */
  | { item: "summary"; lines: string[] }
  /** Why a call of the last turn was refused, or what is still unsettled. */
  | { item: "problem"; settles: string[]; text: string };

/** The time of the default zone, and the schedules that hold. */
export type ScheduleItem = {
  item: "schedules";
  now: string;
  zone: string;
  list: { id: string; name: string; when: string; next: string; by: string; text: string }[];
};

/** What stands for the title of a task that nobody here may read. */
export const hiddenTitle = "(of another conversation)";

export type TaskLine = {
  id: string;
  title: string;
  status: string;
  thread: string;
  /** Nobody asked for it: `adopt` it when somebody does. */
  speculative?: boolean;
  machine?: string;
  line: string;
  minutes: number;
};

export type WorkerItem =
  | {
      item: "goal";
      task: string;
      goal: string;
      /** Quoted by code from the trigger that asked. */
      asked: MarkedText & { from: Speaker; trigger: string };
      machine: { id: string; name: string; workspaces: string[] } | null;
      authority: Authority;
      tainted: boolean;
      modelCalls: number;
      /** Nobody asked for it. */
      speculative?: boolean;
      /** Words that a report may have where it is read; absent where it may be as long as it must. */
      words?: number;
      deadlineMs?: number;
    }
  | ({
      item: "row";
      /** What calls name it by; rows of earlier versions have none. */
      id?: string;
      thread: string;
      seq: number;
      kind: "message" | "event" | "said";
      from: Speaker;
      /** Other tasks that see it too, and how they stood. */
      alsoWith?: { task: string; status: string }[];
      facts?: Record<string, string>;
      /** The message that it answers, by its id: whose words that are is known to who owns it. */
      replyTo?: string;
      /** The person said something else before, in this trigger; this counts instead. */
      replaces?: string;
    } & MarkedText)
  | {
      item: "result";
      command: string;
      outcome: string;
      exit: number | null;
      reason?: string;
      ms: number | null;
      bytes: number;
      /** Of a push: what stands on the branch now. */
      pushed?: { sha: string; branch: string; place: string; base?: string | undefined };
      output: string;
      /** Present when the output was spilled: `output` is then head, a cut mark and tail. */
      artifact?: string;
    }
  /** Made by code when the older part of a transcript was put aside: what of it counts. `segment` reads all of it by recall. */
  | {
      item: "kept";
      segment: string;
      facts: string[];
      questions: string[];
      approaches: { step: number; what: string; outcome: string }[];
      said: { thread: string; seq: number; from: string; text: string }[];
      /** What the router, a hand-off or a child told the task. */
      told: string[];
    }
  | { item: "child"; task: string; title: string; kind: string; confidence?: number; text: string }
  | { item: "notice"; text: string };

export type ContextItem = RouterItem | WorkerItem;

/** Head line of a router message. */
export type RouterHead = { turn: number; lane: Lane };
/** Head line of a worker message. */
export type WorkerHead = { step: number; of: number };
