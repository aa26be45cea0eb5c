// The parts of GitHub's payloads that we read. Everything else is stripped; a detail of a wrong form is as if it were absent,
// and a person who is absent is nobody that we trust.
import * as z from "zod/mini";
import { repositoryName } from "../../core/branch.ts";

const orNull = <S extends z.ZodMiniType>(schema: S) => z.catch(z._default(z.nullable(schema), null), null);
const text = orNull(z.string());
const flag = orNull(z.boolean());
const id = z.number().check(z.int(), z.nonnegative());
const number = z.number().check(z.int(), z.positive());

const user = orNull(z.object({ login: z.string().check(z.minLength(1), z.maxLength(100)), type: text }));
export type GitHubUser = z.infer<typeof user>;

const fullName = z.string().check(z.regex(repositoryName, "is not owner/name"));

const repository = z.object({ full_name: fullName, id: orNull(id) });
const headRepository = orNull(z.object({ id: orNull(id), full_name: text }));

const from = orNull(z.object({ from: text }));
const changes = orNull(z.object({ title: from, body: from }));
const named = orNull(z.object({ name: text }));

const times = { created_at: text, updated_at: text };

const base = { action: text, repository, sender: user };

/** What an issue and a pull request have in common. */
const subject = { number, id: orNull(id), title: text, body: text, html_url: text, user, author_association: text, ...times };

const issue = z.object({
  ...subject,
  state_reason: text,
  pull_request: orNull(z.object({})),
});

const comment = z.object({
  id,
  body: text,
  html_url: text,
  user,
  author_association: text,
  ...times,
  path: text,
  commit_id: text,
  in_reply_to_id: orNull(id),
});

const pull = z.object({
  ...subject,
  merged: flag,
  draft: flag,
  head: z.object({ ref: text, sha: text, repo: headRepository }),
  base: z.object({ ref: text, repo: headRepository }),
});
export type GitHubPull = z.infer<typeof pull>;

const review = z.object({
  id,
  body: text,
  state: text,
  html_url: text,
  user,
  author_association: text,
  submitted_at: text,
  commit_id: text,
});

const checkPull = z.object({
  number,
  head: orNull(z.object({ repo: headRepository })),
  base: orNull(z.object({ repo: headRepository })),
});
export type GitHubCheckPull = z.infer<typeof checkPull>;
const checkPulls = orNull(z.array(checkPull));
const check = { head_sha: text, conclusion: text, status: text, html_url: text, pull_requests: checkPulls };

export const payloads = {
  issues: z.object({ ...base, issue, changes, label: named, assignee: user }),
  issue_comment: z.object({ ...base, issue, comment, changes }),
  pull_request: z.object({ ...base, pull_request: pull, changes, label: named, assignee: user, requested_reviewer: user }),
  pull_request_review: z.object({ ...base, review, pull_request: pull, changes }),
  pull_request_review_comment: z.object({ ...base, comment, pull_request: pull, changes }),
  check_run: z.object({
    ...base,
    check_run: z.object({
      ...check,
      id,
      name: text,
      app: named,
      check_suite: orNull(z.object({ head_branch: text, pull_requests: checkPulls })),
    }),
  }),
  check_suite: z.object({ ...base, check_suite: z.object({ ...check, id, head_branch: text, app: named }) }),
  workflow_run: z.object({
    ...base,
    workflow_run: z.object({ ...check, id, name: text, head_branch: text, head_repository: headRepository }),
  }),
  push: z.object({
    ...base,
    ref: z.string(),
    before: text,
    after: text,
    created: flag,
    deleted: flag,
    forced: flag,
    compare: text,
    commits: orNull(z.array(z.unknown())),
  }),
} as const;

export type GitHubEvent = keyof typeof payloads;
export type Payload<E extends GitHubEvent> = z.infer<(typeof payloads)[E]>;

export const isGitHubEvent = (event: string): event is GitHubEvent => Object.hasOwn(payloads, event);
