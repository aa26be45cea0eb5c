// The draft of a pull request that nobody asked for: real workerd, the real daemon, real git with a bare repository as its remote; GitHub
// and the model are stand-ins. Workerd is killed where the draft waits, and at each hop from its release to its pull request.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { branchKeyOf, branchOf } from "../../src/core/branch.ts";
import { threadIdOf } from "../../src/core/ids.ts";
import type { FaultPoint } from "../../src/fault-point.ts";
import type { HeldOffersAnswer } from "../../src/protocol/console.ts";
import type { OfferView } from "../../src/protocol/offer.ts";
import type { Speculation, SpeculationAnswer } from "../../src/protocol/speculation.ts";
import { accessibilityFindings, launchBrowser, scrollsSideways, visit } from "../support/browser-lab.ts";
import { git, gitLab } from "../support/git-lab.ts";
import { type GitHubServer, startGitHubServer } from "../support/github-server.ts";
import { checkHistory, type ObjectLog } from "../support/history.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { eventually, operatorToken, System, standIns } from "../support/system.ts";

const place = "acme/app";
const user = { login: "maintainer", id: 1, type: "User" };

let system: System;
let github: GitHubServer;
let model: ModelServer;
let work: string;
let remote: string;

async function api<T>(method: "GET" | "POST", at: string, body?: object): Promise<T> {
  const response = await fetch(`${system.origin}/api/console/${at}`, {
    method,
    headers: { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${at}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
/** Pressed until it is answered: a process that died in it is asked again. */
const decide = (offerId: string, verdict: "release" | "decline") =>
  eventually(`${verdict} of ${offerId}`, () => api<OfferView>("POST", `offers/${offerId}`, { verdict }), 60_000);

let comments = 0;
const comment = (number: number, body: string) =>
  system.github("issue_comment", {
    action: "created",
    repository: { full_name: place, id: 7 },
    sender: user,
    issue: { number, id: 1000 + number, title: "The gate squeaks", body: "", html_url: null, user, author_association: "MEMBER" },
    comment: { id: ++comments, body, html_url: null, user, author_association: "MEMBER" },
  });

type Call = { tool: string; input: object };
const report = (kind: string, text: string, more: object = {}): Call => ({ tool: "report", input: { kind, text, ...more } });
const sure = { confidence: 0.95, straightforward: true };
/** From the task's own branch of the folder, whatever an earlier one left. */
const commit = (file: string): Call => ({
  tool: "run_command",
  input: {
    script: `git checkout -q -B ${file} main && echo ${file} > ${file} && git add ${file} && git -c user.name=t -c user.email=t@x.y commit -qm ${file}`,
  },
});
const push: Call = { tool: "push", input: {} };
const propose = (token: string): Call => ({
  tool: "propose",
  input: { what: "pull_request", title: `Oil ${token}`, summary: "It squeaked.", changes: ["Oiled it"], base: "main" },
});
const wait: Call = { tool: "wait", input: { reason: "for people" } };
const drafts = (token: string): Call[][] => [[commit(token)], [push], [propose(token), report("done", `${token} is oiled.`, sure)]];

let issues = 60;
type Drafted = { token: string; number: number; taskId: string; threadId: string };

/** People say something to each other, and the router starts work on it that nobody asked for. */
async function speculate(token: string, steps: Call[][]): Promise<Drafted> {
  const number = ++issues;
  const input = { settles: ["$trg"], title: `Oil ${token}`, goal: `Oil ${token}.`, speculative: true, policy: "early" };
  model.script({ when: [`the gate squeaks: ${token}`, '"dispatch"'], replies: [{ calls: [{ tool: "dispatch", input }] }] });
  model.script({ when: [token, '"run_command"'], replies: steps.map((calls) => ({ calls })) });
  await comment(number, `the gate squeaks: ${token}`);
  const row = await eventually("the speculation", () => rowWhere(({ title }) => title === `Oil ${token}`), 60_000);
  return { token, number, taskId: row.taskId, threadId: row.threadId };
}
const ledger = () => api<SpeculationAnswer>("GET", "speculation");
const rowWhere = async (hold: (row: Speculation) => boolean): Promise<Speculation | undefined> => (await ledger()).recent.find(hold);
const rowOf = ({ taskId }: Drafted) => rowWhere((row) => row.taskId === taskId);
const outcome = (of: Drafted, what: Speculation["outcome"]) =>
  eventually(
    `the outcome ${what} of ${of.token}`,
    async () => {
      const row = await rowOf(of);
      return row?.outcome === what ? row : undefined;
    },
    60_000,
  );
/** Its draft is held. */
async function offered(of: Drafted): Promise<{ offerId: string; view: OfferView }> {
  const { offerId } = await outcome(of, "offered");
  const view = await eventually("the held draft", () => api<OfferView>("GET", `offers/${offerId}`));
  return { offerId: offerId ?? "", view };
}

/** [O12] As a person does it, in the console, with what the commit changes in sight. */
async function readAndRelease(changes: string): Promise<void> {
  const browser = await launchBrowser();
  try {
    const { page, problems } = await visit(browser, [system.origin], { viewport: { width: 360, height: 740 } });
    await page.goto(`${system.origin}/console#/proposals`);
    await page.getByLabel("Operator token").fill(operatorToken);
    await page.getByLabel("Operator token").press("Enter");
    const shown = page.getByRole("region", { name: "What it changes" });
    await shown.waitFor();
    expect((await shown.textContent())?.split("\n")).toContain(changes);
    expect(await accessibilityFindings(page)).toEqual([]);
    await expect.poll(() => scrollsSideways(page)).toBe(false);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/draft.png` });
    await page.getByRole("button", { name: /^Release: / }).click();
    await page.getByText("Nothing waits for a release.").waitFor();
    expect(problems).toEqual([]);
  } finally {
    await browser.close();
  }
}

const refs = (): string[] => git(remote, "for-each-ref", "--format=%(refname)").split("\n");
const headOf = (taskId: string): string => git(remote, "rev-parse", "--verify", "-q", `refs/heads/${branchOf(taskId)}`);
const pullsOf = (taskId: string) => github.pulls(place).filter(({ head }) => head.ref === branchOf(taskId));
const statusOf = async (taskId: string): Promise<string | undefined> =>
  (await system.events("WORKER_SESSION", taskId)).map(({ event }) => event).findLast((event) => event.kind === "task.status")?.to;

/** What the machine was asked to do about a branch, as its own ledger has it; and the logs of all that took part. */
async function historyOf({ taskId, threadId }: Drafted): Promise<{ logs: ObjectLog[]; pushed: string[] }> {
  const task = await system.events("WORKER_SESSION", taskId);
  const command = task.find(({ event }) => event.kind === "task.tool" && event.commandId !== undefined)?.event;
  if (command?.kind !== "task.tool" || command.commandId === undefined) throw new Error("The task has no command.");
  const { endpoints } = await api<{ endpoints: { endpointId: string }[] }>("GET", "endpoints");
  const endpointId = endpoints[0]?.endpointId ?? "";
  const branch = threadIdOf("github", place, branchKeyOf(taskId));
  const endpoint = await system.events("ENDPOINT", endpointId);
  const pushed = endpoint.flatMap(({ event }) =>
    event.kind === "endpoint.command" && event.taskId === taskId && event.state === "started" && /^(push|keep)/.test(event.what)
      ? [event.what]
      : [],
  );
  const logs: ObjectLog[] = [
    { object: threadId, kind: "thread", events: await system.events("THREAD", threadId) },
    { object: branch, kind: "thread", events: await system.events("THREAD", branch) },
    { object: taskId, kind: "task", events: task },
    { object: endpointId, kind: "endpoint", events: endpoint },
  ];
  return { logs, pushed };
}

/** At rest: what was interrupted has been taken up, and nothing was done twice. */
const expectWhole = (of: Drafted) => expect.poll(async () => checkHistory((await historyOf(of)).logs), { timeout: 60_000 }).toEqual([]);

/** Nothing of it is anywhere but on its machine. */
function expectNothingLeft(of: Drafted, before: { refs: string[] }): void {
  expect(refs()).toEqual(before.refs);
  expect(pullsOf(of.taskId)).toEqual([]);
  expect(github.requests(of.token)).toEqual([]);
  expect(github.comments(place, of.number)).toEqual([]);
}

async function expectOnce(of: Drafted, sha: string): Promise<void> {
  await eventually("the pull request", () => pullsOf(of.taskId).length > 0, 90_000);
  const { taskId, token } = of;
  // What the router repeats after its death has had its chance.
  await eventually(
    "an opening that the router knows of",
    async () => {
      const logged = (await system.events("ROUTER", "router")).map(({ event }) => event);
      const opening = logged.find((event) => event.kind === "router.decision" && event.tool === "resolve" && event.taskId === taskId);
      const decisionId = opening?.kind === "router.decision" ? opening.decisionId : "";
      const done = logged.flatMap((event) =>
        event.kind === "router.effect" && event.decisionId === decisionId && event.state === "done" ? [event.effect] : [],
      );
      return done.includes("reopen") && done.includes("subscribe");
    },
    60_000,
  );
  await eventually("a task that waits", async () => (await statusOf(taskId)) === "waiting", 60_000);
  expect(headOf(taskId)).toBe(sha);
  expect(pullsOf(taskId)).toMatchObject([{ title: `Oil ${token}`, base: { ref: "main" } }]);
  await expectWhole(of);
  expect((await historyOf(of)).pushed).toEqual(["keep the commit", `push ${sha.slice(0, 10)} to ${branchOf(taskId)}`]);
  expect(pullsOf(taskId)).toHaveLength(1);
  expect(await rowOf(of)).toMatchObject({ outcome: "accepted", spent: { calls: 3 } });
}

beforeAll(async () => {
  github = await startGitHubServer();
  github.permit(place, "maintainer", "write");
  model = await startModelServer();
  system = await System.start({ bindings: standIns(github, model) });
  ({ remote, work } = gitLab(system.folder));
  // The team lets every pull request of asked work leave by itself: a draft waits for a person all the same.
  const speculation = { places: [{ source: "github", place }], callsPerTask: 6, callsPerDay: 500, maxWastedCalls: 500 };
  await api("POST", "policies", { id: "early", version: 0, text: "Mend early.", enabled: true, speculation });
  await system.daemon(work);
  await system.daemonCommand(["grant", work, "--name", "work", "--push"]);
}, 120_000);
afterAll(async () => {
  await system.stop();
  await github.close();
  await model.close();
});

describe("a pull request that nobody asked for", () => {
  test("[O12] [SP8] stays on its machine until a person, who sees what it changes, releases it; then the commit that it named is pushed and its pull request opened, once, and its task goes on", async () => {
    const before = { refs: refs() };
    const done = [report("done", "The gate is oiled, and the checks pass.", { confidence: 0.9 })];
    const of = await speculate("released-gate", [...drafts("released-gate"), ...Array.from({ length: 6 }, () => done)]);
    const { taskId, number } = of;
    const { offerId, view } = await offered(of);
    const sha = git(work, "rev-parse", "released-gate");
    expect(view).toMatchObject({ state: "held", offer: { draft: true, personOnly: true } });
    expect(view.offer.title).toContain(`Draft of a pull request: Oil released-gate (into main, commit ${sha.slice(0, 10)})`);
    // The folder goes on: what is released is what was shown, not where it stands by now.
    git(work, "commit", "--allow-empty", "-qm", "later");
    await system.cron();
    expectNothingLeft(of, before);
    expect(await rowOf(of)).toMatchObject({ outcome: "offered", spent: { calls: 3 }, closedMs: null });

    await readAndRelease("+released-gate");
    await eventually("the pull request", () => pullsOf(taskId)[0], 60_000);
    await decide(offerId, "release");
    expect(headOf(taskId)).toBe(sha);
    expect(git(work, "rev-parse", "HEAD")).not.toBe(sha);
    expect(refs()).toEqual([...before.refs, `refs/heads/${branchOf(taskId)}`].sort());
    const [pull] = pullsOf(taskId);
    expect(pull?.body).toContain("### Checks");
    const suite = { id: 1, head_branch: branchOf(taskId), head_sha: sha, conclusion: "success", status: "completed", app: { name: "CI" } };
    const pull_requests = [{ number: pull?.number, head: { repo: { id: 7 } }, base: { repo: { id: 7 } } }];
    await system.github("check_suite", {
      action: "completed",
      repository: { full_name: place, id: 7 },
      sender: { login: "github-actions[bot]", id: 1, type: "Bot" },
      check_suite: { ...suite, pull_requests },
    });
    await eventually("the end of the task", async () => (await statusOf(taskId)) === "done", 60_000);
    const said = () => github.comments(place, number).filter(({ body }) => body.includes("the checks pass"));
    await eventually("its word on the issue", () => said().length > 0);
    expect(said()).toHaveLength(1);
    expect(pullsOf(taskId)).toHaveLength(1);
    await expectWhole(of);
    expect((await historyOf(of)).pushed).toEqual(["keep the commit", `push ${sha.slice(0, 10)} to ${branchOf(taskId)}`]);
    expect(await rowOf(of)).toMatchObject({ outcome: "accepted", why: "a person released it", spent: { calls: 3 } });
  }, 180_000);

  test("[SP7] [SP8] declined, or not sure enough, it leaves nothing at all; the ledger counts what it cost for nothing", async () => {
    const before = { refs: refs(), figures: (await ledger()).figures[0] };
    const declined = await speculate("declined-gate", drafts("declined-gate"));
    const { offerId } = await offered(declined);
    await decide(offerId, "decline");
    await outcome(declined, "rejected");
    const steps = drafts("unsure-gate").slice(0, 2);
    const unsure = await speculate("unsure-gate", [...steps, [propose("unsure-gate"), report("done", "Maybe.", { confidence: 0.4 })]]);
    await outcome(unsure, "discarded");
    // A word that comes too late moves nothing, and hears so.
    const late = api<OfferView>("POST", `offers/${offerId}`, { verdict: "release" });
    await expect(late).rejects.toThrow(/409 .*Too late to release it: it was declined/);
    expect((await api<OfferView>("GET", `offers/${offerId}`)).state).toBe("declined");
    await system.cron();
    for (const of of [declined, unsure]) {
      expectNothingLeft(of, before);
      expect((await historyOf(of)).pushed).toEqual(["keep the commit"]);
      expect(await statusOf(of.taskId)).toBe("done");
    }
    const [figures] = (await ledger()).figures;
    expect(figures).toMatchObject({
      policyId: "early",
      tasks: (before.figures?.tasks ?? 0) + 2,
      wastedCalls: (before.figures?.wastedCalls ?? 0) + 6,
      outcomes: { rejected: 1, discarded: 1 },
    });
  }, 180_000);

  test("[SP8] whose commit is gone by its release opens nothing: the task says why, and a person is asked anew about what is pushed then", async () => {
    const before = { refs: refs() };
    const token = "mended-gate";
    const again = `${token}-again`;
    const of = await speculate(token, [
      ...drafts(token),
      [commit(again)],
      [push],
      [propose(token)],
      ...Array.from({ length: 6 }, () => [wait]),
    ]);
    const { offerId } = await offered(of);
    const gone = git(work, "rev-parse", token);
    git(work, "checkout", "-q", "main");
    git(work, "branch", "-D", token);
    git(work, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all");
    git(work, "gc", "-q", "--prune=now");
    expect(git(work, "cat-file", "-t", gone)).toBe("");
    model.script({
      when: [of.taskId, "Draft of a pull request", '"dispatch"'],
      replies: [{ calls: [{ tool: "record", input: { settles: ["$rep"], reason: "a person decides" } }] }],
    });
    await decide(offerId, "release");
    const waits = await eventually(
      "the second draft",
      async () => (await api<HeldOffersAnswer>("GET", "offers")).offers.find(({ taskId }) => taskId === of.taskId),
      60_000,
    );
    const sha = git(work, "rev-parse", again);
    expect(waits.title).toContain(`commit ${sha.slice(0, 10)}`);
    expect(model.requests(`its commit ${gone.slice(0, 10)} could not be pushed`).length).toBeGreaterThan(0);
    expectNothingLeft(of, before);

    await decide(waits.id, "release");
    await eventually("the pull request", () => pullsOf(of.taskId)[0], 60_000);
    expect(headOf(of.taskId)).toBe(sha);
    expect(pullsOf(of.taskId)).toHaveLength(1);
    await expectWhole(of);
  }, 180_000);
});

describe("whoever asks for it meanwhile", () => {
  test("[SP5] in the widget gets the task that has it: nothing is started again, and its pull request goes the way of asked work", async () => {
    const before = { refs: refs() };
    const token = "wanted-gate";
    const done = [report("done", "The gate is oiled for you.", { confidence: 0.9 })];
    const of = await speculate(token, [...drafts(token), [push], [propose(token)], [wait], ...Array.from({ length: 6 }, () => done)]);
    const { offerId } = await offered(of);
    const input = { settles: ["$trg"], title: "As asked", goal: `Do ${token}.`, adopt: of.taskId, acknowledge: "I have that already." };
    model.script({ when: ["please oil the gate for me", '"dispatch"'], replies: [{ calls: [{ tool: "dispatch", input }] }] });
    await system.sendSurely("please oil the gate for me");
    await outcome(of, "adopted");
    const waits = await eventually(
      "its proposal",
      async () => (await api<HeldOffersAnswer>("GET", "offers")).offers.find(({ taskId, id }) => taskId === of.taskId && id !== offerId),
      60_000,
    );
    expect(await api<OfferView>("GET", `offers/${offerId}`)).toMatchObject({ state: "declined", decided: { via: "router" } });
    const sha = git(work, "rev-parse", token);
    expect(headOf(of.taskId)).toBe(sha);
    expect(pullsOf(of.taskId)).toEqual([]);
    await decide(waits.id, "release");
    const pull = await eventually("the pull request", () => pullsOf(of.taskId)[0], 60_000);
    expect(pull).toMatchObject({ title: `Oil ${token}` });
    expect(refs()).toEqual([...before.refs, `refs/heads/${branchOf(of.taskId)}`].sort());
    const tasks = (await system.events("ROUTER", "router")).flatMap(({ event }) =>
      event.kind === "router.decision" && event.tool === "dispatch" && event.taskId === of.taskId ? [event.decisionId] : [],
    );
    expect(tasks).toHaveLength(2);
    const said = (await system.conversation()).flatMap(({ row }) => (row.kind === "reply" ? [row.text] : []));
    expect(said).toContain("I have that already.");
    expect(github.comments(place, of.number)).toEqual([]);
    expect((await historyOf(of)).pushed).toEqual(["keep the commit", `push ${branchOf(of.taskId)}`]);
  }, 180_000);
});

describe("workerd is killed", () => {
  test("[SP8] while the draft waits: it waits still, and its release makes it once", async () => {
    const token = "killed-waiting";
    const of = await speculate(token, [...drafts(token), ...Array.from({ length: 6 }, () => [wait])]);
    const { offerId } = await offered(of);
    const before = { refs: refs() };
    system.killWorkerd();
    const view = await eventually("the draft after the kill", () => api<OfferView>("GET", `offers/${offerId}`), 60_000);
    expect(view).toMatchObject({ state: "held" });
    expectNothingLeft(of, before);
    await decide(offerId, "release");
    await expectOnce(of, git(work, "rev-parse", token));
  }, 180_000);

  // The hops from a release to its pull request: the task tells, the router opens it, the machine pushes, the thread of the branch sends.
  // At an effect it is applied and its sender does not know it yet.
  test.each<[FaultPoint, number]>([
    ...[1, 2, 3, 4, 5, 6].map((nth): [FaultPoint, number] => ["worker.effect.applied", nth]),
    ["router.effect.applied", 1],
    ["router.effect.applied", 2],
    ["endpoint.queued", 1],
    ["endpoint.settled", 1],
    ["endpoint.result.handed", 1],
    ["thread.outbound.sending", 1],
    ["thread.outbound.sent", 1],
  ])(
    "[SP8] [R9] [R12] between release and pull request, at %s (%i): pushed once, opened once, nothing lost",
    async (point, nth) => {
      const token = `killed-${point.replaceAll(".", "-")}-${nth}`;
      const of = await speculate(token, [...drafts(token), ...Array.from({ length: 6 }, () => [wait])]);
      const { offerId } = await offered(of);
      const fired = system.faults.fired;
      system.faults.arm(point, nth, () => system.killWorkerd());
      await decide(offerId, "release");
      await eventually(`the fault point ${point}`, () => system.faults.fired === fired + 1, 60_000);
      await expectOnce(of, git(work, "rev-parse", token));
    },
    180_000,
  );
});
