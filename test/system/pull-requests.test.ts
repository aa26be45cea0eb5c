// A worker's pull request from its push to its green checks, and two workers on one pull request: real workerd, the real daemon, real
// git with a bare repository as its remote, GitHub and the model as stand-ins.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { branchKeyOf, branchOf } from "../../src/core/branch.ts";
import { threadIdOf } from "../../src/core/ids.ts";
import type { TaskAnswer } from "../../src/protocol/console.ts";
import type { Logged } from "../../src/protocol/events.ts";
import { accessibilityFindings, launchBrowser, scrollsSideways, visit, widgetIn } from "../support/browser-lab.ts";
import { git, gitLab } from "../support/git-lab.ts";
import { type GitHubServer, startGitHubServer } from "../support/github-server.ts";
import { checkHistory } from "../support/history.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { eventually, operatorToken, System, standIns } from "../support/system.ts";

const place = "acme/app";
const repository = { full_name: place, id: 7 };
const user = (login: string, type = "User") => ({ login, id: 1, type });
const commit = (file: string) =>
  `git checkout -q -B work && echo ${file} > ${file} && git add ${file} && git -c user.name=t -c user.email=t@x.y commit -qm ${file}`;

let system: System;
let github: GitHubServer;
let model: ModelServer;
let work: string;
let remote: string;

const deliver = (event: string, payload: unknown): Promise<void> => system.github(event, payload);

let comments = 0;
const comment = (number: number, body: string, login = "maintainer") =>
  deliver("issue_comment", {
    action: "created",
    repository,
    sender: user(login),
    issue: {
      number,
      id: 1000 + number,
      title: "The gate squeaks",
      body: "",
      html_url: null,
      user: user(login),
      author_association: "MEMBER",
      ...(number >= 100 ? { pull_request: {} } : {}),
    },
    comment: { id: ++comments, body, html_url: null, user: user(login), author_association: "MEMBER" },
  });

const pullOf = (number: number) => ({ number, head: { repo: { id: 7 } }, base: { repo: { id: 7 } } });
const suite = (number: number, branch: string, sha: string, conclusion: string) =>
  deliver("check_suite", {
    action: "completed",
    repository,
    sender: user("github-actions[bot]", "Bot"),
    check_suite: {
      id: ++comments,
      head_branch: branch,
      head_sha: sha,
      conclusion,
      status: "completed",
      app: { name: "CI" },
      pull_requests: [pullOf(number)],
    },
  });
const job = (number: number, branch: string, sha: string, conclusion: string) =>
  deliver("check_run", {
    action: "completed",
    repository,
    sender: user("github-actions[bot]", "Bot"),
    check_run: {
      id: ++comments,
      name: "tests",
      head_sha: sha,
      conclusion,
      status: "completed",
      app: { name: "CI" },
      check_suite: { head_branch: branch },
      pull_requests: [pullOf(number)],
    },
  });
const pushEvent = (branch: string, before: string, after: string) =>
  deliver("push", {
    ref: `refs/heads/${branch}`,
    before,
    after,
    created: before === "",
    repository,
    sender: user("maintainer"),
    commits: [],
  });

/** GitHub tells of the pull request that we opened. */
const opened = (number: number, sha: string): Promise<void> => pullEvent("opened", number, sha, "switchyard-bot");
const pullEvent = async (action: string, number: number, sha: string, login: string, more: object = {}): Promise<void> => {
  const pull = github.pulls(place).find((each) => each.number === number);
  const repo = { id: 7, full_name: place };
  await deliver("pull_request", {
    action,
    repository,
    sender: user(login),
    pull_request: {
      ...pull,
      ...more,
      id: 2_000 + number,
      author_association: "MEMBER",
      head: { ...pull?.head, sha, repo },
      base: { ...pull?.base, repo },
    },
  });
};

/** A router that dispatches what holds the token, and a worker's steps. */
type Call = { tool: string; input: object };
function script(token: string, steps: (Call | Call[])[]): void {
  model.script({
    when: [token, '"dispatch"'],
    replies: [{ calls: [{ tool: "dispatch", input: { settles: ["$trg"], title: `Work ${token}`, goal: `Do ${token}` } }] }],
  });
  model.script({ when: [token, '"run_command"'], replies: steps.map((calls) => ({ calls: [calls].flat() })) });
}
const steps = (token: string): number => model.requests(token).filter((body) => body.includes('"run_command"')).length;
const untilSteps = (token: string, n: number) => eventually(`step ${n} of ${token}`, () => steps(token) >= n, 60_000);

const taskOf = (token: string): Promise<string> =>
  eventually(`a task of ${token}`, async () => {
    for (const { event } of await system.events("ROUTER", "router"))
      if (event.kind === "router.decision" && event.tool === "dispatch" && event.reason.includes(token)) return event.taskId;
    return undefined;
  });
const headOf = (taskId: string): string => git(remote, "rev-parse", "--verify", "-q", `refs/heads/${branchOf(taskId)}`);
const statusOf = async (taskId: string): Promise<string | undefined> =>
  (await system.events("WORKER_SESSION", taskId)).map(({ event }) => event).findLast((event) => event.kind === "task.status")?.to;
const logOf = async (kind: "thread" | "task", object: string): Promise<{ object: string; kind: "thread" | "task"; events: Logged[] }> => ({
  object,
  kind,
  events: await system.events(kind === "thread" ? "THREAD" : "WORKER_SESSION", object),
});

beforeAll(async () => {
  github = await startGitHubServer();
  github.permit(place, "maintainer", "write");
  model = await startModelServer();
  system = await System.start({
    bindings: standIns(github, model),
  });
  ({ remote, work } = gitLab(system.folder));
  await system.daemon(work);
  await system.daemonCommand(["grant", work, "--name", "work", "--push"]);
}, 120_000);
afterAll(async () => {
  await system.stop();
  await github.close();
  await model.close();
});

describe("what waits for a person", () => {
  test("is released on the task's card with the keyboard, and declined in the console; only the released one is sent", async () => {
    const token = "say-it-kindly";
    const thread = threadIdOf("github", place, "issue:61");
    model.script({
      when: ["the hinges creak", '"dispatch"'],
      replies: [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "between people" } }] }],
    });
    await comment(61, "the hinges creak");
    await eventually("the router's word on it", () => model.requests("the hinges creak").length > 0);
    script(token, [
      { tool: "subscribe", input: { thread, reason: "asked to answer there" } },
      [
        { tool: "propose", input: { what: "comment", thread, text: "**Oil** helps, says the manual." } },
        { tool: "propose", input: { what: "comment", thread, text: "Buy a new gate." } },
      ],
      { tool: "wait", input: { reason: "for the other one" } },
      { tool: "report", input: { kind: "done", text: "One was said.", confidence: 0.9 } },
    ]);
    const browser = await launchBrowser();
    try {
      const { page, problems } = await visit(browser, [system.origin], { viewport: { width: 360, height: 740 } });
      await page.goto(await system.console.ownerLink());
      const widget = widgetIn(page);
      const composer = widget.getByLabel("Message", { exact: true });
      await composer.fill(`please ${token}`);
      await composer.press("Enter");
      const proposals = widget.getByRole("region", { name: "Proposals that wait for you" });
      await proposals
        .getByRole("button", { name: /^Release: Comment · acme\/app issue 61/ })
        .nth(1)
        .waitFor({ timeout: 60_000 });
      await widget.getByText("waiting for you").first().waitFor();
      expect(await accessibilityFindings(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);
      expect(github.comments(place, 61)).toEqual([]);

      const operator = await visit(browser, [system.origin]);
      await operator.page.goto(`${system.origin}/console`);
      await operator.page.getByLabel("Operator token").fill(operatorToken);
      await operator.page.getByLabel("Operator token").press("Enter");
      const decline = operator.page.getByRole("button", { name: /^Decline: Comment · acme\/app issue 61/ });
      const release = operator.page.getByRole("button", { name: /^Release: Comment · acme\/app issue 61/ });
      await decline.nth(1).waitFor();
      // The task waits for nothing else: it stands there as its proposals, and once.
      await expect.poll(() => operator.page.locator(".panel-asks > .list > li").count()).toBe(2);
      expect(await accessibilityFindings(operator.page)).toEqual([]);
      await operator.page.getByRole("link", { name: "All proposals" }).click();
      const listed = operator.page.getByRole("listitem").filter({ hasText: "acme/app issue 61" });
      // [O12] Until its text has been opened a proposal can be declined, and not be released.
      const read = operator.page.getByRole("button", { name: /^Read what would be sent/ });
      await expect.poll(async () => [await read.count(), await decline.count(), await release.count()]).toEqual([2, 2, 0]);
      await read.first().focus();
      await operator.page.keyboard.press("Enter");
      await expect.poll(async () => [await read.count(), await decline.count(), await release.count()]).toEqual([1, 2, 1]);
      const opened = listed.filter({ has: release }).locator(".proposal-text");
      await expect.poll(() => opened.evaluate((text) => text === document.activeElement)).toBe(true);

      // On its task's page each stands with all of its words.
      await listed
        .first()
        .getByRole("link", { name: `Work ${token}` })
        .click();
      await operator.page.getByRole("heading", { name: "Waits for your release" }).waitFor();
      await operator.page.getByText("Buy a new gate.").first().waitFor();
      await expect.poll(async () => [await decline.count(), await release.count()]).toEqual([2, 2]);
      expect(await accessibilityFindings(operator.page)).toEqual([]);
      await operator.page.goto(`${system.origin}/console#/proposals`);

      const released = proposals.locator("div", { hasText: "**Oil** helps" }).getByRole("button", { name: /^Release/ });
      await released.focus();
      await page.keyboard.press("Enter");
      await eventually("the released comment", () => github.comments(place, 61).length === 1);

      // The only one that is left is open by itself.
      await expect.poll(() => listed.count()).toBe(1);
      await listed.getByText("Buy a new gate.").waitFor();
      await release.waitFor();
      expect(await accessibilityFindings(operator.page)).toEqual([]);
      expect(await scrollsSideways(operator.page)).toBe(false);
      await decline.click();
      await operator.page.getByText("Nothing waits for a release.").waitFor();
      await operator.page.goto(`${system.origin}/console#/`);
      await operator.page.getByText("Nothing waits for you.").waitFor();
      await proposals.waitFor({ state: "detached" });
      const taskId = await taskOf(token);
      await eventually("the end of the task", async () => (await statusOf(taskId)) === "done", 60_000);
      expect(github.comments(place, 61).map(({ body }) => body.split("\n")[0])).toEqual(["**Oil** helps, says the manual."]);
      await operator.page.goto(`${system.origin}/console#/rules`);
      const comments = operator.page.getByLabel("Comments in a task's own words");
      await comments.check();
      await eventually("the saved setting", () => comments.isChecked());
      expect([...problems, ...operator.problems]).toEqual([]);
    } finally {
      await browser.close();
    }
  }, 180_000);
});

describe("a worker's branch", () => {
  test("[R9] its checks fail and then pass: one pull request, although the process died right after GitHub took it, and done at the end", async () => {
    const token = "mend-the-gate";
    script(token, [
      { tool: "run_command", input: { script: commit("one") } },
      { tool: "push", input: {} },
      { tool: "propose", input: { what: "pull_request", title: "Oil the gate", summary: "It squeaked.", changes: ["Oiled it"] } },
      { tool: "wait", input: { reason: "for the checks" } },
      { tool: "run_command", input: { script: commit("two") } },
      { tool: "push", input: {} },
      { tool: "report", input: { kind: "done", text: "The gate is oiled, and the checks pass.", confidence: 0.9 } },
      { tool: "report", input: { kind: "done", text: "The gate is oiled, and the checks pass.", confidence: 0.9 } },
    ]);
    system.faults.arm("thread.outbound.sent", 1, () => system.killWorkerd());
    await comment(60, `@switchyard-bot please ${token}`);
    const taskId = await taskOf(token);
    const branch = branchOf(taskId);
    const number = await eventually("the pull request", () => github.pulls(place)[0]?.number, 60_000);
    await untilSteps(token, 4);
    expect(system.faults.fired).toBe(1);
    expect(github.pulls(place)).toMatchObject([{ title: "Oil the gate", head: { ref: branch }, base: { ref: "main" }, draft: false }]);
    expect(github.pulls(place)[0]?.body).toContain("### Checks");

    const first = headOf(taskId);
    await pushEvent(branch, "", first);
    await opened(number, first);
    await job(number, branch, first, "success");
    await job(number, branch, first, "failure");
    await untilSteps(token, 7);
    const second = headOf(taskId);
    expect(second).not.toBe(first);
    // Done is held until the checks of the last push have ended; what the first one still brings wakes nobody.
    await eventually("the held report", async () => (await statusOf(taskId)) === "waiting");
    await suite(number, branch, first, "failure");
    await suite(number, branch, "f".repeat(40), "success");
    await suite(number, branch, second, "success");
    await eventually("the end of the task", async () => (await statusOf(taskId)) === "done", 60_000);
    await eventually("the answer on the issue", () => github.comments(place, 60).some(({ body }) => body.includes("the checks pass")));
    expect(steps(token)).toBe(8);
    expect(github.pulls(place)).toHaveLength(1);
    // [W30] Whoever merges it has accepted it.
    await pullEvent("closed", number, second, "maintainer", { merged: true });
    const task = () => fetch(`${system.origin}/api/console/tasks/${taskId}`, { headers: { authorization: `Bearer ${operatorToken}` } });
    await eventually("the accepted outcome", async () => ((await (await task()).json()) as TaskAnswer).card.accepted === true);

    const [branchThread, pullThread] = [threadIdOf("github", place, branchKeyOf(taskId)), threadIdOf("github", place, `pull:${number}`)];
    const logs = await Promise.all([logOf("thread", branchThread), logOf("thread", pullThread), logOf("task", taskId)]);
    expect(checkHistory(logs)).toEqual([]);
    expect(logs[0]?.events.filter(({ event }) => event.kind === "thread.confirmed")).toHaveLength(1);
    const begun = logs[1]?.events.find(({ event }) => event.kind === "thread.accepted" && event.trigger.kind === "pull_request.opened");
    expect(begun?.event).toMatchObject({ verdict: { outcome: "record" } });
    const followed = logs
      .slice(0, 2)
      .map(({ events }) => events.some(({ event }) => event.kind === "thread.subscribed" && event.taskId === taskId));
    expect(followed).toEqual([true, true]);
    expect(JSON.stringify(logs[2]?.events)).not.toContain('"tainting":true');
  }, 180_000);

  test("two workers on one pull request: people's words reach both at once, the checks of a branch only the worker that pushed it", async () => {
    const number = 170;
    const pullThread = threadIdOf("github", place, `pull:${number}`);
    const [one, two] = ["first-worker-170", "second-worker-170"];
    script(one, [
      { tool: "run_command", input: { script: commit("three") } },
      { tool: "push", input: {} },
      { tool: "wait", input: { reason: "for people" } },
      { tool: "wait", input: { reason: "for the checks" } },
      { tool: "report", input: { kind: "done", text: "Done on my side.", confidence: 0.9 } },
    ]);
    script(two, [
      { tool: "subscribe", input: { thread: pullThread, reason: "asked to look along" } },
      { tool: "wait", input: { reason: "for people" } },
      { tool: "wait", input: { reason: "for more" } },
    ]);
    // The thread has another worker, so that the router's model is asked what to do with the end of the first.
    model.script({
      when: ["Done on my side.", '"dispatch"'],
      replies: [{ calls: [{ tool: "relay", input: { settles: ["$rep"], report: "$rep" } }] }],
    });
    await comment(number, `@switchyard-bot please ${one}`);
    await untilSteps(one, 3);
    await comment(number + 1, `@switchyard-bot please ${two}`);
    await untilSteps(two, 2);
    const [first, second] = [await taskOf(one), await taskOf(two)];

    await comment(number, "both of you, mind the hinges");
    await untilSteps(one, 4);
    await untilSteps(two, 3);
    for (const token of [one, two]) expect(model.requests(token).at(-1)).toContain("mind the hinges");
    expect(model.requests(two).at(-1)).toContain(first);

    await suite(number, branchOf(first), headOf(first), "success");
    await eventually("the end of the first", async () => (await statusOf(first)) === "done", 60_000);
    await eventually("the word of it", () => github.comments(place, number).some(({ body }) => body.includes("Done on my side.")), 60_000);
    expect(steps(two)).toBe(3);
    expect(await statusOf(second)).toBe("waiting");
    const logs = await Promise.all([logOf("thread", pullThread), logOf("task", first), logOf("task", second)]);
    expect(checkHistory(logs)).toEqual([]);
  }, 180_000);
});
