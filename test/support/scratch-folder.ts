// One folder for everything that a run of the tests leaves in the system's temp folder, its own and its libraries'; removed at the end.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** Before any test; the returned function runs after the last one. */
export default function setup(): () => void {
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(path.join(tmpdir(), "sy-"));
  process.env.TMPDIR = folder;
  return () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    // A process that was just killed may still write for a moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
}
