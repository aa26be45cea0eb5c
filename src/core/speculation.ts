// Speculation: which work that nobody asked for may start, what becomes of its result, and what was wasted. Off unless a policy of an owner
// allows it, on a budget of its own: the work of people never pays for it.
import type { Price } from "../protocol/costs.ts";
import { limits } from "../protocol/limits.ts";
import type { OfferState } from "../protocol/offer.ts";
import type { Policy } from "../protocol/policy.ts";
import type { Lane } from "../protocol/principal.ts";
import type { Speculation, SpeculationFigures, SpeculationOutcome, SpeculationSetting } from "../protocol/speculation.ts";
import { finalStatuses, type Report } from "../protocol/task.ts";
import type { ThreadRow } from "../protocol/thread.ts";
import type { Trigger } from "../protocol/trigger.ts";
import { atLeast, authorityOf, taints } from "./authority.ts";
import { excerpt } from "./context.ts";
import { dollarsOf } from "./costs.ts";
import type { InboxItem, QueuedTrigger } from "./router.ts";
import { isSameWork } from "./same-work.ts";

const dayMs = 24 * 60 * 60_000;
/** What counts as lately: for waste, and for what consoles show. */
export const lookBackMs = 7 * dayMs;
/** A result is offered only when its worker is this sure. */
const offerConfidence = 0.8;

/** What the router's code knows of speculation when it decides. */
export type SpeculationView = {
  /** Those that are open, and those that started within the last days. */
  rows: readonly Speculation[];
  /** Policies that paused themselves, by `id@version`. */
  paused: ReadonlyMap<string, string>;
};

export const noSpeculation: SpeculationView = { rows: [], paused: new Map() };

export const stampOf = ({ id, version }: { id: string; version: number }): string => `${id}@${version}`;

/** The matter is not over: it works, or its offer waits for a person. */
export const isOpenSpeculation = ({ outcome }: Pick<Speculation, "outcome">): boolean => outcome === "running" || outcome === "offered";

/** It is a person's task from then on: what it reports is heard. */
export const isPeoples = ({ outcome, draft }: Speculation): boolean => outcome === "adopted" || (outcome === "accepted" && draft === true);

/** [SP3] What a task takes of its policy's budget: its reservation until it is settled. One that a person adopted is paid for as asked work. */
const callsOf = (row: Speculation): number => (row.outcome === "adopted" ? 0 : (row.spent?.calls ?? row.reservedCalls));

/** Calls of one policy that are reserved or spent of the last 24 hours, whatever its version. */
export const callsToday = (rows: readonly Speculation[], policyId: string, nowMs: number): number =>
  rows.filter((row) => row.policy.id === policyId && row.startedMs > nowMs - dayMs).reduce((sum, row) => sum + callsOf(row), 0);

type AllowedBy = Policy & { speculation: SpeculationSetting };

/** The policy that a call names, if it allows any speculation. */
export const allowingPolicy = (policies: readonly Policy[], id: string | undefined): AllowedBy | null => {
  const policy = policies.find((known) => known.id === id);
  return policy?.speculation === undefined ? null : { ...policy, speculation: policy.speculation };
};

const names = (setting: SpeculationSetting, { source, place }: Pick<Trigger, "source" | "place">): boolean =>
  setting.places.some((each) => each.source === source && (each.place === "*" || each.place.toLowerCase() === place.toLowerCase()));

/** [SP6] Why what was begun is not allowed any more; null while it is. */
export function noLongerAllowed(policies: readonly Policy[], row: Pick<Speculation, "policy" | "source" | "place">): string | null {
  const policy = allowingPolicy(policies, row.policy.id);
  if (policy === null) return "its policy was switched off";
  return names(policy.speculation, row) ? null : "its policy does not name that place any more";
}

/** A person of the team, or CI of our own branches. */
const isTeams = ({ principal }: Trigger): boolean => principal.role !== "agent" && atLeast(authorityOf(principal), "member");

/** [SP1] Why code refuses a speculative dispatch; null when a policy allows it. Nobody is told: nobody asked. */
export function refuseSpeculation(
  view: { lane: Lane; capped: boolean; nowMs: number; policies: readonly Policy[]; speculation?: SpeculationView },
  input: { policy?: string | undefined; title: string },
  settled: readonly InboxItem[],
): { refused: string } | null {
  const { rows, paused } = view.speculation ?? noSpeculation;
  const triggers = settled.filter((item) => item.kind === "trigger");
  if (triggers.length < settled.length || triggers.length === 0) return no("Speculation starts from what happened, not from a report.");
  if (view.lane !== "team" || view.capped || triggers.some(({ trigger }) => taints(trigger.principal) || !isTeams(trigger)))
    return no("Text from outside the team starts no speculation, nor does what we said ourselves. Record it, or ignore it.");
  if (triggers.some(({ trigger, verdict }) => verdict.outcome === "request" || trigger.addressed))
    return no("Somebody asked for this: it is no speculation. Dispatch it without `speculative`, or answer.");
  const policy = allowingPolicy(view.policies, input.policy);
  if (policy === null) return no("No policy that allows speculation was named in `policy`: record it, or wait until somebody asks.");
  const outside = triggers.find(({ trigger }) => !names(policy.speculation, trigger));
  if (outside) return no(`The policy ${policy.id} allows no speculation for ${outside.trigger.source} ${outside.trigger.place}.`);
  if (paused.has(stampOf(policy))) return no(`The policy ${policy.id} has paused itself, because too much of its work was not used.`);
  const threads = triggers.map(({ threadId }) => threadId);
  const same = rows.find((row) => threads.includes(row.threadId) && (isOpenSpeculation(row) || isSame(row.title, input.title)));
  if (same) return no(`${same.taskId} was started for this already (${same.outcome}): record it.`);
  if (rows.filter(({ outcome }) => outcome === "running").length >= limits.maxRunningSpeculations)
    return no(`${limits.maxRunningSpeculations} speculative tasks run already; that is all that may at once.`);
  const { callsPerTask, callsPerDay } = policy.speculation;
  const left = callsPerDay - callsToday(rows, policy.id, view.nowMs);
  return left < callsPerTask
    ? no(
        `The speculative budget of ${policy.id} is used up: ${Math.max(0, left)} of ${callsPerDay} calls are left of today, and a task reserves ${callsPerTask}.`,
      )
    : null;
}

const no = (refused: string): { refused: string } => ({ refused });
/** Two titles that say the same. */
export const isSame = (a: string, b: string): boolean => isSameWork({ profile: "", text: a }, { profile: "", text: b });

/** [SP2] The row of a new speculative task: its whole share is reserved before it begins. */
export function newSpeculation(
  policy: AllowedBy,
  task: { taskId: string; decisionId: string; title: string },
  { trigger, threadId, seq }: QueuedTrigger,
  nowMs: number,
): Speculation {
  const { id, version, speculation, savedIn } = policy;
  return {
    ...task,
    policy: { id, version, maxWastedCalls: speculation.maxWastedCalls, ...(savedIn === undefined ? {} : { savedIn }) },
    threadId,
    triggerId: trigger.id,
    seq,
    sha: trigger.facts?.sha ?? null,
    source: trigger.source,
    place: trigger.place,
    reservedCalls: speculation.callsPerTask,
    spent: null,
    dollars: null,
    outcome: "running",
    why: "",
    offerId: null,
    offerText: null,
    startedMs: nowMs,
    settledMs: null,
    closedMs: null,
  };
}

/** What the decisions of a step did so far counts for its later calls. */
export const withStarted = (view: SpeculationView, started: Speculation | undefined): SpeculationView =>
  started === undefined ? view : { ...view, rows: [...view.rows, started] };

/** [SP3] The final report of a task settles its reservation, once. A report that does not say what was spent costs all that was reserved. */
function settle(row: Speculation, report: Report, price: Price): Speculation {
  if (row.spent !== null || !finalStatuses.includes(report.status)) return row;
  const spent = report.spent ?? { calls: row.reservedCalls, inputTokens: 0, outputTokens: 0 };
  return { ...row, spent, dollars: dollarsOf(spent, price), settledMs: report.atMs };
}

/** The matter is over, or its offer waits. What is over stays as it is. */
export const closeAs = (row: Speculation, outcome: SpeculationOutcome, why: string, nowMs: number): Speculation =>
  isOpenSpeculation(row) ? { ...row, outcome, why: excerpt(why, 300), closedMs: outcome === "offered" ? null : nowMs } : row;

/** [SP4] Why a finished result is not offered; null when it is confirmed and straightforward. */
export function whyNotOffered(report: Report): string | null {
  if (report.tainted) return "it read text from outside the team";
  if (report.straightforward !== true) return "its result needs a judgement first";
  const confidence = report.confidence ?? 0;
  return confidence < offerConfidence ? `its worker was not sure enough (${confidence})` : null;
}

/** `stop`: it is still at work, and ends now. `offer`: its words are held for a person. */
export type SpeculationStep = { row: Speculation; stop: boolean; offer: boolean };

/** [SP4] What a report of a speculative task leads to. Nothing of it is said: a result is offered or discarded, and who would have to ask ends. */
export function onReport(row: Speculation, report: Report, price: Price): SpeculationStep {
  const after = settle(row, report, price);
  const end = (outcome: SpeculationOutcome, why: string, stop = false): SpeculationStep => ({
    row: closeAs(after, outcome, why, report.atMs),
    stop,
    offer: false,
  });
  if (row.outcome !== "running") return { row: after, stop: false, offer: false };
  switch (report.kind) {
    case "progress":
    case "waiting":
    case "notice":
    case "proposal":
    case "answer":
      return { row: after, stop: false, offer: false };
    case "done": {
      const why = whyNotOffered(report);
      if (why !== null) return end("discarded", why);
      return { row: closeAs(after, "offered", "confirmed and straightforward", report.atMs), stop: false, offer: true };
    }
    case "failed":
      return end("discarded", `it failed: ${report.text}`);
    case "cancelled":
      return end("cancelled", report.text);
    case "question":
    case "blocked":
      return end("discarded", `it would have had to ask: ${report.text}`, true);
    case "paused":
      return end("discarded", "its budget was used up before it was done", true);
    case "overdue":
      return end("discarded", "it was not done in time", true);
  }
}

/** [SP4] What a person made of an offer; null while it waits. `said`: the words that were sent. */
export function onOffer(row: Speculation, state: OfferState, said: string | null, nowMs: number): Speculation | null {
  switch (state) {
    case "held":
      return null;
    case "released":
      return said === null || said === row.offerText
        ? closeAs(row, "accepted", row.draft ? "a person released it" : "a person sent it", nowMs)
        : closeAs(row, "edited", "a person sent it in other words", nowMs);
    case "declined":
      return closeAs(row, "rejected", "a person declined it", nowMs);
    case "expired":
      return closeAs(row, "expired", "nobody answered in time", nowMs);
  }
}

/** [SP6] Why nobody needs it any more, from what its thread got since: it is closed, or about older commits. */
export function mootBy(row: Speculation, thread: readonly ThreadRow[]): string | null {
  for (const each of thread) {
    if (each.kind !== "trigger" || each.seq <= row.seq) continue;
    const { kind, facts } = each.trigger;
    if (/^(issues|pull_request)\.(closed|deleted|transferred)$/.test(kind)) return "it was closed meanwhile";
    const isHead = kind === "push" || kind === "pull_request.synchronize";
    if (row.sha !== null && isHead && facts?.sha !== undefined && facts.sha !== row.sha) return "there are newer commits";
  }
  return null;
}

const wasted: readonly SpeculationOutcome[] = ["discarded", "rejected", "expired", "moot", "cancelled"];
const isWaste = ({ outcome }: Speculation): boolean => wasted.includes(outcome);
const sum = (rows: readonly Speculation[], of: (row: Speculation) => number): number => rows.reduce((total, row) => total + of(row), 0);

/** [SP7] Why a policy pauses itself: what it spent for nothing lately, since it was saved, passes its limit. Null while it does not. */
export function overWaste(rows: readonly Speculation[], policy: Speculation["policy"], nowMs: number): string | null {
  const own = rows.filter((row) => stampOf(row.policy) === stampOf(policy) && row.startedMs > nowMs - lookBackMs && isWaste(row));
  const calls = sum(own, (row) => row.spent?.calls ?? 0);
  return calls > policy.maxWastedCalls ? `${calls} model calls were spent for nothing, and ${policy.maxWastedCalls} may be` : null;
}

/** [SP7] The ledger of waste in figures, one for each policy. */
export function figuresOf({ rows, paused }: SpeculationView, nowMs: number): SpeculationFigures[] {
  const lately = rows.filter((row) => row.startedMs > nowMs - lookBackMs);
  const ids = [...new Set(lately.map((row) => row.policy.id))].sort();
  return ids.map((policyId) => {
    const own = lately.filter((row) => row.policy.id === policyId);
    const outcomes: SpeculationFigures["outcomes"] = {};
    for (const { outcome } of own) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    const taken = (outcomes.accepted ?? 0) + (outcomes.edited ?? 0);
    const answered = taken + (outcomes.rejected ?? 0) + (outcomes.expired ?? 0);
    const priced = own.some((row) => row.dollars !== null);
    const newest = own.reduce((last, row) => (row.policy.version > last.policy.version ? row : last));
    const dollars = (of: readonly Speculation[]): number | null => (priced ? sum(of, (row) => row.dollars ?? 0) : null);
    return {
      policyId,
      tasks: own.length,
      outcomes,
      acceptedShare: answered === 0 ? null : taken / answered,
      calls: sum(own, (row) => row.spent?.calls ?? 0),
      wastedCalls: sum(own.filter(isWaste), (row) => row.spent?.calls ?? 0),
      workMs: sum(own, (row) => (row.settledMs ?? row.startedMs) - row.startedMs),
      dollars: dollars(own),
      wastedDollars: dollars(own.filter(isWaste)),
      callsToday: callsToday(rows, policyId, nowMs),
      paused: paused.get(stampOf(newest.policy)) ?? null,
    };
  });
}
