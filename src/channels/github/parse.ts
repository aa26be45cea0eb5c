// GitHub's payloads become drafts of triggers: one a thread, with only what is needed. No I/O: who people are is looked up later.
import { mentions } from "../../core/mention.ts";
import { isSmallTalk } from "../../core/small-talk.ts";
import { branchThread, checkThreads, claimIn, echoOfPull, headFacts, type Thread } from "./branches.ts";
import {
  type Actor,
  actorOf,
  authorAndSender,
  type Delivery,
  type Draft,
  type DraftInput,
  draftOf,
  joined,
  type Source,
  type Words,
} from "./draft.ts";
import { type GitHubEvent, type GitHubPull, type GitHubUser, isGitHubEvent, type Payload, payloads } from "./payloads.ts";

/** Drafts, or why there is nothing to do. */
export type Parsed = { drafts: [Draft, ...Draft[]] } | { ignored: string };

type Parser<E extends GitHubEvent> = (payload: Payload<E>, delivery: Delivery, kind: string, action: string) => DraftInput[] | string;

/** Parses a verified payload. Never throws: what has not the expected form is ignored, with the field that is wrong. */
export function parseGitHub(event: string, payload: unknown, delivery: Delivery): Parsed {
  if (!isGitHubEvent(event)) return { ignored: `Events of type "${event.slice(0, 60)}" are not used.` };
  return parseEvent(event, payload, delivery);
}

function parseEvent<E extends GitHubEvent>(event: E, payload: unknown, delivery: Delivery): Parsed {
  const parsed = payloads[event].safeParse(payload);
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path.join(".") || "the payload";
    return { ignored: `This ${event} event cannot be read: ${field.slice(0, 100)} is missing or has another form.` };
  }
  const action = parsed.data.action ?? "";
  if (event !== "push" && !/^[a-z_]{1,40}$/.test(action)) return { ignored: `This ${event} event names no action.` };
  const kind = event === "push" ? "push" : `${event}.${action}`;
  const inputs = parsers[event](parsed.data as Payload<E>, delivery, kind, action);
  if (typeof inputs === "string") return { ignored: inputs };
  const [first, ...others] = inputs.map((input) => draftOf(delivery, input));
  return first ? { drafts: [first, ...others] } : { ignored: `This ${event} event concerns no thread.` };
}

const parsers: { [E in GitHubEvent]: Parser<E> } = {
  issues(payload, delivery, kind, action) {
    const { issue } = payload;
    const said = subjectWords(issue, delivery);
    const assigned = action === "assigned" && isUs(payload.assignee, delivery);
    return [
      {
        ...issueThread(payload.repository.full_name, issue, delivery),
        kind,
        ...changeOrWords(payload, issue, action, said, delivery),
        ...(assigned ? assignment(`Issue #${issue.number} was assigned to ${delivery.login}.`, said) : {}),
        externalId: issue.id,
        facts: {
          action,
          label: payload.label?.name,
          assignee: payload.assignee?.login,
          reason: issue.state_reason,
          url: issue.html_url,
          ...timesOf(action, issue),
        },
      },
    ];
  },

  issue_comment(payload, delivery, kind, action) {
    const { comment, issue } = payload;
    const thread = issueThread(payload.repository.full_name, issue, delivery);
    const { said, echo } = commentWords(payload, comment, action, delivery, thread);
    return [
      {
        ...thread,
        kind,
        ...said,
        externalId: comment.id,
        facts: {
          action,
          url: comment.html_url,
          words: action === "created" && isSmallTalk(comment.body ?? "") ? "talk" : null,
          ...timesOf(action, comment),
          ...echo,
        },
      },
    ];
  },

  pull_request(payload, delivery, kind, action) {
    const pull = payload.pull_request;
    const said = subjectWords(pull, delivery);
    const forUs =
      (action === "assigned" && isUs(payload.assignee, delivery)) ||
      (action === "review_requested" && isUs(payload.requested_reviewer, delivery));
    const asked = action === "assigned" ? `was assigned to ${delivery.login}` : `waits for a review by ${delivery.login}`;
    const echo = action === "opened" ? echoOfPull(payload.repository.full_name, pull, kind, authorOf(pull, delivery), delivery) : [];
    return [
      {
        ...pullThread(payload.repository.full_name, pull, delivery),
        kind,
        ...changeOrWords(payload, pull, action, said, delivery),
        ...(forUs ? assignment(`Pull request #${pull.number} ${asked}.`, said) : {}),
        externalId: pull.id,
        facts: {
          action,
          label: payload.label?.name,
          assignee: payload.assignee?.login,
          reviewer: payload.requested_reviewer?.login,
          merged: pull.merged ? "true" : null,
          draft: pull.draft ? "true" : null,
          self: echo.length > 0 ? "marked" : null,
          ...timesOf(action, pull),
          ...headFacts(pull),
        },
      },
      ...echo,
    ];
  },

  pull_request_review(payload, delivery, kind, action) {
    const { review } = payload;
    const thread = pullThread(payload.repository.full_name, payload.pull_request, delivery);
    const { said, echo } = commentWords(payload, review, action, delivery, thread);
    return [
      {
        ...thread,
        kind,
        ...said,
        externalId: review.id,
        facts: {
          action,
          state: review.state,
          words: review.body?.trim() ? null : "none",
          ...headFacts(payload.pull_request),
          sha: review.commit_id ?? payload.pull_request.head.sha,
          url: review.html_url,
          ...timesOf(action, { created_at: review.submitted_at, updated_at: null }),
          ...echo,
        },
      },
    ];
  },

  pull_request_review_comment(payload, delivery, kind, action) {
    const { comment } = payload;
    const head = headFacts(payload.pull_request);
    const thread = pullThread(payload.repository.full_name, payload.pull_request, delivery);
    const { said, echo } = commentWords(payload, comment, action, delivery, thread);
    return [
      {
        ...thread,
        kind,
        ...said,
        externalId: comment.id,
        facts: {
          action,
          ...head,
          sha: comment.commit_id ?? payload.pull_request.head.sha,
          // In a fork the names of files are a stranger's words.
          path: head.fork ? null : comment.path,
          in_reply_to: comment.in_reply_to_id ? String(comment.in_reply_to_id) : null,
          url: comment.html_url,
          ...timesOf(action, comment),
          ...echo,
        },
      },
    ];
  },

  check_run(payload, _delivery, kind, action) {
    const run = payload.check_run;
    return checkThreads(payload.repository, run.pull_requests ?? run.check_suite?.pull_requests, run.check_suite?.head_branch, null, {
      kind,
      source: { kind: "ci", name: run.app?.name ?? "checks", own: false },
      externalId: run.id,
      facts: { action, name: run.name, conclusion: run.conclusion, status: run.status, sha: run.head_sha, url: run.html_url },
    });
  },

  check_suite(payload, _delivery, kind, action) {
    const suite = payload.check_suite;
    return checkThreads(payload.repository, suite.pull_requests, suite.head_branch, null, {
      kind,
      source: { kind: "ci", name: suite.app?.name ?? "checks", own: false },
      externalId: suite.id,
      facts: {
        action,
        name: suite.app?.name,
        conclusion: suite.conclusion,
        status: suite.status,
        sha: suite.head_sha,
        url: suite.html_url,
      },
    });
  },

  workflow_run(payload, _delivery, kind, action) {
    const run = payload.workflow_run;
    const head = run.head_repository;
    return checkThreads(payload.repository, run.pull_requests, run.head_branch, head ? (head.full_name ?? "unknown") : null, {
      kind,
      source: { kind: "ci", name: "github-actions", own: false },
      externalId: run.id,
      facts: { action, name: run.name, conclusion: run.conclusion, status: run.status, sha: run.head_sha, url: run.html_url },
    });
  },

  push(payload, delivery, kind) {
    const branch = /^refs\/heads\/(.+)$/s.exec(payload.ref)?.[1];
    if (!branch) return "A push of a tag changes no branch.";
    return [
      {
        ...branchThread(payload.repository.full_name, branch, null),
        kind,
        source: { kind: "people", actors: [actorOf(payload.sender, null, delivery.login)] },
        facts: {
          action: payload.deleted ? "deleted" : payload.created ? "created" : payload.forced ? "forced" : "pushed",
          branch,
          before: payload.before,
          sha: payload.after,
          commits: payload.commits ? String(payload.commits.length) : null,
          url: payload.compare,
        },
      },
    ];
  },
};

/** GitHub counts issues and pull requests in one row of numbers and sends comments of both as `issue_comment`. */
function issueThread(place: string, issue: Payload<"issues">["issue"], delivery: Delivery): Thread {
  const noun = issue.pull_request ? "pull" : "issue";
  return {
    place,
    threadKey: `${noun}:${issue.number}`,
    threadUrl: issue.html_url,
    title: titleOf(noun === "pull" ? "Pull request" : "Issue", issue, delivery),
  };
}

const pullThread = (place: string, pull: GitHubPull, delivery: Delivery): Thread => ({
  place,
  threadKey: `pull:${pull.number}`,
  threadUrl: pull.html_url,
  title: titleOf("Pull request", pull, delivery),
});

type Subject = {
  number: number;
  title: string | null;
  body: string | null;
  user: GitHubUser;
  author_association: string | null;
};

const titleOf = (noun: string, subject: Subject, delivery: Delivery): Draft["title"] => ({
  plain: `${noun} #${subject.number}`,
  words: subject.title?.trim() ? { text: subject.title.trim(), by: authorOf(subject, delivery) } : null,
});

const authorOf = (of: { user: GitHubUser; author_association: string | null }, delivery: Delivery): Actor =>
  actorOf(of.user, of.author_association, delivery.login);

/** The sender; GitHub says how the author stands to the repository, and that holds for the sender when they are the same. */
const senderOf = (sender: GitHubUser, author: Actor, delivery: Delivery): Actor =>
  actorOf(sender, sender?.login.toLowerCase() === author.login.toLowerCase() ? author.association : null, delivery.login);

const subjectWords = (subject: Subject, delivery: Delivery): Words => ({
  text: joined(subject.title, subject.body),
  by: authorOf(subject, delivery),
});

const isUs = (user: GitHubUser, delivery: Delivery): boolean => user?.login.toLowerCase() === delivery.login.toLowerCase();

/** When an edit or a deletion was made, and of what age its original is: by that a thread puts them in order. */
const timesOf = (action: string, of: { created_at: string | null; updated_at: string | null }): DraftInput["facts"] =>
  /^(edited|deleted|dismissed)$/.test(action) ? { created: of.created_at, updated: of.updated_at } : {};

const byPeople = (actors: [Actor, ...Actor[]]): Source => ({ kind: "people", actors });

type Changed = {
  sender: GitHubUser;
  changes: { title: { from: string | null } | null; body: { from: string | null } | null } | null;
};

/** An edit speaks to us only when it names us and its original did not. */
const newlyNames = (now: string, before: string, delivery: Delivery): boolean =>
  mentions(now, delivery.login) && !mentions(before, delivery.login);

/** Issues and pull requests: with words where they are new or changed; every other action is the sender's, without words. */
function changeOrWords(
  payload: Changed,
  subject: Subject,
  action: string,
  said: Words,
  delivery: Delivery,
): Pick<DraftInput, "source" | "text" | "addressed"> {
  const sender = senderOf(payload.sender, said.by, delivery);
  if (action !== "opened" && action !== "edited") return { source: byPeople([sender]), text: "", addressed: false };
  const before = joined(payload.changes?.title?.from ?? subject.title, payload.changes?.body?.from ?? subject.body);
  return {
    source: byPeople(authorAndSender(said.by, sender)),
    text: said.text,
    addressed: action === "edited" ? newlyNames(said.text, before, delivery) : mentions(said.text, delivery.login),
  };
}

/**
 * Comments and reviews. [M2] A marker is a claim: it names the row of this very thread that the words may be, and the thread confirms
 * it or not. Its author stays who wrote it, because anybody can copy what we said elsewhere, marker and all.
 */
function commentWords(
  payload: Changed,
  comment: { body: string | null; user: GitHubUser; author_association: string | null },
  action: string,
  delivery: Delivery,
  thread: Thread,
): { said: Pick<DraftInput, "source" | "text" | "addressed">; echo: { echoOf?: string } } {
  const author = authorOf(comment, delivery);
  const sender = senderOf(payload.sender, author, delivery);
  const source = byPeople(authorAndSender(author, sender));
  const body = comment.body ?? "";
  switch (action) {
    case "created":
    case "submitted": {
      const echoOf = claimIn(thread, body, delivery);
      return { said: { source, text: body, addressed: mentions(body, delivery.login) }, echo: echoOf === null ? {} : { echoOf } };
    }
    case "edited": {
      const before = payload.changes?.body?.from ?? body;
      return { said: { source, text: body, addressed: newlyNames(body, before, delivery) }, echo: {} };
    }
    default:
      // Deleted or dismissed: what was said is not said again.
      return { said: { source: byPeople([sender]), text: "", addressed: false }, echo: {} };
  }
}

const assignment = (text: string, subject: Words): Pick<DraftInput, "text" | "addressed" | "subject"> => ({
  text,
  addressed: true,
  subject,
});
