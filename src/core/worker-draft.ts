// The pull request of a task that may push nothing yet: it is kept with the very commit that it is about. Released by a person, that
// commit is pushed and that pull request proposed by code; where it cannot be, nothing leaves, and people are asked anew.
import type { SettledCommand } from "../protocol/command.ts";
import type { Offer } from "../protocol/offer.ts";
import type { Deed, OutboundIntent } from "../protocol/thread.ts";
import { taskAudience } from "./audience.ts";
import { branchKeyOf, branchOf } from "./branch.ts";
import { excerpt } from "./context.ts";
import { childId } from "./ids.ts";
import { titleOfDraft } from "./structured.ts";
import { type CommandMaker, submit } from "./worker-calls.ts";
import type { Spoken } from "./worker-family.ts";
import { type Change, onBehalf, type TaskDraft, type TaskState, type WorkerCommand } from "./worker-state.ts";

/** What a task proposes, before it is an offer. */
export type Proposal = {
  threadId: string;
  title: string;
  text: string;
  deed?: Deed;
  about?: { source: string; place: string; threadKey: string; title: string };
};
/** The call that proposed it: its ids come from there. */
type Asked = { step: number; callId: string };

/** [SP8] What it pushes is only kept: nobody asked for it, or its draft still waits for a person. */
export const keepsCommits = ({ start, draft }: TaskState): boolean => start.speculative === true || draft !== undefined;

const short = (sha: string): string => sha.slice(0, 10);

/** [W27] On its way to the ledger of the thread that it concerns, with everything that it needs. */
export function offer(
  change: Change,
  { threadId, title, text, deed, about }: Proposal,
  { step, callId }: Asked,
  more: Pick<Offer, "releasedAs" | "draft" | "personOnly" | "changes"> & { tainted?: boolean } = {},
): string {
  const { task } = change;
  const { taskId, decisionId, authority, source, place } = task.start;
  const { tainted = task.tainted, ...kind } = more;
  const id = childId("out", threadId, taskId, step, callId);
  const outbound: OutboundIntent = {
    id,
    threadId,
    kind: "offer",
    text,
    ...(deed === undefined ? {} : { deed }),
    taskId,
    decisionId,
    ...(tainted ? { tainted: true } : {}),
    hops: 1,
  };
  const from = { taskId, authority, tainted, source, place, audience: taskAudience(task.start) };
  task.proposals += 1;
  task.offers = [...task.offers, { id, kind: deed?.do ?? "comment", title, text: "", stage: "proposed" }];
  task.line = `proposing: ${title}`;
  const input = { offer: { outbound, title, from, ...kind }, ...(about === undefined ? {} : { about }) };
  change.effects.push({ effect: "offer", threadId, input });
  return id;
}

/** [SP8] A commit that the machine keeps is what the next draft is about, by the daemon's own word. */
export function noteKept(change: Change, { from }: WorkerCommand, { kept, output }: SettledCommand): void {
  const { task } = change;
  if (kept === undefined || from === undefined || kept.branch !== branchOf(task.start.taskId)) return;
  task.kept = { ...kept, from, changes: output.spilled ? null : output.text };
}

/** [SP8] It stays with the task. Of what nobody asked for its last report offers it; a task that somebody released before offers it at once. */
export function keepDraft(change: Change, proposal: Proposal, asked: Asked): Spoken {
  const { task } = change;
  const { threadId, title, text, deed } = proposal;
  const { kept } = task;
  if (deed?.do !== "pull_request" || kept === undefined) return { refused: "Only the pull request of a kept commit is kept as a draft." };
  const { sha, changes } = kept;
  // [O12] Nobody could read them before releasing them.
  if (changes === null)
    return {
      refused: "The changes of that commit are more than a person reads before they release it: make them smaller, or report in words.",
    };
  const earlier = task.draft;
  if (earlier?.pushing !== undefined) return { refused: "Your draft was released, and its commit is being pushed: wait for its result." };
  if (earlier?.offerId !== undefined)
    change.effects.push({
      effect: "withdraw",
      threadId: task.start.threadId,
      outboundId: earlier.offerId,
      by: onBehalf(task, "its task"),
      reason: "a newer draft takes its place",
    });
  task.draft = { threadId, text, deed, sha, changes, commit: kept, title, ...asked, tainted: task.tainted };
  task.line = `drafted: ${title}`;
  if (task.start.speculative === true)
    return {
      output: { drafted: title, commit: sha, note: "Nothing of it leaves. Report done now: then it is offered to people as it is." },
    };
  const held = { threadId: task.start.threadId, title: titleOfDraft(task.draft), text, deed };
  const offerId = offer(change, held, asked, { draft: true, personOnly: true, changes });
  task.draft = { ...task.draft, offerId };
  return { output: { drafted: title, commit: sha, proposed: offerId, note: "It waits for a person; a notice says what became of it." } };
}

/** [SP8] Released: its commit is pushed, wherever the folder stands by now. The call that proposed it is carried out. */
export function pushReleased(
  change: Change,
  released: NonNullable<Offer["releasedAs"]>,
  { commandFor, nowMs }: { commandFor: CommandMaker; nowMs: number },
): void {
  const { task } = change;
  const { draft } = task;
  if (draft === undefined) return;
  const { taskId, authority, endpoint } = task.start;
  const { commit, step } = draft;
  const call = { callId: `${draft.callId}:push`, tool: "push" as const, input: commit.from };
  const asker = { taskId, authority, endpoint, epoch: task.epoch, tainted: task.tainted, only: { sha: commit.sha, place: commit.place } };
  const made = commandFor(call, asker, step, nowMs);
  if (!made.ok || endpoint === null) {
    notPushed(change, draft, made.ok ? "no machine is connected" : made.reason);
    return;
  }
  submit(change, call, step, made.command, endpoint);
  task.draft = { ...draft, released, pushing: made.command.commandId };
}

/** [SP8] The push of what was released has ended: its pull request is proposed, once, as it was released. */
export function releasedPushed(change: Change, { commandId }: WorkerCommand, { pushed, outcome, reason }: SettledCommand): void {
  const { task } = change;
  const { draft } = task;
  if (draft?.pushing !== commandId || draft.released === undefined) return;
  const { commit, released, threadId, title, text, deed, tainted } = draft;
  if (task.mode.mode === "ended" || task.mode.mode === "cancelling") return;
  if (pushed?.sha !== commit.sha || pushed.place !== commit.place) {
    notPushed(
      change,
      draft,
      pushed === undefined ? (reason ?? (outcome === "exited" ? "git refused it" : outcome)) : "another commit was pushed",
    );
    return;
  }
  const about = { source: "github", place: commit.place, threadKey: branchKeyOf(task.start.taskId), title: `Branch ${commit.branch}` };
  delete task.draft;
  offer(change, { threadId, title, text, deed, about }, draft, { releasedAs: released, tainted });
}

/** Whoever released it released this commit and no other. */
function notPushed(change: Change, { offerId: _, released: _by, pushing: _id, ...draft }: TaskDraft, why: string): void {
  const { task } = change;
  task.draft = draft;
  task.again = true;
  task.notices = [
    ...task.notices,
    `Your draft was released, but its commit ${short(draft.sha)} could not be pushed (${excerpt(why, 300)}): its pull request is not opened. If it is still wanted, commit what is needed, \`push\` to keep that commit, and \`propose\` it again: a person is asked anew. Else report why not.`,
  ];
}
