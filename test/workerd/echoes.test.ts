// What we did at GitHub comes back through the door: it confirms its row, and asks nobody for anything.
import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { WorkerSession } from "../../durable-objects/worker-session.ts";
import { branchKeyOf, branchOf } from "../../src/core/branch.ts";
import { childId, makeId, threadIdOf } from "../../src/core/ids.ts";
import { routerName } from "../../src/env.ts";
import type { Offer, OfferView } from "../../src/protocol/offer.ts";
import type { Deed } from "../../src/protocol/thread.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { checkHistory } from "../support/history.ts";
import { type Answer, control, deliver, person } from "./github-deliveries.ts";
import { eventsOf, stubOf, threadOf, uniqueName } from "./thread-fixtures.ts";
import { bindings, eventually } from "./widget-page.ts";

beforeAll(async () => {
  await migrated(bindings.DB);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** An offer that the team's setting releases by itself, in a repository of its own. */
async function released(deed: Deed, threadKey: string, taskId = makeId("tsk", uniqueName()), place = `echo/${uniqueName()}`) {
  const moved: OfferView[] = [];
  vi.spyOn(WorkerSession.prototype, "offerMoved").mockImplementation(async (view: OfferView) => {
    moved.push(view);
  });
  const threadId = threadIdOf("github", place, threadKey);
  const id = childId("out", threadId, taskId);
  const offer: Offer = {
    outbound: { id, threadId, kind: "offer", text: "What and why.", deed, taskId, hops: 1 },
    title: "A deed",
    from: { taskId, authority: "member", tainted: false, source: "github", place },
  };
  expect((await threadOf(threadId).offer({ offer, about: { source: "github", place, threadKey, title: "It" } })).state).toBe("released");
  return { threadId, place, id, moved };
}
const stateOf = async (threadId: string, outboundId: string) => (await threadOf(threadId).offered({ outboundId }))?.sent?.state;
const kindsIn = async (threadId: string) => (await threadOf(threadId).events({ afterSeq: 0, limit: 100 })).map(({ event }) => event.kind);
const heldByRouter = async (about: string) =>
  (await bindings.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 1_000, about })).filter(
    ({ event }) => event.kind === "router.inbox",
  );
const outcomes = ({ triggers = [] }: Answer) => triggers.map(({ outcome }) => outcome);
const whole = async (threadId: string) =>
  checkHistory([{ object: threadId, kind: "thread", events: await threadOf(threadId).events({ afterSeq: 0, limit: 1_000 }) }]);

type Pull = { number: number; title: string; body: string; head: { ref: string }; base: { ref: string } };
const openedBy = (place: string, pull: Pull, login: string) => {
  const repo = { id: 7, full_name: place };
  return deliver("pull_request", {
    action: "opened",
    repository: repo,
    sender: person(login),
    pull_request: {
      ...pull,
      id: 9_000 + pull.number,
      html_url: `https://github.com/${place}/pull/${pull.number}`,
      user: person(login),
      author_association: "MEMBER",
      head: { ...pull.head, sha: "a".repeat(40), repo },
      base: { ...pull.base, repo },
    },
  });
};
const pullsOf = async (place: string): Promise<Pull[]> => (await control(`pulls?place=${place}`)).json();
/** The one pull request there, once it is. */
async function onlyPull(place: string): Promise<Pull> {
  await eventually("the pull request", async () => (await pullsOf(place)).length > 0);
  const [pull, ...others] = await pullsOf(place);
  if (pull === undefined || others.length > 0) throw new Error(`${place} has ${others.length} pull requests too many`);
  return pull;
}

describe("our own pull request", () => {
  const taskOf = () => makeId("tsk", uniqueName());
  const deedOf = (taskId: string): Deed => ({ do: "pull_request", head: branchOf(taskId), base: "main", title: "Oil it", draft: false });

  test.each(["switchyard-bot", "maintainer"])(
    "[O10] [R9] opened with the account of %s, it confirms the row of its branch after an eviction too, and is no candidate",
    async (login) => {
      const taskId = taskOf();
      const { threadId, place, id } = await released(deedOf(taskId), branchKeyOf(taskId), taskId);
      await control("permission", { place, login, permission: "write" });
      await eventually("the pull request", async () => (await stateOf(threadId, id)) === "sent");
      const pull = await onlyPull(place);
      await evictDurableObject(stubOf(threadId));
      const { answer } = await openedBy(place, pull, login);
      expect(outcomes(answer)).toEqual(["accepted", "confirmed"]);
      expect(await threadOf(threadId).offered({ outboundId: id })).toMatchObject({
        sent: { state: "confirmed", providerId: String(pull.number) },
      });
      expect(outcomes((await openedBy(place, pull, login)).answer)).toEqual(["duplicate", "confirmed"]);
      expect((await eventsOf(threadId, "thread.confirmed")).length).toBe(1);
      expect(await kindsIn(threadId)).not.toContain("thread.accepted");
      const pullThread = threadIdOf("github", place, `pull:${pull.number}`);
      expect((await eventsOf(pullThread, "thread.accepted")).map(({ event }) => event.verdict.rule)).toEqual(["own.pull_request"]);
      expect(await heldByRouter(answer.triggers?.[0]?.id ?? "")).toEqual([]);
      expect([...(await whole(threadId)), ...(await whole(pullThread))]).toEqual([]);
    },
  );

  test("[O10] [R9] when its event overtakes GitHub's answer, nothing is looked up and nothing sent again; the task hears its number", async () => {
    const taskId = taskOf();
    const place = `echo/${uniqueName()}`;
    await (await control("faults", { on: `POST /repos/${place}/pulls`, faults: ["drop"] })).arrayBuffer();
    const { threadId, id, moved } = await released(deedOf(taskId), branchKeyOf(taskId), taskId, place);
    const pull = await onlyPull(place);
    expect(outcomes((await openedBy(place, pull, "switchyard-bot")).answer)).toEqual(["accepted", "confirmed"]);
    await eventually("the task's news", async () => moved.some(({ sent }) => sent?.state === "confirmed"));
    expect(moved.at(-1)?.sent).toMatchObject({ state: "confirmed", providerId: String(pull.number) });
    await evictDurableObject(stubOf(threadId));
    expect(await stateOf(threadId, id)).toBe("confirmed");
    expect(await onlyPull(place)).toMatchObject({ number: pull.number });
    expect(await whole(threadId)).toEqual([]);
  });
});

describe("a merge of our pull request", () => {
  const taskId = () => makeId("tsk", uniqueName());
  const closed = (place: string, number: number, branch: string, login: string, more: object = {}) => {
    const repo = { id: 7, full_name: place };
    return deliver("pull_request", {
      action: "closed",
      repository: repo,
      sender: person(login),
      pull_request: {
        number,
        id: 9_000 + number,
        title: "Oil it",
        body: "",
        html_url: `https://github.com/${place}/pull/${number}`,
        user: person("switchyard-bot"),
        author_association: "MEMBER",
        merged: true,
        head: { ref: branch, sha: "a".repeat(40), repo },
        base: { ref: "main", sha: "b".repeat(40), repo },
        ...more,
      },
    });
  };

  test("[W30] is told to its task once, also after the thread died before it could; a stranger's, a fork's and a mere close are not", async () => {
    const told: unknown[] = [];
    let away = true;
    vi.spyOn(WorkerSession.prototype, "describe").mockImplementation(async () => {
      if (away) throw new Error("away");
      return {} as never;
    });
    vi.spyOn(WorkerSession.prototype, "accept").mockImplementation(async (word) => {
      told.push(word);
    });
    const place = `echo/${uniqueName()}`;
    await control("permission", { place, login: "maintainer", permission: "write" });
    const branch = branchOf(taskId());
    const thread = threadIdOf("github", place, "pull:4");
    expect(outcomes((await closed(place, 4, branch, "maintainer")).answer)).toEqual(["accepted"]);
    await evictDurableObject(stubOf(thread));
    away = false;
    await threadOf(thread).poke();
    await eventually("the word on the task", async () => told.length === 1);
    expect(outcomes((await closed(place, 4, branch, "maintainer")).answer)).toEqual(["duplicate"]);
    await closed(place, 5, branch, "stranger");
    await closed(place, 6, branch, "maintainer", { merged: false });
    await closed(place, 7, branch, "maintainer", { head: { ref: branch, sha: "a".repeat(40), repo: { id: 8, full_name: "fork/app" } } });
    await closed(place, 8, "main", "maintainer");
    for (const number of [4, 5, 6, 7, 8]) await threadOf(threadIdOf("github", place, `pull:${number}`)).poke();
    expect(told).toMatchObject([{ by: { role: "member", id: "maintainer" }, accepted: true, merged: { place } }]);
    expect((await eventsOf(thread, "thread.accepted_outcome")).map(({ event }) => event.accepted)).toEqual([true]);
  });
});

describe("a label of ours", () => {
  const labelled = (place: string, label: string, login: string) =>
    deliver("issues", {
      action: "labeled",
      repository: { id: 7, full_name: place },
      sender: person(login),
      label: { name: label },
      issue: {
        number: 4,
        id: 1_004,
        title: "It squeaks",
        body: label,
        html_url: null,
        user: person("reporter"),
        author_association: "NONE",
      },
    });

  test("[O10] confirms its row by our account and by what was sent here lately; another's, and one that we did not send, are rows", async () => {
    const { threadId, place, id } = await released({ do: "label", labels: ["bug", "Parser"] }, "issue:4");
    await eventually("the labels", async () => (await stateOf(threadId, id)) === "sent");
    expect(outcomes((await labelled(place, "bug", "maintainer")).answer)).not.toContain("confirmed");
    expect(await stateOf(threadId, id)).toBe("sent");
    await evictDurableObject(stubOf(threadId));
    expect(outcomes((await labelled(place, "bug", "switchyard-bot")).answer)).toEqual(["confirmed"]);
    expect(outcomes((await labelled(place, "parser", "switchyard-bot")).answer)).toEqual(["confirmed"]);
    expect(await threadOf(threadId).offered({ outboundId: id })).toMatchObject({ sent: { state: "confirmed", providerId: "labels:4" } });
    expect(outcomes((await labelled(place, "wontfix", "switchyard-bot")).answer)).not.toContain("confirmed");
    expect(await eventsOf(threadId, "thread.confirmed")).toHaveLength(1);
    expect(await whole(threadId)).toEqual([]);
  });
});
