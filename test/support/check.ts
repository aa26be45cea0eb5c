// `npm run check`: format, lint and import rules, types of every runtime, unused code. In seconds, and all of them even when one fails.
import { spawn } from "node:child_process";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");
const bin = (name: string) => path.join(root, "node_modules/.bin", name);

const checks: [what: string, command: string, args: string[]][] = [
  ["format, lint, import rules", bin("biome"), ["check", "--error-on-warnings", "."]],
  ["types", bin("tsc"), ["-b"]],
  ["unused code", bin("knip"), ["--no-progress"]],
];

const results = await Promise.all(
  checks.map(
    ([what, command, args]) =>
      new Promise<{ what: string; code: number; output: string }>((resolve, reject) => {
        const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
        let output = "";
        for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
        child.once("error", reject);
        child.once("exit", (code) => resolve({ what, code: code ?? 1, output }));
      }),
  ),
);

for (const { what, code, output } of results) {
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${what}`);
  if (code !== 0) console.log(output);
}
process.exit(results.some(({ code }) => code !== 0) ? 1 : 0);
