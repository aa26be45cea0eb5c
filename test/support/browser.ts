// Finds a Chromium for the browser tests, or installs one: Debian's package, else Playwright's own download.
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { chromium } from "playwright-core";

const known = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** Flags that keep it quiet: no sandbox inside containers, no traffic of its own. */
export const browserArgs = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    // Not there or not runnable: both mean "look further".
    return false;
  }
};

/** The path of a browser that is on this machine, or null. `CHROME_PATH` comes first. */
export function findBrowser(): string | null {
  const candidates = [process.env.CHROME_PATH, ...known, chromium.executablePath()];
  return candidates.find((file) => file !== undefined && isExecutable(file)) ?? null;
}

/** The path of a browser, installed if need be. Throws with what to do when none can be had. */
export function ensureBrowser(): string {
  const found = findBrowser();
  if (found) return found;
  const run = (command: string, args: string[]) => spawnSync(command, args, { stdio: "inherit" }).status === 0;
  console.log("No Chromium found: installing one for the browser tests.");
  if (process.getuid?.() === 0 && spawnSync("which", ["apt-get"]).status === 0) {
    run("apt-get", ["update", "-qq"]) &&
      run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"]);
  }
  if (!findBrowser()) run(process.execPath, ["node_modules/playwright-core/cli.js", "install", "--with-deps", "chromium"]);
  const installed = findBrowser();
  if (!installed) throw new Error("No browser could be found or installed. Install Chromium, or set CHROME_PATH to one.");
  return installed;
}
