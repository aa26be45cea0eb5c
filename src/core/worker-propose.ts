// A worker proposes something for the outside world. It holds no credential of any channel: what it says here is checked, put into
// form, and waits in the ledger of the thread that it concerns.
import { limits } from "../protocol/limits.ts";
import type { WorkerCall } from "../protocol/worker-tools.ts";
import { branchKeyOf, branchOf } from "./branch.ts";
import { excerpt } from "./context.ts";
import { threadIdOf } from "./ids.ts";
import { mannerOf } from "./manners.ts";
import { stripMarkers } from "./router-plan.ts";
import { plainLine, pullText, reportText, reviewCommentOf } from "./structured.ts";
import { keepDraft, keepsCommits, offer, type Proposal } from "./worker-draft.ts";
import type { Spoken } from "./worker-family.ts";
import { type Change, type InboxItem, type TaskState, triggerOf, type WorkerCommand } from "./worker-state.ts";

type Proposing = Extract<WorkerCall, { tool: "propose" }>;
type Facts = { itemOf: (key: string) => InboxItem | null; allCommands: () => readonly WorkerCommand[] };
const shownChecks = 6;
const maxTitleChars = 200;
const maxReportChars = 18_000;

/** [W27] Refused, or on its way to the thread's ledger with everything that it needs. */
export function propose(change: Change, call: Proposing, step: number, facts: Facts): Spoken {
  const { task } = change;
  if (task.proposals >= limits.maxOffersPerTask) return { refused: `${limits.maxOffersPerTask} proposals are all that a task may make.` };
  const proposal = proposalOf(task, call.input, facts);
  if ("refused" in proposal) return proposal;
  const asked = { step, callId: call.callId };
  // [SP8] Not even a branch leaves of what waits for a person.
  if (call.input.what === "pull_request" && keepsCommits(task)) return keepDraft(change, proposal, asked);
  return { output: { proposed: offer(change, proposal, asked), note: "It waits for a release; a notice says what became of it." } };
}

const clean = (text: string | undefined): string => stripMarkers(text ?? "");

function proposalOf(task: TaskState, input: Proposing["input"], facts: Facts): Proposal | { refused: string } {
  switch (input.what) {
    case "pull_request":
      return pullOf(task, input, facts);
    case "comment":
    case "label": {
      const said = input.reply_to === undefined ? null : facts.itemOf(input.reply_to);
      const trigger = triggerOf(said);
      if (input.reply_to !== undefined && trigger === null) return { refused: `${input.reply_to} is no event that this task got.` };
      const threadId = said?.kind === "row" ? said.threadId : (input.thread ?? task.start.threadId);
      if (!task.threads.includes(threadId))
        return { refused: `This task does not follow ${threadId}: it proposes only in its own threads.` };
      if (mannerOf(task.start.source) === "instant" && threadId === task.start.threadId)
        return { refused: "In this conversation the router speaks for you: use report." };
      if (input.what === "label") return labelsOf(threadId, input.labels ?? []);
      const text = clean(input.text);
      if (text === "") return { refused: "A comment needs its words in `text`." };
      const inReplyTo = trigger === null ? undefined : reviewCommentOf(trigger);
      const deed = inReplyTo === undefined ? {} : { deed: { do: "comment" as const, inReplyTo } };
      return { threadId, title: inReplyTo === undefined ? "Comment" : "Answer in a review thread", text, ...deed };
    }
  }
}

function labelsOf(threadId: string, given: readonly string[]): Proposal | { refused: string } {
  const labels = [...new Set(given.map((label) => plainLine(label, 50)).filter(Boolean))];
  if (labels.length === 0) return { refused: "Name at least one label in `labels`." };
  return {
    threadId,
    title: `Add ${labels.length === 1 ? "the label" : "the labels"} ${labels.join(", ")}`,
    text: "",
    deed: { do: "label", labels },
  };
}

/** [O7] The parts are the worker's, the form is code's, and the checks are what the ledger says that ran. */
function pullOf(task: TaskState, input: Proposing["input"], facts: Facts): Proposal | { refused: string } {
  const { taskId, source, place: asked, quote } = task.start;
  const pushed = repositoryOf(task);
  if ("refused" in pushed) return pushed;
  const title = plainLine(clean(input.title), maxTitleChars);
  const summary = clean(input.summary);
  const changes = (input.changes ?? []).map(clean).filter(Boolean);
  if (title === "" || summary === "" || changes.length === 0)
    return {
      refused: "A pull request needs `title`, `summary` (what and why, in a sentence) and `changes` (what was done, one line each).",
    };
  const base = plainLine(input.base ?? task.draft?.deed.base ?? pushed.base ?? "main", 200);
  if (base.startsWith("switchyard/") || !/^[\w][\w./-]*$/.test(base)) return { refused: `${base} is no branch that this can go into.` };
  const checks = ranBy(facts.allCommands());
  const number = /^(?:issue|pull):(\d+)$/.exec(threadKeyOf(task, facts) ?? "")?.[1];
  const links = [
    ...(number !== undefined && source === "github" && asked.toLowerCase() === pushed.place.toLowerCase()
      ? [`Asked for in #${number} by ${quote.from.name}`]
      : []),
    ...(input.links ?? []).filter((link) => /^https?:\/\/[^\s<>"]+$/.test(link)),
  ];
  const threadKey = branchKeyOf(taskId);
  const about = { source: "github", place: pushed.place, threadKey, title: `Branch ${branchOf(taskId)}` };
  return {
    threadId: threadIdOf("github", pushed.place, threadKey),
    title: `Pull request into ${base}: ${title}`,
    text: pullText({ summary, changes, checks, links }),
    deed: { do: "pull_request", head: branchOf(taskId), base, title, draft: input.draft ?? false },
    about,
  };
}

/** Where a pull request goes: the repository that was pushed to; of a task that may not push, the one of the commit that was kept. */
function repositoryOf(task: TaskState): { place: string; base?: string | undefined } | { refused: string } {
  const { start, pushes, kept } = task;
  const keeps = keepsCommits(task);
  if (start.speculative === true && start.source !== "github")
    return { refused: "This began in no repository, so no pull request can come of it. Say in your report what you made." };
  const at = keeps ? kept : pushes.at(-1);
  if (at === undefined)
    return {
      refused: `Commit your change and call \`push\` first: a pull request is made from a ${keeps ? "kept commit" : "pushed branch"}.`,
    };
  if (at.place === "")
    return { refused: "The remote that is pushed to is no repository with an owner and a name: nothing can be opened there." };
  return keeps && start.source === "github" && at.place.toLowerCase() !== start.place.toLowerCase()
    ? { refused: `That commit is of ${at.place}, and this began in ${start.place}: no pull request of it can be opened there.` }
    : at;
}

/** What ran and how it ended, the newest of it. */
const ranBy = (commands: readonly WorkerCommand[]): string[] =>
  commands.flatMap(({ tool, open, ended }) => (tool === "run_command" && !open && ended !== undefined ? [ended] : [])).slice(-shownChecks);

/** [O9] An end as people read it: in a conversation the words alone, elsewhere with what the ledger says that ran and was pushed. */
export function endText(task: TaskState, text: string, commands: readonly WorkerCommand[]): string {
  if (mannerOf(task.start.source) === "instant" || task.start.parent !== undefined) return text;
  const head = task.pushes.at(-1);
  const pulls = task.offers.filter(({ kind, stage }) => kind === "pull_request" && (stage === "sent" || stage === "confirmed"));
  const links = [...pulls.map(({ title }) => title), ...(head === undefined ? [] : [`Branch ${head.branch} at ${head.sha.slice(0, 10)}`])];
  // What code adds must not be what is cut.
  return reportText(excerpt(text, maxReportChars), { checks: ranBy(commands), links });
}

/** The key of the thread where the task was asked for, if its first row is here. */
const threadKeyOf = (task: TaskState, facts: Facts): string | null =>
  triggerOf(facts.itemOf(task.start.quote.triggerId))?.threadKey ?? null;
