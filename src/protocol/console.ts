// What the console's API answers.
import type { BoardDecision, BoardTask } from "./board.ts";
import type { Logged, RouterEvent, SwitchyardEvent } from "./events.ts";
import type { Authority } from "./principal.ts";
import type { Profile } from "./profile.ts";
import type { TaskCard, TaskDescription } from "./task.ts";
import type { OutboundIntent, OutboundState, ThreadInfo, ThreadRow } from "./thread.ts";
import type { Trigger, Verdict } from "./trigger.ts";

export const timelineLanes = ["thread", "router", "worker", "machine"] as const;
export type TimelineLane = (typeof timelineLanes)[number];

/** One event of one object. `object` is its id; `seq` grows by one within it, so a gap can be seen. */
export type TimelineEntry = { atMs: number; lane: TimelineLane; object: string; seq: number; event: SwitchyardEvent };

export type TasksAnswer = { tasks: BoardTask[] };

export type TaskAnswer = TaskDescription & {
  timeline: TimelineEntry[];
  /** True when an object had more events than one answer holds. */
  cut: boolean;
};

export type ThreadAnswer = { info: ThreadInfo; rows: ThreadRow[]; cards: TaskCard[] };

export type DecisionsAnswer = { decisions: BoardDecision[] };
export type DecisionAnswer = { decision: Extract<RouterEvent, { kind: "router.decision" }> & { atMs: number }; events: Logged[] };

export type EndpointRow = { endpointId: string; name: string; platform: string; createdMs: number; revokedMs: number | null };
export type EndpointsAnswer = { endpoints: EndpointRow[] };
export type EnrolmentAnswer = { code: string; expiresMs: number; commands: string[] };

export type ProfilesAnswer = { profiles: Profile[] };
export type ProfileAnswer = { profile: Profile };

export type PersonRow = { personId: string; name: string; role: "owner" | "member"; createdMs: number; revokedMs: number | null };
export type PeopleAnswer = { people: PersonRow[] };
export type InviteAnswer = { link: string; personId: string; expiresMs: number };

/** Why a trigger was, or was not, answered: each step that it took. */
export type WhyAnswer = {
  trigger: Trigger;
  verdict: Verdict;
  threadId: string;
  seq: number;
  acceptedMs: number;
  /** Tasks that got it at once, without a decision. */
  subscribers: string[];
  decisions: (BoardDecision & { authority: Authority })[];
  refusals: { atMs: number; tool: string; reason: string }[];
  escalated: { atMs: number; question: string } | null;
  replies: { outbound: OutboundIntent; state: OutboundState; atMs: number }[];
};
