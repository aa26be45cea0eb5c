// What the console's API answers.
import type { BoardDecision, BoardTask } from "./board.ts";
import type { Logged, RouterEvent, SwitchyardEvent } from "./events.ts";
import type { GateRules } from "./gate.ts";
import type { SavedPolicy } from "./policy.ts";
import type { Authority, Principal, Role } from "./principal.ts";
import type { Profile, SavedProfile } from "./profile.ts";
import type { FactKind, FoundKind } from "./router-tools.ts";
import type { TaskCard, TaskDescription } from "./task.ts";
import type { OutboundIntent, OutboundState, ThreadInfo, ThreadRow } from "./thread.ts";
import type { Outcome, Trigger, Verdict } from "./trigger.ts";

export const timelineLanes = ["thread", "router", "worker", "machine"] as const;
export type TimelineLane = (typeof timelineLanes)[number];

/** One event of one object. `object` is its id; `seq` grows by one within it, so a gap can be seen. */
export type TimelineEntry = { atMs: number; lane: TimelineLane; object: string; seq: number; event: SwitchyardEvent };

export type TasksAnswer = { tasks: BoardTask[] };

export type TaskAnswer = TaskDescription & {
  timeline: TimelineEntry[];
  /** True when an object had more events than one answer holds. */
  cut: boolean;
  /** What it spent, at the price that is set now; null where none is. */
  dollars: number | null;
};

export type ThreadsAnswer = {
  threads: { id: string; source: string; place: string; threadKey: string; title: string; updatedMs: number }[];
  /** There are older ones. */
  more: boolean;
};

export type ThreadAnswer = { info: ThreadInfo; rows: ThreadRow[]; cards: TaskCard[] };

export type DecisionsAnswer = { decisions: BoardDecision[] };
export type DecisionAnswer = {
  decision: Extract<RouterEvent, { kind: "router.decision" }> & { atMs: number };
  events: Logged[];
  /** A person's word on it. */
  mark?: { wrong: boolean; note: string; by: string; atMs: number };
};

/** Whether the caller is signed in; `message`: what to know when not. */
export type SessionAnswer = { open: boolean; message: string | null };

/** Something that the router keeps, found by words. */
export type FoundLine = { id: string; kind: FoundKind; title: string; text: string; atMs: number };
export type SearchAnswer = { hits: FoundLine[]; total: number };

/** A fact of the memory. */
export type FactLine = {
  id: string;
  kind: FactKind;
  /** Null where it was told in somebody's own conversation, whose words only its people read; and once it is forgotten. */
  text: string | null;
  /** Who may hear it: the team, whoever reads the place where it was told, or whoever told it. */
  reach: "team" | "place" | "own";
  source: string;
  place: string;
  by: { role: Role; name: string };
  atMs: number;
  /** Where it was told; null where its words are not shown. */
  told: { threadId: string; triggerId: string } | null;
  /** How often decisions rested on it, and when the last one did. */
  used: { times: number; lastMs: number } | null;
  replacedBy?: string;
  forgotten?: { by: string; atMs: number };
};
export type MemoryAnswer = { facts: FactLine[]; total: number };
export type FactAnswer = { fact: FactLine };

/** What waits for a release, over all threads. */
export type HeldOffersAnswer = {
  offers: { id: string; threadId: string; taskId: string; title: string; atMs: number; untilMs: number }[];
  total: number;
};

export type EndpointRow = { endpointId: string; name: string; platform: string; createdMs: number; revokedMs: number | null };
export type EndpointsAnswer = { endpoints: EndpointRow[] };
export type EnrolmentAnswer = { code: string; expiresMs: number; commands: string[] };

export type ProfilesAnswer = { profiles: Profile[] };
export type ProfileVersionsAnswer = { versions: SavedProfile[] };
export type ProfileAnswer = { profile: Profile };

export type PersonRow = {
  personId: string;
  name: string;
  role: "owner" | "member";
  createdMs: number;
  revokedMs: number | null;
  /** At GitHub; null when nobody said. */
  login: string | null;
};
export type LoginAnswer = { login: string | null };
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

/** A saved version of the gate's rules; version 0 is what ships. */
export type RulesVersion = { version: number; rules: number; savedBy: string | null; savedMs: number | null };
export type RulesAnswer = { inForce: GateRules; versions: RulesVersion[] };

/** What is kept for a while of a trigger, also of one that was ignored, so that rules can be tried on it. */
export type RecentTrigger = {
  id: string;
  threadId: string;
  threadKey?: string | undefined;
  source: string;
  place: string;
  kind: string;
  principal: Principal;
  addressed: boolean;
  /** The beginning. */
  text: string;
  facts?: Record<string, string> | undefined;
  atMs: number;
  /** The rule that judged it when it came. */
  rule: string;
};

/** What rules would have done: `before` by the rules in force, `after` by those that are tried. */
export type RulesTrial = {
  tried: number;
  before: Record<Outcome, number>;
  after: Record<Outcome, number>;
  changed: { trigger: RecentTrigger; before: Verdict; after: Verdict }[];
  /** How many each tried rule matched; a rule that is not here matched none. */
  matched: Record<string, number>;
};

/** A place from which more came than the door lets in. */
export type LimitedPlace = { source: string; place: string; sender: string; refused: number; lastMs: number };
export type LimitsAnswer = { limited: LimitedPlace[] };

/** One step of setting something up; `paste`: values and commands for it. */
export type SetUpStep = { title: string; done: boolean; text: string; paste: { label: string; text: string }[] };
export type GitHubSetUpAnswer = {
  steps: SetUpStep[];
  /** Webhooks that were heard, and the sweep of what they could not deliver. */
  hooks: { of: string; place: string; sweptMs: number | null; redelivered: number; givenUp: number; problem: string | null }[];
};

/** The last 30 days in numbers: `wrongUnasked` of `unasked` is the share of false proactive actions. */
export type MetricsAnswer = {
  days: number;
  asked: number;
  unasked: number;
  wrongUnasked: number;
  accepted: number;
  rejected: number;
  /** Turns of the router, and those that needed to read nothing more than what they were given. */
  context: { turns: number; withoutRead: number; inlined: number; used: number };
};

/** How often decisions by a policy (null: by none) were looked at by a person, and called wrong. */
export type PolicyMarks = { policyId: string | null; wrong: number; marked: number };
export type PoliciesAnswer = { policies: SavedPolicy[]; marks: PolicyMarks[] };
