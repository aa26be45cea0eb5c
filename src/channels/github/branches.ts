// Which threads an event of a branch, of its checks or of its pull request concerns, and what claims to be ours there.
import { ownerOf, sha256Hex, threadIdOf } from "../../core/ids.ts";
import { readMarker } from "../../core/marker.ts";
import { limits } from "../../protocol/limits.ts";
import type { Actor, Delivery, DraftInput, Source } from "./draft.ts";
import type { GitHubCheckPull, GitHubPull } from "./payloads.ts";

export type Thread = Pick<DraftInput, "place" | "threadKey" | "threadUrl" | "title">;

/** A branch of another repository is never taken for ours of the same name. */
export function branchThread(place: string, branch: string, fork: string | null): Thread {
  const name = fork ? `${fork}:${branch}` : branch;
  const key = name.length <= 400 ? name : `${name.slice(0, 380)}~${sha256Hex(name).slice(0, 16)}`;
  return { place, threadKey: `branch:${key}`, title: { plain: `Branch ${name}`, words: null } };
}

/** [M2] The outbound row of this very thread that a text claims to be by its marker; null when it claims nothing. */
export function claimIn({ place, threadKey }: Thread, body: string, { secret }: Delivery): string | null {
  const marked = secret === null ? null : readMarker(secret, body);
  return marked !== null && ownerOf(marked.outboundId, "thr") === threadIdOf("github", place, threadKey) ? marked.outboundId : null;
}

/**
 * [O10] Our own pull request comes back. Its ledger row is in the thread of its branch, so that is where its marker is a claim: for the
 * head branch of this very repository, with the body as we wrote it.
 */
export function echoOfPull(place: string, pull: GitHubPull, kind: string, author: Actor, delivery: Delivery): DraftInput[] {
  const { branch, fork } = headFacts(pull);
  if (!branch || fork) return [];
  const thread = branchThread(place, branch, null);
  const echoOf = claimIn(thread, pull.body ?? "", delivery);
  if (echoOf === null) return [];
  const source: Source = { kind: "people", actors: [author] };
  return [{ ...thread, kind, source, externalId: pull.number, facts: { echoOf, url: pull.html_url } }];
}

/** In a fork the name of the branch is a stranger's words: left out. */
export function headFacts(pull: GitHubPull): Record<string, string | null> {
  const head = pull.head.repo?.id;
  const fork = typeof head !== "number" || head !== pull.base.repo?.id;
  return { sha: pull.head.sha, branch: fork ? null : pull.head.ref, base: pull.base.ref, fork: fork ? "true" : null, url: pull.html_url };
}

/** Checks belong to each of their pull requests, else to their branch. */
export function checkThreads(
  repository: { full_name: string; id: number | null },
  pulls: GitHubCheckPull[] | null | undefined,
  branch: string | null | undefined,
  head: string | null,
  rest: Pick<DraftInput, "kind" | "source" | "externalId" | "facts">,
): DraftInput[] | string {
  const fork = head !== null && head.toLowerCase() !== repository.full_name.toLowerCase() ? head : null;
  // GitHub lists pull requests of other repositories too when they hold the same commit.
  const ours = (pulls ?? []).filter((pull) => {
    const base = pull.base?.repo?.id;
    return typeof base !== "number" || typeof repository.id !== "number" || base === repository.id;
  });
  const byNumber = new Map(ours.map((pull) => [pull.number, pull]));
  if (byNumber.size > 0)
    return newest([...byNumber.values()]).map((pull) => {
      const head = pull.head?.repo?.id;
      const fromFork = fork !== null || typeof head !== "number" || head !== (pull.base?.repo?.id ?? repository.id);
      return {
        ...rest,
        source: ciSource(rest.source, !fromFork),
        place: repository.full_name,
        threadKey: `pull:${pull.number}`,
        title: { plain: `Pull request #${pull.number}`, words: null },
        facts: { ...rest.facts, branch: fromFork ? null : branch, fork: fromFork ? "true" : null },
      };
    });
  if (!branch) return "This check belongs to no branch and no pull request of the repository.";
  // Without a pull request only `workflow_run` says whose branch it was; `head` null means that nobody said.
  return [
    {
      ...rest,
      source: ciSource(rest.source, head !== null && fork === null),
      ...branchThread(repository.full_name, branch, fork),
      facts: { ...rest.facts, branch, fork: fork === null ? null : "true" },
    },
  ];
}

/** [G6] The door counts deliveries: one of many pull requests is no way around it. */
const newest = (pulls: GitHubCheckPull[]): GitHubCheckPull[] =>
  pulls.length <= limits.maxThreadsPerDelivery ? pulls : pulls.sort((a, b) => b.number - a.number).slice(0, limits.maxThreadsPerDelivery);

const ciSource = (source: Source, own: boolean): Source => (source.kind === "ci" ? { ...source, own } : source);
