// A scratch folder for one test, removed after it.
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";

const made: string[] = [];

afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true });
});

export function scratch(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "switchyard-unit-")));
  made.push(dir);
  return dir;
}
