// A real browser for the system tests, which notices what a person would not: script errors, policy violations, strange requests.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import axe from "axe-core";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type FrameLocator, type Page } from "playwright-core";
import { browserArgs, ensureBrowser } from "./browser.ts";

export const launchBrowser = (): Promise<Browser> => chromium.launch({ executablePath: ensureBrowser(), args: browserArgs });

export type Visit = { context: BrowserContext; page: Page; problems: string[] };

/** Answers that the pages expect and explain to people; the browser logs them as errors all the same. */
const expectedNoise = /Failed to load resource: the server responded with a status of 40[134]|net::ERR_|WebSocket connection to/;

/** A fresh profile with one page. `problems` collects what must not happen; requests to hosts that are not allowed are blocked and noted. */
export async function visit(browser: Browser, allowedOrigins: string[], options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const problems: string[] = [];
  await context.route("**/*", (route) => {
    const { origin } = new URL(route.request().url());
    if (allowedOrigins.includes(origin)) return route.continue();
    problems.push(`request to ${route.request().url()}`);
    return route.abort();
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (message.type() === "error" && !expectedNoise.test(message.text())) problems.push(`console: ${message.text()}`);
  });
  return { context, page, problems };
}

/** The widget's frame on a host page. */
export const widgetIn = (page: Page): FrameLocator => page.frameLocator("iframe");

/** Serious and critical findings of axe in every frame of a page. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  const findings: string[] = [];
  for (const frame of page.frames()) {
    await frame.evaluate(axe.source);
    const result = await frame.evaluate(async () => {
      const { axe: runner } = globalThis as unknown as { axe: typeof axe };
      return runner.run(document, { resultTypes: ["violations"] });
    });
    if (result.passes.length === 0) throw new Error(`axe looked at nothing in ${frame.url()}`);
    for (const { id, impact, nodes } of result.violations)
      if (impact === "serious" || impact === "critical")
        findings.push(
          `${new URL(frame.url()).pathname} ${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`,
        );
  }
  return findings;
}

/** Choices of a page that are wider than their box: nobody can read what is chosen. */
export const cutChoices = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const pen = document.createElement("canvas").getContext("2d");
    if (pen === null) throw new Error("This browser measures no text.");
    return [...document.querySelectorAll("select")].flatMap((select) => {
      const { font, paddingLeft, paddingRight } = getComputedStyle(select);
      pen.font = font;
      const arrowPx = 20;
      const room = select.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight) - arrowPx;
      return [...select.options].map((option) => option.label).filter((label) => pen.measureText(label).width > room);
    });
  });

/** Whether the page, or any frame in it, can be scrolled sideways. */
export async function scrollsSideways(page: Page): Promise<boolean> {
  const wide = await Promise.all(
    page.frames().map((frame) => frame.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)),
  );
  return wide.includes(true);
}

/** A page of somebody else's site that has our script tag; `home` is asked when the page is. */
export async function hostPage(home: () => string): Promise<{ origin: string; close(): Promise<void> }> {
  const server: Server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    // A strict host: no inline styles, no scripts but ours.
    response.setHeader("content-security-policy", `default-src 'none'; img-src data:; script-src ${home()}; frame-src ${home()}`);
    response.end(
      `<!doctype html><html lang="en"><title>Somebody else</title><link rel="icon" href="data:,"><h1>A page</h1><script async src="${home()}/widget.js"></script></html>`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** A change through the console's API, with the operator's token. */
export async function consoleCall<T>(origin: string, token: string, path: string, body: unknown = {}): Promise<T> {
  const response = await fetch(`${origin}/api/console/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`/api/console/${path} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}
