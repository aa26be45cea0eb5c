// Every reader of test output, one line each. A reader needs the runner's own summary line: output of the tests themselves names other tests.
import { bun, deno, jest, mocha, nodeSpec, vitest } from "./javascript.ts";
import { cargo, goTest, jvm, minitest, phpunit, prove, pytest, rspec, unittest } from "./languages.ts";
import type { Reader } from "./reading.ts";

/** TAP is not among them: it is read only when none of these speaks. */
export const readers: readonly Reader[] = [
  vitest,
  jest,
  mocha,
  nodeSpec,
  deno,
  bun,
  pytest,
  unittest,
  goTest,
  cargo,
  rspec,
  phpunit,
  minitest,
  prove,
  jvm,
];
