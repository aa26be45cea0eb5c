// Which door a labelled message comes through, and as what. The widget is a conversation of one person with the agent; where several
// people speak, or nobody spoke to the agent, the message comes from a team chat, by the signed webhook of a bridge.
import type { Role } from "../../../src/protocol/principal.ts";
import { type GitHubKind, gitHubEvents, type Kind, type Labelled } from "./labelled.ts";

/** Whom GitHub's mentions have to name. */
export const agentLogin = "switchyard";

export type Earlier = { who: string; text: string };

/** Who said what before; `switchyard` is the agent. */
export const earlierOf = (one: Labelled): Earlier[] =>
  one.before.map((said) => {
    const at = said.indexOf(": ");
    return { who: said.slice(0, at), text: said.slice(at + 2) };
  });

export type Door = "page" | "github" | "generic";

export function doorOf(one: Labelled): Door {
  if (one.source !== "web") return one.source;
  const earlier = earlierOf(one);
  const alone = earlier.every(({ who }) => who === one.who.handle || who === agentLogin);
  const hasPage = one.who.role === "owner" || one.who.role === "member" || (one.who.role === "guest" && earlier.length === 0);
  return one.addressed && alone && hasPage ? "page" : "generic";
}

/** An owner's word needs an owner's session: only the widget has one. */
export const roleOf = (one: Labelled): Exclude<Role, "agent"> =>
  one.who.role === "owner" && doorOf(one) !== "page" ? "member" : one.who.role;

/** Who somebody of an earlier line is. */
export function roleOfHandle(who: string): Exclude<Role, "agent" | "owner"> {
  if (who.endsWith("[bot]")) return "bot";
  return who.startsWith("dev") ? "member" : who.startsWith("guest") ? "guest" : "public";
}

const isGitHubKind = (kind: Kind): kind is GitHubKind => kind in gitHubEvents;

const conclusions: Partial<Record<GitHubKind, string>> = {
  check_failed: "failure",
  suite_failed: "failure",
  check_timed_out: "timed_out",
  check_startup_failure: "startup_failure",
  check_cancelled: "cancelled",
};

const associationOf = (who: string): string => (roleOfHandle(who) === "member" ? "MEMBER" : "NONE");
const person = (login: string) => ({ login, id: 1, type: login.endsWith("[bot]") ? "Bot" : "User" });

/** The payload of GitHub for a message, on issue or pull request `number`. */
export function payloadOf(one: Labelled, number: number): { event: string; payload: object } {
  if (!isGitHubKind(one.kind)) throw new Error(`${one.id}: “${one.kind}” is no event of GitHub.`);
  const [event = "", action = ""] = gitHubEvents[one.kind].split(".");
  const place = one.repository ?? "";
  const sender = person(one.who.handle);
  const opened = earlierOf(one).find(({ text }) => text.startsWith("opened this pull request: "));
  const opens = event !== "issue_comment" && (action === "opened" || action === "edited");
  const [title = "", ...rest] = one.text.split("\n");
  const repository = { full_name: place, id: 7 };
  const head = { ref: `topic-${number}`, sha: `${number}`.padStart(40, "0"), repo: { id: 7, full_name: place } };
  const subject = {
    number,
    id: 10_000 + number,
    title: opens ? title : (opened?.text.slice("opened this pull request: ".length) ?? `Number ${number}`),
    body: opens ? rest.join("\n").trim() : "",
    html_url: `https://github.com/${place}/issues/${number}`,
    user: opens ? sender : person(opened?.who ?? "dev1"),
    author_association: associationOf(opens ? one.who.handle : (opened?.who ?? "dev1")),
  };
  const pull = { ...subject, merged: one.kind === "pull_request_merged", draft: false, head, base: { ref: "main", repo: head.repo } };
  const said = {
    id: 20_000 + number,
    body: one.text,
    html_url: `${subject.html_url}#said-${number}`,
    user: sender,
    author_association: associationOf(one.who.handle),
  };
  const base = { action, repository, sender };
  switch (event) {
    case "issues":
      return { event, payload: { ...base, issue: subject, ...(action === "assigned" ? { assignee: person(agentLogin) } : {}) } };
    case "issue_comment":
      return { event, payload: { ...base, issue: subject, comment: said } };
    case "pull_request":
      return {
        event,
        payload: { ...base, pull_request: pull, ...(action === "review_requested" ? { requested_reviewer: person(agentLogin) } : {}) },
      };
    case "pull_request_review_comment":
      return { event, payload: { ...base, pull_request: pull, comment: { ...said, path: "src/a.ts", commit_id: head.sha } } };
    case "pull_request_review":
      return {
        event,
        payload: {
          ...base,
          pull_request: pull,
          review: { ...said, body: one.kind === "review_empty" ? "" : one.text, state: "approved", commit_id: head.sha },
        },
      };
    case "push":
      return {
        event,
        payload: {
          repository,
          sender,
          ref: `refs/heads/topic-${number}`,
          before: head.sha,
          after: head.sha,
          commits: [{ message: one.text }],
        },
      };
    default: {
      const check = {
        id: 30_000 + number,
        name: title.slice(0, 80),
        status: "completed",
        conclusion: conclusions[one.kind] ?? "success",
        head_sha: head.sha,
        html_url: `https://github.com/${place}/runs/${number}`,
        output: { summary: one.text },
        app: { name: one.who.handle.replace("[bot]", "") },
        head_branch: head.ref,
        head_repository: head.repo,
        check_suite: { head_branch: head.ref },
        pull_requests: [],
      };
      return { event, payload: { ...base, [event]: check } };
    }
  }
}
