// `npm test`: a browser is found or installed, the browser parts and the Worker are built, all tests run, and the plain count comes last.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { buildAssets } from "../../src/local/build.ts";
import { bundleWorker } from "../../src/local/worker.ts";
import { ensureBrowser } from "./browser.ts";

const root = path.resolve(import.meta.dirname, "../..");

type Report = {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTotalTests: number;
  numFailedTestSuites: number;
};

process.env.CHROME_PATH = ensureBrowser();
await Promise.all([buildAssets(), bundleWorker()]);

const scratch = mkdtempSync(path.join(tmpdir(), "switchyard-test-"));
const reportFile = path.join(scratch, "report.json");
const { status } = spawnSync(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${reportFile}`,
    ...process.argv.slice(2),
  ],
  { cwd: root, stdio: "inherit" },
);
const report = existsSync(reportFile) ? (JSON.parse(readFileSync(reportFile, "utf8")) as Report) : null;
rmSync(scratch, { recursive: true, force: true });
if (report === null) {
  console.error("The test runner ended before it could report; see above.");
  process.exit(1);
}
// A file that cannot be loaded has no tests to count: it counts as one failure.
const failed = report.numFailedTests + (status !== 0 && report.numFailedTests === 0 ? Math.max(1, report.numFailedTestSuites) : 0);
console.log(`${report.numPassedTests} passed, ${failed} failed${report.numPendingTests > 0 ? `, ${report.numPendingTests} skipped` : ""}`);
process.exit(status === 0 && report.numPassedTests > 0 ? 0 : 1);
