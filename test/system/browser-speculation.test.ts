// What an owner sees and sets of work that nobody asked for: a real browser on the real system.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessibilityFindings, launchBrowser, scrollsSideways, visit } from "../support/browser-lab.ts";
import { operatorToken, System } from "../support/system.ts";

let system: System;
let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
  system = await System.start();
});
afterAll(async () => {
  await browser?.close();
  await system?.stop();
});

test("[SP1] an owner lets a policy start work by itself, sees that the embedded model does not, and takes it back", async () => {
  const { page, problems } = await visit(browser, [system.origin], { viewport: { width: 360, height: 800 } });
  await page.goto(`${system.origin}/console#/rules`);
  await page.getByLabel("Operator token").fill(operatorToken);
  await page.getByLabel("Operator token").press("Enter");
  await page.getByRole("heading", { name: "Work that nobody asked for" }).waitFor();
  await page.getByText("The embedded model does not speculate", { exact: false }).waitFor();
  await page.getByRole("button", { name: "New policy" }).click();
  await page.getByRole("button", { name: "Save as version 1" }).click();
  await page.getByRole("alert").getByText("Give the policy a short name", { exact: false }).waitFor();
  await page.getByLabel("Name").fill("early");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("Write what the router should do, or leave.").waitFor();
  await page.getByLabel("What the router should do, or leave").fill("Look for causes early.");
  expect(await page.getByLabel("Model calls of one task").count()).toBe(0);
  await page.getByLabel("May start work that nobody asked for").check();
  await page.getByLabel("Where, one place a line", { exact: false }).fill("github acme/app");
  await expect.poll(() => page.getByLabel("Model calls of one task").inputValue()).toBe("8");
  expect(await accessibilityFindings(page)).toEqual([]);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/form.png` });
  await page.getByRole("button", { name: "Save as version 1" }).click();
  await page.getByText("may start work by itself in github acme/app", { exact: false }).waitFor();
  await expect.poll(() => scrollsSideways(page)).toBe(false);
  expect(await accessibilityFindings(page)).toEqual([]);
  if (process.env.SHOTS) {
    await page.screenshot({ path: `${process.env.SHOTS}/narrow.png` });
    await page.setViewportSize({ width: 1100, height: 900 });
    await page.screenshot({ path: `${process.env.SHOTS}/wide.png` });
  }
  // Switching it off keeps what it allows; editing takes that away.
  await page.getByRole("button", { name: "Switch off early" }).click();
  await page.getByRole("button", { name: "Switch on early" }).waitFor();
  await page.getByRole("button", { name: "Edit early" }).click();
  await expect.poll(() => page.getByLabel("May start work that nobody asked for").isChecked()).toBe(true);
  await page.getByLabel("May start work that nobody asked for").uncheck();
  await page.getByRole("button", { name: "Save as version 3" }).click();
  await page.getByText("may start work by itself", { exact: false }).waitFor({ state: "detached" });
  expect(problems).toEqual([]);
});
