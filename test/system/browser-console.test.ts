// The console as an operator meets it: a real browser on the real system.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defaultRules } from "../../src/core/gate.ts";
import type { WidgetServerFrame } from "../../src/protocol/widget-frames.ts";
import { accessibilityFindings, cutChoices, launchBrowser, scrollsSideways, visit } from "../support/browser-lab.ts";
import { operatorToken, System } from "../support/system.ts";

let system: System;
let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
  system = await System.start({ bindings: { MODEL_PRICE: "3/15" } });
});
afterAll(async () => {
  await browser?.close();
  await system?.stop();
});

async function operator(options: BrowserContextOptions = {}, hash = "") {
  const opened = await visit(browser, [system.origin], options);
  await opened.page.goto(`${system.origin}/console${hash}`);
  await signIn(opened.page);
  return opened;
}

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Operator token").fill(operatorToken);
  await page.getByLabel("Operator token").press("Enter");
  await page.getByText("live", { exact: true }).waitFor();
}

test("a fresh deployment says what to do next, and a machine that is connected by the shown lines appears by itself", async () => {
  const { page, problems } = await operator();
  await page.getByText("No machine is connected yet", { exact: false }).waitFor();
  await page.getByText("Nothing waits for you.").waitFor();
  await page.getByRole("link", { name: "Connect a machine" }).click();
  await page.getByRole("button", { name: "Make a code" }).click();
  const commands = page.locator(".copy-line code");
  await expect.poll(() => commands.count()).toBe(3);
  expect(await commands.first().textContent()).toMatch(new RegExp(`^npm run daemon -- enroll ${system.origin} \\S+$`));
  const workspace = path.join(system.folder, "workspace");
  mkdirSync(workspace, { recursive: true });
  await system.daemon(workspace);
  await page.getByText("online", { exact: false }).waitFor();
  expect(problems).toEqual([]);
});

test("a wrong token is refused with a sentence; the right one lasts over a reload, and signing out ends it in every window", async () => {
  const { context, page, problems } = await visit(browser, [system.origin]);
  await page.goto(`${system.origin}/console`);
  await page.getByLabel("Operator token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This is not the operator token.", { exact: false }).waitFor();
  await signIn(page);
  await page.reload();
  await page.getByText("live", { exact: true }).waitFor();
  const other = await context.newPage();
  await other.goto(`${system.origin}/console`);
  await other.getByText("live", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Operator token").waitFor();
  await other.getByLabel("Operator token").waitFor();
  expect(problems).toEqual([]);
});

test("a console that nobody has signed in to is asked nothing that it must refuse: the browser logs no error", async () => {
  const { page } = await visit(browser, [system.origin]);
  const errors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(`${system.origin}/console`);
  await signIn(page);
  // What was asked before the end of the session is answered before it.
  await page.waitForLoadState("networkidle");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Operator token").waitFor();
  await page.reload();
  await page.getByLabel("Operator token").waitFor();
  expect(errors).toEqual([]);
});

test("a task appears by itself, its timeline tells the road, and why it was answered is one click away", async () => {
  const { page, problems } = await operator();
  const owner = await system.owner();
  owner.send("run `echo hello-from-the-console-test`");
  const row = page.locator("[data-row]", { hasText: "hello-from-the-console-test" }).first();
  await row.waitFor({ timeout: 20_000 });
  await page
    .locator(".task-row", { hasText: "hello-from-the-console-test" })
    .getByText("done", { exact: true })
    .waitFor({ timeout: 40_000 });
  owner.close();
  await row.click();
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  const timeline = page.locator(".timeline");
  for (const text of ["Decided to start a task", "Ended with exit code 0", "Reports: done"])
    await timeline.getByText(text, { exact: false }).first().waitFor();
  for (const lane of ["thread", "router", "worker", "machine"]) await timeline.locator(".event-lane", { hasText: lane }).first().waitFor();
  await page.getByRole("button", { name: /^Work/ }).click();
  await expect.poll(() => timeline.getByText("Ended with exit code 0", { exact: false }).count()).toBe(0);
  await page.getByRole("link", { name: "why?" }).click();
  await page.getByText("The router decided", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "Decide again" }).click();
  const asked = page.getByRole("dialog");
  await asked.getByText("it may answer a second time", { exact: false }).waitFor();
  expect(await accessibilityFindings(page)).toEqual([]);
  await asked.getByRole("button", { name: "Decide again" }).click();
  await page.getByText("The router decided", { exact: false }).nth(1).waitFor({ timeout: 20_000 });
  expect(problems).toEqual([]);
});

test("a running task is stopped after it was said what that does", async () => {
  const owner = await system.owner();
  owner.send("run `sleep 300; echo stop-me`");
  const { page } = await operator();
  const row = page.locator(".task-row", { hasText: "sleep 300" }).first();
  await row.waitFor({ timeout: 20_000 });
  await row.getByRole("button", { name: /^Stop/ }).click();
  await page.getByText("What was said stays", { exact: false }).waitFor();
  await page.getByRole("button", { name: "No, go back" }).click();
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await row.getByRole("button", { name: /^Stop/ }).click();
  await page.getByRole("button", { name: "Stop it" }).click();
  await row.getByText("stopped", { exact: true }).waitFor({ timeout: 30_000 });
  owner.close();
});

test("a task that failed is tried again from its page, and goes on as the same task", async () => {
  const name = "later-in-the-console.md";
  const owner = await system.owner();
  owner.send(`show ${name}`);
  const { page, problems } = await operator();
  const row = page.locator(".task-row", { hasText: name }).first();
  await row.getByText("failed", { exact: true }).waitFor({ timeout: 30_000 });
  owner.close();
  await row.locator("[data-row]").click();
  writeFileSync(path.join(system.folder, "workspace", name), "the tide comes at noon\n");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("status").getByText("Asked again", { exact: false }).waitFor();
  await page.locator(".result").getByText("the tide comes at noon", { exact: false }).waitFor({ timeout: 30_000 });
  await expect.poll(() => page.getByRole("button", { name: "Try again" }).count()).toBe(0);
  expect(problems).toEqual([]);
});

test("a profile is changed by keyboard: a wrong form says what to do, a saved one is a version, and going back is one more", async () => {
  const { page, problems } = await operator({}, "#/profiles");
  await page.getByRole("button", { name: "Edit researcher" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Profile researcher" });
  await dialog.getByLabel("Model calls of a task").fill("lots");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("write a whole number from 1 to 60", { exact: false }).waitFor();
  await dialog.getByLabel("Model calls of a task").fill("9");
  await dialog.getByLabel("run_command", { exact: true }).check();
  await page.keyboard.press("Enter");
  await page.getByText("Version 1 of researcher is in force", { exact: false }).waitFor();
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await page.getByText("version 1 · 9 model calls", { exact: false }).waitFor();
  const versions = page.getByRole("button", { name: "Versions of researcher" });
  await versions.click();
  await expect.poll(() => versions.getAttribute("aria-expanded")).toBe("true");
  await page.getByRole("button", { name: "Go back to version 0 of researcher" }).click();
  await page.getByRole("button", { name: "Go back to it" }).click();
  await page.getByText("Version 2 of researcher is in force", { exact: false }).waitFor();
  await page.getByRole("button", { name: "New profile" }).click();
  await page.getByLabel("Name", { exact: true }).fill("researcher");
  await page.getByRole("button", { name: "Save as version 1" }).click();
  await page.getByText("There is a profile researcher already", { exact: false }).waitFor();
  await page.getByLabel("Name", { exact: true }).fill("release-notes");
  await page.getByLabel("When the router should choose it").fill("Release notes: it reads the commits and writes what changed.");
  await page.getByRole("button", { name: "Save as version 1" }).click();
  await page.getByRole("button", { name: "Edit release-notes" }).waitFor();
  expect(problems).toEqual([]);
});

test("an operator says something to a running task; what is queued is seen, changed, moved by keyboard, and removed", async () => {
  const owner = await system.owner();
  owner.send("run `sleep 300; echo talk-to-me`");
  const { page, problems } = await operator();
  await page.locator("[data-row]", { hasText: "talk-to-me" }).first().click();
  const words = page.getByLabel("Your words", { exact: false });
  await words.waitFor();
  for (const text of ["then say how long it took", "and nothing else"]) {
    await words.fill(text);
    await page.getByRole("radio", { name: "Queue" }).check();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.locator(".said-text", { hasText: text }).waitFor();
  }
  await page.getByRole("button", { name: "Edit: “then say" }).click();
  await page.getByLabel("New words for", { exact: false }).fill("then say that it is over");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".said-text", { hasText: "then say that it is over" }).waitFor();
  const order = () => page.locator(".said-text").allTextContents();
  await page.getByRole("button", { name: "Move up: “and nothing" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("“and nothing else” is now 1 of 2.").waitFor();
  await expect.poll(order).toEqual(["and nothing else", "then say that it is over"]);
  // The focus goes along with what was moved.
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Move up: “and nothing else”");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("“and nothing else” is now 2 of 2.").waitFor();
  await expect.poll(order).toEqual(["then say that it is over", "and nothing else"]);
  await page.getByRole("button", { name: "Remove: “and nothing" }).click();
  await page.locator(".said-text", { hasText: "and nothing else" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Stop it" }).click();
  await page.getByText("stopped", { exact: true }).first().waitFor({ timeout: 30_000 });
  await expect.poll(() => page.getByLabel("Your words", { exact: false }).count()).toBe(0);
  owner.close();
  expect(problems).toEqual([]);
});

test("a guest's request for work waits for the operator and is dismissed", async () => {
  const { page } = await operator();
  const guest = await visit(browser, [system.origin]);
  await guest.page.goto(`${system.origin}/widget/`);
  await guest.page.getByLabel("Message", { exact: true }).fill("run the tests and tell me what fails");
  await guest.page.getByLabel("Message", { exact: true }).press("Enter");
  const notice = page.locator(".notice", { hasText: "Refused" }).first();
  await notice.waitFor({ timeout: 20_000 });
  await notice.getByRole("button", { name: "Dismiss" }).click();
  await page.getByText("Nothing waits for you.").waitFor();
});

test("an invite link is made and shown once, a login at GitHub is linked, and access withdrawn", async () => {
  const { page } = await operator({}, "#/people");
  await page.getByLabel("Name").fill("New member");
  await page.getByRole("button", { name: "Make an invite link" }).click();
  await expect.poll(() => page.locator(".copy-line code").textContent()).toMatch(new RegExp(`^${system.origin}/demo#invite=\\S{20,}$`));
  await page.getByRole("button", { name: "Login of New member at GitHub" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Login").fill("no login");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("letters, digits and dashes").waitFor();
  await dialog.getByLabel("Login").fill("new-member");
  await page.keyboard.press("Enter");
  await page.getByText(", new-member at GitHub").waitFor();
  await page.getByRole("button", { name: "Withdraw the access of New member" }).click();
  await page.getByRole("button", { name: "Withdraw access" }).click();
  await page.getByText("access withdrawn", { exact: false }).waitFor();
});

test("j, k, Enter, / and ? work", async () => {
  const { page } = await operator();
  await page.locator("[data-row]").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await expect
    .poll(() => page.evaluate(() => [...document.querySelectorAll("[data-row]")].indexOf(document.activeElement as Element)))
    .toBe(0);
  // Past the row of pages in one step.
  const skip = page.getByRole("button", { name: "Skip to the page" });
  await skip.focus();
  await expect.poll(async () => ((await skip.boundingBox())?.y ?? -1) >= 0).toBe(true);
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe("MAIN");
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("next and previous row").waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await page.keyboard.press("/");
  await page.keyboard.type("nothing-is-called-this");
  await page.getByText("Nothing holds “nothing-is-called-this”.").waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("thr_unknown");
  await page.keyboard.press("Enter");
  await page.getByText("There is no thread thr_unknown.").waitFor();
});

test("a search from any page finds tasks, what the router keeps and what is set up; its address can be handed on, and back leads back", async () => {
  const { page, problems } = await operator({}, "#/machines");
  await page.keyboard.press("/");
  await page.keyboard.type("hello-from-the-console-test");
  await page.locator(".task-row", { hasText: "hello-from-the-console-test" }).first().waitFor();
  await page.locator(".found", { hasText: "Decision" }).first().waitFor();
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("search");
  const hash = new URL(page.url()).hash;
  await page.goBack();
  await page.getByRole("heading", { name: "Connect a machine" }).waitFor();
  await expect.poll(() => page.getByLabel("Search everything", { exact: false }).inputValue()).toBe("");
  await page.goto(`${system.origin}/console${hash}`);
  await page.locator(".task-row", { hasText: "hello-from-the-console-test" }).first().waitFor();
  await page.getByLabel("Search everything", { exact: false }).fill("rule signed bot");
  await page.getByLabel("Search everything", { exact: false }).fill("rule generic.bot");
  const rule = page.locator(".found", { hasText: "generic.bot" });
  await rule.waitFor();
  // Enter leads on to what was found.
  await page.keyboard.press("Enter");
  await expect.poll(() => rule.evaluate((row) => row === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Versions" }).waitFor();
  expect(problems).toEqual([]);
});

test("what is remembered is listed, found and forgotten by keyboard, and then the chat knows nothing of it; what is somebody's own has no words", async () => {
  const owner = await system.owner();
  await owner.until((frame) => (frame.t === "caught_up" ? true : undefined), 10_000, "end of the history");
  const answer = (text: string, what: string): Promise<string> => {
    const isAnswer = (frame: WidgetServerFrame) =>
      frame.t === "row" && frame.threadId === owner.rootThreadId && frame.row.kind === "reply" ? frame.row.text : undefined;
    const answered = owner.until(isAnswer, 20_000, what);
    owner.send(text);
    return answered;
  };
  for (const fact of ["for the team that we deploy on Fridays", "for the team that lunch is at noon", "that my desk is blue"])
    await answer(`remember ${fact}`, "word that it is kept");
  const { page, problems } = await operator({ bypassCSP: true }, "#/memory");
  const facts = page.getByRole("list", { name: "Facts" });
  await expect.poll(() => facts.getByRole("listitem").count()).toBe(3);
  await facts.getByText("reads its words", { exact: false }).waitFor();
  expect(await page.getByText("desk is blue").count()).toBe(0);
  await page.getByLabel("Find a fact").fill("deploy");
  await expect.poll(() => facts.getByRole("listitem").allTextContents()).toEqual([expect.stringContaining("we deploy on Fridays")]);
  await page.getByLabel("Find a fact").fill("nothing-like-this");
  await page.getByText("No fact that you may read holds “nothing-like-this”.").waitFor();
  await page.getByLabel("Find a fact").fill("");
  await expect.poll(() => facts.getByRole("listitem").count()).toBe(3);
  const button = page.getByRole("button", { name: "Forget “we deploy on Fridays”" });
  await button.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Forget “we deploy on Fridays”?" });
  await dialog.getByText("What was said in conversations stays there", { exact: false }).waitFor();
  expect(await accessibilityFindings(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await expect.poll(() => button.evaluate((element) => element === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Forget it" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("status").getByText("Forgotten: “we deploy on Fridays”").waitFor();
  await expect.poll(() => facts.getByRole("listitem").count()).toBe(2);
  // The focus goes on to what stands in its place.
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "")).toMatch(/^Forget /);
  const left = await answer("what do you remember?", "list");
  owner.close();
  expect(left).toContain("lunch is at noon");
  expect(left).not.toContain("Fridays");
  expect(problems).toEqual([]);
});

test("the first screen says what the day cost; the costs page says of what, leads to the tasks, and says what is not counted", async () => {
  const { page, problems } = await operator();
  const today = page.getByRole("region", { name: "Today" });
  await expect.poll(() => today.getByText(/^(?:< )?\$\d/).count()).toBe(1);
  await today.getByRole("img", { name: /^The last 7 days: 0, / }).waitFor();
  await today.getByRole("link", { name: "Costs" }).press("Enter");
  for (const name of ["By day", "By task", "What is not counted"]) await page.getByRole("heading", { name }).waitFor();
  const roles = page.getByRole("region", { name: "By role and model" });
  await expect
    .poll(() => roles.getByRole("listitem").allTextContents())
    .toEqual([expect.stringMatching(/^Router, offline.*\$/), expect.stringMatching(/^Workers, now offline.*\$/)]);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await page
    .locator(".facts-wide div", { hasText: "Spent" })
    .getByText(/tokens read/)
    .waitFor();
  expect(problems).toEqual([]);
});

test("what could not be read says so, and is read again by a press", async () => {
  const { page } = await operator();
  const answer = { message: "The database cannot be reached right now." };
  await page.route("**/api/console/costs?*", (route) => route.fulfill({ status: 503, json: answer }), { times: 1 });
  await page.getByRole("link", { name: "Costs" }).first().press("Enter");
  await page.getByRole("alert").getByText("The database cannot be reached right now.").waitFor();
  await page.getByRole("button", { name: "Try again" }).press("Enter");
  await page.getByRole("heading", { name: "What is not counted" }).waitFor();
});

test("a task that failed is an incident, with what was kept and what to do, until its outcome is judged", async () => {
  const owner = await system.owner();
  owner.send("show not-there-at-all.md");
  const { page, problems } = await operator({}, "#/incidents");
  const incident = page.locator(".notice", { hasText: "not-there-at-all.md" });
  await incident.getByText("Task failed").waitFor({ timeout: 40_000 });
  owner.close();
  await incident.getByText("in its timeline", { exact: false }).waitFor();
  await incident.getByRole("link", { name: "Open it" }).press("Enter");
  await page.getByRole("button", { name: "Reject the outcome" }).click();
  await page.getByRole("status").getByText("Rejected.").waitFor();
  await page.goto(`${system.origin}/console#/incidents`);
  // The number is there when all is read.
  await page.getByRole("heading", { name: /^Incidents ?\d+$/, level: 2 }).waitFor();
  await expect.poll(() => incident.count(), { timeout: 30_000 }).toBe(0);
  expect(problems).toEqual([]);
});

test("the list of threads follows what happens, and is not read anew for each step of each task", async () => {
  const { page } = await operator({}, "#/threads");
  const reads: number[] = [];
  page.on("request", (request) => {
    if (new URL(request.url()).pathname === "/api/console/threads") reads.push(Date.now());
  });
  const owner = await system.owner();
  const names = ["paced-first", "paced-second", "paced-third"];
  for (const name of names) owner.send(`run \`echo ${name}\``);
  for (const name of names) await page.locator(".found", { hasText: name }).first().waitFor({ timeout: 40_000 });
  owner.close();
  // Three seconds, but for what a busy machine tells late.
  expect(reads.flatMap((at, index) => (index > 0 && at - (reads[index - 1] ?? 0) < 1_500 ? [reads] : []))).toEqual([]);
});

test("the rules stand source by source, like ones in one line, and are unfolded, found and moved by keyboard", async () => {
  const { page, problems } = await operator({}, "#/rules");
  const github = page.getByRole("region", { name: /^GitHub/ });
  const rows = github.getByRole("listitem");
  await expect.poll(() => rows.count()).toBeLessThanOrEqual(15);
  const family = github.getByRole("button", { name: /^(?:Show 27|Fold): A change of state/ });
  await expect.poll(() => family.getAttribute("aria-expanded")).toBe("false");
  const before = await rows.count();
  await family.focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => rows.count()).toBe(before + 27);
  await family.press("Enter");
  await expect.poll(() => rows.count()).toBe(before);
  const head = page.getByRole("button", { name: /^GitHub/ });
  await head.press("Enter");
  await expect.poll(async () => [await head.getAttribute("aria-expanded"), await rows.count()]).toEqual(["false", 0]);
  await head.press("Enter");
  await page.getByRole("button", { name: /^asked of us/ }).press("Enter");
  await expect
    .poll(() =>
      page
        .getByRole("region", { name: /^Widget/ })
        .getByRole("listitem")
        .count(),
    )
    .toBe(1);
  await expect.poll(() => github.getByRole("listitem").count()).toBe(1);
  await page.getByRole("button", { name: /^asked of us/ }).press("Enter");
  await page.getByLabel("Find a rule").fill("issues.closed");
  await page.getByText(`1 of ${defaultRules.rules.length} rules`).waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Move github.changed:issues.closed up" }).press("Enter");
  await page.getByText("This is a draft", { exact: false }).waitFor();
  await page.getByRole("button", { name: "Drop the draft" }).press("Enter");
  await page.getByText("This is a draft", { exact: false }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "New rule" }).click();
  await expect.poll(() => cutChoices(page)).toEqual([]);
  expect(problems).toEqual([]);
});

test("the pages are one row of links where there is room, and behind a button, by keyboard too, where there is none", async () => {
  const { page, problems } = await operator({ bypassCSP: true });
  const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
  const button = page.getByRole("button", { name: /^Pages, now at/ });
  for (const width of [1600, 1100, 820]) {
    await page.setViewportSize({ width, height: 700 });
    const rows = async () => new Set(await links.evaluateAll((all) => all.map((link) => (link as HTMLElement).offsetTop))).size;
    await expect.poll(async () => [width, await rows(), await button.count(), await scrollsSideways(page)]).toEqual([width, 1, 0, false]);
  }
  // 320 px: a window of 1280 px at 400 %.
  for (const width of [360, 320]) {
    await page.setViewportSize({ width, height: 640 });
    await expect.poll(() => links.count()).toBe(0);
    await button.focus();
    await page.keyboard.press("Enter");
    await links.last().waitFor();
    await expect.poll(() => scrollsSideways(page)).toBe(false);
    expect([width, await accessibilityFindings(page)]).toEqual([width, []]);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Escape");
    await expect.poll(() => button.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await links.filter({ hasText: "Machines" }).press("Enter");
    await page.getByRole("button", { name: "Pages, now at: Machines" }).waitFor();
    // The button is renamed with the page, the links fold with the frame after it.
    await expect.poll(async () => [await links.count(), new URL(page.url()).hash]).toEqual([0, "#/machines"]);
    await page.goto(`${system.origin}/console#/`);
  }
  expect(problems).toEqual([]);
});

test.each([
  ["wide and light", {}],
  ["360 px wide and dark", { viewport: { width: 360, height: 720 }, colorScheme: "dark", hasTouch: true }],
] as const)("no page has a serious accessibility finding or scrolls sideways: %s", async (_name, options) => {
  const { page } = await operator({ ...options, bypassCSP: true });
  // What is long scrolls in a box of its own, which has to be reached without a pointer.
  const owner = await system.owner();
  owner.send(`run \`echo ${"as-long-as-it-gets ".repeat(80)}\``);
  const long = page.locator(".task-row", { hasText: "as-long-as-it-gets" }).first();
  await long.getByText("done", { exact: true }).waitFor({ timeout: 40_000 });
  owner.close();
  const task = await long.locator("a[href^='#/task/']").getAttribute("href");
  const pages: [hash: string, title: string][] = [
    ["#/", "Now"],
    [task ?? "", "Task"],
    ["#/tasks", "Tasks"],
    ["#/threads", "Threads"],
    ["#/decisions", "Decisions"],
    ["#/machines", "Machines"],
    ["#/people", "People"],
    ["#/rules", "Rules"],
    ["#/schedules", "Schedules"],
    ["#/profiles", "Profiles"],
    ["#/proposals", "Proposals"],
    ["#/memory", "Memory"],
    ["#/incidents", "Incidents"],
    ["#/costs", "Costs"],
    ["#/fact/fct_unknown", "Fact"],
    ["#/search/message", "Search"],
    ["#/task/tsk_unknown", "Task"],
  ];
  for (const [hash, title] of pages) {
    await page.evaluate((next) => {
      location.hash = next;
    }, hash);
    await expect.poll(async () => [hash, await page.title()]).toEqual([hash, `${title} · Switchyard`]);
    await expect.poll(() => page.getByText(/^(?:Reading|Searching) …$/).count()).toBe(0);
    expect([hash, await accessibilityFindings(page), await cutChoices(page)]).toEqual([hash, [], []]);
    await expect.poll(async () => [hash, await scrollsSideways(page)]).toEqual([hash, false]);
  }
});
