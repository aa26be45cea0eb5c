// `npm run mutants [-- R3 R9]`: each broken build of mutants.ts is run against the tests of its invariant, in a copy of this folder.
// It is killed when a test that carries the invariant's id fails. Fails when one survives, when a mutant no longer fits the code, or
// when those tests fail on the unbroken copy.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Mutant, mutants } from "./mutants.ts";

const root = path.resolve(import.meta.dirname, "../..");
const parts = ["package.json", "wrangler.toml", "vitest.config.ts", "src", "durable-objects", "daemon", "migrations", "test"];

type TestFile = { message: string; assertionResults: { fullName: string; status: string }[] };
type Seen = { passed: string[]; failed: string[]; broken: string[] };

/** Runs the tests of an invariant in the copy. `broken` names what kept a file from being run at all. */
function runTests(copy: string, { invariant, project, tests }: Mutant): Seen {
  const reportFile = path.join(copy, "report.json");
  rmSync(reportFile, { force: true });
  const args = ["run", "--project", project, ...tests, "-t", `\\[${invariant}\\]`, "--reporter=json", `--outputFile=${reportFile}`];
  const { stderr } = spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", ...args], { cwd: copy, encoding: "utf8" });
  let files: TestFile[];
  try {
    files = (JSON.parse(readFileSync(reportFile, "utf8")) as { testResults: TestFile[] }).testResults;
  } catch {
    return { passed: [], failed: [], broken: [stderr.trim().slice(-2000) || "The test runner left no report."] };
  }
  const named = files.flatMap(({ assertionResults }) => assertionResults).filter(({ fullName }) => fullName.includes(`[${invariant}]`));
  const of = (status: string) => named.filter((test) => test.status === status).map(({ fullName }) => fullName);
  const broken = files.filter(({ assertionResults }) => assertionResults.length === 0).map(({ message }) => message);
  return { passed: of("passed"), failed: of("failed"), broken };
}

/** The problem of a mutant, or the test that killed it. */
function judge(copy: string, mutant: Mutant): { killedBy: string } | { problem: string } {
  const file = path.join(copy, mutant.file);
  const whole = readFileSync(file, "utf8");
  const places = whole.split(mutant.from).length - 1;
  if (places !== 1) return { problem: `its text occurs ${places} times in ${mutant.file}: change the mutant with the code` };
  writeFileSync(
    file,
    whole.replace(mutant.from, () => mutant.to),
  );
  try {
    const { failed, broken } = runTests(copy, mutant);
    if (broken.length > 0) return { problem: `a file of its tests did not run: ${broken.join("\n")}` };
    return failed[0] === undefined ? { problem: "it SURVIVED: no test noticed" } : { killedBy: failed[0] };
  } finally {
    writeFileSync(file, whole);
  }
}

const asked = process.argv.slice(2);
const chosen = mutants.filter(({ invariant }) => asked.length === 0 || asked.includes(invariant));
const unknown = asked.filter((id) => !mutants.some(({ invariant }) => invariant === id));
if (unknown.length > 0) {
  console.error(
    `There is no mutant for ${unknown.join(", ")}. There are: ${[...new Set(mutants.map(({ invariant }) => invariant))].join(", ")}.`,
  );
  process.exit(2);
}

const copy = mkdtempSync(path.join(tmpdir(), "switchyard-mutants-"));
const clean = (): void => rmSync(copy, { recursive: true, force: true });
process.on("SIGINT", () => process.exit(130));
process.on("exit", clean);
for (const part of parts) cpSync(path.join(root, part), path.join(copy, part), { recursive: true });
symlinkSync(path.join(root, "node_modules"), path.join(copy, "node_modules"));

let problems = 0;
const unbroken = new Map<string, Seen>();
for (const mutant of chosen) {
  const key = JSON.stringify([mutant.invariant, mutant.project, mutant.tests]);
  const before = unbroken.get(key) ?? runTests(copy, mutant);
  unbroken.set(key, before);
  const sound = before.passed.length > 0 && before.failed.length === 0 && before.broken.length === 0;
  const result = sound
    ? judge(copy, mutant)
    : {
        problem: `its tests do not pass on the unbroken build: ${[...before.failed, ...before.broken].join("\n") || "none carries its id"}`,
      };
  if ("problem" in result) problems += 1;
  console.log(`${"problem" in result ? "✗" : "✓"} ${mutant.invariant}  ${mutant.does}`);
  console.log("problem" in result ? `      ${result.problem}` : `      killed by: ${result.killedBy}`);
}
console.log(problems === 0 ? `All ${chosen.length} mutants were killed.` : `${problems} of ${chosen.length} mutants are not killed.`);
process.exit(problems === 0 ? 0 : 1);
