// `npm run check:deploy`: bundles for production, runs that bundle in workerd with no secrets and an empty D1, and sees `/health` say what is missing.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { root, startWorker } from "../../src/local/worker.ts";

const expected = ["SESSION_SECRET", "OPERATOR_TOKEN", "GITHUB_WEBHOOK_SECRET", "GITHUB_TOKEN"];
const outdir = mkdtempSync(path.join(tmpdir(), "switchyard-deploy-"));
let worker: Awaited<ReturnType<typeof startWorker>> | null = null;

try {
  const bundle = spawnSync(path.join(root, "node_modules/.bin/wrangler"), ["deploy", "--dry-run", "--outdir", outdir], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, WRANGLER_SEND_METRICS: "false" },
  });
  if (bundle.status !== 0) throw new Error(`The production bundle failed:\n${bundle.stdout}${bundle.stderr}`);
  const size = bundle.stdout.match(/Total Upload: .*/)?.[0] ?? "size unknown";
  worker = await startWorker({ port: 0, bindings: {}, scriptPath: path.join(outdir, "index.js") });
  const response = await fetch(new URL("/health", await worker.ready));
  const text = await response.text();
  const silent = expected.filter((name) => !text.includes(name));
  if (response.status !== 200) throw new Error(`/health answered ${response.status}: ${text}`);
  if (silent.length > 0)
    throw new Error(`/health does not say that ${silent.join(", ")} ${silent.length > 1 ? "are" : "is"} missing: ${text}`);
  console.log(`The production bundle runs (${size}). /health of a bare deployment:\n${JSON.stringify(JSON.parse(text), null, 2)}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await worker?.dispose();
  rmSync(outdir, { recursive: true, force: true });
}
