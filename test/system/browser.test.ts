// The widget as people meet it: a real browser on the real system.
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessibilityFindings, consoleCall, hostPage, launchBrowser, scrollsSideways, visit, widgetIn } from "../support/browser-lab.ts";
import { operatorToken, System } from "../support/system.ts";

const failing = `closes the gate ${randomBytes(4).toString("hex")}`;
let system: System;
let browser: Browser;
let foreign: Awaited<ReturnType<typeof hostPage>>;
let stranger: Awaited<ReturnType<typeof hostPage>>;

beforeAll(async () => {
  browser = await launchBrowser();
  foreign = await hostPage(() => system.origin);
  stranger = await hostPage(() => system.origin);
  system = await System.start({ bindings: { WIDGET_ORIGINS: foreign.origin } });
  const workspace = path.join(system.folder, "workspace");
  mkdirSync(workspace);
  writeFileSync(path.join(workspace, "package.json"), JSON.stringify({ name: "sample", type: "module", scripts: { test: "node --test" } }));
  writeFileSync(
    path.join(workspace, "gate.test.js"),
    `import test from "node:test";\nimport assert from "node:assert";\ntest("opens the gate", () => {});\ntest(${JSON.stringify(failing)}, () => assert.equal(1, 2));\n`,
  );
  await system.daemon(workspace);
});
afterAll(async () => {
  await browser?.close();
  await foreign?.close();
  await stranger?.close();
  await system?.stop();
});

const invite = (role: "member" | "owner" = "member"): Promise<{ link: string; personId: string }> =>
  consoleCall(system.origin, operatorToken, "people", { name: "Member", role });

/** A new person's page, opened by a personal link. */
async function member(options: BrowserContextOptions = {}, role: "member" | "owner" = "member") {
  const { link, personId } = await invite(role);
  const opened = await visit(browser, [system.origin, foreign.origin], options);
  await opened.page.goto(link);
  const frame = widgetIn(opened.page);
  await frame.getByText("connected", { exact: true }).waitFor();
  const say = async (text: string, label = "Message") => {
    await frame.getByLabel(label, { exact: true }).fill(text);
    await frame.getByLabel(label, { exact: true }).press("Enter");
  };
  return { ...opened, frame, say, personId };
}

test("a member asks for the tests on a page with the widget and sees the real failing test's name, also after a reload", async () => {
  const { page, frame, say, problems } = await member();
  // The link is personal and works once: it does not stay in the address.
  await expect.poll(() => page.url()).toBe(`${system.origin}/demo`);
  await say("run the tests and tell me what fails");
  const card = frame.getByRole("article");
  await card.getByText("done", { exact: true }).waitFor({ timeout: 60_000 });
  await card.getByText(failing, { exact: false }).waitFor();
  await frame.getByText("delivered", { exact: false }).waitFor();

  await card.getByRole("button", { name: /^Accept/ }).click();
  await card.getByRole("button", { name: /^Accept/, pressed: true }).waitFor();

  await page.reload();
  await page.getByRole("button", { name: "Open the conversation" }).click();
  await frame.getByText(failing).waitFor();
  await card.getByRole("button", { name: /^Accept/, pressed: true }).waitFor();
  await expect.poll(() => frame.getByText("run the tests and tell me what fails").count()).toBe(1);
  expect(problems).toEqual([]);
});

test("two requests within two seconds get a card each, and Stop ends one of them without the other", async () => {
  const { frame, say, problems } = await member();
  await say("run `sleep 3; echo first-is-here`");
  await say("run `sleep 100; echo second`");
  const cards = frame.getByRole("article");
  await expect.poll(() => cards.count(), { timeout: 20_000 }).toBe(2);
  const second = frame.getByRole("article", { name: /sleep 100/ });
  await second.getByRole("button", { name: /^Stop/ }).click();
  await second.getByText("stopped", { exact: true }).waitFor({ timeout: 30_000 });
  const first = frame.getByRole("article", { name: /sleep 3/ });
  await first.getByText("done", { exact: true }).waitFor({ timeout: 30_000 });
  await first
    .getByText("first-is-here", { exact: true })
    .or(first.locator("pre", { hasText: "first-is-here" }))
    .first()
    .waitFor();
  expect(problems).toEqual([]);
});

test("a task that failed is left, or tried again: one press, and the same card goes on", async () => {
  // axe is brought in from outside, which the page's own policy would forbid.
  const { page, frame, say, problems } = await member({ bypassCSP: true });
  const name = `later-${randomBytes(4).toString("hex")}.md`;
  await say(`show ${name}`);
  const card = frame.getByRole("article");
  await card.getByText("failed", { exact: true }).waitFor({ timeout: 30_000 });
  await card.getByRole("button", { name: /^Leave it/ }).click();
  await card.getByRole("button", { name: /^Left/, pressed: true }).waitFor();
  expect(await accessibilityFindings(page)).toEqual([]);
  writeFileSync(path.join(system.folder, "workspace", name), "the tide comes at noon\n");
  await card.getByRole("button", { name: /^Try again/ }).click();
  await card.getByText("done", { exact: true }).waitFor({ timeout: 30_000 });
  await card.getByText("the tide comes at noon", { exact: false }).first().waitFor();
  await expect.poll(() => card.getByRole("button", { name: /^(?:Try again|Leave it|Left)/ }).count()).toBe(0);
  await expect.poll(() => frame.getByRole("article").count()).toBe(1);
  expect(problems).toEqual([]);
});

test("what a schedule starts says which schedule, and of whom", async () => {
  const { frame, personId, problems } = await member();
  const time = { afterMinutes: 0.01, zone: "UTC" };
  await consoleCall(system.origin, operatorToken, "schedules", { name: "tide watch", text: "run `echo tide-is-in`", personId, time });
  await frame.getByText("Schedule “tide watch” of Member", { exact: true }).waitFor({ timeout: 30_000 });
  await frame.getByRole("article").getByText("done", { exact: true }).waitFor({ timeout: 30_000 });
  await expect.poll(() => frame.getByText("Schedule “tide watch” of Member", { exact: true }).count()).toBe(1);
  expect(problems).toEqual([]);
});

test("what is typed while the cloud cannot be reached survives a reload and arrives once", async () => {
  const { context, page, frame, say, problems } = await member();
  await context.route("**/api/**", (route) => route.abort());
  await page.reload();
  await page.getByRole("button", { name: "Open the conversation" }).click();
  await say("what is going on?");
  await frame.getByText("waiting to be sent", { exact: false }).waitFor();
  await frame.getByText("You are offline.", { exact: false }).waitFor();
  await expect.poll(() => frame.getByLabel("Message", { exact: true }).isEnabled()).toBe(true);
  await frame.getByLabel("Message", { exact: true }).fill("a draft");

  await page.reload();
  await page.getByRole("button", { name: "Open the conversation" }).click();
  await frame.getByText("waiting to be sent", { exact: false }).waitFor();
  await expect.poll(() => frame.getByLabel("Message", { exact: true }).inputValue()).toBe("a draft");

  await context.unroute("**/api/**");
  await frame.getByText("delivered", { exact: false }).waitFor({ timeout: 30_000 });
  await page.reload();
  await page.getByRole("button", { name: "Open the conversation" }).click();
  await frame.getByText("connected", { exact: true }).waitFor();
  await frame.getByText("delivered", { exact: false }).waitFor();
  await expect.poll(() => frame.getByText("what is going on?", { exact: true }).count()).toBe(1);
  expect(problems).toEqual([]);
});

test("a guest reads in one sentence what guests may do, and a request for work is refused in a friendly way", async () => {
  const { page, problems } = await visit(browser, [system.origin]);
  await page.goto(`${system.origin}/demo`);
  await page.getByRole("button", { name: "Open the conversation" }).click();
  const frame = widgetIn(page);
  await frame.getByText("You are a guest", { exact: false }).waitFor();
  await frame.getByLabel("Message", { exact: true }).fill("run the tests and tell me what fails");
  await frame.getByLabel("Message", { exact: true }).press("Enter");
  await frame.getByText("only members of the team", { exact: false }).nth(1).waitFor({ timeout: 20_000 });
  expect(await frame.getByRole("article").count()).toBe(0);
  expect(problems).toEqual([]);
});

test("a link that was used says so, and the visitor goes on as a guest", async () => {
  const { link } = await invite();
  const first = await visit(browser, [system.origin]);
  await first.page.goto(link);
  await widgetIn(first.page).getByText("connected", { exact: true }).waitFor();
  const second = await visit(browser, [system.origin]);
  await second.page.goto(link);
  await widgetIn(second.page).getByText("was used already", { exact: false }).waitFor();
  await widgetIn(second.page).getByText("You are a guest", { exact: false }).waitFor();
});

test("a person whose access is withdrawn is told at once and stays out", async () => {
  const { personId, link } = await invite();
  const { page, problems } = await visit(browser, [system.origin]);
  await page.goto(link);
  const frame = widgetIn(page);
  await frame.getByText("connected", { exact: true }).waitFor();
  await consoleCall(system.origin, operatorToken, `people/${personId}/revoke`);
  await frame
    .getByText("Your access was withdrawn", { exact: false })
    .or(frame.getByText("your access was withdrawn", { exact: false }))
    .waitFor();
  expect(problems).toEqual([]);
});

test("the widget works on somebody else's strict page when its origin is allowed, and not when it is not", async () => {
  const allowed = await visit(browser, [system.origin, foreign.origin]);
  await allowed.page.goto(foreign.origin);
  await allowed.page.getByRole("button", { name: "Open the conversation" }).click();
  await widgetIn(allowed.page).getByText("connected", { exact: true }).waitFor();
  expect(allowed.problems).toEqual([]);

  const refused = await visit(browser, [system.origin, stranger.origin]);
  const blocked = refused.page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
  await refused.page.goto(stranger.origin);
  await blocked;
  expect(await widgetIn(refused.page).getByText("connected", { exact: true }).count()).toBe(0);
});

test("hostile and strange texts are shown as text: no script runs and no request leaves", async () => {
  const { frame, say, problems } = await member();
  const texts = [
    '<img src=x onerror="alert(1)"><script>alert(2)</script>',
    "[click](javascript:alert(3)) ![x](https://evil.test/pixel.png)",
    "<svg/onload=alert(4)> <iframe src=https://evil.test></iframe>",
    "\u202Eevil\u202C \u0000 ﷽ Z̷̢͝a̵͖͗l̷̝̀g̶͓̈o̸̘͝ 🎉🎉 'a' \"b\" `c`",
    "مرحبا بالعالم 123",
    `${"x".repeat(400)}`,
  ];
  for (const text of texts) await say(text);
  for (const text of texts.slice(0, 3)) await frame.getByText(text, { exact: true }).first().waitFor();
  await expect.poll(() => frame.getByText("waiting to be sent", { exact: false }).count()).toBe(0);
  expect(await frame.locator("main img, main iframe, main svg:not(.icon):not(.mark), main script").count()).toBe(0);
  expect(problems).toEqual([]);
});

test("on a page that is low, or enlarged to twice its size, the conversation has all the room", async () => {
  const { page, problems } = await visit(browser, [system.origin], { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 });
  await page.goto(`${system.origin}/demo`);
  await page.getByRole("button", { name: "Open the conversation" }).click();
  await expect.poll(() => page.locator("iframe").boundingBox()).toEqual({ x: 0, y: 0, width: 640, height: 360 });
  await page.setViewportSize({ width: 640, height: 800 });
  await expect.poll(async () => (await page.locator("iframe").boundingBox())?.width).toBe(440);
  expect(problems).toEqual([]);
});

test("keyboard alone is enough: open, write, reach a card, close", async () => {
  const { page } = await visit(browser, [system.origin]);
  await page.goto(`${system.origin}/demo`);
  const launcher = page.getByRole("button", { name: "Open the conversation" });
  await launcher.waitFor();
  await launcher.focus();
  await page.keyboard.press("Enter");
  const frame = widgetIn(page);
  await frame.getByText("connected", { exact: true }).waitFor();
  const field = frame.getByLabel("Message", { exact: true });
  await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
  await page.keyboard.type("line one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("line two");
  await expect.poll(() => field.inputValue()).toBe("line one\nline two");
  await page.keyboard.press("Enter");
  await frame.getByText("line one", { exact: false }).first().waitFor();
  await expect.poll(() => field.inputValue()).toBe("");
  await page.keyboard.press("Escape");
  await expect.poll(() => launcher.getAttribute("aria-expanded")).toBe("false");
  await expect.poll(() => launcher.evaluate((element) => element === document.activeElement)).toBe(true);
});

test("what is queued for a task is moved up by keyboard, a screen reader hears where it stands, and a thumb finds each button", async () => {
  const { page, frame, say, problems } = await member({ viewport: { width: 320, height: 640 }, hasTouch: true, bypassCSP: true });
  await say("run `sleep 300; echo move-me`");
  const card = frame.getByRole("article");
  await card.getByText("running", { exact: true }).waitFor({ timeout: 30_000 });
  const field = card.getByRole("textbox");
  for (const text of ["then lint", "then docs"]) {
    await field.fill(text);
    await card.getByRole("button", { name: "Queue" }).click();
    await card.getByRole("button", { name: `Remove “${text}”` }).waitFor();
  }
  const queued = card.getByLabel("Queued messages");
  const small = frame.getByRole("button").evaluateAll((buttons) =>
    buttons.flatMap((button) => {
      const { width, height } = button.getBoundingClientRect();
      return width < 44 || height < 44 ? [`${button.textContent}: ${width} × ${height}`] : [];
    }),
  );
  expect(await small).toEqual([]);
  await queued.getByRole("button", { name: "Move up: “then docs”" }).focus();
  await page.keyboard.press("Enter");
  await frame.getByText("“then docs” is now 1 of 2.").waitFor({ state: "attached" });
  await expect.poll(() => queued.locator(".plain").allTextContents()).toEqual(["then docs", "then lint"]);
  const moveUp = queued.getByRole("button", { name: "Move up: “then docs”" });
  await expect.poll(() => moveUp.evaluate((button) => button === document.activeElement)).toBe(true);
  expect(await accessibilityFindings(page)).toEqual([]);
  await card.getByRole("button", { name: /^Stop/ }).click();
  await card.getByText("stopped", { exact: true }).waitFor({ timeout: 30_000 });
  expect(problems).toEqual([]);
});

test("[RD9] an owner confirms what is shown with one press, which writes the line", async () => {
  const { frame, say, problems } = await member({}, "owner");
  await say("policy tides: leave the tide tables alone");
  await frame.getByRole("button", { name: "Confirm" }).click();
  await frame.getByText(/^confirm rul_/).waitFor();
  await frame.getByText("Saved: the policy “tides” is on", { exact: false }).first().waitFor();
  await expect.poll(() => frame.getByRole("button", { name: "Confirm" }).count()).toBe(0);
  expect(problems).toEqual([]);
});

test("an interrupt from the card ends what runs, and what was said instead is done", async () => {
  const { page, frame, say, problems } = await member();
  await say("run `sleep 300; echo never-printed`");
  const card = frame.getByRole("article");
  await card.getByText("running", { exact: true }).waitFor({ timeout: 30_000 });
  await card.getByRole("textbox").fill("run `echo after-the-break`");
  await card.getByRole("button", { name: "Interrupt" }).focus();
  await page.keyboard.press("Enter");
  await card.getByText("done", { exact: true }).waitFor({ timeout: 60_000 });
  const said = await card.textContent();
  expect(said).toContain("after-the-break");
  expect(said).not.toContain("stopped before its end");
  expect(problems).toEqual([]);
});

test.each([
  ["wide and light", {}],
  ["360 px wide and dark", { viewport: { width: 360, height: 720 }, colorScheme: "dark", hasTouch: true }],
  ["in forced colours with reduced motion", { forcedColors: "active", reducedMotion: "reduce" }],
] as const)(
  "the page has no serious accessibility finding, and only the conversation in it scrolls, up and down: %s",
  async (_name, options) => {
    // axe is brought in from outside, which the page's own policy would forbid.
    const { page, frame, say } = await member({ ...options, bypassCSP: true });
    for (const text of ["help", "what can you do?"]) await say(text);
    await say("run `echo a-rather-long-word-".concat("x".repeat(120), "`"));
    const card = frame.getByRole("article");
    await card.getByText("done", { exact: true }).waitFor({ timeout: 30_000 });
    expect(await accessibilityFindings(page)).toEqual([]);
    await expect.poll(() => scrollsSideways(page)).toBe(false);
    const overflows = (selector: string) => frame.locator(selector).evaluate((box) => box.scrollHeight > box.clientHeight);
    await expect.poll(async () => [await overflows(".talk"), await overflows("html")]).toEqual([true, false]);
    // A button stands beside the text that it copies, never over it.
    const output = card.locator(".code").filter({ hasText: "a-rather-long-word" }).last();
    await expect
      .poll(async () => {
        const [text, button] = [await output.locator("pre").boundingBox(), await output.getByRole("button").boundingBox()];
        return text !== null && button !== null && text.x + text.width <= button.x;
      })
      .toBe(true);
  },
);
