import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");

test("the production bundle runs without secrets on an empty database, and /health says what is missing and what for", () => {
  const run = spawnSync(process.execPath, ["test/support/check-deploy.ts"], {
    cwd: root,
    encoding: "utf8",
    timeout: 100_000,
    env: { ...process.env, PATH: `${path.join(root, "node_modules/.bin")}${path.delimiter}${process.env.PATH}` },
  });
  expect(run.status, run.stderr).toBe(0);
  expect(run.stdout).toContain("OPERATOR_TOKEN");
  expect(run.stdout).toContain('"d1": "reachable"');
});
